"""Scores of answers to hidden cells. Everything is numpy and takes one column's hidden cells, or one row's, at a time.

**Rounding cells.** Measured values repeat, so a density can be made as high as one likes on them. Every distribution is
therefore judged by the probability it gives to the value's own rounding cell,

    NLL = - log [ P(x - r/2 < X <= x + r/2) / (r / sd) ],      r = the column's resolution,

which is a log-density in standardised units spread over the cell, the same for every method, and bounded by
log(r / sd) from below. r is the smallest gap between different values of the full table, at least 1e-4 sd.

**Coverage** has two definitions. ``closed``: the value lies in the closed interval; a column with few levels must
over-cover. ``tied``: the randomised PIT, uniform between F(x - r/2) and F(x + r/2), lies in ((1 - level)/2,
(1 + level)/2]; its expectation is computed, not drawn, and it is ``level`` for any calibrated answer, ties or not.

**CRPS and energy score** from m draws use the fair estimator (pairs i != j only), unbiased for any m > 1. For codes the
distance is 1 between different levels: the CRPS is then half the Brier score. In the energy score of a row's holes the
squared distance adds up (difference / sd)^2 of numbers and 1 for each code that differs. A point answer is one draw.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.special import log_ndtr, logsumexp, ndtr

Floats = NDArray[np.float64]
IMPOSSIBLE = math.log(1e-9)
"""The log-probability that stands in where a method said 0."""


def resolution(values: Floats, sd: float) -> float:
    """r of a column from its present values (n,)."""
    gaps = np.diff(np.unique(values))
    return max(float(gaps.min()) if len(gaps) else 0.0, 1e-4 * sd)


def log_between(a: Floats, b: Floats) -> Floats:
    """log P(a < Z <= b) of a standard normal, elementwise, a <= b; accurate in both tails, -inf where a = b."""
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        upper, lower = log_ndtr(b), log_ndtr(a)
        return np.where(upper == -np.inf, -np.inf, upper + np.log1p(-np.exp(np.minimum(lower - upper, 0.0))))


def mixture_log_mass(log_weights: Floats, centers: Floats, scales: Floats, a: Floats, b: Floats) -> Floats:
    """log P(a < X <= b), (n,), of mixtures (n, K) of Gaussians."""
    return logsumexp(
        log_weights + log_between((a[:, None] - centers) / scales, (b[:, None] - centers) / scales), axis=1
    )


def mixture_cdf(log_weights: Floats, centers: Floats, scales: Floats, x: Floats) -> Floats:
    """P(X <= x), (n,), of mixtures (n, K)."""
    return np.clip((np.exp(log_weights) * ndtr((x[:, None] - centers) / scales)).sum(1), 0.0, 1.0)


def negative_log(log_mass: Floats, width: float) -> tuple[Floats, int]:
    """- log(mass / width) of each cell, and how many were called impossible (they count as mass 1e-9)."""
    impossible = ~(log_mass > -math.inf)
    return math.log(width) - np.where(impossible, IMPOSSIBLE, log_mass), int(impossible.sum())


def crps_draws(draws: Floats, x: Floats) -> Floats:
    """Fair CRPS (n,) of draws (m, n) at x (n,); |draw - x| for m = 1."""
    m = len(draws)
    error = np.abs(draws - x).mean(0)
    if m == 1:
        return error
    # sum_{i<j} |d_i - d_j| = sum_i (2 i - m + 1) d_(i), with draws sorted and i from 0
    weight = 2.0 * np.arange(m) - m + 1
    return error - (weight[:, None] * np.sort(draws, 0)).sum(0) / (m * (m - 1))


def crps_gaussian(center: Floats, scale: Floats, x: Floats) -> Floats:
    """CRPS (n,) of Gaussians: s [ z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi) ]."""
    z = (x - center) / scale
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return scale * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / math.sqrt(math.pi))


def crps_codes(draws: NDArray[np.int64], code: NDArray[np.int64]) -> Floats:
    """Fair half Brier score (n,) of drawn codes (m, n): P(X != x) - P(X != X') / 2; 0 or 1 for m = 1."""
    m = len(draws)
    wrong = (draws != code).mean(0)
    if m == 1:
        return wrong
    ordered = np.sort(draws, 0)
    # pairs of equal draws, by the lengths of runs: each draw equals so many before it in its run
    place = np.zeros(draws.shape)
    for i in range(1, m):
        place[i] = np.where(ordered[i] == ordered[i - 1], place[i - 1] + 1, 0)
    same = place.sum(0) / (m * (m - 1) / 2)
    return wrong - (1 - same) / 2


def crps_chances(chances: Floats, code: NDArray[np.int64]) -> Floats:
    """Half the Brier score (n,) of probabilities (n, K): (1 - 2 p_x + sum p^2) / 2; code -1 = a level never seen."""
    own = np.where(code >= 0, np.take_along_axis(chances, np.maximum(code, 0)[:, None], 1)[:, 0], 0.0)
    return (1 - 2 * own + (chances**2).sum(1)) / 2


def energy_row(numbers: Floats, codes: NDArray[np.int64], x: Floats, code: NDArray[np.int64]) -> float:
    """Fair energy score of one row's holes.

    Args:
        numbers: draws (m, p) of its p hidden numbers, over their sd.
        codes: draws (m, q) of its q hidden codes.
        x: the true numbers (p,), over their sd.
        code: the true codes (q,).
    """
    m = len(numbers)
    error = np.sqrt(((numbers - x) ** 2).sum(1) + (codes != code).sum(1)).mean()
    if m == 1:
        return float(error)
    square = np.zeros(m * (m - 1) // 2)
    if numbers.shape[1]:
        square += pdist(numbers, "sqeuclidean")
    if codes.shape[1]:
        square += codes.shape[1] * pdist(codes, "hamming")
    return float(error - np.sqrt(square).mean() / 2)


def tied_coverage(below: Floats, at: Floats, level: float = 0.9) -> Floats:
    """(n,): the chance that a uniform on (below, at] lies in the central ``level``; an empty cell counts as a point."""
    low, high = (1 - level) / 2, (1 + level) / 2
    width = at - below
    shared = np.clip(np.minimum(at, high) - np.maximum(below, low), 0.0, None)
    point = ((at > low) & (at <= high)).astype(np.float64)
    return np.where(width > 1e-12, shared / np.maximum(width, 1e-12), point)


def draw_cells(draws: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """F(low) and F(high) (n,) for ``tied_coverage``, from draws (m, n).

    x has one of m + 1 places among the draws, equally likely if it is one of them; draws in the same cell are ties.
    """
    m = len(draws)
    return (draws <= low).sum(0) / (m + 1), ((draws <= high).sum(0) + 1) / (m + 1)


def draw_interval(draws: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
    """Ends (n,) of central intervals of draws (m, n): the order statistics that cover ``level`` of a further draw."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return low, high
