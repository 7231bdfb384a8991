"""A text with blanks (``anyfill.text.template``) in the codes of a vocabulary, and in rows of a model.

**In codes** (``Sheet``). The edges of a text: a space before or behind a blank belongs to what is given, and stays one
space. Where a text folded for text8 begins or ends, so does a word: the model is given a space, a blank at the edge is
whole words. In other vocabularies a blank of *several* lengths at an edge needs something to close it, or its lengths
could not be compared (see ``anyfill.text.candidates``): a space, the beginning and end of a line where the model is one
of lines; without either it is refused, unless it is a word (``anyfill.text.word_search`` knows where words end).

Tokens that are words or pieces. A blank stands for whole ones. Words must not touch a blank; a piece brings the space
before it along, so a space before a blank is asked together with its first piece, which must begin with it.

**In rows** of N places (``BlankWindow``). A text that fits, with its blanks at their longest, is answered as one. In a
longer one the blanks are answered from left to right in groups: a group takes in the next blank as long as it spans at
most half a row. Its window holds the group and as much of the text on both sides as fits (what one side does not need
goes to the other): on the left all that is given or was answered before, on the right what is given up to the next open
blank.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.text.bpe import Bpe
from anyfill.text.encoding import boundary, brings_space, encode_text, require_letters, unread_letter, written
from anyfill.text.folding import as_text8
from anyfill.text.patterns import fits
from anyfill.text.template import Lengths as Lengths
from anyfill.text.template import Template
from anyfill.text.template import parse as parse
from anyfill.text.vocabulary import Characters, Utf8, Vocabulary, is_folded
from anyfill.text.words import Words

_ONE_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A template in the codes of a vocabulary.

    Attributes:
        template: as the user wrote it.
        vocabulary: whose codes.
        stretches: the codes of each of the k + 1 given stretches, int64 (any,).
        leads: text that each of the k blanks must begin with, given by the user and asked with the blank ("" or " ").
    """

    template: Template
    vocabulary: Vocabulary
    stretches: tuple[Tensor, ...]
    leads: tuple[str, ...]

    def codes(self, answers: Sequence[Tensor], blanks: int) -> Tensor:
        """int64 (L,): the text up to the stretch behind the first ``blanks`` blanks, with these answers in them."""
        known = [piece for pair in zip(self.stretches, answers[:blanks]) for piece in pair]
        return torch.cat([*known, self.stretches[blanks]])

    def answer(self, blank: int, codes: Tensor) -> str | None:
        """What the codes (L,) say in a blank; None if they cannot be written there.

        That is where they are no text (broken UTF-8) or letters of a script that the model refuses, where they end the
        line, where they say "unknown", and where the text would have other codes (all but pieces, which can be cut in
        several ways). A word must be one.
        """
        text = self._written(blank, codes)
        wanted = self.template.blanks[blank]
        if text is None or (wanted.is_word and not is_one_word(text)):
            return None
        return text if not wanted.pattern or (len(text) == len(wanted.pattern) and fits(text, wanted.pattern)) else None

    def _written(self, blank: int, codes: Tensor) -> str | None:
        inner = self.vocabulary.plain
        if any(code in (inner.unknown_code, self.vocabulary.end) for code in codes.tolist()):
            return None
        text = written(self.vocabulary, codes)
        if brings_space(inner):
            if "\ufffd" in text or not text.startswith(self.leads[blank]):
                return None
            if isinstance(inner, Bpe) and unread_letter(inner, text) is not None:
                return None
            return text[len(self.leads[blank]) :] or None
        if is_folded(self.vocabulary) and self._doubles_a_space(blank, text):
            return None
        again = self.vocabulary.encode(text)
        return text if len(again) == len(codes) and bool((again == codes).all()) else None

    def _doubles_a_space(self, blank: int, text: str) -> bool:
        """Whether two spaces would meet, which are one where text is folded: another answer says the same."""
        before, behind = self.stretches[blank], self.stretches[blank + 1]
        space = int(boundary(self.vocabulary))
        starts = text[:1] == " " and len(before) and int(before[-1]) == space
        return "  " in text or bool(starts) or (text[-1:] == " " and bool(len(behind)) and int(behind[0]) == space)


def is_one_word(text: str) -> bool:
    """Whether a text is one word: letters, digits, and apostrophes or hyphens between them."""
    return _ONE_WORD.fullmatch(text) is not None


def sheet_of(template: Template, vocabulary: Vocabulary, *, lines: bool = False) -> Sheet:
    """The codes of a text with blanks.

    Args:
        template: what is given and what is asked.
        vocabulary: the model's.
        lines: the model was trained on lines, each from its beginning to its end.
    """
    inner = vocabulary.plain
    stretches, leads = list(template.stretches), [""] * len(template.blanks)
    if isinstance(inner, Words):
        _require_whole_words(template, inner)
    if brings_space(inner):
        for blank, before in enumerate(stretches[:-1]):
            if before.endswith(" "):
                stretches[blank], leads[blank] = before[:-1], " "
    for given in (*stretches, *(blank.pattern for blank in template.blanks)):
        require_letters(vocabulary, given)
    if is_folded(vocabulary):
        for before, behind in pairwise(stretches):
            if before[-1:].isdigit() or behind[:1].isdigit():
                expected = "no digit at it, for this model reads digits as words and writes none"
                raise refuse("blank", expected=expected, got=repr(f"{before[-4:]}____{behind[:4]}"))
    if lines and is_folded(vocabulary):  # lines are folded without the spaces around them
        stretches[0], stretches[-1] = as_text8(stretches[0]).lstrip(), as_text8(stretches[-1]).rstrip()
    codes = [encode_text(vocabulary, stretch) for stretch in stretches]
    _close(codes, template, vocabulary, lines)
    return Sheet(template, vocabulary, tuple(codes), tuple(leads))


def _close(codes: list[Tensor], template: Template, vocabulary: Vocabulary, lines: bool) -> None:
    """Put what the model is given at the two edges of the text there, or refuse what cannot be answered without."""
    if lines:
        if vocabulary.end is not None:
            codes[-1] = torch.cat([codes[-1], torch.tensor([vocabulary.end])])
        return
    for edge, place in ((0, "beginning"), (-1, "end")):
        is_open = template.blanks[edge].is_open and not template.blanks[edge].is_word
        if not len(codes[edge]) and not is_folded(vocabulary):
            if not is_open:
                continue
            space = _between(vocabulary)
            if not len(space):
                expected = "one stated length, as [2], for nothing says where it begins or ends"
                raise refuse(f"blank at the {place} of the text", expected=expected, got="several lengths")
        else:
            space = boundary(vocabulary)
        if len(space) and not (len(codes[edge]) and codes[edge][edge] == space[0]):
            codes[edge] = torch.cat([space, codes[edge]] if edge == 0 else [codes[edge], space])


def _between(vocabulary: Vocabulary) -> Tensor:
    """int64 (0 or 1,): what stands between texts or words: the end of a line, else a space, if there is one."""
    if vocabulary.end is not None:
        return torch.tensor([vocabulary.end])
    if isinstance(vocabulary, Utf8) or (isinstance(vocabulary, Characters) and " " in vocabulary.alphabet):
        return vocabulary.encode(" ").long()
    return torch.zeros(0, dtype=torch.int64)


def _require_whole_words(template: Template, words: Words) -> None:
    """ValueError if a blank touches a word."""
    for before, behind in zip(template.stretches, template.stretches[1:]):
        if words.split(f"{before}a{behind}") != [*words.split(before), "a", *words.split(behind)]:
            glued = f"{before[-12:]}____{behind[:12]}"
            raise refuse("blank", expected="space around it, for it stands for whole words", got=repr(glued))


class BlankRow(NamedTuple):
    """A row with blanks: x int64, given and asked bool (N,), and where the blanks are."""

    x: Tensor
    given: Tensor
    asked: Tensor
    places: list[slice]


@dataclass(frozen=True, slots=True, eq=False)
class BlankWindow:
    """A group of k blanks and what is given around them.

    Attributes:
        given: k + 1 pieces of codes, int64 (any,): before, between and behind the blanks.
        blanks: their lengths.
        whole: the window holds the whole text.
    """

    given: tuple[Tensor, ...]
    blanks: tuple[Lengths, ...]
    whole: bool

    def row(self, sizes: Sequence[int], length: int) -> BlankRow:
        """The row of N = ``length`` places for blanks of these sizes, from place 0 on."""
        x = torch.zeros(length, dtype=torch.int64)
        given, asked = torch.zeros(length, dtype=torch.bool), torch.zeros(length, dtype=torch.bool)
        places: list[slice] = []
        now = 0
        for number, codes in enumerate(self.given):
            x[now : now + len(codes)] = codes
            given[now : now + len(codes)] = True
            now += len(codes)
            if number < len(sizes):
                places.append(slice(now, now + sizes[number]))
                asked[places[-1]] = True
                now += sizes[number]
        return BlankRow(x, given, asked, places)


def blank_groups(sheet: Sheet, length: int) -> list[range]:
    """The blanks that are answered together, from left to right; ValueError if one of them has no room in a row."""
    blanks, given = sheet.template.blanks, [len(codes) for codes in sheet.stretches]
    if sum(given) + sum(blank.maximum for blank in blanks) <= length:
        return [range(len(blanks))]
    for number, blank in enumerate(blanks):
        before, behind = sum(given[: number + 1]), sum(given[number + 1 :])
        room = length - (before > 0) - (behind > 0)
        if blank.maximum > room:
            what = f"blank {number + 1}" if len(blanks) > 1 else "blank"
            expected = f"at most {room} {sheet.vocabulary.units}, for the model sees {length} at a time"
            raise refuse(what, expected=expected, got=f"{'up to ' * blank.is_open}{blank.maximum}")
    found: list[range] = []
    first = 0
    while first < len(blanks):
        last, span = first, blanks[first].maximum
        while last + 1 < len(blanks):
            span += given[last + 1] + blanks[last + 1].maximum
            if span > length // 2:
                break
            last += 1
        found.append(range(first, last + 1))
        first = last + 1
    return found


def blank_window(sheet: Sheet, group: range, answers: Sequence[Tensor], length: int) -> BlankWindow:
    """The window of a group, given the answers (codes) to all blanks before it."""
    blanks = sheet.template.blanks[group.start : group.stop]
    before = sheet.codes(answers, group.start)
    between = sheet.stretches[group.start + 1 : group.stop]
    behind = sheet.stretches[group.stop]
    room = length - sum(blank.maximum for blank in blanks) - sum(map(len, between))
    right = min(len(behind), max(room // 2, room - len(before)))
    left = min(len(before), room - right)
    is_last = group.stop == len(sheet.template.blanks)
    whole = is_last and left == len(before) and right == len(behind)
    return BlankWindow((before[len(before) - left :], *between, behind[:right]), blanks, whole)
