"""The enumerated joint against sums written out by hand.

Codes, spins and the numbers of states.
"""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from anyfill.networks.exact import (
    MAX_EXACT,
    EnumeratedJoint,
    RandomConditionals,
    all_codes,
    require_exact,
    state_numbers,
    to_codes,
    to_spins,
)
from anyfill.networks.network import Network, OnePass
from anyfill.rank import NEVER


def by_hand(joint: EnumeratedJoint, x: list[int], known: list[int], j: int) -> list[float]:
    """p(x_j = v | x_known) by a loop over every row."""
    p = joint.probabilities
    mass = [0.0] * joint.values
    for row in itertools.product(range(joint.values), repeat=joint.variables):
        if all(row[i] == x[i] for i in known):
            mass[row[j]] += float(p[row])
    return [m / sum(mass) for m in mass]


def test_it_satisfies_both_protocols():
    joint = EnumeratedJoint(3, 2)
    assert isinstance(joint, Network)
    assert isinstance(joint, OnePass)


@given(seed=st.integers(0, 999), known=st.lists(st.booleans(), min_size=4, max_size=4))
def test_every_conditional_is_the_ratio_of_two_sums(seed, known):
    g = torch.Generator().manual_seed(seed)
    joint = EnumeratedJoint.random(4, 3, generator=g, concentration=0.3)
    x = joint.sample(1, generator=g)
    answers = joint(x, torch.tensor([known])).exp()[0]
    for j in range(4):
        expected = by_hand(joint, x[0].tolist(), [i for i in range(4) if known[i]], j)
        torch.testing.assert_close(answers[j], torch.tensor(expected, dtype=torch.float64))


@given(seed=st.integers(0, 999), ranks=st.lists(st.sampled_from([-2, -1, 0, 1, 2, NEVER]), min_size=4, max_size=4))
def test_a_chain_term_is_the_conditional_on_all_that_rank_strictly_before(seed, ranks):
    g = torch.Generator().manual_seed(seed)
    joint = EnumeratedJoint.random(4, 2, generator=g)
    x = joint.sample(1, generator=g)
    answers = joint.chain(x, torch.tensor([ranks])).exp()[0]
    for j in range(4):
        if ranks[j] == NEVER:
            continue
        before = [i for i in range(4) if ranks[i] < ranks[j] or (ranks[i] == ranks[j] < 0 and i < j)]
        torch.testing.assert_close(
            answers[j], torch.tensor(by_hand(joint, x[0].tolist(), before, j), dtype=torch.float64)
        )


def test_the_chain_rule_gives_the_marginal(generator):
    joint = EnumeratedJoint.random(5, 2, generator=generator)
    x = joint.sample(20, generator=generator)
    rank = torch.tensor([3, NEVER, 0, 2, 1]).expand(20, 5)
    terms = joint.chain(x, rank).gather(2, x.unsqueeze(2)).squeeze(2)
    asked = (rank < NEVER) & (rank >= 0)
    torch.testing.assert_close(torch.where(asked, terms, 0.0).sum(1), joint.log_prob(x, asked))


def test_log_prob_of_nothing_is_zero_and_of_everything_is_the_joint(generator):
    joint = EnumeratedJoint.random(3, 2, generator=generator)
    x = torch.tensor([[1, 0, 1]])
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    assert joint.log_prob(x, nothing).item() == pytest.approx(0.0, abs=1e-12)
    assert joint.log_prob(x, ~nothing).exp().item() == pytest.approx(float(joint.probabilities[1, 0, 1]))


def test_impossible_evidence_gives_uniform_answers():
    joint = EnumeratedJoint.from_probabilities(torch.tensor([[0.5, 0.5], [0.0, 0.0]]))
    answers = joint(torch.tensor([[1, 0]]), torch.tensor([[True, False]])).exp()
    assert answers[0].tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_values_in_unknown_places_are_never_read(generator):
    joint = EnumeratedJoint.random(3, 2, generator=generator)
    known = torch.tensor([[True, False, False]])
    clean = joint(torch.tensor([[1.0, 0.0, 0.0]]), known)
    dirty = joint(torch.tensor([[1.0, float("nan"), 77.0]]), known)
    assert torch.equal(clean, dirty)


def test_rows_are_drawn_from_the_joint(generator):
    joint = EnumeratedJoint.random(3, 3, generator=generator)
    drawn = joint.sample(20_000, generator=generator)
    counts = torch.bincount(drawn @ torch.tensor([9, 3, 1]), minlength=27)
    assert chisquare(counts, joint.probabilities.flatten() * 20_000).pvalue > 0.001


def test_the_joint_travels_in_the_state_dict(generator):
    joint = EnumeratedJoint.random(3, 2, generator=generator)
    other = EnumeratedJoint(3, 2)
    assert list(joint.state_dict()) == ["log_joint"]
    other.load_state_dict(joint.state_dict())
    assert torch.equal(joint.probabilities, other.probabilities)


def test_one_variable():
    joint = EnumeratedJoint.from_probabilities(torch.tensor([0.2, 0.3, 0.5]))
    answers = joint(torch.zeros(1, 1), torch.zeros(1, 1, dtype=torch.bool)).exp()
    torch.testing.assert_close(answers, torch.tensor([[[0.2, 0.3, 0.5]]], dtype=torch.float64))


@pytest.mark.parametrize("bad", [torch.ones(2, 3), torch.ones(2, 2), torch.tensor(1.0), torch.tensor([-0.5, 1.5])])
def test_what_is_not_a_joint_is_refused(bad):
    with pytest.raises(ValueError, match="probabilities"):
        EnumeratedJoint.from_probabilities(bad)


def test_a_joint_too_large_to_list_is_refused():
    with pytest.raises(ValueError, match="at most"):
        EnumeratedJoint(30, 4)


def test_random_conditionals_read_what_ranks_before_and_in_which_order():
    network = RandomConditionals(4, 3)
    assert isinstance(network, OnePass)
    x = torch.tensor([[2, 1, 0, 1]])
    first = network.chain(x, torch.tensor([[0, 1, 2, NEVER]]))
    swapped = network.chain(x, torch.tensor([[1, 0, 2, NEVER]]))
    assert not torch.allclose(first[:, 2], swapped[:, 2])  # the same known set, another order
    later = network.chain(torch.tensor([[2, 1, 2, 0]]), torch.tensor([[0, 1, 2, NEVER]]))
    assert torch.equal(first[:, :3], later[:, :3])  # its own value and the ignored one are not read
    assert not torch.allclose(
        first[:, 2], network.chain(torch.tensor([[2, 0, 0, 1]]), torch.tensor([[0, 1, 2, NEVER]]))[:, 2]
    )


def test_random_conditionals_answer_ties_as_if_each_were_asked_alone():
    network = RandomConditionals(4, 2)
    x = torch.tensor([[1, 0, 1, 0]])
    tied = network.chain(x, torch.tensor([[-1, 0, 0, 0]]))
    torch.testing.assert_close(tied, network(x, torch.tensor([[True, False, False, False]])))
    for j in (1, 2, 3):
        alone = torch.full((1, 4), NEVER)
        alone[0, 0], alone[0, j] = -1, 0
        assert torch.equal(network.chain(x, alone)[:, j], tied[:, j])


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
