"""Rows from a corpus of lines: one sentence each, with padding behind it that does not exist.

A row has N places. A sentence of n < N codes is present in the first n; the others are missing, so they are never
told and never asked, and no loss comes of them. A model trained on such rows answers for the places of a sentence:

- to draw a sentence, ask the first n places and nothing behind them, n drawn from ``lengths``;
- or encode the corpus with an end code (``WithEnd``), ask all places, and read up to the end. That is right for models
  that are read from left to right; others have never seen what would then stand behind the end.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.rows import Rows
from anyfill.text.corpus_rows import checked_index
from anyfill.text.token_file import Tokens

_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """The lines of a corpus as rows; a RowSource that reads only the rows it is asked for.

    Attributes:
        tokens: a corpus that was encoded with ``lines``, or a part of it.
        length: N, places per row.
        longer: what happens to longer lines: their beginning is taken ("cut"), or they are left out ("drop", which
            keeps the numbers of the others in memory).
    """

    tokens: Tokens
    length: int
    longer: Literal["cut", "drop"] = "cut"
    _kept: NDArray[Any] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_count("length", self.length)
        if self.longer not in ("cut", "drop"):
            raise refuse("longer", expected="'cut' or 'drop'", got=repr(self.longer))
        if self.tokens.bounds is None:
            raise refuse("corpus", expected="one that was encoded line by line (lines=True)", got="one without lines")
        kept = None
        if self.longer == "drop":
            starts = range(0, len(self.tokens.bounds) - 1, _AT_ONCE)
            kept = np.concatenate([start + np.flatnonzero(self._sizes(start) <= self.length) for start in starts])
            if not len(kept):
                raise refuse("corpus", expected=f"a line of at most {self.length} tokens", got="longer ones only")
        object.__setattr__(self, "_kept", kept)

    def __len__(self) -> int:
        return self._bounds.size - 1 if self._kept is None else len(self._kept)

    @property
    def variables(self) -> int:
        """N, places per row."""
        return self.length

    @property
    def lengths(self) -> Tensor:
        """int64 (rows,): how many places of each row are present."""
        starts = range(0, self._bounds.size - 1, _AT_ONCE)
        sizes = np.concatenate([self._sizes(start) for start in starts])
        sizes = sizes if self._kept is None else sizes[self._kept]
        return torch.from_numpy(np.minimum(sizes, self.length))

    def take(self, index: Tensor) -> Rows:
        """The lines with these numbers (B,), as int64 rows on the CPU; 0 where nothing is present."""
        number = checked_index(index, len(self))
        line = number if self._kept is None else self._kept[number]
        start, stop = self._bounds[line].astype(np.int64), self._bounds[line + 1].astype(np.int64)
        place = start[:, None] + np.arange(self.length)
        present = place < stop[:, None]
        codes = self.tokens.codes[np.where(present, place, start[:, None])]
        x = np.where(present, codes, 0).astype(np.int64)
        return Rows(torch.from_numpy(x), torch.from_numpy(present))

    @property
    def _bounds(self) -> NDArray[Any]:
        bounds = self.tokens.bounds
        return np.zeros(1, dtype=np.uint64) if bounds is None else bounds

    def _sizes(self, start: int) -> NDArray[np.int64]:
        """The lengths of at most ``_AT_ONCE`` lines from ``start`` on."""
        return np.diff(self._bounds[start : start + _AT_ONCE + 1].astype(np.int64))
