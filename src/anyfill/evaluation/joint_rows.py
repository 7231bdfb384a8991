"""Beginnings of answers that go on side by side, what may come next in each, and answers: for ``joint_search``."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor


class Found(NamedTuple):
    """R answers.

    Attributes:
        codes: int64 (R, asked), the values of the asked variables.
        log_q: float64 (R,), log of the probability of drawing those that are drawn, ``draws`` for each choice; nan for
            those that are looked for.
        known: float64 (R,), log p of the row up to the last of these.
        value: float64 (R,), log p of the row with each, -inf for those that stopped.
        bound: float64 (R,), where these did: log p is not above it; -inf for the others.
    """

    codes: Tensor
    log_q: Tensor
    known: Tensor
    value: Tensor
    bound: Tensor

    @property
    def is_drawn(self) -> Tensor:
        """bool (R,)."""
        return ~self.log_q.isnan()

    def log_total(self, draws: int) -> float:
        """log of the sum over all answers there are, those not read estimated from draws of each choice."""
        weight = torch.where(self.is_drawn, -self.log_q - math.log(draws), 0.0)
        return float((self.value + weight).logsumexp(0))

    def beside(self, other: "Found") -> "Found":
        """Both."""
        return Found(*(torch.cat([mine, theirs]) for mine, theirs in zip(self, other)))


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """What a reading knows of R rows: log p (R,) so far, parameters (R, P) of the next variable, and a cache."""

    value: Tensor
    params: Tensor
    cache: Any


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """R beginnings of answers.

    Attributes:
        codes: int64 (R, chosen).
        left, direct: what both readings know of them, before the last code is read; direct may be missing.
        log_q: float64 (R,), log of the probability of drawing those that are drawn; nan for those that are looked for.
        parent: int64 (R,), which row of the caches each goes on from.
    """

    codes: Tensor
    left: Read
    direct: Read | None
    log_q: Tensor
    parent: Tensor

    @property
    def is_drawn(self) -> Tensor:
        """bool (R,)."""
        return ~self.log_q.isnan()


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The next code of R rows: each with each of V codes.

    Attributes:
        rows: the rows.
        left, direct: float64 (R, V), log p of the code by both readings; direct may be missing.
        law: float64 (R, V), what codes are drawn by, -inf where one may not stand.
        likely: float64 (S * V,), how likely the S rows that are looked for seem with each code.
        sought: int64 (S,), which rows these are.
    """

    rows: Rows
    left: Tensor
    direct: Tensor | None
    law: Tensor
    likely: Tensor
    sought: Tensor

    @property
    def count(self) -> int:
        """How many there are to choose from."""
        return int(self.likely.isfinite().sum())

    def best(self, score: Tensor, count: int) -> Tensor:
        """int64 (at most count,): the numbers of those with the greatest scores (S * V,)."""
        return score.topk(min(count, int(score.isfinite().sum()))).indices

    def foreseen(self, found: Found) -> Tensor:
        """float64 (S * V,): log p of the row with each, if what follows is as likely as behind those read with its end.

        -inf for codes that none of them ends with.
        """
        codes = self.left.shape[1]
        last, ahead = found.codes[:, -1], torch.maximum(found.value, found.bound) - found.known
        nothing = torch.zeros(codes, dtype=torch.float64)
        times = nothing.index_add(0, last, torch.ones_like(ahead))
        mean = torch.where(times > 0, nothing.index_add(0, last, ahead) / times.clamp(min=1), -torch.inf)
        value = self.rows.left.value[self.sought].unsqueeze(1) + self.left[self.sought] + mean
        return torch.where(self.likely.isfinite(), value.flatten(), -torch.inf)

    def drawn(self, score: Tensor, best: Tensor, draws: int, generator: Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Which rows, codes and log q (each (any,)): so many of those dropped, and one for each row drawn before."""
        codes = self.left.shape[1]
        score = score.index_fill(0, best, -torch.inf)
        parents, chosen, log_q = [self.sought[:0]], [self.sought[:0]], [score[:0]]
        if bool(score.isfinite().any()):
            share = score.log_softmax(0)
            number = draw_codes(share.unsqueeze(0), draws, generator)[0]
            parents.append(self.sought[number // codes])
            chosen.append(number % codes)
            log_q.append(share[number])
        before = self.rows.is_drawn.nonzero().flatten()
        if len(before):
            share = self.law[before].log_softmax(1)
            code = draw_codes(share, 1, generator)
            parents.append(before)
            chosen.append(code[:, 0])
            log_q.append(self.rows.log_q[before] + share.gather(1, code)[:, 0])
        return torch.cat(parents), torch.cat(chosen), torch.cat(log_q)

    def taken(
        self, best: Tensor, parent: Tensor | None = None, code: Tensor | None = None, log_q: Tensor | None = None
    ) -> Rows:
        """The rows with the best of those looked for (numbers), then with those that were drawn."""
        codes, rows = self.left.shape[1], self.rows
        sought = torch.full((len(best),), torch.nan, dtype=torch.float64)
        parents, chosen, drawn = self.sought[best // codes], best % codes, sought
        if parent is not None and code is not None and log_q is not None:
            parents, chosen = torch.cat([parents, parent]), torch.cat([chosen, code])
            drawn = torch.cat([sought, log_q])
        ways = torch.cat([rows.codes[parents], chosen.unsqueeze(1)], 1)
        left = replace(rows.left, value=rows.left.value[parents] + self.left[parents, chosen])
        direct = rows.direct
        if direct is not None and self.direct is not None:
            direct = replace(direct, value=direct.value[parents] + self.direct[parents, chosen])
        return Rows(ways, left, direct, drawn, parents)


def draw_codes(log_q: Tensor, count: int, generator: Generator) -> Tensor:
    """int64 (R, count): numbers drawn from laws (R, any), of which there may be more than torch.multinomial takes."""
    sums = log_q.exp().cumsum(1)
    places = torch.rand(len(log_q), count, dtype=torch.float64, generator=generator) * sums[:, -1:]
    return torch.searchsorted(sums, places, right=True).clamp(max=log_q.shape[1] - 1)
