"""SFARM's Figure 5: what to measure next (SAIA) on Energy, Yacht and Concrete, standard splits.

For every test row, from nothing known: predict the target, choose a feature, learn its true
value, until all are known. Curves of the root mean squared error of the mean prediction and of - log p(target), both in
standardised units, against the number of features known; area = trapezoid / d, lower is better.

    auto, sfarm   informed: argmax_j I(y; x_j | x_O) by the any-order estimator (``anyfill.evaluation.information``)
                  global order: one order for all rows, greedy by the mean of the same reward over 60 training rows
                  told: the same, greedy by what measuring really told in up to 300 training rows
                  random: the mean of five random runs; oracle: see below
    miwae, vae    latent: EDDI's reward through the encoder, as the paper has them; random as above

sfarm is the paper's network stopped early (``sfarm-stop`` of ``experiments.common``). Four estimators of the
information are at hand: "draws" and "divergence", from joint draws; "quantiles", the divergence at equally likely
points of each p(x_j | x_O) instead, which leaves less noise to mislead the choice; and "calibrated", the same held
against what measuring told in up to 300 training rows, which is what ``TableModel.next_feature`` does with the rows it
keeps (``anyfill.tables.measure``: the same function makes the chooser). Which one a model uses is chosen without any
test row: a tenth of the training rows of the first splits is kept aside, models are trained on the rest, and the
estimator with the lowest area (root mean squared error, relative to random, mean over sets) on the rows kept aside is
taken for all sets and splits. The global order uses the same one ("quantiles" for "calibrated", which has an order of
its own: "told" is what calibration comes to where all rows are alike).

"oracle" looks at the answer: argmax_j log p(y | x_j, x_O) at the true values. No policy may do that; how little even it
gains over the global order says how little there is to be gained by telling rows apart.

Differences of areas are paired over splits, with 95 % percentile bootstrap intervals that resample splits. The paper
prints a figure without numbers, so there is none to put beside ours; its claim is the order informed SFARM < MIWAE.

    python -m experiments.sfarm.fig5 --workers 14

Lines of earlier settings are in ``results/sfarm/logs/fig5/before.jsonl``; none of them is used, but they had been
looked at.
Those with "rows": 40 are of at most 40 test rows, another chooser and 1800 steps on Yacht. Those of auto with "rows":
null are of all test rows and the jobs above, by a calibration that cut gains at 3 nats and was content with ten
reference rows.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.tables.acquisition import acquire_rows, global_order
from anyfill.tables.acquisition_curves import Curves
from anyfill.tables.calibrated import Observed
from anyfill.tables.choosers import AtRandom, Chooser, Informed, InOrder, Latent, Oracle, Rewarding
from anyfill.tables.measure import ROWS, calibrated_chooser, kept_rows
from benchmarks.common import RESULTS, write_result
from experiments.common import (
    SETS,
    Job,
    Split,
    data_folder,
    hidden_cells,
    load_split,
    nll_of_unobserved,
    run_jobs,
    shown,
    trained,
)
from experiments.sfarm.fig5_report import CHOOSERS, draw, summarise, tabulate

MODELS = {"auto": "auto", "sfarm": "sfarm-stop", "miwae": "miwae", "vae": "vae"}
ESTIMATORS = ("draws", "divergence", "quantiles", "calibrated")
LATENT = ("miwae", "vae")
"""Models whose choice is EDDI's: there is no estimator to choose."""
RANDOM_RUNS, ORDER_ROWS = 5, 60


def rewarding(estimator: str, draws: int, train: torch.Tensor, seed: int) -> Rewarding:
    """The informed choice by this estimator: "quantiles" and "calibrated" as in ``TableModel.next_feature``."""
    if estimator not in ("quantiles", "calibrated"):
        return Informed(draws, estimator=estimator)  # type: ignore[arg-type]
    reference = kept_rows(Rows.from_values(train), ROWS, seed=seed)
    if reference is None:
        raise ValueError("no training rows")
    chooser = calibrated_chooser(reference)
    return chooser if estimator == "calibrated" else chooser.base


def kept_aside(split: Split, seed: int) -> Split:
    """The training rows alone: nine tenths to train on, one to choose an estimator by."""
    order = torch.randperm(len(split.train), generator=torch.Generator().manual_seed(seed))
    aside = len(order) // 10
    return replace(split, train=split.train[order[aside:]], test=split.train[order[:aside]])


def numbers(curves: list[Curves]) -> dict[str, Any]:
    """Curves and areas, averaged over runs."""
    found: dict[str, Any] = {}
    for metric in ("rmse", "nll"):
        found[metric] = torch.stack([one.curve(metric) for one in curves]).mean(0).tolist()  # type: ignore[arg-type]
        found[f"{metric}_area"] = float(np.mean([one.area(metric) for one in curves]))  # type: ignore[arg-type]
    return found


def work(job: Job) -> dict[str, Any]:
    """Train one model on one split and run all its choosers; or, for a choice, all estimators on rows kept aside."""
    split, model_name, seed = load_split(Path(job["data"]), job["set"], job["split"]), job["model"], job["split"]
    choosing = job["estimator"] == "choose"
    if choosing:
        split = kept_aside(split, seed)
    model = trained(MODELS[model_name], split, seed=seed, steps=job["steps"])
    rows, target = Rows.from_values(split.test[: job["rows"]]), split.test.shape[1] - 1
    if choosing:
        ways: dict[str, Chooser] = {name: rewarding(name, job["draws"], split.train, seed) for name in job["among"]}  # type: ignore[misc]
        ways["random"] = AtRandom()
    else:
        ways = {name: _chooser(name, job, model, split, target) for name in CHOOSERS[model_name]}
    result: dict[str, Any] = {}
    for name, chooser in ways.items():
        runs = RANDOM_RUNS if name == "random" else 1
        curves = [
            acquire_rows(model, rows, target, chooser, generator=torch.Generator().manual_seed(100 * run + seed))
            for run in range(runs)
        ]
        result[name] = numbers(curves) | {"first": torch.bincount(curves[0].chosen[:, 0], minlength=target).tolist()}
        if isinstance(chooser, InOrder):
            result[name]["order"] = list(chooser.order)
    unobserved = None if choosing else _unobserved(job, model, split)
    return {"curves": result, "test_rows": len(rows), "unobserved": unobserved}


def _plain(job: Job) -> str:
    """The estimator whose mean makes the global order: calibrated, it would be that of "told"."""
    return "quantiles" if job["estimator"] == "calibrated" else job["estimator"]


def _unobserved(job: Job, model: Model, split: Split) -> dict[str, Any]:
    """What ``sfarm_table1`` would say of this model: it need not train the same one again (its ``--also``)."""
    hidden, few = hidden_cells(*split.test.shape, seed=job["split"]), job["steps"] is not None
    return nll_of_unobserved(
        model, split.test, hidden, orders=2 if few else 20, draws=50 if few else 2000, seed=job["split"]
    )


def _chooser(name: str, job: Job, model: Model, split: Split, target: int) -> Chooser:
    match name:
        case "informed":
            return rewarding(job["estimator"], job["draws"], split.train, job["split"])  # type: ignore[return-value]
        case "oracle":
            return Oracle()
        case "latent":
            return Latent(job["draws"])
        case "random":
            return AtRandom()
    generator = torch.Generator().manual_seed(job["split"])
    most, by = ROWS, Observed()
    if name == "order":
        most, by = ORDER_ROWS, rewarding(_plain(job), job["draws"], split.train, job["split"])
    some = split.train[torch.randperm(len(split.train), generator=generator)[:most]]
    return InOrder(global_order(model, Rows.from_values(some), target, by=by, generator=generator))


def chosen_estimators(lines: list[dict[str, Any]], models: list[str]) -> dict[str, dict[str, Any]]:
    """For each model the estimator of the lower mean area relative to random, and what it was chosen by."""
    found: dict[str, dict[str, Any]] = {}
    for model in models:  # one without results keeps the default
        own = [line["curves"] for line in lines if line["job"]["model"] == model]
        if not own:
            continue
        ratio = {
            name: float(np.mean([one[name]["rmse_area"] / one["random"]["rmse_area"] for one in own]))
            for name in own[0]
            if name != "random"
        }
        found[model] = {"estimator": min(ratio, key=lambda name: ratio[name]), "ratio": ratio, "runs": len(own)}
    return found


def main() -> None:
    """Choose the estimator, run what is missing, print the table, write JSON and PNG."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--methods", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--choose", type=int, default=1, help="splits whose training rows choose the estimator")
    parser.add_argument("--among", nargs="+", default=list(ESTIMATORS), choices=ESTIMATORS, help="what is chosen from")
    parser.add_argument("--estimator", choices=ESTIMATORS, help="this one, unchosen")
    parser.add_argument("--draws", type=int, default=60, help="joint draws for each row and step, where there are any")
    parser.add_argument("--rows", type=int, help="the most test rows of a split; by default all")
    parser.add_argument("--workers", type=int, default=2, help="processes; 0 = in this one")
    parser.add_argument("--minutes", type=float, help="begin no job after so many (of each of the two stages)")
    parser.add_argument("--lines", type=Path, default=RESULTS / "sfarm" / "logs" / "fig5" / "jobs.jsonl")
    parser.add_argument("--name", default="sfarm/fig5")
    parser.add_argument("--smoke", action="store_true", help="a few steps, rows and draws, two splits")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.splits, arguments.draws, arguments.rows = 2, 4, 6
    base: Job = {"steps": 20 if arguments.smoke else None, "draws": arguments.draws, "rows": arguments.rows}
    base["reference"] = ROWS
    base["data"] = str(arguments.data)

    def jobs(splits: int, models: list[str], estimators: dict[str, str]) -> list[Job]:
        dear = {"auto": 0, "sfarm": 1, "miwae": 2, "vae": 3}
        ordered = sorted(models, key=lambda model: dear[model])
        sets = [name for name in ("concrete", "energy", "yacht") if name in arguments.sets]
        return [
            {"set": name, "split": split, "model": model, "estimator": estimators[model], **base}
            # Outermost, so that all models have met the same splits when time runs out; the last first, as Table 1
            # takes what is said there of MIWAE and VAE (``table1 --also``).
            for split in reversed(range(splits))
            for model in ordered
            for name in sets
        ]

    run = {"workers": arguments.workers, "minutes": arguments.minutes}
    choice: dict[str, dict[str, Any]] = {}
    if arguments.estimator is None:
        choosing = [model for model in arguments.methods if model not in LATENT]
        asked = jobs(arguments.choose, choosing, dict.fromkeys(MODELS, "choose"))
        asked = [{**job, "among": arguments.among} for job in asked]
        choice = chosen_estimators(run_jobs(work, asked, arguments.lines, **run), choosing)
        print("estimators, by rows kept aside from training:", choice, flush=True)
    taken = {model: choice.get(model, {}).get("estimator", arguments.estimator or "quantiles") for model in MODELS}
    taken |= dict.fromkeys(LATENT, "latent")
    lines = run_jobs(work, jobs(arguments.splits, arguments.methods, taken), arguments.lines, **run)
    results = summarise(lines, arguments.sets, arguments.methods)
    print(tabulate(results))
    payload = {"arguments": shown(vars(arguments)), "choice": choice, "results": results, "protocol": __doc__}
    path = write_result(arguments.name, payload)
    draw(results, path.with_suffix(".png"))
    print(f"wrote {path.name} and {path.with_suffix('.png').name} to {path.parent.name}/")


if __name__ == "__main__":
    main()
