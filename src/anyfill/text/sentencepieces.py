"""Pieces of words by sentencepiece as codes (extra ``text``; imported only when it is needed).

``train_pieces`` makes a vocabulary that loses nothing: no normalisation, white space as it was, and characters that it
never saw as bytes; decode(encode(text)) is the text itself, unless it has U+2581, which sentencepiece writes for a
space. A vocabulary that was trained elsewhere keeps its own settings. A text is encoded word by word (each distinct one
once): a word is the spaces before it, its letters, and the end of the line if it is there. Given whole texts,
sentencepiece adds up scores in 32 bits, so which of two equally good cuts of a word it takes depends on what stands
before; here it never does. Words longer than ``MAX_WORD`` are cut.
"""

import base64
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import torch
from torch import Tensor

from anyfill.pieces import processor, trained_model
from anyfill.text.vocabulary import (
    Vocabulary,
    codes_of,
)
from anyfill.text.words import MAX_UNSPACED

MAX_WORD = 1000
"""Characters of the longest word that is cut into pieces as one."""
_WORD = re.compile(r" *[^ \n]*\n?")
_LINE, _LINES = 200, 50_000
"""Pieces are learnt from so many characters at a time, at most so many times, drawn from all: a few minutes at most."""


@dataclass(frozen=True, slots=True)
class Pieces(Vocabulary):
    """Codes for pieces of words.

    Attributes:
        model: the content of a sentencepiece model file.
    """

    model: bytes

    def __post_init__(self) -> None:
        processor(self.model)

    @property
    def size(self) -> int:
        """The number of pieces."""
        return int(processor(self.model).get_piece_size())

    @property
    def units(self) -> str:
        """Pieces."""
        return "pieces"

    def encode(self, text: str) -> Tensor:
        """int64 (L,): the code of each piece."""
        found = _WORD.findall(text)
        words = [word[start : start + MAX_WORD] for word in found for start in range(0, len(word), MAX_WORD)]
        each = list(dict.fromkeys(words))
        codes = dict(zip(each, processor(self.model).encode(each, out_type=int, num_threads=1)))
        return torch.tensor(list(chain.from_iterable(map(codes.__getitem__, words))), dtype=torch.int64)

    def decode(self, codes: Tensor) -> str:
        """The text of codes (L,)."""
        return str(processor(self.model).decode(codes_of(codes, self.size).tolist()))

    def cut(self, text: str) -> int:
        """Before the last spaces or behind the last end of a line, which is between two words."""
        spaces = len(text[: text.rfind(" ") + 1].rstrip(" "))
        place = max(spaces, text.rfind("\n") + 1)
        return place if place or len(text) <= MAX_UNSPACED else len(text) - len(text) % MAX_WORD

    def to_json(self) -> dict[str, Any]:
        """Kind, and the model in base64."""
        return {"kind": "pieces", "model": base64.b64encode(self.model).decode("ascii")}


def train_pieces(texts: Iterable[str], size: int, *, kind: Literal["unigram", "bpe"] = "unigram") -> Pieces:
    """A vocabulary of at most ``size`` pieces for these texts (parts of one text), fewer if there are not so many.

    256 of them are bytes, and one is never used.
    """
    options = {"allow_whitespace_only_pieces": True, "input_sentence_size": _LINES}
    return Pieces(trained_model(_lines(texts), size, kind=kind, **options))


def _lines(texts: Iterable[str]) -> Iterator[str]:
    """What sentencepiece learns from: lines, long ones cut before spaces."""
    waiting = ""
    for text in texts:
        *whole, waiting = (waiting + text).split("\n")
        for line in whole:
            yield from _short(line)
        *whole, waiting = _short(waiting)
        yield from whole
    yield waiting


def _short(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > _LINE:
        place = line.rfind(" ", start + 1, start + _LINE)
        place = place if place > start else start + _LINE
        yield line[start:place]
        start = place
    yield line[start:]
