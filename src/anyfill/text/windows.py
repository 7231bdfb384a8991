"""Text longer than a row of the model: which blanks are answered together, what they are told, what the whole costs.

A row has N places. A text that fits, with its blanks at their longest, is answered as one. In a longer one the blanks
are answered from left to right in groups: a group takes in the next blank as long as it spans at most half a row. Its
window holds the group and as much of the text on both sides as fits (what one side does not need goes to the other): on
the left all that is given or was answered before, on the right what is given up to the next open blank.

The probability of a long text is that of writing it in the model's own way,

    p(first N codes) · product over the next N - N//2 codes each of p(they | the N//2 codes before them).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.questions.question import Question
from anyfill.text.alphabet import Sheet, unit
from anyfill.text.blanks import Lengths


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A group of k blanks and what is told about them.

    Attributes:
        told: k + 1 pieces of codes, int64 (any,): before, between and behind the blanks.
        blanks: their lengths.
        whole: the window holds the whole text.
    """

    told: tuple[Tensor, ...]
    blanks: tuple[Lengths, ...]
    whole: bool

    def row(self, sizes: Sequence[int], length: int) -> tuple[Tensor, Tensor, Tensor, list[slice]]:
        """x int64, given and asked bool (N,), for blanks of these sizes from place 0 on, and where the blanks are."""
        x = torch.zeros(length, dtype=torch.int64)
        given, asked = torch.zeros(length, dtype=torch.bool), torch.zeros(length, dtype=torch.bool)
        places: list[slice] = []
        now = 0
        for number, told in enumerate(self.told):
            x[now : now + len(told)] = told
            given[now : now + len(told)] = True
            now += len(told)
            if number < len(sizes):
                places.append(slice(now, now + sizes[number]))
                asked[places[-1]] = True
                now += sizes[number]
        return x, given, asked, places


def groups(sheet: Sheet, length: int) -> list[range]:
    """The blanks that are answered together, from left to right; ValueError if one of them has no room in a row."""
    blanks, told = sheet.template.blanks, [len(codes) for codes in sheet.stretches]
    if sum(told) + sum(blank.most for blank in blanks) <= length:
        return [range(len(blanks))]
    for number, blank in enumerate(blanks):
        before, behind = sum(told[: number + 1]), sum(told[number + 1 :])
        room = length - (before > 0) - (behind > 0)
        if blank.most > room:
            what = f"blank {number + 1}" if len(blanks) > 1 else "blank"
            units = unit(sheet.vocabulary)
            expected = f"at most {room} {units}, for the model sees {length} at a time"
            raise refuse(what, expected=expected, got=f"{'up to ' * blank.is_open}{blank.most}")
    found: list[range] = []
    first = 0
    while first < len(blanks):
        last, span = first, blanks[first].most
        while last + 1 < len(blanks):
            span += told[last + 1] + blanks[last + 1].most
            if span > length // 2:
                break
            last += 1
        found.append(range(first, last + 1))
        first = last + 1
    return found


def window_of(sheet: Sheet, group: range, answers: Sequence[Tensor], length: int) -> Window:
    """The window of a group, given the answers (codes) to all blanks before it."""
    blanks = sheet.template.blanks[group.start : group.stop]
    known = [piece for pair in zip(sheet.stretches, answers) for piece in pair]
    before = torch.cat([*known, sheet.stretches[group.start]])
    between = sheet.stretches[group.start + 1 : group.stop]
    behind = sheet.stretches[group.stop]
    room = length - sum(blank.most for blank in blanks) - sum(map(len, between))
    right = min(len(behind), max(room // 2, room - len(before)))
    left = min(len(before), room - right)
    is_last = group.stop == len(sheet.template.blanks)
    whole = is_last and left == len(before) and right == len(behind)
    return Window((before[len(before) - left :], *between, behind[:right]), blanks, whole)


def text_log_prob(model: Model, codes: Tensor) -> float:
    """log p of codes (L,), in nats: exact, by the law at the top of this file."""
    length = model.variables
    back = length // 2
    starts = [0, *range(length - back, len(codes) - back, length - back)] if len(codes) > length else [0]
    x = torch.zeros(len(starts), length, dtype=torch.int64)
    given = torch.zeros(len(starts), length, dtype=torch.bool)
    asked = torch.zeros(len(starts), length, dtype=torch.bool)
    for row, start in enumerate(starts):
        piece = codes[start : start + length]
        x[row, : len(piece)] = piece
        told = back if start else 0
        given[row, :told] = True
        asked[row, told : len(piece)] = True
    return float(log_prob(model, x, Question(given, asked)).value.sum())
