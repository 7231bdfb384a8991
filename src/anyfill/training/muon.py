"""Muon (Jordan et al. 2024): momentum whose every matrix is replaced by the nearest semi-orthogonal one.

    M <- μ M + (1 - μ) G,   U = orthogonalise((1 - μ) G + μ M),   W <- (1 - ηλ) W - η · 0.2 √max(rows, columns) · U

Orthogonalising is five steps of a quintic Newton-Schulz iteration, which sends singular values into about [0.7, 1.2].
The factor gives the update the root mean square of AdamW's (Liu et al. 2025), so one learning rate does for both.
``torch.optim.Muon`` computes the same; here all matrices of one shape go through the iteration together, which is
several times faster for many small ones, and in 32 bits on a CPU, where 16-bit products are slow. Of sharded matrices
each process holds the momentum of its rows; it orthogonalises them all, and takes its rows of the answer.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from anyfill.checks import refuse
from anyfill.training.shards import local, part, stacked

_QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonalise(matrices: Tensor) -> Tensor:
    """The nearest semi-orthogonal matrices, roughly, to ``matrices`` (K, R, C)."""
    a, b, c = _QUINTIC
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if tall else x).to(matrices.dtype)


class Muon(Optimizer):
    """Muon for matrices; everything else belongs to another optimizer.

    Args:
        params: matrices.
        lr: learning rate, on AdamW's scale.
        momentum: μ.
        weight_decay: λ, decoupled.
    """

    def __init__(
        self, params: Iterable[Tensor], *, lr: float, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(list(params), {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.dim() != 2:
                    raise refuse("parameter of Muon", expected="a matrix", got=f"shape {tuple(parameter.shape)}")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One update of every matrix that has a gradient."""
        if closure is not None:
            raise refuse("closure", expected="none (Muon evaluates no loss)", got="one")
        for group in self.param_groups:
            shapes: dict[tuple[int, ...], list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes.setdefault(tuple(parameter.shape), []).append(parameter)
            for shape, matrices in shapes.items():
                self._update(shape, matrices, group["lr"], group["momentum"], group["weight_decay"])

    def _update(self, shape: tuple[int, ...], matrices: list[Tensor], lr: float, momentum: float, decay: float) -> None:
        ahead: list[Tensor] = []
        for matrix in matrices:
            gradient = torch.zeros_like(matrix) if matrix.grad is None else matrix.grad
            state = self.state[matrix]
            if not state:
                state["momentum"] = torch.zeros_like(matrix)
            local(state["momentum"]).lerp_(local(gradient), 1 - momentum)
            ahead.append(gradient.lerp(state["momentum"], momentum))
        step = lr * 0.2 * math.sqrt(max(shape))
        for matrix, update in zip(matrices, orthogonalise(stacked(ahead)).unbind(0)):
            local(matrix).mul_(1 - lr * decay).add_(local(part(update, matrix)), alpha=-step)
