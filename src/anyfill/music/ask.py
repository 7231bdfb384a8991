"""``--ask``: which voices and bars are to be written, as in ``alto 3-6, tenor 5``.

    ask    = item { ("," | ";") item }
    item   = [ voices ] { bars }                  after the first item voices may be left out: those before are meant
    voices = name { "+" name } | "all"            a name or its first letter
    bars   = [ "bar" | "bars" ] number [ ( "-" | "to" ) number ]

Bars count from 1, a pickup is bar 0; no bars at all stand for the whole piece. What does not fit is refused, and the
error says at which word.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyfill.music.chorale import Chorale
from anyfill.music.score import VOICES
from anyfill.music.voices import voice_called

_TOKEN = re.compile(r"\s*([^\W\d_]+|\d+|[-–+,;]|\S)")
_EVERYBODY = ("all", "satb", "everything")


@dataclass(frozen=True, slots=True)
class _Token:
    """A word, a number or a sign, and where it begins."""

    text: str
    at: int


def cells_of(text: str, chorale: Chorale) -> NDArray[np.bool_]:
    """bool (4, T): True in the cells that the text names; ValueError, which says what there is, if there are none."""
    return _Parser(text, chorale).cells()


class _Parser:
    def __init__(self, text: str, chorale: Chorale) -> None:
        self.text, self.chorale = text, chorale
        self.tokens = [_Token(match[1], match.start(1)) for match in _TOKEN.finditer(text)]
        self.place = 0

    def cells(self) -> NDArray[np.bool_]:
        cells = np.zeros(self.chorale.pitch.shape, dtype=np.bool_)
        voices: list[int] = []
        while True:
            if self._word() is None and not (voices and self._number() is not None):
                raise self._refused("a voice" if not voices else "a voice or a bar")
            voices = self._voices() if self._word() not in (None, "bar", "bars") else voices
            if not voices:
                raise self._refused("a voice")
            spans = self._bars()
            for start, stop in spans or [(0, self.chorale.steps)]:
                cells[voices, start:stop] = True
            if self.place == len(self.tokens):
                return cells
            if self._next() not in (",", ";"):
                raise self._refused("a bar, or a comma before the next voice")
            self.place += 1

    def _next(self) -> str:
        return self.tokens[self.place].text if self.place < len(self.tokens) else ""

    def _word(self) -> str | None:
        return self._next().casefold() if self._next()[:1].isalpha() else None

    def _number(self) -> int | None:
        return int(self._next()) if self._next().isdecimal() and len(self._next()) < 10 else None

    def _voices(self) -> list[int]:
        found: list[int] = []
        while True:
            word = self._word()
            if word in _EVERYBODY:
                found += range(len(VOICES))
            else:
                voice = None if word is None else voice_called(word)
                if voice is None:
                    raise self._refused("a voice")
                found.append(voice)
            self.place += 1
            if self._next() != "+":
                return found
            self.place += 1

    def _bars(self) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        while self._word() in ("bar", "bars") or self._number() is not None:
            if self._number() is None:
                self.place += 1
            begin = self.place
            first = last = self._bar()
            if self._next() in ("-", "–") or self._word() == "to":
                self.place += 1
                last = self._bar()
            if last < first:
                self.place = begin
                raise self._refused("bars from the first to the last", f"bars {first}-{last}")
            edges = [self.chorale.pickup + (bar - 1) * self.chorale.bar for bar in (first, last + 1)]
            spans.append((max(edges[0], 0), min(edges[1], self.chorale.steps)))
        return spans

    def _bar(self) -> int:
        number = self._number()
        if number is None:
            raise self._refused("the number of a bar")
        if number not in self.chorale.bars:
            raise self._refused("a bar of the piece", f"bar {number}")
        self.place += 1
        return number

    def _refused(self, wanted: str, got: str | None = None) -> ValueError:
        bars = self.chorale.bars
        there = f"bar {bars[0]}" if len(bars) == 1 else f"bars {bars[0]} to {bars[-1]}"
        pickup = " (0 is the pickup)" if self.chorale.pickup else ""
        if self.place < len(self.tokens):
            at = self.tokens[self.place].at
            rest = re.match(r"[-–]?\w+|\S", self.text[at:])
            got = f"{got or repr(rest[0] if rest else '')} at character {at + 1}"
        else:
            got = got or ("nothing behind it" if self.tokens else "nothing")
        return ValueError(
            f'--ask "{self.text.strip()}": expected {wanted}, got {got}; it takes voices ({", ".join(VOICES)}, their '
            f'first letters, or all) with {there}{pickup}, as in "alto {bars[-1]}, tenor {bars[0]}-{bars[-1]}"'
        )
