"""The information in pseudolikelihood by Monte Carlo, where the states of an Ising model cannot be listed.

    H = E[ Cov(T | x_-K, K) ]  ≈  mean over rows x ~ p and drawn blocks K ~ p_K(. | x) of the exact Cov(T | x_-K, K)

Each term enumerates the 2^k states of one block, so the cost is rows x 2^k x P^2 whatever N is, and is unbiased for
rows from p. The standard error is that of batch means over consecutive rows: for rows of one chain it stays honest as
long as the chain forgets within a batch.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_shape
from anyfill.ising.blocks import Blocks
from anyfill.ising.model import Ising, blocks_by_size
from anyfill.networks.states import all_codes

MAX_AT_ONCE = 2**23
"""The most statistics held at once: 64 MiB."""


@dataclass(frozen=True, slots=True, eq=False)
class SampledInformation:
    """An estimate of H.

    Attributes:
        information: float64 (P, P).
        error: float64 (P, P), the standard error of each entry.
        rows: how many rows it is from.
    """

    information: Tensor
    error: Tensor
    rows: int


def sampled_information(
    ising: Ising, blocks: Blocks, x: Tensor, *, generator: Generator, batches: int = 32
) -> SampledInformation:
    """Estimate H from rows of codes x (R, N) drawn from the model, one block drawn for each; R >= 2."""
    require_shape("x", x, (None, ising.variables))
    require_shape("subsets of the blocks", blocks.subsets, (None, ising.variables))
    require_count("batches", batches, minimum=2)
    if len(x) < 2:
        raise refuse("rows to estimate from", expected="at least 2", got=len(x))
    chosen = blocks.probabilities(x)
    drawn = torch.multinomial(chosen, 1, generator=generator)[:, 0]
    sums = [
        _covariances(ising, blocks, x[rows], drawn[rows]) / len(rows)
        for rows in torch.arange(len(x)).tensor_split(min(batches, len(x)))
    ]
    sizes = torch.tensor([len(rows) for rows in torch.arange(len(x)).tensor_split(len(sums))], dtype=torch.float64)
    means, share = torch.stack(sums), (sizes / sizes.sum()).reshape(-1, 1, 1)
    information = (share * means).sum(0)
    # Batches of nearly equal size: the weighted spread over batches, unbiased for equal ones.
    variance = (share.square() * (means - information).square()).sum(0) * len(sums) / (len(sums) - 1)
    return SampledInformation(information, variance.sqrt(), len(x))


def _covariances(ising: Ising, blocks: Blocks, x: Tensor, drawn: Tensor) -> Tensor:
    """float64 (P, P): the sum over rows (R, N) of Cov(T | x_-K, K), K the block with the drawn number (R,)."""
    count = len(ising.theta)
    answer = torch.zeros(count, count, dtype=torch.float64)
    for rows, members in blocks_by_size(blocks.subsets[drawn]):
        states = all_codes(members.shape[1])
        step = max(1, MAX_AT_ONCE // (len(states) * count))
        for part, inside in zip(rows.split(step), members.split(step)):
            weight = ising.block_exponents(x[part], inside).detach().log_softmax(1)  # (R, 2^k)
            filled = x[part].unsqueeze(1).repeat(1, len(states), 1)
            filled = filled.scatter(
                2, inside.unsqueeze(1).expand(-1, len(states), -1), states.expand(len(part), -1, -1)
            )
            flat = filled.reshape(-1, ising.variables)
            if blocks.adaptive:
                own = drawn[part].repeat_interleave(len(states))
                chosen = blocks.probabilities(flat).gather(1, own.unsqueeze(1)).reshape(len(part), -1)
                weight = (weight + chosen.log()).log_softmax(1)
            statistics = ising.statistics(flat).reshape(len(part), len(states), -1)
            law = weight.exp().unsqueeze(2)
            centred = (statistics - (law * statistics).sum(1, keepdim=True)).reshape(-1, count)
            answer += centred.T @ (law.reshape(-1, 1) * centred)
    return answer
