"""Lumped chains of eq. (6) against the chain on all 2^N states, built here by brute force."""

from itertools import combinations, product
from math import comb, exp, log, log1p

import pytest
import torch

from anyfill.ising.cliques import (
    Clique,
    LumpedChain,
    clique_kgibbs_matrix,
    clique_parallel_matrix,
)
from anyfill.ising.hitting_times import gth_hitting_times, log_hitting_times
from anyfill.ising.model import Ising

UNEVEN = Clique((0.3, -0.2, 0.5), (0.4, -0.7), 0.6)
EVEN = Clique.alike(6, 4, 0.35, 0.2, outside=-0.3)


def states(variables: int) -> list[tuple[int, ...]]:
    return list(product((-1, 1), repeat=variables))


def weight(clique: Clique, x: tuple[int, ...]) -> float:
    fields = (*clique.inside, *clique.outside)
    pairs = sum(x[i] * x[j] for i in range(clique.size) for j in range(clique.size) if i != j)  # ordered: twice
    factor = 1.0 if clique.pairs == "twice" else 0.5
    return exp(sum(h * s for h, s in zip(fields, x)) + factor * clique.coupling * pairs)


def brute_kgibbs(clique: Clique, k: int) -> torch.Tensor:
    listed = states(clique.variables)
    P = torch.zeros(len(listed), len(listed), dtype=torch.float64)
    w = [weight(clique, x) for x in listed]
    for block in combinations(range(clique.variables), k):
        groups: dict[tuple[int, ...], list[int]] = {}
        for number, x in enumerate(listed):
            groups.setdefault(tuple(s for i, s in enumerate(x) if i not in block), []).append(number)
        for group in groups.values():
            law = torch.tensor([w[y] for y in group], dtype=torch.float64)
            for x in group:
                P[x, group] += law / law.sum() / comb(clique.variables, k)
    return P


def brute_parallel(clique: Clique) -> torch.Tensor:
    listed = states(clique.variables)
    P = torch.ones(len(listed), len(listed), dtype=torch.float64)
    for a, x in enumerate(listed):
        for i in range(clique.variables):
            up, down = (weight(clique, (*x[:i], s, *x[i + 1 :])) for s in (1, -1))
            for b, y in enumerate(listed):
                P[a, b] *= (up if y[i] == 1 else down) / (up + down)
    return P


def check(chain: LumpedChain, full: torch.Tensor, clique: Clique) -> None:
    """Every full state moves to each lumped state with the lumped chance; hitting times of R_1 agree."""
    listed = states(clique.variables)
    inside = [x[: clique.size] for x in listed]
    counted = len(chain.up) == clique.size + 1 and clique.size > 1
    number = {x: n for n, x in enumerate(states(clique.size))}
    lump = torch.tensor([sum(s == 1 for s in x) if counted else number[x] for x in inside])
    onto = torch.nn.functional.one_hot(lump, len(chain.up)).double()
    torch.testing.assert_close(full @ onto, chain.matrix[lump], rtol=1e-11, atol=1e-14)
    high = torch.tensor([all(s == 1 for s in x) for x in inside])
    assert torch.equal(chain.high[lump], high)
    assert torch.equal(chain.total[lump], torch.tensor([sum(x) for x in inside]))
    assert all(s == -1 for s in inside[int((lump == chain.low).nonzero()[0])])
    torch.testing.assert_close(
        gth_hitting_times(full, high), gth_hitting_times(chain.matrix, chain.high)[lump], rtol=1e-10, atol=0
    )


@pytest.mark.parametrize("pairs", ["once", "twice"])
@pytest.mark.parametrize("k", range(1, 7))
def test_counted_kgibbs_is_the_full_chain_seen_through_the_count(k: int, pairs: str) -> None:
    clique = Clique(EVEN.inside, EVEN.outside, EVEN.coupling, pairs)  # type: ignore[arg-type]
    check(clique_kgibbs_matrix(clique, k), brute_kgibbs(clique, k), clique)


@pytest.mark.parametrize("k", range(1, 6))
def test_listed_kgibbs_is_the_full_chain_seen_through_the_clique(k: int) -> None:
    check(clique_kgibbs_matrix(UNEVEN, k), brute_kgibbs(UNEVEN, k), UNEVEN)


@pytest.mark.parametrize("clique", [EVEN, UNEVEN, Clique((0.4,), (0.1,), 0.0)])
def test_parallel_is_the_full_chain_seen_through_the_clique(clique: Clique) -> None:
    check(clique_parallel_matrix(clique), brute_parallel(clique), clique)


def test_eight_spins_agree_too() -> None:
    clique = Clique.alike(8, 5, 0.2, 0.1, outside=0.3, pairs="twice")
    check(clique_kgibbs_matrix(clique, 3), brute_kgibbs(clique, 3), clique)


@pytest.mark.parametrize("k", [1, 4, 7])
def test_listing_and_counting_agree_where_both_are_possible(k: int) -> None:
    clique = Clique.alike(7, 5, 0.4, 0.25)
    for counted, listed in (
        (clique_kgibbs_matrix(clique, k), clique_kgibbs_matrix(clique, k, lumped=False)),
        (clique_parallel_matrix(clique), clique_parallel_matrix(clique, lumped=False)),
    ):
        onto = torch.nn.functional.one_hot(listed.up, 6).double()
        torch.testing.assert_close(listed.matrix @ onto, counted.matrix[listed.up], rtol=1e-12, atol=1e-15)


def test_a_clique_of_hundreds_is_reversible_with_respect_to_the_law_of_its_count() -> None:
    """P(m up) ∝ C(n, m) exp(h (2m - n) + J ((2m - n)² - n) / 2)."""
    size, field, coupling = 300, 0.1, 0.004
    clique = Clique.alike(310, size, coupling, field)
    up = torch.arange(size + 1).double()
    ways = torch.tensor([log(comb(size, m)) for m in range(size + 1)], dtype=torch.float64)
    total = 2 * up - size
    log_law = (ways + field * total + 0.5 * coupling * (total**2 - size)).log_softmax(0)
    for k in (1, 155, 309):
        flow = log_law.unsqueeze(1) + clique_kgibbs_matrix(clique, k).log_matrix
        torch.testing.assert_close(flow, flow.T, rtol=1e-10, atol=1e-9)


def test_strong_coupling_stays_finite_and_steep() -> None:
    """At J = 50 the first spin to leave R_-1 has odds exp(2h - 2J(|C| - 1)): a step of 1-Gibbs takes 1/N of that."""
    for pairs, factor in (("once", 1.0), ("twice", 2.0)):
        clique = Clique.alike(10, 4, 50.0, 5.0, pairs=pairs)  # type: ignore[arg-type]
        chain = clique_kgibbs_matrix(clique, 1)
        assert bool(chain.log_matrix[0, 1].isfinite())
        logit = 2 * 5.0 - 2 * factor * 50.0 * 3
        expected = log(4 / 10) + logit - log1p(exp(logit))
        assert chain.log_matrix[0, 1] == pytest.approx(expected, rel=1e-13)
        assert bool(log_hitting_times(chain.log_matrix, chain.high)[0].isfinite())
        assert bool(clique_parallel_matrix(clique).log_matrix.isfinite().all())


def test_parameters_are_read_off_an_ising_model_and_back() -> None:
    fields = torch.tensor([0.1, 0.2, 0.3, 0.4])
    matrix = torch.zeros(4, 4)
    for i, j in ((1, 3), (1, 2), (2, 3)):
        matrix[i, j] = matrix[j, i] = 0.7
    clique = Clique.of(Ising.from_matrix(matrix, fields, pairs="twice"))
    assert clique.inside == pytest.approx((0.2, 0.3, 0.4))
    assert clique.outside == pytest.approx((0.1,))
    assert clique.strength == pytest.approx(1.4)
    assert Clique.of(clique.ising()) == clique


def test_bad_cliques_are_refused() -> None:
    with pytest.raises(ValueError, match=r"eq\. 6"):
        Clique.of(Ising.lattice(2, 2, 0.3))
    with pytest.raises(ValueError, match="k: expected a whole number from 1 to 5"):
        clique_kgibbs_matrix(UNEVEN, 6)
    with pytest.raises(ValueError, match="equal, to count"):
        clique_parallel_matrix(UNEVEN, lumped=True)
    with pytest.raises(ValueError, match="finite"):
        Clique((0.1, float("nan")), (), 1.0)
    with pytest.raises(ValueError, match="at most 10"):
        clique_parallel_matrix(Clique(tuple(range(11)), (), 1.0))
