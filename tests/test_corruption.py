"""Corruption: the known is kept, the unknown leaves no trace, noise is uniform, and the network is told the truth."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Generator

from anyfill.corruption import Absorbing, Corruption, Uniform

CORRUPTIONS: list[Corruption] = [Absorbing(), Uniform(7), Uniform(7, mask_visible=False)]
every_corruption = pytest.mark.parametrize("corruption", CORRUPTIONS, ids=str)


@every_corruption
def test_it_satisfies_the_protocol(corruption: Corruption) -> None:
    assert isinstance(corruption, Corruption)


@every_corruption
@given(seed=st.integers(0, 2**20), batch=st.integers(0, 4), variables=st.integers(1, 9), whole=st.booleans())
def test_known_values_are_kept(corruption: Corruption, seed: int, batch: int, variables: int, whole: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(100, 200, (batch, variables), generator=generator)  # out of the range of the noise
    x = x if whole else x.double() + 0.5
    known = torch.rand(batch, variables, generator=generator) < 0.5
    filled = corruption.fill(x, known, generator=generator)
    assert torch.equal(filled[known], x[known])
    assert filled.dtype == x.dtype
    shown, _ = corruption.show(x, known)
    assert torch.equal(shown[known], x[known])


@every_corruption
def test_what_stood_in_an_unknown_place_leaves_no_trace_in_the_filling(corruption: Corruption) -> None:
    known = torch.tensor([[True, False, True, False]])
    clean, spoilt = torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([[1.0, torch.nan, 3.0, torch.inf]])
    filled = [corruption.fill(x, known, generator=torch.Generator().manual_seed(0)) for x in (clean, spoilt)]
    assert torch.equal(filled[0], filled[1])
    assert filled[1].isfinite().all()


def test_absorb_shows_a_blank_in_every_unknown_place_whatever_stood_there() -> None:
    known = torch.tensor([[True, False, False]])
    for hidden in (5.0, torch.nan, -torch.inf):
        shown, told = Absorbing().show(torch.tensor([[1.0, hidden, 0.0]]), known)
        assert shown.tolist() == [[1.0, 0.0, 0.0]]
        assert torch.equal(told, known)
    assert not Absorbing().shows_unknown


def test_absorb_lets_no_gradient_reach_an_unknown_value() -> None:
    x = torch.ones(1, 3, requires_grad=True)
    shown, _ = Absorbing().show(x, torch.tensor([[True, False, True]]))
    shown.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 0.0, 1.0]]


def test_scramble_shows_the_filling_and_tells_where_or_does_not() -> None:
    x, known = torch.tensor([[3, 4]]), torch.tensor([[True, False]])
    shown, told = Uniform(5).show(x, known)
    assert torch.equal(shown, x)
    assert torch.equal(told, known)
    shown, told = Uniform(5, mask_visible=False).show(x, known)
    assert torch.equal(shown, x)
    assert told.all()
    assert Uniform(5).shows_unknown


def test_scramble_is_uniform_over_all_values(generator: Generator) -> None:
    """Chi-square on 5 values, 50 000 draws; false-alarm rate 0.001, fixed seed."""
    x = torch.full((5000, 10), 3)
    noise = Uniform(5).fill(x, torch.zeros_like(x, dtype=torch.bool), generator=generator)
    counts = torch.bincount(noise.flatten())
    assert len(counts) == 5
    assert chisquare(counts.numpy()).pvalue > 0.001


def test_scramble_repeats_with_the_same_generator_and_differs_with_the_next_draw() -> None:
    x = torch.zeros(20, 20, dtype=torch.long)
    unknown = torch.zeros_like(x, dtype=torch.bool)
    one, two = (torch.Generator().manual_seed(4) for _ in range(2))
    first, again, other = (Uniform(9).fill(x, unknown, generator=g) for g in (one, two, two))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_scramble_needs_a_generator_and_at_least_one_value() -> None:
    x = torch.zeros(1, 1, dtype=torch.long)
    with pytest.raises(ValueError, match="generator"):
        Uniform(3).fill(x, x.bool())
    for size in (0, -2, float("nan"), True):
        with pytest.raises(ValueError, match="Uniform size"):
            Uniform(size)  # type: ignore[arg-type]
