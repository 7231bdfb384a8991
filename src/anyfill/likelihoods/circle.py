"""Numbers that go round, modelled on a line: hours, degrees.

A circle of length P is cut open and laid flat, and a model gives a density p(z) on the whole line. What it says beyond
the cut goes on at the other end, so the law on the circle is the wound one,

    p_circle(z) = sum_t p(z + t P),    t = …, -1, 0, 1, …

``TURNS`` turns to each side are summed: a model of values within one period says next to nothing farther out.

Means, modes, quantiles, entropies and draws are those of the line; whoever reads a draw winds it (z mod P), which makes
it a draw of p_circle.
"""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from anyfill.likelihoods.marginals import Poolable, Source

TURNS = 2


@dataclass(frozen=True, slots=True, eq=False)
class CircleMarginals:
    """Distributions on a line whose values are read on a circle.

    Attributes:
        flat: those on the line, (B, N).
        period: P, in the units of z.
    """

    flat: Poolable
    period: float

    def log_prob(self, x: Tensor) -> Tensor:
        """log p_circle(x), (B, N)."""
        turns = range(-TURNS, TURNS + 1)
        return torch.stack([self.flat.log_prob(x + turn * self.period) for turn in turns]).logsumexp(0)

    def sample(self, *, generator: Source, temperature: float = 1.0) -> Tensor:
        """One draw per variable on the line, (B, N)."""
        return self.flat.sample(generator=generator, temperature=temperature)

    def mode(self) -> Tensor:
        """The densest point of the line, (B, N)."""
        return self.flat.mode()

    def mean(self) -> Tensor:
        """The mean on the line, (B, N)."""
        return self.flat.mean()

    def quantile(self, q: float) -> Tensor:
        """The quantile on the line, (B, N)."""
        return self.flat.quantile(q)

    def entropy(self) -> Tensor:
        """That of the line, (B, N): at least that of the circle."""
        return self.flat.entropy()

    def pooled(self, log_weights: Tensor) -> "CircleMarginals":
        """The mixture of members (M, B, N) on the same circle, with log-weights (M, B, N)."""
        return CircleMarginals(cast(Poolable, self.flat.pooled(log_weights)), self.period)
