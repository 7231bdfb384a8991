"""``anyfill demo``: train on built-in data for a minute, then show what one model can answer.

    digits    three ways to train, equal seconds each; held-out digits scored; half-erased digits filled by the first
    penguins  one model of a mixed table; one held-out row asked many ways

All numbers are in one document. It is told three times: as results.json, as tables in the terminal and as a page with
pictures. Everything lands in one folder that appears as a whole, the trained models in it.
"""

import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from anyfill.checks import require_positive
from anyfill.cli import demo_digits, demo_penguins
from anyfill.cli.demo_pictures import draw_pictures
from anyfill.cli.demo_report import Document, show, written
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
    penguin_steps: int = demo_penguins.STEPS
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
    out, err = out or Console(), err or Console(stderr=True)
    start = time.monotonic()
    with replacing(folder, MADE_BY) as place:
        document = _make(place, seconds, seed, sizes or Sizes(), err)
        document["seconds"] = time.monotonic() - start
        (place / "index.html").write_text(written(document, MADE_BY), encoding="utf-8")
        write_results(place, MADE_BY, document)
    show(document, out)
    address = (folder / "index.html").resolve()
    out.print(f"Done in {clock(time.monotonic() - start)}. Open: {address}", soft_wrap=True, highlight=False)


def _make(place: Path, seconds: float, seed: int, sizes: Sizes, err: Console) -> Document:
    """Train, ask and draw; pictures and models are written to ``place``. All numbers that were found."""
    images, show_progress = digits(), partial(watch, console=err)
    counts = demo_digits.threads_for(images)
    with threads(counts[0]):
        trained = {
            name: one.train(name, images, seconds, seed, show_progress) for name, one in demo_digits.CONTENDERS.items()
        }
    questions = demo_digits.questions_for(images, sizes.held_out, seed)
    with threads(counts[1]), err.status("scoring held-out digits") if err.is_terminal else nullcontext():
        x = images.test.x[: sizes.held_out]
        scores = {
            name: {asked: asdict(demo_digits.score(model, x, question)) for asked, question in questions.items()}
            for name, (model, _) in trained.items()
        }
        filler = trained["one-pass"][0]
        fills = demo_digits.fill(filler, images, samples=sizes.samples, seed=seed)
        shipped = demo_digits.fill_enlarged(images, samples=sizes.samples, seed=seed)
        widths = draw_pictures(place, images.shape, fills, shipped, demo_digits.dream(filler, sizes.dreams, seed))

    birds = penguins()
    bird_model = demo_penguins.train_penguins(birds, seed, show_progress, steps=sizes.penguin_steps)
    answers = demo_penguins.ask_penguin(bird_model, birds, seed, draws=sizes.draws, orders=sizes.orders)
    nats, stderr = demo_penguins.held_out_nats(bird_model, birds)

    for name, (model, last) in trained.items():
        notes = {"data": "digits", "recipe": name, "steps": last.step, "seconds": last.seconds}
        save_model(model, place / "models" / name.lower(), notes=notes)
    bird_notes: Document = {"data": "penguins", "columns": birds.table.to_json()}
    save_model(bird_model, place / "models" / "penguins", notes=bird_notes)
    return {
        "seed": seed,
        "seconds": 0.0,
        "environment": environment() | dict(zip(("training_threads", "scoring_threads"), counts)),
        "digits": {
            "seconds_of_training": seconds,
            "held_out": sizes.held_out,
            "models": [
                {
                    "name": name,
                    "conditional_read_as": demo_digits.CONTENDERS[name].conditional,
                    "parameters": sum(parameter.numel() for parameter in model.parameters()),
                    "steps": last.step,
                    "seconds": last.seconds,
                    "scores": scores[name],
                }
                for name, (model, last) in trained.items()
            ],
            "fills": [_record(one) for one in fills],
            "fills_by_the_shipped_model": [_record(one) for one in shipped],
            "widths_of_pictures": widths,
        },
        "penguins": {
            "held_out": len(birds.test),
            "nats_per_row": nats,
            "stderr": stderr,
            "row": demo_penguins.shown_row(birds),
            "answers": [asdict(answer) for answer in answers],
        },
    }


def _record(one: demo_digits.Fill) -> Document:
    return {"name": one.name, "bits_per_pixel": one.bits, "kind": one.kind, "passes": one.passes}


# ---- pictures
