"""A vocabulary and one more code, the last: the end of a line.

Without it a model of sentences never learns where they end, because what stands behind them is missing from the data.
A corpus that is encoded line by line has the end after each line; nothing that is decoded goes on behind it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from anyfill.checks import refuse
from anyfill.text.vocabulary import Vocabulary, codes_of


@dataclass(frozen=True, slots=True)
class WithEnd:
    """The codes of ``inner``, and the end.

    Attributes:
        inner: any vocabulary without an end.
    """

    inner: Vocabulary

    def __post_init__(self) -> None:
        if self.inner.end is not None:
            raise refuse("inner", expected="a vocabulary without an end", got=f"one that has the end {self.inner.end}")

    @property
    def size(self) -> int:
        """The number of codes, the end included."""
        return self.inner.size + 1

    @property
    def end(self) -> int:
        """The last code."""
        return self.inner.size

    def encode(self, text: str) -> Tensor:
        """As ``inner`` does it, without an end."""
        return self.inner.encode(text)

    def decode(self, codes: Tensor) -> str:
        """The text of codes (L,) up to the first end."""
        ends = np.flatnonzero(codes_of(codes, self.size) == self.end)
        return self.inner.decode(codes[: int(ends[0])] if len(ends) else codes)

    def cut(self, text: str) -> int:
        """As ``inner`` does it."""
        return self.inner.cut(text)

    def to_json(self) -> dict[str, Any]:
        """Kind, and that of ``inner``."""
        return {"kind": "with_end", "inner": self.inner.to_json()}
