"""Which holes a picture has: those that a window of the model's size holds, and those that it does not.

A hole is a set of erased pixels that touch by their sides (4-neighbours). It fits where its bounding box takes no more
than three quarters of either side of the window, so that something around it is seen; the whole side where the picture
has no more. Small holes that lie close together share a window: the topmost that is left is taken with its
neighbours to the left and to the right, nearest first, as long as all of them lie within one window. All of that is
linear in pixels, up to sorting.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import ndimage

from anyfill.images.picture import Places

Boxes = np.ndarray[Any, np.dtype[np.int64]]
"""(K, 4): first row, first column, and the row and the column behind the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Holes:
    """What is erased of a picture, as a window of a certain size sees it.

    Attributes:
        erased: bool (H, W).
        large: bool (H, W): the pixels of holes that no window holds.
        span: height and width of the largest boxes around those.
        boxes: int64 (K, 4): around the others, together where one window holds several.
        height, width: of the window.
    """

    erased: Places
    large: Places
    span: tuple[int, int]
    boxes: Boxes
    height: int
    width: int


def holes(erased: Places, height: int, width: int) -> Holes:
    """The holes in what is erased (H, W), for windows of this size."""
    labels, boxes = _labelled(erased)
    sizes = boxes[:, 2:] - boxes[:, :2]
    fits = (sizes <= (room(erased.shape[0], height), room(erased.shape[1], width))).all(1)
    large = np.zeros_like(erased) if fits.all() else np.concatenate([[False], ~fits])[labels]
    rows, columns = sizes[~fits].max(0, initial=0).tolist()
    return Holes(erased, large, (rows, columns), _together(boxes[fits], height, width), height, width)


def room(side: int, window: int) -> int:
    """How long a hole may be on an axis of so many pixels for a window of this length to hold it."""
    return window if side <= window else max(1, window * 3 // 4)


def _labelled(erased: Places) -> tuple[np.ndarray[Any, np.dtype[np.int32]], Boxes]:
    """int32 (H, W): the number of the hole that a pixel belongs to, from 1 on; and the boxes of holes, from the top."""
    found: Any = ndimage.label(erased)
    parts: list[tuple[slice, slice]] = ndimage.find_objects(found[0])
    boxes = [(rows.start, columns.start, rows.stop, columns.stop) for rows, columns in parts]
    return found[0], np.array(boxes, dtype=np.int64).reshape(-1, 4)


def _together(boxes: Boxes, height: int, width: int) -> Boxes:
    """Boxes that windows hold, each with its neighbours where one window holds them all."""
    boxes = boxes[np.argsort(boxes[:, 0], kind="stable")]
    taken = np.zeros(len(boxes), dtype=bool)
    strips: dict[int, Boxes] = {}  # numbers of those that begin in columns k·width …, from the top
    column = boxes[:, 1] // width
    order = np.argsort(column, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(column[order])) + 1):
        if len(part):
            strips[int(column[part[0]])] = part
    tops = {strip: boxes[part, 0] for strip, part in strips.items()}
    made: list[Boxes] = []
    for number, box in enumerate(boxes):
        if taken[number]:
            continue
        near: list[Boxes] = []  # nothing above is left, so they lie within height rows from here
        for strip in range(int(column[number]) - 1, int(column[number]) + 2):
            if strip in strips:
                ends = np.searchsorted(tops[strip], (box[0], box[0] + height))
                near.append(strips[strip][ends[0] : ends[1]])
        others = np.concatenate(near)
        others = others[~taken[others] & (boxes[others, 2] <= box[0] + height)]
        others = others[np.argsort(np.abs(boxes[others, 1] - box[1]), kind="stable")]
        span = np.maximum.accumulate(boxes[others, 3]) - np.minimum.accumulate(boxes[others, 1])
        others = others[: int((span <= width).sum())]  # itself among them, the nearest of all
        taken[number] = taken[others] = True
        held = boxes[np.append(others, number)]
        made.append(np.concatenate([held[:, :2].min(0), held[:, 2:].max(0)]))
    return np.array(made, dtype=np.int64).reshape(-1, 4)
