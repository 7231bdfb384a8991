"""text8 at equal GPU seconds: ARDM, MAC (both losses), one-pass and plain autoregression, the same 25 M trunk.

    joint         log p of all 250 characters of a chunk
    marginal      of a random subset, its size uniform on 1 … 250
    conditional   of everything else given a random subset, its size uniform on 0 … 249

in bits per asked character, averaged over chunks. All are exact under their model in increasing order. A conditional
is read directly (the given block, then the rest: a normalised distribution). MAC is not trained on that, so there it is
marked untrained, and ``difference`` = log p(all) - log p(given) stands beside it; a difference is normalised only as
far as the network's marginals fit together, so it may look better than any true conditional. Autoregression answers
the joint alone: a line to compare with, not a competitor for the other two questions.

Parts of the 12 M characters: the first 11.5 M are trained on. Of the last 0.5 M the first half validates (every recipe
by its own objective; the weights of the best validation are kept) and the second half, 1,000 chunks, is reported on:
every fourth chunk for every recipe (a masked network needs up to 500 passes a chunk), all where one pass does.

Optimizer, batch and schedule are those of ``vs_ardm.py``, chosen there with the one-pass model. Equal seconds, not
steps: compiling is done on a throw-away model before the clock starts, and ``--turn FILE`` lets several processes take
turns, so that the next one reads and compiles while another trains and no two train at once.

    python -m experiments.mac.text8 train --recipe one_pass --seconds 300 --out runs/text8 --turn runs/turn
    python -m experiments.mac.text8 ask --out runs/text8 --turn runs/turn       # whatever is trained and not yet asked
    python -m experiments.mac.text8 report --out runs/text8                     # from the recorded JSON alone, anywhere
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from anyfill.model import Model
from anyfill.text.recipes import TEXT_SIZES, text_model, text_objective
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.text.vocabulary import TEXT8
from anyfill.training import load_model, save_model
from benchmarks.common import RESULTS, environment
from experiments.mac.text8_ask import ask, draws, judged, rounding, score
from experiments.mac.text8_common import (
    LENGTH,
    Parts,
    options_of,
    read_parts,
    record_of,
    shown,
    spread,
    train_in_turn,
    turn,
    write_json,
)
from experiments.mac.text8_plot import document_of, draw, published, table
from experiments.where import data_folder

COMPARED = ("ardm", "mac_next", "mac_rest", "one_pass", "left_to_right")
OBJECTIVE: dict[str, str] = {"one_pass": "one_pass_filler"}
"""The one-pass model cuts rows in two, a subset and the rest: marginals and completions are what is asked here."""
SAMPLERS_ONLY = ("sunmask", "sundae")
"""Trained for ``samplers.py``, not asked: they show noise, so no one order makes their likelihood exact."""
DROPOUT = {"left_to_right": 0.35, "one_pass": 0.05}
"""300 s are about 40 epochs of 11.5 M characters. Autoregression sees the same chain each time and learns them by
heart; the one-pass model sees it in few of its rows; masked ones see other questions each time: none."""
CHAIN = ("joint_share", "conditioned_share", "weigh")
"""What may be said of the one-pass model's objective; see ``one_pass_ablation.py`` for what each does."""


def train(recipe: str, parts: Parts, arguments: argparse.Namespace, device: torch.device) -> None:
    """Train one recipe in its turn: DIR/R (the model), DIR/R.jsonl (its curve), and last of all DIR/R.json."""
    name = named(recipe, arguments.tag)
    dropout = DROPOUT.get(recipe, 0.0) if arguments.dropout is None else arguments.dropout
    settings = {name: getattr(arguments, name) for name in CHAIN} if recipe == "one_pass" else {}
    reads = {name: getattr(arguments, name) for name in ("given", "ignored")} if recipe == "one_pass" else {}

    def fresh() -> Model:
        made = text_model(
            recipe, LENGTH, TEXT8.size, size=arguments.size, dropout=dropout, seed=arguments.seed, **reads
        )
        return made.to(device)

    options = options_of(arguments, device)
    done = train_in_turn(
        fresh,
        text_objective(OBJECTIVE.get(recipe, recipe), LENGTH, **settings),
        parts,
        options,
        validation=arguments.validation,
        log=arguments.out / f"{name}.jsonl",
        gate=turn(arguments.turn),
    )
    notes = vocabulary_notes(TEXT8) | {
        "text": {"lines": False, "length": LENGTH, "recipe": OBJECTIVE.get(recipe, recipe)}
    }
    save_model(done.model, arguments.out / name, notes=notes)
    record = {
        "recipe": recipe,
        "objective": OBJECTIVE.get(recipe, recipe),
        "tag": arguments.tag,
        "size": arguments.size,
        **record_of(done),
        "dropout": dropout,
        **reads,
        **settings,
        "options": asdict(options),
        "arguments": shown(arguments),
        "environment": environment(device),
    }
    write_json(arguments.out / f"{name}.json", record)
    print(
        f"{name}: {done.result.steps} steps, best after {done.result.best_step}, waited {done.waited:.0f} s", flush=True
    )


def ask_run(name: str, parts: Parts, arguments: argparse.Namespace, device: torch.device) -> None:
    """All answers of one trained model that are not recorded yet; each is written as soon as it is there."""
    path, judge = arguments.out / f"{name}.answers.json", arguments.out / "left_to_right"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    model = load_model(arguments.out / name).to(device)
    whole, few = spread(parts.report, arguments.all_chunks), spread(parts.report, arguments.chunks)
    units: dict[str, Callable[[], Any]] = {
        "rounding": lambda: rounding(model, few[:8]),
        "answers": lambda: ask(model, few, arguments.seed),
        **({"answers_on_all_chunks": lambda: ask(model, whole, arguments.seed)} if model.is_one_pass else {}),
        "score": lambda: score(model, whole, arguments.score, found["answers"]["joint"]),
        "samples": lambda: draws(model, arguments.samples, arguments.seed, device),
    }
    if (judge / "config.json").exists():
        units["samples_under_left_to_right"] = lambda: judged(
            load_model(judge).to(device), found["samples"]["texts"], device
        )
    start = time.perf_counter()
    for unit, answer in units.items():
        torch.set_float32_matmul_precision("high")
        if unit not in found:
            found |= {unit: answer(), "arguments": shown(arguments), "environment": environment(device)}
            write_json(path, found)
    bits = ", ".join(f"{question} {answer['bits']:.3f}" for question, answer in found["answers"].items())
    print(f"{name}: {bits} bits per character, asked in {time.perf_counter() - start:.0f} s", flush=True)


def read_runs(out: Path) -> dict[str, dict[str, Any]]:
    """What is recorded of each run: training, its curve, answers."""
    runs: dict[str, dict[str, Any]] = {}
    for name in sorted(recorded(out), key=lambda each: (_rank(each), each)):
        answers = out / f"{name}.answers.json"
        lines = (out / f"{name}.jsonl").read_text().splitlines()
        runs[name] = json.loads((out / f"{name}.json").read_text()) | {
            "curve": [json.loads(line) for line in lines],
            "asked": json.loads(answers.read_text()) if answers.exists() else {},
        }
    return runs


def report(out: Path, results: Path) -> dict[str, Any]:
    """text8.json, text8.png and copies of the records in ``results``, from the JSON in ``out`` alone."""
    runs, copies = read_runs(out), results / "logs" / "text8"
    copies.mkdir(parents=True, exist_ok=True)
    for path in (out / f"{name}{ending}" for name in runs for ending in (".json", ".answers.json", ".jsonl")):
        if path.exists() and path.resolve() != (copies / path.name).resolve():
            (copies / path.name).write_text(path.read_text())
    document = {"name": "text8", "environment": environment(), **document_of(runs, LENGTH)}
    write_json(results / "text8.json", document, indent=1)
    draw(document, results / "text8.png")
    print("\n".join([*table(document), "", *published()]))
    return document


def named(recipe: str, tag: str) -> str:
    """The name of a run: its recipe, and its tag if it has one."""
    return f"{recipe}-{tag}" if tag else recipe


def recorded(out: Path) -> list[str]:
    """The names of all runs that are trained."""
    return sorted(path.stem for path in out.glob("*.json") if not path.name.endswith(".answers.json"))


def _rank(name: str) -> int:
    recipe = name.split("-")[0]
    return COMPARED.index(recipe) if recipe in COMPARED else len(COMPARED)


def parser() -> argparse.ArgumentParser:
    """train, ask, report."""
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = whole.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--out", type=Path, required=True, help="models and raw records")
    common.add_argument("--data", type=Path, default=data_folder())
    common.add_argument("--recipe", action="append", choices=[*COMPARED, *SAMPLERS_ONLY], help="may be repeated")
    common.add_argument("--tag", default="", help="a second run of a recipe, beside the first")
    common.add_argument("--turn", type=Path, help="a lock file: only one process at a time trains, or asks")
    common.add_argument("--seed", type=int, default=0)
    one = commands.add_parser("train", parents=[common], help="by default the five that are compared")
    one.add_argument("--seconds", type=float, default=300.0)
    one.add_argument("--size", default="25M", choices=list(TEXT_SIZES))
    one.add_argument("--batch", type=int, default=256)
    one.add_argument("--rate", type=float, default=3e-3)
    one.add_argument("--dropout", type=float, help=f"by default {DROPOUT}, else 0")
    one.add_argument("--joint-share", type=float, default=0.08, help="one-pass: share of rows from first to last")
    one.add_argument(
        "--conditioned-share", type=float, default=0.8, help="one-pass: share of the others, told what is given"
    )
    one.add_argument("--weigh", choices=("terms", "questions"), default="terms", help="one-pass: what counts once")
    one.add_argument("--given", choices=("causal", "full"), default="full", help="one-pass: how given values are read")
    one.add_argument("--ignored", choices=("left out", "blank"), default="blank", help="one-pass: how ignored are read")
    one.add_argument("--validation", type=int, default=512, help="chunks that validate, in whole batches")
    two = commands.add_parser("ask", parents=[common], help="by default whatever is trained and can be asked")
    two.add_argument("--chunks", type=int, default=250, help="chunks asked of every recipe")
    two.add_argument("--all-chunks", type=int, default=1000, help="chunks asked of recipes that take one pass")
    two.add_argument("--score", type=int, default=2000, help="chunks scored against the clock")
    two.add_argument("--samples", type=int, default=64, help="chunks drawn")
    three = commands.add_parser("report", parents=[common])
    three.add_argument("--results", type=Path, default=RESULTS / "mac")
    return whole


def main() -> None:
    """Do what is not recorded yet."""
    arguments = parser().parse_args()
    if arguments.command == "report":
        report(arguments.out, arguments.results)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    parts = read_parts(arguments.data, device)
    if arguments.command == "train":
        for recipe in arguments.recipe or COMPARED:
            if not (arguments.out / f"{named(recipe, arguments.tag)}.json").exists():
                train(recipe, parts, arguments, device)
        return
    for name in trained(arguments):
        with turn(arguments.turn):
            ask_run(name, parts, arguments, device)


def trained(arguments: argparse.Namespace) -> list[str]:
    """The runs to ask: those named, or all in the folder; of those, the ones that are trained and have answers."""
    if arguments.recipe is None and not arguments.tag:
        found = recorded(arguments.out)
    else:
        found = [named(recipe, arguments.tag) for recipe in arguments.recipe or COMPARED]
    found = [name for name in found if (arguments.out / f"{name}.json").exists()]
    return [name for name in found if name.split("-")[0] in COMPARED]


if __name__ == "__main__":
    main()
