"""``hitting``: steps until a chain started in R_-1 (the clique all down) is in R_1 (all up), and what is promised.

Exact from the lumped chain of the clique: E[T] by elimination without subtraction, E[min(T, budget)] and the chance to
arrive from the law of T; simulation on all spins beside it. z is the simulated mean less the exact one, in standard
errors; no z where fewer than 10 chains are expected to arrive. What propositions 4 and 5 and corollary 1 say of the
clique stands below, with their constants and what is exactly true; for their formulas see ``anyfill.ising.cliques``.

**Hitting times of a finite Markov chain, with all their digits however long they are.** T is the first time t >= 0 at
which the chain is in the target. With b_i the chance to step from i into the target, r_i the time a visit takes (1) and
d_i the chance to leave i,

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

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import matplotlib as mpl
import torch
from matplotlib.figure import Figure
from torch import Generator, Tensor

from anyfill.checks import refuse, require_bool, require_count, require_shape
from anyfill.interface.progress import metered
from anyfill.interface.threads import threads
from anyfill.ising import cliques, lab
from anyfill.ising.chains import first_hits, kernel_of
from anyfill.ising.model import Ising
from anyfill.networks.exact import MAX_EXACT

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


Chains = Mapping[int | None, cliques.LumpedChain]
"""k-Gibbs by k, and independent parallel by None."""
MAX_SIMULATED = 12
"""The largest block that is simulated."""
MAX_WORK = 3e8
"""States of blocks that the simulation of one sampler may look at: some ten seconds."""
MIN_ARRIVING = 10
"""Chains that must be expected to arrive for a mean to be a test."""


@dataclass(frozen=True, slots=True)
class Hitting:
    """One sampler, from R_-1.

    Attributes:
        k: size of the block; None is independent parallel.
        log10_mean: log10 E[T].
        truncated_mean: E[min(T, budget)].
        reached: P(T <= budget).
        simulated: the mean of min(T, budget) over the chains; None if not simulated.
        simulated_error: its standard error.
        arrived: how many chains arrived.
        z: simulated against exact; None where it is no test.
        curve: P(T <= t) for t = 0 … budget.
        seen: steps at which chains arrived.
    """

    k: int | None
    log10_mean: float
    truncated_mean: float
    reached: float
    simulated: float | None
    simulated_error: float | None
    arrived: int | None
    z: float | None
    curve: Tensor
    seen: Tensor

    def row(self, chains: int) -> tuple[str, ...]:
        """For the table."""
        return (
            lab.sampler_name(self.k), lab.power_of_ten(self.log10_mean), lab.number(self.truncated_mean),
            lab.chance(self.reached, 3), lab.number(self.simulated), lab.number(self.simulated_error, 2),
            "-" if self.z is None else f"{self.z:+.1f}",
            "-" if self.arrived is None else f"{self.arrived:,} of {chains:,}",
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """For JSON, without the curve."""
        numbers = {name: value for name, value in asdict(self).items() if name not in ("curve", "seen")}
        return numbers | {"sampler": lab.sampler_name(self.k), "reached": lab.known_chance(self.reached)}


@threads(1)
def hitting(
    model: Ising | cliques.Clique,
    *,
    k: lab.BlockSizes = None,
    budget: int = 1000,
    chains: int = 1000,
    delta: float = 0.1,
    seed: int = 0,
) -> lab.Result:
    """Steps until a chain that starts with the clique all down has it all up: exact, simulated, and as promised.

    Args:
        model: a clique, coupled alike, among isolated spins; any size, where its fields are equal.
        k: sizes of the blocks, such as ``[1, 2]`` or ``"1-4"``.
        budget: the most steps; M of corollary 1.
        chains: chains to simulate; 0 = none.
        delta: one less the probability of what is promised.
        seed: of the simulation.
    """
    clique = cliques.Clique.of(model) if isinstance(model, Ising) else model
    sizes = lab.block_sizes(k, clique.variables, usual_sizes(clique))
    require_count("--budget", budget)
    require_count("--chains", chains, minimum=0)
    states = clique.size + 1 if clique.is_even else 2**clique.size
    if budget * states > MAX_LAW:
        expected = f"at most {MAX_LAW // states:,} for the {states:,} states of this clique"
        raise refuse("--budget", expected=expected, got=f"{budget:,}")
    lumped: dict[int | None, cliques.LumpedChain] = {k: cliques.clique_kgibbs_matrix(clique, k) for k in sizes}
    lumped[None] = cliques.clique_parallel_matrix(clique)
    promises, listings, notes = _promises(clique, lumped, delta, budget)
    found = list(metered(_hittings(clique, lumped, budget, chains, torch.Generator().manual_seed(seed)), "hitting"))
    listing = lab.Listing(
        f"{clique.words}: steps from R_-1 to R_1",
        ("sampler", "E[T]", f"E[min(T, {budget:,})]", f"P(T <= {budget:,})", "simulated", "standard error", "z",
         "arrived"),
        [one.row(chains) for one in found],
    )  # fmt: skip
    if chains and any(one.simulated is None for one in found):
        notes.append(
            "Not simulated: blocks too large, or too many steps of them; fewer --chains or a smaller --budget."
        )
    document = {
        "command": "hitting",
        "model": {
            "description": clique.words, "variables": clique.variables, "clique": clique.size,
            "coupling": clique.coupling, "pairs": clique.pairs, "fields_inside": list(clique.inside),
            "fields_outside": list(clique.outside),
        },
        "budget": budget,
        "chains": chains,
        "delta": delta,
        "null_probabilities_are_below": lab.MIN_CHANCE,
        "results": [one.to_dict() for one in found],
        **promises,
    }  # fmt: skip
    return lab.Result(
        document, [listing, *listings], notes, lambda figure: _draw(figure, clique.words, found, budget, chains)
    )


def usual_sizes(clique: cliques.Clique) -> list[int]:
    """All k of a few spins; else powers of two, the size of the clique, and N."""
    count = clique.variables
    if count <= 12:
        return list(range(1, count + 1))
    return sorted({2**i for i in range(count.bit_length()) if 2**i <= count} | {clique.size, count})


def _hittings(
    clique: cliques.Clique,
    lumped: Chains,
    budget: int,
    chains: int,
    generator: Generator,
) -> Iterator[tuple[Hitting, float]]:
    """Every sampler, with the share of the work done."""
    ising = clique.ising()
    for place, (k, chain) in enumerate(lumped.items(), 1):
        law = hitting_law(chain.matrix, chain.high, budget, starts=[chain.low])
        hits = torch.zeros(0, dtype=torch.int64)
        work = (2.0 ** (k or 0) + 32.0) * chains * float(law.truncated_mean[0])
        if chains and (k is None or k <= MAX_SIMULATED) and work <= MAX_WORK:
            start = torch.zeros(chains, clique.variables, dtype=torch.int64)
            kernel = kernel_of(k)
            hits = first_hits(ising, kernel, start, lambda x: x[:, : clique.size].all(1), budget, generator=generator)
        yield _hitting(k, chain, law, hits, budget), place / len(lumped)


def _hitting(k: int | None, chain: cliques.LumpedChain, law: HittingLaw, hits: Tensor, budget: int) -> Hitting:
    """Exact beside simulated; ``hits`` are empty if nothing was simulated."""
    log_mean = float(log_hitting_times(chain.log_matrix, chain.high)[chain.low]) / math.log(10.0)
    mean, deviation = float(law.truncated_mean[0]), float(law.truncated_deviation[0])
    reached = min(1.0, float(law.reached[-1, 0]))
    reach = law.reached[:, 0]
    if not len(hits):
        return Hitting(k, log_mean, mean, reached, None, None, None, None, reach, hits)
    times = hits.clamp(max=budget).double()
    tested = reached * len(hits) >= MIN_ARRIVING and deviation > 1e-6
    z = (float(times.mean()) - mean) / (deviation / math.sqrt(len(hits))) if tested else None
    error = float(times.std()) / math.sqrt(len(hits)) if len(hits) > 1 else None
    seen = hits[hits <= budget].sort().values
    return Hitting(k, log_mean, mean, reached, float(times.mean()), error, len(seen), z, reach, seen)


def _promises(
    clique: cliques.Clique, chains: Chains, delta: float, steps: int
) -> tuple[dict[str, Any], list[lab.Listing], list[str]]:
    """Everything the paper says of this clique at confidence 1 - delta, for JSON, as tables and as sentences.

    ``chains`` are k-Gibbs by k, and independent parallel by None; the corollary is for M = ``steps``, and asks for a k:
    N, the one that is easiest to allow.
    """
    facts = cliques.ferromagnet(clique)
    whole = cliques.separation(clique, clique.variables, delta=delta, steps=steps)
    listings: list[lab.Listing] = []
    notes: list[str] = []
    document: dict[str, Any] = {"assumption_5": {**asdict(facts), "holds": facts.holds}}
    if clique.variables <= MAX_EXACT and clique.size > 1:
        found = cliques.modes(clique)
        masses = {name: lab.known_chance(getattr(found, name)) for name in ("high_mass", "low_mass")}
        document["modes"] = asdict(found) | masses
        notes.append(f"P(R_1) {_equals(found.high_mass)}, P(R_-1) {_equals(found.low_mass)}.")
    said = f"h_C = {lab.number(facts.clique_field)} against {lab.number(facts.other_fields)} outside, "
    said += f"J_0 = J - |h|_1 = {lab.number(facts.margin)}"
    silent = "propositions 4, 5 and 8 do not speak of this model; the exact values stand."
    notes.append(f"Assumption 5 holds: {said}." if facts.holds else f"Assumption 5 fails ({said}): {silent}")
    if facts.holds and clique.size > 1:
        document["proposition_4"], reach = _reach(clique, chains, delta, steps)
        if reach.rows:
            listings.append(reach)
        else:
            notes.append(f"Proposition 4 is about k >= |C| = {clique.size}: no such k is listed.")
        document["proposition_5"], stuck = _stuck(clique, chains[None], delta, steps)
        notes.append(stuck)
    listings.append(_corollary(clique, whole, delta, steps))
    follows = "follows" if whole.follows else "does not follow (which does not say that it is false)"
    notes.append(f"Corollary 1, R_1 after one step of k-Gibbs and not in M steps of independent parallel: {follows}.")
    needed = ("follows", "size_needed", "field_needed", "margin_needed", "k_needed")
    document["corollary_1"] = {name: getattr(whole, name) for name in needed}
    return document, listings, notes


def _reach(
    clique: cliques.Clique, chains: Chains, delta: float, steps: int
) -> tuple[list[dict[str, Any]], lab.Listing]:
    """Proposition 4, and the first step at which even the worst start has been in R_1 with probability 1 - delta."""
    entries: list[dict[str, Any]] = []
    rows: list[tuple[str, ...]] = []
    for k, chain in chains.items():
        if k is None or k < clique.size:
            continue
        bound, exact = cliques.reach_bound(clique, k, delta), surely_reached(chain.matrix, chain.high, delta, steps)
        entries.append({"k": k, **asdict(bound), "exact_steps": exact})
        rows.append(
            (str(k), f"{bound.miss:.6g}", lab.number(bound.steps), f"{bound.printed_miss:.6g}",
             lab.number(bound.printed_steps), "-" if exact is None else str(exact))
        )  # fmt: skip
    title = f"Proposition 4: steps of k-Gibbs to R_1 with probability {1 - delta:g}, from any start"
    return entries, lab.Listing(title, ("k", "c", "T", "c (main text)", "T (main text)", "T, exact"), rows)


def _stuck(clique: cliques.Clique, chain: cliques.LumpedChain, delta: float, steps: int) -> tuple[dict[str, Any], str]:
    """Proposition 5, and the exact chance that it is about."""
    bound = cliques.stuck_bound(clique, delta)
    law = hitting_law(chain.matrix, chain.total > -2, steps, starts=[chain.low])
    left = float(law.reached[-1, 0])
    said = f"r = {lab.number(bound.deviation)}, exponent {lab.number(bound.exponent)}"
    what = (
        f"says nothing here ({said})"
        if bound.vacuous
        else f"independent parallel keeps sum_C <= -2 for T = {lab.number(bound.steps)} steps with probability "
        f"{1 - delta:g} ({said}; T = {lab.number(bound.sharper_steps)} by the sharper form)"
    )
    exact = f"exactly, from R_-1 it leaves within {steps:,} steps with probability {lab.chance(left, 3)}"
    entry = {**asdict(bound), "vacuous": bound.vacuous, "exact_leaves": lab.known_chance(left)}
    return entry, f"Proposition 5: {what}; {exact}."


def _corollary(clique: cliques.Clique, whole: cliques.Separation, delta: float, steps: int) -> lab.Listing:
    """Which of its assumptions hold."""
    facts = cliques.ferromagnet(clique)
    field, margin = facts.clique_field, facts.margin
    return lab.Listing(
        f"Corollary 1: M = {steps:,} steps, probability {1 - delta:g}",
        ("assumption", "needed", "here", ""),
        [
            ("5: h_C above the other fields", lab.number(facts.other_fields), lab.number(field),
             lab.verdict(field > max(0.0, facts.other_fields))),
            ("5: J_0 = J - |h|_1 above", "0", lab.number(margin), lab.verdict(margin > 0)),
            ("6: |C| at least", lab.number(whole.size_needed), str(clique.size),
             lab.verdict(clique.size >= whole.size_needed)),
            ("6: h_C at least", lab.number(whole.field_needed), lab.number(field),
             lab.verdict(field >= whole.field_needed)),
            ("6: J_0 at least", lab.number(whole.margin_needed), lab.number(margin),
             lab.verdict(margin >= whole.margin_needed)),
            ("7: k at least", lab.number(whole.k_needed), f"N = {clique.variables}", lab.verdict(whole.large)),
        ],
    )  # fmt: skip


def _equals(value: float) -> str:
    shown = lab.chance(value)
    return shown if shown.startswith("<") else f"= {shown}"


def _draw(figure: Figure, words: str, found: list[Hitting], budget: int, chains: int) -> None:
    left, right = lab.panels(figure, f"{words}: from R$_{{-1}}$ to R$_1$", 2)
    gibbs, parallel = found[:-1], found[-1]
    colour = {one.k: mpl.colormaps["viridis"](0.92 * i / max(1, len(gibbs) - 1)) for i, one in enumerate(gibbs)}
    ks = [one.k or 0 for one in gibbs]
    lab.curve(left, gibbs, "truncated_mean", "-", color="#1b4f8a", label="k-Gibbs, exact")
    label = "simulated, ±2 standard errors"
    lab.curve(left, gibbs, "simulated", "o", error="simulated_error", ms=4, color="#1b4f8a", capsize=3, label=label)
    left.axhline(parallel.truncated_mean, color="black", lw=1.2, ls="--", label="independent parallel, exact")
    left.axhline(budget, color="grey", lw=0.8, ls=":")
    left.annotate("budget", (ks[-1], budget), xytext=(0, 3), textcoords="offset points", ha="right", color="grey")
    left.set(xlabel="k", ylabel=f"E[min(T, {budget:,})]", yscale="log")
    left.set_xticks(ks) if max(ks) <= 12 else left.set_xscale("log")
    left.legend(frameon=False, fontsize=9)
    time = torch.arange(budget + 1)
    for one in found:
        own, style = ("black", "--") if one.k is None else (colour[one.k], "-")
        right.plot(time[1:], one.curve[1:], color=own, ls=style, lw=1.4, label=lab.sampler_name(one.k))
        if len(one.seen):  # the share of chains that arrived by a few times
            some = torch.unique(torch.logspace(0, math.log10(budget), 12).long())
            share = torch.searchsorted(one.seen, some, right=True).double() / chains
            right.plot(some, share, "o", color=own, ms=3)
    right.set(xlabel="steps t", ylabel="P(T ≤ t)", xscale="log", ylim=(-0.03, 1.03))
    right.set_title("lines exact, dots simulated", fontsize=10)
    right.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
