"""Contact sheets and heat maps: what was given, what was drawn, and how sure the model is, in one picture.

Small pictures are shown large, each pixel a square; of a large one with a small hole the part around it. A thin orange
line runs around what was erased, or scored given the rest, but not where it would hide thin or tiny parts; where pixels
are missing, hatching stands. Heat goes from black (certain) over red to pale yellow.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from anyfill.images.picture import Picture, Pixels, Places

CELL = 140
"""Points that a picture on a sheet is about as large as; larger ones are shown as they are, up to four times that."""
GAP, HEAD = 14, 24
PAGE, INK, FAINT, ACCENT = (251, 250, 248), (29, 31, 35), (109, 113, 120), (226, 104, 22)
HATCH = (243, 201, 155), (253, 238, 221)
"""Two colours by turns, where pixels are missing."""
PER_LINE = 10
LEAST = 48
"""Pixels that are shown along a side at least, where a part of a picture is."""
FEWEST_BITS = 0.1
"""Where a scale of heat ends at least: pixels that are all certain stay dark."""
COVERED = 0.25
"""A part of a picture of which lines around it would cover more than this has none."""
_HEAT = np.array([(0, 0, 4), (87, 16, 110), (188, 55, 84), (249, 142, 9), (252, 255, 164)], dtype=np.float64)
"""Five points of matplotlib's "inferno"."""


class Cell(NamedTuple):
    """A picture on a sheet.

    Attributes:
        title: above it.
        pixels: (H, W, 3).
        edge: bool (H, W): a line runs around these places.
        covered: but not around parts of which it would cover a larger share.
    """

    title: str
    pixels: Pixels
    edge: Places | None = None
    covered: float = COVERED


def heat(values: np.ndarray[Any, np.dtype[np.floating[Any]]], top: float | None = None) -> Pixels:
    """uint8 (H, W, 3): values (H, W) from 0 to ``top`` (their largest by default) as colours."""
    top = float(values.max(initial=0.0)) if top is None else top
    place = np.clip(values / (top or 1.0), 0, 1) * (len(_HEAT) - 1)
    low = np.minimum(place.astype(int), len(_HEAT) - 2)
    part = (place - low)[..., None]
    return np.rint(_HEAT[low] * (1 - part) + _HEAT[low + 1] * part).astype(np.uint8)


def sheet_of(
    given: Picture, pictures: Sequence[Picture], uncertainty: np.ndarray[Any, np.dtype[np.float64]]
) -> Picture:
    """The sheet: given, drawn 1 … n, uncertainty in bits a pixel; lines of ten."""
    part = _shown(~given.known)
    is_part = given.known[part].size < given.known.size
    edge = None if given.erased is None or given.erased.all() else given.erased[part]
    # On what is given a line hides nothing but hatching.
    cells = [Cell("given (part)" if is_part else "given", hatched(given)[part], edge, 1.0)]
    cells += [Cell(f"drawn {number}", coloured(one.pixels)[part], edge) for number, one in enumerate(pictures, 1)]
    cells.append(_measured(uncertainty[part]))
    return laid_out(cells, f"{given.name} filled")


def _shown(erased: Places) -> tuple[slice, slice]:
    """The part of a picture (H, W) that a sheet shows: all of it, or what is around a hole that would be tiny there."""
    ends: list[slice] = []
    for across, side in ((1, erased.shape[0]), (0, erased.shape[1])):
        found = np.flatnonzero(erased.any(across))
        first, behind = (int(found[0]), int(found[-1]) + 1) if len(found) else (0, side)
        margin = max(behind - first, LEAST // 2)
        ends.append(slice(max(first - margin, 0), min(behind + margin, side)))
    part = ends[0], ends[1]
    is_tiny = max(erased.shape) > CELL and all(2 * (one.stop - one.start) <= n for one, n in zip(part, erased.shape))
    return part if is_tiny else (slice(None), slice(None))


def laid_out(cells: Sequence[Cell], name: str, per_line: int = PER_LINE) -> Picture:
    """Pictures of one size beside each other."""
    height, width = cells[0].pixels.shape[:2]
    zoom = max(1, round(CELL / max(height, width)))
    shrink = min(1.0, 4 * CELL / max(height * zoom, width * zoom))
    down, across = max(1, round(height * zoom * shrink)), max(1, round(width * zoom * shrink))
    down, across = max(down, 8), max(across, 96)
    columns = min(per_line, len(cells))
    lines = -(-len(cells) // columns)
    page = Image.new("RGB", (GAP + columns * (across + GAP), GAP + lines * (down + HEAD + GAP)), PAGE)
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(13)
    for number, cell in enumerate(cells):
        line, column = divmod(number, columns)
        left, top = GAP + column * (across + GAP), GAP + line * (down + HEAD + GAP)
        pen.text((left, top), cell.title, fill=INK if line + column == 0 else FAINT, font=font)
        own = (max(1, round(width * zoom * shrink)), max(1, round(height * zoom * shrink)))
        resample = Image.Resampling.NEAREST if shrink == 1.0 else Image.Resampling.BOX
        page.paste(Image.fromarray(cell.pixels).resize(own, resample), (left, top + HEAD))
        if cell.edge is not None:
            _outline(pen, cell.edge, left, top + HEAD, zoom * shrink, cell.covered)
    return Picture(np.asarray(page), None, name)


def heat_sheet(picture: Picture, bits: np.ndarray[Any, np.dtype[np.float64]], asked: Places) -> Picture:
    """A picture, a line around what was asked of it (H, W), beside the bits (H, W) of its pixels."""
    edge = None if (asked == picture.known).all() else asked
    cells = [Cell(picture.name, hatched(picture), edge), _measured(bits)]
    return laid_out(cells, f"{picture.name}, surprise")


def _measured(bits: np.ndarray[Any, np.dtype[np.float64]]) -> Cell:
    """The heat of bits (H, W), with the end of its scale."""
    top = max(float(bits.max(initial=0.0)), FEWEST_BITS)
    return Cell(f"0 to {top:.2g} bits", heat(bits, top))


def gallery(pictures: Sequence[Picture]) -> Picture:
    """Pictures of one size on a sheet."""
    return laid_out([Cell(str(number), hatched(one)) for number, one in enumerate(pictures, 1)], "pictures")


def coloured(pixels: Pixels) -> Pixels:
    """(H, W, 3)."""
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels


def hatched(picture: Picture) -> Pixels:
    """(H, W, 3): the picture with a pattern where it is erased."""
    shown = coloured(picture.pixels)
    if picture.erased is None:
        return shown
    row, column = np.indices(picture.erased.shape)
    tint = np.where(((row + column) % 2 == 0)[..., None], *HATCH)
    return np.where(picture.erased[..., None], tint, shown).astype(np.uint8)


def _outline(pen: ImageDraw.ImageDraw, erased: Places, left: int, top: int, scale: float, covered: float) -> None:
    """Lines between what is erased and what is not, save around parts (touching by their sides) they would cover."""
    labels: list[Any] = [ndimage.label(places) for places in (erased, ~erased)]
    part = np.where(erased, labels[0][0], labels[1][0] + labels[0][1])
    below, beside = part[1:] != part[:-1], part[:, 1:] != part[:, :-1]
    rim = [part[0], part[-1], part[:, 0], part[:, -1]]  # where the picture ends, parts end as well
    ends = np.concatenate([part[1:][below], part[:-1][below], part[:, 1:][beside], part[:, :-1][beside], *rim])
    area = np.bincount(part.ravel())
    wide = (np.bincount(ends, minlength=len(area)) <= covered * scale * area)[part]  # lines are a point thick
    for row, column in np.argwhere(below & wide[1:] & wide[:-1]):
        y, x = top + (row + 1) * scale, left + column * scale
        pen.line((x, y, x + scale, y), fill=ACCENT)
    for row, column in np.argwhere(beside & wide[:, 1:] & wide[:, :-1]):
        y, x = top + row * scale, left + (column + 1) * scale
        pen.line((x, y, x, y + scale), fill=ACCENT)
