"""What a translation must hold: words at a place or anywhere, and templates with blanks.

    Berlin@4                "Berlin" is the fourth word; words are what stands between spaces, counted from 1
    Berlin                  "Berlin" stands somewhere: where the model likes it best
    I live in ___ .         a template: ___ is a blank of any length, [2] one of two pieces, the rest stays as it is

A word that is kept is not part of a longer one: what follows it begins a word, is a mark, or is nothing.

A model has places for pieces, not for words. For "the fourth word" every cut of the places in front into three words is
tried (a word has at most two pieces more than it must, in all), and in each the places that begin a word may hold
nothing else, the places that go on neither: what comes out has three words in front, whichever cut scores best.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from anyfill.checks import refuse
from anyfill.translation.placeholders import protected
from anyfill.translation.vocabulary import Joint, plain

_BLANK = re.compile(r"_{2,}|\[(\d{1,3})\]")
LONGEST = 8
"""Pieces of the longest blank that is tried where none is said."""


@dataclass(frozen=True, slots=True)
class Keep:
    """A phrase that stays.

    Attributes:
        text: as it is written.
        place: which word of the translation its first one is, from 1; None = any.
    """

    text: str
    place: int | None = None


def parse_keep(text: str, kept: Sequence[str] = ()) -> Keep:
    """``WORDS`` or ``WORDS@PLACE``, with symbols for the placeholders of the source, which are ``kept``."""
    words, at, place = text.rpartition("@")
    if at and place.isdigit():
        if int(place) < 1:
            raise refuse(f"--keep {text!r}", expected="a place from 1", got=place)
        text, number = words, int(place)
    else:
        number = None
    if not plain(text):
        raise refuse("--keep", expected="WORDS or WORDS@PLACE", got=repr(text))
    return Keep(protected(plain(text), kept), number)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Which codes stand where in a target of ``length`` places.

    Attributes:
        length: n.
        codes: at places 1 … n, by place.
        behind: places right behind a phrase, where no word may go on.
        begins, goes_on: places where a word must begin, or must not.
        extra: how many pieces more than words the phrases have that are kept; None = a template or placeholders alone.
    """

    length: int
    codes: dict[int, int]
    behind: frozenset[int]
    begins: frozenset[int] = frozenset()
    goes_on: frozenset[int] = frozenset()
    extra: int | None = None

    @property
    def counted(self) -> frozenset[int]:
        """Places that must not be dropped: something rests on their being there."""
        return self.behind | self.begins | self.goes_on


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


def has_blank(template: str) -> bool:
    """Whether there is something to fill."""
    return _BLANK.search(template) is not None


def parse_template(text: str, vocabulary: Joint) -> Template:
    """A plain template, with symbols for placeholders; ValueError if it has too many blanks without a length."""
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
    if unstated > 3:
        raise refuse("template", expected="at most 3 blanks of unstated length", got=unstated)
    _add_text(parts, text[start:], text, start, vocabulary)
    return Template(tuple(parts))


def _add_text(
    parts: list[tuple[int, ...] | tuple[None, int, int]], piece: str, text: str, start: int, vocabulary: Joint
) -> None:
    if not piece.strip():
        return
    begins = start == 0 or text[start].isspace()
    parts.append(tuple(vocabulary.encode(piece, begins=begins, spelt=True)))


_SPARE = 2
"""Pieces in front of a counted word, beyond one a word, that are tried."""
_WAYS = 256


def placements(keeps: Sequence[Keep], length: int, vocabulary: Joint, *, most: int = _WAYS) -> list[Fixed]:
    """Every way of keeping these phrases in ``length`` places, or ``most`` of them; none = they do not fit.

    Phrases without a place stand in the order they are named in, each wherever there is room. Where there are more ways
    than are wanted, they are looked for at every second, third … place: so phrases get to the end of a long one, too.
    """
    at = sorted((keep for keep in keeps if keep.place is not None), key=lambda keep: keep.place or 0)
    anywhere = [vocabulary.encode(keep.text, spelt=True) for keep in keeps if keep.place is None]
    counted = _counted(at, length, vocabulary)[:most]
    each = max(1, most // max(len(counted), 1))
    return [one for fixed in counted for one in _spread(anywhere, fixed, vocabulary, each)][:most]


def _spread(phrases: Sequence[Sequence[int]], fixed: Fixed, vocabulary: Joint, most: int) -> list[Fixed]:
    """The ways of putting phrases into what is free, at most so many, on a grid that is as fine as they allow."""
    found = _anywhere(phrases, fixed, vocabulary, 1, most + 1)
    for stride in range(2, fixed.length + 1):
        if len(found) <= most:
            break
        found = _anywhere(phrases, fixed, vocabulary, stride, most + 1) or found[:most]
    return found[:most]


def _counted(keeps: Sequence[Keep], length: int, vocabulary: Joint) -> list[Fixed]:
    """The ways of keeping phrases that are counted, in the order of their places; fewest spare pieces first."""
    ways = [(0, 0, Fixed(length, {}, frozenset()))]  # (places, words) behind the last phrase
    for keep in keeps:
        own, onward = vocabulary.encode(keep.text, spelt=True), list[tuple[int, int, Fixed]]()
        for place, words, fixed in ways:
            missing = (keep.place or 1) - 1 - words
            for begins in _cuts(missing, length - place - len(own)):
                start = place + len(begins)
                free = dict(zip(range(place + 1, start + 1), begins))
                codes = dict(zip(range(start + 1, length + 1), own))
                more = Fixed(
                    length,
                    fixed.codes | codes,
                    fixed.behind | {start + len(own) + 1},
                    fixed.begins | {one for one, new in free.items() if new},
                    fixed.goes_on | {one for one, new in free.items() if not new},
                )
                onward.append((start + len(own), words + missing + len(keep.text.split()), more))
        ways = sorted(onward, key=lambda way: way[0])[:_WAYS]
    return [fixed for _, _, fixed in ways]


def _cuts(words: int, room: int) -> list[list[bool]]:
    """The ways of making so many words of pieces: for each piece, whether it begins one; the first always does."""
    if words <= 0:
        return [[]] if words == 0 and room >= 0 else []
    return [
        [place == 0 or place in begins for place in range(pieces)]
        for pieces in range(words, min(words + _SPARE, room) + 1)
        for begins in combinations(range(1, pieces), words - 1)
    ]


def _anywhere(phrases: Sequence[Sequence[int]], fixed: Fixed, vocabulary: Joint, stride: int, most: int) -> list[Fixed]:
    """The first ``most`` ways of putting phrases into what is free, in their order.

    Each begins a whole number of strides behind the last one's end, or is as far back as it can be.
    """
    found: list[Fixed] = []

    def fits(place: int, code: int, first: bool) -> bool:
        if place in fixed.codes:
            return False
        new = vocabulary.begins_word[code]
        return not ((place in fixed.begins and not new) or (place in fixed.goes_on and (new or first)))

    def go_on(number: int, taken: dict[int, int], behind: frozenset[int], least: int) -> None:
        if len(found) >= most:
            return
        if number == len(phrases):
            found.append(Fixed(fixed.length, taken, behind, fixed.begins, fixed.goes_on))
            return
        own, rest = phrases[number], sum(len(phrase) for phrase in phrases[number:])
        last = fixed.length - rest + 1
        starts = list(range(least, last + 1, stride))
        for place in starts if not starts or starts[-1] == last else [*starts, last]:
            end = place + len(own)
            if end not in fixed.goes_on and all(fits(place + i, code, i == 0) for i, code in enumerate(own)):
                go_on(number + 1, taken | dict(zip(range(place, end), own)), behind | {end}, end)

    go_on(0, fixed.codes, fixed.behind, 1)
    return found
