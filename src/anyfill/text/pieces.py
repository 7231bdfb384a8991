"""Pieces of words as codes, by sentencepiece (extra ``text``; imported only when one of these functions is called).

``train_pieces`` makes a vocabulary that loses nothing: no normalisation, white space as it was, and characters that it
never saw as bytes; decode(encode(text)) is the text itself, unless it has U+2581, which sentencepiece writes for a
space. A vocabulary that was trained elsewhere keeps its own settings.

A text is encoded word by word (each distinct one once): a word is the spaces before it, its letters, and the end of the
line if it is there. Given whole texts, sentencepiece adds up scores in 32 bits, so which of two equally good cuts of a
word it takes depends on what stands before; here it never does. Words longer than ``LONG`` are cut.
"""

import base64
import importlib
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, Literal

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.text.vocabulary import LONGEST, codes_of

LONG = 1000
"""Characters of the longest word, for text without spaces."""
_LINE, _LINES = 200, 50_000
"""It learns from so many characters at a time, at most so many times, drawn from all: a few seconds, a few minutes."""
_WORD = re.compile(r" *[^ \n]*\n?")


@dataclass(frozen=True, slots=True)
class Pieces:
    """Codes for pieces of words.

    Attributes:
        model: the content of a sentencepiece model file.
    """

    model: bytes

    def __post_init__(self) -> None:
        _processor(self.model)

    @property
    def size(self) -> int:
        """The number of pieces."""
        return int(_processor(self.model).get_piece_size())

    @property
    def end(self) -> None:
        """There is none (if the model has such a piece, it is not used)."""
        return

    def encode(self, text: str) -> Tensor:
        """int64 (L,): the code of each piece."""
        words = [part for word in _WORD.findall(text) for part in _parts(word)]
        each = list(dict.fromkeys(words))
        found: list[list[int]] = _processor(self.model).encode(each, out_type=int, num_threads=1)
        codes = dict(zip(each, found))
        return torch.tensor(list(chain.from_iterable(map(codes.__getitem__, words))), dtype=torch.int64)

    def decode(self, codes: Tensor) -> str:
        """The text of codes (L,)."""
        return str(_processor(self.model).decode(codes_of(codes, self.size).tolist()))

    def cut(self, text: str) -> int:
        """Before the last spaces or behind the last end of a line, which is between two words."""
        spaces = len(text[: text.rfind(" ") + 1].rstrip(" "))
        place = max(spaces, text.rfind("\n") + 1)
        return place if place or len(text) <= LONGEST else len(text) - len(text) % LONG

    def to_json(self) -> dict[str, Any]:
        """Kind, and the model in base64."""
        return {"kind": "pieces", "model": base64.b64encode(self.model).decode("ascii")}


def train_pieces(texts: Iterable[str], size: int, *, kind: Literal["unigram", "bpe"] = "unigram") -> Pieces:
    """A vocabulary of at most ``size`` pieces for these texts (parts of one text), fewer if there are not so many.

    256 of them are bytes, and one is never used.
    """
    require_count("size", size, minimum=300)
    if kind not in ("unigram", "bpe"):
        raise refuse("kind", expected="'unigram' or 'bpe'", got=repr(kind))
    sentencepiece = _sentencepiece()
    sentencepiece.set_random_generator_seed(0)
    lines = (line for line in _lines(texts) if line.strip())
    first = next(lines, None)
    if first is None:
        raise refuse("text", expected="at least one word", got="none")
    content = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=chain([first], lines),
            model_writer=content,
            vocab_size=size,
            model_type=kind,
            hard_vocab_limit=False,
            character_coverage=0.9995,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            allow_whitespace_only_pieces=True,
            add_dummy_prefix=False,
            bos_id=-1,
            eos_id=-1,
            input_sentence_size=_LINES,
            shuffle_input_sentence=True,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise refuse("text", expected=f"enough of it for {size} pieces", got=" ".join(str(error).split())) from None
    return Pieces(content.getvalue())


def _parts(word: str) -> Iterator[str]:
    for start in range(0, len(word), LONG):
        yield word[start : start + LONG]


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


@lru_cache(maxsize=4)
def _processor(model: bytes) -> Any:
    processor = _sentencepiece().SentencePieceProcessor()
    try:
        loaded = bool(model) and bool(processor.LoadFromSerializedProto(model))
    except (RuntimeError, OSError):
        loaded = False
    if not loaded:
        raise refuse("vocabulary", expected="a sentencepiece model", got=f"{len(model)} bytes that are none")
    return processor


def _sentencepiece() -> Any:
    try:
        return importlib.import_module("sentencepiece")
    except ModuleNotFoundError:
        expected = 'sentencepiece to be installed (pip install "anyfill[text]")'
        raise refuse("vocabulary of pieces", expected=expected, got="an installation without it") from None
