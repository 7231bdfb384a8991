"""Muon here is torch's Muon, up to rounding, done for all matrices of a shape at once."""

import torch
from torch import nn

from anyfill.training.optimizers import Muon, orthogonalise


def test_singular_values_go_near_one() -> None:
    for shape in ((3, 8, 5), (2, 4, 9)):
        values = torch.linalg.svdvals(orthogonalise(torch.randn(*shape, generator=torch.Generator().manual_seed(0))))
        assert float(values.min()) > 0.6
        assert float(values.max()) < 1.3


def test_the_updates_are_those_of_torch() -> None:
    generator = torch.Generator().manual_seed(1)
    start = [torch.randn(shape, generator=generator) for shape in ((6, 4), (6, 4), (3, 7))]
    ours = [nn.Parameter(value.clone()) for value in start]
    theirs = [nn.Parameter(value.clone()) for value in start]
    one = Muon(ours, lr=0.1, weight_decay=0.2)
    two = torch.optim.Muon(theirs, lr=0.1, weight_decay=0.2, adjust_lr_fn="match_rms_adamw")
    for _ in range(4):
        for a, b in zip(ours, theirs):
            a.grad = torch.randn(a.shape, generator=generator)
            b.grad = a.grad.clone()
        one.step()
        two.step()
    for a, b, before in zip(ours, theirs, start):
        moved = (b - before).detach()
        assert float((a - b).detach().norm() / moved.norm()) < 0.03  # torch's iteration runs in 16 bits
