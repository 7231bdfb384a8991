"""Drafts for speculative sampling from something cheaper than the network: n-gram tables.

Speculation is exact whatever drafts, so long as it says truly from which distribution it drew. ``NgramDraft`` draws a
variable from what was counted after the values directly left of it, by Witten-Bell interpolation: after the context h,
seen n(h) times with t(h) different followers,

    p(c | h) = (n(h, c) + t(h) p(c | h')) / (n(h) + t(h)),    h' = h without its leftmost value,

down to the frequencies of single values. Only known values count as context, up to order - 1 of them without a gap; a
context that was never seen is shortened until it was. Nothing is asked of the network.

The distribution function is kept in whole multiples of 2^-30, so that the probabilities drawn with and those stated are
the same numbers.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor
from torch.nn import functional

from anyfill.checks import refuse, require_count
from anyfill.likelihoods.discrete import sample_codes
from anyfill.likelihoods.marginals import uniform
from anyfill.samplers.draw import Draw, reshape_log_probs

_UNITS = 2**30
_MAX = 2**26  # numbers in a table


@runtime_checkable
class Draft(Protocol):
    """Guesses the next values of a row; better guesses are accepted more often, and any are legal."""

    def __call__(
        self, x: Tensor, known: Tensor, variables: Tensor, *, draw: Draw, generator: Generator
    ) -> tuple[Tensor, Tensor]:
        """Guess W variables one after another.

        Args:
            x: values (B, N), to be read where known (B, N) only.
            known: bool (B, N).
            variables: int64 (B, W), W at least 1, in the order in which they are answered. Where a row has fewer left,
                the rest of them may be any, and their guesses are thrown away.
            draw: how the sampler reshapes the network's distributions; following it makes for better guesses.
            generator: the source of all randomness.

        Returns:
            The guesses, int64 (B, W), and the log-probabilities (B, W, K) each was drawn with, given those before it.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class NgramDraft:
    """Guesses from counts of n values in a row; made by ``NgramDraft.of``.

    Attributes:
        order: n, of which n - 1 are context.
        row: int32 ((K + 1)^(n - 1),), for each context, read as a number with digits 0 … K (K = not known), the row of
            the table that is used: that of its longest known ending that was seen.
        table: int32 (R, K), a distribution function over the codes for each context that was seen, in units of 2^-30.
    """

    order: int
    row: Tensor
    table: Tensor

    @classmethod
    def of(cls, codes: Tensor, size: int, *, order: int = 6) -> "NgramDraft":
        """Count the values of a text (L,) or of rows (R, L), each a code from 0 to size - 1."""
        require_count("order", order)
        require_count("size", size)
        rows = codes if codes.dim() == 2 else codes.unsqueeze(0)
        if rows.dim() != 2 or rows.shape[1] < order or len(rows) == 0:
            raise refuse("codes", expected=f"at least one row of {order} codes or more", got=tuple(codes.shape))
        if int(rows.min()) < 0 or int(rows.max()) >= size:
            raise refuse("codes", expected=f"from 0 to {size - 1}", got=f"{int(rows.min())} to {int(rows.max())}")
        if (size + 1) ** (order - 1) > _MAX:
            raise refuse("order", expected=f"(size + 1)^(order - 1) of at most {_MAX}", got=f"({size + 1})^{order - 1}")
        return cls(order, *_count(rows, size, order))

    @property
    def size(self) -> int:
        """K, the number of codes."""
        return self.table.shape[1]

    def to(self, device: torch.device | str) -> "NgramDraft":
        """The same on another device."""
        return NgramDraft(self.order, self.row.to(device), self.table.to(device))

    def __call__(
        self, x: Tensor, known: Tensor, variables: Tensor, *, draw: Draw, generator: Generator
    ) -> tuple[Tensor, Tensor]:
        """As ``Draft``."""
        if x.device != self.table.device:
            raise refuse("device of the draft", expected=f"{x.device}, as the rows (use .to)", got=self.table.device)
        back = self.order - 1
        # `back` places further right than in x, so that the context of a variable begins at its own index.
        shown = functional.pad(torch.where(known, x.long(), self.size), (back, 0), value=self.size)
        digit = (self.size + 1) ** torch.arange(back - 1, -1, -1, device=x.device)
        context = (variables.unsqueeze(2) + torch.arange(back, device=x.device)).unbind(1)
        own = (variables + back).split(1, 1)
        noise = uniform((*variables.T.shape, 1), generator=generator, device=x.device)
        units = (noise * _UNITS).to(self.table.dtype).unbind(0)
        guesses: list[Tensor] = []
        used: list[Tensor] = []
        for i in range(variables.shape[1]):
            row = self.row[(shown.gather(1, context[i]) * digit).sum(1)]
            if draw == Draw():
                guess = torch.searchsorted(self.table[row], units[i], right=True)
            else:
                guess = sample_codes(reshape_log_probs(self._log_probs(row), draw), generator=generator).unsqueeze(1)
            shown.scatter_(1, own[i], guess)
            guesses.append(guess)
            used.append(row)
        log_probs = self._log_probs(torch.stack(used, 1))
        return torch.cat(guesses, 1), log_probs if draw == Draw() else reshape_log_probs(log_probs, draw)

    def _log_probs(self, row: Tensor) -> Tensor:
        """float64 (..., K): the distributions in these rows (...) of the table."""
        above = self.table[row]
        return ((above - functional.pad(above, (1, 0))[..., :-1]).double() / _UNITS).log()


def _count(rows: Tensor, size: int, order: int) -> tuple[Tensor, Tensor]:
    """``row`` and ``table`` of ``NgramDraft`` from rows of codes (R, L)."""
    length = rows.shape[1] - order + 1
    gram = torch.zeros(len(rows), length, dtype=torch.int64, device=rows.device)
    for i in range(order):
        gram = gram * (size + 1) + rows[:, i : i + length].long()
    grams, counts = gram.flatten().unique(return_counts=True)  # sorted; every shorter n-gram is summed from these
    row = torch.zeros(1, dtype=torch.int32, device=rows.device)
    tables: list[Tensor] = []
    lower = torch.full((1, size), 1.0 / size, dtype=torch.float64, device=rows.device)
    made = 0
    for n in range(1, order + 1):
        ending, at = (grams % (size + 1) ** n).unique(return_inverse=True)
        times = torch.zeros(len(ending), dtype=torch.float64, device=rows.device)
        times.index_add_(0, at, counts.double())
        context, where = (ending // (size + 1)).unique(return_inverse=True)
        if len(context) * size > _MAX:
            raise refuse("order", expected="fewer different contexts, so a lower one", got=f"{order} ({len(context)})")
        seen = torch.zeros(len(context), size, dtype=torch.float64, device=rows.device)
        seen[where, ending % (size + 1)] = times
        # `row` still speaks of contexts one shorter; and those of n = 1 have none: the even distribution.
        shorter = lower if n == 1 else lower[(row[context % len(row)] - (made - len(lower))).long()]
        different = (seen > 0).sum(1, keepdim=True)
        lower = (seen + different * shorter) / (seen.sum(1, keepdim=True) + different)
        tables.append(lower)
        row = row.repeat(size + 1) if n > 1 else row
        row[context] = torch.arange(made, made + len(context), dtype=torch.int32, device=rows.device)
        made += len(context)
    steps = (torch.cat(tables).cumsum(1) * _UNITS).round().to(torch.int32)
    steps[:, -1] = _UNITS
    return row, steps
