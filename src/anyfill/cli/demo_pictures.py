"""The pictures of the demo, each for a light and for a dark page: digits as blocks of pixels, ink by its origin.

Given pixels are drawn in neutral ink, pixels that the model filled in coloured ink on tinted paper, erased ones as
plain tint: what is data and what is invention can be told apart at a glance.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from anyfill.cli.demo_digits import Fill

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


def fills_width(samples: int, side: int) -> int:
    """How wide the picture of the fills is, in points."""
    return LABEL + (2 + samples) * (side * PIXEL + GAP) + 2


def dreams_width(per_row: int, side: int) -> int:
    """How wide the picture of the dreams is, in points."""
    return per_row * (side * PIXEL + GAP) - GAP + 2


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


def draw_dreams(digits: Tensor, shape: tuple[int, int], theme: Theme, path: Path, *, per_row: int) -> None:
    """Digits (n, pixels) that were drawn from nothing, so many in a row."""
    step = shape[1] * PIXEL + GAP
    rows = -(-len(digits) // per_row)
    canvas = _Canvas(dreams_width(per_row, shape[1]), rows * step - GAP + 2, theme)
    for number, digit in enumerate(digits):
        drawn = ink(digit, shape, np.zeros(shape, dtype=bool), theme)
        canvas.paint(number % per_row * step, number // per_row * step, drawn)
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
