"""Diagnostics of mixing against exact values: Ising conditionals, AR(1) series, transition matrices by brute force."""

from itertools import combinations
from math import comb, inf

import pytest
import torch
from torch import Tensor

from anyfill.evaluation.mixing import (
    autocorrelation_time,
    effective_sample_size,
    learned_gibbs,
    learned_transition,
    pairwise_dependency,
    stationary_law,
)
from anyfill.ising.model import Ising
from anyfill.likelihoods import Categorical, Gaussian
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals, all_codes


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def ising_model(variables: int, seed: int = 0, density: float = 1.0) -> tuple[Ising, Model]:
    ising = Ising.random(variables, generator=seeded(seed), coupling_scale=0.7, density=density, pairs="twice")
    return ising, Model(ising, Categorical(2))


def blockwise(joint: Tensor, k: int) -> Tensor:
    """k-Gibbs of a joint (2,) * N, by ratios of sums, state by state."""
    count = joint.dim()
    codes = all_codes(count)
    P = torch.zeros(2**count, 2**count, dtype=torch.float64)
    for block in combinations(range(count), k):
        conditional = (joint / joint.sum(block, keepdim=True)).flatten()
        rest = [i for i in range(count) if i not in block]
        same = (codes[:, None, rest] == codes[None, :, rest]).all(2)
        P += torch.where(same, conditional, 0.0) / comb(count, k)
    return P


def test_influence_on_an_ising_model_is_a_difference_of_two_sigmoids() -> None:
    ising, model = ising_model(5)
    x = ising.sample(7, generator=seeded(1))
    found = pairwise_dependency(model, x)
    strength = ising.interaction.detach()
    spins = 2.0 * x.double() - 1.0
    expected = torch.zeros(5, 5, dtype=torch.float64)
    for i in range(5):
        for j in range(5):
            if i != j:
                field = ising.fields.detach()[i] + spins @ strength[i] - spins[:, j] * strength[i, j]
                up, down = ((2 * (field + sign * strength[i, j])).sigmoid() for sign in (1, -1))
                expected[i, j] = (up - down).abs().mean()
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)


def test_information_is_that_of_the_enumerated_joint() -> None:
    joint = EnumeratedJoint.random(4, 3, generator=seeded(2))
    x = joint.sample(6, generator=seeded(3))
    found = pairwise_dependency(Model(joint, Categorical(3)), x, measure="information")
    p = joint.probabilities
    expected = torch.zeros(4, 4, dtype=torch.float64)
    for i, j in combinations(range(4), 2):
        for row in x.tolist():
            index = tuple(slice(None) if n in (i, j) else value for n, value in enumerate(row))
            table = p[index] / p[index].sum()
            value = (table * (table / (table.sum(0) * table.sum(1, keepdim=True))).log()).sum() / len(x)
            expected[i, j] += value
            expected[j, i] += value
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("measure", ["influence", "information"])
def test_dependency_is_zero_exactly_where_there_is_no_edge(measure) -> None:
    ising, model = ising_model(5, seed=4, density=0.5)
    found = pairwise_dependency(model, ising.sample(5, generator=seeded(5)), measure=measure)
    linked = ising.interaction.detach() != 0
    assert 0 < int(linked.sum()) < 20
    assert float(found[~linked].abs().max()) < 1e-14
    assert float(found[linked].min()) > 1e-6


def test_information_of_inconsistent_conditionals_is_asymmetric_and_not_negative() -> None:
    model = Model(RandomConditionals(4, 2, seed=3), Categorical(2))
    found = pairwise_dependency(model, all_codes(4), measure="information")
    assert float(found.min()) >= -1e-15
    assert float((found - found.T).abs().max()) > 1e-3


def test_portions_do_not_change_the_dependency() -> None:
    ising, model = ising_model(4)
    x = ising.sample(9, generator=seeded(6))
    for measure in ("influence", "information"):
        whole = pairwise_dependency(model, x, measure=measure)
        torch.testing.assert_close(pairwise_dependency(model, x, measure=measure, rows_per_pass=2), whole)


def ar1(phi: float, chains: int, length: int, seed: int) -> Tensor:
    noise = torch.randn(chains, length, generator=seeded(seed), dtype=torch.float64)
    series = torch.empty_like(noise)
    series[:, 0] = noise[:, 0] / (1 - phi**2) ** 0.5  # stationary from the start
    for t in range(1, length):
        series[:, t] = phi * series[:, t - 1] + noise[:, t]
    return series


@pytest.mark.parametrize("phi", [-0.4, 0.0, 0.5, 0.9])
def test_autocorrelation_time_of_ar1_is_one_plus_phi_over_one_minus_phi(phi: float) -> None:
    series = ar1(phi, 16, 4000, seed=7)
    tau = (1 + phi) / (1 - phi)
    assert autocorrelation_time(series) == pytest.approx(tau, rel=0.06)
    assert effective_sample_size(series) == pytest.approx(64000 / tau, rel=0.07)


def test_one_chain_may_be_given_by_itself_and_scale_does_not_matter() -> None:
    series = ar1(0.6, 1, 3000, seed=8)
    assert autocorrelation_time(series[0]) == autocorrelation_time(series)
    assert autocorrelation_time(5 - 3 * series) == pytest.approx(autocorrelation_time(series), rel=1e-9)


def test_chains_stuck_apart_count_as_correlated() -> None:
    free = ar1(0.0, 8, 1000, seed=9)
    stuck = free + 10.0 * (torch.arange(8) % 2).unsqueeze(1)
    assert effective_sample_size(free) > 4000
    assert effective_sample_size(stuck) < 50
    assert autocorrelation_time(torch.ones(3, 20)) == inf
    assert effective_sample_size(torch.ones(3, 20)) == 0


@pytest.mark.parametrize("k", [1, 2, 4])
def test_learned_chain_of_a_joint_is_its_block_dynamics(k: int) -> None:
    ising, model = ising_model(4, seed=10)
    P = learned_transition(model, k)
    log_p = ising.log_joint().detach()
    torch.testing.assert_close(P, blockwise(log_p.exp().reshape((2,) * 4), k), rtol=1e-11, atol=1e-15)
    found = learned_gibbs(P, log_p)
    root = (0.5 * log_p).exp()
    spectrum = torch.linalg.eigvalsh(root[:, None] * P / root)
    assert found.gap == pytest.approx(1 - float(spectrum[-2]), abs=1e-9)
    assert found.distance == pytest.approx(0, abs=1e-12)
    assert found.divergence == pytest.approx(0, abs=1e-12)
    assert found.irreversibility == pytest.approx(0, abs=1e-12)


def test_independent_blocks_distort_even_exact_conditionals() -> None:
    ising, model = ising_model(4, seed=11)
    torch.testing.assert_close(learned_transition(model, 1, inside="independent"), learned_transition(model, 1))
    together = learned_gibbs(learned_transition(model, 2, inside="independent"), ising.log_joint())
    assert together.distance is not None
    assert together.distance > 1e-3


def test_inconsistent_conditionals_move_the_stationary_law_with_k() -> None:
    model = Model(RandomConditionals(4, 2, seed=1), Categorical(2))
    found = [learned_gibbs(learned_transition(model, k)) for k in (1, 2)]
    assert found[0].irreversibility > 1e-3
    assert float((found[0].stationary - found[1].stationary).abs().sum()) > 1e-3
    for k, one in zip((1, 2), found):
        P = learned_transition(model, k)
        torch.testing.assert_close(P.sum(1), torch.ones(16, dtype=torch.float64))
        torch.testing.assert_close(one.stationary @ P, one.stationary, rtol=1e-12, atol=0)
        assert one.distance is None


def test_a_block_is_redrawn_by_the_chain_rule_inside_it() -> None:
    """One entry by hand: variables 0 and 2 of three are redrawn, 0 first."""
    network = RandomConditionals(3, 2, seed=5)
    model = Model(network, Categorical(2))
    P = learned_transition(model, 2)
    x, y = torch.tensor([[0, 1, 0]]), torch.tensor([[1, 1, 1]])
    first = network(x, torch.tensor([[False, True, False]])).softmax(2)[0, 0, 1]
    second = network(y, torch.tensor([[True, True, False]])).softmax(2)[0, 2, 1]
    assert float(P[2, 7]) == pytest.approx(float(first * second) / 3)  # only this block of the three leads there


def test_stationary_law_keeps_the_digits_of_rare_states() -> None:
    rare = 1e-40
    P = torch.tensor([[1 - rare, rare, 0.0], [0.5, 0.25, 0.25], [0.0, rare, 1 - rare]], dtype=torch.float64)
    law = stationary_law(P)
    # detailed balance of a birth-death chain: pi_1 = 2 rare pi_0, pi_2 = pi_1 0.25 / rare
    torch.testing.assert_close(law, torch.tensor([2 / 3, 4 / 3 * rare, 1 / 3], dtype=torch.float64), rtol=1e-13, atol=0)


def test_bad_input_is_refused() -> None:
    ising, model = ising_model(3)
    x = ising.sample(2, generator=seeded(0))
    with pytest.raises(ValueError, match="measure"):
        pairwise_dependency(model, x, measure="other")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="discrete"):
        pairwise_dependency(Model(RandomConditionals(3, 2), Gaussian()), x.double())
    with pytest.raises(ValueError, match="given value at row 0"):
        pairwise_dependency(model, x + 2)
    with pytest.raises(ValueError, match="k: expected a whole number from 1 to 3"):
        learned_transition(model, 4)
    with pytest.raises(ValueError, match="at most 10 variables"):
        learned_transition(ising_model(11)[1])
    with pytest.raises(ValueError, match="irreducible"):
        stationary_law(torch.eye(2))
    with pytest.raises(ValueError, match="finite numbers"):
        autocorrelation_time(torch.tensor([1.0]))


def test_a_chain_that_forgets_everything_has_a_gap_of_one() -> None:
    law = torch.rand(64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    law = law / law.sum()
    noise = 1e-16 * torch.randn(64, 64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert learned_gibbs(law.expand(64, 64) + noise).gap == pytest.approx(1.0, abs=1e-10)
