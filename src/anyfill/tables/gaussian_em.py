"""Joint Gaussians of a table with holes, by expectation-maximisation on the present cells (Dempster et al. 1977).

With f the D features of a row (``gaussians.Expansion``), o its known and u its unknown ones, and n rows:

**One Gaussian** (``fit_gaussian``), to the maximum of  log p(known) - ridge/2 (log |Sigma| + tr S0 Sigma^-1):

    E   f^ = E[f | f_o],  C = Cov[f | f_o]  for every row, under the present mu and Sigma
    M   mu = mean of f^,  Sigma = (sum (f^ - mu)(f^ - mu)' + sum C + ridge S0) / (n + ridge)

The prior (inverse-Wishart) is ``ridge`` rows more, in which the features are independent with the variances S0 of the
known values. It keeps few rows, many features and the collinear one-hot features well conditioned. With ridge = 0 this
is maximum likelihood, on complete data the sample mean and covariance. By default ridge = D^2 / n: nothing where rows
abound, a strong pull to independence where there are fewer rows than features. Nothing is random.

**A mixture** (``fit_joint``). For row i component k expects

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

**A few factors** (``fit_factors``). With m_i and C_i mean and covariance of row i's factors given its known features
and, for feature j, sums over the rows that know it,

    A_j = sum_i (m_i m_i' + C_i),    L_j = (A_j + prior I)^-1 sum_i (f_ij - mu_j) m_i

(and mu_j beside it: the factors get a constant), psi_j what is left of the squares. Then the factors are made standard
again, L <- L chol(mean of m m' + C): the same law, many fewer steps (parameter-expanded EM, Liu, Rubin and Wu 1998).
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from anyfill.checks import refuse, require_count, require_positive
from anyfill.interface.progress import check_cancelled
from anyfill.likelihoods import Categorical, Gaussian, Mixed
from anyfill.model import Model
from anyfill.networks import embed
from anyfill.questions.question import Factorization
from anyfill.rows import Rows
from anyfill.tables.conditioning import Group, answered, condition_each, grouped
from anyfill.tables.gaussian_joint import GaussianJoint, Moments, portions_of, sizes_of
from anyfill.tables.gaussians import Factors, Joint, latent_given

PRIOR = 30.0
"""Rows of the common shape that each of several components is drawn by."""
FLOOR = 1e-3
MIN_NOISE = 0.01
"""The least share of a feature's variance that is noise, where factors explain it."""
_FACTOR_PRIOR = 3.0


class Estimate(NamedTuple):
    """One step of EM: parameters, and how likely they make the data.

    Attributes:
        mean: (D,) float64.
        covariance: (D, D) float64.
        log_likelihood: nats of all known features.
        objective: the same with the prior's logarithm (less a constant): what never falls from step to step.
    """

    mean: Tensor
    covariance: Tensor
    log_likelihood: float
    objective: float


def em_steps(features: Tensor, known: Tensor, *, ridge: float) -> Iterator[Estimate]:
    """Estimates without end, beginning with independent features.

    Args:
        features: (B, D) float64, read where known.
        known: bool (B, D).
        ridge: weight of the prior in rows, 0 or more.
    """
    location, scale = _standard(features, known)
    z = torch.where(known, (features - location) / scale, 0.0)
    portions = list(portions_of(known))
    identity = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
    moments = Moments(torch.zeros_like(location), identity)
    units = float(torch.where(known, scale.log(), 0.0).sum())
    while True:
        away = torch.where(known, z - moments.mean, 0.0)
        filled = torch.empty_like(z)
        spread = torch.zeros_like(identity)
        log_likelihood = -units
        for portion in portions:
            check_cancelled()
            answer = moments.answer(portion, away[portion.rows])
            filled[portion.rows] = answer.shift
            spread += answer.total_covariance()
            log_likelihood += float(answer.log_density().sum())
        pull = 2 * moments.half_log_det + moments.precision.trace() if ridge else 0.0
        yield Estimate(
            location + scale * moments.mean,
            moments.covariance * scale * scale.unsqueeze(1),
            log_likelihood,
            log_likelihood - ridge / 2 * float(pull),
        )
        filled = torch.where(known, z, moments.mean + filled)
        mean = filled.mean(0)
        centred = filled - mean
        covariance = (centred.T @ centred + spread + ridge * identity) / (len(z) + ridge)
        moments = Moments(mean, (covariance + covariance.T) / 2)


def fit_gaussian(
    rows: Rows,
    kind: embed.Kind,
    *,
    outputs: int | None = None,
    ridge: float | None = None,
    iterations: int = 100,
    tolerance: float = 1e-3,
    max_rows: int = 3000,
) -> GaussianJoint:
    """The joint Gaussian of rows with missing values.

    Args:
        rows: the data; real variables roughly standardised, if some are constant (their scale is then taken for 1).
        kind: what a value is.
        outputs: parameters per variable; as few as ``kind`` needs by default.
        ridge: weight of the prior in rows; D^2 / rows by default. 0 needs more rows than features, none collinear.
        iterations: the most steps.
        tolerance: stop when the objective rises by less than this, in nats per row.
        max_rows: the most rows used, evenly spaced: with thousands the error of a Gaussian is its shape.
    """
    require_count("iterations", iterations)
    require_count("max_rows", max_rows)
    require_positive("tolerance", tolerance)
    sizes = sizes_of(kind, rows.variables)
    joint = GaussianJoint(kind, rows.variables, max(size or 2 for size in sizes) if outputs is None else outputs)
    filled = rows.present.any(1).nonzero().squeeze(1)  # a row without values says nothing
    if not len(filled):
        raise refuse("rows", expected="at least one row with a value", got=f"{len(rows)} without")
    if len(filled) > max_rows:
        filled = filled[torch.arange(max_rows, device=filled.device) * len(filled) // max_rows]
    used = rows.take(filled)
    ridge = joint.features**2 / len(used) if ridge is None else ridge
    if not ridge >= 0:
        raise refuse("ridge", expected="a number from 0 up", got=ridge)
    joint = joint.to(used.x.device)
    try:
        known = joint.expansion.spread(used.present)
        steps = islice(em_steps(joint.expand(used.x), known, ridge=ridge), iterations + 1)
        estimate = next(steps)
        for later in steps:
            rise, estimate = later.objective - estimate.objective, later
            if rise < tolerance * len(used):
                break
    except torch.linalg.LinAlgError as error:  # pyright: ignore[reportPrivateImportUsage]
        raise refuse("ridge", expected="more, as features are collinear or rows too few", got=ridge) from error
    return joint.set_moments(estimate.mean, estimate.covariance)


def gaussian_em_model(
    rows: Rows,
    sizes: Sequence[int],
    *,
    cycles: Sequence[embed.Cycle] = (),
    ridge: float | None = None,
    tolerance: float = 1e-3,
) -> Model:
    """The joint Gaussian of rows as a model, see ``gaussian_model``; ``cycles`` of numbers that go round."""
    kind = embed.Mixed(tuple(sizes), tuple(cycles))
    return gaussian_model(sizes, fit_gaussian(rows, kind, ridge=ridge, tolerance=tolerance))


def gaussian_model(sizes: Sequence[int], joint: GaussianJoint | None = None) -> Model:
    """Gaussians for real variables (sizes[j] = 0), categoricals for those with sizes[j] codes; standard normal without
    a ``joint``.

    It may be asked anything in any order. For tables of numbers alone all orders agree and answers are exact.
    """
    likelihood = Mixed(tuple(Categorical(size) if size else Gaussian() for size in sizes))
    if joint is None:
        joint = GaussianJoint(embed.Mixed(tuple(sizes)), len(sizes), likelihood.width)
    return Model(joint, likelihood, factorizations=(Factorization.DIRECT, Factorization.ANY_ORDER)).eval()


def _standard(features: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """(D,) each: mean and scale of the known values; n equal ones leave a scale of 1 / sqrt(n + 1)."""
    count = known.sum(0)
    location = torch.where(known, features, 0.0).sum(0) / count.clamp(min=1)
    variance = torch.where(known, (features - location).square(), 0.0).sum(0) / count.clamp(min=1)
    constant = variance <= 1e-20 * location.square()
    return location, torch.where(constant, 1.0 / (count + 1), variance).sqrt()


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


def fit_factors(
    features: Tensor, known: Tensor, rank: int, *, start: Factors | None = None, steps: int = 30
) -> Factors:
    """r factors (float64) of D features (B, D), read where known.

    Args:
        features: (B, D).
        known: bool (B, D).
        rank: r.
        start: factors to go on from.
        steps: of EM.
    """
    features = torch.where(known, features, 0.0).double()
    count = known.sum(0).clamp(min=1).double()
    overall = features.sum(0) / count
    spread = (torch.where(known, (features - overall).square(), 0.0).sum(0) / count).clamp(min=1e-3)
    factors = _principal(features, known, overall, spread, rank) if start is None else start
    ridge = torch.full((rank + 1,), _FACTOR_PRIOR).to(features)
    ridge[-1] = 1e-6
    squares = features.square().sum(0)
    seen = known.to(features.dtype)
    for _ in range(steps):
        check_cancelled()
        mean, root = latent_given(factors, features, known)
        moment = root.mT @ root + mean.unsqueeze(-1) * mean.unsqueeze(-2)  # (B, r, r)
        whole = torch.cat([mean, torch.ones_like(mean[:, :1])], 1)
        second = torch.cat([torch.cat([moment, mean.unsqueeze(-1)], -1), whole.unsqueeze(-2)], -2)
        own = (seen.T @ second.flatten(1)).unflatten(1, (rank + 1, rank + 1))  # (D, r + 1, r + 1)
        pull = features.T @ whole  # (D, r + 1)
        answer = torch.linalg.solve(own + torch.diag(ridge), pull)
        left = squares - 2 * (answer * pull).sum(1) + (answer.unsqueeze(1) @ own @ answer.unsqueeze(2)).flatten()
        noise = (left + _FACTOR_PRIOR * spread) / (count + _FACTOR_PRIOR)
        scale = torch.linalg.cholesky_ex(moment.mean(0)).L
        factors = Factors(answer[:, -1], answer[:, :-1] @ scale, torch.maximum(noise, MIN_NOISE * spread))
    return factors


def low_rank(covariance: Tensor, rank: int) -> Tensor:
    """The covariance (D, D) of r factors and noise that is near to this one: some steps of principal factors."""
    scale = covariance.diagonal().clamp(min=1e-12).sqrt()
    correlation = covariance / scale.outer(scale)
    noise = torch.full_like(scale, 0.5)
    loadings = torch.zeros_like(covariance[:, :rank])
    for _ in range(6):
        root = noise.sqrt()
        values, axes = torch.linalg.eigh(correlation / root.outer(root))
        loadings = root.unsqueeze(1) * axes[:, -rank:] * (values[-rank:] - 1.0).clamp(min=0.0).sqrt()
        noise = (1.0 - loadings.square().sum(1)).clamp(min=2 * MIN_NOISE)
    return (loadings @ loadings.T + torch.diag(noise)) * scale.outer(scale)


def _principal(features: Tensor, known: Tensor, overall: Tensor, spread: Tensor, rank: int) -> Factors:
    """The first principal axes of the rows, holes at their means."""
    scaled = torch.where(known, (features - overall) / spread.sqrt(), 0.0)
    values, axes = torch.linalg.eigh(scaled.T @ scaled / max(len(features), 1))
    loadings = axes[:, -rank:] * values[-rank:].clamp(min=1e-6).sqrt()
    noise = (1.0 - loadings.square().sum(1)).clamp(min=0.2)
    return Factors(overall, loadings * spread.sqrt().unsqueeze(1), noise * spread)
