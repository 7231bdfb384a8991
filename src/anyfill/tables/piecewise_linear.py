"""Numbers as bins between quantiles: a piecewise-linear encoding, for networks on tables.

With edges e_1 < e_2 < … at equally spaced quantiles of a variable's values, bin t of a value x says how much of the bin
lies below x, from -1/2 (nothing) to 1/2 (all of it): a step at any threshold costs one weight, as in a tree.

    bin_t(x) = min(max((x - e_t) / (e_t+1 - e_t), 0), 1) - 1/2

This is the encoding of Gorishniy et al. (2022) less 1/2; values beyond the first and the last edge are cut there, too.
"""

import torch
from torch import Tensor

_ENOUGH = 100_000  # values that quantiles are taken of, at least if there are that many
_NEVER = 1e6  # beyond the greatest value


def quantile_bins(x: Tensor, present: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Where the T bins of each of R numbers begin and how far they reach, float32 (R, T), from present values (B, R).

    Where quantiles coincide there are fewer bins, and the others are never reached; without a value all begin at 0.
    """
    begin, reach = x.new_zeros(x.shape[1], bins), x.new_ones(x.shape[1], bins)
    level = torch.linspace(0, 1, bins + 1, dtype=torch.float64, device=x.device)
    for number in range(x.shape[1]):
        values = x[present[:, number], number].double()
        if len(values) == 0:
            continue
        edges = torch.unique(torch.quantile(values[:: max(1, len(values) // _ENOUGH)], level))
        apart = edges.diff().clamp(min=1e-3)
        begin[number].fill_(float(edges[-1]) + _NEVER)
        begin[number, : len(apart)] = edges[:-1].float()
        reach[number, : len(apart)] = apart.float()
    return begin, reach


def in_bins(x: Tensor, known: Tensor, begin: Tensor, reach: Tensor) -> Tensor:
    """(B, R T): the bins of R numbers x (B, R), 0 where not known."""
    steps = (x.unsqueeze(-1) - begin) / reach
    return torch.where(known.unsqueeze(-1), steps.clamp(0.0, 1.0) - 0.5, 0.0).flatten(1)
