"""Text as rows: a fixed alphabet of characters, and windows of fixed length cut from one long string."""

from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.data.rows import Rows


@dataclass(frozen=True, slots=True)
class Characters:
    """Codes for the characters of an alphabet, in its order; for text8, ``" abcdefghijklmnopqrstuvwxyz"``."""

    alphabet: str

    def __post_init__(self) -> None:
        if not self.alphabet or len(set(self.alphabet)) != len(self.alphabet):
            raise refuse("alphabet", expected="at least one character and none twice", got=repr(self.alphabet))

    @property
    def size(self) -> int:
        """The number of characters."""
        return len(self.alphabet)

    def encode(self, text: str) -> Tensor:
        """uint8 or int64 (len(text),): the code of each character."""
        table = {character: code for code, character in enumerate(self.alphabet)}
        unknown = sorted(set(text) - table.keys())
        if unknown:
            raise refuse("text", expected=f"characters from {self.alphabet!r} only", got="".join(unknown[:10]))
        dtype = torch.uint8 if self.size <= 256 else torch.int64
        return torch.tensor(list(map(table.__getitem__, text)), dtype=dtype)

    def decode(self, codes: Tensor) -> str:
        """The text of codes (L,)."""
        return "".join(self.alphabet[code] for code in codes.tolist())


@dataclass(frozen=True, slots=True)
class Windows:
    """Every window of ``length`` consecutive tokens, by its first position; a RowSource that copies nothing.

    Attributes:
        tokens: integer codes (L,), on any device; a memory-mapped tensor will do.
        length: N, tokens per window.
        stride: distance between the starts of neighbouring windows (``length`` = disjoint chunks).
    """

    tokens: Tensor
    length: int
    stride: int = 1

    def __post_init__(self) -> None:
        require_count("length", self.length)
        require_count("stride", self.stride)
        if self.tokens.dim() != 1 or len(self.tokens) < self.length:
            raise refuse("tokens", expected=f"one line of at least {self.length}", got=tuple(self.tokens.shape))

    def __len__(self) -> int:
        return (len(self.tokens) - self.length) // self.stride + 1

    @property
    def variables(self) -> int:
        """N, tokens per window."""
        return self.length

    def take(self, index: Tensor) -> Rows:
        """The windows with these numbers (B,), as rows on the tokens' device."""
        start = index.to(self.tokens.device).unsqueeze(1) * self.stride
        x = self.tokens[start + torch.arange(self.length, device=self.tokens.device)].long()
        return Rows(x, torch.ones_like(x, dtype=torch.bool))
