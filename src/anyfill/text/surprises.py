"""The tokens of a text with the bits that each costs, and the most surprising of them with what stands around."""

import heapq
from collections import deque
from typing import NamedTuple

SHORT = 3000
"""Characters of the longest file of which all tokens are kept."""
_BEFORE, _BEHIND = 28, 16


class Token(NamedTuple):
    """A token and its surprise.

    Attributes:
        offset: where it begins in the text that the model sees, in characters.
        text: what it stands for.
        bits: -log2 of its probability.
        is_below: a line begins with it below another, and no token says so.
    """

    offset: int
    text: str
    bits: float
    is_below: bool = False


class Surprise(NamedTuple):
    """A surprising token and the text around it."""

    token: Token
    before: str
    behind: str


class Gathered:
    """The most surprising tokens of a text with their surroundings, and all of it if it is short.

    Args:
        count: how many of the most surprising ones.
        gap: what stands between tokens: a space between words, else nothing.
        keep: all tokens are kept of a text of at most so many characters.
    """

    def __init__(self, count: int, gap: str = "", keep: float = SHORT) -> None:
        self._count, self._gap, self._keep = count, gap, keep
        self._around: deque[Token] = deque(maxlen=_BEFORE + 1 + _BEHIND)
        self._seen = 0
        self._best: list[tuple[float, int, Surprise]] = []
        self._all: list[Token] | None = []
        self._characters = 0

    def take(self, token: Token) -> None:
        """The next token."""
        self._seen += 1
        self._around.append(token)
        if self._seen > _BEHIND:
            self._look(len(self._around) - 1 - _BEHIND, self._seen - _BEHIND)
        if self._all is not None:
            self._all.append(token)
            self._characters += len(token.text)
            if self._characters > self._keep:
                self._all = None

    def surprises(self) -> tuple[Surprise, ...]:
        """The most surprising first, of equal ones the earlier; to be called once, at the end."""
        for last in range(min(_BEHIND, self._seen), 0, -1):
            self._look(len(self._around) - last, self._seen - last + 1)
        return tuple(one for _, _, one in sorted(self._best, key=lambda kept: (-kept[0], -kept[1])))

    def short(self) -> tuple[Token, ...] | None:
        """All tokens, if they are few."""
        return None if self._all is None else tuple(self._all)

    def _look(self, place: int, number: int) -> None:
        """Keep the token at this place of those around if it is one of the most surprising so far."""
        token = self._around[place]
        if not self._count or (len(self._best) == self._count and token.bits <= self._best[0][0]):
            return
        texts = ["\n" * one.is_below + one.text for one in self._around]
        before = (self._gap.join([*texts[:place], ""]) + "\n" * token.is_below)[-_BEFORE:]
        behind = self._gap.join(["", *texts[place + 1 :]])[:_BEHIND]
        heapq.heappush(self._best, (token.bits, -number, Surprise(token, before, behind)))
        if len(self._best) > self._count:
            heapq.heappop(self._best)
