"""How strongly variables hang together, and what that does to a chain: for Ising models and trained networks alike.

Pairwise dependency, averaged over rows x (both have exact values on an Ising model, and are 0 without an interaction):

    influence     max_{a,b} TV( p(x_i | x_j = a, rest), p(x_i | x_j = b, rest) )         Dobrushin's, met on the rows
    information   I(x_i; x_j | rest) = sum_a p(a | rest) KL( p(x_i | a, rest) || sum_b p(b | rest) p(x_i | b, rest) )

For two values the influence is |p(x_i = 1 | x_j = 1, rest) - p(x_i = 1 | x_j = 0, rest)|. It asks for conditionals with
one unknown only; the information for those with two as well. Rows of the matrix are i, whose law is looked at, columns
j, which is changed: for a joint the information is symmetric, so asymmetry shows conditionals that belong to none.

Mixing of a chain that was run, from series of one number (chains, time): the integrated autocorrelation time
tau = 1 + 2 sum_t rho_t, summed up to Sokal's window (the first W >= c max(tau_W, 1)), all chains measured from their
common mean, so that chains stuck apart count as correlated. The variance of the mean is tau Var / (chains · time).

What Gibbs sampling makes of learned conditionals (``learned_transition``): k-Gibbs on all 2^N states,

    P(x, y) = mean over blocks K of 1[x_-K = y_-K] q_K(y),    q_K(y) = prod_{i in K} p(y_i | y_-K, y_j for j < i in K)

Conditionals of one joint leave that joint stationary, and reversibly; others have a stationary law of their own, which
depends on k and even on how the blocks are drawn. ``consistency`` measures the same fault at its root.

Nobody asks here what is supported: what untrained conditionals do to a chain is what these numbers are to show.
"""

from dataclasses import dataclass
from itertools import chain, combinations
from typing import Literal

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count, require_member, require_shape
from anyfill.evaluation.acquire import portions
from anyfill.likelihoods.marginals import DiscreteMarginals
from anyfill.likelihoods.mixed import code_sizes
from anyfill.model import Model
from anyfill.networks.states import all_codes, state_numbers

MAX_STATES = 10
"""The most variables whose 2^N x 2^N transition matrix is made."""


def pairwise_dependency(
    model: Model,
    x: Tensor,
    *,
    measure: Literal["influence", "information"] = "influence",
    context: Tensor | None = None,
    rows_per_pass: int | None = None,
) -> Tensor:
    """float64 (N, N): how x_i depends on x_j given all others, averaged over rows of codes (B, N); 0 on the diagonal.

    Takes about B N (N - 1) K rows of network passes, K the number of values (twice that for the information).
    """
    model.check_rows(x)
    model.check_given(x, torch.ones_like(x, dtype=torch.bool))
    sizes = code_sizes(model.likelihood, model.variables)
    if not bool((sizes > 0).all()) or len(x) == 0:
        raise refuse(
            "pairwise dependency", expected="rows of discrete variables", got=f"{model.likelihood}, {len(x)} rows"
        )
    require_member("measure", measure, ("influence", "information"))
    count, answer = model.variables, torch.zeros(model.variables, model.variables, dtype=torch.float64)
    for j in range(count):
        others = [i for i in range(count) if i != j]
        laws: list[Tensor] = []  # for each value of x_j: (others, B, K), log p(x_i | x_j = value, rest)
        for value in range(int(sizes[j])):
            changed = x.clone()
            changed[:, j] = value
            laws.append(torch.stack([_own(model, changed, (i,), i, context, rows_per_pass) for i in others]))
        after = torch.stack(laws, 2).double()  # (others, B, values of j, values of i)
        if measure == "influence":
            p = after.exp()
            apart = 0.5 * (p.unsqueeze(2) - p.unsqueeze(3)).abs().sum(4)
            found = apart.amax((2, 3))
        else:
            before = torch.stack([_own(model, x, (i, j), j, context, rows_per_pass) for i in others]).double()
            before = before[..., : after.shape[2]].unsqueeze(3)
            mixed = (before + after).logsumexp(2, keepdim=True)
            terms = (before + after).exp() * (after - mixed)
            found = torch.where(after.isneginf() | before.isneginf(), 0.0, terms).sum((2, 3))
        answer[others, j] = found.mean(1).cpu()
    return answer


def _own(
    model: Model, x: Tensor, hidden: tuple[int, ...], i: int, context: Tensor | None, rows_per_pass: int | None
) -> Tensor:
    """(B, K): log p(x_i = . | all but the hidden)."""
    known = torch.ones_like(x, dtype=torch.bool)
    known[:, list(hidden)] = False
    found: list[Tensor] = []
    with model.evaluating():
        for rows in portions(len(x), model, rows_per_pass, x.device):
            side = None if context is None else context[rows]
            marginals = model.marginals(x[rows], known[rows], side)
            if not isinstance(marginals, DiscreteMarginals):
                raise refuse("likelihood", expected="one with log_probs of finitely many values", got=model.likelihood)
            found.append(marginals.log_probs[:, i])
    return torch.cat(found)


def autocorrelation_time(series: Tensor, *, window: float = 5.0) -> float:
    """tau >= about 1 for a chain that does not alternate, from (time,) or (chains, time); infinite if nothing moves.

    Believe it if the series is some 50 tau long; of a shorter one it says too little.
    """
    series = series.double().unsqueeze(0) if series.dim() == 1 else series.double()
    require_shape("series", series, (None, None))
    length = series.shape[1]
    if length < 2 or len(series) == 0 or not bool(series.isfinite().all()):
        raise refuse("series", expected="finite numbers at two times at least", got=tuple(series.shape))
    centred = series - series.mean()
    if bool((centred.abs() <= 1e-14 * series.abs().max()).all()):
        return torch.inf
    power = torch.fft.rfft(centred, n=2 * length).abs() ** 2
    covariance = torch.fft.irfft(power, n=2 * length)[:, :length].sum(0) / torch.arange(length, 0, -1)
    tau = 2.0 * (covariance / covariance[0]).cumsum(0) - 1.0
    enough = torch.arange(length) >= window * tau.clamp(min=1.0)  # an alternating series needs a few terms as well
    last = int(enough.long().argmax()) if bool(enough.any()) else length - 1
    return float(tau[last].clamp(min=1.0 / series.numel()))


def effective_sample_size(series: Tensor, *, window: float = 5.0) -> float:
    """chains · time / tau: how many independent draws would give a mean as good; 0 if nothing moves."""
    return series.numel() / autocorrelation_time(series, window=window)


def learned_transition(
    model: Model,
    k: int = 1,
    *,
    inside: Literal["chain", "independent"] = "chain",
    context: Tensor | None = None,
    rows_per_pass: int | None = None,
) -> Tensor:
    """float64 (2^N, 2^N): k-Gibbs made of a model's own conditionals; N <= 10, variables of two values.

    Args:
        model: what answers p(x_i | known).
        k: the size of a block, drawn uniformly.
        inside: how a block is redrawn: "chain", one by one in increasing order, each knowing those before it, or
            "independent", all at once given the rest, as parallel decoding does (for k = 1 the same).
        context: one side information (1, ...) for all states.
        rows_per_pass: most rows in one call of the network.
    """
    count = model.variables
    if count > MAX_STATES or not bool((code_sizes(model.likelihood, count) == 2).all()):
        expected = f"at most {MAX_STATES} variables of two values (a matrix of 2^N x 2^N)"
        raise refuse("dense transition matrix", expected=expected, got=f"{count} variables, {model.likelihood}")
    require_count("k", k, maximum=count)
    require_member("inside", inside, ("chain", "independent"))
    device = next(chain(model.parameters(), model.buffers()), torch.empty(0)).device
    codes = all_codes(count).to(device)
    side = None if context is None else context.expand(len(codes), *context.shape[1:])
    matrix = torch.zeros(len(codes), len(codes), dtype=torch.float64, device=device)
    blocks = list(combinations(range(count), k))
    start = torch.arange(len(codes), device=device)
    for block in blocks:
        log_q = torch.zeros(len(codes), dtype=torch.float64, device=device)
        for place, i in enumerate(block):
            hidden = block if inside == "independent" else block[place:]
            law = _own(model, codes, hidden, i, side, rows_per_pass).double()
            log_q += law.gather(1, codes[:, i : i + 1])[:, 0]
        for values in all_codes(k).to(device):
            moved = codes.clone()
            moved[:, list(block)] = values
            end = state_numbers(moved)
            matrix[start, end] += log_q[end].exp() / len(blocks)
    return matrix.cpu()


@dataclass(frozen=True, slots=True, eq=False)
class LearnedGibbs:
    """What a chain made of learned conditionals settles to, and how fast.

    Attributes:
        stationary: float64 (2^N,).
        gap: 1 - the second largest modulus among the eigenvalues (the chain need not be reversible).
        irreversibility: half of sum |pi_x P_xy - pi_y P_yx|: 0 if the conditionals belong to one joint (k-Gibbs).
        distance: total variation from the given joint; None if there was none.
        divergence: KL(given joint || stationary), nats, likewise.
    """

    stationary: Tensor
    gap: float
    irreversibility: float
    distance: float | None
    divergence: float | None


def learned_gibbs(matrix: Tensor, log_joint: Tensor | None = None) -> LearnedGibbs:
    """Stationary law, gap and irreversibility of a transition matrix (S, S), and its distance to a joint (S,)."""
    law = stationary_law(matrix)
    # P - 1 pi has the eigenvalues of P but the first. It vanishes where a step forgets everything (k = N): then
    # rounding is all that is left, on which LAPACK may not even converge.
    rest = matrix.detach().double() - law
    second = float(torch.linalg.eigvals(rest).abs().max()) if float(rest.abs().max()) > 1e-12 else 0.0
    flow = law.unsqueeze(1) * matrix
    apart = 0.5 * float((flow - flow.T).abs().sum())
    gap = 1.0 - second
    if log_joint is None:
        return LearnedGibbs(law, gap, apart, None, None)
    require_shape("log_joint", log_joint, (len(matrix),))
    log_p = log_joint.detach().double()
    terms = torch.where(log_p.isneginf(), 0.0, log_p.exp() * (log_p - law.log()))
    return LearnedGibbs(law, gap, apart, 0.5 * float((law - log_p.exp()).abs().sum()), float(terms.sum()))


def stationary_law(matrix: Tensor) -> Tensor:
    """float64 (S,): pi = pi P for an irreducible chain, by elimination without subtraction (``lab.hitting``)."""
    require_shape("matrix", matrix, (len(matrix), len(matrix)))
    weight = matrix.detach().double().clone()
    count = len(weight)
    for n in range(count - 1, 0, -1):
        leave = weight[n, :n].sum()
        if not bool(leave > 0):
            raise refuse("chain", expected="an irreducible one", got=f"no way from state {n} to those before it")
        weight[:n, n] /= leave
        weight[:n, :n] += weight[:n, n : n + 1] * weight[n, :n]
    law = torch.ones(count, dtype=torch.float64)
    for n in range(1, count):
        law[n] = law[:n] @ weight[:n, n]
    return law / law.sum()
