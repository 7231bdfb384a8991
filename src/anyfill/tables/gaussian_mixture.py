"""A mixture of Gaussians of a table with holes, by expectation-maximisation on the present cells.

With f the D features of a row (``gaussians.Expansion``), o its known and u its unknown ones, for row i of n component k
expects

    r_ik  ∝  w_k N(f_i,o; mu_k,o, Sigma_k,oo)                                     p(k | f_i,o), of sum 1 over k
    f^_ik =  f_i at o,   mu_k,u + Sigma_k,uo Sigma_k,oo^-1 (f_i,o - mu_k,o) at u
    C_ik  =  Sigma_k,uu - Sigma_k,uo Sigma_k,oo^-1 Sigma_k,ou at u u,   0 elsewhere

and with n_k = sum_i r_ik, and m the mean of every feature's known values, the next joint is

    w_k      = (n_k + 1) / (n + K)
    mu_k     = (sum_i r_ik f^_ik + m / 2) / (n_k + 1/2)
    S_k      = sum_i r_ik [ (f^_ik - mu_k)(f^_ik - mu_k)' + C_ik ]                with the new mu_k
    W        = sum_k S_k / n + floor I                                            what all components have in common
    A_k      = (S_k + prior T) / (n_k + prior) + 1e-6 I                           each is drawn towards its like T
    Sigma_k  = (1 - shrink) A_k + shrink diag(W)                                  and all towards independence

T is W, or the covariance of a few factors near to W where ``rank`` says so: ``prior`` rows of the common shape keep a
component with few rows well conditioned, and on small tables that shrinkage is what makes more than one component pay.
One component alone has no like: T = diag(W), and the prior counts max(1, D^2 / n) rows, enough to be positive definite.
Where rows are few for the number of features the common shape errs too: it fits its own rows and misleads about others;
hence ``shrink``. One component begins with independent features; several with rows filled in by a single Gaussian,
k-means of them (the best of four starts by k-means++), and the scatter around the centers as every covariance.
"""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from anyfill.interface.progress import check_cancelled
from anyfill.tables.conditioning import Group, answered, condition_each, grouped
from anyfill.tables.factor_analysis import low_rank
from anyfill.tables.gaussians import Joint

PRIOR = 30.0
"""Rows of the common shape that each of several components is drawn by."""
FLOOR = 1e-3


def fit_joint(
    features: Tensor,
    known: Tensor,
    components: int,
    rank: int = 0,
    shrink: float = 0.0,
    *,
    start: Joint | None = None,
    first: Joint | None = None,
    steps: int = 25,
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
        first: one Gaussian of the same features, that fills in rows for the first centers; fitted if not given.
        steps: of EM.
        generator: of the first centers.
    """
    features = torch.where(known, features, 0.0).double()
    joint = start
    if joint is None:
        joint = _independent(features, known)
        if components > 1:
            first = _improved(joint, features, known, steps, 0, shrink) if first is None else first
            joint = _split(first, features, known, components, generator)
    return _improved(joint, features, known, steps, rank, shrink)


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
    groups = list(grouped(known, len(joint.means)))
    for _ in range(steps):
        share, filled, spread = _answered(joint, features, known, groups)
        amount = share.sum(0)
        means = ((share.unsqueeze(-1) * filled).sum(0) + 0.5 * overall) / (amount + 0.5).unsqueeze(-1)
        centred = (filled - means).transpose(0, 1)  # (K, B, D)
        scatter = (share.T.unsqueeze(-1) * centred).mT @ centred + spread
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


def _answered(joint: Joint, features: Tensor, known: Tensor, groups: Sequence[Group]) -> tuple[Tensor, Tensor, Tensor]:
    """The step E: shares (B, K), rows filled in by each component (B, K, D), and what is left open, summed (K, D, D):

    sum_i r_ik C_ik = Sigma_k * (U' R_k U) - sum_i r_ik V_ik' V_ik,    U (B, D) = 1 where not known, V = 0 elsewhere
    """
    components = len(joint.means)
    share = features.new_empty(len(features), components)
    filled = features.new_empty(len(features), components, features.shape[1])
    explained = torch.zeros_like(joint.covariances)
    for group in groups:
        answer = answered(joint, features, group, unknown_only=True)
        own = answer.log_density.softmax(0)  # (K, b)
        share[group.rows] = own.T
        seen = torch.where(group.known, features[group.rows], answer.mean)  # (K, b, D)
        filled[group.rows] = seen.transpose(0, 1)
        part = (answer.explained * own.sqrt()[..., None, None]).flatten(1, 2)  # (K, b a, D)
        explained += part.mT @ part
    unknown = (~known).to(features.dtype)
    pairs = (share.T.unsqueeze(-1) * unknown).mT @ unknown
    return share, filled, joint.covariances * pairs - explained


def _split(joint: Joint, features: Tensor, known: Tensor, components: int, generator: Generator) -> Joint:
    """K components from k-means (several starts, Lloyd's steps) on the rows filled in by a single Gaussian."""
    filled = condition_each(joint, features, known).center

    def clustered() -> tuple[float, Tensor]:
        centers = filled[_far_apart(filled, components, generator)]
        for _ in range(15):
            check_cancelled()
            member = one_hot(torch.cdist(filled, centers).argmin(1), components).to(filled)
            amount = member.sum(0).unsqueeze(1)
            centers = torch.where(amount > 0, member.T @ filled / amount.clamp(min=1), centers)
        return float(torch.cdist(filled, centers).amin(1).square().sum()), centers

    _, centers = min((clustered() for _ in range(4)), key=lambda found: found[0])
    member = one_hot(torch.cdist(filled, centers).argmin(1), components).to(filled)
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
