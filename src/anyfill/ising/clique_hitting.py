"""``hitting``: steps until a chain started in R_-1 (the clique all down) is in R_1 (all up), and what is promised.

Exact from the lumped chain of the clique (``anyfill.ising.cliques``): E[T] by elimination without subtraction,
E[min(T, budget)] and the chance to arrive from the law of T (``anyfill.ising.hitting_times``); simulation on all spins
beside it. z is the simulated mean less the exact one, in standard errors; no z where fewer than 10 chains are expected
to arrive. What propositions 4 and 5 and corollary 1 say of the clique stands below, with their constants and what is
exactly true; for their formulas see ``anyfill.ising.separation``.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import matplotlib as mpl
import torch
from matplotlib.figure import Figure
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.interface.progress import metered
from anyfill.interface.threads import threads
from anyfill.ising import cliques, lab
from anyfill.ising.chains import first_hits, kernel_of
from anyfill.ising.hitting_times import MAX_LAW, HittingLaw, hitting_law, log_hitting_times, surely_reached
from anyfill.ising.model import Ising
from anyfill.ising.separation import Separation, ferromagnet, modes, reach_bound, separation, stuck_bound
from anyfill.networks.exact import MAX_EXACT

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
    facts = ferromagnet(clique)
    whole = separation(clique, clique.variables, delta=delta, steps=steps)
    listings: list[lab.Listing] = []
    notes: list[str] = []
    document: dict[str, Any] = {"assumption_5": {**asdict(facts), "holds": facts.holds}}
    if clique.variables <= MAX_EXACT and clique.size > 1:
        found = modes(clique)
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
        bound, exact = reach_bound(clique, k, delta), surely_reached(chain.matrix, chain.high, delta, steps)
        entries.append({"k": k, **asdict(bound), "exact_steps": exact})
        rows.append(
            (str(k), f"{bound.miss:.6g}", lab.number(bound.steps), f"{bound.printed_miss:.6g}",
             lab.number(bound.printed_steps), "-" if exact is None else str(exact))
        )  # fmt: skip
    title = f"Proposition 4: steps of k-Gibbs to R_1 with probability {1 - delta:g}, from any start"
    return entries, lab.Listing(title, ("k", "c", "T", "c (main text)", "T (main text)", "T, exact"), rows)


def _stuck(clique: cliques.Clique, chain: cliques.LumpedChain, delta: float, steps: int) -> tuple[dict[str, Any], str]:
    """Proposition 5, and the exact chance that it is about."""
    bound = stuck_bound(clique, delta)
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


def _corollary(clique: cliques.Clique, whole: Separation, delta: float, steps: int) -> lab.Listing:
    """Which of its assumptions hold."""
    facts = ferromagnet(clique)
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
