"""The claims of SUNMASK's Table 2, tested by the grades of three sittings (``table2``), and validation losses compared.

A claim is a difference of medians (of the best tenth less real Bach's median, where it is of the best), with a 95 %
percentile bootstrap that resamples pieces of both sides; "confirmed" means an interval on the claim's side of 0,
"refuted" one on the other side. Rows that were not drawn leave a claim out.

    CLAIMS   of the first sitting, whose trainings had unequal seconds; both sides have the same number of rounds
    EQUAL    of the second, where SMc, its two ablations, SD and SMt were trained for the same seconds, one after
             another; rows are named by their rounds
    THIRD    of the third, where SMc, SD, SMt and Coconet were trained for the same seconds: the paper's rounds (SMc and
             SMc-T 1,024, A, AT and ATN 512, Coconet its own 512), and equal rounds on both sides where the paper has
             others

Validation losses are compared window by window, under the same questions, by means of differences (``losses``).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Claim = tuple[str, str, int]
"""A row, another row, and the sign of the first less the second that the claim says."""
CLAIMS: dict[str, Claim] = {
    "SMc-T beats SMt-T": ("SMc T", "SMt T", -1),
    "SMc-T beats SMt-T, fewer rounds": ("SMc T-half", "SMt T-half", -1),
    "SMc beats SMt, both plain": ("SMc plain-half", "SMt plain-half", -1),
    "SMc-T beats SMt-T, trained as long": ("SMc T-half", "SMt long T", -1),
    "T helps SMc": ("SMc T-half", "SMc plain-half", -1),
    "T makes SMt worse": ("SMt T-half", "SMt plain-half", +1),
    "A makes SMc worse": ("SMc A-half", "SMc plain-half", +1),
    "A makes SMc-T worse": ("SMc AT-half", "SMc T-half", +1),
    "N makes SMc-AT worse": ("SMc ATN-half", "SMc AT-half", +1),
    "SMc-T beats SD-T": ("SMc T-half", "SD T", -1),
    "SMc-T beats SD-T, trained as long": ("SMc short T", "SD T", -1),
    "T helps SD": ("SD T", "SD plain", -1),
    "SMc-T beats Coconet": ("SMc T", "Coconet own", -1),
    "more rounds help SMc-T": ("SMc T", "SMc T-half", -1),
    "more rounds help SMt-T": ("SMt T", "SMt T-half", -1),
    "redrawing trusted cells helps": ("SMc short T", "SMc, given kept, T", -1),
    "the pitch axis helps": ("SMc short T", "SMc, pitch in channels, T", -1),
}
EQUAL: dict[str, Claim] = {
    "SMc-T beats SMt-T, 1,024 rounds": ("SMc T-1024", "SMt T-1024", -1),
    "SMc-T beats SMt-T, 128 rounds": ("SMc T-128", "SMt T-128", -1),
    "SMc beats SMt, both plain, 1,024 rounds": ("SMc plain-1024", "SMt plain-1024", -1),
    "SMc beats SMt, both plain, 128 rounds": ("SMc plain-128", "SMt plain-128", -1),
    "T helps SMc, 1,024 rounds": ("SMc T-1024", "SMc plain-1024", -1),
    "T helps SMc, 512 rounds": ("SMc T-512", "SMc plain-512", -1),
    "T helps SMc, 128 rounds": ("SMc T-128", "SMc plain-128", -1),
    "T makes SMt worse, 1,024 rounds": ("SMt T-1024", "SMt plain-1024", +1),
    "T makes SMt worse, 128 rounds": ("SMt T-128", "SMt plain-128", +1),
    "A makes SMc worse, 512 rounds": ("SMc A-512", "SMc plain-512", +1),
    "A makes SMc worse, 512 rounds against 1,024": ("SMc A-512", "SMc plain-1024", +1),
    "A makes SMc-T worse, 512 rounds": ("SMc AT-512", "SMc T-512", +1),
    "A makes SMc-T worse, 512 rounds against 1,024": ("SMc AT-512", "SMc T-1024", +1),
    "N makes SMc-AT worse, 512 rounds": ("SMc ATN-512", "SMc AT-512", +1),
    "SMc-T beats SD-T, 128 rounds": ("SMc T-128", "SD T-128", -1),
    "SMt-T beats SD-T, 128 rounds": ("SMt T-128", "SD T-128", -1),
    "T helps SD, 128 rounds": ("SD T-128", "SD plain-128", -1),
    "more rounds help SMc-T, 1,024 against 128": ("SMc T-1024", "SMc T-128", -1),
    "more rounds help SMc-T, 1,024 against 512": ("SMc T-1024", "SMc T-512", -1),
    "more rounds help SMc, 1,024 against 128": ("SMc plain-1024", "SMc plain-128", -1),
    "more rounds help SMt-T, 1,024 against 128": ("SMt T-1024", "SMt T-128", -1),
    "redrawing trusted cells helps, 128 rounds": ("SMc T-128", "SMc, given kept, T-128", -1),
    "the pitch axis helps, 128 rounds": ("SMc T-128", "SMc, pitch in channels, T-128", -1),
}
THIRD: dict[str, Claim] = {
    "SMc-T beats SMt-T, 1,024 rounds": ("SMc T-1024", "SMt T-1024", -1),
    "SMc-T beats SMt-T, 512 rounds": ("SMc T-512", "SMt T-512", -1),
    "SMc-T beats SMt-T, 1,024 rounds against 512": ("SMc T-1024", "SMt T-512", -1),
    "SMc-T beats SMt-T, 128 rounds": ("SMc T-128", "SMt T-128", -1),
    "SMc beats SMt, both plain, 1,024 rounds": ("SMc plain-1024", "SMt plain-1024", -1),
    "T helps SMc, 1,024 rounds": ("SMc T-1024", "SMc plain-1024", -1),
    "T helps SMc, 512 rounds": ("SMc T-512", "SMc plain-512", -1),
    "T makes SMt worse, 1,024 rounds": ("SMt T-1024", "SMt plain-1024", +1),
    "A makes SMc worse, 512 rounds against 1,024": ("SMc A-512", "SMc plain-1024", +1),
    "A makes SMc worse, 512 rounds": ("SMc A-512", "SMc plain-512", +1),
    "A makes SMc-T worse, 512 rounds against 1,024": ("SMc AT-512", "SMc T-1024", +1),
    "A makes SMc-T worse, 512 rounds": ("SMc AT-512", "SMc T-512", +1),
    "N makes SMc-AT worse, 512 rounds": ("SMc ATN-512", "SMc AT-512", +1),
    "SMc-T beats SD-T, 1,024 rounds against 512": ("SMc T-1024", "SD T-512", -1),
    "SMc-T beats SD-T, 512 rounds": ("SMc T-512", "SD T-512", -1),
    "SMc-T beats SD-T, 128 rounds": ("SMc T-128", "SD T-128", -1),
    "SMt-T beats SD-T, 512 rounds": ("SMt T-512", "SD T-512", -1),
    "T helps SD, 512 rounds": ("SD T-512", "SD plain-512", -1),
    "SMc-T beats Coconet, 1,024 rounds against its own 512": ("SMc T-1024", "Coconet own-512", -1),
    "SMt-T beats Coconet, 512 rounds": ("SMt T-512", "Coconet own-512", -1),
    "Coconet beats SD-T, 512 rounds": ("Coconet own-512", "SD T-512", -1),
    "more rounds help SMc-T, 1,024 against 512": ("SMc T-1024", "SMc T-512", -1),
    "more rounds help SMc-T, 1,024 against 128": ("SMc T-1024", "SMc T-128", -1),
    "more rounds help SMc, 1,024 against 512": ("SMc plain-1024", "SMc plain-512", -1),
    "more rounds help SMt-T, 1,024 against 128": ("SMt T-1024", "SMt T-128", -1),
    "more rounds help SD-T, 512 against 128": ("SD T-512", "SD T-128", -1),
}
BEST = ("SMc T", "SMt T", "SMt T-half")
"""Rows of the first sitting whose best tenth is compared with real Bach."""
BEST_THIRD = ("SMc T-1024", "SMt T-1024", "SD T-512", "Coconet own-512")
BEST_EQUAL = ("SMc T-1024", "SMt T-1024", "SMc T-128", "SMt T-128")


def best_tenth(overall: NDArray[np.float64]) -> float:
    """The median of the best tenth of grades, at least one."""
    return float(np.median(np.sort(overall)[: max(1, round(len(overall) / 10))]))


def interval(
    one: NDArray[np.float64],
    other: NDArray[np.float64],
    statistic: Callable[[NDArray[np.float64]], float],
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> dict[str, float]:
    """statistic(one) - median(other), and its 95 % percentile bootstrap over pieces of both."""
    random = np.random.default_rng(seed)

    def again(grades: NDArray[np.float64]) -> NDArray[np.float64]:
        return grades[random.integers(len(grades), size=len(grades))]

    drawn = [statistic(again(one)) - float(np.median(again(other))) for _ in range(resamples)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {"difference": statistic(one) - float(np.median(other)), "low": float(low), "high": float(high)}


def claims(
    grades: Mapping[str, NDArray[np.float64]],
    listed: Mapping[str, Claim] = CLAIMS,
    best: Sequence[str] = BEST,
) -> dict[str, dict[str, Any]]:
    """What is claimed, by the grades of each row, as far as rows are there."""

    def median(values: NDArray[np.float64]) -> float:
        return float(np.median(values))

    found: dict[str, dict[str, Any]] = {}
    for claim, (row, other, sign) in listed.items():
        if row in grades and other in grades:
            found[claim] = _judged(interval(grades[row], grades[other], median), sign)
    for row in best:
        if row in grades and "real Bach" in grades:
            near = interval(grades[row], grades["real Bach"], best_tenth)
            found[f"the best tenth of {row} is no worse than real Bach's median"] = _judged(near, -1)
    return found


def _judged(found: dict[str, float], sign: int) -> dict[str, Any]:
    low, high = sorted((sign * found["low"], sign * found["high"]))
    verdict = "confirmed" if low > 0 else "refuted" if high < 0 else "not decided"
    return {**found, "verdict": verdict}


def losses(
    runs: Mapping[str, Any], names: Mapping[str, str], measure: str = "nats", *, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Validation loss of SMc less that of each other model of a sitting, paired by windows.

    Args:
        runs: records by model.
        names: how each is called.
        measure: "nats" (equation 2), or "nats_kept" (given values kept in both steps).
        seed: of the bootstrap.
    """
    random = np.random.default_rng(seed)
    nats = {name: np.array(run[measure]) for name, run in runs.items() if run.get(measure)}
    found: dict[str, dict[str, float]] = {}
    for name in ("smc", "smc_short"):
        for other in [other for other in nats if name in nats and other not in ("smc", name)]:
            gap = nats[name] - nats[other]
            means = gap[random.integers(len(gap), size=(4000, len(gap)))].mean(1)
            low, high = np.quantile(means, [0.025, 0.975])
            pair = f"{names[name]} {nats[name].mean():.4f} less {names[other].rstrip(',')} {nats[other].mean():.4f}"
            found[pair] = {
                "difference": float(gap.mean()), "low": float(low), "high": float(high), "windows": len(gap),
            }  # fmt: skip
    return found
