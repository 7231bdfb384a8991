"""What the one-pass model gains from what it is given: reading both ways, weighing questions, shares, dropout: text8.

Models trained for equal steps (or seconds), asked the three questions of ``text8.py`` in bits per asked character:
joint, marginal (of a random subset) and conditional (everything else given a random subset, read directly).

    causal       a given value sees the given ones before it; every term of the chain is scored and counts once
    told         the same network, but half of the rows that are cut are told the given block, which is not scored:
                 what the practice does without the sight
    full         given values see one another; half of the rows that are cut are told
    blank        as full, and ignored places are read as blanks: what is trained of a subset has room at its gaps
    …-questions  every block counts alike, whatever its length (``OnePassLoss.weigh``)
    …-dropout20  dropout

The first 11.5 M characters are trained on, and chunks of ``text8.py``'s *validation* part are asked about, so what is
chosen here has not seen what is reported there; the weights are the last ones. One process for each variant; what is
recorded is not run again. Runs of different sizes and budgets do not compare with one another, and seconds on a
processor that others use compare with nothing: use steps there.

    python -m experiments.one_pass.ablation --steps 1500                               # 1 M, N = 64, on a processor
    python -m experiments.one_pass.ablation --size 25M --length 250 --batch 256 --seconds 100   # CUDA: bf16, compiled
    python -m experiments.one_pass.ablation --variant causal --variant full-questions  # these two alone
"""

import argparse
import json
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from anyfill.model import Model
from anyfill.text.recipes import TEXT_SIZES, text_model, text_objective
from anyfill.text.tokens import Windows
from anyfill.text.vocabulary import TEXT8
from anyfill.training import fit
from benchmarks.common import RESULTS, environment
from experiments.mac.text8_ask import ask
from experiments.mac.text8_common import Parts, options_of, read_parts, shown, spread, write_json
from experiments.where import data_folder

NAME = "ablation"
ASKED = ("joint", "marginal", "conditional", "difference")


@dataclass(frozen=True, slots=True)
class Variant:
    """What differs."""

    given: Literal["causal", "full"] = "causal"
    conditioned_share: float = 0.0
    weigh: Literal["terms", "questions"] = "terms"
    joint_share: float = 0.33
    dropout: float = 0.0
    ignored: Literal["left out", "blank"] = "left out"


VARIANTS: dict[str, Variant] = {
    "causal": Variant(),
    "told": Variant(conditioned_share=0.5),
    "full": Variant("full", 0.5),
    "causal-questions": Variant(weigh="questions"),
    "told-questions": Variant(conditioned_share=0.5, weigh="questions"),
    "full-questions": Variant("full", 0.5, "questions"),
    "causal-questions-dropout20": Variant(weigh="questions", dropout=0.2),
    "full-questions-dropout20": Variant("full", 0.5, "questions", dropout=0.2),
    "blank": Variant("full", 0.6, joint_share=0.1, dropout=0.05, ignored="blank"),
    "blank-questions": Variant("full", 0.6, "questions", 0.1, 0.05, "blank"),
    "blank-told75": Variant("full", 0.75, joint_share=0.1, dropout=0.05, ignored="blank"),
    "blank-dropout0": Variant("full", 0.6, joint_share=0.1, ignored="blank"),
    "left-out": Variant("full", 0.6, joint_share=0.1, dropout=0.05),
}


def chunks_of(parts: Parts, length: int, count: int) -> Tensor:
    """int64 (count, length): chunks of the validation part, evenly spaced."""
    whole = parts.validation.flatten()
    return spread(whole[: len(whole) // length * length].view(-1, length), count)


def run(name: str, arguments: argparse.Namespace) -> None:
    """Train one variant, ask it, and write it down."""
    variant, device = VARIANTS[name], torch.device("cuda" if torch.cuda.is_available() else "cpu")
    parts = read_parts(arguments.data, device)
    objective = text_objective(
        "one_pass_filler",
        arguments.length,
        joint_share=variant.joint_share,
        conditioned_share=variant.conditioned_share,
        weigh=variant.weigh,
    )
    source, options = Windows(parts.train, arguments.length), options_of(arguments, device)
    if arguments.steps is not None:
        options = replace(options, steps=arguments.steps, seconds=None)

    def fresh() -> Model:
        made = text_model(
            "one_pass_filler",
            arguments.length,
            TEXT8.size,
            size=arguments.size,
            dropout=variant.dropout,
            given=variant.given,
            ignored=variant.ignored,
            seed=arguments.seed,
        )
        return made.to(device)

    if options.compile:  # before the clock starts
        fit(fresh(), source, objective, replace(options, steps=3, seconds=None))
    model, start = fresh(), time.process_time()
    result = fit(model, source, objective, options)
    busy = time.process_time() - start
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    answers = ask(model.to(device), chunks_of(parts, arguments.length, arguments.chunks), arguments.seed)
    record = {
        "variant": name,
        "settings": asdict(variant),
        "arguments": {key: value for key, value in shown(arguments).items() if key != "variant"},
        "steps": result.steps,
        "seconds": result.seconds,
        "processor_seconds": busy,
        "steps_per_second": result.steps / result.seconds,
        "steps_per_processor_second": result.steps / busy,
        "loss": result.loss,
        "answers": {question: answers[question] for question in ASKED},
        "environment": environment(device),
    }
    write_json(path_of(name, arguments), record)


def path_of(name: str, arguments: argparse.Namespace) -> Path:
    """Where the record of a variant lies: size, length and budget are part of its name."""
    budget = f"{arguments.seconds:g}s" if arguments.steps is None else f"{arguments.steps}steps"
    return arguments.results / "logs" / NAME / f"{arguments.size}-{arguments.length}-{budget}-{name}.json"


def report(results: Path) -> dict[str, Any]:
    """NAME.json from all records, without the bits of single chunks, and a line printed for each."""
    runs: dict[str, dict[str, Any]] = {}
    for path in sorted((results / "logs" / NAME).glob("*.json")):
        record = json.loads(path.read_text())
        for answer in record["answers"].values():
            answer.pop("each", None)
        runs[path.stem] = record
        bits = ", ".join(
            f"{question} {answer['bits']:.3f} ± {answer['stderr'] or 0:.3f}"
            for question, answer in record["answers"].items()
        )
        print(f"{path.stem}: {bits}; {record['steps']} steps, {record['steps_per_second']:.2f} a second")
    document = {"name": NAME, "environment": environment(), "runs": runs}
    write_json(results / f"{NAME}.json", document, indent=1)
    return document


def parser() -> argparse.ArgumentParser:
    """Which variants, how large, how long."""
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    whole.add_argument("--variant", action="append", choices=list(VARIANTS), help="may be repeated; by default all")
    whole.add_argument("--size", default="1M", choices=list(TEXT_SIZES))
    whole.add_argument("--length", type=int, default=64)
    whole.add_argument("--seconds", type=float, default=600.0)
    whole.add_argument("--steps", type=int, help="instead of seconds")
    whole.add_argument("--batch", type=int, default=32)
    whole.add_argument("--rate", type=float, default=3e-3)
    whole.add_argument("--chunks", type=int, default=1000, help="chunks asked about")
    whole.add_argument("--seed", type=int, default=0)
    whole.add_argument("--data", type=Path, default=data_folder())
    whole.add_argument("--results", type=Path, default=RESULTS / "one_pass")
    return whole


def main() -> None:
    """What is not recorded yet, each in a process of its own."""
    arguments = parser().parse_args()
    for name in arguments.variant or VARIANTS:
        if not path_of(name, arguments).exists():
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as apart:
                apart.submit(run, name, arguments).result()
    report(arguments.results)


if __name__ == "__main__":
    main()
