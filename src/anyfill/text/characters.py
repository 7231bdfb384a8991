"""Text as rows: a fixed alphabet of characters, and windows of fixed length cut from one long string.

Windows are of tokens that are in memory, on any device; ``anyfill.text.corpus_rows`` cuts token files on the disk.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.rows import Rows
from anyfill.text.vocabulary import codes_of

_CODE_POINTS = 0x110000
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True, slots=True)
class Characters:
    """Codes for the characters of an alphabet, in its order; for text8, ``" abcdefghijklmnopqrstuvwxyz"``.

    Attributes:
        alphabet: the characters.
        unknown: the one of them that stands for every other character; empty = others are refused.
    """

    alphabet: str
    unknown: str = ""

    def __post_init__(self) -> None:
        if not self.alphabet or len(set(self.alphabet)) != len(self.alphabet):
            raise refuse("alphabet", expected="at least one character and none twice", got=repr(self.alphabet))
        if self.unknown and (len(self.unknown) != 1 or self.unknown not in self.alphabet):
            raise refuse("unknown", expected="one character of the alphabet, or none", got=repr(self.unknown))

    @property
    def size(self) -> int:
        """The number of characters."""
        return len(self.alphabet)

    @property
    def end(self) -> None:
        """There is none."""
        return

    def encode(self, text: str) -> Tensor:
        """uint8 or int64 (len(text),): the code of each character."""
        if self.size <= 256 and text.isascii():  # several times as fast, where all is well
            swap, known = _ascii(self.alphabet)
            content = text.encode("ascii")
            if not content.translate(None, known):
                return torch.from_numpy(np.frombuffer(content.translate(swap), dtype=np.uint8).copy())
        table = _table(self.alphabet)
        codes = table[np.minimum(_code_points(text).astype(np.int32), len(table) - 1)]
        if codes.size and codes.min() < 0:
            if not self.unknown:
                unknown = "".join(sorted({text[i] for i in np.flatnonzero(codes < 0)[:1000].tolist()})[:10])
                raise refuse("text", expected=f"characters from {_shown(self.alphabet)} only", got=repr(unknown))
            codes = np.where(codes < 0, self.alphabet.index(self.unknown), codes)
        return torch.from_numpy(codes.astype(np.uint8 if self.size <= 256 else np.int64))

    def decode(self, codes: Tensor) -> str:
        """The text of codes (L,)."""
        points = np.frombuffer(self.alphabet.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        return points[codes_of(codes, self.size)].tobytes().decode("utf-32-le", "surrogatepass")

    def cut(self, text: str) -> int:
        """All of it: every character stands for itself."""
        return len(text)

    def to_json(self) -> dict[str, Any]:
        """Kind and fields."""
        return {"kind": "characters", "alphabet": self.alphabet, "unknown": self.unknown}


TEXT8 = Characters(" abcdefghijklmnopqrstuvwxyz")
"""The 27 symbols of text8."""


def as_text8(text: str) -> str:
    """Any text in the 27 symbols of text8, as that corpus was made: letters in lower case, digits spelt out.

    Accents are taken off first (text8 has none); each run of anything else is one space.
    """
    plain = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    spelt = re.sub("[0-9]", lambda digit: f" {_DIGITS[int(digit[0])]} ", plain)
    return re.sub("[^a-z]+", " ", spelt)


def characters_in(texts: Iterable[str], *, most: int | None = None, unknown: str = "\ufffd") -> Characters:
    """The alphabet of these texts, in the order of Unicode.

    Args:
        texts: all of the text, in parts; read once.
        most: keep only so many characters, the most common ones, of which ``unknown`` is one and stands for the rest.
        unknown: the character for those that are left out; not used if none is.
    """
    if most is not None:
        require_count("most", most, minimum=2)
    if len(unknown) != 1:
        raise refuse("unknown", expected="one character", got=repr(unknown))
    counts = np.zeros(_CODE_POINTS, dtype=np.int64)
    for text in texts:
        found = np.bincount(_code_points(text))
        counts[: len(found)] += found
    seen = np.flatnonzero(counts)
    if not len(seen):
        raise refuse("text", expected="at least one character", got="none")
    if most is None or len(seen) <= most:
        return Characters("".join(map(chr, seen.tolist())))
    common = [one for one in seen[np.argsort(-counts[seen], kind="stable")].tolist() if one != ord(unknown)]
    return Characters("".join(map(chr, sorted([*common[: most - 1], ord(unknown)]))), unknown)


def _code_points(text: str) -> NDArray[Any]:
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


@lru_cache(maxsize=16)
def _table(alphabet: str) -> NDArray[Any]:
    """The code of each code point, -1 where there is none; the last entry is none, for all that are beyond."""
    points = np.frombuffer(alphabet.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    table = np.full(int(points.max()) + 2, -1, dtype=np.int32)
    table[points] = np.arange(len(alphabet))
    return table


@lru_cache(maxsize=16)
def _ascii(alphabet: str) -> tuple[bytes, bytes]:
    """For the ASCII part of at most 256 characters: a byte's code, and the bytes that have one."""
    known = {ord(one): code for code, one in enumerate(alphabet) if one.isascii()}
    return bytes(known.get(byte, 0) for byte in range(256)), bytes(known)


def _shown(alphabet: str) -> str:
    return repr(alphabet) if len(alphabet) <= 100 else f"{alphabet[:100]!r} …"


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
