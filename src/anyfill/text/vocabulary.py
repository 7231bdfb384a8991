"""What a vocabulary is: text <-> codes 0 … size-1, and a fingerprint, so that codes never meet a model of other codes.

A vocabulary is a frozen dataclass that JSON can keep (``anyfill.text.vocabularies`` reads it back). Its fingerprint is
the first 16 digits of the sha256 of that JSON: equal fingerprints mean that every text has the same codes.
"""

import hashlib
import json
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse


@runtime_checkable
class Vocabulary(Protocol):
    """Codes for text."""

    @property
    def size(self) -> int:
        """The number of codes."""
        ...

    @property
    def end(self) -> int | None:
        """The code that ends a line, if the vocabulary has one."""
        ...

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
        ...

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
        told = f"the vocabulary {expected} ({vocabulary.size} codes)"
        raise refuse(what, expected=told, got=f"another one, {got}: their codes mean different things")


def codes_of(codes: Tensor, size: int) -> NDArray[np.int64]:
    """int64 (L,): codes to be decoded; ValueError if one of them is no code."""
    if codes.dim() != 1 or codes.dtype.is_floating_point:
        raise refuse("codes", expected="one line of whole numbers", got=f"{codes.dtype} {tuple(codes.shape)}")
    numbers = codes.detach().long().cpu().numpy()
    bad = (numbers < 0) | (numbers >= size)
    if bad.any():
        raise refuse("code", expected=f"0 to {size - 1}", got=int(numbers[bad][0]))
    return numbers


LONGEST = 2**20
"""A piece of text without any white space is cut after so many characters."""


def cut_at_space(text: str) -> int:
    """Where the last white space of ``text`` begins: words before it are whole. 0 if there is none, and it is short."""
    kept = len(text.rstrip())
    if kept == len(text):
        words = text.rsplit(maxsplit=1)
        kept = len(words[0]) if len(words) > 1 else 0
    return kept if kept or len(text) <= LONGEST else len(text)
