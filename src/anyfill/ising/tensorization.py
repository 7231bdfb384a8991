"""Approximate tensorisation of entropy: how far conditionals that are close make joints close (GMLM definition 9).

q satisfies it with constant C under blocks K ~ p_K(. | x) if for every law r

    KL(r, q)  <=  C · D(r),     D(r) = E_{x~r} E_{K~p_K(.|x)} KL( r(. | x_-K, K), q(. | x_-K, K) )

The least such C is C_AT(q) = sup_r KL(r, q) / D(r). With f = r / q and h(t) = t log t - t + 1 >= 0,

    KL(r, q) = sum_x q h(f),     D(r) = sum_K sum_x q p_K(K | x) c_K h(f / c_K),     c_K = E_q[f | x_-K, K]

sums of terms that are never negative, so that nothing cancels near r = q, and zeros of r are exact (h(0) = 1).

What is known of C_AT, and is tested:

    >= the Poincare constant of the block dynamics: r = q (1 + small f) has the ratio Var f / E(f, f)
    =  1 / min_i P(i in K) for a product law and fixed blocks (N / k for k-blocks), attained by product laws r
    =  1 for the block of everything; and C_AT(k + 1) <= C_AT(k), because D grows with k for every r (chain rule)
    1 - 1 / C_AT bounds the factor by which one step of fixed blocks shrinks KL(r, q)

The last gives exp(-t / C) in continuous time. The paper prints exp(-2t / C), which is false: for one variable C = 1 and
the rate at r is 1 + KL(q, r) / KL(r, q), below 2 wherever KL(q, r) < KL(r, q).

``tensorization_constant`` climbs from many starts: what it finds is a ratio that some law has, hence a LOWER bound of
C_AT. ``tensorization_bound`` is a proved upper bound.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_shape
from anyfill.ising.blocks import Blocks
from anyfill.ising.spectra import poincare_constant, slowest_mode
from anyfill.networks.exact import all_codes, require_exact, to_spins

MAX_CELLS = 20_000_000
"""The most (block, state) pairs that are held at once: 160 MB for each number per pair."""

NEAR, CHUNK = 1e-10, 20
"""Nats below which a law counts as q itself; steps between two looks at the progress of an ascent."""


@dataclass(frozen=True, slots=True)
class Ascent:
    """One start of the search: what law it was, its ratio, and the largest ratio met on the way up from it."""

    name: str
    start: float
    found: float


@dataclass(frozen=True, slots=True, eq=False)
class Tensorization:
    """What the search for sup_r KL(r, q) / D(r) found.

    Attributes:
        constant: the largest ratio found; a LOWER bound of C_AT(q), however many starts there were.
        bound: a proved upper bound of C_AT(q); the truth lies between the two.
        poincare: the Poincare constant of the same blocks, the ratio of laws infinitely close to q.
        log_r: float64 (2^N,), the law with ratio ``constant``; None where that is the limit r -> q itself.
        ascents: every start.
    """

    constant: float
    bound: float
    poincare: float
    log_r: Tensor | None
    ascents: tuple[Ascent, ...]


def conditional_divergence(log_r: Tensor, log_q: Tensor, blocks: Blocks) -> Tensor:
    """float64 (): D(r), exactly, for laws log_r and log_q (2^N,); r may be zero (-inf), q may not. With gradients."""
    return _Cells.of(log_q, blocks).divergences(_log_ratio(log_r, log_q))[1]


def tensorization_ratio(log_r: Tensor, log_q: Tensor, blocks: Blocks) -> float:
    """KL(r, q) / D(r) for laws (2^N,); infinite where D is zero and r is not q. ValueError for r = q: there is none."""
    ratio = _Cells.of(log_q, blocks).ratio(_log_ratio(log_r, log_q))
    if ratio == 0.0:
        raise refuse("law r", expected="another law than q (the ratio of q to itself is 0 / 0)", got="q itself")
    return ratio


def tensorization_bound(log_q: Tensor, blocks: Blocks) -> float:
    """A proved upper bound of C_AT for the law log_q (2^N,): the least of three.

    1. 1 / min_x P(K = everything | x), since that block's share of D is KL(r, q) itself.
    2. exp(osc(log q - log u)) / min_i sum_{K with i} min_x p_K(K | x) for any product law u: u has the constant
       1 / min_i P(i in K) (Shearer), and h >= 0 lets q be exchanged for u at the cost of the largest q/u and u/q.
    3. C log(1/q_min - 1) / (1 - 2 q_min) with the Poincare constant C: the log-Sobolev constant is at most that
       (Diaconis and Saloff-Coste 1996, corollary A.4) and Var_K(sqrt f) <= Ent_K(f).
    """
    return _upper(_Cells.of(log_q, blocks), poincare_constant(log_q, blocks))


def tensorization_constant(
    log_q: Tensor, blocks: Blocks, *, starts: int = 8, generator: Generator, steps: int = 100
) -> Tensorization:
    """Search for sup_r KL(r, q) / D(r) by L-BFGS on log r from many starts.

    The starts are all point masses (their ratios are exact; the search goes on near the best), tilts of q along the
    slowest mode of the block dynamics, small and large, q restricted to the two signs of that mode and to the two
    majorities (as they are, and mixed with a little q), and random laws.

    Args:
        log_q: float64 (2^N,), a law without zeros.
        blocks: how K is drawn.
        starts: how many random laws, besides the others.
        generator: for the random laws.
        steps: the most steps of each ascent.
    """
    require_count("starts", starts, minimum=0)
    cells = _Cells.of(log_q, blocks)
    poincare, mode = poincare_constant(log_q, blocks), slowest_mode(log_q, blocks).function
    ascents: list[Ascent] = []
    best, where = poincare, None
    for name, log_f in _starts(cells, mode, starts, generator):
        before = cells.ratio(log_f)
        after, found = _climb(cells, log_f, steps)
        if before > after:
            after, found = before, log_f
        ascents.append(Ascent(name, before, after))
        # Close to q rounding decides; the limit itself stands for it.
        if after > best * (1.0 + 1e-9):
            best, where = after, cells.log_q + found
    return Tensorization(best, _upper(cells, poincare), poincare, where, tuple(ascents))


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """A law and blocks, laid out as (block, state) cells: states with equal x_-K share a group.

    Attributes:
        log_q: (S,).
        weights: p_K(K | x), (M, S).
        groups: the group of each cell, int64 (M, S), from 0 to M S - 1.
        mass: q summed with its weights over each group, at each of its cells (M, S).
        subsets: bool (M, N).
    """

    log_q: Tensor
    weights: Tensor
    groups: Tensor
    mass: Tensor
    subsets: Tensor

    @classmethod
    def of(cls, log_q: Tensor, blocks: Blocks) -> "_Cells":
        subsets = blocks.subsets
        count, variables = subsets.shape
        require_exact(variables, "approximate tensorisation")
        require_shape("log_q", log_q, (2**variables,))
        _require_law("log_q", log_q)
        if not bool(log_q.isfinite().all()):
            raise refuse("log_q", expected="a law without zeros", got=f"{int((~log_q.isfinite()).sum())} states of 0")
        if count * len(log_q) > MAX_CELLS:
            got = f"{count:,} blocks of {len(log_q):,} states"
            raise refuse("blocks times states", expected=f"at most {MAX_CELLS:,}", got=got)
        log_q = log_q.detach().double()
        states = torch.arange(len(log_q))
        kept = (~subsets.long() & 1) << torch.arange(variables - 1, -1, -1)  # the bits outside each block
        groups = (states & kept.sum(1, keepdim=True)) + len(log_q) * torch.arange(count).unsqueeze(1)
        weights = blocks.probabilities(all_codes(variables)).T.contiguous()
        cells = cls(log_q, weights, groups, torch.empty(0), subsets)
        return cls(log_q, weights, groups, cells.gather(log_q.exp() * weights), subsets)

    def gather(self, values: Tensor) -> Tensor:
        """(M, S): the sum over its group of values (M, S), at each cell."""
        flat = values.new_zeros(values.numel()).index_add(0, self.groups.flatten(), values.flatten())
        return flat[self.groups]

    def divergences(self, log_f: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """KL(r, q), D(r) and log(f / c_K) (M, S) for r = q f, from log f (S,), -inf where r is zero; with gradients."""
        q, here = self.log_q.exp(), log_f > -math.inf
        safe = torch.where(here, log_f, 0.0)
        whole = (q * torch.where(here, _h(safe), 1.0)).sum()
        both = q * self.weights
        total = self.gather(both * torch.where(here, safe.exp(), 0.0))
        some = (total > 0) & (self.mass > 0)
        mean = torch.where(some, total, 1.0) / torch.where(some, self.mass, 1.0)
        apart = torch.where(some & here, safe - mean.log(), 0.0)
        each = torch.where(some, both * mean * torch.where(here, _h(apart), 1.0), 0.0)
        return whole, each.sum(), apart

    def ratio(self, log_f: Tensor) -> float:
        """KL(r, q) / D(r); 0 where r is q."""
        whole, parts, _ = self.divergences(log_f)
        if float(whole) <= 0.0:
            return 0.0
        return float(whole / parts) if float(parts) > 0.0 else math.inf


def _h(u: Tensor) -> Tensor:
    """t log t - t + 1 at t = exp(u); errors are of the size of rounding times u, not of rounding."""
    return u.exp() * u - u.expm1()


def _log_ratio(log_r: Tensor, log_q: Tensor) -> Tensor:
    require_shape("log_r", log_r, tuple(log_q.shape))
    _require_law("log_r", log_r)
    return log_r.double() - log_q.double()


def _require_law(name: str, log_law: Tensor) -> None:
    total = float(log_law.detach().double().logsumexp(0))
    if not abs(total) < 1e-8:
        raise refuse(name, expected="log-probabilities that sum to 1", got=f"a sum of exp({total:.3g})")


def _normal(cells: _Cells, log_f: Tensor) -> Tensor:
    """log f shifted so that q f sums to 1."""
    return log_f - (cells.log_q + log_f).logsumexp(0)


def _starts(cells: _Cells, mode: Tensor, count: int, generator: Generator) -> Iterator[tuple[str, Tensor]]:
    """Names and log f (S,) of laws to climb from."""
    log_q, nowhere = cells.log_q, torch.full_like(cells.log_q, -math.inf)
    # A point mass has KL = -log q(x) and D = sum_K p_K(K|x) (-log q(x_K | x_-K, K)).
    reached = (cells.weights > 0) & (cells.mass > 0)
    inside = torch.where(reached, cells.mass, 1.0).log() - torch.where(reached, log_q + cells.weights.log(), 0.0)
    point = int((-log_q / (cells.weights * torch.where(reached, inside, 0.0)).sum(0)).argmax())
    mass = nowhere.clone()
    mass[point] = -log_q[point]
    yield f"point mass {point}", mass
    yield f"near point mass {point}", _smoothed(mass)
    mode = mode / mode.abs().max()
    for size in (0.01, 1.0, -1.0):
        yield f"tilt {size:+g} along the slowest mode", _normal(cells, size * mode)
    spins = to_spins(all_codes(cells.subsets.shape[1])).sum(1)
    parts = {"slowest mode above 0": mode > 0, "slowest mode below 0": mode < 0}
    parts |= {"majority up": spins > 0, "majority down": spins < 0}
    for name, part in parts.items():
        law = _normal(cells, torch.where(part, 0.0, nowhere))
        yield f"{name}, alone", law
        yield f"{name}, mostly", _smoothed(law)
    for number in range(count):
        noise = torch.randn(len(log_q), generator=generator, dtype=torch.float64)
        yield f"random {number}", _normal(cells, (0.3, 1.0, 3.0)[number % 3] * noise)


def _smoothed(log_f: Tensor) -> Tensor:
    """log of 0.99 f + 0.01: the law mixed with a little q."""
    return torch.logaddexp(math.log(0.99) + log_f, torch.full_like(log_f, math.log(0.01)))


def _climb(cells: _Cells, log_f: Tensor, steps: int) -> tuple[float, Tensor]:
    """The largest ratio met from this start on, zeros kept, and its log f (S,).

    The slope of log KL - log D by log r(x) is r(x) · ( log f(x) / KL - sum_K p_K(K | x) log(f / c_K)(x) / D ).
    """
    chosen = (log_f > -math.inf).nonzero()[:, 0]
    if len(chosen) < 2:
        return cells.ratio(log_f), log_f
    free = log_f[chosen].clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [free], max_iter=CHUNK, tolerance_grad=1e-9, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )
    best: list[tuple[float, Tensor]] = [(0.0, log_f)]
    nowhere = torch.full_like(log_f, -math.inf)

    def loss() -> Tensor:
        now = _normal(cells, nowhere.index_put((chosen,), free.detach()))
        whole, parts, apart = cells.divergences(now)
        # Where KL is tiny, its digits are rounding: such a ratio is not believed.
        if float(whole) > NEAR and float(whole / parts) > best[0][0]:
            best[0] = (float(whole / parts), now)
        slope = apart.mul(cells.weights).sum(0) / parts - torch.where(now > -math.inf, now, 0.0) / whole
        free.grad = ((cells.log_q + now).exp() * slope)[chosen]
        return parts.log() - whole.log()

    for _ in range(0, steps, CHUNK):
        before = best[0][0]
        optimizer.step(loss)  # pyright: ignore[reportArgumentType]
        if best[0][0] <= before * (1.0 + 1e-8):  # at the top, or on the way into q itself
            break
    return best[0]


def _upper(cells: _Cells, poincare: float) -> float:
    """See ``tensorization_bound``."""
    log_q, variables = cells.log_q, cells.subsets.shape[1]
    least = cells.weights.amin(1)  # min_x p_K(K | x)
    share = float(least[cells.subsets.all(1)].sum())
    bounds = [1.0 / share if share > 0 else math.inf]
    covered = float((least.unsqueeze(1) * cells.subsets).sum(0).min())
    spins = to_spins(all_codes(variables))
    if covered > 0:
        marginal = ((log_q.exp().unsqueeze(1) * spins).sum(0).clamp(-1 + 1e-12, 1 - 1e-12)).atanh()
        for tilt in (marginal, (log_q.unsqueeze(1) * spins).mean(0)):
            left = log_q - spins @ tilt
            bounds.append(math.exp(min(700.0, float(left.max() - left.min()))) / covered)
    smallest = float(log_q.min().exp())
    if 0 < smallest < 0.5:
        bounds.append(poincare * (math.log1p(-smallest) - math.log(smallest)) / (1 - 2 * smallest))
    return min(bounds)
