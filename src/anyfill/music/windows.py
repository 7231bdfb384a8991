"""Windows: how a model of some bars answers about a piece of any length.

A model was trained on windows that begin with a bar: 8 bars of 4/4 (128 steps) for one without onsets, 24 bars for one
with them. What fits into one window is answered exactly as asked, from p(asked | given). A longer piece is answered
from left to right. With a the bar of the first step that is still asked, the next window

    begins     4 (16) bars before a (as far as there are any; earlier, if less than a window would be left to the end)
    is given   all that is known in it: given, or drawn by an earlier window
    answers    what is asked in it; less its last 2 bars where something is given there, so that what is written next to
               them has seen what comes (a tune, say)

So a piece that is written from nothing is p(bars 1-8), then p(4 bars | the 4 before) again and again, and its score is
the exact log-probability of being written in this way by the model's own law. A piece with a pickup begins late in its
first bar: the steps before it are neither given nor asked.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.music.chorale import BAR, ONSET_CODES
from anyfill.music.form import FEATURES
from anyfill.music.score import VOICES

WINDOW, BACK, AHEAD = 8 * BAR, 4 * BAR, 2 * BAR
LONG_WINDOW, LONG_BACK = 24 * BAR, 16 * BAR
"""Of models with onsets: they remember 16 bars at least."""


@dataclass(frozen=True, slots=True)
class Window:
    """Steps ``start`` to ``stop`` are seen; those from ``first`` to ``until`` are answered, where they are asked."""

    start: int
    stop: int
    first: int
    until: int

    @property
    def cells(self) -> slice:
        """The variables of the model that are seen."""
        return slice(len(VOICES) * self.start, len(VOICES) * self.stop)

    def answers(self, asked: Tensor) -> Tensor:
        """bool (N,): what the window answers of asked (N,)."""
        step = torch.arange(len(asked)) // len(VOICES)
        return asked & (step >= self.first) & (step < self.until)


def windows(
    asked: NDArray[np.bool_], given: NDArray[np.bool_], *, size: int = WINDOW, back: int = BACK, bar: int = BAR
) -> Iterator[Window]:
    """The windows, from left to right, that answer a question about T steps.

    Args:
        asked: bool (4, T), what is wanted; step 0 begins a bar.
        given: bool (4, T), what the model is given.
        size: steps of a window.
        back: steps of it before what it answers, at least.
        bar: steps in a bar; windows begin with one.
    """
    any_asked: NDArray[np.bool_] = np.logical_or.reduce(asked, axis=0)
    any_given: NDArray[np.bool_] = np.logical_or.reduce(given, axis=0)
    steps, done = asked.shape[1], 0
    while bool(any_asked[done:].any()):
        first = done + int(any_asked[done:].argmax())
        start = max(0, first // bar * bar - back)
        if steps - start < size:
            start = -(-max(0, steps - size) // bar) * bar
        stop = min(steps, start + size)
        comes = stop < steps and bool(any_given[stop - AHEAD : stop].any())
        done = stop - AHEAD if comes else stop
        yield Window(start, stop, first, done)


def resized(model: Model, steps: int) -> Model:
    """The same weights for pieces of another length; the network must be one that can be resized."""
    network: Any = model.network
    if not hasattr(network, "resized"):
        raise refuse("network", expected="one that can be resized", got=type(network).__name__)
    if network.shape == (steps, len(VOICES)):
        return model
    other = network.resized((steps, len(VOICES)))
    same = Model(
        other, model.likelihood, corruption=model.corruption, order=model.order, factorizations=model.factorizations
    )
    return same.train(model.training)


def has_onsets(model: Model) -> bool:
    """Whether the cells of a model say where notes begin."""
    return getattr(getattr(model.network, "kind", None), "size", 0) == ONSET_CODES


def tells_form(model: Model) -> bool:
    """Whether a model is told the form of a piece."""
    return getattr(model.network, "context_width", 0) == FEATURES
