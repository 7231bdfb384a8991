"""Holes that no window holds, filled in a picture that is shrunk.

A model of pictures knows whole pictures, shrunk to its size. Through a window on a corner of a photograph it sees what
it never saw. That is well where a hole is small and its surroundings decide, not where half of a picture is missing.
Such a picture is shrunk until it lies within the model's size; one whose holes are all small beside it, a quarter of
its sides at most, only until a window holds them. It is filled so, and what is drawn is enlarged and laid into the
holes of the picture as it came: given pixels stay as they are. Holes of the same picture that a window does hold are
filled after that, at its own scale, given all that is drawn in the large ones.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from PIL import Image

from anyfill.images.filling import Filling, Fills
from anyfill.images.holes import Holes, room
from anyfill.images.picture import Picture, Places
from anyfill.images.resizing import nearest, resized_pixels
from anyfill.images.windows import Window

_SMALL = 4
"""Holes this many times smaller than the picture, along either side, are small beside it."""


def scale_for(found: Holes) -> tuple[int, int]:
    """Height and width within which a picture is shrunk for its large holes."""
    shape, size = found.erased.shape, (found.height, found.width)
    if any(_SMALL * span > side for span, side in zip(found.span, shape)):
        return size
    # A hole shrunk to b pixels may have a part in b + 2.
    held = (max(1, room(side, window) - 2) / span for side, window, span in zip(shape, size, found.span))
    share = max(min(held), min(window / side for side, window in zip(shape, size)))
    return math.ceil(shape[0] * share), math.ceil(shape[1] * share)


def enlarged(fills: Fills, whole: Picture, *, levels: int, channels: int) -> Fills:
    """Fills of the shrunk picture as fills of the whole one.

    Args:
        fills: of ``shrunk(whole, ...)``.
        whole: the picture as it came.
        levels: of the model; what only knows black and white draws sharp edges.
        channels: of the model; what a grey one draws is grey up to the seam, whatever colours are given beside it.
    """
    size = (whole.width, whole.height)

    def laid_in(small: Picture) -> Picture:
        drawn = resized_pixels(small.with_channels(channels).pixels, size, Image.Resampling.BICUBIC)
        drawn = np.where(drawn >= 128, np.uint8(255), np.uint8(0)) if levels == 2 else drawn
        given = whole.with_channels(max(whole.channels, drawn.shape[2])).pixels
        return replace(small, pixels=np.where(whole.known[..., None], given, drawn))

    sides = zip(whole.known.shape, fills.uncertainty.shape)
    rows, columns = (nearest(np.arange(many), few, 0, many) for many, few in sides)
    uncertainty = np.where(whole.known, 0.0, fills.uncertainty[np.ix_(rows, columns)])
    given = replace(whole, remarks=fills.remarks)
    return replace(fills, given=given, pictures=tuple(map(laid_in, fills.pictures)), uncertainty=uncertainty)


def smaller_holes(work: Filling, fills: Fills, apart: Places, plan: Sequence[Window]) -> Filling:
    """The work on smaller holes, when the large ones are filled.

    Args:
        work: that on the shrunk picture.
        fills: what came of it, enlarged.
        apart: bool (H, W): the smaller holes.
        plan: their windows.
    """
    picture = replace(fills.given, erased=apart)
    return replace(work, picture=picture, plan=plan, begun=np.stack([one.pixels for one in fills]))


def with_smaller_holes(fills: Fills, after: Fills, apart: Places) -> Fills:
    """Fills of all holes: those of the large ones, and what came after them."""
    uncertainty = np.where(apart, after.uncertainty, fills.uncertainty)
    return replace(fills, pictures=after.pictures, uncertainty=uncertainty)
