"""Rubin's rules (``TableModel.pool``): an estimate and its uncertainty from the same analysis of m filled tables.

With estimates q_i and their variances u_i, i = 1 … m (Rubin 1987, section 3.1; Barnard & Rubin 1999),

    estimate  q = mean q_i             within  W = mean u_i         between  B = sum (q_i - q)^2 / (m - 1)
    total     T = W + (1 + 1/m) B      share of the total that is due to holes  λ = (1 + 1/m) B / T
    degrees of freedom  v = (m - 1) / λ²; with v0 of the complete table also  v' = (v0 + 1) / (v0 + 3) · v0 (1 - λ),
    then 1 / (1/v + 1/v')

The rules assume draws from a posterior that knows its own uncertainty. Draws of one fitted model leave out how far the
model itself may be off, so B, and with it T, is a little too small.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from anyfill.checks import refuse
from anyfill.tables.columns import Floats
from anyfill.tables.inputs import require_level


@dataclass(frozen=True, slots=True, eq=False)
class PooledEstimate:
    """What m filled tables say together; every field has the shape of one estimate.

    Attributes:
        estimate: q.
        variance: T, of the estimate.
        within, between: W and B.
        missing_share: λ, the share of the variance that is due to the holes.
        degrees: degrees of freedom; infinite where the estimates agree and no ``complete_degrees`` was named.
        tables: m.
    """

    estimate: Floats
    variance: Floats
    within: Floats
    between: Floats
    missing_share: Floats
    degrees: Floats
    tables: int

    @property
    def stderr(self) -> Floats:
        """The square root of the variance."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """The central interval of Student's t around the estimate."""
        require_level(level)
        # Beyond 10^10 degrees of freedom t is normal to every digit, and stdtrit takes no infinity.
        reach = stdtrit(np.minimum(self.degrees, 1e10), (1 + level) / 2) * self.stderr
        return self.estimate - reach, self.estimate + reach

    def __str__(self) -> str:
        low, high = self.interval()
        rows = zip(*(np.ravel(part) for part in (self.estimate, self.stderr, low, high, self.missing_share)))
        form = "{:.6g} ± {:.3g} (95 %: {:.6g} to {:.6g}; {:.0%} of the variance from holes)"
        return "\n".join(form.format(*row) for row in rows)


def pool(estimates: ArrayLike, variances: ArrayLike, *, complete_degrees: float | None = None) -> PooledEstimate:
    """Rubin's rules: pool estimates (m, ...) with variances (m, ...) of their sampling errors, m >= 2.

    Args:
        estimates: of the same quantity (or quantities), one from each filled table.
        variances: squared standard errors of these estimates, same shape.
        complete_degrees: degrees of freedom of the same analysis without holes (rows - parameters); None = many.
    """
    q, u = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if q.shape != u.shape or q.ndim == 0 or len(q) < 2:
        raise refuse("estimates and variances", expected="equal shapes (m, ...), m >= 2", got=f"{q.shape}, {u.shape}")
    if not np.isfinite(q).all() or not (np.isfinite(u).all() and (u >= 0).all()):
        raise refuse("estimates and variances", expected="finite numbers, no negative variance", got="others")
    if complete_degrees is not None and not complete_degrees > 0:
        raise refuse("complete_degrees", expected="a number above 0", got=repr(complete_degrees))
    m = len(q)
    within, between = u.mean(0), q.var(0, ddof=1)
    extra = (1 + 1 / m) * between
    total = within + extra
    share = _ratio(extra, total)
    with np.errstate(divide="ignore", over="ignore"):
        degrees = np.asarray((m - 1) / share**2)
        if complete_degrees is not None:
            observed = (complete_degrees + 1) / (complete_degrees + 3) * complete_degrees * (1 - share)
            degrees = np.asarray(1 / (1 / degrees + 1 / observed))
    return PooledEstimate(q.mean(0), total, within, between, share, degrees, m)


def _ratio(part: Any, whole: Any) -> Floats:
    """part / whole, 0 where both are 0."""
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > 0)
