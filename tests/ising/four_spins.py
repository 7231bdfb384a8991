"""Data of four spins, and blocks that look at their values, for the tests of fitting."""

import torch
from torch import Generator, Tensor

from anyfill.ising.blocks import subsets_of
from anyfill.ising.model import Ising

SUBSETS = subsets_of(4, [(0, 1), (1, 2, 3), (0, 3), (2,)])


def rule(x: Tensor) -> Tensor:
    x = x.double()
    return torch.stack([1 + x[:, 0], 2 - x[:, 1], 0.5 + x[:, 2] * x[:, 3], x[:, 0]], 1)


def drawn(seed: int, rows: int = 300, **options: object) -> tuple[Ising, Tensor, Generator]:
    generator = torch.Generator().manual_seed(seed)
    truth = Ising.random(4, generator=generator, **options)  # type: ignore[arg-type]
    return truth, truth.sample(rows, generator=generator), generator
