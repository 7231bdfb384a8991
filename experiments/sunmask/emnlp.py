"""EMNLP2017 News: SUNMASK, SUNDAE, one-pass and left-to-right, quality against variety (SUNMASK's Figure 2).

The training set of this benchmark (270,000 sentences) is not to be had: public mirrors keep its validation and test
files, 10,000 sentences each. So 9,000 sentences of the validation file train, its last 1,000 choose the weights, and
the test file is the references. THIS IS ANOTHER, DATA-POOR TASK: a thirtieth of the text, 5,544 words of which 294 are
seen once. Every model learns its sentences by heart sooner or later. Phrases taken from them are good text and raise
BLEU against the test file, but many samples take the same ones, which raises Self-BLEU. The published points (models of
the whole training set) are drawn for orientation and cannot be compared with ours; our models can, with each other.

    train    one model: DIR/RECIPE (16-bit weights), RECIPE.train.json, RECIPE.N.log.jsonl
    draw     DIR/LABEL.T.txt.gz for each temperature T, coarse ones first; a line each in DIR/LABEL.draws.jsonl;
             for left_to_right and one_pass first the exact bits per word of the test file, in DIR/LABEL.bits.json.
             Recipes chain1, chain2, chain3 are Markov chains, which need no training
    grade    BLEU-2 … 5 against the test file, Self-BLEU-2 … 5, their errors, and how much was copied: DIR/grades.json
    report   results/sunmask/emnlp.json and .png; Self-BLEU depends on the number of sentences, so only files of
             one number are shown together

BLEU and Self-BLEU are those of GansFallingShort (``anyfill.text.metrics``). With temperature t a word's
probability is p^(1/t). SUNMASK and SUNDAE sample in 2 · 52 passes (their authors: 20 · 52, up to 1,000); draw --rounds
with several numbers draws with each, as DIR/LABEL_ROUNDS.T.txt.gz. Errors are those of ``emnlp_errors``.

Tiny data are learned in a few epochs, and a learning rate that falls to nothing at the right moment is worth more than
the best weights of a run that goes too far. So a model may be trained several times, for longer and longer (--steps);
the weights with the best validation loss are kept. --seconds is the time for all of it, compiling not counted. Beside
it stand the epochs that it was, and the products per second: those of one row's loss and gradient, counted, times the
rows; validation is not among them.

Captions of pictures instead of news (--set captions for all commands): 59,000 sentences to learn from. There the size
that was released for news (16 layers of 512, ends and padding written by the model) is trained:

    python -m experiments.sunmask.emnlp train --set captions --recipe sunmask --size 25M --depth 16 --written --graphs \
        --batch 256 --dropout 0.1 --seconds 55 --validate-every 250 --out runs/captions

    python -m experiments.sunmask.emnlp train --recipe sunmask --seconds 180 --out runs/emnlp
    python -m experiments.sunmask.emnlp draw --recipe sunmask --sentences 10000 --out runs/emnlp
    python -m experiments.sunmask.emnlp grade --out runs/emnlp
    python -m experiments.sunmask.emnlp report --out runs/emnlp
"""

import argparse
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.objectives.objective import Objective
from anyfill.recipes import sunmask
from anyfill.rows import Rows
from anyfill.text.recipes import TEXT_SIZES, text_objective
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.training import DivergedError, FitOptions, JsonLines, fit, save_model
from benchmarks.common import environment
from experiments.sunmask import emnlp_common as news
from experiments.sunmask.emnlp_draw import draw
from experiments.sunmask.emnlp_grade import grade, report
from experiments.where import data_folder

STEPS: dict[str, tuple[int, ...]] = {"left_to_right": (600, 1200, 2400), "one_pass": (2000, 6000)}
"""Runs of a training; the others are trained once, as long as the time allows: their questions never repeat."""
TEMPERATURES = (0.4, 0.55, 0.7, 0.8, 0.9, 1.0)


def told(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments that matter, without paths."""
    return {name: value for name, value in vars(arguments).items() if not isinstance(value, Path) and name != "run"}


def train(arguments: argparse.Namespace) -> None:
    """Train one model, several times if it says so, and keep the best."""
    recipe, out = arguments.recipe, arguments.out
    label = f"{recipe}-kept" if arguments.keep_given else recipe
    record = out / f"{label}.train.json"
    if record.exists():
        print(f"{label}: trained already")
        return
    out.mkdir(parents=True, exist_ok=True)
    device = torch.device(arguments.device)
    corpus = news.load_news(arguments.data, arguments.set)
    length, written = corpus.length, arguments.written and recipe in news.DENOISERS
    vocabulary = news.vocabulary_for(recipe, corpus.words, written=written)
    rows = news.rows_for(recipe, corpus.train, corpus.words, length, written=written)
    held = news.without_unknown(corpus.valid, corpus.words)
    valid = news.rows_for(recipe, held, corpus.words, length, written=written)
    objective = kept_objective(recipe, length) if arguments.keep_given else text_objective(recipe, length)
    options = FitOptions(
        steps=10**9,
        batch_size=arguments.batch,
        learning_rate=arguments.rate,
        warmup_steps=100,
        optimizer=arguments.optimizer,
        betas=(0.9, 0.95),
        weight_decay=arguments.weight_decay,
        ema=arguments.ema,
        precision="bf16-mixed" if device.type == "cuda" else "32-true",
        compile=device.type == "cuda",
        graphs=arguments.graphs and device.type == "cuda",
        report_every=50,
        validate_every=arguments.validate_every,
        save_every=10**9,
        seed=arguments.seed,
        device="cuda" if device.type == "cuda" else "cpu",
    )

    def fresh() -> Model:
        sizes = {name: getattr(arguments, name) for name in ("size", "depth", "dropout", "seed")}
        return news.made(recipe, vocabulary.size, length, written=written, **sizes)

    if options.compile:  # a throw-away model first, so that the clock measures training alone
        fit(fresh(), rows, objective, replace(options, steps=3), validation=valid)
    print(f"{label}: ready", flush=True)
    if said := news.wait_for(arguments.after):
        arguments.seconds = float(said)
    runs: list[dict[str, Any]] = []
    spent = 0.0
    for number, steps in enumerate(arguments.steps or STEPS.get(recipe, (10**9,))):
        left = arguments.seconds - spent
        if runs and left < 0.1 * arguments.seconds:
            break
        model = fresh()
        log = out / f"{label}.{number}.log.jsonl"
        log.unlink(missing_ok=True)
        started = time.monotonic()
        timed = replace(options, steps=steps, seconds=left)
        try:
            done = fit(model, rows, objective, timed, validation=valid, metrics=[JsonLines(log)])
        except DivergedError as error:
            if not runs:
                raise
            print(f"{label}: {error}", flush=True)  # the runs before it count
            break
        spent += time.monotonic() - started
        runs.append({"max_steps": steps, **asdict(replace(done, folder=None))})
        best = min(run["best_validation_loss"] for run in runs)
        if done.best_validation_loss == best:
            save_model(model.cpu().half(), out / label, notes=vocabulary_notes(vocabulary))
        print(
            f"{label}: {done.steps} steps in {done.seconds:.0f} s, best {done.best_validation_loss:.2f} nats a row",
            flush=True,
        )
    print(f"{label}: trained, {spent:.1f} s in all", flush=True)
    once = operations(fresh(), rows, objective)
    seen, taken = options.batch_size * sum(run["steps"] for run in runs), sum(run["seconds"] for run in runs)
    pace = {"epochs": seen / len(rows), "operations_a_row": once, "tflops": once * seen / taken / 1e12}
    print(f"{label}: {pace['epochs']:.1f} epochs, {pace['tflops']:.1f} TFLOP/s", flush=True)
    news.write_json(
        record,
        {
            "arguments": told(arguments),
            "options": asdict(options),
            **pace,
            "parameters": sum(weights.numel() for weights in fresh().parameters()),
            "sentences": {"train": len(rows), "validation": len(valid)},
            "codes": vocabulary.size,
            "runs": runs,
            "environment": environment(device),
        },
    )


def kept_objective(recipe: str, length: int) -> Objective:
    """SUNMASK's, but given words stay what they are through both steps."""
    if recipe != "sunmask":
        raise refuse("keep_given", expected="sunmask", got=recipe)
    return sunmask.objective(length, redraw_given=False)


def operations(model: Model, rows: Rows, objective: Objective) -> float:
    """Floating-point operations of a row's loss and gradient: products of matrices, two for each of their numbers."""
    generator, counter = torch.Generator().manual_seed(0), FlopCounterMode(display=False)
    few = rows.take(torch.arange(2))
    rank = objective.sample_rank(2, generator=generator)
    with counter:
        objective.loss(model.train(), few, rank, generator=generator).sum().backward()
    return counter.get_total_flops() / 2


def main() -> None:
    """One of the commands above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    made: dict[str, argparse.ArgumentParser] = {}
    for run in (train, draw, grade, report):
        made[run.__name__] = one = commands.add_parser(run.__name__, help=run.__doc__)
        one.set_defaults(run=run)
        one.add_argument("--out", type=Path, required=True, help="models, sentences and grades")
        one.add_argument("--set", choices=["news", "captions"], default="news")
        if run is not report:
            one.add_argument("--data", type=Path, default=data_folder())
        if run in (train, draw):
            one.add_argument("--recipe", required=True, choices=[*news.RECIPES, *(news.MARKOV if run is draw else ())])
            one.add_argument("--seed", type=int, default=0)
            one.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
            held = "a lock file: begin when nobody holds it (compiled before); a number in it is the seconds to train"
            one.add_argument("--after", type=Path, help=held)
    one = made["train"]
    one.add_argument("--seconds", type=float, default=180.0, help="for all runs together")
    one.add_argument("--steps", type=int, nargs="+", help="one run of at most so many steps each")
    one.add_argument("--size", default="6M", choices=list(TEXT_SIZES))
    one.add_argument("--depth", type=int, help="layers, if not the size's own; released: --size 25M --depth 16")
    one.add_argument("--written", action="store_true", help="SUNMASK, SUNDAE: ends and padding are written, not told")
    one.add_argument("--keep-given", action="store_true", help="SUNMASK: given words stay in both steps (RECIPE-kept)")
    one.add_argument("--graphs", action="store_true", help="steps are replayed as CUDA graphs")
    one.add_argument("--dropout", type=float, default=0.3)
    one.add_argument("--batch", type=int, default=128)
    one.add_argument("--rate", type=float, default=2e-3)
    one.add_argument("--optimizer", default="muon", choices=["muon", "adamw"])
    one.add_argument("--weight-decay", type=float, default=0.1)
    one.add_argument("--ema", type=float)
    one.add_argument("--validate-every", type=int, default=100)
    one = made["draw"]
    one.add_argument("--models", type=Path, help="where the models are, if not in --out")
    one.add_argument("--model", help="name of the model's folder; the recipe if not said")
    one.add_argument("--label", help="name of the curve and its files; the recipe if not said")
    one.add_argument("--temperatures", type=float, nargs="+", default=list(TEMPERATURES))
    one.add_argument("--sentences", type=int, default=10_000)
    one.add_argument("--rounds", type=int, nargs="+", default=[2 * news.LENGTH], help="passes of SUNMASK and SUNDAE")
    one.add_argument("--typical", type=float, help="SUNMASK, SUNDAE: mass of typical words")
    one.add_argument("--top-k", type=int, help="likewise, the most probable words")
    one.add_argument("--keep-trusted", action="store_true", help="SUNMASK: only places that are not trusted accept")
    one.add_argument("--batch", type=int, help="rows at once; 2,500 on a GPU")
    one.add_argument("--bits", type=int, default=10**9 if torch.cuda.is_available() else 500, help="sentences scored")
    one.add_argument("--no-compile", action="store_true")
    made["grade"].add_argument("--first", type=int, help="grade only so many sentences of each file")
    made["report"].add_argument("--sentences", type=int, help="files of which number; the number of most files")
    made["report"].add_argument("--name", default="sunmask/emnlp")
    made["report"].add_argument("--before", type=Path, help="records of an earlier run, shown beside")
    made["report"].add_argument("--mark", default="before", help="what stands behind its labels that are here, too")
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
