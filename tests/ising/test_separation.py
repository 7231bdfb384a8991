"""Propositions 8, 4, 5 and corollary 1 against exact hitting laws, and where the printed forms fail."""

from math import exp, inf, log, tanh

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.ising.cliques import Clique, clique_kgibbs_matrix, clique_parallel_matrix
from anyfill.ising.hitting_times import HittingLaw, hitting_law
from anyfill.ising.separation import ferromagnet, modes, reach_bound, separation, stuck_bound

STRONG = Clique((0.5, 0.2, 0.4), (0.3, -0.2), 2.5)


def leaving(clique: Clique, steps: int) -> tuple[HittingLaw, torch.Tensor]:
    """When independent parallel first has sum_C > -2, and the starts with sum_C <= -2."""
    chain = clique_parallel_matrix(clique)
    left = chain.total > -2
    return hitting_law(chain.matrix, left, steps), ~left


cliques = st.builds(
    lambda inside, outside, above, pairs: (
        inside,
        outside,
        above,
        pairs,
    ),
    st.lists(st.floats(-0.5, 1.0), min_size=2, max_size=4),
    st.lists(st.floats(-0.3, 0.3), max_size=2),
    st.floats(0.01, 2.0),
    st.sampled_from(["once", "twice"]),
).map(
    lambda parts: Clique(
        tuple(parts[0]),
        tuple(parts[1]),
        (sum(map(abs, parts[0])) + sum(map(abs, parts[1])) + parts[2]) / (1.0 if parts[3] == "once" else 2.0),
        parts[3],
    )
)


@settings(max_examples=40, deadline=None)
@given(cliques)
def test_proposition_8_holds_with_a_weak_inequality(clique: Clique) -> None:
    facts = ferromagnet(clique)
    found = modes(clique)
    assert found.bijection_error < 1e-12
    assert found.low_over_rest >= 2 * facts.margin - 1e-12
    assert found.margin == facts.margin
    least = 2 * facts.clique_field - 2 * facts.other_fields
    assert found.high_over_low == pytest.approx(least, abs=1e-12)  # the proof's bound is attained
    if facts.holds:
        assert found.high_over_low > -1e-12


def test_proposition_8_is_not_strict() -> None:
    clique = Clique((1.0, 0.0), (0.25,), 3.0)
    assert ferromagnet(clique).holds
    found = modes(clique)
    assert found.low_over_rest == pytest.approx(2 * found.margin, abs=1e-14)


def test_masses_of_the_modes_are_those_of_the_joint() -> None:
    found = modes(STRONG)
    p = STRONG.ising().log_joint().detach().exp()
    assert found.high_mass == pytest.approx(float(p[-4:].sum()))
    assert found.low_mass == pytest.approx(float(p[:4].sum()))


@pytest.mark.parametrize("pairs", ["once", "twice"])
@pytest.mark.parametrize("k", [3, 4, 5])
@pytest.mark.parametrize("delta", [0.5, 0.1, 0.01])
def test_proposition_4_holds_in_both_printed_forms_and_the_appendix_is_sharper(
    k: int, delta: float, pairs: str
) -> None:
    clique = Clique(STRONG.inside, STRONG.outside, STRONG.coupling, pairs)  # type: ignore[arg-type]
    bound = reach_bound(clique, k, delta)
    chain = clique_kgibbs_matrix(clique, k)
    assert bound.miss < bound.printed_miss < 1
    assert bound.steps < bound.printed_steps < inf
    others = ~chain.high
    assert float(chain.matrix[others][:, others].sum(1).max()) <= bound.miss  # one step, from anywhere else
    law = hitting_law(chain.matrix, chain.high, int(bound.printed_steps))
    assert float(law.survival[int(bound.steps)].max()) <= delta
    assert float(law.survival[int(bound.printed_steps)].max()) <= delta


def test_proposition_4s_constants_are_the_printed_formulas() -> None:
    facts = ferromagnet(STRONG)
    n, j0, h = 3, facts.margin, facts.clique_field
    bound = reach_bound(STRONG, 4, 0.1)
    together = 2 / 5  # C(2, 1) / C(5, 4)
    top = exp(2 * (j0 + h))
    assert bound.miss == pytest.approx(1 - together * top / (top + exp(2 * j0) + 2**n - 2))
    assert bound.printed_miss == pytest.approx(1 - together * top / (top + exp(2 * j0 + 2 * n - 2)))
    assert bound.steps == pytest.approx(log(0.1) / log(bound.miss), abs=1)


def test_the_main_texts_constant_is_weaker_for_every_size() -> None:
    for n in range(2, 40):
        clique = Clique.alike(n, n, 0.2 + 1e-9, 0.2 / n)
        bound = reach_bound(clique, n, 0.1)
        assert bound.miss < bound.printed_miss


@pytest.mark.parametrize(("size", "margin"), [(6, 2.0), (12, 1.0), (15, 0.8), (24, 0.6), (30, 3.0), (31, 0.5)])
@pytest.mark.parametrize("delta", [0.9, 0.3])
def test_proposition_5_holds_where_its_deviation_is_positive(size: int, margin: float, delta: float) -> None:
    clique = Clique.alike(size + 2, size, margin + 0.02 * size, 0.02)
    bound = stuck_bound(clique, delta)
    assert bound.deviation > 0
    assert bound.exponent == pytest.approx(2 * (-1 + tanh(margin) * size / 2) ** 2 / size)
    assert bound.sharper_steps >= bound.steps
    for steps in (bound.steps, bound.sharper_steps):
        if 1 <= steps < 5000:
            law, low = leaving(clique, int(steps))
            assert float(law.reached[-1][low].max()) <= delta
    if bound.steps >= 1:  # from everywhere with sum <= -2 a spin rises with at most the proof's chance
        law, low = leaving(clique, 1)
        assert float(law.reached[1][low].max()) <= 2 * exp(-bound.exponent)


def test_proposition_5_as_printed_is_false_where_its_deviation_is_negative() -> None:
    clique = Clique.alike(2, 2, 0.002, 0.0005)
    delta = 0.738
    bound = stuck_bound(clique, delta)
    assert bound.deviation < 0
    assert bound.vacuous
    assert bound.printed_steps == 1
    law, low = leaving(clique, 1)
    assert float(law.reached[1][low].max()) > delta + 0.01


def test_proposition_5_says_nothing_of_cliques_of_four_and_something_of_five() -> None:
    for size in (2, 3, 4):
        for coupling in (1.0, 10.0, 1000.0):
            assert stuck_bound(Clique.alike(10, size, coupling, 0.01), 0.999).vacuous
    assert stuck_bound(Clique.alike(10, 5, 10.0, 0.01), 0.999).steps == 1


def test_starting_at_minus_one_would_not_be_enough() -> None:
    """With sum = -1 the spins at -1 see a field of h alone: the condition sum <= -2 is what the proof needs."""
    clique = Clique.alike(31, 31, 2.0 + 31 * 0.02, 0.02)
    chain = clique_parallel_matrix(clique)
    left = chain.total > -2
    chance = (chain.matrix * left).sum(1)
    near, inside = chain.total == -1, chain.total == -3
    bound = stuck_bound(clique, 0.5)
    assert float(chance[inside]) <= 2 * exp(-bound.exponent)
    assert float(chance[near]) > 10 * 2 * exp(-bound.exponent)


@pytest.mark.parametrize("pairs", ["once", "twice"])
def test_odds_of_a_rise_are_those_of_the_proof_with_pairs_once(pairs: str) -> None:
    """P(+1) / P(-1) = exp(2 h_j + 2 J sum of the others), as (G.41) ff. have it; twice, J becomes 2 J."""
    clique = Clique((0.3, -0.1, 0.2), (), 0.7, pairs)  # type: ignore[arg-type]
    ising = clique.ising()
    x = torch.tensor([[0, 1, 0]])
    answer = ising(x, torch.tensor([[False, True, True]]))[0, 0].detach()
    odds = float((answer[1] - answer[0]).exp())
    assert odds == pytest.approx(exp(2 * 0.3 + 2 * clique.strength * (1 - 1)))
    x = torch.tensor([[0, 0, 0]])
    answer = ising(x, torch.tensor([[False, True, True]]))[0, 0].detach()
    factor = 1 if pairs == "once" else 2
    assert float(answer[1] - answer[0]) == pytest.approx(2 * 0.3 + 2 * factor * 0.7 * (-2))


@pytest.mark.parametrize(
    ("delta", "steps", "size", "variables", "k"), [(0.5, 100, 62, 64, 64), (0.9, 30, 48, 600, 597)]
)
def test_corollary_1_holds_on_the_exact_chains(delta: float, steps: int, size: int, variables: int, k: int) -> None:
    field = 0.03
    coupling = size * field + 0.5 * size * log(2) + 1e-6
    clique = Clique.alike(variables, size, coupling, field)
    found = separation(clique, k, delta=delta, steps=steps)
    assert found.follows
    assert found.reach is not None
    assert found.stuck is not None
    assert found.reach.steps == 1
    assert found.reach.printed_steps > 1  # the main text's constant would not do
    assert found.stuck.steps >= steps
    gibbs, parallel = clique_kgibbs_matrix(clique, k), clique_parallel_matrix(clique)
    starts = gibbs.total <= -2
    missed = 1 - gibbs.matrix[starts][:, gibbs.high][:, 0]
    hit = hitting_law(parallel.matrix, parallel.high, steps).reached[-1][starts]
    assert float(missed.max()) <= delta / 2
    assert float(hit.max()) <= delta / 2
    assert float(missed.max() + hit.max()) <= delta


def test_corollary_1_says_which_assumption_fails() -> None:
    good = Clique.alike(64, 62, 62 * 0.03 + 31 * log(2) + 1e-6, 0.03)
    assert separation(good, 64, delta=0.5, steps=100).follows
    assert not separation(good, 63, delta=0.5, steps=100).large
    assert not separation(good, 64, delta=0.5, steps=200).strong
    weak = Clique.alike(64, 62, 3.0, 0.03)
    assert separation(weak, 64, delta=0.5, steps=100).ferromagnetic
    assert not separation(weak, 64, delta=0.5, steps=100).strong
    figure = separation(Clique.alike(10, 4, 50.0, 5.0, outside=5.0), 10, delta=0.5, steps=1000)
    assert not figure.ferromagnetic  # figure 3: h_C = 20, but 30 outside
    assert figure.reach is None


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 10**6), st.floats(1e-6, 0.999))
def test_the_corollarys_algebra_stands_with_a_sixteenth(steps: int, delta: float) -> None:
    n = 8 * (1 + log(4 * steps / delta))
    right, printed = (2 * (1 - n / 2 + n**2 / d) / n for d in (16, 4))
    assert 2 * (-1 + n / 4) ** 2 / n == pytest.approx(right)
    assert printed > right + 1
    assert right >= -1 + n / 8 - 1e-12 >= log(4 * steps / delta) - 1e-9


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 30), st.integers(0, 300), st.floats(0.01, 0.99))
def test_assumption_7_gives_the_share_it_is_used_for(size: int, more: int, delta: float) -> None:
    variables = size + more
    clique = Clique.alike(variables, size, 2.0, 1.0 / size)
    needed = separation(clique, variables, delta=delta, steps=1).k_needed
    k = min(variables, int(needed) + (needed > int(needed)))
    share = 1.0
    for i in range(variables - k):
        share *= (variables - size - i) / (variables - i)
    assert share >= (4 - 2 * delta) / (4 - delta) - 1e-12


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="assumption 5"):
        reach_bound(Clique.alike(4, 3, 0.5, 0.5), 3, 0.1)
    with pytest.raises(ValueError, match="k: expected a whole number from 3 to 5"):
        reach_bound(STRONG, 2, 0.1)
    with pytest.raises(ValueError, match="delta"):
        stuck_bound(STRONG, 1.0)
    with pytest.raises(ValueError, match="at most 20"):
        modes(Clique.alike(21, 4, 1.0, 0.1))
