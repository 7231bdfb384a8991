"""Words drawn in asked places only, and typical words found without a sort.

A chain of R passes over B rows of N places draws R · B · N words from distributions over thousands, though only asked
places need one: ``Cells`` draws those alone, without changing any law.

Typical words (``anyfill.samplers.draw``) are those of smallest d(v) = |-log p(v) - H| whose mass reaches tau. Sorting
half a billion numbers in every pass takes longer than the network; but the set is {d <= c} for one threshold c of each
place, which bisection finds:

    low = 0, high = max d;   24 times:  m = (low + high) / 2,   mass(d <= m) reaches tau ? high = m : low = m

Words between low and high are a 2^-24th of the range apart at most, and are taken for equals: in the order of their
codes, until the mass is reached, as equals are in the library.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import FiniteMarginals, sample_codes
from anyfill.samplers import Draw

HALVINGS = 24
_ROUNDING = 1e-6


def _apart(law: Tensor, entropy: Tensor) -> Tensor:
    """d (M, K); infinite where a word is impossible."""
    return torch.where(law.isneginf(), torch.inf, (-law - entropy).abs())


def _begun(log_probs: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The law (M, K) at this temperature, its entropy and its greatest d, (M, 1) each."""
    law = (log_probs / temperature).log_softmax(-1)
    entropy = -torch.where(law.isneginf(), 0.0, law.exp() * law).sum(-1, keepdim=True)
    return law, entropy, torch.where(law.isneginf(), 0.0, (-law - entropy).abs()).amax(-1, keepdim=True)


def _halved(law: Tensor, entropy: Tensor, low: Tensor, high: Tensor, mass: float) -> tuple[Tensor, Tensor]:
    """Closer bounds of the threshold, (M, 1) each."""
    middle = (low + high) / 2
    is_enough = torch.where(_apart(law, entropy) <= middle, law.exp(), 0.0).sum(-1, keepdim=True) >= mass - _ROUNDING
    return torch.where(is_enough, low, middle), torch.where(is_enough, middle, high)


def _cut(law: Tensor, entropy: Tensor, low: Tensor, high: Tensor, mass: float) -> Tensor:
    """The law with all but the typical words at -inf."""
    apart, probs = _apart(law, entropy), law.exp()
    sure, equal = apart <= low, (apart > low) & (apart <= high)
    tied = torch.where(equal, probs, 0.0)
    before = torch.where(sure, probs, 0.0).sum(-1, keepdim=True) + tied.cumsum(-1) - tied
    return torch.where(sure | (equal & (before < mass - _ROUNDING)), law, -torch.inf)


@cache
def _fused() -> tuple[Callable[..., Any], ...]:
    """The three, compiled: one pass over the law each, for all temperatures (a tensor)."""
    return tuple(torch.compile(part, dynamic=False) for part in (_begun, _halved, _cut))


def typical_only(log_probs: Tensor, temperature: float, mass: float, *, fused: bool = False) -> Tensor:
    """log p (M, K), not normalised: those of p^(1 / temperature) with all but the typical words at -inf."""
    begun, halved, cut = _fused() if fused else (_begun, _halved, _cut)
    law, entropy, high = begun(log_probs, torch.tensor(temperature, device=log_probs.device))
    low = torch.full_like(high, -1e-30)  # nothing is that typical
    for _ in range(HALVINGS):
        low, high = halved(law, entropy, low, high, mass)
    return cut(law, entropy, low, high, mass)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """``Draw``, for the asked places (B, N) only; 0 elsewhere.

    Attributes:
        draw: what is done to their distributions.
        asked: bool (B, N).
        cells: int64 (M,), their numbers.
    """

    draw: Draw
    asked: Tensor
    cells: Tensor = field(init=False)

    def __post_init__(self) -> None:
        if not self.draw.temperature >= 0.1:  # p^(1/T) is not normalised first, and must not vanish
            raise refuse("temperature", expected="0.1 or more", got=self.draw.temperature)
        object.__setattr__(self, "cells", self.asked.flatten().nonzero()[:, 0])

    @property
    def temperature(self) -> float:
        """Never 0: chance has a say in every pass."""
        return self.draw.temperature

    def __call__(self, marginals: FiniteMarginals, *, generator: Generator) -> Tensor:
        """int64 (B, N)."""
        law = self._law(marginals.log_probs.flatten(0, 1))
        codes = torch.zeros_like(self.asked, dtype=torch.int64).flatten()
        return codes.index_copy_(0, self.cells, sample_codes(law, generator=generator)).view_as(self.asked)

    def _law(self, every: Tensor) -> Tensor:
        """(M, K): what is drawn from, not normalised, of log-probabilities (B N, K) of all places."""
        law = every if len(self.cells) == len(every) else every[self.cells]
        if not self.draw.filters:
            return law / self.draw.temperature
        if self.draw == Draw(temperature=self.draw.temperature, typical=self.draw.typical) and law.is_cuda:
            return typical_only(law, self.draw.temperature, cast(float, self.draw.typical), fused=True)
        return self.draw.filtered(law)
