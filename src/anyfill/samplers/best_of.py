"""Top-N selection: the best of many samples by a score, such as a grade; the last step of SUNMASK's best row."""

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from anyfill.checks import require_count

T = TypeVar("T")


def best_of(samples: Iterable[T], score: Callable[[T], float], n: int) -> list[T]:
    """The n samples of lowest score, best first (all, if there are fewer); among equals the earlier, NaN last."""
    require_count("n", n)
    scored = [(float(score(sample)), sample) for sample in samples]
    scored.sort(key=lambda pair: math.inf if math.isnan(pair[0]) else pair[0])
    return [sample for _, sample in scored[:n]]
