"""A joint Gaussian of a table with holes, by expectation-maximisation (Dempster, Laird & Rubin 1977).

With f the D features of a row (see ``networks.gaussian``) and k its known ones, one step is

    E   f^ = E[f | f_k],  C = Cov[f | f_k]  for every row, under the present mu and Sigma
    M   mu = mean of f^,  Sigma = (sum (f^ - mu)(f^ - mu)' + sum C + ridge S0) / (rows + ridge)

It never lowers  log p(known) - ridge/2 (log |Sigma| + tr S0 Sigma^-1). The second term is an inverse-Wishart prior:
``ridge`` rows more, in which the features are independent with the variances S0 of the known values. It keeps few
rows, many features and the collinear one-hot features well conditioned. With ridge = 0 this is maximum likelihood, on
complete data the sample mean and covariance. By default ridge = D^2 / rows: nothing where rows abound, a strong pull to
independence where there are fewer rows than features.

Nothing is random. Of more than ``most_rows`` rows, evenly spaced ones are used: with thousands of rows the error of a
Gaussian is its shape, not its parameters.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count, require_positive
from anyfill.likelihoods import Categorical, Gaussian, Mixed
from anyfill.model import Model
from anyfill.networks import embed
from anyfill.questions.question import Factorization
from anyfill.rows import Rows
from anyfill.tables.gaussian import GaussianJoint, sizes_of
from anyfill.tables.gaussian_algebra import Moments, portions_of


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
    most_rows: int = 3000,
) -> GaussianJoint:
    """The joint Gaussian of rows with missing values.

    Args:
        rows: the data; real variables roughly standardised, if some are constant (their scale is then taken for 1).
        kind: what a value is.
        outputs: parameters per variable; as few as ``kind`` needs by default.
        ridge: weight of the prior in rows; D^2 / rows by default. 0 needs more rows than features, none collinear.
        iterations: the most steps.
        tolerance: stop when the objective rises by less than this, in nats per row.
        most_rows: the most rows used.
    """
    require_count("iterations", iterations)
    require_count("most_rows", most_rows)
    require_positive("tolerance", tolerance)
    sizes = sizes_of(kind, rows.variables)
    joint = GaussianJoint(kind, rows.variables, max(size or 2 for size in sizes) if outputs is None else outputs)
    told = rows.present.any(1).nonzero().squeeze(1)  # a row without values says nothing
    if not len(told):
        raise refuse("rows", expected="at least one row with a value", got=f"{len(rows)} without")
    if len(told) > most_rows:
        told = told[torch.arange(most_rows, device=told.device) * len(told) // most_rows]
    used = rows.take(told)
    ridge = joint.features**2 / len(used) if ridge is None else ridge
    if not ridge >= 0:
        raise refuse("ridge", expected="a number from 0 up", got=ridge)
    joint = joint.to(used.x.device)
    try:
        steps = islice(em_steps(joint.expand(used.x), joint.expanded_known(used.present), ridge=ridge), iterations + 1)
        estimate = next(steps)
        for later in steps:
            rise, estimate = later.objective - estimate.objective, later
            if rise < tolerance * len(used):
                break
    except torch.linalg.LinAlgError as error:  # pyright: ignore[reportPrivateImportUsage]
        raise refuse("ridge", expected="more, as features are collinear or rows too few", got=ridge) from error
    return joint.set_moments(estimate.mean, estimate.covariance)


def gaussian_em_model(rows: Rows, sizes: Sequence[int], *, ridge: float | None = None) -> Model:
    """A trained model: Gaussians for real variables (sizes[j] = 0), categoricals for those with sizes[j] codes.

    It may be asked anything in any order. For tables of numbers alone all orders agree and answers are exact.
    """
    likelihood = Mixed(tuple(Categorical(size) if size else Gaussian() for size in sizes))
    kind = embed.Mixed(tuple(sizes))
    joint = fit_gaussian(rows, kind, outputs=likelihood.width, ridge=ridge)
    return Model(joint, likelihood, factorizations=(Factorization.DIRECT, Factorization.ANY_ORDER)).eval()


def _standard(features: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """(D,) each: mean and scale of the known values; n equal ones leave a scale of 1 / sqrt(n + 1)."""
    count = known.sum(0)
    location = torch.where(known, features, 0.0).sum(0) / count.clamp(min=1)
    variance = torch.where(known, (features - location).square(), 0.0).sum(0) / count.clamp(min=1)
    constant = variance <= 1e-20 * location.square()
    return location, torch.where(constant, 1.0 / (count + 1), variance).sqrt()
