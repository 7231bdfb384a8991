"""One vocabulary for both languages: pieces of words, learnt jointly, and places for what must not be translated.

Codes 0, 1 and 2 are those of the networks (blank, start, end) and stand in no text; 3 … 12 stand for placeholders.
Text is taken as it is but for white space, which is one space between words: no lower case, no splitting of marks.
A word begins with its space ("▁word"), so that a piece says by itself whether it begins a word. Characters that were
never seen become bytes: nothing is unknown. Of these, typographic marks are read as plain ones (``marks.py``).

Placeholders (``%s``, ``{name}``, ``<b>``) are replaced by symbols ⟦0⟧ … ⟦9⟧ before encoding, see ``placeholders.py``.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from anyfill.checks import refuse
from anyfill.networks.encoder_decoder import BLANK, END, START
from anyfill.pieces import processor, trained_model
from anyfill.translation.marks import counterpart

MAX_PLACEHOLDERS = 10
FIRST = 3
"""The code of the first placeholder."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u2028\u2029\ufeff\ufff9-\ufffb]+")
_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, and the cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b(?:[()*+][0-~]|[78=>])"  # sets of characters, and what is saved
)
"""What speaks to a terminal, whole. A letter right behind an escape may be text, and stays."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def is_placeholder(code: int) -> bool:
    """Whether a code is the symbol of a placeholder."""
    return FIRST <= code < FIRST + MAX_PLACEHOLDERS


def plain(text: object) -> str:
    """The text with one space for every run of white space and control characters, and none of our own symbols.

    Escape sequences of terminals, such as colours, are left out whole.

    ValueError if it is no text, or holds what is no character: bytes that were not UTF-8 come so from a command line.
    """
    if not isinstance(text, str):
        raise refuse("text", expected="a text", got=repr(text)[:60])
    if broken := _SURROGATE.search(text):
        number = ord(broken[0])
        got = f"byte {number - 0xDC00:#04x} that is none" if 0xDC80 <= number <= 0xDCFF else f"{broken[0]!a}"
        raise refuse("text", expected="text in UTF-8", got=got)
    bare = _ESCAPE.sub("", text)
    return " ".join(_CONTROL.sub(" ", bare.replace("▁", " ").replace("⟦", "[").replace("⟧", "]")).split())


@dataclass(frozen=True)
class Joint:
    """The vocabulary of two languages.

    Attributes:
        model: the content of a sentencepiece model file.
    """

    model: bytes

    def __post_init__(self) -> None:
        first = [self._processor.id_to_piece(code) for code in range(FIRST + 1)]
        if first != ["<unk>", "<s>", "</s>", "⟦0⟧"]:
            raise refuse(
                "vocabulary", expected="a joint one (anyfill.translation)", got=f"one that begins with {first}"
            )

    @property
    def _processor(self) -> Any:
        return processor(self.model)

    @property
    def size(self) -> int:
        """V."""
        return int(self._processor.get_piece_size())

    def encode(self, text: str, *, begins: bool = True, spelt: bool = False) -> list[int]:
        """The codes of a plain text.

        Args:
            text: the text.
            begins: its first word begins one.
            spelt: it must come out as it is; else marks that are bytes alone are read as their plain counterparts.
        """
        words = " ".join(text.split())
        codes = list[int](self._processor.encode(" " + words if begins and words else words))
        if spelt or words.isascii() or not any(self.is_byte[code] for code in codes):
            return codes
        return self.encode(self.readable(words), begins=begins, spelt=True)

    def readable(self, text: str) -> str:
        """The text with plain counterparts of the marks that have no piece, and accents joined to their letters."""
        joined = unicodedata.normalize("NFC", text)
        return "".join(one if one in self._pieces else counterpart(one) for one in joined)

    @cached_property
    def _pieces(self) -> frozenset[str]:
        return frozenset(self.piece(code) for code in range(self.size))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The codes of many plain texts to learn from, with every mark as it is: so a model learns to write it."""
        return [list(codes) for codes in self._processor.encode([" " + text if text else "" for text in texts])]

    def decode(self, codes: Iterable[int]) -> str:
        """The text of codes; blanks, starts and ends say nothing, nor do bytes that make no character."""
        written = self._whole_characters(int(code) for code in codes if int(code) >= FIRST)
        return " ".join(str(self._processor.decode(written)).split())

    def _whole_characters(self, codes: Iterable[int]) -> list[int]:
        """The codes without bytes that make no character of a plain text."""
        found, run = list[int](), list[int]()
        for code in [*codes, BLANK]:
            if self.is_byte[code]:
                run.append(code)
                continue
            while run:
                sizes = (size for size in range(1, 5) if self._is_character(run[:size]))
                size = next(sizes, 0)
                found += run[:size]
                run = run[max(size, 1) :]
            found.append(code)
        return found[:-1]

    def _is_character(self, codes: Sequence[int]) -> bool:
        """Whether these bytes are one character that a plain text may have: no control, space or symbol of ours."""
        try:
            written = bytes(int(self.piece(code)[3:5], 16) for code in codes).decode()  # <0xE2>
        except UnicodeDecodeError:
            return False
        return plain(written) == written

    def piece(self, code: int) -> str:
        """A piece as it is written, "▁" for a space."""
        return {BLANK: "_", START: "<s>", END: "</s>"}.get(code) or str(self._processor.id_to_piece(code))

    @cached_property
    def begins_word(self) -> tuple[bool, ...]:
        """For each code, whether it begins a word."""
        return tuple(self.piece(code).startswith("▁") for code in range(self.size))

    @cached_property
    def is_mark(self) -> tuple[bool, ...]:
        """For each code, whether it is marks alone, which may stand right behind a word."""
        return tuple(
            not any(c.isalnum() or c == "▁" or c == "<" for c in self.piece(code)) for code in range(self.size)
        )

    @cached_property
    def letters(self) -> tuple[int, ...]:
        """For each code, how many characters it has if one of them is a letter or it is a byte, else 0."""
        pieces = [self.piece(code).removeprefix("▁") for code in range(self.size)]
        words = [len(piece) if any(one.isalpha() for one in piece) else 0 for piece in pieces]
        return tuple(1 if byte else count for byte, count in zip(self.is_byte, words))

    @cached_property
    def is_byte(self) -> tuple[bool, ...]:
        """For each code, whether it is a byte of a character that was never seen."""
        return tuple(bool(self._processor.is_byte(code)) for code in range(self.size))

    def to_json(self) -> str:
        """The model in base64."""
        return base64.b64encode(self.model).decode("ascii")

    @classmethod
    def from_json(cls, text: object) -> "Joint":
        """What ``to_json`` wrote; ValueError for anything else."""
        try:
            return cls(base64.b64decode(str(text), validate=True))
        except binascii.Error:
            raise refuse("vocabulary", expected="a sentencepiece model in base64", got=repr(text)[:40]) from None


def learn(texts: Iterable[str], size: int, *, kind: str = "unigram", sentences: int = 200_000) -> Joint:
    """The vocabulary of these plain texts, of both languages, with at most ``size`` codes."""
    symbols = [f"⟦{number}⟧" for number in range(MAX_PLACEHOLDERS)]
    content = trained_model(
        (" " + text for text in texts),
        size,
        kind=kind,
        bos_id=START,
        eos_id=END,
        user_defined_symbols=symbols,
        input_sentence_size=sentences,
    )
    return Joint(content)
