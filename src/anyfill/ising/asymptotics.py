"""Asymptotic variance of pseudolikelihood estimators, exact and from draws (GMLM lemmas 1, 2 and 5, theorem 1).

For an exponential family with statistics T the score of a block is s_K(x) = T(x) - E[T | x_-K, K], where for adaptive
blocks the condition on K counts: the law behind it is mu_K(x) = p(x) p_K(K | x). With (x, K) ~ p(x) p_K(K | x),

    I     = Cov(T)                          Fisher information
    H     = E[ Cov(T | x_-K, K) ]           Hessian of the population loss = expected conditional covariance
    J     = Cov(s_K)                        covariance of the score over x and K;  J = H (lemmas 2 and 5)
    Gamma = H^-1 J H^-1 = H^-1              sqrt(n) (theta_hat - theta) -> N(0, Gamma), one mask for each sample

v^T H v is the Dirichlet form of v · T, so H is ``dirichlet_matrix`` of the statistics and theorems 2 and 3 follow.
With m masks drawn for each sample the score is a mean of m, and with V = Cov( E[s_K | x] ) = Cov( (1 - P) T )

    Gamma_m = H^-1 [ H / m + (1 - 1/m) V ] H^-1,        m -> infinity:  H^-1 V H^-1 (every block of every sample)

**Which one the theorems are about.** Theorems 1 to 3 are about m = 1, the sampling of definition 2. For m = infinity
the ordering of theorem 1 can fail: averaging over masks is itself a gain, and a larger one for small blocks.

**By Monte Carlo**, where the states of an Ising model cannot be listed (``sampled_information``):

    H = E[ Cov(T | x_-K, K) ]  ≈  mean over rows x ~ p and drawn blocks K ~ p_K(. | x) of the exact Cov(T | x_-K, K)

Each term enumerates the 2^k states of one block, so the cost is rows x 2^k x P^2 whatever N is, and is unbiased for
rows from p. The standard error is that of batch means over consecutive rows: for rows of one chain it stays honest as
long as the chain forgets within a batch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_shape
from anyfill.ising.blocks import Blocks, block_choice, completions, k_blocks
from anyfill.ising.dynamics import apply_dynamics, block_means, dirichlet_matrix, mass_of
from anyfill.ising.model import Ising, blocks_by_size
from anyfill.networks.exact import MAX_EXACT, all_codes

IMPRECISE = "couplings or fields this strong leave less than double precision resolves"
"""Why an information matrix that is positive definite comes out singular."""


def fisher_information(log_joint: Tensor, statistics: Tensor) -> Tensor:
    """float64 (P, P): I = Cov(T), from log p (2^N,) and T (2^N, P)."""
    mass = mass_of(log_joint, _variables(log_joint))
    require_shape("statistics", statistics, (len(mass), None))
    return _covariance(statistics.detach().double(), mass)


def block_information(log_joint: Tensor, statistics: Tensor, blocks: Blocks) -> Tensor:
    """float64 (P, P): H, the Hessian of the population loss at the truth, as the mean of conditional covariances."""
    require_shape("statistics", statistics, (len(log_joint), None))
    return dirichlet_matrix(statistics, log_joint, blocks)


def score_covariance(log_joint: Tensor, statistics: Tensor, blocks: Blocks) -> Tensor:
    """float64 (P, P): J, the covariance of the score over x and K, score by score: equal to H by lemmas 2 and 5.

    Another computation than ``block_information``, and slower: it is here to check it.
    """
    variables = blocks.subsets.shape[1]
    mass, chosen = mass_of(log_joint, variables), blocks.probabilities(all_codes(variables))
    require_shape("statistics", statistics, (len(mass), None))
    statistics = statistics.detach().double()
    mean = torch.zeros(statistics.shape[1], dtype=torch.float64)
    second = torch.zeros(statistics.shape[1], statistics.shape[1], dtype=torch.float64)
    for number, block in enumerate(blocks.subsets):
        mu = mass * chosen[:, number]
        score = statistics - block_means(statistics, mu, block)
        mean += mu @ score
        second += score.T @ (mu.unsqueeze(1) * score)
    return second - torch.outer(mean, mean)


def mean_score_covariance(log_joint: Tensor, statistics: Tensor, blocks: Blocks) -> Tensor:
    """float64 (P, P): V, the covariance over x of the score averaged over the blocks of x."""
    require_shape("statistics", statistics, (len(log_joint), None))
    statistics = statistics.detach().double()
    score = statistics - apply_dynamics(statistics, log_joint, blocks)
    return _covariance(score, mass_of(log_joint, blocks.subsets.shape[1]))


def asymptotic_variance(
    log_joint: Tensor,
    statistics: Tensor,
    blocks: Blocks,
    *,
    masks: float = 1,
    ridge: float = 0.0,
    names: Sequence[str] | None = None,
) -> Tensor:
    """float64 (P, P): Gamma of the estimator that draws ``masks`` blocks for each sample; ``math.inf`` = all of them.

    With ``ridge`` times |theta|² / 2 beside the loss H + ridge I stands in the place of the outer H; that is the
    variance around the estimator's own limit, which the ridge moves away from the truth. Refuses a singular H: some
    parameter, or combination of them, is then not estimated at all. ``names`` are as in ``inverse_information``.
    """
    if masks != math.inf:
        require_count("masks", masks)
    information = block_information(log_joint, statistics, blocks)
    inverse = inverse_information(information + ridge * torch.eye(len(information)).double(), names=names)
    if masks == 1 and ridge == 0.0:
        return inverse
    middle = information
    if masks != 1:
        middle = information / masks + (1.0 - 1.0 / masks) * mean_score_covariance(log_joint, statistics, blocks)
    answer = inverse @ middle @ inverse
    return 0.5 * (answer + answer.T)


def inverse_information(information: Tensor, *, names: Sequence[str] | None = None) -> Tensor:
    """float64 (P, P): the inverse of a symmetric information matrix; refuses a singular one in a sentence.

    ``names`` of the P parameters say that all of them are identified, as those of an Ising model are: the sentence then
    uses them, and blames the precision.
    """
    scale = information.diagonal().clamp(min=0.0).sqrt()
    lost = (scale == 0).nonzero()[:, 0].tolist()
    if lost:
        got = (
            f"no information at all on parameter {lost[0]} (a statistic that does not vary)"
            if names is None
            else f"no information on {_listed(names, lost)}: {IMPRECISE}"
        )
        raise refuse("information matrix", expected="positive definite", got=got)
    values, vectors = torch.linalg.eigh(information / scale / scale.unsqueeze(1))
    floor = len(values) * torch.finfo(torch.float64).eps * float(values[-1])
    if float(values[0]) <= floor:
        rank = int((values > floor).sum())
        heavy = (vectors[:, 0].abs() > 0.1).nonzero()[:, 0].tolist()
        got = f"rank {rank} of {len(values)}: "
        if names is None:
            got += f"a combination of parameters {heavy[:8]} is not identified"
        else:
            got += f"a combination of {_listed(names, heavy)} is lost: {IMPRECISE}"
        raise refuse("information matrix", expected="positive definite", got=got)
    inverse = (vectors / values) @ vectors.T / scale / scale.unsqueeze(1)
    return 0.5 * (inverse + inverse.T)


def ising_information(ising: Ising, blocks: Blocks | None = None) -> Tensor:
    """float64 (P, P): H of an Ising model for these blocks; without blocks the Fisher information. N <= 20."""
    statistics = _statistics(ising)
    if blocks is None:
        return fisher_information(ising.log_joint(), statistics)
    return block_information(ising.log_joint(), statistics, blocks)


def ising_variance(ising: Ising, blocks: Blocks | None = None, *, masks: float = 1, ridge: float = 0.0) -> Tensor:
    """float64 (P, P): Gamma of an Ising model's estimator; without blocks that of maximum likelihood. N <= 20."""
    blocks = k_blocks(ising.variables, ising.variables) if blocks is None else blocks
    statistics, names = _statistics(ising), parameter_names(ising)
    return asymptotic_variance(ising.log_joint(), statistics, blocks, masks=masks, ridge=ridge, names=names)


def parameter_names(ising: Ising) -> list[str]:
    """Words for the P parameters, in the order of ``Ising.theta``."""
    names = [f"J of spins {i} and {j}" for i, j in ising.edges]
    return names + ([f"h of spin {i}" for i in range(ising.variables)] if ising.free_fields else [])


def _listed(names: Sequence[str], places: Sequence[int]) -> str:
    first = [names[place] for place in places[:4]]
    more = len(places) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


def _statistics(ising: Ising) -> Tensor:
    """float64 (2^N, P): T of every state; refuses to list too many."""
    if ising.variables > MAX_EXACT:
        expected = f"at most {MAX_EXACT} (all 2^N states are listed)"
        got = f"{ising.variables}, which would need 2^{ising.variables} states times {len(ising.theta)} statistics; "
        got += "estimate from draws with sampled_information"
        raise refuse("variables for exact asymptotics", expected=expected, got=got)
    return ising.statistics(all_codes(ising.variables))


def _variables(log_joint: Tensor) -> int:
    count = max(len(log_joint), 1).bit_length() - 1
    require_shape("log_joint", log_joint, (2**count,))
    return count


def _covariance(values: Tensor, mass: Tensor) -> Tensor:
    centred = values - mass @ values
    return centred.T @ (mass.unsqueeze(1) * centred)


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
    parts = torch.arange(len(x)).tensor_split(min(batches, len(x)))
    means = torch.stack([_covariances(ising, blocks, x[rows], drawn[rows]) / len(rows) for rows in parts])
    sizes = torch.tensor([len(rows) for rows in parts], dtype=torch.float64)
    share = (sizes / sizes.sum()).reshape(-1, 1, 1)
    information = (share * means).sum(0)
    # Batches of nearly equal size: the weighted spread over batches, unbiased for equal ones.
    variance = (share.square() * (means - information).square()).sum(0) * len(parts) / (len(parts) - 1)
    return SampledInformation(information, variance.sqrt(), len(x))


def _covariances(ising: Ising, blocks: Blocks, x: Tensor, drawn: Tensor) -> Tensor:
    """float64 (P, P): the sum over rows (R, N) of Cov(T | x_-K, K), K the block with the drawn number (R,)."""
    count = len(ising.theta)
    answer = torch.zeros(count, count, dtype=torch.float64)
    for rows, members in blocks_by_size(blocks.subsets[drawn]):
        step = max(1, MAX_AT_ONCE // (count << members.shape[1]))
        for part, inside in zip(rows.split(step), members.split(step)):
            weight = ising.block_exponents(x[part], inside).detach().log_softmax(1)  # (R, 2^k)
            if blocks.adaptive:
                weight = (weight + block_choice(blocks, x[part], inside)).log_softmax(1)
            statistics = ising.statistics(completions(x[part], inside).flatten(0, 1)).reshape(*weight.shape, count)
            law = weight.exp().unsqueeze(2)
            centred = (statistics - (law * statistics).sum(1, keepdim=True)).reshape(-1, count)
            answer += centred.T @ (law.reshape(-1, 1) * centred)
    return answer
