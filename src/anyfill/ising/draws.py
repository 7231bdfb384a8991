"""Draws from an Ising model of any size: exact ones while its states can be listed, the ends of many chains beyond.

Half of the chains start with all spins up, half with all down; they sweep over all sites by heat bath. If the two
halves still differ in mean spin or exponent by more than chance allows, they have not forgotten where they began.
"""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.ising.heat_bath import gibbs_updates
from anyfill.ising.model import Ising
from anyfill.networks.states import MAX_EXACT, to_spins

UNLIKELY = 4.5
"""Standard errors between the halves that are no longer chance (of two tests, one false alarm in 70,000)."""


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Rows from a model.

    Attributes:
        codes: int64 (n, N), in random order.
        apart: how many standard errors lie between the chains that started up and those that started down; None for
            exact draws.
    """

    codes: Tensor
    apart: float | None

    @property
    def warning(self) -> str:
        """A sentence if the rows cannot be trusted; else empty."""
        if self.apart is None or self.apart <= UNLIKELY:
            return ""
        return (
            f"The chains have not forgotten where they began (up and down are {self.apart:.0f} standard errors apart): "
            "give them more --sweeps, or the model has two modes that single sites do not cross."
        )


def draw_rows(ising: Ising, rows: int, sweeps: int, *, generator: Generator) -> Draws:
    """Rows (rows, N); beyond what can be listed, the ends of as many chains after so many sweeps."""
    if ising.variables <= MAX_EXACT:
        return Draws(ising.sample(rows, generator=generator), None)
    start = torch.zeros(rows, ising.variables, dtype=torch.int64)
    start[: rows // 2] = 1
    ended = gibbs_updates(ising, start, sweeps * ising.variables, generator=generator)
    apart = max(
        _apart(series[: rows // 2], series[rows // 2 :])
        for series in (to_spins(ended).mean(1), ising.exponent(ended).detach())
    )
    return Draws(ended[torch.randperm(rows, generator=generator)], apart)


def _apart(one: Tensor, other: Tensor) -> float:
    """Standard errors between two means."""
    if len(one) < 2 or len(other) < 2:
        return 0.0
    gap = float((one.mean() - other.mean()).abs())
    error = math.sqrt(float(one.var() / len(one) + other.var() / len(other)))
    return gap / error if error > 0 else (math.inf if gap > 0 else 0.0)
