"""``anyfill demo``: train on built-in data for a minute, then show what one model can answer.

    digits    three ways to train, equal seconds each; held-out digits scored; half-erased digits filled by the first
    penguins  one model of a mixed table; one held-out row asked many ways

Everything lands in one folder that appears as a whole: index.html, the pictures, results.json and the trained models.
"""

import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from anyfill.checks import require_positive
from anyfill.cli.demo_digits import (
    CONTENDERS,
    QUESTIONS,
    Fill,
    Trained,
    dream,
    fill,
    questions_for,
    score,
    threads_for,
    train,
)
from anyfill.cli.demo_page import draw_pictures, write_page
from anyfill.cli.demo_penguins import STEPS, Answer, ask_penguin, held_out_nats, shown_row, train_penguins
from anyfill.cli.examples import digits, penguins
from anyfill.interface.output import replacing, write_results
from anyfill.interface.progress import clock, watch
from anyfill.interface.threads import environment, threads
from anyfill.training import save_model

MADE_BY = "anyfill demo"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much the demo does beside training; smaller for tests.

    Attributes:
        held_out: digits that are scored.
        samples: fills of each erased digit.
        dreams: digits drawn from nothing.
        penguin_steps: training steps of the table's model.
        draws: from which it is estimated what is most informative.
        orders: random orders in a bound or an estimate.
    """

    held_out: int = 64
    samples: int = 6
    dreams: int = 20
    penguin_steps: int = STEPS
    draws: int = 200
    orders: int = 32


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the demo found.

    Attributes:
        seconds: training time of each digit model.
        seed: of everything random.
        total: seconds that everything took.
        environment: versions and device.
        trained: the digit models with their scores, in the order of the table.
        held_out: how many digits were scored.
        fills: erased digits, filled.
        row: the penguin that was asked about.
        answers: what was asked.
        penguin_nats: - log p of a held-out row: mean and standard error.
        penguin_rows: how many held-out rows.
    """

    seconds: float
    seed: int
    total: float
    environment: dict[str, str | int | None]
    trained: list[Trained]
    held_out: int
    fills: list[Fill]
    row: dict[str, str]
    answers: list[Answer]
    penguin_nats: tuple[float, float]
    penguin_rows: int

    @property
    def best(self) -> int:
        """Which digit model needs the fewest bits for whole digits."""
        return min(range(len(self.trained)), key=lambda i: self.trained[i].scores["joint"].bits)

    @property
    def caption(self) -> str:
        """How the comparison is to be read."""
        worst = max(score.stderr for one in self.trained for score in one.scores.values())
        by: dict[str, list[str]] = {}
        for one in self.trained:
            by.setdefault(one.contender.conditional, []).append(one.contender.name)
        factorizations = ", ".join(f"{how} by {' and '.join(names)}" for how, names in by.items())
        return (
            f"Lower is better; standard errors over digits are up to {worst:.2f}. Passes: what one digit needs at "
            "most, for the three questions in turn. Exact: the model's own number, pixels answered from first to last. "
            f"A conditional log p(asked | given) is read off the network {factorizations}."
        )


def run_demo(
    folder: Path,
    *,
    seconds: float = 20.0,
    seed: int = 0,
    sizes: Sizes | None = None,
    out: Console | None = None,
    err: Console | None = None,
) -> None:
    """Make the demo.

    Args:
        folder: where everything goes; new, empty, or from an earlier demo.
        seconds: training time of each of the three digit models.
        seed: of everything random. The digit models stop by the clock, so their steps still depend on the machine.
        sizes: how much is shown.
        out: for the tables; stdout by default.
        err: for progress; stderr by default.
    """
    require_positive("seconds", seconds)
    sizes = Sizes() if sizes is None else sizes
    out = Console() if out is None else out
    err = Console(stderr=True) if err is None else err
    start = time.monotonic()
    with replacing(folder, MADE_BY) as place:
        report = _make(place, seconds, seed, sizes, err, start)
        write_page(report, place / "index.html")
        write_results(place, MADE_BY, results(report))
    show(report, out)
    address = (folder / "index.html").resolve()
    out.print(f"Done in {clock(time.monotonic() - start)}. Open: {address}", soft_wrap=True, highlight=False)


def _make(place: Path, seconds: float, seed: int, sizes: Sizes, err: Console, start: float) -> Report:
    """Train, ask and draw; pictures and models are written to ``place``."""
    show_progress = partial(watch, console=err)
    images = digits()
    training_threads, scoring_threads = threads_for(images)
    with threads(training_threads):
        trained = [train(one, images, seconds, seed, show_progress) for one in CONTENDERS]
    questions = questions_for(images, sizes.held_out, seed)
    with threads(scoring_threads), err.status("scoring held-out digits") if err.is_terminal else nullcontext():
        x = images.test.x[: sizes.held_out]
        for one in trained:
            for name, question in questions.items():
                one.scores[name] = score(one.model, x, question)
        filler = trained[0].model
        fills = fill(filler, images, samples=sizes.samples, seed=seed)
        draw_pictures(place, images.shape, fills, dream(filler, sizes.dreams, seed))

    birds = penguins()
    bird_model = train_penguins(birds, seed, show_progress, steps=sizes.penguin_steps)
    answers = ask_penguin(bird_model, birds, seed, draws=sizes.draws, orders=sizes.orders)

    for one in trained:
        notes = {"data": "digits", "recipe": one.contender.name, "steps": one.steps, "seconds": one.seconds}
        save_model(one.model, place / "models" / one.contender.name.lower(), notes=notes)
    bird_notes: dict[str, Any] = {"data": "penguins", "columns": birds.table.to_json()}
    save_model(bird_model, place / "models" / "penguins", notes=bird_notes)
    return Report(
        seconds=seconds,
        seed=seed,
        total=time.monotonic() - start,
        environment={**environment(), "training_threads": training_threads, "scoring_threads": scoring_threads},
        trained=trained,
        held_out=sizes.held_out,
        fills=fills,
        row=shown_row(birds),
        answers=answers,
        penguin_nats=held_out_nats(bird_model, birds),
        penguin_rows=len(birds.test),
    )


def results(report: Report) -> dict[str, Any]:
    """The numbers, for ``results.json``."""
    return {
        "seed": report.seed,
        "seconds": report.total,
        "environment": report.environment,
        "digits": {
            "seconds_of_training": report.seconds,
            "held_out": report.held_out,
            "models": [
                {
                    "name": one.contender.name,
                    "conditional_read_as": one.contender.conditional,
                    "parameters": one.parameters,
                    "steps": one.steps,
                    "seconds": one.seconds,
                    "scores": {name: asdict(score) for name, score in one.scores.items()},
                }
                for one in report.trained
            ],
            "fills": [
                {"name": one.name, "bits_per_pixel": one.bits, "kind": one.kind, "passes": one.passes}
                for one in report.fills
            ],
        },
        "penguins": {
            "held_out": report.penguin_rows,
            "nats_per_row": report.penguin_nats[0],
            "stderr": report.penguin_nats[1],
            "row": report.row,
            "answers": [asdict(answer) for answer in report.answers],
        },
    }


def show(report: Report, console: Console) -> None:
    """Print the two tables."""
    birds = Table(
        title="One held-out penguin, asked many ways", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for name in ("asked", "given", "answer", "kind", "cost"):
        birds.add_column(name, overflow="fold")
    for one in report.answers:
        truth = f" (is {one.truth})" if one.truth else ""
        birds.add_row(one.asked, ", ".join(one.given) or "nothing", one.answer + truth, one.kind, one.cost)
    console.print(birds)

    title = f"Bits per pixel on {report.held_out} held-out digits, {report.seconds:g} s of training each"
    digits = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    digits.add_column("", no_wrap=True, min_width=8)
    for name in (*QUESTIONS, "passes", "scored", "steps", "kind"):
        digits.add_column(name, justify="right", no_wrap=True)
    for i, one in enumerate(report.trained):
        cells = [f"{score.bits:.2f}" for score in one.scores.values()]
        row = (*cells, one.passes, one.scoring, f"{one.steps:,}", one.kinds)
        digits.add_row(one.contender.name, *row, style="bold" if i == report.best else "")
    console.print(digits)
    console.print(f"{report.caption}\n", highlight=False)
