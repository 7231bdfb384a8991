"""What a model is told of the form of a piece beside its notes: metre, fermatas, the end, the key.

For every step a vector of ``FEATURES`` numbers:

    place in the bar and in the beat (sine and cosine), beginning of a bar, of a beat, steps in a bar, beats of three
    whether fermatas are told; a note under a fermata; how near the next one is
    whether the end is told; how near it is (two scales); how near the beginning is
    whether the key is told; minor; its tonic, one of twelve

So the same pitches can be written differently in 3/4 and 6/8, phrases can close at fermatas and pieces at their end.
Each of the three groups may be left untold, in training for a random part of the rows: what a user does not know need
not be stated. A beat is a quarter, the unit of the time signature if that is longer, or three units of 6/8, 9/8, 12/8.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.music.chorale import STEP
from anyfill.music.piece import Piece
from anyfill.music.score import VOICES

FEATURES = 29
_TONIC = 17
_FERMATA, _END, _KEY = slice(8, 11), slice(11, 14), slice(15, FEATURES)
GROUPS = (_FERMATA, _END, _KEY)
"""What may be left untold."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a piece of T steps.

    Attributes:
        steps: T.
        bar, pickup, beat: in steps.
        fermatas: first steps and ends of notes under a fermata; None = not told.
        key: pitch class of the tonic and whether it is minor; None = not told.
        ends: whether the piece ends with its last step.
    """

    steps: int
    bar: int
    pickup: int = 0
    beat: int = 4
    fermatas: tuple[tuple[int, int], ...] | None = None
    key: tuple[int, bool] | None = None
    ends: bool = True

    @classmethod
    def of(cls, piece: Piece, *, ends: bool = True) -> "Form":
        """That of a piece, as far as its file states it; its key is the stated one."""
        chorale, signature = piece.chorale, piece.signature
        key = None if signature is None else ((signature.key.pitch_class + piece.shift) % 12, signature.minor)
        signs = None if piece.source is None else piece.source.signs
        fermatas = None
        if signs is not None and signs.fermatas:
            found = {
                (round(note.start / STEP), round(note.end / STEP))
                for line in piece.lines for note in line if note.start in signs.fermatas and note.pitch is not None
            }  # fmt: skip
            fermatas = tuple(sorted(found))
        times = [] if signs is None else [(b, u) for _, b, u in signs.times if Fraction(4 * b, u) == chorale.bar * STEP]
        return cls(chorale.steps, chorale.bar, chorale.pickup, _beat(*times[0]) if times else 4, fermatas, key, ends)

    def features(self) -> Tensor:
        """float32 (T, FEATURES)."""
        step = np.arange(self.steps)
        place = (step - self.pickup) % self.bar
        inside = place % self.beat
        out = np.zeros((self.steps, FEATURES))
        for column, angle in ((0, place / self.bar), (2, inside / self.beat)):
            out[:, column], out[:, column + 1] = np.sin(2 * np.pi * angle), np.cos(2 * np.pi * angle)
        out[:, 4], out[:, 5], out[:, 6], out[:, 7] = place == 0, inside == 0, self.bar / 16, self.beat % 3 == 0
        if self.fermatas is not None:
            out[:, 8] = 1
            for start, end in self.fermatas:
                out[start:end, 9] = 1
            out[:, 10] = np.exp(-_until(step, [start for start, _ in self.fermatas]) / 8)
        if self.ends:
            left = self.steps - 1 - step
            out[:, 11], out[:, 12], out[:, 13] = 1, np.exp(-left / 32), np.exp(-left / 6)
        out[:, 14] = np.exp(-step / 8)
        if self.key is not None:
            out[:, 15], out[:, 16] = 1, self.key[1]
            out[:, _TONIC + self.key[0]] = 1
        return torch.from_numpy(out.astype(np.float32))

    def transposed(self, semitones: int) -> "Form":
        """The form of the piece so much higher."""
        return self if self.key is None else replace(self, key=((self.key[0] + semitones) % 12, self.key[1]))


def transposed_features(features: Tensor, semitones: Tensor) -> Tensor:
    """Features (B, T, F) of rows that are so many semitones (B,) higher."""
    place = (torch.arange(12, device=features.device) - semitones.unsqueeze(1)) % 12  # (B, 12)
    tonic = features[..., _TONIC:]
    turned = tonic.gather(2, place.unsqueeze(1).expand(-1, tonic.shape[1], -1))
    return torch.cat([features[..., :_TONIC], turned], -1)


def per_cell(features: Tensor) -> Tensor:
    """(B, 4 T, F) from (B, T, F): every voice of a step is told the same."""
    return features.repeat_interleave(len(VOICES), 1)


def _beat(beats: int, unit: int) -> int:
    compound = unit >= 8 and beats % 3 == 0 and beats > 3
    return max((3 if compound else 1) * 16 // unit, 1) if compound or unit <= 4 else 4


def _until(step: NDArray[np.int64], places: list[int]) -> NDArray[np.float64]:
    """Steps to the next of these places; many where there is none."""
    ahead = np.full(len(step), 1e3)
    for place in places:
        ahead = np.where(step <= place, np.minimum(ahead, place - step), ahead)
    return ahead
