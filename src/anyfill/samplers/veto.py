"""Rules that a sampler keeps while it draws: values that are forbidden, given what stands so far.

    p(x_j = v | known)  ->  0 where v is forbidden, the rest renormalised

A rule looks at values only, so it can say what a network learnt badly (no parallel fifths). The law changes: what is
drawn is no longer p(asked | given), nor p given that the rule holds everywhere (a rule that bites late does not weigh
on what was drawn early). Where next to nothing would be left, below ``least`` of the mass, a rule is ignored: a bad
value is better than an absurd one.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.marginals import DiscreteMarginals, Marginals


@runtime_checkable
class Veto(Protocol):
    """A rule about discrete values."""

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        """bool (B, K): which codes of variable (B,) may not be drawn, given x (B, N) where known (B, N)."""
        ...


@dataclass(frozen=True, slots=True)
class Vetoed:
    """A rule, and how much of the mass it must leave to be kept.

    Attributes:
        rule: what is forbidden.
        least: share of the mass below which the rule is ignored.
    """

    rule: Veto
    least: float = 1e-3

    def apply(self, marginals: Marginals, x: Tensor, known: Tensor, variable: Tensor) -> Marginals:
        """The marginals (B, 1) of variable (B,) without what is forbidden."""
        if not isinstance(marginals, DiscreteMarginals):
            raise refuse("marginals under a veto", expected="discrete ones", got=type(marginals).__name__)
        log_probs = marginals.log_probs
        allowed = ~self.rule.forbidden(x, known, variable).unsqueeze(1)
        mass = torch.where(allowed, log_probs.exp(), 0.0).sum(-1, keepdim=True)
        kept = torch.where(allowed | (mass < self.least), log_probs, -torch.inf)
        return FiniteMarginals(kept.log_softmax(-1))
