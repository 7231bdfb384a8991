"""The mean of -log p_theta(x_K | x_-K) of an Ising model over rows with blocks K; gradient and Hessian in closed form.

The exponent of an Ising model is linear in theta, so for rows x with blocks K (and o(x) = fixed fields +
log p_K(K | x), if adaptive), equal rows counted once,

    L(theta)  = sum_g w_g log sum_s exp(theta · T_gs + o_gs)  -  theta · mean T  -  mean o     + ridge/2 |theta|²
    gradient  = sum_g w_g E_g[T] - mean T                                                      + ridge theta
    Hessian   = sum_g w_g Cov_g[T]                                                             + ridge I

where a group g is a pair (x_-K, K) with the share w_g of the rows, s runs over the 2^|K| states of its block and E_g is
the conditional law of the block. The Hessian is a mean of covariances: the loss is convex (GMLM proposition 11),
adaptive blocks included. There are at most 2^(N-k) C(N, k) groups however many rows there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.ising.blocks import Blocks, block_choice, completions, listed_rows
from anyfill.ising.model import Ising, blocks_by_size
from anyfill.networks.exact import require_exact

_PORTION = 2**21
"""Statistics computed together."""
_KEPT = 2**25
"""The most statistics that are kept from one evaluation to the next: 256 MiB."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Groups with blocks of one size.

    Attributes:
        weights: (G,), shares of the rows.
        statistics: T (G, 2^k, P).
        offsets: o (G, 2^k), -inf where a state is impossible.
    """

    weights: Tensor
    statistics: Tensor
    offsets: Tensor

    def laws(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Conditional laws (G, 2^k) of the blocks and their log-normalisers (G,)."""
        exponents = self.statistics @ theta + self.offsets
        normaliser = exponents.logsumexp(1)
        return (exponents - normaliser.unsqueeze(1)).exp(), normaliser


class BlockLoss:
    """Mean of -log p_theta(x_K | x_-K) (or of eq. 1, if blocks are adaptive) as a function of theta (P,).

    Args:
        ising: which model; of its parameters only fixed fields are read.
        x: codes (n, N).
        asked: bool (n, N), the block of each row.
        adaptive: the adaptive blocks that ``asked`` was drawn from, if it was.
        ridge: weight of |theta|² / 2.
    """

    def __init__(
        self, ising: Ising, x: Tensor, asked: Tensor, *, adaptive: Blocks | None = None, ridge: float = 0.0
    ) -> None:
        require_exact(int(asked.sum(1).max()), "the states of a block")
        self.ising, self.adaptive, self.ridge = ising, adaptive, ridge
        self.mean_statistics, self._mean_offset = torch.zeros_like(ising.theta.detach()), 0.0
        self._groups: list[tuple[Tensor, Tensor, Tensor]] = []
        with torch.no_grad():
            for rows, _ in blocks_by_size(asked):
                codes, own = x[rows], asked[rows]
                whole, count = _distinct(torch.cat([codes, own], 1))
                share = count.double() / len(x)
                self.mean_statistics += share @ ising.statistics(whole[:, : x.shape[1]])
                outside = torch.where(own, 0, codes)
                groups, count = _distinct(torch.cat([outside, own], 1))
                group_members = groups[:, x.shape[1] :].nonzero()[:, 1].reshape(len(groups), -1)
                self._groups.append((groups[:, : x.shape[1]], group_members, count.double() / len(x)))
                self._mean_offset += float(share @ self._own_offset(whole[:, : x.shape[1]], whole[:, x.shape[1] :]))
        size = len(self.mean_statistics) * sum(len(g) << m.shape[1] for g, m, _ in self._groups)
        self._kept = list(self._make()) if size <= _KEPT else None

    def value_and_gradient(self, theta: Tensor) -> tuple[float, Tensor]:
        """Nats per row, and the gradient (P,)."""
        gradient = self.ridge * theta - self.mean_statistics
        value = 0.5 * self.ridge * theta @ theta - theta @ self.mean_statistics - self._mean_offset
        for part in self._parts():
            law, normaliser = part.laws(theta)
            value = value + part.weights @ normaliser
            gradient = gradient + (part.weights.unsqueeze(1) * law).flatten() @ part.statistics.flatten(0, 1)
        return float(value), gradient

    def hessian(self, theta: Tensor) -> Tensor:
        """(P, P), positive semi-definite."""
        hessian = self.ridge * torch.eye(len(theta), dtype=theta.dtype, device=theta.device)
        for part in self._parts():
            law, _ = part.laws(theta)
            centred = part.statistics - (law.unsqueeze(1) @ part.statistics)
            scaled = ((part.weights.unsqueeze(1) * law).sqrt().unsqueeze(2) * centred).flatten(0, 1)
            hessian = hessian + scaled.T @ scaled
        return hessian

    def _parts(self) -> "Iterator[_Part] | list[_Part]":
        return self._make() if self._kept is None else self._kept

    def _make(self) -> Iterator[_Part]:
        """All groups, a portion at a time."""
        for codes, members, weights in self._groups:
            each = max(1, _PORTION // (len(self.mean_statistics) << members.shape[1]))
            for some in torch.arange(len(codes), device=codes.device).split(each):
                states = completions(codes[some], members[some])
                flat = states.flatten(0, 1)
                statistics = self.ising.statistics(flat).reshape(*states.shape[:2], -1)
                offsets = self._fixed(flat).reshape(states.shape[:2])
                if self.adaptive is not None:
                    offsets = offsets + block_choice(self.adaptive, codes[some], members[some])
                yield _Part(weights[some], statistics, offsets)

    def _fixed(self, x: Tensor) -> Tensor:
        """float64 (B,): what the exponent has of fixed fields."""
        if self.ising.free_fields:
            return torch.zeros(len(x), dtype=torch.float64, device=x.device)
        return (2.0 * x.double() - 1.0) @ self.ising.fields

    def _own_offset(self, x: Tensor, asked: Tensor) -> Tensor:
        """float64 (B,): o at the rows themselves."""
        offset = self._fixed(x)
        if self.adaptive is None:
            return offset
        row = listed_rows(self.adaptive.subsets, asked.bool())
        return offset + self.adaptive.probabilities(x).gather(1, row.unsqueeze(1))[:, 0].log()


def _distinct(codes: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows of 0/1 codes (B, C), and how often each occurs."""
    columns = codes.shape[1]
    if columns > 62:
        return torch.unique(codes.long(), dim=0, return_counts=True)
    shift = torch.arange(columns - 1, -1, -1, device=codes.device)
    number, count = torch.unique((codes.long() << shift).sum(1), return_counts=True)
    return (number.unsqueeze(1) >> shift) & 1, count
