"""Theorem 1 of the GMLM paper carried to a network: how far the joint it learned is from the truth, against k and n.

Data come from an Ising model of N = 8 spins. The paper's k-pseudolikelihood predicts a block of k variables *jointly*,
and its theorem says: larger k, smaller variance. A masked network does not do that. It answers each asked variable on
its own, so trained on sets of exactly k (``questions.KSubset``) it learns p(x_i | x_-K) for i in K: single variables
given N - k others. Those determine only the law of any N - k + 1 variables (at k = N: of one), not the joint, and a
chain needs more than it was trained for. So four things are compared, each by what its training supports:

    Ising, k-MPLE       the paper's estimator itself, on the same rows and with as many blocks: the reference
    joint in blocks     the network's version of k-MPLE: log p(x_K | x_-K) by the chain rule inside the block, in random
                        order. One step of it asks S, a random part of K, sizes 1 … k alike, the rest given, and counts
                        each asked variable k / |S| (an unbiased estimate). All conditionals with at most k unknown are
                        trained, so k-Gibbs that redraws a block one after another is supported; its stationary law is
                        the joint that is judged. For k = N it is the any-order model itself, read by the chain rule.
    factorised          KSubset(N, k): the product of the k answers. Supported is the block redrawn all at once, each
                        variable given x_-K alone. For k > 1 that chain does not have the true joint as its stationary
                        law even if every answer is exact: the dashed line is that floor, from the true conditionals.
    factorised, 1-Gibbs the same network asked for one variable given all others, for which it was not trained if
                        k > 1: not supported, shown for what it costs.

"One block per row" draws a block K for each row once, as in the theorem; "fresh" draws new ones at every step, as
networks are usually trained: then small k see every conditional of a row too, and the theorem promises nothing. For the
Ising reference the first-order prediction tr(I Gamma_k) / 2n of E KL is drawn as well (masks per row 1; exact, no
simulation). A tenth of a network's rows (at least 50) decide when it stops; the Ising fit uses all rows, and a ridge of
1e-3 against separable data. The same network trained once on 200,000 rows ("rows without end") shows what is left when
the sample is hardly to blame but training, stopping and capacity are: only what lies clearly above that line can be put
down to the sample. Distances: KL(truth, learned) and total variation, over all 256 states, exact.

    python -m experiments.gmlm.neural            # ten repetitions of three truths, two hours on one core
    python -m experiments.gmlm.neural --workers 14    # the same figures, sooner
    python -m experiments.gmlm.neural --quick    # a smoke run, one minute; writes results/gmlm/neural_quick.json
"""

import argparse
import copy
import json
import math
import multiprocessing
import statistics
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Generator, Tensor

from anyfill.evaluation.mixing import learned_transition, stationary_law
from anyfill.ising.estimation import fit_ising
from anyfill.ising.model import Ising
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, ResidualMLP
from anyfill.objectives import MaskedLoss
from anyfill.objectives.objective import Mean
from anyfill.questions import KSubset, Question
from anyfill.questions.question import at_once
from anyfill.rows import Rows
from benchmarks.common import RESULTS, write_result
from experiments.gmlm.theorem4 import N, apart, theory, truth_of

ENDLESS = 200_000
CONTROL = "joint, rows without end"
Training = Literal["joint, one block per row", "joint, fresh blocks", "factorised, one block per row"]
TRAININGS: tuple[Training, ...] = ("joint, one block per row", "joint, fresh blocks", "factorised, one block per row")
WORDS = "increasing the number of variables k we predict ... strictly improves the statistical efficiency (theorem 1)"


def part_of(blocks: Tensor, *, generator: Generator) -> Tensor:
    """bool (B, N): a random part S of each block (B, N), its size uniform on 1 … |K|, then every part of that size."""
    keys = torch.rand(blocks.shape, generator=generator).masked_fill(~blocks, 2.0)
    place = keys.argsort(1).argsort(1)
    sizes = blocks.sum(1, keepdim=True)
    wanted = 1 + (torch.rand(len(blocks), 1, generator=generator) * sizes).long().clamp(max=N - 1)
    return place < wanted.minimum(sizes)


def loss_of(model: Model, x: Tensor, blocks: Tensor, training: Training, *, generator: Generator) -> Tensor:
    """(B,) nats of the blocks (B, N) of rows x: jointly (an unbiased estimate), or as a product."""
    if training.startswith("factorised"):
        asked, scale, objective = blocks, 1.0, MaskedLoss(KSubset(N, int(blocks[0].sum())))
    else:
        asked, scale = part_of(blocks, generator=generator), blocks.sum(1)
        objective = MaskedLoss(KSubset(N, int(blocks[0].sum())), Mean())
    return scale * objective.loss(model, Rows.from_values(x), at_once(Question(~asked, asked)))


def train(x: Tensor, k: int, training: Training, steps: int, seed: int) -> tuple[Model, dict[str, Any]]:
    """A network trained on rows x (n, N) with blocks of k, stopped where the rows kept aside are answered best."""
    generator = Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = Model(ResidualMLP(Discrete(2), N, 2, width=64, depth=2), Categorical(2))
    blocks = KSubset(N, k).sample(len(x), generator=generator).asked
    aside = max(50, len(x) // 10)
    held, held_blocks, x, blocks = x[:aside], blocks[:aside], x[aside:], blocks[aside:]
    mean = copy.deepcopy(model)  # a moving average of the weights: it is what is judged
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    best, at, kept = math.inf, 0, copy.deepcopy(mean.state_dict())
    for step in range(1, steps + 1):
        rows = torch.randint(len(x), (min(256, len(x)),), generator=generator)
        asked = blocks[rows]
        if training == "joint, fresh blocks":
            asked = KSubset(N, k).sample(len(rows), generator=generator).asked
        optimizer.zero_grad()
        loss_of(model, x[rows], asked, training, generator=generator).mean().backward()
        optimizer.step()
        with torch.no_grad():
            for average, now in zip(mean.parameters(), model.parameters()):
                average.lerp_(now, 0.03)
        if step % 20 == 0:
            same = Generator().manual_seed(seed + 1)  # the same questions every time
            with mean.evaluating():
                value = loss_of(mean, held.repeat(4, 1), held_blocks.repeat(4, 1), training, generator=same)
            if float(value.mean()) < best:
                best, at, kept = float(value.mean()), step, copy.deepcopy(mean.state_dict())
            elif step - at >= 160:
                break
    mean.load_state_dict(kept)
    mean.eval()
    return mean, {"stopped_at": at, "held_out_nats": best}


def judge(model: Model, k: int, training: Training, log_p: Tensor) -> dict[str, dict[str, float]]:
    """Distances of the joint that each way of asking makes of a network, by its name."""
    if training.startswith("joint"):
        return {training: apart(stationary_law(learned_transition(model, k)), log_p)}
    answers = {training: apart(stationary_law(learned_transition(model, k, inside="independent")), log_p)}
    if k > 1:
        answers["factorised, 1-Gibbs (not licensed)"] = apart(stationary_law(learned_transition(model, 1)), log_p)
    return answers


def cell(n: int, repetition: int, ks: list[int], steps: int, seed: int) -> list[dict[str, Any]]:
    """Every training at every k on one draw of n rows, and the reference."""
    torch.set_num_threads(1)
    truth, own = truth_of(seed), seed + 1000 * repetition + n
    log_p = truth.log_joint().detach()
    x = truth.sample(n, generator=Generator().manual_seed(own))
    records: list[dict[str, Any]] = []
    for k in ks:
        here = {"n": n, "k": k, "repetition": repetition}
        fit = fit_ising(Ising.complete(N, 0.0), x, k=k, ridge=1e-3, generator=Generator().manual_seed(own))
        reference = apart(fit.ising.log_joint().detach().exp(), log_p)
        records.append({**here, "method": "Ising, k-MPLE", **reference, "converged": fit.converged})
        for training in TRAININGS:
            if k == 1 and training.startswith("factorised"):
                continue  # for one variable at a time there is no difference
            model, notes = train(x, k, training, steps, own)
            for method, distance in judge(model, k, training, log_p).items():
                records.append({**here, "method": method, **distance, **notes})
    return records


def control(k: int, steps: int, seed: int) -> list[dict[str, Any]]:
    """The same network where the sample is hardly to blame."""
    torch.set_num_threads(1)
    truth = truth_of(seed)
    endless = truth.sample(ENDLESS, generator=Generator().manual_seed(seed))
    model, notes = train(endless, k, TRAININGS[0], steps, seed)
    distance = judge(model, k, TRAININGS[0], truth.log_joint().detach())[TRAININGS[0]]
    return [{"n": ENDLESS, "k": k, "repetition": 0, "method": CONTROL, **distance, **notes}]


def run(ks: list[int], sizes: list[int], seeds: int, steps: int, seed: int, pool: Executor) -> dict[str, Any]:
    """Every training at every k, n and seed, and the reference; cells run side by side, in a fixed order."""
    started = time.perf_counter()
    jobs = [pool.submit(cell, n, repetition, ks, steps, seed) for n in sizes for repetition in range(seeds)]
    jobs += [pool.submit(control, k, steps, seed) for k in ks]
    records: list[dict[str, Any]] = []
    for done, job in enumerate(jobs, 1):
        records += job.result()
        print(f"truth {seed}: {done} of {len(jobs)} cells, {time.perf_counter() - started:.0f} s", flush=True)
    truth = truth_of(seed)
    last = truth.sample(sizes[-1], generator=Generator().manual_seed(seed))
    return {"records": records, "theory": theory(truth, ks, last, seed)}


def together(truths: list[dict[str, Any]]) -> dict[str, Any]:
    """The runs of several truths as one: their records side by side, the means of what is known without training."""
    records = [{"truth": number, **record} for number, found in enumerate(truths) for record in found["records"]]
    means: list[dict[str, Any]] = []
    for lines in zip(*(found["theory"] for found in truths), strict=True):
        floors = {name: statistics.fmean(line["factorised_floor"][name] for line in lines) for name in ("kl", "tv")}
        exact = statistics.fmean(line["kl_times_n"] for line in lines)
        means.append({"k": lines[0]["k"], "kl_times_n": exact, "factorised_floor": floors})
    return {"records": records, "theory": means}


def summarise(records: list[dict[str, Any]], method: str, n: int, k: int, measure: str) -> tuple[float, float] | None:
    """Mean and standard deviation over truths and repetitions."""
    found = [r[measure] for r in records if (r["method"], r["n"], r["k"]) == (method, n, k)]
    if not found:
        return None
    return statistics.fmean(found), statistics.stdev(found) if len(found) > 1 else 0.0


def show(result: dict[str, Any], ks: list[int], sizes: list[int]) -> None:
    """The table, beside the paper's words."""
    print(f'\nThe paper: "{WORDS}".\nKL(truth, learned), nats; mean over repetitions:')
    methods = [method for method in dict.fromkeys(r["method"] for r in result["records"]) if method != CONTROL]
    for n in sizes:
        print(f"\n  n = {n:<34}" + "".join(f"{f'k = {k}':>10}" for k in ks))
        for method in methods:
            found = [summarise(result["records"], method, n, k, "kl") for k in ks]
            print(f"  {method:<38}" + "".join(f"{'-' if f is None else format(f[0], '.4f'):>10}" for f in found))
        exact = [entry["kl_times_n"] / n for entry in result["theory"]]
        print(f"  {'Ising, k-MPLE, first order':<38}" + "".join(f"{value:>10.4f}" for value in exact))
    control = [summarise(result["records"], CONTROL, ENDLESS, k, "kl") for k in ks]
    print(f"\n  {CONTROL:<38}" + "".join(f"{'-' if f is None else format(f[0], '.4f'):>10}" for f in control))
    floor = [entry["factorised_floor"]["kl"] for entry in result["theory"]]
    print(f"  {'factorised, exact answers (floor)':<38}" + "".join(f"{value:>10.4f}" for value in floor))


STYLES = {
    "Ising, k-MPLE": ("#1b4f8a", "o"),
    "joint, one block per row": ("#c0392b", "s"),
    "joint, fresh blocks": ("#d1843a", "D"),
    "factorised, one block per row": ("#3a8f5c", "^"),
    "factorised, 1-Gibbs (not licensed)": ("#8e6bbf", "v"),
}


def draw(result: dict[str, Any], ks: list[int], sizes: list[int], path: Path) -> None:
    """KL and total variation against k, one column for each n."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(sizes), figsize=(4.2 * len(sizes), 7.4), squeeze=False, layout="constrained")
    for row, (measure, name) in enumerate((("kl", "KL(truth, learned), nats"), ("tv", "total variation"))):
        for column, n in enumerate(sizes):
            axis = axes[row][column]
            for place, (method, (color, marker)) in enumerate(STYLES.items()):
                found = [(k, summarise(result["records"], method, n, k, measure)) for k in ks]
                met = [(k, value) for k, value in found if value is not None]
                if not met:
                    continue
                shift = 0.05 * (place - 2)
                axis.errorbar(
                    [k + shift for k, _ in met],
                    [mean for _, (mean, _) in met],
                    yerr=[0.5 * deviation for _, (_, deviation) in met],
                    color=color,
                    marker=marker,
                    markersize=5,
                    capsize=2,
                    linewidth=1.4,
                    label=method if method == "Ising, k-MPLE" else f"network, {method}",
                )
            floor = [entry["factorised_floor"][measure] for entry in result["theory"]]
            points = [(k, value) for k, value in zip(ks, floor) if k > 1]
            axis.plot(*zip(*points), "--", color="#3a8f5c", linewidth=1, label="factorised, exact answers (floor)")
            left = [summarise(result["records"], CONTROL, ENDLESS, k, measure) for k in ks]
            axis.plot(
                ks,
                [math.nan if one is None else one[0] for one in left],
                "-.",
                color="#c0392b",
                linewidth=1,
                label=f"network, {CONTROL} ({ENDLESS:,})",
            )
            if measure == "kl":
                exact = [entry["kl_times_n"] / n for entry in result["theory"]]
                axis.plot(ks, exact, ":", color="#1b4f8a", linewidth=1.4, label="Ising, k-MPLE: tr(I Gamma_k) / 2n")
            axis.set_yscale("log")
            axis.set_xticks(ks)
            axis.grid(True, which="both", alpha=0.15)
            axis.spines[["top", "right"]].set_visible(False)
            axis.set_xlabel("k, variables predicted together")
            if column == 0:
                axis.set_ylabel(name)
            if row == 0:
                axis.set_title(f"n = {n:,} rows")
    for row in axes:  # one scale for each measure, so that columns compare
        low, high = min(a.get_ylim()[0] for a in row), max(a.get_ylim()[1] for a in row)
        for axis in row:
            axis.set_ylim(low, high)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.suptitle(f"Distance of the learned joint to an Ising model of {N} spins (bars: ±0.5 standard deviation)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Run, print, write JSON and PNG."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1500, 7500], help="numbers of rows")
    parser.add_argument("--ks", type=int, nargs="+", default=[1, 2, 4, 6, 8])
    parser.add_argument("--seeds", type=int, default=10, help="repetitions")
    parser.add_argument("--truths", type=int, default=3, help="Ising models, of seeds SEED, SEED + 1 …")
    parser.add_argument("--steps", type=int, default=1000, help="the most steps of a training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="processes; the figures do not depend on them")
    parser.add_argument("--quick", action="store_true", help="two sizes, three k, one repetition, few steps")
    parser.add_argument("--redraw", action="store_true", help="only draw the picture again from the results file")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sizes, arguments.ks, arguments.seeds, arguments.steps = [300, 1500], [1, 4, 8], 1, 400
        arguments.truths = 1
    name = "gmlm/neural_quick" if arguments.quick else "gmlm/neural"
    path = RESULTS / f"{name}.json"
    if arguments.redraw:
        saved = json.loads(path.read_text())
        draw(saved, saved["arguments"]["ks"], saved["arguments"]["sizes"], path.with_suffix(".png"))
        return
    start = time.perf_counter()
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(arguments.workers, mp_context=fresh)
    truths: list[dict[str, Any]] = []
    for number in range(arguments.truths):
        found = run(arguments.ks, arguments.sizes, arguments.seeds, arguments.steps, arguments.seed + number, pool)
        truths.append(found)
        result = together(truths)
        show(result, arguments.ks, arguments.sizes)
        settings = {key: value for key, value in vars(arguments).items() if key != "redraw"} | {"truths": number + 1}
        payload = {"arguments": settings, "paper": WORDS, "seconds": time.perf_counter() - start, **result}
        path = write_result(name, payload)  # after every truth: what is finished is kept
        draw(result, arguments.ks, arguments.sizes, path.with_suffix(".png"))
    print(f"\nwrote {path.name} and {path.with_suffix('.png').name} to {path.parent.name}/")


if __name__ == "__main__":
    main()
