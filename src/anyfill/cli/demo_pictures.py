"""The demo's pictures of digits, for light and for dark screens.

Given pixels are in neutral ink, pixels that a model filled in coloured ink on tinted paper, erased ones plain tint, so
that what is data and what is invention is seen at a glance.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from torch import Tensor

from anyfill.cli.demo_digits import Fill

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
    place: Path, shape: tuple[int, int], fills: list[Fill], shipped: list[Fill], dreams: Tensor
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
    path: Path, shape: tuple[int, int], fills: list[Fill], theme: Theme, *, pixel: int = PIXEL, levels: int = 17
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
