"""The joint Gaussian of a table with holes, by expectation-maximisation on the present cells (Dempster et al. 1977).

With f the D features of a row (``gaussians.Expansion``), o its known ones, and n rows, to the maximum of
log p(known) - ridge/2 (log |Sigma| + tr S0 Sigma^-1):

    E   f^ = E[f | f_o],  C = Cov[f | f_o]  for every row, under the present mu and Sigma
    M   mu = mean of f^,  Sigma = (sum (f^ - mu)(f^ - mu)' + sum C + ridge S0) / (n + ridge)

The prior (inverse-Wishart) is ``ridge`` rows more, in which the features are independent with the variances S0 of the
known values. It keeps few rows, many features and the collinear one-hot features well conditioned. With ridge = 0 this
is maximum likelihood, on complete data the sample mean and covariance. By default ridge = D^2 / n: nothing where rows
abound, a strong pull to independence where there are fewer rows than features. Nothing is random.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count, require_positive
from anyfill.interface.progress import check_cancelled
from anyfill.likelihoods import Categorical, Gaussian, Mixed
from anyfill.model import Model
from anyfill.networks import embed
from anyfill.questions.question import Factorization
from anyfill.rows import Rows
from anyfill.tables.gaussian_joint import GaussianJoint, Moments, portions_of, sizes_of


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
