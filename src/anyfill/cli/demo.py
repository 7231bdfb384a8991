"""``anyfill demo``: train on built-in data for a minute, then show what one model can answer.

    digits    three ways to train, equal seconds each; held-out digits scored; half-erased digits filled by the first
    penguins  one model of a mixed table; one held-out row asked many ways

Everything lands in one folder that appears as a whole: index.html, the pictures, results.json and the trained models.
"""

import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from torch import Tensor

from anyfill.checks import require_positive
from anyfill.cli.demo_digits import CONTENDERS, Fill, dream, fill, questions_for, score, threads_for, train
from anyfill.cli.demo_penguins import STEPS, ask_penguin, held_out_nats, shown_row, train_penguins
from anyfill.cli.demo_pictures import DREAMS_PER_ROW, THEMES, draw_dreams, draw_fills
from anyfill.cli.demo_report import Report, results, show, write_page
from anyfill.cli.examples import Digits, digits, penguins
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
        draws: from which it is estimated what would tell most.
        orders: random orders in a bound or an estimate.
    """

    held_out: int = 64
    samples: int = 6
    dreams: int = 20
    penguin_steps: int = STEPS
    draws: int = 200
    orders: int = 32


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
        _draw(place, images, fills, dream(filler, sizes.dreams, seed))

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


def _draw(place: Path, images: Digits, fills: list[Fill], dreams: Tensor) -> None:
    """The pictures, each for light and for dark pages."""
    for name, theme in THEMES.items():
        suffix = "" if name == "light" else f"-{name}"
        draw_fills(fills, images.shape, theme, place / f"fills{suffix}.png")
        draw_dreams(dreams, images.shape, theme, place / f"dreams{suffix}.png", per_row=DREAMS_PER_ROW)
