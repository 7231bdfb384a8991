"""GMLM figure 3: steps until k-Gibbs reaches the larger mode R_1 of eq. (6), from R_-1; exact curves beside simulation.

N = 10, a clique of 4, h_i = 5, J varied, a budget of 1000 steps, 10 repetitions with bars of ±0.5 standard deviation,
as in the paper. It does not say which J: those here are ours. Two more things are left open there:

    pairs       eq. (6) sums over i != j: each pair once or twice? Both are run; twice at J is the chain of once at 2 J.
    h_i = 5     for all i (so here), or in the clique only? It makes no difference: the isolated spins never decide
                whether R_1 is reached. It does for assumption 5, which fails for all i (20 inside against 30 outside).

The exact curves need no simulation: the number of spins of the clique at +1 is a Markov chain of 5 states, E[T] is
had from it by elimination without subtraction, and E[min(T, 1000)] from the law of T. Simulated on all 10 spins with
anyfill.ising.chains: --chains chains for the check, the first 10 of them as the repetitions of the picture.

    z = (mean of min(T, 1000) over the chains - exact) / (exact standard deviation / sqrt(chains))

Where fewer than 10 chains are expected to arrive, a mean is no test; how many arrived is compared with its binomial law
everywhere. A cell with |z| > 3 is simulated once more with 100 times the chains; both results are kept.

    python -m experiments.gmlm.fig3
    python -m experiments.gmlm.fig3 --confirm [--confirm-chains 1000000]   # such cells of the file again, fresh draws;
                                                                            # added, with the environment of that run
"""

import argparse
import json
import math
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from anyfill.ising.chains import IndependentParallel, KGibbs, first_hits
from anyfill.ising.cliques import Clique, LumpedChain, clique_kgibbs_matrix, clique_parallel_matrix
from anyfill.ising.hitting_times import hitting_law, log_hitting_times, truncated_mean
from anyfill.ising.separation import ferromagnet
from benchmarks.common import RESULTS, environment, write_result

VARIABLES, SIZE, FIELD, BUDGET = 10, 4, 5.0, 1000
COUPLINGS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)
PAPER = (
    "k-Gibbs can often reach R_1 within a relatively small number of steps; larger J are slower; larger k is faster; "
    "independent parallel can never reach R_1 within the compute budget for any of the J's tried"
)


def clique(coupling: float, pairs: str) -> Clique:
    """Figure 3's model, with h_i = 5 for all i."""
    return Clique.alike(VARIABLES, SIZE, coupling, FIELD, outside=FIELD, pairs=pairs)  # type: ignore[arg-type]


def chain_of(k: int | None, coupling: float, pairs: str) -> LumpedChain:
    """The lumped chain of k-Gibbs, or of independent parallel for None."""
    model = clique(coupling, pairs)
    return clique_parallel_matrix(model) if k is None else clique_kgibbs_matrix(model, k)


def log10_time(k: int | None, coupling: float, pairs: str) -> float:
    """log10 E[T] from R_-1."""
    chain = chain_of(k, coupling, pairs)
    return float(log_hitting_times(chain.log_matrix, chain.high)[chain.low]) / math.log(10)


def capped(k: int | None, coupling: float, pairs: str) -> float:
    """E[min(T, budget)] from R_-1."""
    chain = chain_of(k, coupling, pairs)
    return float(truncated_mean(chain.matrix, chain.high, BUDGET)[chain.low])


def exact(k: int | None, coupling: float, pairs: str) -> dict[str, float]:
    """log10 E[T], E[min(T, budget)] and its deviation, and P(T <= budget), from R_-1."""
    chain = chain_of(k, coupling, pairs)
    law = hitting_law(chain.matrix, chain.high, BUDGET)
    return {
        "log10_mean": log10_time(k, coupling, pairs),
        "truncated_mean": float(law.truncated_mean[chain.low]),
        "truncated_deviation": float(law.truncated_deviation[chain.low]),
        "reached": float(law.reached[-1, chain.low]),
    }


def simulate(k: int | None, coupling: float, pairs: str, chains: int, generator: torch.Generator) -> torch.Tensor:
    """int64 (chains,): min(T, budget + 1) of chains on all N spins started in R_-1, isolated spins at -1 too."""
    ising = clique(coupling, pairs).ising()
    start = torch.zeros(chains, VARIABLES, dtype=torch.int64)
    kernel = IndependentParallel() if k is None else KGibbs(k)
    return first_hits(ising, kernel, start, lambda x: x[:, :SIZE].all(1), BUDGET, generator=generator)


def binomial_tails(count: int, draws: int, chance: float) -> float:
    """Two-sided: twice the smaller tail of Binomial(draws, chance) at ``count``, at most 1."""
    if chance <= 0.0 or chance >= 1.0:
        return 1.0 if count == (0 if chance <= 0.0 else draws) else 0.0
    logs = [
        math.lgamma(draws + 1) - math.lgamma(i + 1) - math.lgamma(draws - i + 1)
        + i * math.log(chance) + (draws - i) * math.log1p(-chance)
        for i in range(draws + 1)
    ]  # fmt: skip
    below = math.fsum(math.exp(value) for value in logs[: count + 1])
    above = math.fsum(math.exp(value) for value in logs[count:])
    return min(1.0, 2.0 * min(below, above))


def compare(hits: torch.Tensor, expected: dict[str, float]) -> dict[str, Any]:
    """Simulated against exact: z of the truncated mean where that is a test, and the law of how many arrived."""
    times = hits.clamp(max=BUDGET).double()
    arrived, chains = int((hits <= BUDGET).sum()), len(hits)
    deviation = expected["truncated_deviation"]
    moving = min(expected["reached"], 1.0) * chains >= 10 and deviation > 1e-6
    z = (float(times.mean()) - expected["truncated_mean"]) / (deviation / math.sqrt(chains)) if moving else None
    return {
        "mean": float(times.mean()),
        "stderr": float(times.std() / math.sqrt(chains)),
        "z": z,
        "arrived": arrived,
        "arrived_p_value": binomial_tails(arrived, chains, expected["reached"]),
    }


def run(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Every sampler at every J under both conventions."""
    generator = torch.Generator().manual_seed(arguments.seed)
    rows: list[dict[str, Any]] = []
    for pairs in ("once", "twice"):
        for coupling in arguments.couplings:
            for k in (*range(1, VARIABLES + 1), None):
                expected = exact(k, coupling, pairs)
                hits = simulate(k, coupling, pairs, arguments.chains, generator)
                few = hits[: arguments.repetitions].clamp(max=BUDGET).double()
                rows.append(
                    {
                        "pairs": pairs,
                        "J": coupling,
                        "k": k,
                        "exact": expected,
                        "simulated": compare(hits, expected),
                        "repetitions": {"mean": float(few.mean()), "half_stdev": 0.5 * float(few.std())},
                    }
                )
            now = {row["k"]: row for row in rows[-VARIABLES - 1 :]}
            line = "  ".join(f"k={k} {now[k]['exact']['truncated_mean']:.4g}" for k in (1, 2, 3, 4, 6, 8, 10))
            parallel = now[None]["exact"]
            print(f"pairs {pairs}, J = {coupling:<4g} E[min(T, {BUDGET})]: {line}  parallel "
                  f"{parallel['truncated_mean']:.4g}, P(reached) {parallel['reached']:.2g}", flush=True)  # fmt: skip
    return rows


def confirm(rows: list[dict[str, Any]], chains: int, seed: int) -> list[dict[str, Any]]:
    """Every cell with |z| > 3 once more, with these many chains and this seed; the first result stays as it is."""
    generator = torch.Generator().manual_seed(seed)
    again: list[dict[str, Any]] = []
    for row in rows:
        if abs(row["simulated"]["z"] or 0.0) > 3:
            parts = [simulate(row["k"], row["J"], row["pairs"], 10_000, generator) for _ in range(-(-chains // 10_000))]
            result = compare(torch.cat(parts), row["exact"])
            cell = {name: row[name] for name in ("pairs", "J", "k")}
            again.append(cell | {"chains": 10_000 * len(parts), "seed": seed} | result)
    for cell in again:
        print(f"once more, {cell['chains']} chains: pairs {cell['pairs']}, J = {cell['J']:g}, k = {cell['k']}: "
              f"mean {cell['mean']:.4f}, z = {cell['z']:.2f}")  # fmt: skip
    return again


def confirm_again(saved: dict[str, Any], chains: int | None) -> dict[str, Any]:
    """The saved results with one more round of ``confirm`` added: a seed that was not used, its own environment.

    What stands there, the environment of the main run included, stays as it is.
    """
    used, before = saved["arguments"], saved["once_more"]
    seed = max([used["seed"] + 1, *(cell.get("seed", used["seed"] + 1) for cell in before)]) + 1
    cells = confirm(saved["results"], chains or 100 * used["chains"], seed)
    where = environment()
    return saved | {"once_more": before + [cell | {"environment": where} for cell in cells]}


def silence(pairs: str, repetitions: int) -> float:
    """The J from which none of the repetitions of independent parallel arrives, with probability 0.95; by bisection."""
    low, high = 0.1, 20.0
    for _ in range(16):  # to 3e-4
        middle = 0.5 * (low + high)
        chance = exact(None, middle, pairs)["reached"]
        low, high = (middle, high) if (1.0 - chance) ** repetitions < 0.95 else (low, middle)
    return high


def findings(rows: list[dict[str, Any]], repetitions: int) -> dict[str, Any]:
    """The paper's words, one by one, and how far simulation and exact values agree."""
    kernels = [*range(1, VARIABLES + 1)]
    table = {(row["pairs"], row["J"], row["k"]): row["exact"]["log10_mean"] for row in rows}
    couplings = sorted({row["J"] for row in rows})
    z = [row["simulated"]["z"] for row in rows if row["simulated"]["z"] is not None]
    p = [row["simulated"]["arrived_p_value"] for row in rows]
    gibbs, parallel = ([row for row in rows if (row["k"] is None) == flag] for flag in (False, True))
    slack = 1e-9  # k = 10 takes one step at every J, to within exp(-40)
    return {
        "larger_k_sooner": all(
            table[pairs, j, k + 1] < table[pairs, j, k] + slack
            for pairs in ("once", "twice") for j in couplings for k in kernels[:-1]
        ),
        "fall_of_time_with_J": {
            str(k): max(
                1.0 - 10.0 ** (table[pairs, after, k] - table[pairs, before, k])
                for pairs in ("once", "twice") for before, after in pairwise(couplings)
            )
            for k in kernels
        },
        "parallel_silent_from_J": {pairs: silence(pairs, repetitions) for pairs in ("once", "twice")},
        "parallel_reached_probability": {
            pairs: {str(row["J"]): row["exact"]["reached"] for row in parallel if row["pairs"] == pairs}
            for pairs in ("once", "twice")
        },
        "parallel_sooner_than_1_gibbs_at_J": {
            pairs: [j for j in couplings if table[pairs, j, None] < table[pairs, j, 1]] for pairs in ("once", "twice")
        },
        "assumption_5": {
            "h on all": vars_of(Clique.alike(VARIABLES, SIZE, 10.0, FIELD, outside=FIELD)),
            "h on the clique": vars_of(Clique.alike(VARIABLES, SIZE, 10.0, FIELD)),
        },
        "tests": {
            "z_scores": len(z),
            "z_mean_square": sum(value**2 for value in z) / max(1, len(z)),
            "z_largest": max(map(abs, z), default=0.0),
            "z_beyond_2": sum(abs(value) > 2 for value in z),
            "smallest_arrived_p_value": min(p),
            "arrived_tests": len(p),
            "gibbs_cells": len(gibbs),
        },
    }  # fmt: skip


def vars_of(model: Clique) -> dict[str, Any]:
    """Assumption 5 in numbers, at J = 10."""
    facts = ferromagnet(model)
    return {
        "clique_field": facts.clique_field,
        "other_fields": facts.other_fields,
        "J_must_exceed": model.strength - facts.margin,
        "field_condition_holds": facts.clique_field > facts.other_fields,
    }


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Two panels as the paper's (each way to count pairs), and the expected time without a budget."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(15, 4.8), layout="constrained")
    shown = (1, 2, 3, 4, 5, 6, 8, 10)
    colour = {k: plt.get_cmap("viridis")(0.95 * i / (len(shown) - 1)) for i, k in enumerate(shown)}
    grid = [0.5 + 9.5 * i / 57 for i in range(58)]
    ends = {"once": 10.0, "twice": 5.0}
    for axis, pairs in zip(axes, ("once", "twice")):
        fine = [j * ends[pairs] / 10.0 for j in grid]
        for place, k in enumerate((*shown, None)):
            own = "black" if k is None else colour[k]
            curve = [capped(k, j, pairs) for j in fine]
            label = "independent parallel" if k is None else f"k = {k}"
            axis.plot(fine, curve, color=own, linestyle="--" if k is None else "-", linewidth=1.4, label=label)
            cells = [row for row in rows if row["pairs"] == pairs and row["k"] == k and row["J"] <= ends[pairs]]
            width = 0.012 * ends[pairs] * (place - len(shown) / 2) / len(shown) * 2
            means = [row["repetitions"]["mean"] for row in cells]
            bars = [row["repetitions"]["half_stdev"] for row in cells]
            low = [min(bar, 0.999 * mean) for bar, mean in zip(bars, means)]  # a bar below 0 has no place on this axis
            axis.errorbar([row["J"] + width for row in cells], means, [low, bars], fmt="o", ms=3.5, color=own, lw=0.9)
        axis.axhline(BUDGET, color="grey", linewidth=0.8, linestyle=":")
        axis.set(yscale="log", ylim=(0.7, 2500), xlabel="J", ylabel=f"steps to reach R_1, at most {BUDGET}")
        axis.set_title(f"pairs counted {pairs}: lines exact, dots 10 runs ±0.5 sd", fontsize=10)
    last = axes[2]
    for k in (*shown, None):
        own = "black" if k is None else colour[k]
        curve = [log10_time(k, j, "once") for j in grid]
        last.plot(grid, curve, color=own, linestyle="--" if k is None else "-", linewidth=1.4)
    last.axhline(math.log10(BUDGET), color="grey", linewidth=0.8, linestyle=":")
    last.set(xlabel="J", ylabel="log10 E[steps to reach R_1]", title="")
    last.set_title("no budget, pairs once: exact", fontsize=10)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=9, frameon=False, fontsize=9)
    figure.suptitle(f"GMLM figure 3: N = {VARIABLES}, |C| = {SIZE}, h = {FIELD:g}, from R_-1")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Run, print ours beside the paper's words, write JSON and PNG."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--couplings", type=float, nargs="+", default=list(COUPLINGS))
    parser.add_argument("--chains", type=int, default=1000, help="chains for the check against exact values")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="gmlm/fig3")
    parser.add_argument("--quick", action="store_true", help="three J, few chains")
    parser.add_argument("--redraw", action="store_true", help="only draw the picture again from the results file")
    parser.add_argument("--confirm", action="store_true", help="only simulate doubtful cells of the results file again")
    parser.add_argument("--confirm-chains", type=int, help="chains of --confirm; 100 times those of the run by default")
    arguments = parser.parse_args()
    path = RESULTS / f"{arguments.name}.json"
    if arguments.redraw:
        draw(json.loads(path.read_text())["results"], path.with_suffix(".png"))
        return
    if arguments.confirm:
        saved = confirm_again(json.loads(path.read_text()), arguments.confirm_chains)
        saved.pop("name")
        write_result(arguments.name, saved)  # with the environment that it came with
        return
    if arguments.quick:
        arguments.couplings, arguments.chains = [1.0, 2.5, 4.0], 100
    start = time.perf_counter()
    rows = run(arguments)
    found = findings(rows, arguments.repetitions)
    seconds = time.perf_counter() - start
    print(f"paper: {PAPER}")
    falls = found["fall_of_time_with_J"]
    slower = [k for k, fall in falls.items() if fall <= 0]
    others = ", ".join(f"k={k} by {fall:.1g}" for k, fall in falls.items() if fall > 0) or "none"
    print(f"ours: larger k sooner at every J: {found['larger_k_sooner']}")
    print(f"ours: larger J slower for k = {', '.join(slower)}; E[T] falls somewhere for: {others}")
    for pairs, j in found["parallel_silent_from_J"].items():
        print(
            f"ours: independent parallel, pairs {pairs}: 10 runs all stay away with probability 0.95 from J = {j:.3f}"
        )
    tests = found["tests"]
    print(f"simulation against exact: {tests['z_scores']} z-scores, mean square {tests['z_mean_square']:.2f}, largest "
          f"{tests['z_largest']:.2f}; smallest p-value of arrivals {tests['smallest_arrived_p_value']:.2g} of "
          f"{tests['arrived_tests']}; {seconds:.0f} s")  # fmt: skip
    payload = {
        "arguments": json.loads(json.dumps(vars(arguments), default=str)),
        "paper": PAPER,
        "seconds": seconds,
        "findings": found,
        "once_more": confirm(rows, 100 * arguments.chains, arguments.seed + 1),
        "results": rows,
    }
    path = write_result(arguments.name, payload)
    draw(rows, path.with_suffix(".png"))
    print(f"wrote {path.name} and {path.with_suffix('.png').name} to {path.parent.name}/")


if __name__ == "__main__":
    main()
