"""Text longer than a row of the model: how it is cut, what it costs, and which blanks are answered together.

A row has N places, a text has L codes. Two protocols turn p over rows into p over texts, both products of conditionals
and so distributions over all texts of L codes:

    half   p(first N) · prod of p(the next N - N//2 | the N//2 before them): beyond the first window a code is given at
           least half a row of what comes before it
    none   prod of p(N codes) over disjoint chunks, as papers score text8

Blanks. A text that fits, with its blanks at their longest, is answered as one. In a longer one the blanks are answered
from left to right in groups: a group takes in the next blank as long as it spans at most half a row. Its window holds
the group and as much of the text on both sides as fits (what one side does not need goes to the other): on the left all
that is given or was answered before, on the right what is given up to the next open blank.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.questions.question import Question
from anyfill.text.alphabet import Sheet
from anyfill.text.blanks import Lengths


class TextWindow(NamedTuple):
    """Some codes of a text: int64 (at most N,), the first ``given`` of them given, the others asked."""

    codes: Tensor
    given: int


def text_windows(parts: Iterable[tuple[Tensor, bool]], length: int, *, half: bool) -> Iterator[TextWindow]:
    """The windows of texts, in order, each code asked once; a part is some codes (L,) and whether a text begins."""
    back = length // 2 if half else 0
    held, given = torch.zeros(0, dtype=torch.int64), 0
    for codes, is_new in parts:
        if is_new:
            if len(held) > given:
                yield TextWindow(held, given)
            held, given = codes, 0
        else:
            held = torch.cat([held, codes])
        while len(held) >= length:
            yield TextWindow(held[:length], given)
            held, given = held[length - back :], back
    if len(held) > given:
        yield TextWindow(held, given)


def rows_of(windows: Sequence[TextWindow], length: int) -> tuple[Tensor, Question]:
    """int64 (B, N): the windows as rows, each from place 0 on, and what is given and asked of them."""
    x = torch.zeros(len(windows), length, dtype=torch.int64)
    for row, window in enumerate(windows):
        x[row, : len(window.codes)] = window.codes
    place, given = torch.arange(length), torch.tensor([[window.given] for window in windows])
    sizes = torch.tensor([[len(window.codes)] for window in windows])
    return x, Question(place < given, (place >= given) & (place < sizes))


def text_log_prob(model: Model, codes: Tensor) -> float:
    """log p of codes (L,), in nats: exact, by the protocol ``half``."""
    x, question = rows_of([*text_windows([(codes, True)], model.variables, half=True)], model.variables)
    return float(log_prob(model, x, question).value.sum())


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
