"""What Figures 1 and 2 of the GMLM paper share: k-pseudolikelihood estimates against sample size, and exact curves.

Setting (captions): data from an Ising model on the complete graph of N = 4 spins, couplings J, fields 0; a model
fitted by k-pseudolikelihood with gradient descent; average squared error of the parameters over 10 repetitions,
error bars +-0.5 standard deviations. What the text leaves open, and what we take:

    sample sizes     not in the text; 100 to 10,000, evenly on a logarithmic scale
    masks            one random mask for each sample, drawn once (definition 3)
    error            |theta^ - theta|², the sum over all parameters; its mean over repetitions tends to tr(Gamma_k) / n
    parameters       J and h (proposition 11: theta = (J, h)); couplings alone are in the JSON
    pairs            once: eq. (5), and the proofs (appendix G has exp(2 h_j + 2 J sum_i x_i) for the odds of a spin);
                     counted twice, as eq. (6) can be read, they are in the JSON

All k are fitted to the same data. A repetition whose estimate is infinite (separable data) is left out and counted. The
check takes more: n = 4000 and 300 repetitions for each k, independent data, and gives z = (n MSE - tr Gamma_k) / its
standard error; it passes if all |z| < 3.
"""

import argparse
import json
import math
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import torch

from anyfill.ising.asymptotics import ising_variance
from anyfill.ising.blocks import k_blocks
from anyfill.ising.estimation import Method, fit_ising
from anyfill.ising.model import Ising
from benchmarks.common import write_result

SIZES = (100, 178, 316, 562, 1000, 1778, 3162, 5623, 10_000)
COLORS = ("#c0392b", "#d1843a", "#3a8f5c", "#1b4f8a")


def truth_of(coupling: float, pairs: Any, fields: bool) -> Ising:
    """The model that the data come from."""
    return Ising.complete(4, coupling, pairs=pairs, free_fields=fields)


def errors_of(
    truth: Ising, n: int, ks: tuple[int, ...], repetitions: int, method: Method, seed: int
) -> dict[int, list[float | None]]:
    """Squared errors of each k, the same data for all; None where the estimate is infinite."""
    generator = torch.Generator().manual_seed(seed)
    errors: dict[int, list[float | None]] = {k: [] for k in ks}
    for _ in range(repetitions):
        x = truth.sample(n, generator=generator)
        for k in ks:
            done = fit_ising(truth, x, k=k, method=method, tolerance=1e-8, steps=3000, generator=generator)
            apart = (done.ising.theta - truth.theta).detach().square().sum().item()
            errors[k].append(apart if done.converged else None)
    return errors


def summary(errors: list[float | None]) -> dict[str, Any]:
    """Mean, deviation and standard error over the repetitions with a finite estimate."""
    finite = torch.tensor([error for error in errors if error is not None], dtype=torch.float64)
    left_out = len(errors) - len(finite)
    if len(finite) < 2:
        return {"mean": None, "std": None, "stderr": None, "left_out": left_out}
    deviation = finite.std().item()
    return {
        "mean": finite.mean().item(),
        "std": deviation,
        "stderr": deviation / math.sqrt(len(finite)),
        "left_out": left_out,
    }


def curves(truth: Ising, sizes: tuple[int, ...], repetitions: int, seed: int) -> dict[str, Any]:
    """For each k the exact trace and the simulated errors at every sample size."""
    ks = tuple(range(1, truth.variables + 1))
    traces = {k: ising_variance(truth, k_blocks(truth.variables, k)).trace().item() for k in ks}
    simulated = [errors_of(truth, n, ks, repetitions, "gradient", seed + n) for n in sizes]
    return {str(k): {"trace": traces[k], "errors": [summary(each[k]) for each in simulated]} for k in ks}


def check(truth: Ising, n: int, repetitions: int, seed: int) -> dict[str, Any]:
    """n times the mean squared error beside the trace, with its z, for each k with data of its own."""
    found: dict[str, Any] = {}
    for k in range(1, truth.variables + 1):
        trace = ising_variance(truth, k_blocks(truth.variables, k)).trace().item()
        told = summary(errors_of(truth, n, (k,), repetitions, "newton", seed + 10_000_000 * k)[k])
        found[str(k)] = {
            "trace": trace,
            "n_mse": n * told["mean"],
            "stderr": n * told["stderr"],
            "z": (n * told["mean"] - trace) / (n * told["stderr"]),
            "left_out": told["left_out"],
        }
    return found


def in_order(found: dict[str, Any]) -> tuple[int, int]:
    """How many of the comparisons (n, k) against (n, k + 1) have no higher mean error at k + 1, of how many.

    Without fields k = 3 and k = 4 tie: all signs may be turned at once, so that one spin told says nothing of the rest.
    """
    gaps = [
        low["mean"] / high["mean"] - 1.0
        for k in range(1, len(found))
        for low, high in zip(found[str(k)]["errors"], found[str(k + 1)]["errors"])
        if low["mean"] is not None and high["mean"] is not None
    ]
    return sum(gap > -1e-6 for gap in gaps), len(gaps)


def draw(payload: dict[str, Any], title: str, path: Path) -> None:
    """The paper's figure with the exact curves, and the check beside it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    main, sizes = payload["variants"]["once, couplings and fields"], payload["sizes"]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 4.8), layout="constrained", gridspec_kw={"width_ratios": [1.7, 1]}
    )
    for (k, curve), color in zip(main["curves"].items(), COLORS):
        left.plot(sizes, [curve["trace"] / n for n in sizes], color=color, linewidth=1.2, linestyle="--")
        shift = 1.0 + 0.035 * (int(k) - 2.5)  # side by side, so that bars can be told apart
        told = [(n * shift, error) for n, error in zip(sizes, curve["errors"]) if error["mean"] is not None]
        left.errorbar(
            [n for n, _ in told],
            [error["mean"] for _, error in told],
            yerr=[0.5 * error["std"] for _, error in told],
            color=color,
            marker="o",
            markersize=4.5,
            linestyle="none",
            capsize=2,
            label=f"k = {k}" + (", maximum likelihood" if k == "4" else ""),
        )
    left.plot([], [], color="black", linewidth=1.2, linestyle="--", label="exact: tr(Γ$_k$) / n")
    left.set(xscale="log", yscale="log", xlabel="samples n", ylabel="squared error of the parameters")
    left.set_title(f"mean of {payload['repetitions']} repetitions, bars ±0.5 standard deviations", fontsize=10)
    left.legend(frameon=False, fontsize=9)
    checked = main["check"]
    ks = [int(k) for k in checked]
    right.bar(ks, [entry["trace"] for entry in checked.values()], color=COLORS, alpha=0.35, label="exact: tr(Γ$_k$)")
    right.errorbar(
        ks,
        [entry["n_mse"] for entry in checked.values()],
        yerr=[entry["stderr"] for entry in checked.values()],
        color="black",
        marker="o",
        markersize=4,
        linestyle="none",
        capsize=4,
        label="simulated, ±1 standard error",
    )
    for k, entry in zip(ks, checked.values()):
        height = max(entry["trace"], entry["n_mse"] + entry["stderr"])
        right.annotate(f"z = {entry['z']:+.1f}", (k, height), xytext=(0, 5), textcoords="offset points", ha="center")
    right.set(xlabel="k", ylabel="n × mean squared error", xticks=ks)
    right.set_ylim(0, 1.15 * max(max(entry["trace"], entry["n_mse"]) for entry in checked.values()))
    right.set_title(f"n = {payload['check_n']}, {payload['check_repetitions']} repetitions", fontsize=10)
    right.legend(frameon=False, fontsize=9)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(name: str, number: int, coupling: float, about: str) -> None:
    """Run one figure: all variants, printed, written and drawn."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--check-repetitions", type=int, default=300)
    parser.add_argument("--check-n", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a smoke run of seconds that leaves no files")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sizes = (100, 1000) if arguments.quick else SIZES
    repetitions, many = (3, 10) if arguments.quick else (arguments.repetitions, arguments.check_repetitions)
    start = time.perf_counter()
    variants: dict[str, Any] = {}
    for pairs, fields in product(("once", "twice"), (True, False)):
        truth = truth_of(coupling, pairs, fields)
        label = f"{pairs}, {'couplings and fields' if fields else 'couplings only'}"
        found = curves(truth, sizes, repetitions, arguments.seed)
        checked = check(truth, arguments.check_n, many, arguments.seed)
        variants[label] = {"curves": found, "check": checked, "larger_k_no_higher_error": in_order(found)}
        report(label, variants[label], sizes)
    payload = {
        "arguments": json.loads(json.dumps(vars(arguments), default=str)),
        "paper": f"Figure {number}: N = |C| = 4, J = {coupling}, h = 0, gradient descent, 10 repetitions, +-0.5 stdev; "
        "its claim: with the same training data size, larger k leads to lower error (no numbers in the text)",
        "coupling": coupling,
        "sizes": list(sizes),
        "repetitions": repetitions,
        "check_n": arguments.check_n,
        "check_repetitions": many,
        "main_variant": "once, couplings and fields",
        "seconds": time.perf_counter() - start,
        "variants": variants,
    }
    title = f"k-pseudolikelihood on an Ising model, N = 4, J = {coupling}, h = 0 (the paper's Figure {number})"
    if arguments.quick:
        with tempfile.TemporaryDirectory() as folder:
            draw(payload, title, Path(folder) / "figure.png")
        return
    path = write_result(name, payload)
    draw(payload, title, path.with_suffix(".png"))
    print(f"{payload['seconds']:.0f} s; wrote {path.name} and {path.with_suffix('.png').name} to {path.parent.name}/")


def report(label: str, variant: dict[str, Any], sizes: tuple[int, ...]) -> None:
    """Print one variant."""
    print(f"\npairs {label}")
    print("  n x mean squared error" + "".join(f"{f'n={n}':>9}" for n in sizes) + "    exact   check         z")
    for k, curve in variant["curves"].items():
        cells = "".join(
            f"{'infinite' if error['mean'] is None else format(n * error['mean'], '.2f'):>9}"
            for n, error in zip(sizes, curve["errors"])
        )
        entry = variant["check"][k]
        checked = f"{entry['n_mse']:6.2f}±{entry['stderr']:.2f} {entry['z']:+5.1f}"
        print(f"  k = {k}{'':17}{cells}{curve['trace']:9.2f}  {checked}")
    better, of = variant["larger_k_no_higher_error"]
    out = sum(error["left_out"] for curve in variant["curves"].values() for error in curve["errors"])
    print(f"  paper: larger k, lower error; here no higher in {better} of {of} comparisons of k with k + 1", end="")
    print(f"; {out} estimates infinite" if out else "", flush=True)
