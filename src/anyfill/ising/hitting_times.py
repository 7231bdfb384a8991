"""Hitting times of a finite Markov chain, with all their digits however long they are.

T is the first time t >= 0 at which the chain is in the target. With b_i the chance to step from i into the target, r_i
the time a visit takes (1) and d_i the chance to leave i,

    d_i h_i = r_i + sum_{j != i} P_ij h_j,          d_i = b_i + sum_{j != i} P_ij

A linear solve of (I - Q) h = 1 forms 1 - P_ii, which has no digits left when leaving takes 1e16 steps: the answer may
even be negative. Elimination of state n (Grassmann, Taksar and Heyman 1985; here with times, Kohlas 1986),

    P_ij += P_in P_nj / d_n,     b_i += P_in b_n / d_n,     r_i += P_in r_n / d_n

with every d taken afresh as a sum, never as 1 - P_ii, only adds, multiplies and divides positive numbers, so each step
costs a rounding and no more. The diagonal of P is not read. The same in logarithms (``log_hitting_times``) has no
smallest probability either: a chance of exp(-2000) is as good as any.

The law of T needs no elimination: P(T > t) and P(T <= t) each have a recursion of their own without subtraction. Many
times are taken at once, by a power of the matrix, and only the starts that are asked for are kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse, require_bool, require_count, require_shape

MAX_LAW = 2**27
"""The most budget x states for the law of T: some ten seconds, and at most 2 GiB if every start is kept."""

_TOGETHER = 1024
"""Times that are advanced together."""


def gth_hitting_times(P: Tensor, target: Tensor) -> Tensor:
    """float64 (S,): E[T | start] for every start; 0 in the target, infinite where the target may never be reached.

    Args:
        P: transition probabilities (S, S), rows summing to 1; the diagonal is not read.
        target: bool (S,).
    """
    return _eliminate(_checked(P, target), target, _NUMBERS)


def log_hitting_times(log_P: Tensor, target: Tensor) -> Tensor:
    """float64 (S,): log E[T | start], from log transition probabilities (S, S); -inf in the target, inf for never.

    The same elimination in logarithms. Its relative error is about 1e-16 times the largest logarithm met.
    """
    _checked(log_P.exp(), target)
    return _eliminate(log_P.double(), target, _LOGARITHMS)


class _Arithmetic(NamedTuple):
    """What elimination needs of numbers: 0 and 1, and how to add, multiply, divide and sum."""

    zero: float
    one: float
    plus: Callable[[Tensor, Tensor], Tensor]
    times: Callable[[Tensor, Tensor], Tensor]
    over: Callable[[Tensor, Tensor], Tensor]
    total: Callable[[Tensor], Tensor]


_NUMBERS = _Arithmetic(0.0, 1.0, torch.add, torch.mul, torch.div, partial(torch.sum, dim=-1))
_LOGARITHMS = _Arithmetic(-torch.inf, 0.0, torch.logaddexp, torch.add, torch.sub, partial(torch.logsumexp, dim=-1))


def _eliminate(rates: Tensor, target: Tensor, of: _Arithmetic) -> Tensor:
    """float64 (S,): E[T | start] from transition probabilities (S, S), all in the same arithmetic."""
    times = torch.where(target, of.zero, torch.inf).double()
    free = _sure_to_reach(rates > of.zero, target)
    if not bool(free.any()):
        return times
    weight = rates[free][:, free].fill_diagonal_(of.zero)
    into = of.total(rates[free][:, target])
    spent, leave, found = torch.full_like(into, of.one), torch.empty_like(into), torch.empty_like(into)
    for n in range(len(into) - 1, -1, -1):
        leave[n] = of.total(torch.cat([into[n : n + 1], weight[n, :n]]))
        share = of.over(weight[:n, n], leave[n])
        weight[:n, :n] = of.plus(weight[:n, :n], of.times(share.unsqueeze(1), weight[n, :n]))
        weight[:n, :n].fill_diagonal_(of.zero)
        into[:n] = of.plus(into[:n], of.times(share, into[n]))
        spent[:n] = of.plus(spent[:n], of.times(share, spent[n]))
    for n in range(len(into)):
        found[n] = of.over(of.total(torch.cat([spent[n : n + 1], of.times(weight[n, :n], found[:n])])), leave[n])
    times[free] = found
    return times


@dataclass(frozen=True, slots=True, eq=False)
class HittingLaw:
    """The law of T up to a budget, for every start that was asked for.

    Attributes:
        survival: float64 (budget + 1, starts): P(T > t), t = 0 … budget.
        reached: float64 (budget + 1, starts): P(T <= t), from a recursion of its own: it has digits where it is 1e-30.
    """

    survival: Tensor
    reached: Tensor

    @property
    def truncated_mean(self) -> Tensor:
        """float64 (starts,): E[min(T, budget)]."""
        return self.survival[:-1].sum(0)

    @property
    def truncated_deviation(self) -> Tensor:
        """float64 (starts,): the standard deviation of min(T, budget)."""
        time = torch.arange(len(self.survival) - 1, dtype=torch.float64)
        second = (2.0 * time + 1.0) @ self.survival[:-1]  # E[min^2] = sum (2t + 1) P(T > t)
        return (second - self.truncated_mean**2).clamp(min=0.0).sqrt()


def hitting_law(P: Tensor, target: Tensor, budget: int, *, starts: Sequence[int] | None = None) -> HittingLaw:
    """P(T > t) and P(T <= t) for t = 0 … budget from these starts, or from every state; reads the diagonal of P."""
    power = _absorbed(P, target)
    require_count("budget", budget)
    count = len(P)
    if budget * count > MAX_LAW:
        got = f"{budget:,} steps of {count:,} states; truncated_mean has no such limit"
        raise refuse("budget times states", expected=f"at most {MAX_LAW:,} for the law of hitting times", got=got)
    kept = list(range(count)) if starts is None else list(starts)
    both = torch.stack([~target, target], 1).double().unsqueeze(1)  # (S, times, 2): P(T > t) and P(T <= t)
    while both.shape[1] < min(_TOGETHER, budget + 1):
        both = torch.cat([both, _advanced(power, both)], 1)
        power = power @ power
    law = torch.empty(budget + 1, len(kept), 2, dtype=torch.float64)
    for time in range(0, budget + 1, both.shape[1]):
        part = law[time : time + both.shape[1]]
        part.copy_(both[kept, : len(part)].transpose(0, 1))
        if time + both.shape[1] <= budget:
            both = _advanced(power, both)
    return HittingLaw(law[:, :, 0], law[:, :, 1])


def surely_reached(P: Tensor, target: Tensor, delta: float, maximum: int) -> int | None:
    """The first t with P(T > t) <= delta from every start; None if after ``maximum``. By squaring the matrix."""
    powers = [_absorbed(P, target)]
    require_count("maximum", maximum)
    alive = torch.where(target, 0.0, 1.0).double()
    if float(alive.max()) <= delta:
        return 0
    while 2 ** len(powers) <= maximum:
        powers.append(powers[-1] @ powers[-1])
    steps = 0
    for bit in range(len(powers) - 1, -1, -1):
        further = torch.where(target, 0.0, powers[bit] @ alive)
        if float(further.max()) > delta:
            alive, steps = further, steps + 2**bit
    return steps + 1 if steps < maximum else None


def truncated_mean(P: Tensor, target: Tensor, budget: int) -> Tensor:
    """float64 (S,): E[min(T, budget) | start] = sum_{t < budget} Q^t 1, by doubling: log2(budget) products."""
    inside = torch.where(target, 0.0, _checked(P, target))
    inside = torch.where(target.unsqueeze(1), 0.0, inside)
    require_count("budget", budget)
    total = torch.zeros(len(P), dtype=torch.float64)
    alive = torch.where(target, 0.0, 1.0).double()  # P(T > 0)
    power, upto = inside, alive  # Q^m and sum_{t < m} Q^t 1, for m = 1, 2, 4, …
    left = budget
    while left > 0:
        if left % 2 == 1:  # sum_{t < m + n} = sum_{t < m} + Q^m sum_{t < n}
            total = upto + power @ total
        upto = upto + power @ upto
        power = power @ power
        left //= 2
    return total


def _absorbed(P: Tensor, target: Tensor) -> Tensor:
    """float64 (S, S): the chain that stays where it arrives."""
    steps = _checked(P, target)
    return torch.where(target.unsqueeze(1), torch.eye(len(steps), dtype=torch.float64), steps)


def _advanced(power: Tensor, both: Tensor) -> Tensor:
    return (power @ both.flatten(1)).reshape(both.shape)


def _checked(P: Tensor, target: Tensor) -> Tensor:
    """P in float64; ValueError unless it is a stochastic matrix with a target among its states."""
    require_shape("P", P, (None, None))
    require_shape("P", P, (len(P), len(P)))
    require_bool("target", target)
    require_shape("target", target, (len(P),))
    if not bool(target.any()):
        raise refuse("target", expected="at least one state", got="none")
    steps = P.double()
    off = (steps.sum(1) - 1.0).abs().max()
    if not bool((steps >= 0).all()) or not bool(off < 1e-8):
        raise refuse("P", expected="probabilities, each row summing to 1", got=f"rows off by {float(off):g}")
    return steps


def _sure_to_reach(step: Tensor, target: Tensor) -> Tensor:
    """bool (S,): outside the target, and with no way to a state from which the target cannot be reached."""
    can = _leads_to(step, target, torch.ones_like(target))
    lost = _leads_to(step, ~can, ~target)  # a way through the target does not count: T is over by then
    return can & ~lost & ~target


def _leads_to(step: Tensor, goal: Tensor, through: Tensor) -> Tensor:
    """bool (S,): states with a path to the goal whose states before it are all in ``through``."""
    while True:
        more = goal | (through & (step & goal).any(1))
        if bool((more == goal).all()):
            return goal
        goal = more
