"""Four-part music as a grid of sixteenths: what models see of a ``Score``.

    pitch[v, t]   MIDI number that voice v sounds at step t, or REST
    onset[v, t]   True where a note (or a silence) begins; without it two equal notes in a row would become one

A model's code is 0 for a rest and pitch - LOWEST + 1 otherwise, so P + 1 = 58 codes hold every transposition of the
chorales by -6 … +5 semitones. With *onsets* a cell also says whether its note begins there: the same codes for a note
that begins, P more for one that goes on, 2 P + 1 = 115 in all. What goes on from another pitch begins, whatever its
code says. A row of data is the grid read step by step, soprano first: variable 4 t + v, so that the increasing order of
variables is the order of time. Without onsets a new note is where the pitch changes.
"""

from collections.abc import Iterator
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
ONSET_CODES = 2 * CODES - 1
"""Codes of a grid, and of one with onsets."""
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
        changes = np.diff(self.pitch, axis=1, prepend=REST - 1) != 0
        object.__setattr__(self, "onset", self.onset | changes)

    @classmethod
    def of(cls, pitch: NDArray[np.int16], **about: object) -> "Chorale":
        """From pitches (4, T) alone: notes begin where the pitch changes."""
        pitch = np.asarray(pitch, dtype=np.int16)
        return cls(pitch, np.zeros_like(pitch, dtype=np.bool_), **about)  # type: ignore[arg-type]

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

    def codes(self, *, onsets: bool = False) -> Tensor:
        """int64 (4 T,): the row a model sees."""
        values = np.where(self.pitch == REST, 0, self.pitch - LOWEST + 1).astype(np.int64)
        if onsets:
            values = np.where((values > 0) & ~self.onset, values + CODES - 1, values)
        return torch.from_numpy(values.T.reshape(-1).copy())

    def with_codes(self, codes: Tensor, written: Tensor, *, onsets: bool = False) -> "Chorale":
        """The same piece with the cells ``written`` (4 T,) taken from codes (4 T,); all other cells stay as they are.

        A note begins in a written cell where its code says so, where the pitch changes and where the cell before was
        not written, so no note that is kept grows longer; in the cell behind a written one, where the pitch changes.
        Onsets elsewhere are kept.
        """
        pitch = pitches_of(codes)
        fresh = written.cpu().numpy().reshape(-1, len(VOICES)).T
        pitch = np.where(fresh, pitch, self.pitch).astype(np.int16)
        begins = np.zeros_like(fresh)
        if onsets:
            begins = codes.cpu().numpy().reshape(-1, len(VOICES)).T < CODES
        begins[:, 1:] |= ~fresh[:, :-1]
        return replace(self, pitch=pitch, onset=np.where(fresh, begins & (pitch != REST), self.onset))

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

    def notes(self, voice: int) -> Iterator[tuple[int, int, int]]:
        """(first step, step behind the last, pitch) of every note and rest of a voice, in order."""
        starts = np.flatnonzero(self.onset[voice]).tolist()
        for start, end in zip(starts, [*starts[1:], self.steps]):
            yield start, end, int(self.pitch[voice, start])

    def score(self) -> Score:
        """Its notes."""
        voices = tuple(
            tuple(
                Note(start * STEP, (end - start) * STEP, None if pitch == REST else pitch)
                for start, end, pitch in self.notes(voice)
            )
            for voice in range(len(VOICES))
        )
        first = [0] if self.pickup else []
        bars = tuple(step * STEP for step in [*first, *range(self.pickup, self.steps, self.bar)])
        return Score(voices, bars, VOICES, self.tempo, self.title, Fraction(self.bar) * STEP)


def pitches_of(codes: Tensor) -> NDArray[np.int16]:
    """int16 (4, T) from a row of codes (4 T,), with onsets or without."""
    values = plain(codes).detach().cpu().numpy().reshape(-1, len(VOICES)).T.astype(np.int16)
    return np.where(values == 0, REST, values + LOWEST - 1).astype(np.int16)


def plain(codes: Tensor) -> Tensor:
    """Codes without onsets: what goes on as what begins."""
    return torch.where(codes >= CODES, codes - (CODES - 1), codes)


def nearest_step(time: Fraction) -> int:
    """The step nearest to a time in quarters; the later one of two as near."""
    return int((time / STEP + Fraction(1, 2)) // 1)


def cells_of_note(note: Note, steps: int) -> slice:
    """The steps of a note on the grid, one at least."""
    start = min(nearest_step(note.start), steps - 1)
    return slice(start, min(max(nearest_step(note.end), start + 1), steps))
