"""ACE against ACE with MAC's masks (MAC, appendix D) on POWER and BSDS300: log-likelihoods and imputation error.

    ace       trained on uniform subsets, for any order
    ace+mac   the same networks, loss and training time on the known sets of MAC's edges, answered in increasing order

One run after another, equal seconds of training each, on one device; networks in the paper's sizes (residual MLPs of 4
blocks for proposal and energies, 10 Gaussians). Questions, the same for both, on the first ``--rows`` test rows:

    joint      log p(x) in increasing order, the protocol of both; for ace also over K random orders z,
               1/K sum_z log p(x | z) and log 1/K sum_z p(x | z)
    marginal   log p(x_S) of random subsets S, their size uniform on 1 … N, in increasing order; also per variable
    nrmse      a random half of the cells is hidden: per feature sqrt(sum of squared errors / hidden) / std(test), mean
               over features (ACE's definition). Imputed by the mean of p(x_j | known), each by itself, in one pass.
               MAC's masks hardly ever have a hidden cell before known ones: for ace+mac this is off its questions.

The data are NOT the published ones. POWER is the first 2.3 % of UCI's rows, prepared by MAF's recipe: rows with "?"
dropped; active power, voltage, three sub-meterings and the minute of the day kept (reactive power and intensity
dropped: 6 columns); uniform noise below 0.001, 0.01 and 1 (three times) added; shuffled, a tenth for testing, a tenth
of the rest for validation (not used); standardised. BSDS300 patches are another draw from the same images by MAF's
recipe: uniform noise, / 256, the patch's mean subtracted, last pixel dropped (63 columns). So no number here compares
with a published one; the comparison of the two methods is the point. The paper's claim: MAC's masks improve
both likelihoods.

Log-likelihoods are in MAF's units: standardised columns for POWER, pixel values for BSDS300 (networks see standardised
columns there too, and the logarithm of the scales is subtracted). The normaliser of an energy is made of ``--points``
points of its proposal, so that values are estimates. The released rates (1e-4 POWER, 1e-3 BSDS) are for far longer
runs; here both start from ``--rate``. ACE's noise of 0.005 on the data of POWER is left out, its regularisation kept.

    python -m experiments.mac.tables --device cuda --seconds 65
"""

import argparse
import gzip
import json
import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill import recipes
from anyfill.evaluation import log_prob
from anyfill.likelihoods import EnergyMixture
from anyfill.model import Model
from anyfill.questions import Factorization, Question
from anyfill.rows import Rows
from anyfill.training import FitOptions, JsonLines, fit
from benchmarks.common import RESULTS, write_result
from experiments.common import data_folder, read_lines, shown

METHODS = ("ace", "ace+mac")
WIDTH = {"power": 512, "bsds": 1024}
BATCH = {"power": 512, "bsds": 2048}
REGULARISATION = {"power": 1.0, "bsds": 0.0}


@dataclass(frozen=True, slots=True)
class Data:
    """Standardised rows (n, N), and what to subtract from a log-density of each column for MAF's units, (N,)."""

    train: Tensor
    valid: Tensor
    test: Tensor
    log_scale: Tensor


def load(data: Path, name: str) -> Data:
    """POWER or BSDS300, see above."""
    parts = _power(data) if name == "power" else _bsds(data)
    mean, deviation = parts[0].mean(0), parts[0].std(0)
    train, valid, test = (torch.tensor((part - mean) / deviation, dtype=torch.float32) for part in parts)
    scale = torch.zeros(len(mean)) if name == "power" else torch.tensor(np.log(deviation))
    return Data(train, valid, test, scale.double())


def _power(data: Path) -> list[np.ndarray]:
    text = gzip.decompress(
        (data / "power_subset" / "household_power_2006-12-16_to_2007-01-19.csv.gz").read_bytes()
    ).decode()
    rows = [line.split(",") for line in text.splitlines()[1:]]
    rows = [row for row in rows if "?" not in row and "" not in row]
    minutes = [[int(part) for part in row[1].split(":")[:2]] for row in rows]
    columns = [[float(row[i]) for row in rows] for i in (2, 4, 6, 7, 8)]
    table = np.array([*columns, [60 * hour + minute for hour, minute in minutes]]).T
    generator = np.random.default_rng(42)
    table = table[generator.permutation(len(table))]
    table = table + generator.random(table.shape) * np.array([0.001, 0.01, 1.0, 1.0, 1.0, 0.0])
    rest, test = np.split(table, [len(table) - len(table) // 10])
    train, valid = np.split(rest, [len(rest) - len(rest) // 10])
    return [train, valid, test]


def _bsds(data: Path) -> list[np.ndarray]:
    generator = np.random.default_rng(42)
    parts = []
    with np.load(data / "bsds300_patches" / "bsds300_gray_8x8_patches.npz") as file:
        for name in ("train", "valid", "test"):
            patches = file[name].reshape(-1, 64)
            patches = (patches + generator.random(patches.shape)) / 256.0
            parts.append((patches - patches.mean(1, keepdims=True))[:, :63])
    return parts


def nrmse(imputed: Tensor, x: Tensor, hidden: Tensor) -> float:
    """Per feature sqrt(sum of squared errors / hidden cells) / std(test), averaged over features; all (B, N)."""
    error = torch.where(hidden, (imputed - x).double() ** 2, 0.0).sum(0) / hidden.sum(0)
    return float((error.sqrt() / x.double().std(0, correction=0)).mean())


def evaluate(model: Model, test: Tensor, log_scale: Tensor, orders: int, seed: int) -> dict[str, Any]:
    """All questions on these rows (B, N), batched on their device."""
    count, size, device = *test.shape, test.device
    generator = torch.Generator().manual_seed(seed)
    place = torch.rand(count, size, generator=generator).argsort(1)
    wanted = (place < torch.randint(1, size + 1, (count, 1), generator=generator)).to(device)
    hidden = (torch.rand(count, size, generator=generator) < 0.5).to(device)
    nothing = torch.zeros_like(wanted)
    unit = log_scale.to(device)

    def scored(asked: Tensor, **how: Any) -> Tensor:
        value = log_prob(model, test, Question(nothing, asked), **how).value
        return value - torch.where(asked, unit, 0.0).sum(1)

    start = time.perf_counter()
    joint, marginal = scored(~nothing), scored(wanted)
    answers: dict[str, Any] = {
        "joint": _mean(joint),
        "marginal": _mean(marginal),
        "marginal_per_variable": _mean(marginal / wanted.sum(1)),
    }
    if orders and Factorization.ANY_ORDER in model.factorizations:
        shuffler = torch.Generator(device).manual_seed(seed)
        each = torch.stack([scored(~nothing, orders=1, generator=shuffler) for _ in range(orders)])
        answers["joint_orders_bound"] = _mean(each.mean(0))
        answers["joint_orders_estimate"] = _mean(each.logsumexp(0) - math.log(orders))
    with model.evaluating():
        parts = [model.marginals(x, ~unknown).mean() for x, unknown in zip(test.split(2048), hidden.split(2048))]
    answers["nrmse"] = nrmse(torch.cat(parts), test, hidden)
    answers["nrmse_of_the_mean"] = nrmse(torch.zeros_like(test), test, hidden)
    answers["seconds"] = time.perf_counter() - start
    return answers


def _mean(values: Tensor) -> dict[str, float]:
    return {"mean": values.mean().item(), "stderr": (values.std() / math.sqrt(len(values))).item()}


def run(name: str, method: str, data: Data, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train one method on one set and ask it."""
    device = torch.device(arguments.device)
    count = data.train.shape[1]
    sizes = {"width": WIDTH[name] if arguments.width is None else arguments.width, "depth": 4}
    model = recipes.ace.model((0,) * count, **sizes, dropout=0.2, min_scale=arguments.floor, seed=arguments.seed)
    recipe = recipes.ace.objective if method == "ace" else recipes.ace.objective_mac
    objective = recipe(count, samples=20, regularisation=REGULARISATION[name])
    batch = min(BATCH[name], arguments.batch or BATCH[name])
    options = FitOptions(
        steps=20 if arguments.smoke else 10_000_000,  # the seconds end the run
        seconds=arguments.seconds,
        batch_size=batch,
        learning_rate=arguments.rate,
        warmup_steps=100,
        optimizer="adam",
        betas=(0.9, 0.999),
        weight_decay=0.0,
        clip_norm=1.0,
        ema=arguments.ema,
        report_every=50,
        seed=arguments.seed,
        device="cuda" if device.type == "cuda" else "cpu",
    )
    torch.set_float32_matmul_precision("high")
    train = Rows.from_values(data.train.to(device))
    if device.type == "cuda":  # kernels are chosen on a throw-away model, so that the clock measures training alone
        spare = recipes.ace.model((0,) * count, **sizes, dropout=0.2, min_scale=arguments.floor)
        fit(spare.to(device), train, objective, replace(options, steps=3, seconds=None))
        torch.cuda.reset_peak_memory_stats(device)
    log = RESULTS / "mac" / "logs" / "tables" / f"{Path(arguments.name).name}-{name}-{method}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    done = fit(model.to(device), train, objective, options, metrics=[JsonLines(log)])
    memory = torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else None
    likelihood = model.likelihood
    if not isinstance(likelihood, EnergyMixture):
        raise TypeError("no energies")
    likelihood.points = arguments.points
    orders = arguments.orders[name == "bsds"] if len(arguments.orders) > 1 else arguments.orders[0]
    rows = arguments.rows[name == "bsds"] if len(arguments.rows) > 1 else arguments.rows[0]
    torch.set_float32_matmul_precision("highest")  # narrow densities want all the digits
    answers = evaluate(model, data.test[:rows].to(device), data.log_scale, orders, arguments.seed)
    result = {
        "steps": done.steps,
        "seconds": done.seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "rows": {"train": len(data.train), "test": len(data.test), "asked": min(rows, len(data.test))},
        "cuda_megabytes": memory,
        "options": asdict(options),
        "answers": answers,
    }
    print(
        f"{name} {method}: {done.steps} steps in {done.seconds:.0f} s, {memory or 0:.0f} MiB of CUDA memory", flush=True
    )
    print(f"  asked in {answers['seconds']:.0f} s: {describe(answers)}", flush=True)
    return result


def describe(answers: dict[str, Any]) -> str:
    """One line."""
    parts = [f"{key} {one['mean']:.3f} ± {one['stderr']:.3f}" for key, one in answers.items() if isinstance(one, dict)]
    return ", ".join([*parts, f"nrmse {answers['nrmse']:.4f}"])


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """For each set the joint and the marginal log-likelihood and the error of both methods."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(results), 3, figsize=(9.5, 3.2 * len(results)), layout="constrained", squeeze=False)
    for row, (name, by_method) in zip(axes, results.items()):
        for axis, key in zip(row, ("joint", "marginal", "nrmse")):
            answers = [one["answers"][key] for one in by_method.values()]
            values = [one if key == "nrmse" else one["mean"] for one in answers]
            errors = None if key == "nrmse" else [one["stderr"] for one in answers]
            bars = axis.bar(
                list(by_method), values, yerr=errors, color=["#8f8f8f", "#1b6ca8"][: len(values)], width=0.6
            )
            axis.bar_label(bars, fmt="%.3f", padding=2)
            axis.margins(y=0.15)
            better = "lower" if key == "nrmse" else "higher"
            unit = "" if key == "nrmse" else ", nats"
            axis.set_title(f"{name.upper()}: {key}{unit} ({better} is better)", fontsize=9)
            axis.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Run what is missing, print both methods side by side, write JSON and PNG."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--sets", nargs="+", default=["power", "bsds"], choices=["power", "bsds"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=65.0, help="of training, each run")
    parser.add_argument("--width", type=int, help="of the proposal network; 512 and 1024 by default")
    parser.add_argument("--batch", type=int, help="the largest batch; 512 and 2048 by default")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--ema", type=float, default=0.99)
    parser.add_argument("--floor", type=float, default=1e-3, help="the narrowest Gaussian, in standard deviations")
    parser.add_argument("--points", type=int, default=64, help="of a normaliser, in answers")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[4000, 500], help="test rows asked, of POWER and BSDS300"
    )
    parser.add_argument("--orders", type=int, nargs="+", default=[8, 4], help="random orders of ace's joint; 0 = none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", type=Path, default=RESULTS / "mac" / "logs" / "tables" / "runs.jsonl")
    parser.add_argument("--name", default="mac/tables")
    parser.add_argument("--smoke", action="store_true", help="a few steps of small networks on few rows")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.width, arguments.batch, arguments.rows, arguments.orders, arguments.points = 32, 32, [8], [2], 8
        arguments.ema = 0.5
    settings = {key: value for key, value in shown(vars(arguments)).items() if key not in ("lines", "data", "name")}
    settings = {key: value for key, value in settings.items() if key not in ("sets", "methods")}
    finished = [line for line in read_lines(arguments.lines) if line["settings"] == settings]
    results: dict[str, dict[str, Any]] = {}
    for name in arguments.sets:
        data = load(arguments.data, name)
        for method in arguments.methods:
            found = [line["result"] for line in finished if (line["set"], line["method"]) == (name, method)]
            result = found[-1] if found else run(name, method, data, arguments)
            results.setdefault(name, {})[method] = result
            if not found:
                arguments.lines.parent.mkdir(parents=True, exist_ok=True)
                line = {"set": name, "method": method, "settings": settings, "result": result}
                with arguments.lines.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    for name, by_method in results.items():
        for method, one in by_method.items():
            print(f"{name:6} {method:8} {describe(one['answers'])}")
    payload = {"arguments": shown(vars(arguments)), "results": results, "protocol": __doc__}
    path = write_result(arguments.name, payload, device=arguments.device)
    draw(results, path.with_suffix(".png"))
    print(f"wrote {path.name} and {path.with_suffix('.png').name} to {path.parent.name}/")


if __name__ == "__main__":
    main()
