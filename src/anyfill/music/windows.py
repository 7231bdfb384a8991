"""Pieces longer than the model has seen: a window of eight bars at a time.

The model was trained on 8 bars of 4/4 (128 steps) that begin with a bar. What fits into one window is answered exactly
as asked, from p(asked | given). A longer piece is answered from left to right. With a the bar of the first step that is
still asked, the next window

    begins     4 bars before a (as far as there are any; earlier, if fewer than 8 bars would be left to the end)
    is told    all that is known in it: given, or drawn by an earlier window
    answers    what is asked in it; less its last 2 bars where something is given there, so that what is written next to
               them has seen what comes (a tune, say)

So a piece that is written from nothing is p(bars 1-8), then p(4 bars | the 4 before) again and again, and its score is
the exact log-probability of being written in this way by the model's own law.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BAR = 16
WINDOW, BACK, AHEAD = 8 * BAR, 4 * BAR, 2 * BAR


@dataclass(frozen=True, slots=True)
class Window:
    """Steps ``start`` to ``stop`` are seen; those from ``first`` to ``until`` are answered, where they are asked."""

    start: int
    stop: int
    first: int
    until: int


def windows(asked: NDArray[np.bool_], given: NDArray[np.bool_]) -> Iterator[Window]:
    """The windows, from left to right, that answer a question about T steps.

    Args:
        asked: bool (4, T), what is wanted; step 0 begins a bar.
        given: bool (4, T), what is told.
    """
    wanted: NDArray[np.bool_] = np.logical_or.reduce(asked, axis=0)
    told: NDArray[np.bool_] = np.logical_or.reduce(given, axis=0)
    steps, done = asked.shape[1], 0
    while bool(wanted[done:].any()):
        first = done + int(wanted[done:].argmax())
        start = max(0, first // BAR * BAR - BACK)
        if steps - start < WINDOW:
            start = -(-max(0, steps - WINDOW) // BAR) * BAR
        stop = min(steps, start + WINDOW)
        comes = stop < steps and bool(told[stop - AHEAD : stop].any())
        done = stop - AHEAD if comes else stop
        yield Window(start, stop, first, done)
