"""Hitting times against rational arithmetic, closed forms and simulation-free recursions."""

import math
from fractions import Fraction

import pytest
import torch

from anyfill.ising.cliques import Clique, clique_kgibbs_matrix
from anyfill.ising.hitting_times import (
    gth_hitting_times,
    hitting_law,
    log_hitting_times,
    surely_reached,
    truncated_mean,
)


def random_chain(states: int, seed: int, sharpness: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (sharpness * torch.randn(states, states, generator=generator, dtype=torch.float64)).softmax(1)


def only(states: int, *members: int) -> torch.Tensor:
    target = torch.zeros(states, dtype=torch.bool)
    target[list(members)] = True
    return target


def rational_times(P: torch.Tensor, target: torch.Tensor) -> list[Fraction]:
    """Gauss-Jordan in fractions, the diagonal made of the others: no rounding anywhere."""
    free = [i for i in range(len(P)) if not target[i]]
    exact = [[Fraction(float(value)) for value in row] for row in P]
    system = []
    for i in free:
        leave = sum(exact[i][j] for j in range(len(P)) if j != i)
        system.append([leave if i == j else -exact[i][j] for j in free] + [Fraction(1)])
    for n in range(len(free)):
        pivot = next(r for r in range(n, len(free)) if system[r][n] != 0)
        system[n], system[pivot] = system[pivot], system[n]
        system[n] = [value / system[n][n] for value in system[n]]
        for r in range(len(free)):
            if r != n:
                system[r] = [a - system[r][n] * b for a, b in zip(system[r], system[n])]
    found = dict(zip(free, (row[-1] for row in system)))
    return [found.get(i, Fraction(0)) for i in range(len(P))]


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_a_linear_solve_where_that_is_safe(seed: int) -> None:
    P, target = random_chain(7, seed), only(7, 2, 5)
    free = ~target
    expected = torch.zeros(7, dtype=torch.float64)
    expected[free] = torch.linalg.solve(
        torch.eye(5, dtype=torch.float64) - P[free][:, free], torch.ones(5, dtype=torch.float64)
    )
    torch.testing.assert_close(gth_hitting_times(P, target), expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(log_hitting_times(P.log(), target).exp(), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("coupling", [2.0, 12.0, 20.0])
def test_keeps_its_digits_where_a_linear_solve_loses_the_sign(coupling: float) -> None:
    chain = clique_kgibbs_matrix(Clique.alike(6, 4, coupling, 0.3), 2)
    P, target = chain.matrix, chain.high
    exact = rational_times(P, target)
    for ours in (gth_hitting_times(P, target), log_hitting_times(P.log(), target).exp()):
        relative = [abs(Fraction(float(a)) - b) / b for a, b in zip(ours, exact) if b]
        assert max(relative) < 1e-13


def test_one_minus_the_diagonal_gives_a_negative_time_on_a_chain_that_takes_long() -> None:
    """Two states that swap often and leave with 1e-17: 1 - P_ii has no room for it, and Cramer's rule fails."""
    leave = 1e-17
    P = torch.tensor([[0.9, 0.1, 0.0], [0.1, 0.9 - leave, leave], [0.0, 0.0, 1.0]], dtype=torch.float64)
    target = only(3, 2)
    exact = rational_times(P, target)
    ours = gth_hitting_times(P, target)
    assert max(abs(Fraction(float(a)) / b - 1) for a, b in zip(ours[:2], exact[:2])) < 1e-15
    (stay, swap), (back, rest) = P[:2, :2].tolist()
    determinant = (1 - stay) * (1 - rest) - swap * back
    assert determinant < 0 < exact[0]
    assert (1 - rest + swap) / determinant < 0


def test_geometric_time_is_one_over_the_chance() -> None:
    for chance in (0.5, 1e-3, 1e-200):
        P = torch.tensor([[1 - chance, chance], [0.0, 1.0]], dtype=torch.float64)
        assert gth_hitting_times(P, only(2, 1))[0] == pytest.approx(1 / chance, rel=1e-15)


def test_logarithms_reach_beyond_the_smallest_double() -> None:
    log_P = torch.tensor([[0.0, -2000.0], [-torch.inf, 0.0]], dtype=torch.float64)
    assert log_hitting_times(log_P, only(2, 1))[0] == pytest.approx(2000.0, rel=1e-15)


def test_gamblers_ruin_has_the_known_times() -> None:
    n = 30
    P = torch.zeros(n + 1, n + 1, dtype=torch.float64)
    P[0, 0] = P[n, n] = 1.0
    for i in range(1, n):
        P[i, i - 1] = P[i, i + 1] = 0.5
    i = torch.arange(n + 1, dtype=torch.float64)
    torch.testing.assert_close(gth_hitting_times(P, only(n + 1, 0, n)), i * (n - i), rtol=1e-12, atol=0)


def test_time_is_infinite_where_the_chain_may_be_lost() -> None:
    P = torch.tensor(
        [[0.5, 0.2, 0.3, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.4, 0.6]], dtype=torch.float64
    )
    times = gth_hitting_times(P, only(4, 2))
    assert times.tolist() == [math.inf, math.inf, 0.0, pytest.approx(2.5)]
    assert log_hitting_times(P.log(), only(4, 2)).tolist() == [
        math.inf,
        math.inf,
        -math.inf,
        pytest.approx(math.log(2.5)),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_law_is_that_of_powers_of_the_absorbed_chain(seed: int) -> None:
    P, target = random_chain(6, seed, 2.0), only(6, 0)
    law = hitting_law(P, target, 12)
    absorbed = P.clone()
    absorbed[0] = 0.0
    absorbed[0, 0] = 1.0
    for t in range(13):
        reached = torch.linalg.matrix_power(absorbed, t)[:, 0]
        torch.testing.assert_close(law.reached[t], reached)
        torch.testing.assert_close(law.survival[t], 1 - reached)
    mass = law.reached.diff(dim=0)
    time = torch.arange(1, 13, dtype=torch.float64)
    mean = (time[:, None] * mass).sum(0) + 12 * law.survival[-1]
    second = (time[:, None] ** 2 * mass).sum(0) + 144 * law.survival[-1]
    torch.testing.assert_close(truncated_mean(P, target, 12), mean)
    torch.testing.assert_close(law.truncated_mean, mean)
    torch.testing.assert_close(law.truncated_deviation**2, second - mean**2)


def test_doubling_gives_the_sum_of_the_survival_at_every_budget() -> None:
    P, target = random_chain(5, 3, 3.0), only(5, 4)
    survival = hitting_law(P, target, 70).survival
    for budget in range(1, 71):
        torch.testing.assert_close(truncated_mean(P, target, budget), survival[:budget].sum(0), rtol=1e-13, atol=0)


def test_truncated_mean_grows_to_the_expected_time() -> None:
    P, target = random_chain(5, 9), only(5, 1)
    means = torch.stack([truncated_mean(P, target, budget) for budget in (1, 5, 50, 400)])
    assert bool((means.diff(dim=0) >= 0).all())
    torch.testing.assert_close(means[-1], gth_hitting_times(P, target))


def test_tiny_chances_to_arrive_keep_their_digits() -> None:
    chance = 1e-30
    P = torch.tensor([[1.0, chance], [0.0, 1.0]], dtype=torch.float64)
    law = hitting_law(P, only(2, 1), 1000)
    assert law.reached[1000, 0] == pytest.approx(1000 * chance, rel=1e-12)
    assert law.truncated_mean[0] == 1000


@pytest.mark.parametrize("budget", [1, 7, 1023, 1024, 3000])
def test_only_the_starts_asked_for_are_kept_and_they_are_those_of_step_after_step(budget: int) -> None:
    P, target = random_chain(6, 2, 4.0), only(6, 1, 4)
    law, whole = hitting_law(P, target, budget, starts=[5, 0]), hitting_law(P, target, budget)
    alive, reached = torch.where(target, 0.0, 1.0).double(), target.double()
    for t in range(budget + 1):
        torch.testing.assert_close(law.survival[t], alive[[5, 0]], rtol=1e-11, atol=1e-300)
        torch.testing.assert_close(law.reached[t], reached[[5, 0]], rtol=1e-12, atol=0)
        alive, reached = torch.where(target, 0.0, P @ alive), torch.where(target, 1.0, P @ reached)
    assert law.survival.shape == law.reached.shape == (budget + 1, 2)
    torch.testing.assert_close(law.truncated_deviation, whole.truncated_deviation[[5, 0]])


def test_a_long_law_of_one_start_is_small_and_quick() -> None:
    """A million steps: stepping one at a time would take a minute, keeping all starts twice 400 MB."""
    P = clique_kgibbs_matrix(Clique.alike(25, 24, 0.5, 0.1), 3).matrix
    law = hitting_law(P, only(25, 24), 1_000_000, starts=[0])
    assert law.reached.untyped_storage().nbytes() <= 16_000_100
    expected = truncated_mean(P, only(25, 24), 1_000_000)[0]
    torch.testing.assert_close(law.truncated_mean[0], expected, rtol=1e-9, atol=0)


def test_a_law_too_long_to_compute_is_refused() -> None:
    with pytest.raises(ValueError, match=r"budget times states: expected at most 134,217,728 .*got 100,000,000 steps"):
        hitting_law(torch.eye(2), only(2, 1), 100_000_000)


@pytest.mark.parametrize("delta", [0.5, 0.1, 1e-3, 1e-9])
def test_the_time_by_which_every_start_has_arrived_is_the_first_such(delta: float) -> None:
    P, target = random_chain(6, 4, 2.0), only(6, 3)
    worst = hitting_law(P, target, 400).survival.max(1).values
    first = int((worst <= delta).long().argmax())
    assert surely_reached(P, target, delta, 400) == first > 0
    assert surely_reached(P, target, delta, first) == first
    if first > 1:
        assert surely_reached(P, target, delta, first - 1) is None
    assert surely_reached(P, torch.ones(6, dtype=torch.bool), delta, 9) == 0


@pytest.mark.parametrize(
    ("P", "target", "words"),
    [
        (torch.eye(2), torch.zeros(2, dtype=torch.bool), "at least one state"),
        (torch.ones(2, 2), only(2, 0), "summing to 1"),
        (torch.eye(2), torch.tensor([1, 0]), "bool"),
        (torch.eye(3)[:2], only(2, 0), "shape of P"),
        (torch.tensor([[1.5, -0.5], [0.0, 1.0]]), only(2, 0), "probabilities"),
    ],
)
def test_bad_chains_are_refused(P: torch.Tensor, target: torch.Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        gth_hitting_times(P, target)
