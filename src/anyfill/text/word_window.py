"""A window with one blank as a network has read it: each part of what stands around the blank once, whoever asks.

Three searches need it (``anyfill.text.word_search``): words that are likely from the left and the ranking by p(text) go
on behind s, the text before the blank; the direct answer goes on behind s and t, the text behind it, once for each
number of codes that the word may have (they say where t stands).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import Beginning, read_beginning
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.question import Question, chain_rank
from anyfill.text.blanks import BlankWindow


class Opened(NamedTuple):
    """K rows that go on with a blank: x (K, N), what is asked, the parameters (K, P) of its first code, and a cache."""

    x: Tensor
    question: Question
    params: Tensor
    cache: Any


@dataclass(slots=True, eq=False)
class ReadWindow:
    """What has been read of a window.

    Attributes:
        model: whose network reads.
        window: with one blank.
    """

    model: Model
    window: BlankWindow
    _before: Beginning | None = field(default=None, init=False)
    _rows: dict[int, tuple[Opened, int]] = field(default_factory=dict[int, tuple[Opened, int]], init=False)

    @property
    def network(self) -> Windowed:
        """The network; ValueError if it has no cache to go on from in several ways."""
        if not isinstance(self.model.network, Windowed):
            raise refuse("word search", expected="a network with a cache", got=type(self.model.network).__name__)
        return self.model.network

    def before(self) -> Beginning:
        """What stands before the blank."""
        if self._before is None:
            before, behind = self.window.given
            room = len(before) + self.window.blanks[0].maximum + max(1, len(behind))
            self._before = read_beginning(self.model, before, min(room, self.model.variables))
        return self._before

    def question(self, sizes: Sequence[int]) -> Question:
        """The blank of so many codes, both sides given, a row for each of the sizes."""
        rows = [self.window.row((size,), self.model.variables) for size in sizes]
        return Question(torch.stack([row.given for row in rows]), torch.stack([row.asked for row in rows]))

    def both(self, sizes: Sequence[int]) -> Opened:
        """Both sides around a blank of so many codes, a row for each of the sizes.

        ValueError unless they have all been read, together, or none of them has.
        """
        if not any(size in self._rows for size in sizes):
            question = self.question(sizes)
            x = torch.stack([self.window.row((size,), self.model.variables).x for size in sizes])
            with self.model.evaluating():
                opened = Opened(x, question, *self.network.open(x, chain_rank(self.model.order, question)))
            self._rows |= {size: (opened, number) for number, size in enumerate(sizes)}
            return opened
        owners = [self._rows.get(size) for size in sizes]
        kept = [one for one in owners if one is not None and owners[0] is not None and one[0] is owners[0][0]]
        if len(kept) < len(sizes):
            raise refuse("sizes", expected="those that were read together, or none of them", got=list(sizes))
        opened, number = kept[0][0], torch.tensor([row for _, row in kept])
        asked = Question(opened.question.given[number], opened.question.asked[number])
        return Opened(opened.x[number], asked, opened.params[number], self.network.select(opened.cache, number))

    def is_read(self, size: int) -> bool:
        """Whether both sides have been read around a blank of so many codes."""
        return size in self._rows
