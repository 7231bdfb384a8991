"""UTF-8 bytes as codes: any text in 256 codes, with no alphabet to choose and nothing unknown."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.text.vocabulary import codes_of


@dataclass(frozen=True, slots=True)
class Utf8:
    """A code is a byte of the text in UTF-8."""

    @property
    def size(self) -> int:
        """256."""
        return 256

    @property
    def end(self) -> None:
        """There is none."""
        return

    def encode(self, text: str) -> Tensor:
        """uint8 (L,): the bytes."""
        try:
            content = text.encode()
        except UnicodeEncodeError as error:  # half of a surrogate pair, as a broken terminal hands it over
            got = f"{text[error.start]!r} at character {error.start}"
            raise refuse("text", expected="characters that UTF-8 can write", got=got) from None
        return torch.from_numpy(np.frombuffer(content, dtype=np.uint8).copy())

    def decode(self, codes: Tensor) -> str:
        """The text of bytes (L,); what is no UTF-8 (a model may draw such) is shown as U+FFFD."""
        return codes_of(codes, self.size).astype(np.uint8).tobytes().decode(errors="replace")

    def cut(self, text: str) -> int:
        """All of it: every character has bytes of its own."""
        return len(text)

    def to_json(self) -> dict[str, Any]:
        """The kind."""
        return {"kind": "utf8"}
