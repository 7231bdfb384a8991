"""Four-part music as a grid of sixteenths: what models see of a ``Score``.

    pitch[v, t]   MIDI number that voice v sounds at step t, or REST
    onset[v, t]   True where a note (or a silence) begins; without it two equal notes in a row would become one

A model's code is 0 for a rest and pitch - LOWEST + 1 otherwise, so P + 1 = 58 codes hold every transposition of the
chorales by -6 … +5 semitones. A row of data is the grid read step by step, soprano first: variable 4 t + v, so that the
increasing order of variables is the order of time. Onsets are not modelled: where a model writes, a new pitch begins.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse
from anyfill.music.score import VOICES, Note, Score

REST = -1
LOWEST, HIGHEST = 30, 86
CODES = HIGHEST - LOWEST + 2
STEP = Fraction(1, 4)
"""A step in quarter notes: a sixteenth."""
BAR = 16
"""Steps in a bar of 4/4."""


@dataclass(frozen=True, slots=True, eq=False)
class Chorale:
    """Four voices over T steps.

    Attributes:
        pitch: int16 (4, T), MIDI numbers from ``LOWEST`` to ``HIGHEST``, or ``REST``.
        onset: bool (4, T), True where a note or a silence begins; always True where the pitch changes.
        bar: steps in a bar.
        pickup: steps before the first whole bar, fewer than a bar.
        tempo: quarter notes a minute.
        title: what the piece is called.
    """

    pitch: NDArray[np.int16]
    onset: NDArray[np.bool_]
    bar: int = BAR
    pickup: int = 0
    tempo: float = 80.0
    title: str = ""

    def __post_init__(self) -> None:
        if self.pitch.ndim != 2 or len(self.pitch) != len(VOICES) or self.pitch.shape[1] == 0:
            raise refuse("shape of pitch", expected="(4, steps), one step at least", got=self.pitch.shape)
        if self.onset.shape != self.pitch.shape:
            raise refuse("shape of onset", expected=f"{self.pitch.shape}, as pitch", got=self.onset.shape)
        bad = (self.pitch != REST) & ((self.pitch < LOWEST) | (self.pitch > HIGHEST))
        if bool(bad.any()):
            voice, step = (int(i) for i in np.argwhere(bad)[0])
            expected = f"MIDI {LOWEST} to {HIGHEST}, or {REST} for a rest"
            raise refuse(f"pitch of the {VOICES[voice]} at step {step}", expected=expected, got=self.pitch[voice, step])
        object.__setattr__(self, "onset", self.onset | changes(self.pitch))

    @classmethod
    def of(cls, pitch: NDArray[np.int16], **about: object) -> "Chorale":
        """From pitches (4, T) alone: notes begin where the pitch changes."""
        pitch = np.asarray(pitch, dtype=np.int16)
        return cls(pitch, changes(pitch) if pitch.ndim == 2 else np.zeros_like(pitch, dtype=np.bool_), **about)  # type: ignore[arg-type]

    @property
    def steps(self) -> int:
        """T."""
        return self.pitch.shape[1]

    @property
    def bars(self) -> range:
        """The numbers of its bars; 0 is a pickup."""
        whole = -(-(self.steps - self.pickup) // self.bar)
        return range(0 if self.pickup else 1, whole + 1)

    def bar_and_beat(self, step: int) -> tuple[int, float]:
        """Where a step lies: its bar's number, and its beat in quarters from 1 (a pickup ends with its bar's end)."""
        place = step - self.pickup + self.bar
        return place // self.bar, 1 + place % self.bar / 4

    def codes(self) -> Tensor:
        """int64 (4 T,): the row a model sees."""
        values = np.where(self.pitch == REST, 0, self.pitch - LOWEST + 1)
        return torch.from_numpy(values.T.reshape(-1).astype(np.int64))

    def with_codes(self, codes: Tensor, written: Tensor) -> "Chorale":
        """The same piece with the cells ``written`` (4 T,) taken from codes (4 T,); all other cells stay as they are.

        A note begins in a written cell where the pitch changes, and in the cell behind a written one likewise; onsets
        elsewhere are kept.
        """
        pitch = pitches_of(codes)
        fresh = written.cpu().numpy().reshape(-1, len(VOICES)).T
        pitch = np.where(fresh, pitch, self.pitch).astype(np.int16)
        return replace(self, pitch=pitch, onset=np.where(fresh, False, self.onset))

    def transposed(self, semitones: int) -> "Chorale":
        """Every note so much higher."""
        pitch = np.where(self.pitch == REST, REST, self.pitch + semitones).astype(np.int16)
        return replace(self, pitch=pitch)

    def cut(self, start: int, stop: int) -> "Chorale":
        """Steps ``start`` to ``stop``; what sounds at the first begins there."""
        onset = self.onset[:, start:stop].copy()
        onset[:, :1] = True
        pickup = (self.pickup - start) % self.bar
        return replace(self, pitch=self.pitch[:, start:stop], onset=onset, pickup=pickup)

    def score(self) -> Score:
        """Its notes."""
        voices: list[tuple[Note, ...]] = []
        for pitch, onset in zip(self.pitch, self.onset):
            starts = np.flatnonzero(onset).tolist()
            ends = [*starts[1:], self.steps]
            voices.append(
                tuple(
                    Note(start * STEP, (end - start) * STEP, None if pitch[start] == REST else int(pitch[start]))
                    for start, end in zip(starts, ends)
                )
            )
        first = [0] if self.pickup else []
        bars = tuple(step * STEP for step in [*first, *range(self.pickup, self.steps, self.bar)])
        return Score(tuple(voices), bars, VOICES, self.tempo, self.title, Fraction(self.bar) * STEP)


def changes(pitch: NDArray[np.int16]) -> NDArray[np.bool_]:
    """bool (4, T): True in the first step and wherever the pitch (4, T) is another than before."""
    different = np.ones(pitch.shape, dtype=np.bool_)
    different[:, 1:] = pitch[:, 1:] != pitch[:, :-1]
    return different


def pitches_of(codes: Tensor) -> NDArray[np.int16]:
    """int16 (4, T) from a row of codes (4 T,)."""
    values = codes.detach().cpu().numpy().reshape(-1, len(VOICES)).T.astype(np.int16)
    return np.where(values == 0, REST, values + LOWEST - 1).astype(np.int16)
