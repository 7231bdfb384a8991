"""``anyfill demo``: train on built-in data for a minute, then show what one model can answer.

    digits    three ways to train, equal seconds each; held-out digits scored; half-erased digits filled by the first
    penguins  one model of a mixed table; one held-out row asked many ways

All numbers are in one document. It is told three times: as results.json, as tables in the terminal and as a page, with
pictures for light and for dark screens: given pixels in neutral ink, pixels that the model filled in coloured ink on
tinted paper, erased ones as plain tint, so that what is data and what is invention is seen at a glance. Everything
lands in one folder that appears as a whole, the trained models in it.
"""

import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

from anyfill.checks import require_positive
from anyfill.cli import demo_models as models
from anyfill.cli.examples import digits, penguins
from anyfill.interface import page
from anyfill.interface.output import replacing, write_results
from anyfill.interface.progress import clock, watch
from anyfill.interface.threads import environment, threads
from anyfill.training import save_model

MADE_BY = "anyfill demo"
Document = dict[str, Any]


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
    penguin_steps: int = models.STEPS
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
        (place / "index.html").write_text(page.page(MADE_BY, _pieces(document)), encoding="utf-8")
        write_results(place, MADE_BY, document)
    show(document, out)
    address = (folder / "index.html").resolve()
    out.print(f"Done in {clock(time.monotonic() - start)}. Open: {address}", soft_wrap=True, highlight=False)


def _make(place: Path, seconds: float, seed: int, sizes: Sizes, err: Console) -> Document:
    """Train, ask and draw; pictures and models are written to ``place``. All numbers that were found."""
    images, show_progress = digits(), partial(watch, console=err)
    counts = models.threads_for(images)
    with threads(counts[0]):
        trained = {
            name: one.train(name, images, seconds, seed, show_progress) for name, one in models.CONTENDERS.items()
        }
    questions = models.questions_for(images, sizes.held_out, seed)
    with threads(counts[1]), err.status("scoring held-out digits") if err.is_terminal else nullcontext():
        x = images.test.x[: sizes.held_out]
        scores = {
            name: {asked: asdict(models.score(model, x, question)) for asked, question in questions.items()}
            for name, (model, _) in trained.items()
        }
        filler = trained["one-pass"][0]
        fills = models.fill(filler, images, samples=sizes.samples, seed=seed)
        shipped = models.fill_enlarged(images, samples=sizes.samples, seed=seed)
        widths = draw_pictures(place, images.shape, fills, shipped, models.dream(filler, sizes.dreams, seed))

    birds = penguins()
    bird_model = models.train_penguins(birds, seed, show_progress, steps=sizes.penguin_steps)
    answers = models.ask_penguin(bird_model, birds, seed, draws=sizes.draws, orders=sizes.orders)
    nats, stderr = models.held_out_nats(bird_model, birds)

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
                    "conditional_read_as": models.CONTENDERS[name].conditional,
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
            "row": models.shown_row(birds),
            "answers": [asdict(answer) for answer in answers],
        },
    }


def _record(one: models.Fill) -> Document:
    return {"name": one.name, "bits_per_pixel": one.bits, "kind": one.kind, "passes": one.passes}


# ---- what the terminal and the page share


def _best(document: Document) -> int:
    """Which digit model needs the fewest bits for whole digits."""
    bits = [one["scores"]["joint"]["bits"] for one in document["digits"]["models"]]
    return bits.index(min(bits))


def _compared(one: Document) -> list[str]:
    """Of one digit model: network passes of each question, time to score, steps, kinds of its numbers."""
    scores = one["scores"].values()
    passes, seconds = "/".join(str(score["passes"]) for score in scores), sum(score["seconds"] for score in scores)
    return [passes, f"{seconds:.1f} s", f"{one['steps']:,}", ", ".join(sorted({score["kind"] for score in scores}))]


def _caption(document: Document) -> str:
    """How the comparison is to be read."""
    trained = document["digits"]["models"]
    worst = max(score["stderr"] for one in trained for score in one["scores"].values())
    by: dict[str, list[str]] = {}
    for one in trained:
        by.setdefault(one["conditional_read_as"], []).append(one["name"])
    factorizations = ", ".join(f"{how} by {' and '.join(names)}" for how, names in by.items())
    return (
        f"Lower is better; standard errors over digits are up to {worst:.2f}. Passes: what one digit needs at "
        "most, for the three questions in turn. Exact: the model's own number, pixels answered from first to last. "
        f"A conditional log p(asked | given) is read off the network {factorizations}."
    )


ANSWERED, COMPARED = ("asked", "given", "answer", "kind", "cost"), ("passes", "scored", "steps", "kind")


# ---- the terminal


def show(document: Document, console: Console) -> None:
    """Print the two tables."""
    birds = _table("One held-out penguin, asked many ways")
    for name in ANSWERED:
        birds.add_column(name, overflow="fold")
    for one in document["penguins"]["answers"]:
        truth = f" (is {one['truth']})" if one["truth"] else ""
        given = ", ".join(one["given"]) or "nothing"
        birds.add_row(one["asked"], given, one["answer"] + truth, one["kind"], one["cost"])
    console.print(birds)

    found = document["digits"]
    held_out, seconds = found["held_out"], found["seconds_of_training"]
    table = _table(f"Bits per pixel on {held_out} held-out digits, {seconds:g} s of training each")
    table.add_column("", no_wrap=True, min_width=8)
    for name in (*models.QUESTIONS, *COMPARED):
        table.add_column(name, justify="right", no_wrap=True)
    for i, one in enumerate(found["models"]):
        cells = (f"{score['bits']:.2f}" for score in one["scores"].values())
        table.add_row(one["name"], *cells, *_compared(one), style="bold" if i == _best(document) else "")
    console.print(table)
    console.print(f"{_caption(document)}\n", highlight=False)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


# ---- the page

LOAD = """
from anyfill.training import load_model
model = load_model("models/one-pass")
# x: levels 0 to 16, shape (rows, 64); known: True where a pixel is given
answer = model.given(x, known)
answer.sample(5)      # five fills of each row
answer.log_prob(x)    # log p of the rest, exact, in one pass
"""


def _pieces(document: Document) -> list[str]:
    found, birds, where = document["digits"], document["penguins"], document["environment"]
    widths = found["widths_of_pictures"]
    return [
        page.heading("One model, any question", 1),
        page.paragraph(
            "An any-order model learns p(asked | given) for every choice of what is asked and what is given. "
            f"Everything below was trained and computed on this machine in {clock(document['seconds'])}.",
            "lead",
        ),
        page.heading("Fill what is missing"),
        page.paragraph(
            "Handwritten digits the model has never seen, with a part erased. One model, trained for "
            f"{clock(found['models'][0]['seconds'])}, fills any part. Given pixels are neutral, filled ones coloured. "
            "Each fill is an exact draw from the model: where the given pixels leave room for doubt, fills differ."
        ),
        page.picture("fills", "Digits with parts erased, and several fills of each", widths["fills"]),
        page.paragraph(
            "The same digits enlarged to 28 x 28, black and white, and filled by the model of handwritten digits that "
            "ships with anyfill (anyfill image fill): it was trained on other people's digits for a minute of one GPU."
        ),
        page.picture("shipped", "The same digits enlarged, filled by the model that ships", widths["shipped"]),
        page.paragraph("With nothing given at all, the model of this page draws whole digits:"),
        page.picture("dreams", "Digits drawn from nothing", widths["dreams"]),
        page.heading("Ask one row many ways"),
        page.paragraph(
            "A model of made-up penguins, a table of categories and measurements with gaps. This bird, picked for its "
            "odd bill, was held out of training:"
        ),
        page.facts(birds["row"].items()),
        page.paragraph(_conversation(*birds["answers"][:3])),
        page.paragraph(
            "Each answer says what kind of number it is. Exact means computed, not sampled: the model's own number, "
            "columns answered in their order. A bound or an estimate averages over random orders instead."
        ),
        page.table(ANSWERED, [_answer(one) for one in birds["answers"]], short=(3, 4)),
        page.paragraph(
            "Densities are per millimetre and per gram. The last three lines score the same row; a model whose "
            "conditionals fit together perfectly would give the same number in every order. On "
            f"{birds['held_out']} held-out birds a row costs {birds['nats_per_row']:.2f} ± {birds['stderr']:.2f} nats.",
            "faint",
        ),
        page.heading("Three ways to train, equal seconds"),
        page.paragraph(
            f"Bits per pixel on {found['held_out']} held-out digits, lower is better. Networks of the same size (width "
            f"{models.WIDTH}, depth {models.DEPTH}, {models.HEADS} heads), same optimizer and learning rate, "
            f"{found['seconds_of_training']:g} seconds each on the same machine. Four rates were tried with each; all "
            "else was chosen with one-pass alone, some of it on digits that are held out here. MAC's conditional is a "
            "difference of two marginals, which need not be a distribution. One run of each: no benchmark."
        ),
        page.table(
            ("", *models.QUESTIONS.values(), *COMPARED),
            [_model(one) for one in found["models"]],
            numbers=range(1, 7),
            best=_best(document),
        ),
        *(page.point(one["name"], models.CONTENDERS[one["name"]].about) for one in found["models"]),
        page.paragraph(_caption(document), "faint"),
        page.heading("Go on from here"),
        page.paragraph("The trained models lie in models/ beside this page:"),
        page.program(LOAD),
        page.footer(
            f"anyfill {where['anyfill']}, torch {where['torch']}, Python {where['python']}, {where['device']}; seed "
            f"{document['seed']}. The digit models stop by the clock, so how many steps they make, and with it every "
            "number of theirs, depends on the machine; the penguins' makes a fixed number. Numbers: results.json."
        ),
    ]


def _model(one: Document) -> list[str]:
    bits = (page.text(f"{score['bits']:.2f}", f"± {score['stderr']:.2f}") for score in one["scores"].values())
    *compared, kind = _compared(one)
    return [page.text(one["name"]), *bits, *map(page.text, compared), page.kind(kind)]


def _conversation(before: Document, informative: Document, after: Document) -> str:
    """Three answers in a sentence: a guess, what to look up, the guess after that."""
    first, then = (f"{value} ({share:.0%})" for value, share in (before["shares"][0], after["shares"][0]))
    return (
        f"Given its {' and '.join(before['given'])}, the model guesses {first}. Of everything else, it says, the "
        f"{informative['shares'][0][0]} would tell most; given that too, it guesses {then}. Truth: {after['truth']}."
    )


def _answer(one: Document) -> list[str]:
    note = f"(it is {one['truth']})" if one["truth"] else ""
    if not one["shares"]:
        answer = page.text(one["answer"], note)
    else:
        answer = page.bars(one["shares"], "{:.2f} bits" if one["kind"] == "estimate" else "{:.1%}")
        answer += f"<small>{page.text(note)}</small>" if note else ""
    given = page.text(", ".join(one["given"]) or "nothing")
    return [page.text(one["asked"]), given, answer, page.kind(one["kind"]), page.text(one["cost"])]


# ---- pictures

PIXEL = 9  # points on the page for one pixel of a digit
GAP, LABEL, HEAD = 14, 200, 30
DREAMS_PER_ROW = 10
SHARPNESS = 2  # image pixels per point, for dense screens

Pixels = np.ndarray[Any, np.dtype[np.float64]]
Colour = tuple[float, float, float]


Theme = dict[str, Colour]
"""Of page and text, paper and ink of given pixels, tint and colour of filled ones, erased pixels."""
THEMES = {
    ending: dict(zip(["page", "text", "faint", "paper", "ink", "tint", "colour", "erased"], map(to_rgb, codes.split())))
    for ending, codes in {
        "": "#fbfaf8 #1d1f23 #6d7178 #ffffff #1d1f23 #fdeedd #a8440a #f3c99b",
        "-dark": "#15171a #eceae6 #9a9ea6 #1f2226 #f4f2ee #38291c #ffb26b #80522a",
    }.items()
}
"""By the ending of a picture's name."""


def draw_pictures(
    place: Path, shape: tuple[int, int], fills: list[models.Fill], shipped: list[models.Fill], dreams: Tensor
) -> dict[str, int]:
    """fills.png and shipped.png: a row for each fill, original, given and samples, by the demo's own model and by the
    one that ships; dreams.png: digits (n, pixels) from nothing.

    How wide they are, in points.
    """
    down, across = (side * PIXEL + GAP for side in shape)
    widths = {"dreams": DREAMS_PER_ROW * across - GAP + 2}
    for ending, theme in THEMES.items():
        widths["fills"] = _draw_fills(place / f"fills{ending}.png", shape, fills, theme)
        widths["shipped"] = _draw_fills(place / f"shipped{ending}.png", (28, 28), shipped, theme, pixel=3, levels=256)
        canvas = _Canvas(widths["dreams"], -(-len(dreams) // DREAMS_PER_ROW) * down - GAP + 2, theme)
        for number, digit in enumerate(dreams):
            row, column = divmod(number, DREAMS_PER_ROW)
            canvas.paint(column * across, row * down, ink(digit, np.zeros(shape, dtype=bool), theme))
        canvas.save(place / f"dreams{ending}.png")
    return widths


def _draw_fills(
    path: Path, shape: tuple[int, int], fills: list[models.Fill], theme: Theme, *, pixel: int = PIXEL, levels: int = 17
) -> int:
    """A row for each fill; how wide the picture is, in points."""
    down, across = (side * pixel + GAP for side in shape)
    columns = [LABEL + across * k + (GAP if k > 1 else 0) for k in range(2 + len(fills[0].samples))]
    canvas = _Canvas(LABEL + len(columns) * across + 2, HEAD + len(fills) * down, theme, pixel)
    for left, title in zip(columns, ("original", "given", "filled by the model")):
        canvas.words.append((left, HEAD - 12, title, theme["faint"], 12))
    for number, one in enumerate(fills):
        top, given = HEAD + number * down, one.given.reshape(shape).numpy()
        canvas.paint(columns[0], top, ink(one.original, np.ones_like(given), theme, levels))
        shown = np.where(given[..., None], ink(one.original, given, theme, levels), np.array(theme["erased"]))
        canvas.paint(columns[1], top, shown)
        for left, sample in zip(columns[2:], one.samples):
            canvas.paint(left, top, ink(sample, given, theme, levels))
        middle = top + shape[0] * pixel / 2
        canvas.words.append((0, middle - 2, one.name, theme["text"], 13.5))
        canvas.words.append((0, middle + 16, f"original: {one.bits:.2f} bits per pixel", theme["faint"], 11))
    canvas.save(path)
    return LABEL + len(columns) * across + 2


def ink(digit: Tensor, given: np.ndarray[Any, np.dtype[np.bool_]], theme: Theme, levels: int = 17) -> Pixels:
    """(H, W, 3): levels from 0 up between paper and ink, tinted where not given (H, W)."""
    level = digit.reshape(given.shape).double().numpy()[..., None] / (levels - 1)
    neutral = (1 - level) * np.array(theme["paper"]) + level * np.array(theme["ink"])
    filled = (1 - level) * np.array(theme["tint"]) + level * np.array(theme["colour"])
    return np.where(given[..., None], neutral, filled)


class _Canvas:
    """A picture of a size in points, to paint blocks on; words are (left, baseline, text, colour, size)."""

    def __init__(self, width: int, height: int, theme: Theme, pixel: int = PIXEL) -> None:
        self.pixels: Pixels = np.tile(np.array(theme["page"]), (height, width, 1))
        self.words: list[tuple[float, float, str, Colour, float]] = []
        self.pixel = pixel
        self.edge = np.array(theme["faint"]) * 0.45 + np.array(theme["page"]) * 0.55

    def paint(self, left: int, top: int, block: Pixels) -> None:
        """A block of large pixels with a thin edge around it."""
        large = np.kron(block, np.ones((self.pixel, self.pixel, 1)))
        height, width, _ = large.shape
        self.pixels[top : top + height + 2, left : left + width + 2] = self.edge
        self.pixels[top + 1 : top + 1 + height, left + 1 : left + 1 + width] = large

    def save(self, path: Path) -> None:
        """Write the picture as PNG."""
        height, width, _ = self.pixels.shape
        figure = Figure(figsize=(width / 100, height / 100), dpi=100 * SHARPNESS)
        FigureCanvasAgg(figure)  # no screen needed, and matplotlib's global state left alone
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.imshow(self.pixels, interpolation="nearest", extent=(0, width, height, 0), aspect="auto")
        axes.set_axis_off()
        for left, baseline, words, colour, size in self.words:
            axes.text(left, baseline, words, color=colour, fontsize=size * 0.72, va="baseline")
        figure.savefig(path)
