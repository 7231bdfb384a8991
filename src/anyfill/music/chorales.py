"""Many chorales as rows of one length: every crop of every piece in every transposition, each with a number.

A crop of L steps begins with a bar, so that the place of a step in its bar (t modulo 16) means the same in every row:
a piece with a pickup begins late in its first bar. What a crop has before the beginning or behind the end of its piece
is missing: never told and never asked. A transposition is left out where it would leave the range of the codes.

The JSB file (``read_jsb``) has lists of steps [soprano, alto, tenor, bass] of MIDI numbers, -1 for silence. It has no
onsets: two equal notes in a row cannot be told from one long note.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.music.chorale import HIGHEST, LOWEST, REST, VOICES, Chorale
from anyfill.rows import Rows

TRANSPOSITIONS = tuple(range(-6, 6))


@dataclass(frozen=True, eq=False)
class Crops:
    """All crops of these pieces; a source of rows (``RowSource``) of 4 L variables.

    Attributes:
        pieces: the chorales.
        steps: L.
        stride: steps between the beginnings of two crops of a piece.
        transpositions: in semitones.
    """

    pieces: Sequence[Chorale]
    steps: int = 128
    stride: int = 16
    transpositions: tuple[int, ...] = TRANSPOSITIONS
    _codes: Tensor = field(init=False, repr=False)
    _present: Tensor = field(init=False, repr=False)
    _shift: Tensor = field(init=False, repr=False)
    _index: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_count("steps", self.steps)
        require_count("stride", self.stride, maximum=self.steps)
        codes: list[Tensor] = []
        present: list[Tensor] = []
        shifts: list[tuple[int, int]] = []
        for piece in self.pieces:
            row = piece.codes().reshape(-1, len(VOICES))
            sounding = piece.pitch[piece.pitch != REST]
            low, high = (int(sounding.min()), int(sounding.max())) if len(sounding) else (LOWEST, HIGHEST)
            before = -piece.pickup % piece.bar
            row = torch.nn.functional.pad(row, (0, 0, before, self.steps), value=-1)  # -1: not there
            for start in range(0, max(before + piece.steps - self.steps, 0) + self.stride, self.stride):
                crop = row[start : start + self.steps].reshape(-1)
                codes.append(crop.clamp(min=0))
                present.append(crop >= 0)
                shifts += [
                    (len(codes) - 1, s) for s in self.transpositions if low + s >= LOWEST and high + s <= HIGHEST
                ]
        if not shifts:
            raise refuse("pieces", expected="one at least that fits the range of pitches", got="none")
        object.__setattr__(self, "_codes", torch.stack(codes))
        object.__setattr__(self, "_present", torch.stack(present))
        object.__setattr__(self, "_index", torch.tensor([crop for crop, _ in shifts]))
        object.__setattr__(self, "_shift", torch.tensor([shift for _, shift in shifts]))

    def __len__(self) -> int:
        return len(self._index)

    @property
    def variables(self) -> int:
        return self.steps * len(VOICES)

    def take(self, index: Tensor) -> Rows:
        """The crops of these numbers."""
        place = index.to(self._index.device)
        codes, present = self._codes[self._index[place]], self._present[self._index[place]]
        moved = torch.where(codes > 0, codes + self._shift[place].unsqueeze(1), 0)
        return Rows(moved, present)

    def rows(self) -> Rows:
        """All of them."""
        return self.take(torch.arange(len(self)))

    def to(self, device: torch.device | str) -> "Crops":
        """The same crops on another device."""
        moved = Crops(self.pieces, self.steps, self.stride, self.transpositions)
        for name in ("_codes", "_present", "_index", "_shift"):
            object.__setattr__(moved, name, getattr(self, name).to(device))
        return moved


def whole_windows(pieces: Sequence[Chorale], steps: int = 128) -> list[Chorale]:
    """Windows as the SUNMASK paper cuts its examples: one after the other, strictly before the end, none with a rest.

    On JSB train and valid these are 413, which in 12 transpositions are its 4956 training examples.
    """
    cut = [piece.cut(at, at + steps) for piece in pieces for at in range(0, piece.steps - steps, steps)]
    return [window for window in cut if bool((window.pitch != REST).all())]


def read_jsb(path: str | Path, part: str) -> list[Chorale]:
    """The pieces of one part ("train", "valid" or "test") of a JSB file; ValueError if it is not one."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise refuse(f"JSB file {path}", expected="a readable file", got=error.strerror or str(error)) from error
    except ValueError as error:
        raise refuse(f"JSB file {path}", expected="JSON", got=str(error)) from error
    if not isinstance(content, dict) or part not in content:
        got = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise refuse(f"JSB file {path}", expected=f'an object with the part "{part}"', got=got)
    return [_piece(piece, f"{part} {number}") for number, piece in enumerate(content[part])]


def _piece(steps: object, title: str) -> Chorale:
    try:
        values = np.array(steps, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise refuse(f"piece {title}", expected="steps of four numbers each", got=str(error)) from error
    if values.ndim != 2 or values.shape[1] != len(VOICES):
        raise refuse(f"piece {title}", expected="steps of four numbers each", got=f"shape {values.shape}")
    values = np.where(np.isnan(values), REST, values)
    # The file says nothing of bars. Pieces end with a whole bar, so what is left over in front is a pickup.
    return Chorale.of(values.T.astype(np.int16), title=title, pickup=len(values) % 16)
