"""Notes struck again: a plain rule for models that do not know where notes begin.

A grid without onsets cannot tell two equal notes from one long note, so what such a model writes is held until the
pitch changes: a drone under a tune that repeats its notes. In chorales the voices speak the same words, and mostly
strike together. The rule: on a beat, a written note that would be held is struck again

    where a given voice begins a note, or
    where no voice is given there, if two other voices begin one.

It adds beginnings only, never changes a pitch, and is not what the model says: ``held`` switches it off, and a model
with onsets needs none. How it compares with Bach is in docs/results/music.md.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from anyfill.music.chorale import REST, STEP, Chorale
from anyfill.music.piece import Piece

_TOGETHER = 2


def beat_of(piece: Piece) -> int:
    """Steps in a beat: a quarter, or three eighths where the time signature is 6/8, 9/8 or 12/8."""
    signs = None if piece.source is None else piece.source.signs
    bar = piece.chorale.bar * STEP
    compound = signs is not None and any(
        unit == 8 and beats % 3 == 0 and beats > 3 and Fraction(4 * beats, unit) == bar
        for _, beats, unit in signs.times
    )
    return 6 if compound else 4


def strike_again(chorale: Chorale, written: NDArray[np.bool_], *, beat: int = 4) -> Chorale:
    """The piece with written notes struck again after the rule.

    Args:
        chorale: what was written, with what was given.
        written: bool (4, T), the cells that were.
        beat: steps in a beat.
    """
    onset = chorale.onset & (chorale.pitch != REST)
    step = np.arange(chorale.steps)
    on_beat = (step - chorale.pickup) % chorale.bar % beat == 0
    given: NDArray[np.bool_] = ~written & (chorale.pitch != REST)
    struck = (onset & given).any(0)
    anyone = given.any(0)
    together = onset.sum(0) >= _TOGETHER
    where = on_beat & np.where(anyone, struck, together)
    held = written & (chorale.pitch != REST) & ~chorale.onset
    return replace(chorale, onset=chorale.onset | (held & where))
