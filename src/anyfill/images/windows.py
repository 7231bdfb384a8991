"""Holes in pictures of any size, through windows of the size that a model sees.

A picture no larger than the window lies in its middle; what is around it is neither given nor asked. On a larger one
each hole that fits in a window has one, with the hole in its middle; holes close together share it
(``anyfill.images.holes``). Larger holes are covered by windows that overlap by half. They are filled one after the
other, each given all that is known by then: always the one of which most is known, so that a hole is closed from its
edge inwards. For K windows on H x W pixels that takes O(HW + K log K). Windows that see nothing of one another's holes
may as well be filled at once (``rounds``): scattered pixels of a large picture need few rounds.
"""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from anyfill.images.holes import Boxes, Holes, holes
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
    return windows_on(holes(erased, height, width))


def windows_on(found: Holes) -> list[Window]:
    """The windows through which these holes are filled, in their order."""
    shape = (found.erased.shape[0], found.erased.shape[1])
    size = (found.height, found.width)
    places = {
        place: Window(*place, *size) for place in [*_lattice(found.large, *size), *_around(found.boxes, shape, size)]
    }
    return _most_known_first([*places.values()], found.erased)


def rounds(plan: Sequence[Window], erased: Places) -> list[list[tuple[Window, int]]]:
    """The windows of a plan, each with how many pixels it fills, in rounds: none sees what another of its round draws.

    A window comes in the round behind the last of those that drew something it sees. So each sees exactly what it sees
    when they come one after another, whatever order a round has; here those come first in which least is asked.
    """
    shape, drawn_in = (erased.shape[0], erased.shape[1]), np.where(erased, 0, -1)  # 0 = not drawn, -1 = given
    found: list[list[tuple[Window, int]]] = []
    for window in plan:
        seen = drawn_in[window.inside(shape)]
        own, number = seen == 0, max(0, int(seen.max()))
        seen[own] = number + 1
        if number == len(found):
            found.append([])
        found[number].append((window, int(np.count_nonzero(own))))
    return [sorted(each, key=lambda one: one[1]) for each in found]


def _lattice(large: Places, height: int, width: int) -> Iterator[tuple[int, int]]:
    """Tops and lefts of windows that overlap by half, wherever they meet a hole that is larger than they are."""
    if not large.any():
        return
    tops = _begins(*_ends(large, 1), large.shape[0], height)
    lefts = _begins(*_ends(large, 0), large.shape[1], width)
    shape = (large.shape[0], large.shape[1])
    for place in itertools.product(tops, lefts):
        if large[Window(*place, height, width).inside(shape)].any():
            yield place


def _around(boxes: Boxes, shape: tuple[int, int], size: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Tops and lefts of windows with these boxes in their middle, or as near to it as the picture's edge allows."""
    for top, left, bottom, right in boxes.tolist():
        yield _begins(top, bottom, shape[0], size[0])[0], _begins(left, right, shape[1], size[1])[0]


def _most_known_first(plan: Sequence[Window], erased: Places) -> list[Window]:
    """The windows that are needed, always the one next in which least is unknown, the first of equal ones.

    What a window closes changes the counts of those alone that overlap it: they are looked up by their place and come
    into the queue anew. A window waits with its old count, too, which no longer holds when its turn comes.
    """
    shape, unknown = (erased.shape[0], erased.shape[1]), erased.copy()
    near: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for number, one in enumerate(plan):
        near[one.top // one.height, one.left // one.width].append(number)
    counts = [int(np.count_nonzero(unknown[one.inside(shape)])) for one in plan]
    queue = [(count, number) for number, count in enumerate(counts)]
    heapq.heapify(queue)
    chosen: list[Window] = []
    while queue:
        count, number = heapq.heappop(queue)
        if not count or count != counts[number]:
            continue
        best = plan[number]
        chosen.append(best)
        unknown[best.inside(shape)] = False
        row, column = best.top // best.height, best.left // best.width
        for place in itertools.product((row - 1, row, row + 1), (column - 1, column, column + 1)):
            for other in near.get(place, ()):
                if counts[other]:
                    left = int(np.count_nonzero(unknown[plan[other].inside(shape)]))
                    if left != counts[other]:
                        counts[other] = left
                        heapq.heappush(queue, (left, other))
    return chosen


def _ends(places: Places, across: int) -> tuple[int, int]:
    """The first row (across = 1) or column (0) of these places, and the one behind the last."""
    found = np.flatnonzero(places.any(across))
    return int(found[0]), int(found[-1]) + 1


def _begins(first: int, end: int, side: int, window: int) -> list[int]:
    """Where windows begin on an axis of so many pixels, for a hole from its first pixel to the one behind its last."""
    if side <= window:
        return [-((window - side) // 2)]
    size = end - first
    if size <= window:
        return [min(max(first - (window - size) // 2, 0), side - window)]
    step = max(1, window // 2)
    begins = range(first - step // 2, first + size - window + step, step)  # up to the first that reaches the end
    return sorted({min(max(begin, 0), side - window) for begin in begins})
