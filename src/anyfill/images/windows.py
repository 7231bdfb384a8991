"""Holes in pictures of any size, through windows of the size that a model sees.

A picture no larger than the window lies in its middle; what is around it is neither given nor asked. On a larger one a
hole that fits in a window has one, with the hole in its middle. A larger hole is covered by windows that overlap by
half. They are filled one after the other, each given all that is known by then: always the one of which most is known,
so that a hole is closed from its edge inwards.
"""

from dataclasses import dataclass

import numpy as np

from anyfill.checks import refuse
from anyfill.images.picture import Places


@dataclass(frozen=True, slots=True)
class Window:
    """A window on a picture.

    Attributes:
        top, left: its first row and column in the picture; below 0 where it begins outside.
        height, width: of the window.
    """

    top: int
    left: int
    height: int
    width: int

    def inside(self, shape: tuple[int, int]) -> tuple[slice, slice]:
        """The part of a picture (H, W) that is seen."""
        rows = slice(max(self.top, 0), min(self.top + self.height, shape[0]))
        return rows, slice(max(self.left, 0), min(self.left + self.width, shape[1]))

    def own(self, shape: tuple[int, int]) -> tuple[slice, slice]:
        """The part of the window in which it is seen."""
        rows, columns = self.inside(shape)
        return (
            slice(rows.start - self.top, rows.stop - self.top),
            slice(columns.start - self.left, columns.stop - self.left),
        )


def windows(erased: Places, height: int, width: int) -> list[Window]:
    """The windows through which what is erased (H, W) is filled, in their order; none where nothing is."""
    shape = (erased.shape[0], erased.shape[1])
    if not erased.any():
        return []
    tops = _begins(np.flatnonzero(erased.any(1)), shape[0], height)
    lefts = _begins(np.flatnonzero(erased.any(0)), shape[1], width)
    left, unknown = [Window(top, first, height, width) for top in tops for first in lefts], erased.copy()
    chosen: list[Window] = []
    while unknown.any():
        open_still = [(int(unknown[one.inside(shape)].sum()), one) for one in left]
        open_still = [(count, one) for count, one in open_still if count]
        if not open_still:
            raise refuse("windows", expected="ones that cover the hole", got=f"{int(unknown.sum())} pixels uncovered")
        _, best = min(open_still, key=lambda found: found[0])
        chosen.append(best)
        unknown[best.inside(shape)] = False
        left = [one for _, one in open_still if one != best]
    return chosen


def _begins(hole: np.ndarray[tuple[int], np.dtype[np.int64]], side: int, window: int) -> list[int]:
    """Where windows begin on an axis of so many pixels, for a hole at these places of it."""
    if side <= window:
        return [-((window - side) // 2)]
    first, size = int(hole[0]), int(hole[-1]) + 1 - int(hole[0])
    if size <= window:
        return [min(max(first - (window - size) // 2, 0), side - window)]
    step = max(1, window // 2)
    begins = range(first - step // 2, first + size - window + step, step)  # up to the first that reaches the end
    return sorted({min(max(begin, 0), side - window) for begin in begins})
