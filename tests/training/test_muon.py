"""Muon here is torch's Muon, up to rounding, done for all matrices of a shape at once."""

import torch
from torch import nn

from anyfill.recipes import coconet
from anyfill.training.optimizers import Muon, orthogonalise, sort_parameters


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


def test_a_kernel_moves_as_the_matrix_of_its_channels() -> None:
    """(out, in, sides…) is (out, all else): the same update, in its own shape."""
    start = torch.randn(6, 2, 3, 4, generator=torch.Generator().manual_seed(2))
    kernel, matrix = nn.Parameter(start.clone()), nn.Parameter(start.flatten(1).clone())
    kernel.grad, matrix.grad = start.cos(), start.cos().flatten(1)
    for parameter in (kernel, matrix):
        Muon([parameter], lr=0.1, weight_decay=0.2).step()
    torch.testing.assert_close(kernel.flatten(1), matrix)
    assert float((kernel - start).detach().norm()) > 0.1


def test_kernels_of_repeated_blocks_are_hidden() -> None:
    """Muon's; the first and the last kernel, outside of the lists of blocks, are not."""
    model = coconet.model(5, (8, 4), width=4, depth=6)
    hidden, decayed, _ = sort_parameters(model)
    assert {tuple(one.shape) for one in hidden} >= {(4, 4, 3, 3)}
    assert any(one is model.network.head.weight for one in decayed)
