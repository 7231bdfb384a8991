"""The rows that a ``TableModel`` keeps to hold its expectations against, and who chooses with them.

A model that keeps training rows can hold what it expects of a measurement against what measuring did tell in them
(``anyfill.tables.calibrated``). Kept are at most ``reference_rows``, those with the fewest holes first, at random
among equals: a row serves only where it has what is known, the target and the candidate, so rows with holes serve
least. They are as the model sees them, standardised values and codes, and are saved with it.
"""

from typing import Any

import torch

from anyfill.rows import Rows
from anyfill.tables.answers import answers_each
from anyfill.tables.calibrated import Calibrated
from anyfill.tables.choosers import Chooser, Informed
from anyfill.tables.quantiles import Quantiles

ROWS = 300
"""The most rows that are kept by default."""
_SAMPLES_PER_POINT = 5
"""Equally likely points leave so much less to chance than joint draws."""


def kept_rows(rows: Rows, most: int, *, seed: int) -> Rows | None:
    """At most so many of the rows, in random order; None if there are none."""
    shuffled = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    holes = (~rows.present).sum(1)[shuffled]
    kept = shuffled[holes.argsort(stable=True)[:most]]
    kept = kept[torch.randperm(len(kept), generator=torch.Generator().manual_seed(seed))]
    return rows.take(kept) if len(kept) else None


def calibrated_chooser(
    reference: Rows,
    *,
    samples: int = 100,
    costs: tuple[float, ...] | None = None,
    min_gain: float | None = None,
) -> Calibrated:
    """Who chooses what to measure next by these reference rows: in ``next_feature``, reports and experiments alike.

    Args:
        reference: as the model sees rows.
        samples: what plain estimates would be made of; a fifth as many points are looked at of each candidate.
        costs: N costs; None = all alike.
        min_gain: see ``Calibrated``.
    """
    base = Quantiles(max(2, samples // _SAMPLES_PER_POINT), costs=costs)
    return Calibrated(base, reference, min_gain=min_gain)


def curve_chooser(model: Any, samples: int) -> Chooser:
    """Who chooses for the acquisition curve of a fitted ``TableModel``: calibrated if it keeps rows, else plain.

    A curve is made of many steps, each with other cells known, so less is spent on each than for one question.
    """
    reference: Rows | None = getattr(model, "reference_", None)
    if reference is None or not answers_each(model.model_) or model.model_.corruption.shows_unknown:
        return Informed(samples=samples)
    return Calibrated(Quantiles(samples), reference, observed_rows=100, expected_rows=12)
