"""Vocabularies of characters and bytes, and what every vocabulary has (``anyfill.text.codes``).

In this file:

    Characters    a fixed alphabet; text8's 27 symbols are ``TEXT8``, and ``as_text8`` folds any text to them
    Utf8          bytes: any text in 256 codes, with no alphabet to choose and nothing unknown
    WithEnd       any vocabulary and one more code, the end of a line

Others are named in ``anyfill.text.vocabularies``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.text.codes import Vocabulary as Vocabulary
from anyfill.text.codes import codes_of as codes_of
from anyfill.text.codes import fingerprint as fingerprint
from anyfill.text.codes import require_fingerprint as require_fingerprint
from anyfill.text.folding import as_text8 as as_text8

_CODE_POINTS = 0x110000


@dataclass(frozen=True, slots=True)
class Characters(Vocabulary):
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
    def units(self) -> str:
        """Characters."""
        return "characters"

    @property
    def unknown_code(self) -> int | None:
        """That of the unknown character, if there is one."""
        return self.alphabet.index(self.unknown) if self.unknown else None

    def spell(self, text: str, codes: Tensor) -> tuple[list[str], list[int]]:
        """Each stands for itself."""
        return list(text), list(range(len(text)))

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
            if self.unknown_code is None:
                unknown = "".join(sorted({text[i] for i in np.flatnonzero(codes < 0)[:1000].tolist()})[:10])
                raise refuse("text", expected=f"characters from {_shown(self.alphabet)} only", got=repr(unknown))
            codes = np.where(codes < 0, self.unknown_code, codes)
        return torch.from_numpy(codes.astype(np.uint8 if self.size <= 256 else np.int64))

    def decode(self, codes: Tensor) -> str:
        """The text of codes (L,)."""
        points = np.frombuffer(self.alphabet.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        return points[codes_of(codes, self.size)].tobytes().decode("utf-32-le", "surrogatepass")

    def to_json(self) -> dict[str, Any]:
        """Kind and fields."""
        return {"kind": "characters", "alphabet": self.alphabet, "unknown": self.unknown}


TEXT8 = Characters(" abcdefghijklmnopqrstuvwxyz")
"""The 27 symbols of text8."""


def characters_in(texts: Iterable[str], *, max_size: int | None = None, unknown: str = "\ufffd") -> Characters:
    """The alphabet of these texts, in the order of Unicode.

    Args:
        texts: all of the text, in parts; read once.
        max_size: keep only so many characters, the most common ones; ``unknown`` is one and stands for the rest.
        unknown: the character for those that are left out; not used if none is.
    """
    if max_size is not None:
        require_count("max_size", max_size, minimum=2)
    if len(unknown) != 1:
        raise refuse("unknown", expected="one character", got=repr(unknown))
    counts = np.zeros(_CODE_POINTS, dtype=np.int64)
    for text in texts:
        found = np.bincount(_code_points(text))
        counts[: len(found)] += found
    seen = np.flatnonzero(counts)
    if not len(seen):
        raise refuse("text", expected="at least one character", got="none")
    if max_size is None or len(seen) <= max_size:
        return Characters("".join(map(chr, seen.tolist())))
    common = [one for one in seen[np.argsort(-counts[seen], kind="stable")].tolist() if one != ord(unknown)]
    return Characters("".join(map(chr, sorted([*common[: max_size - 1], ord(unknown)]))), unknown)


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
class Utf8(Vocabulary):
    """A code is a byte of the text in UTF-8."""

    @property
    def size(self) -> int:
        """256."""
        return 256

    @property
    def units(self) -> str:
        """Bytes."""
        return "bytes"

    def spell(self, text: str, codes: Tensor) -> tuple[list[str], list[int]]:
        """A character stands at its first byte."""
        texts: list[str] = []
        offsets: list[int] = []
        for place, character in enumerate(text):
            more = len(character.encode()) - 1
            texts += [character, *[""] * more]
            offsets += [place] * (more + 1)
        return texts, offsets

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

    def to_json(self) -> dict[str, Any]:
        """The kind."""
        return {"kind": "utf8"}


@dataclass(frozen=True, slots=True)
class WithEnd(Vocabulary):
    """The codes of ``inner`` and one more, the last: the end of a line.

    Without it a model of sentences never learns where they end, because what stands behind them is missing from the
    data. A corpus that is encoded line by line has the end after each line; nothing that is decoded goes on behind it.

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
    def plain(self) -> Vocabulary:
        """``inner``."""
        return self.inner

    @property
    def units(self) -> str:
        """Those of ``inner``."""
        return self.inner.units

    @property
    def unknown_code(self) -> int | None:
        """That of ``inner``."""
        return self.inner.unknown_code

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


def is_folded(vocabulary: Vocabulary) -> bool:
    """Whether text is folded to the 27 symbols of text8 first."""
    return isinstance(vocabulary.plain, Characters) and vocabulary.plain.alphabet == TEXT8.alphabet
