"""What a vocabulary is: text <-> codes 0 … size-1, and a fingerprint, so that codes never meet a model of other codes.

A vocabulary is a frozen dataclass that JSON can keep (``vocabulary_from_json`` reads it back). Its fingerprint is the
first 16 digits of the sha256 of that JSON: equal fingerprints mean that every text has the same codes.
"""

import hashlib
import json
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse
from anyfill.text.folding import as_text8 as as_text8


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
