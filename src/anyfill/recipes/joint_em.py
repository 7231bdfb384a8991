"""A mixture of joint Gaussians of a table with holes, by expectation-maximisation; how many, by held-out cells.

One step, with r_ik = p(k | known features of row i) and f^_ik, C_ik mean and covariance of the features given them:

    W        = sum_ik r_ik [ (f^_ik - mu_k)(f^_ik - mu_k)' + C_ik ] / rows        what all components have in common
    A_k      = (scatter_k + prior (W + floor I)) / (rows_k + prior)               each is drawn towards it
    Sigma_k  = (1 - shrink) A_k + shrink diag(W)                                  and all towards independence
    mu_k     = (sum_i r_ik f^_ik + mu / 2) / (rows_k + 1/2)

``prior`` rows of the common shape keep a component with few rows well conditioned (an inverse-Wishart prior); on small
tables that shrinkage is what makes more than one component pay. Where rows are few for the number of features the
common shape errs too: it fits its own rows and misleads about others. How much it counts is seen from held-out cells.
The first shares come from k-means on a single Gaussian's filled-in rows.
"""

from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Generator, Tensor

from anyfill.networks.factors import condition_factors
from anyfill.networks.joint import Joint, condition, per_component
from anyfill.recipes.factors_em import fit_factors, low_rank

PRIOR = 30.0
FLOOR = 1e-3
SHRINKS = (0.0, 0.05, 0.12, 0.25)
"""Shares of independence to choose from."""
_MOST_NUMBERS = 600_000
_STEPS = 25


def enough_rows(features: int) -> int:
    """How many rows a joint of so many features needs: more would cost much and change little."""
    return max(min(3000, _MOST_NUMBERS // features**2), 10 * features)


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
    sets = list(combinations(counts, most))
    errors = dict.fromkeys(sets, 0.0)
    for _ in range(3 if int(known.sum()) < 4000 else 1):
        hidden = known & (torch.rand(known.shape, generator=generator).to(known.device) < 0.15)
        told = known & ~hidden
        one = _single(features, told, rank, generator)[hidden]
        found: dict[int, Tensor] = {}
        for count in counts:
            joint = fit_joint(features, told, count, rank, shrink, steps=15, generator=generator)
            found[count] = condition(joint, features.double(), told).center[hidden]
        for some in sets:
            center = (one + sum(found[count] for count in some)) / (1 + most)
            errors[some] += float((features[hidden] - center).square().clamp(max=25.0).sum())
    return min(sets, key=lambda some: errors[some])


def choose_rank(features: Tensor, known: Tensor, ranks: Sequence[int], *, generator: Generator) -> int:
    """Which of some numbers of factors predicts held-out features best; 0 if a full covariance does."""
    errors = dict.fromkeys((0, *ranks), 0.0)
    for _ in range(3 if int(known.sum()) < 4000 else 1):
        hidden = known & (torch.rand(known.shape, generator=generator).to(known.device) < 0.15)
        for rank in errors:
            center = _single(features, known & ~hidden, rank, generator)
            errors[rank] += float((features - center)[hidden].square().clamp(max=25.0).sum())
    return min(errors, key=lambda rank: errors[rank])


def choose_shrink(features: Tensor, known: Tensor, components: int, rank: int = 0, *, generator: Generator) -> float:
    """Which of ``SHRINKS`` lets a joint of so many components predict held-out features best."""
    errors = dict.fromkeys(SHRINKS, 0.0)
    for _ in range(3 if int(known.sum()) < 4000 else 1):
        hidden = known & (torch.rand(known.shape, generator=generator).to(known.device) < 0.15)
        told = known & ~hidden
        first = int(torch.randint(2**31, (), generator=generator))
        for shrink in errors:
            same = torch.Generator().manual_seed(first)  # the same first centers for all
            joint = fit_joint(features, told, components, rank, shrink, steps=15, generator=same)
            center = condition(joint, features.double(), told).center
            errors[shrink] += float((features - center)[hidden].square().clamp(max=25.0).sum())
    return min(errors, key=lambda shrink: errors[shrink])


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
