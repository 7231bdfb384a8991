"""Vocabularies: text <-> codes 0 … size-1, and a fingerprint, so that codes never meet a model of other codes.

    Characters    a fixed alphabet; text8's 27 symbols are ``TEXT8``, and ``as_text8`` folds any text to them
    Utf8          bytes: any text in 256 codes, with no alphabet to choose and nothing unknown
    WithEnd       any vocabulary and one more code, the end of a line
    Words, Pieces (``anyfill.text.vocabularies``)

A vocabulary is a frozen dataclass that JSON can keep (``vocabulary_from_json`` reads it back). Its fingerprint is the
first 16 digits of the sha256 of that JSON: equal fingerprints mean that every text has the same codes.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count

_CODE_POINTS = 0x110000
_PLAIN = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i"}
"""Latin letters that Unicode does not take apart, as they are written without them."""
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@runtime_checkable
class Vocabulary(Protocol):
    """Codes for text; a new one needs ``size``, ``units``, ``encode``, ``decode`` and ``to_json``."""

    @property
    def size(self) -> int:
        """The number of codes."""
        ...

    @property
    def units(self) -> str:
        """What one code is, in the plural: "words"."""
        ...

    @property
    def plain(self) -> "Vocabulary":
        """The vocabulary less its end code."""
        return self

    @property
    def end(self) -> int | None:
        """The code that ends a line, if the vocabulary has one."""
        return None

    @property
    def unknown_code(self) -> int | None:
        """The code for whatever has none of its own; None if that is refused."""
        return None

    def encode(self, text: str) -> Tensor:
        """uint8 or int64 (L,): the codes of a text; no end code is added."""
        ...

    def decode(self, codes: Tensor) -> str:
        """The text of codes (L,)."""
        ...

    def cut(self, text: str) -> int:
        """How many characters at the beginning of ``text`` may be encoded by themselves, whatever comes after it.

        encode(text[:k]) and then encode(text[k:] + more) are together encode(text + more).
        """
        return len(text)

    def spell(self, text: str, codes: Tensor) -> tuple[list[str], list[int]]:
        """The characters of ``text`` that each of its codes (L,) stands for, and where they begin.

        Here code by code; those that write nothing alone, bytes of a character, stand together at the first of them.
        """
        texts: list[str] = []
        offsets: list[int] = []
        known: dict[int, str] = {}
        now, held = 0, list[int]()
        for code in codes.tolist():
            held.append(code)
            if len(held) == 1:
                if code not in known:
                    known[code] = self.decode(torch.tensor([code]))
                written = known[code]
            else:
                written = self.decode(torch.tensor(held))
            is_whole = bool(written) and text.startswith(written, now)
            if not is_whole and len(held) < 4:
                continue
            texts += [written, *[""] * (len(held) - 1)]
            offsets += [now] * len(held)
            now += len(written) if is_whole else 0
            held = []
        texts += [""] * len(held)
        offsets += [now] * len(held)
        return texts, offsets

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON, with its ``kind``."""
        ...


def fingerprint(vocabulary: Vocabulary) -> str:
    """16 hexadecimal digits: the same for two vocabularies only if they are the same."""
    text = json.dumps(vocabulary.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def require_fingerprint(what: str, got: str, vocabulary: Vocabulary) -> None:
    """ValueError unless ``got`` is the fingerprint of this vocabulary."""
    expected = fingerprint(vocabulary)
    if got != expected:
        known = f"the vocabulary {expected} ({vocabulary.size} codes)"
        raise refuse(what, expected=known, got=f"another one, {got}: their codes mean different things")


def codes_of(codes: Tensor, size: int) -> NDArray[np.int64]:
    """int64 (L,): codes to be decoded; ValueError if one of them is no code."""
    if codes.dim() != 1 or codes.dtype.is_floating_point:
        raise refuse("codes", expected="one line of whole numbers", got=f"{codes.dtype} {tuple(codes.shape)}")
    numbers = codes.detach().long().cpu().numpy()
    bad = (numbers < 0) | (numbers >= size)
    if bad.any():
        raise refuse("code", expected=f"0 to {size - 1}", got=int(numbers[bad][0]))
    return numbers


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


def as_text8(text: str) -> str:
    """Any text in the 27 symbols of text8, as that corpus was made: letters in lower case, digits spelt out.

    Accents are taken off first (text8 has none); each run of anything else is one space.
    """
    plain = unicodedata.normalize("NFKD", text.lower().translate(str.maketrans(_PLAIN)))
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    spelt = re.sub("[0-9]", lambda digit: f" {_DIGITS[int(digit[0])]} ", plain)
    return re.sub("[^a-z]+", " ", spelt)


def require_foldable(text: str, what: str = "text", *, offset: int = 0) -> None:
    """ValueError if the text has a letter or a numeral of which folding to text8 would leave nothing."""
    if text.isascii():
        return
    foreign = {one for one in set(text) if not one.isascii() and _is_foreign(one)}
    place = next((place for place, one in enumerate(text) if one in foreign), None)
    if place is not None:
        name = unicodedata.name(text[place], f"U+{ord(text[place]):04X}")
        got = f"{text[place]!r} ({name}) at character {offset + place + 1:,}"
        raise refuse(what, expected="letters that the model knows (a to z; accents are taken off)", got=got)


def _is_foreign(one: str) -> bool:
    """A letter (no mark that modifies one) or a numeral, in a script that text8 has not."""
    kind = unicodedata.category(one)
    return kind[0] in "LN" and kind != "Lm" and not as_text8(one).strip()


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
