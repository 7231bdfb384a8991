"""Pictures in another size, by averages over boxes; what is erased is never seen in them.

A pixel of the smaller picture is erased as soon as any erased pixel has a part in it: an average would show something
of what stood there.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from anyfill.images.picture import Picture, Pixels, Places

Box = tuple[float, float, float, float]
"""Left, top, right and bottom of a part of a picture, in its pixels."""


def resized(picture: Picture, size: tuple[int, int]) -> Picture:
    """The picture (height, width) large: its sides are cropped alike to the proportions, then it is shrunk or grown."""
    if picture.pixels.shape[:2] == size:
        return picture
    return _in_size(picture, (size[1], size[0]), _middle(picture, *size))


def shrunk(picture: Picture, height: int, width: int) -> Picture:
    """The whole picture, in its proportions, as large as fits in (height, width)."""
    share = min(height / picture.height, width / picture.width)
    size = (max(1, round(picture.width * share)), max(1, round(picture.height * share)))
    return _in_size(picture, size, (0, 0, picture.width, picture.height))


def resized_pixels(pixels: Pixels, size: tuple[int, int], resample: Image.Resampling, box: Box | None = None) -> Pixels:
    """uint8 (h, w, C) of this (width, height), from pixels (H, W, C) or the part of them in the box."""
    squeezed = pixels[..., 0] if pixels.shape[2] == 1 else pixels
    return np.asarray(Image.fromarray(squeezed).resize(size, resample, box)).reshape(size[1], size[0], -1)


def any_within(places: Places, size: tuple[int, int], box: Box | None = None) -> Places:
    """bool (h, w): where any of the places (H, W) has a part in a pixel of the (width, height) other picture."""
    left, top, right, bottom = box or (0, 0, places.shape[1], places.shape[0])
    shares = Image.fromarray(places.astype(np.float32))  # as bytes, small parts would round to none
    parts = np.asarray(shares.resize(size, Image.Resampling.BOX, (left, top, right, bottom))) > 0
    row, column = np.nonzero(places)  # and the pixel that it lies in, however small its part
    row, column = nearest(row, size[1], top, bottom), nearest(column, size[0], left, right)
    inside = (row >= 0) & (row < size[1]) & (column >= 0) & (column < size[0])
    parts[row[inside], column[inside]] = True
    return parts


def nearest(
    place: np.ndarray[Any, np.dtype[np.int64]], few: int, begin: float, end: float
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """int64, same shape: in which of the few equal parts from begin to end the middle of each pixel lies."""
    return np.floor((place + 0.5 - begin) * few / (end - begin)).astype(np.int64)


def _in_size(picture: Picture, size: tuple[int, int], box: Box) -> Picture:
    erased = None if picture.erased is None else any_within(picture.erased, size, box)
    return replace(picture, pixels=resized_pixels(picture.pixels, size, Image.Resampling.BOX, box), erased=erased)


def _middle(picture: Picture, height: int, width: int) -> Box:
    """The largest part in the middle of the picture that has the proportions of (height, width)."""
    across = min(picture.width, width * picture.height / height)
    down = min(picture.height, height * picture.width / width)
    left, top = (picture.width - across) / 2, (picture.height - down) / 2
    return left, top, left + across, top + down
