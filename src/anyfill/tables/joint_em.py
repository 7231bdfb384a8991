"""A mixture of joint Gaussians of a table with holes, by expectation-maximisation; how many, by held-out cells.

**One step.** With n rows of D features, and for row i its known features o and unknown ones u, component k expects

    r_ik  ∝  w_k N(f_i,o; mu_k,o, Sigma_k,oo)                                     p(k | f_i,o), of sum 1 over k
    f^_ik =  f_i at o,   mu_k,u + Sigma_k,uo Sigma_k,oo^-1 (f_i,o - mu_k,o) at u
    C_ik  =  Sigma_k,uu - Sigma_k,uo Sigma_k,oo^-1 Sigma_k,ou at u u,   0 elsewhere

(``networks.joint``). With n_k = sum_i r_ik, and m the mean of every feature's known values, the next joint is

    w_k      = (n_k + 1) / (n + K)
    mu_k     = (sum_i r_ik f^_ik + m / 2) / (n_k + 1/2)
    S_k      = sum_i r_ik [ (f^_ik - mu_k)(f^_ik - mu_k)' + C_ik ]                with the new mu_k
    W        = sum_k S_k / n + floor I                                            what all components have in common
    A_k      = (S_k + prior T) / (n_k + prior) + 1e-6 I                           each is drawn towards its like T
    Sigma_k  = (1 - shrink) A_k + shrink diag(W)                                  and all towards independence

T is W, or the covariance of a few factors near to W where ``rank`` says so: ``prior`` rows of the common shape keep a
component with few rows well conditioned (an inverse-Wishart prior), and on small tables that shrinkage is what makes
more than one component pay. One component alone has no like: T = diag(W), and the prior counts max(1, D^2 / n) rows,
enough to be positive definite. Where rows are few for the number of features the common shape errs too: it fits its own
rows and misleads about others; hence ``shrink``.

**Where it begins.** One component: independent features. Several: rows filled in by a single Gaussian, k-means of them
(the best of four starts by k-means++), the scatter around the centers as every component's covariance.

**What is chosen** (numbers of components, rank, shrink) is what predicts held-out features best: 15 % of the known ones
are hidden at random, once or, where they are fewer than 4000, three times, and

    error = sum over hidden (i, j) of min((f_ij - center_ij)^2, 25),    center = E[f_i | what is left of f_i,o]

is least. The bound keeps one wild value from choosing alone.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeVar

import torch
from torch import Generator, Tensor

from anyfill.tables.factors import condition_factors
from anyfill.tables.factors_em import fit_factors, low_rank
from anyfill.tables.joint import Joint, condition, per_component

PRIOR = 30.0
FLOOR = 1e-3
SHRINKS = (0.0, 0.05, 0.12, 0.25)
"""Shares of independence to choose from."""
_MAX_NUMBERS = 600_000
_STEPS = 25
_Choice = TypeVar("_Choice")


def enough_rows(features: int) -> int:
    """How many rows a joint of so many features needs: more would cost much and change little."""
    return max(min(3000, _MAX_NUMBERS // features**2), 10 * features)


def fit_joint(
    features: Tensor,
    known: Tensor,
    components: int,
    rank: int = 0,
    shrink: float = 0.0,
    *,
    start: Joint | None = None,
    steps: int = _STEPS,
    generator: Generator,
) -> Joint:
    """K Gaussians (float64) over D features.

    Args:
        features: (B, D), read where known.
        known: bool (B, D).
        components: K.
        rank: the shape that components have in common is that of so many factors; 0 = any.
        shrink: how much every covariance is drawn towards independent features, from 0 to 1.
        start: a joint with K components to go on from.
        steps: of EM.
        generator: of the first centers.
    """
    features = torch.where(known, features, 0.0).double()
    joint = start
    if joint is None:
        joint = _independent(features, known)
        if components > 1:
            joint = _improved(joint, features, known, steps, 0, shrink)
            joint = _split(joint, features, known, components, generator)
    return _improved(joint, features, known, steps, rank, shrink)


def choose_components(
    features: Tensor,
    known: Tensor,
    counts: Sequence[int],
    most: int = 1,
    rank: int = 0,
    shrink: float = 0.0,
    *,
    generator: Generator,
) -> tuple[int, ...]:
    """Which numbers of Gaussians go best together: one Gaussian and these, averaged, predict held-out features best.

    By squared error: the centers are what a network starts from; the shape around them it learns itself.

    Args:
        features: (B, D).
        known: bool (B, D).
        counts: the numbers to choose from.
        most: how many to choose.
        rank: see ``fit_joint``; of the one Gaussian too.
        shrink: see ``fit_joint``; not of the one Gaussian.
        generator: of the held-out features and the first centers.
    """
    if len(counts) <= most:
        return tuple(counts)

    def centers(told: Tensor) -> Callable[[tuple[int, ...]], Tensor]:
        one = _single(features, told, rank, generator)
        found = {count: _expected(features, told, count, rank, shrink, generator) for count in counts}
        return lambda some: (one + sum(found[count] for count in some)) / (1 + most)

    return _best(list(combinations(counts, most)), features, known, centers, generator)


def choose_rank(features: Tensor, known: Tensor, ranks: Sequence[int], *, generator: Generator) -> int:
    """Which of some numbers of factors predicts held-out features best; 0 if a full covariance does."""

    def centers(told: Tensor) -> Callable[[int], Tensor]:
        return lambda rank: _single(features, told, rank, generator)

    return _best((0, *ranks), features, known, centers, generator)


def choose_shrink(features: Tensor, known: Tensor, components: int, rank: int = 0, *, generator: Generator) -> float:
    """Which of ``SHRINKS`` lets a joint of so many components predict held-out features best."""

    def centers(told: Tensor) -> Callable[[float], Tensor]:
        first = int(torch.randint(2**31, (), generator=generator))  # the same first centers for all
        return lambda shrink: _expected(features, told, components, rank, shrink, torch.Generator().manual_seed(first))

    return _best(SHRINKS, features, known, centers, generator)


def _best(
    choices: Sequence[_Choice],
    features: Tensor,
    known: Tensor,
    centers: Callable[[Tensor], Callable[[_Choice], Tensor]],
    generator: Generator,
) -> _Choice:
    """The choice that predicts held-out features best, the first of equals.

    ``centers(told)`` is called once for what is left, bool (B, D), and its answer for each choice: (B, D).
    """
    errors = dict.fromkeys(choices, 0.0)
    for _ in range(3 if int(known.sum()) < 4000 else 1):
        hidden = known & (torch.rand(known.shape, generator=generator).to(known.device) < 0.15)
        center_of = centers(known & ~hidden)
        for choice in errors:
            errors[choice] += float((features - center_of(choice))[hidden].square().clamp(max=25.0).sum())
    return min(errors, key=lambda choice: errors[choice])


def _expected(
    features: Tensor, known: Tensor, components: int, rank: int, shrink: float, generator: Generator
) -> Tensor:
    """(B, D): the features as a joint of so many components, quickly fitted, expects them."""
    joint = fit_joint(features, known, components, rank, shrink, steps=15, generator=generator)
    return condition(joint, features.double(), known).center


def _single(features: Tensor, known: Tensor, rank: int, generator: Generator) -> Tensor:
    """(B, D): the features as one Gaussian of so many factors (0 = of a full covariance) expects them."""
    if rank:
        return condition_factors(fit_factors(features, known, rank), features.double(), known).center
    return condition(fit_joint(features, known, 1, generator=generator), features.double(), known).center


def _independent(features: Tensor, known: Tensor) -> Joint:
    count = known.sum(0).clamp(min=1)
    mean = features.sum(0) / count
    variance = torch.where(known, (features - mean).square(), 0.0).sum(0) / count
    return Joint(features.new_zeros(1), mean.unsqueeze(0), torch.diag(variance.clamp(min=FLOOR)).unsqueeze(0))


def _improved(joint: Joint, features: Tensor, known: Tensor, steps: int, rank: int, shrink: float) -> Joint:
    """The joint after some steps of EM."""
    size, rows = features.shape[1], len(features)
    identity = torch.eye(size, dtype=features.dtype, device=features.device)
    overall = features.sum(0) / known.sum(0).clamp(min=1)
    unknown = ~known
    block = unknown.unsqueeze(-1) & unknown.unsqueeze(-2)
    for _ in range(steps):
        answer = per_component(joint, features, known)
        share = answer.log_density.softmax(1)
        amount = share.sum(0)
        filled = torch.where(known.unsqueeze(1), features.unsqueeze(1), answer.mean)  # (B, K, D)
        means = ((share.unsqueeze(-1) * filled).sum(0) + 0.5 * overall) / (amount + 0.5).unsqueeze(-1)
        scatters: list[Tensor] = []
        for k in range(len(amount)):
            centred = filled[:, k] - means[k]
            left = joint.covariances[k] - answer.explained[:, k].mT @ answer.explained[:, k]
            spread = torch.where(block, left, 0.0).flatten(1).T @ share[:, k]
            scatters.append((share[:, k, None] * centred).T @ centred + spread.view(size, size))
        scatter = torch.stack(scatters)
        common = scatter.sum(0) / rows + FLOOR * identity
        # One component alone needs no company, only enough to be positive definite.
        prior = PRIOR if len(amount) > 1 else max(1.0, size**2 / rows)
        target = torch.diag(common.diagonal())
        if len(amount) > 1:
            target = low_rank(common, rank) if rank else common
        covariances = (scatter + prior * target) / (amount + prior)[:, None, None] + 1e-6 * identity
        if shrink:
            covariances = (1 - shrink) * covariances + shrink * torch.diag(common.diagonal())
        weights = (amount + 1.0) / (rows + len(amount))
        joint = Joint(weights.log(), means, (covariances + covariances.mT) / 2)
    return joint


def _split(joint: Joint, features: Tensor, known: Tensor, components: int, generator: Generator) -> Joint:
    """K components from k-means (several starts, Lloyd's steps) on the rows filled in by a single Gaussian."""
    filled = condition(joint, features, known).center
    best: tuple[float, Tensor] | None = None
    for _ in range(4):
        centers = filled[_far_apart(filled, components, generator)]
        for _ in range(15):
            nearest = torch.cdist(filled, centers).argmin(1)
            member = torch.nn.functional.one_hot(nearest, components).to(filled)
            amount = member.sum(0).unsqueeze(1)
            centers = torch.where(amount > 0, member.T @ filled / amount.clamp(min=1), centers)
        distance = float(torch.cdist(filled, centers).amin(1).square().sum())
        if best is None or distance < best[0]:
            best = (distance, centers)
    centers = joint.means if best is None else best[1]
    member = torch.nn.functional.one_hot(torch.cdist(filled, centers).argmin(1), components).to(filled)
    away = filled - member @ centers
    common = away.T @ away / len(filled)
    common = common + 0.1 * torch.diag(common.diagonal()) + FLOOR * torch.eye(len(common)).to(common)
    weights = (member.sum(0) + 1.0) / (len(filled) + components)
    return Joint(weights.log(), centers, common.expand(components, -1, -1))


def _far_apart(rows: Tensor, count: int, generator: Generator) -> list[int]:
    """k-means++: each next center is drawn in proportion to its squared distance from those so far."""
    chosen = [int(torch.randint(len(rows), (), generator=generator))]
    for _ in range(1, count):
        distance = torch.cdist(rows, rows[chosen]).amin(1).square().cpu()
        if float(distance.sum()) == 0.0:
            distance = torch.ones_like(distance)
        chosen.append(int(torch.multinomial(distance, 1, generator=generator)))
    return chosen
