"""Codes, spins and the numbers of states."""

import itertools

import pytest
import torch

from anyfill.networks.exact import MAX_EXACT, all_codes, require_exact, state_numbers, to_codes, to_spins


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_all_codes_are_listed_as_a_product_with_the_last_variable_fastest(count: int):
    assert all_codes(count).tolist() == [list(row) for row in itertools.product((0, 1), repeat=count)]


def test_the_number_of_a_state_is_its_place_in_the_list():
    assert torch.equal(state_numbers(all_codes(6)), torch.arange(64))
    assert int(state_numbers(torch.tensor([1, 1, 0]))) == 6


def test_codes_and_spins_are_each_others_inverse():
    codes = all_codes(4)
    assert set(to_spins(codes).unique().tolist()) == {-1.0, 1.0}
    assert to_spins(codes).dtype == torch.float64
    assert torch.equal(to_codes(to_spins(codes)), codes)


@pytest.mark.parametrize("bad", [0.0, 2.0, float("nan")])
def test_what_is_no_spin_is_refused(bad: float):
    with pytest.raises(ValueError, match=r"spins: expected -1 and \+1"):
        to_codes(torch.tensor([1.0, bad]))


def test_too_many_states_are_refused_with_the_memory_they_need_and_what_to_do_instead():
    require_exact(MAX_EXACT, "this")
    with pytest.raises(
        ValueError, match=r"variables for this: .* at most 20 .* got 30, which would need 8 GiB .*sample"
    ):
        require_exact(30, "this")
    with pytest.raises(ValueError, match="listing all states"):
        all_codes(21)
    with pytest.raises(ValueError, match="no machine"):
        require_exact(5000, "this")
