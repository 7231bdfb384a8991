"""Crops of pieces as rows to train on.

Every crop of every piece in every transposition, each with a number. A crop of L steps begins with a bar, so that the
place of a step in its bar (t modulo 16) means the same in every row: a piece with a pickup begins late in its first
bar. What a crop has before the beginning or behind the end of its piece is missing: never given and never asked. A
transposition is left out where it would leave the range of the codes.

Crops with onsets (``FormCrops``) are told the form of their piece (``anyfill.music.form``). They begin with every bar,
and each is there in several versions that are told more or less, so that the model can do with what a user knows.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from anyfill.checks import refuse, require_count
from anyfill.music.chorale import BAR, CODES, HIGHEST, LOWEST, REST, Chorale
from anyfill.music.form import FEATURES, GROUPS, Form, per_cell, transposed_features
from anyfill.music.piece import Piece
from anyfill.music.score import VOICES
from anyfill.rows import Rows

TRANSPOSITIONS = tuple(range(-6, 6))
TOLD = ((True, True, True), (False, True, True), (False, True, False), (False, False, True))
"""What versions of a crop are told: fermatas, the end, the key."""


class _Numbered(ABC):
    """Rows by number: each is a crop, moved by some semitones; a source of rows (``RowSource``) of 4 L variables."""

    steps: int
    _codes: Tensor
    """(crops, 4 L); -1: not there."""
    _crop: Tensor
    _shift: Tensor

    def __len__(self) -> int:
        return len(self._crop)

    @property
    def variables(self) -> int:
        return self.steps * len(VOICES)

    @abstractmethod
    def take(self, index: Tensor) -> Rows:
        """The crops of these numbers."""

    def rows(self) -> Rows:
        """All of them."""
        return self.take(torch.arange(len(self)))

    def to(self, device: torch.device | str) -> Self:
        """The same crops on another device."""
        moved = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(moved, name, value.to(device))
        return moved


class Crops(_Numbered):
    """All crops of these pieces."""

    def __init__(
        self,
        pieces: Sequence[Chorale],
        steps: int = 128,
        stride: int = BAR,
        transpositions: Sequence[int] = TRANSPOSITIONS,
    ) -> None:
        """Cut the pieces.

        Args:
            pieces: the chorales.
            steps: L.
            stride: steps between the beginnings of two crops of a piece.
            transpositions: in semitones.
        """
        require_count("steps", steps)
        require_count("stride", stride, maximum=steps)
        self.steps = steps
        codes: list[Tensor] = []
        shifts: list[tuple[int, int]] = []
        for piece in pieces:
            fitting = _fitting(piece, transpositions)
            before = -piece.pickup % piece.bar
            row = functional.pad(piece.codes().reshape(-1, len(VOICES)), (0, 0, before, steps), value=-1)
            for start in range(0, max(before + piece.steps - steps, 0) + stride, stride):
                shifts += [(len(codes), shift) for shift in fitting]
                codes.append(row[start : start + steps].reshape(-1))
        if not shifts:
            raise refuse("pieces", expected="one at least that fits the range of pitches", got="none")
        self._codes = torch.stack(codes)
        self._crop, self._shift = torch.tensor(shifts).unbind(1)

    def take(self, index: Tensor) -> Rows:
        """The crops of these numbers."""
        place = index.to(self._crop.device)
        codes = self._codes[self._crop[place]]
        moved = torch.where(codes > 0, codes + self._shift[place].unsqueeze(1), 0)
        return Rows(moved, codes >= 0)

    @property
    def notes_in_a_row(self) -> float:
        """How many notes a row has on average, as far as a grid shows them."""
        grid = self._codes.reshape(len(self._codes), -1, len(VOICES))
        begins = grid > 0
        begins[:, 1:] &= grid[:, 1:] != grid[:, :-1]
        return float(begins.flatten(1).sum(1).float()[self._crop].mean())


class FormCrops(_Numbered):
    """All crops of pieces with onsets, in every version of ``TOLD``; a source of rows of 4 L variables with a context.

    A crop begins with every bar that leaves four bars of its piece at least, or with the first.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        steps: int,
        *,
        transpositions: Sequence[int] = TRANSPOSITIONS,
        told: Sequence[tuple[bool, bool, bool]] = TOLD,
        every_bar: bool = True,
    ) -> None:
        """Cut the pieces.

        Args:
            pieces: as they were read.
            steps: L.
            transpositions: in semitones.
            told: versions of what is told.
            every_bar: crops begin with every bar; else one after the other.
        """
        require_count("steps", steps)
        self.steps = steps
        codes, forms, index = list[Tensor](), list[Tensor](), list[tuple[int, int, int]]()
        for piece in pieces:
            chorale = piece.chorale
            fitting = _fitting(chorale, transpositions)
            row = functional.pad(chorale.codes(onsets=True).reshape(-1, len(VOICES)), (0, 0, 0, steps), value=-1)
            row = torch.where(torch.from_numpy(np.pad(piece.present, ((0, 0), (0, steps))).T), row, -1)
            form = functional.pad(Form.of(piece).features(), (0, 0, 0, steps))
            first = chorale.pickup or chorale.bar
            last = max(chorale.steps - 4 * chorale.bar, 1)
            starts = [0, *range(first, last, chorale.bar)] if every_bar else [*range(0, chorale.steps, steps)]
            for start in starts:
                index += [(len(codes), shift, version) for shift in fitting for version in range(len(told))]
                codes.append(row[start : start + steps].reshape(-1))
                forms.append(form[start : start + steps])
        if not index:
            raise refuse("pieces", expected="one at least that fits the range of pitches", got="none")
        self._codes, self._forms = torch.stack(codes), torch.stack(forms)
        self._crop, self._shift, self._version = torch.tensor(index).unbind(1)
        self._hidden = torch.stack([_hidden(version) for version in told])

    def take(self, index: Tensor) -> Rows:
        """The crops of these numbers."""
        place = index.to(self._crop.device)
        crop, shift = self._crop[place], self._shift[place]
        codes, form = self._codes[crop], transposed_features(self._forms[crop], shift)
        moved = torch.where(codes > 0, codes + shift.unsqueeze(1), 0)
        form = torch.where(self._hidden[self._version[place]].unsqueeze(1), 0.0, form)
        return Rows(moved, codes >= 0, per_cell(form))

    @property
    def notes_in_a_row(self) -> float:
        """How many notes a row has on average."""
        begins = (self._codes > 0) & (self._codes < CODES)
        return float(begins.sum(1).float()[self._crop].mean())


def _hidden(told: tuple[bool, bool, bool]) -> Tensor:
    """bool (F,): the features that are not told."""
    hidden = torch.zeros(FEATURES, dtype=torch.bool)
    for group, there in zip(GROUPS, told):
        hidden[group] = not there
    return hidden


def _fitting(chorale: Chorale, transpositions: Sequence[int]) -> list[int]:
    """The transpositions, in semitones, that leave a piece within the range of the codes."""
    sounding = chorale.pitch[chorale.pitch != REST]
    low, high = (int(sounding.min()), int(sounding.max())) if len(sounding) else (LOWEST, HIGHEST)
    return [shift for shift in transpositions if low + shift >= LOWEST and high + shift <= HIGHEST]


def whole_windows(pieces: Sequence[Chorale], steps: int = 128) -> list[Chorale]:
    """Windows as the SUNMASK paper cuts its examples: one after the other, strictly before the end, none with a rest.

    On JSB train and valid these are 413, which in 12 transpositions are its 4956 training examples.
    """
    cut = [piece.cut(at, at + steps) for piece in pieces for at in range(0, piece.steps - steps, steps)]
    return [window for window in cut if bool((window.pitch != REST).all())]
