"""How close the joint is when its conditionals are: approximate tensorisation of entropy (GMLM definition 9), and the
finite-sample bound on the joint that pseudolikelihood learns, which rests on it (theorem 4).

A law q satisfies it with constant C under blocks K ~ p_K(. | x) if for every law r

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

**Theorem 4**, every term of it, three ways. n rows, m masks drawn for each, theta-hat in Theta, everything in nats;
with probability at least 1 - delta,

    printed    TV(p_theta, p) < sqrt( C_AT/2 · (L + B ln(1/beta) + eps) ) + C
               B = sqrt( 2^{3N} |Omega|^N C_eps / (m delta) ) + sqrt( ln(8 C_eps / delta) / (2n) )
               C = sqrt( |Omega|^{3N} / (8 delta n) )
    excess     the same with L - H in the place of L
    hoeffding  excess, with B = sqrt( ln(2 C_eps / delta) / (2 n m) ) and
               C = sqrt( |Omega|^N / (4n) ) + sqrt( ln(2 / delta) / (2n) )

L is the training loss, a cross-entropy. The proof (appendix D) writes it as a mean KL: definition 9 bounds
KL(p~, p_theta) by C_AT times E KL = L~ - H, where p~ is the law of the rows, L~ the loss over them and all masks, and
H = E[-log p~(x_K | x_-K, K)] >= 0. So the printed bound holds, but it does not vanish as n and m grow, not even for the
right model: it tends to sqrt(C_AT/2 · H), which says nothing once C_AT · H >= 2 nats (for a product law, once its
entropy is 2 nats). H is known from the rows, so ``excess`` costs nothing, and it does vanish.

Of the other steps: lemma 7 compares L-hat with L~, which is the mean over the rows by definition, so its step 2 (the
second term of B) is not needed; its step 1 is Chebyshev's inequality for every single mask and row. Given the rows the
n m masks are independent and -log p_theta lies in [0, ln(1/beta)], so Hoeffding's inequality at the C_eps
representatives gives the B of ``hoeffding`` at once: ln C_eps / (n m) where the print has 2^{4N} C_eps / m. Likewise
lemma 8 by McDiarmid's inequality and E TV <= sqrt(|Omega|^N / (4n)). No step uses that theta-hat is a minimum: the
bound is uniform over Theta. (Misprints: the eps of corollary 2 should be sqrt(2^{N-1} |Omega|^N / (m delta)); (D.29)
and (D.36) have L for L-hat; a line of lemma 8 has m for n.)

For Ising models theta · T(x) on the box [-R, R]^P the derivative of log p_theta(x_K | x_-K, K) by theta_p is
T_p(x) - E[T_p | x_-K, K], at most the range of T_p given x_-K: 2c for a coupling with an end in K (c = 1 or 2 is how
often a pair counts), 2 for a field in K, 0 for all others. A grid whose sides share eps/2 evenly among these is a
partition as in assumption 4. The margin beta of assumption 3 is the least conditional: flipping spins and signs of
parameters together, every case is one with all spins up, and there theta = -R is worst for all completions at once, so
it is exact.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_positive, require_shape
from anyfill.ising.blocks import Blocks
from anyfill.ising.dynamics import block_means
from anyfill.ising.model import Ising
from anyfill.ising.spectra import poincare_constant, slowest_mode
from anyfill.networks.exact import all_codes, require_exact, state_numbers, to_spins

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


Kind = Literal["printed", "excess", "hoeffding"]


@dataclass(frozen=True, slots=True)
class GeneralisationBound:
    """Theorem 4 with every term. A total of 1 or more says nothing (vacuous): no total variation is larger.

    Attributes:
        variables, states: N and |Omega|.
        samples, masks: n rows, m masks each.
        delta, epsilon: one minus the confidence, and the scale of the covering.
        loss: L, the empirical loss in nats per row and mask.
        entropy: H, the conditional entropy of the rows' own law under the masks, in the same unit.
        tensorization: C_AT of the learned law; the bound is as true as this is an upper bound of it.
        log_covering: ln C_eps, or an upper bound of it.
        log_margin: ln beta, or a lower bound of it.
    """

    variables: int
    samples: float
    masks: float
    delta: float
    epsilon: float
    loss: float
    entropy: float
    tensorization: float
    log_covering: float
    log_margin: float
    states: int = 2

    def __post_init__(self) -> None:
        require_count("variables", self.variables)
        require_count("states", self.states, minimum=2)
        for name in ("samples", "masks", "epsilon", "tensorization"):
            require_positive(name, getattr(self, name))
        if not 0 < self.delta < 1:
            raise refuse("delta", expected="a number between 0 and 1", got=self.delta)
        if not (self.log_covering >= 0 and self.log_margin < 0):
            got = f"{self.log_covering:g} and {self.log_margin:g}"
            raise refuse("log covering number and log margin", expected="at least 0, and below 0", got=got)

    def mask_term(self, kind: Kind = "printed") -> float:
        """What the drawing of masks adds to the loss, in nats: the first term of B times ln(1/beta)."""
        if kind == "hoeffding":
            inner = (math.log(2 / self.delta) + self.log_covering) / (2 * self.samples * self.masks)
            return math.sqrt(inner) * -self.log_margin
        n = self.variables
        log_square = 3 * n * math.log(2) + n * math.log(self.states) + self.log_covering - math.log(self.delta)
        return _exp(0.5 * (log_square - math.log(self.masks))) * -self.log_margin

    def sample_term(self, kind: Kind = "printed") -> float:
        """What lemma 7's second step adds to the loss, in nats: the second term of B times ln(1/beta)."""
        if kind == "hoeffding":
            return 0.0
        return math.sqrt((math.log(8 / self.delta) + self.log_covering) / (2 * self.samples)) * -self.log_margin

    def joint_term(self, kind: Kind = "printed") -> float:
        """C: how far the rows' own law may be from the truth, in total variation."""
        log_states = self.variables * math.log(self.states)
        if kind == "hoeffding":
            mean = 0.5 * _exp(0.5 * (log_states - math.log(self.samples)))
            return mean + math.sqrt(math.log(2 / self.delta) / (2 * self.samples))
        return _exp(0.5 * (3 * log_states - math.log(8 * self.delta) - math.log(self.samples)))

    def nats(self, kind: Kind = "printed") -> float:
        """What stands in the bracket: loss (or excess loss), both terms of B, and epsilon."""
        base = self.loss if kind == "printed" else self.loss - self.entropy
        return max(0.0, base + self.mask_term(kind) + self.sample_term(kind) + self.epsilon)

    def total(self, kind: Kind = "printed") -> float:
        """The bound on the total variation distance between the learned law and the truth."""
        return math.sqrt(0.5 * self.tensorization * self.nats(kind)) + self.joint_term(kind)

    def terms(self, kind: Kind = "printed") -> dict[str, float]:
        """Every term by name, largest first, in units of total variation as if it stood alone; then the total."""
        base = self.loss if kind == "printed" else self.loss - self.entropy
        inside = {"loss" if kind == "printed" else "excess loss": max(0.0, base), "masks": self.mask_term(kind)}
        inside |= {"samples": self.sample_term(kind), "covering scale": self.epsilon}
        alone = {name: math.sqrt(0.5 * self.tensorization * nats) for name, nats in inside.items()}
        alone["law of the rows"] = self.joint_term(kind)
        return dict(sorted(alone.items(), key=lambda item: -item[1])) | {"total": self.total(kind)}

    def floor(self, kind: Kind = "printed") -> float:
        """The total with infinitely many rows and masks, all else equal."""
        return self._at(math.inf, math.inf, kind)

    def needed(self, target: float = 1.0, kind: Kind = "printed") -> tuple[float, float]:
        """Rows n and masks m with which the total would be ``target``, loss, entropy and epsilon as they are.

        n is the number that with infinitely many masks comes half the way from the floor to the target; m the number
        that then reaches it. Both infinite where the floor is not below the target.
        """
        low = self.floor(kind)
        if low >= target:
            return math.inf, math.inf
        samples = _smallest(lambda n: self._at(n, math.inf, kind), 0.5 * (low + target))
        return samples, _smallest(lambda m: self._at(samples, m, kind), target)

    def _at(self, samples: float, masks: float, kind: Kind) -> float:
        """The total with other numbers of rows and masks."""
        return replace(self, samples=samples, masks=masks).total(kind)


def lipschitz_constants(ising: Ising, blocks: Blocks) -> Tensor:
    """float64 (M, P): the most that log p_theta(x_K | x_-K, K) changes per unit of a parameter, for each block."""
    subsets, ends = blocks.subsets, ising.get_buffer("ends")
    require_shape("subsets of the blocks", subsets, (None, ising.variables))
    touched = (subsets[:, ends[:, 0]] | subsets[:, ends[:, 1]]).double() * 2.0 * ising.count
    return torch.cat([touched, subsets.double() * 2.0], 1) if ising.free_fields else touched


def log_covering(ising: Ising, blocks: Blocks, *, radius: float, epsilon: float) -> float:
    """An upper bound of ln C_eps (assumption 4) for the box [-radius, radius]^P: the cells of the grid above."""
    require_positive("radius", radius)
    require_positive("epsilon", epsilon)
    slopes = lipschitz_constants(ising, blocks)
    shared = max(1, int((slopes > 0).sum(1).max()))  # so many parameters move one conditional, at most
    most = slopes.amax(0)
    return sum(math.log(max(1, math.ceil(4.0 * radius * float(slope) * shared / epsilon))) for slope in most)


def log_margin(ising: Ising, blocks: Blocks, *, radius: float) -> float:
    """ln beta over the box (assumption 3): exact for fixed blocks, a lower bound for adaptive ones (N <= 20).

    For adaptive blocks p_K(K | x) / p_K(K | x') is bounded by its extremes, where it is not zero.
    """
    require_positive("radius", radius)
    subsets = blocks.subsets
    worst = Ising(ising.variables, ising.edges, ising.pairs, ising.free_fields)
    fields = -radius * torch.ones_like(ising.fields) if ising.free_fields else -ising.fields.detach().abs()
    worst.with_parameters(torch.full_like(ising.couplings.detach(), -radius), fields.detach())
    up = torch.ones(len(subsets), ising.variables, dtype=torch.int64)
    smallest_log = worst.block_log_prob(up, subsets).detach()
    if blocks.adaptive:
        weights = blocks.probabilities(all_codes(ising.variables))
        smallest = torch.where(weights > 0, weights, math.inf).amin(0)
        smallest_log = smallest_log + smallest.log() - weights.amax(0).log()
    return float(smallest_log.min())


def empirical_losses(ising: Ising, blocks: Blocks, x: Tensor) -> tuple[float, float]:
    """L~ of the model and H of the rows x (n, N): nats per row, exact over the masks. N <= 20.

    L~ - H is the mean KL of definition 9 with r the law of the rows.
    """
    require_shape("x", x, (None, ising.variables))
    codes = all_codes(ising.variables)
    law = torch.bincount(state_numbers(x), minlength=len(codes)).double() / len(x)
    log_model = ising.log_joint().detach()
    weights = blocks.probabilities(codes)
    loss = entropy = 0.0
    for block, weight in zip(blocks.subsets, weights.T):
        chosen = law * weight  # the joint of the row and this block
        model = log_model + weight.log()
        size = 2.0 ** int(block.sum())
        model_rest = (block_means(model.exp().unsqueeze(1), torch.ones_like(law), block)[:, 0] * size).log()
        rest = block_means(chosen.unsqueeze(1), torch.ones_like(law), block)[:, 0] * size
        here = chosen > 0
        loss += float((chosen * (model_rest - model))[here].sum())
        entropy += float((chosen * (rest.log() - chosen.log()))[here].sum())
    return loss, entropy


def generalisation_bound(
    ising: Ising,
    blocks: Blocks,
    x: Tensor,
    *,
    tensorization: float,
    radius: float,
    masks: float = 1,
    loss: float | None = None,
    delta: float = 0.05,
    epsilon: float = 0.1,
) -> GeneralisationBound:
    """Theorem 4 for an Ising model fitted to rows x (n, N) with parameters in [-radius, radius]^P.

    Args:
        ising: the fitted model.
        blocks: how masks were drawn.
        x: the rows it was fitted to.
        tensorization: C_AT of the fitted law; ``tensorization_bound`` gives an upper bound of it, with which the total
            is proved, ``tensorization_constant`` a lower one, with which it is only the least it can be.
        radius: half the side of Theta, chosen before the rows were seen.
        masks: m, drawn for each row.
        loss: L over the masks that were drawn; by default its mean over all masks.
        delta, epsilon: as in the theorem.
    """
    largest = float(ising.theta.detach().abs().max())
    if largest > radius:
        raise refuse("radius", expected=f"at least the largest parameter, {largest:.4g}", got=radius)
    mean, entropy = empirical_losses(ising, blocks, x)
    return GeneralisationBound(
        ising.variables, len(x), masks, delta, epsilon, mean if loss is None else loss, entropy, tensorization,
        log_covering(ising, blocks, radius=radius, epsilon=epsilon), log_margin(ising, blocks, radius=radius),
    )  # fmt: skip


def _exp(value: float) -> float:
    return math.exp(value) if value < 709.0 else math.inf


def _smallest(total: Callable[[float], float], target: float) -> float:
    """The smallest number, to six digits, at which a falling function is at most the target."""
    low, high = 0.0, 1.0
    while total(math.exp(high)) > target:
        high *= 2.0
        if high > 700.0:
            return math.inf
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if total(math.exp(middle)) <= target else (middle, high)
    return math.exp(high)
