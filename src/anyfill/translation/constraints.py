"""What a translation must hold: words at a place or anywhere, and templates with blanks.

    Berlin@4                "Berlin" begins at place 4; places count pieces from 1, as --show-passes shows them
    Berlin                  "Berlin" stands somewhere: where the model likes it best
    I live in ___ .         a template: ___ is a blank of any length, [2] one of two pieces, the rest stays as it is

A word that is kept is not part of a longer one: what follows it begins a word, is a mark, or is nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from anyfill.checks import refuse
from anyfill.translation.vocabulary import Joint, plain

_BLANK = re.compile(r"_{2,}|\[(\d{1,3})\]")
LONGEST = 8
"""Pieces of the longest blank that is tried where none is said."""


@dataclass(frozen=True, slots=True)
class Keep:
    """A phrase that stays.

    Attributes:
        text: as it is written.
        place: where its first piece stands, from 1; None = anywhere.
    """

    text: str
    place: int | None = None


def parse_keep(text: str) -> Keep:
    """``WORDS`` or ``WORDS@PLACE``."""
    words, at, place = text.rpartition("@")
    if at and place.isdigit():
        if int(place) < 1:
            raise refuse(f"--keep {text!r}", expected="a place from 1", got=place)
        text, number = words, int(place)
    else:
        number = None
    if not plain(text):
        raise refuse("--keep", expected="WORDS or WORDS@PLACE", got=repr(text))
    return Keep(plain(text), number)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Which codes stand where in a target of ``length`` places.

    Attributes:
        length: n.
        codes: at places 1 … n, by place.
        behind: places right behind a phrase, where no word may go on.
    """

    length: int
    codes: dict[int, int]
    behind: frozenset[int]


@dataclass(frozen=True, slots=True)
class Template:
    """A translation with blanks: codes and blanks in turn, blanks as (least, most) pieces."""

    parts: tuple[tuple[int, ...] | tuple[None, int, int], ...]

    def fixed(self, longest: int) -> list[Fixed]:
        """Every way of giving the blanks lengths, of at most ``longest`` places in all."""
        blanks = [part for part in self.parts if part and part[0] is None]
        choices = [range(int(part[1] or 0), int(part[2] or 0) + 1) for part in blanks]
        found: list[Fixed] = []
        for sizes in product(*choices):
            place, codes, behind, left = 1, dict[int, int](), set[int](), iter(sizes)
            for part in self.parts:
                if part and part[0] is None:
                    place += next(left)
                    continue
                for code in part:
                    codes[place] = int(code or 0)
                    place += 1
                behind.add(place)
            if 1 <= place - 1 <= longest:
                found.append(Fixed(place - 1, codes, frozenset(behind)))
        return found


def parse_template(text: str, vocabulary: Joint) -> Template:
    """A template; ValueError if it has no blank, or too many without a length."""
    parts: list[tuple[int, ...] | tuple[None, int, int]] = []
    start, unstated = 0, 0
    for found in _BLANK.finditer(text):
        _add_text(parts, text[start : found.start()], text, start, vocabulary)
        size = found[1]
        unstated += size is None
        if size is not None and int(size) < 1:
            raise refuse(f"blank {found[0]}", expected="a length from 1", got=size)
        parts.append((None, 1, LONGEST) if size is None else (None, int(size), int(size)))
        start = found.end()
    if not any(part and part[0] is None for part in parts):
        raise refuse("template", expected="a blank in it, ___ or [2]", got=repr(text[:60]))
    if unstated > 3:
        raise refuse("template", expected="at most 3 blanks of unstated length", got=unstated)
    _add_text(parts, text[start:], text, start, vocabulary)
    return Template(tuple(parts))


def _add_text(
    parts: list[tuple[int, ...] | tuple[None, int, int]], piece: str, text: str, start: int, vocabulary: Joint
) -> None:
    if not plain(piece):
        return
    begins = start == 0 or text[start].isspace()
    parts.append(tuple(vocabulary.encode(plain(piece), begins=begins)))


def placements(keeps: Sequence[Keep], length: int, vocabulary: Joint) -> list[Fixed]:
    """Every way of keeping these phrases in ``length`` places, at most a few hundred; none = they do not fit.

    Phrases without a place stand in the order they are named in, each wherever there is room.
    """
    codes = [vocabulary.encode(keep.text) for keep in keeps]
    found: list[Fixed] = []

    def go_on(number: int, taken: dict[int, int], behind: frozenset[int], least: int) -> None:
        if len(found) >= 256:
            return
        if number == len(keeps):
            found.append(Fixed(length, taken, behind))
            return
        own, keep = codes[number], keeps[number]
        last = length - len(own) + 1
        for place in range(least, last + 1) if keep.place is None else [keep.place]:
            places = range(place, place + len(own))
            if place > last or any(one in taken for one in places):
                continue
            after = least if keep.place is not None else place + len(own)
            go_on(number + 1, taken | dict(zip(places, own)), behind | {place + len(own)}, after)

    fixed_first = sorted(range(len(keeps)), key=lambda i: keeps[i].place is None)
    codes, keeps = [codes[i] for i in fixed_first], [keeps[i] for i in fixed_first]
    go_on(0, {}, frozenset(), 1)
    return found
