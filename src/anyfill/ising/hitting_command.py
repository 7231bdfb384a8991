"""``anyfill lab ising hitting``: steps until a chain started in R_-1 (the clique all down) is in R_1 (all up).

Exact from the lumped chain of the clique: E[T] by elimination without subtraction, E[min(T, budget)] and the chance to
arrive from the law of T; simulation on all spins beside it. z is the simulated mean less the exact one, in standard
errors; no z where fewer than 10 chains are expected to arrive. What propositions 4 and 5 and corollary 1 say of this
clique is in ``anyfill.ising.separation_report``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import torch
from matplotlib.figure import Figure
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.interface.progress import metered
from anyfill.ising.chains import IndependentParallel, KGibbs, first_hits
from anyfill.ising.clique_chains import Clique, LumpedChain, clique_kgibbs_matrix, clique_parallel_matrix
from anyfill.ising.first_passage import MAX_LAW, HittingLaw, hitting_law, log_hitting_times
from anyfill.ising.separation_report import promises
from anyfill.ising.show import LEAST_CHANCE, Found, Listing, chance, known_chance, number, plain, power_of_ten

MAX_TOGETHER = 12
"""The largest block that is simulated."""
MAX_WORK = 3e8
"""States of blocks that the simulation of one sampler may look at: some ten seconds."""
FEW = 10
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


def usual_sizes(clique: Clique) -> list[int]:
    """All k of a few spins; else powers of two, the size of the clique, and N."""
    count = clique.variables
    if count <= 12:
        return list(range(1, count + 1))
    return sorted({2**i for i in range(count.bit_length()) if 2**i <= count} | {clique.size, count})


def hitting(
    clique: Clique, words: str, sizes: Sequence[int], *, budget: int, chains: int, delta: float, seed: int
) -> Found:
    """Exact, simulated, and what the paper promises."""
    states = clique.size + 1 if clique.is_even else 2**clique.size
    if budget * states > MAX_LAW:
        expected = f"at most {MAX_LAW // states:,} for the {states:,} states of this clique"
        raise refuse("--budget", expected=expected, got=f"{budget:,}")
    lumped: dict[int | None, LumpedChain] = {k: clique_kgibbs_matrix(clique, k) for k in sizes}
    lumped[None] = clique_parallel_matrix(clique)
    told = promises(clique, lumped, delta=delta, steps=budget)
    found = list(metered(_each(clique, lumped, budget, chains, torch.Generator().manual_seed(seed)), "hitting"))
    listing = Listing(
        f"{words}: steps from R_-1 to R_1",
        ("sampler", "E[T]", f"E[min(T, {budget:,})]", f"P(T <= {budget:,})", "simulated", "standard error", "z",
         "arrived"),
        [
            (
                _name(one), power_of_ten(one.log10_mean), number(one.truncated_mean), chance(one.reached, 3),
                number(one.simulated), number(one.simulated_error, 2), "-" if one.z is None else f"{one.z:+.1f}",
                "-" if one.arrived is None else f"{one.arrived:,} of {chains:,}",
            )
            for one in found
        ],
    )  # fmt: skip
    notes = list(told.notes)
    if chains and any(one.simulated is None for one in found):
        notes.append(
            "Not simulated: blocks too large, or too many steps of them; fewer --chains or a smaller --budget."
        )
    document = {
        "command": "hitting",
        "model": {
            "description": words, "variables": clique.variables, "clique": clique.size, "coupling": clique.coupling,
            "pairs": clique.pairs, "fields_inside": list(clique.inside), "fields_outside": list(clique.outside),
        },
        "budget": budget,
        "chains": chains,
        "delta": delta,
        "null_probabilities_are_below": LEAST_CHANCE,
        "results": [
            {name: value for name, value in asdict(one).items() if name not in ("curve", "seen")}
            | {"sampler": _name(one), "reached": known_chance(one.reached)}
            for one in found
        ],
        **told.document,
    }  # fmt: skip
    return Found(document, [listing, *told.listings], notes, lambda figure: _draw(figure, words, found, budget, chains))


def _each(
    clique: Clique, lumped: Mapping[int | None, LumpedChain], budget: int, chains: int, generator: Generator
) -> Iterator[tuple[Hitting, float]]:
    ising = clique.ising()
    for place, (k, chain) in enumerate(lumped.items(), 1):
        law = hitting_law(chain.matrix, chain.high, budget, starts=[chain.low])
        hits = torch.zeros(0, dtype=torch.int64)
        work = (2.0 ** (k or 0) + 32.0) * chains * float(law.truncated_mean[0])
        if chains and (k is None or k <= MAX_TOGETHER) and work <= MAX_WORK:
            kernel = IndependentParallel() if k is None else KGibbs(k)
            start = torch.zeros(chains, clique.variables, dtype=torch.int64)
            hits = first_hits(ising, kernel, start, lambda x: x[:, : clique.size].all(1), budget, generator=generator)
        yield _one(k, chain, law, hits, budget), place / len(lumped)


def _one(k: int | None, chain: LumpedChain, law: HittingLaw, hits: Tensor, budget: int) -> Hitting:
    log_mean = float(log_hitting_times(chain.log_matrix, chain.high)[chain.low]) / math.log(10.0)
    mean, deviation = float(law.truncated_mean[0]), float(law.truncated_deviation[0])
    reached = min(1.0, float(law.reached[-1, 0]))
    curve = law.reached[:, 0]
    if not len(hits):
        return Hitting(k, log_mean, mean, reached, None, None, None, None, curve, hits)
    times = hits.clamp(max=budget).double()
    tested = reached * len(hits) >= FEW and deviation > 1e-6
    z = (float(times.mean()) - mean) / (deviation / math.sqrt(len(hits))) if tested else None
    error = float(times.std()) / math.sqrt(len(hits)) if len(hits) > 1 else None
    arrived = hits[hits <= budget]
    return Hitting(
        k, log_mean, mean, reached, float(times.mean()), error, len(arrived), z, curve, arrived.sort().values
    )


def _name(one: Hitting) -> str:
    return "independent parallel" if one.k is None else f"{one.k}-Gibbs"


def _draw(figure: Figure, words: str, found: Sequence[Hitting], budget: int, chains: int) -> None:
    import matplotlib as mpl

    left, right = (plain(axes) for axes in figure.subplots(1, 2))
    gibbs, parallel = found[:-1], found[-1]
    colour = {one.k: mpl.colormaps["viridis"](0.92 * i / max(1, len(gibbs) - 1)) for i, one in enumerate(gibbs)}
    ks = [one.k or 0 for one in gibbs]
    left.plot(ks, [one.truncated_mean for one in gibbs], "-", color="#1b4f8a", label="k-Gibbs, exact")
    shown = [one for one in gibbs if one.simulated is not None]
    left.errorbar(
        [one.k or 0 for one in shown], [one.simulated or 0.0 for one in shown],
        [2.0 * (one.simulated_error or 0.0) for one in shown],
        fmt="o", ms=4, color="#1b4f8a", capsize=3, label="simulated, ±2 standard errors",
    )  # fmt: skip
    left.axhline(parallel.truncated_mean, color="black", lw=1.2, ls="--", label="independent parallel, exact")
    left.axhline(budget, color="grey", lw=0.8, ls=":")
    left.annotate("budget", (ks[-1], budget), xytext=(0, 3), textcoords="offset points", ha="right", color="grey")
    left.set(xlabel="k", ylabel=f"E[min(T, {budget:,})]", yscale="log")
    left.set_xticks(ks) if max(ks) <= 12 else left.set_xscale("log")
    left.legend(frameon=False, fontsize=9)
    time = torch.arange(budget + 1)
    for one in found:
        own, style = ("black", "--") if one.k is None else (colour[one.k], "-")
        right.plot(time[1:], one.curve[1:], color=own, ls=style, lw=1.4, label=_name(one))
        if len(one.seen):  # the share of chains that arrived by a few times
            some = torch.unique(torch.logspace(0, math.log10(budget), 12).long())
            share = torch.searchsorted(one.seen, some, right=True).double() / chains
            right.plot(some, share, "o", color=own, ms=3)
    right.set(xlabel="steps t", ylabel="P(T ≤ t)", xscale="log", ylim=(-0.03, 1.03))
    right.set_title("lines exact, dots simulated", fontsize=10)
    right.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.suptitle(f"{words}: from R$_{{-1}}$ to R$_1$")
