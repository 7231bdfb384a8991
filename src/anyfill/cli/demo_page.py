"""The page of the demo and its pictures, each for a light and for a dark page: digits as pixels, ink by its origin.

Given pixels are drawn in neutral ink, pixels that the model filled in coloured ink on tinted paper, erased ones as
plain tint: what is data and what is invention is seen at a glance.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from anyfill.cli.demo_digits import DEPTH, HEADS, QUESTIONS, WIDTH, Fill
from anyfill.cli.demo_penguins import Answer
from anyfill.interface import page
from anyfill.interface.progress import clock

if TYPE_CHECKING:
    from anyfill.cli.demo import Report

PIXEL = 9  # points on the page for one pixel of a digit
GAP = 14
LABEL = 200
HEAD = 30
DREAMS_PER_ROW = 10
_SHARPNESS = 2  # image pixels per point, for dense screens

Picture = np.ndarray[Any, np.dtype[np.float64]]
Colour = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a picture: paper and ink of given and of filled pixels, erased pixels, page, text."""

    page: Colour
    text: Colour
    faint: Colour
    paper: Colour
    ink: Colour
    tint: Colour
    colour: Colour
    erased: Colour


def _hex(code: str) -> Colour:
    red, green, blue = (int(code[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


THEMES = {
    "light": Theme(
        *map(_hex, ("#fbfaf8", "#1d1f23", "#6d7178", "#ffffff", "#1d1f23", "#fdeedd", "#a8440a", "#f3c99b"))
    ),
    "dark": Theme(*map(_hex, ("#15171a", "#eceae6", "#9a9ea6", "#1f2226", "#f4f2ee", "#38291c", "#ffb26b", "#80522a"))),
}

LOAD = """
from anyfill.training import load_model
model = load_model("models/one-pass")
# x: levels 0 to 16, shape (rows, 64); known: True where a pixel is given
answer = model.given(x, known)
answer.sample(5)      # five fills of each row
answer.log_prob(x)    # log p of the rest, exact, in one pass
"""


def write_page(report: "Report", path: Path) -> None:
    """Write ``index.html``."""
    path.write_text(page.page("anyfill demo", _pieces(report)), encoding="utf-8")


def _pieces(report: "Report") -> list[str]:
    first, samples = report.trained[0], len(report.fills[0].samples)
    return [
        page.heading("One model, any question", 1),
        page.paragraph(
            "An any-order model learns p(asked | given) for every choice of what is asked and what is given. "
            f"Everything below was trained and computed on this machine in {clock(report.total)}.",
            "lead",
        ),
        page.heading("Fill what is missing"),
        page.paragraph(
            f"Handwritten digits the model has never seen, with a part erased. One model, trained for "
            f"{clock(first.seconds)}, fills any part: no pattern is special to it. Given pixels are neutral, filled "
            "ones coloured. Each fill is an exact draw from the model, so where the given pixels leave room for doubt, "
            "fills differ."
        ),
        page.picture("fills", "Digits with parts erased, and several fills of each", fills_width(samples, 8)),
        page.paragraph("With nothing given at all, the same model draws whole digits:"),
        page.picture("dreams", "Digits drawn from nothing", dreams_width(8)),
        page.heading("Ask one row many ways"),
        *_penguins(report),
        page.heading("Three ways to train, equal seconds"),
        *_comparison(report),
        page.heading("Go on from here"),
        page.paragraph("The trained models lie in models/ beside this page:"),
        page.program(LOAD),
        page.footer(_small_print(report)),
    ]


def _penguins(report: "Report") -> list[str]:
    mean, error = report.penguin_nats
    rows = [
        [
            page.text(one.asked),
            page.text(", ".join(one.given) or "nothing"),
            _answer(one),
            page.kind(one.kind),
            page.text(one.cost),
        ]
        for one in report.answers
    ]
    return [
        page.paragraph(
            "A model of made-up penguins, a table of categories and measurements with gaps. This bird, picked for its "
            "odd bill, was held out of training:"
        ),
        page.facts(report.row.items()),
        page.paragraph(_conversation(report.answers)),
        page.paragraph(
            "Each answer says what kind of number it is. Exact means computed, not sampled: the model's own number, "
            "columns answered in their order. A bound or an estimate averages over random orders instead."
        ),
        page.table(("asked", "given", "answer", "kind", "cost"), rows, short=(3, 4)),
        page.paragraph(
            "Densities are per millimetre and per gram. The last three lines score the same row; a model whose "
            "conditionals fit together perfectly would give the same number in every order. On "
            f"{report.penguin_rows} held-out birds a whole row costs {mean:.2f} ± {error:.2f} nats.",
            "faint",
        ),
    ]


def _conversation(answers: list[Answer]) -> str:
    """The first three answers in a sentence: a guess, what to look up, the guess after that."""
    before, informative, after = answers[:3]
    return (
        f"Given its {' and '.join(before.given)}, the model guesses {_guess(before)}. Of everything else, it says, "
        f"the {informative.shares[0][0]} would tell most; given that too, it guesses {_guess(after)}. "
        f"Truth: {after.truth}."
    )


def _guess(one: Answer) -> str:
    value, share = one.shares[0]
    return f"{value} ({share:.0%})"


def _answer(one: Answer) -> str:
    note = f"(it is {one.truth})" if one.truth else ""
    if not one.shares:
        return page.text(one.answer, note)
    if one.kind == "estimate":
        return page.bars(one.shares, "{:.2f} bits")
    return page.bars(one.shares) + (f"<small>{page.text(note)}</small>" if note else "")


def _comparison(report: "Report") -> list[str]:
    rows = [
        [
            page.text(one.contender.name),
            *(page.text(f"{score.bits:.2f}", f"± {score.stderr:.2f}") for score in one.scores.values()),
            page.kind(one.kinds),
            page.text(one.passes),
            page.text(one.scoring),
            page.text(f"{one.steps:,}"),
        ]
        for one in report.trained
    ]
    return [
        page.paragraph(
            f"Bits per pixel on {report.held_out} held-out digits, lower is better. Networks of the same size (width "
            f"{WIDTH}, depth {DEPTH}, {HEADS} heads), the same optimizer and learning rate, {report.seconds:g} seconds "
            "each on the same machine. Four rates were tried with each; optimizer, width, depth and batch size were "
            "chosen with one-pass alone, some of it on digits that are held out here. MAC's conditional is a "
            "difference of two marginals, which need not be a distribution. One run of each: an illustration, not a "
            "benchmark."
        ),
        page.table(
            ("", *QUESTIONS.values(), "kind", "passes", "to score", "steps"),
            rows,
            numbers=(1, 2, 3, 5, 6, 7),
            best=report.best,
        ),
        *(page.point(one.contender.name, one.contender.about) for one in report.trained),
        page.paragraph(report.caption, "faint"),
    ]


def _small_print(report: "Report") -> str:
    where = report.environment
    return (
        f"anyfill {where['anyfill']}, torch {where['torch']}, Python {where['python']}, {where['device']}; seed "
        f"{report.seed}. The digit models stop by the clock, so how many steps they make, and with it every number of "
        "theirs, depends on the machine; the penguins' model makes a fixed number of steps. Numbers: results.json."
    )


def draw_pictures(place: Path, shape: tuple[int, int], fills: list[Fill], dreams: Tensor) -> None:
    """All pictures, each for light and for dark pages."""
    for name, theme in THEMES.items():
        suffix = "" if name == "light" else f"-{name}"
        draw_fills(fills, shape, theme, place / f"fills{suffix}.png")
        draw_dreams(dreams, shape, theme, place / f"dreams{suffix}.png")


def fills_width(samples: int, side: int) -> int:
    """How wide the picture of the fills is, in points."""
    return LABEL + (2 + samples) * (side * PIXEL + GAP) + 2


def dreams_width(side: int) -> int:
    """How wide the picture of the dreams is, in points."""
    return DREAMS_PER_ROW * (side * PIXEL + GAP) - GAP + 2


def draw_fills(fills: list[Fill], shape: tuple[int, int], theme: Theme, path: Path) -> None:
    """One row for each fill: the original, what was given, and the samples."""
    samples = len(fills[0].samples)
    columns = [LABEL + (shape[1] * PIXEL + GAP) * k + (GAP if k > 1 else 0) for k in range(2 + samples)]
    canvas = _Canvas(fills_width(samples, shape[1]), HEAD + len(fills) * (shape[0] * PIXEL + GAP), theme)
    for left, title in zip(columns, ("original", "given", "filled by the model")):
        canvas.text(left, HEAD - 12, title, theme.faint)
    for number, one in enumerate(fills):
        top = HEAD + number * (shape[0] * PIXEL + GAP)
        given = one.given.reshape(shape).numpy()
        canvas.paint(columns[0], top, ink(one.original, shape, np.ones_like(given), theme))
        shown = ink(one.original, shape, given, theme)
        shown[~given] = theme.erased
        canvas.paint(columns[1], top, shown)
        for left, sample in zip(columns[2:], one.samples):
            canvas.paint(left, top, ink(sample, shape, given, theme))
        middle = top + shape[0] * PIXEL / 2
        canvas.text(0, middle - 2, one.name, theme.text, size=13.5)
        canvas.text(0, middle + 16, f"original: {one.bits:.2f} bits per pixel", theme.faint, size=11)
    canvas.save(path)


def draw_dreams(digits: Tensor, shape: tuple[int, int], theme: Theme, path: Path) -> None:
    """Digits (n, pixels) that were drawn from nothing."""
    step = shape[1] * PIXEL + GAP
    rows = -(-len(digits) // DREAMS_PER_ROW)
    canvas = _Canvas(dreams_width(shape[1]), rows * step - GAP + 2, theme)
    for number, digit in enumerate(digits):
        drawn = ink(digit, shape, np.zeros(shape, dtype=bool), theme)
        down, across = divmod(number, DREAMS_PER_ROW)
        canvas.paint(across * step, down * step, drawn)
    canvas.save(path)


def ink(digit: Tensor, shape: tuple[int, int], given: np.ndarray[Any, np.dtype[np.bool_]], theme: Theme) -> Picture:
    """(H, W, 3): levels 0 to 16 between paper and ink, tinted where not given."""
    level = digit.reshape(shape).double().numpy()[..., None] / 16
    neutral = (1 - level) * np.array(theme.paper) + level * np.array(theme.ink)
    filled = (1 - level) * np.array(theme.tint) + level * np.array(theme.colour)
    return np.where(given[..., None], neutral, filled)


class _Canvas:
    """A picture of a size in points, to paint blocks and write words on."""

    def __init__(self, width: int, height: int, theme: Theme) -> None:
        self.pixels: Picture = np.tile(np.array(theme.page), (height, width, 1))
        self.words: list[tuple[float, float, str, Colour, float]] = []
        self.edge = np.array(theme.faint) * 0.45 + np.array(theme.page) * 0.55

    def paint(self, left: int, top: int, block: Picture) -> None:
        """A block of large pixels with a thin edge around it."""
        large = np.kron(block, np.ones((PIXEL, PIXEL, 1)))
        height, width, _ = large.shape
        self.pixels[top : top + height + 2, left : left + width + 2] = self.edge
        self.pixels[top + 1 : top + 1 + height, left + 1 : left + 1 + width] = large

    def text(self, left: float, baseline: float, words: str, colour: Colour, size: float = 12) -> None:
        """Words that start at a point."""
        self.words.append((left, baseline, words, colour, size))

    def save(self, path: Path) -> None:
        """Write the picture as PNG."""
        height, width, _ = self.pixels.shape
        figure = Figure(figsize=(width / 100, height / 100), dpi=100 * _SHARPNESS)
        FigureCanvasAgg(figure)  # no screen needed, and matplotlib's global state left alone
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.imshow(self.pixels, interpolation="nearest", extent=(0, width, height, 0), aspect="auto")
        axes.set_axis_off()
        for left, baseline, words, colour, size in self.words:
            axes.text(left, baseline, words, color=colour, fontsize=size * 0.72, va="baseline")
        figure.savefig(path)
