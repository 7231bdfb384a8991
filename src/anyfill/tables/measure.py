"""What to measure next in rows of a table, by estimates that are held against reference rows where there are enough.

A model that keeps training rows can hold what it expects of a measurement against what measuring did tell in them
(``anyfill.tables.calibrated``). Kept are at most ``reference_rows``, those with the fewest holes first, at random among
equals: a row serves only where it has what is known, the target and the candidate, so rows with holes serve least. They
are as the model sees them, standardised values and codes, and are saved with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from anyfill.checks import counted, refuse, require_count
from anyfill.evaluation import Information, information
from anyfill.interface.threads import threads
from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.samplers.rowwise import row_keys, sample_rowwise
from anyfill.tables.answers import answers_each, open_cells
from anyfill.tables.calibrated import Calibrated
from anyfill.tables.choosers import Chooser, Informed, Standing
from anyfill.tables.filler import Filler
from anyfill.tables.quantiles import Quantiles
from anyfill.tables.table import Ignored, Table, names_of

ROWS = 300
"""The most reference rows that are kept by default."""
_SAMPLES_PER_POINT = 5
"""Equally likely points leave so much less to chance than joint draws."""


@dataclass(frozen=True, slots=True, eq=False)
class NextFeature:
    """What to measure next, for each of B rows.

    Attributes:
        target: what is to be learnt.
        names: of all N columns.
        gain: float64 (B, N), nats that a column is expected to tell about the target; NaN where it is no candidate.
        stderr: float64 (B, N), Monte Carlo standard errors of these; NaN where it is no candidate.
        costs: float64 (N,).
        best: for each row the column with the greatest gain per cost; None = stop, nothing is worth its cost.
        calibrated: int64 (B,), how many reference rows a row's gains are held against; 0 = none, they are plain
            estimates from joint draws.
    """

    target: tuple[str, ...]
    names: tuple[str, ...]
    gain: NDArray[np.float64]
    stderr: NDArray[np.float64]
    costs: NDArray[np.float64]
    best: tuple[str | None, ...]
    calibrated: NDArray[np.int64]

    @property
    def rate(self) -> NDArray[np.float64]:
        """float64 (B, N): nats per unit of cost."""
        return self.gain / self.costs

    def ranking(self, row: int = 0) -> list[tuple[str, float, float, float]]:
        """(name, gain, standard error, cost) of the candidates of a row, the best per cost first."""
        rate = self.rate[row]
        order = [int(j) for j in np.argsort(-rate, kind="stable") if np.isfinite(rate[j])]
        gain, stderr = self.gain[row], self.stderr[row]
        return [(self.names[j], float(gain[j]), float(stderr[j]), float(self.costs[j])) for j in order]

    def basis(self, row: int = 0) -> str:
        """What the gains of a row rest on, in words."""
        count = int(self.calibrated[row])
        return f"calibrated on {counted(count, 'row')}" if count else "not calibrated"

    def to_frame(self) -> pd.DataFrame:
        """One line for each candidate of each row: row, column, gain, stderr, cost, rate, best, calibrated."""
        lines = [
            (row, name, gain, error, cost, gain / cost, name == self.best[row], int(self.calibrated[row]))
            for row in range(len(self.gain))
            for name, gain, error, cost in self.ranking(row)
        ]
        return pd.DataFrame(lines, columns=["row", "column", "gain", "stderr", "cost", "rate", "best", "calibrated"])

    def to_dict(self) -> dict[str, Any]:
        """As JSON can keep it."""
        keys = ("column", "gain", "stderr", "cost")
        rows = [
            {
                "best": best,
                "calibrated_on": int(self.calibrated[row]),
                "candidates": [dict(zip(keys, line)) for line in self.ranking(row)],
            }
            for row, best in enumerate(self.best)
        ]
        return {"target": list(self.target), "rows": rows}

    def ranked(self) -> str:
        """What to measure next, as an aligned table for each row."""
        lines: list[str] = []
        for row, best in enumerate(self.best):
            ranking = self.ranking(row)
            wide = max([len("column"), *(len(name) for name, *_ in ranking)])
            if len(self.best) > 1:
                lines.append(f"row {row + 1}")
            lines.append(f"{'column':<{wide}}  {'gain':>8}  {'error':>7}  {'cost':>7}  {'gain/cost':>9}")
            for name, gain, error, cost in ranking:
                lines.append(f"{name:<{wide}}  {gain:8.3f}  {error:7.3f}  {cost:7g}  {gain / cost:9.3f}")
            verdict = "stop: nothing left is worth its cost" if best is None else f"measure {best}"
            lines.append(f"about {', '.join(self.target)}: {verdict} ({self.basis(row)})")
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [f"about {', '.join(self.target)}, in nats"]
        if len(self.best) == 1:
            lines[0] += f", {self.basis()}"
        wide = max(len(name) for name in self.names)
        priced = bool((self.costs != 1).any())
        for row, best in enumerate(self.best):
            if len(self.best) > 1:
                lines.append(f"row {row}: {'stop' if best is None else best}, {self.basis(row)}")
            for name, gain, error, cost in self.ranking(row):
                price = f", cost {cost:g}: {gain / cost:.3f} each" if priced else ""
                mark = "*" if name == best else " "
                lines.append(f"{mark} {name:<{wide}}  {gain:.3f} ± {error:.3f}{price}")
            if best is None and len(self.best) == 1:
                lines.append("nothing more is worth measuring")
        return "\n".join(lines)


def next_features(
    filler: Filler,
    rows: Rows,
    target: str | Sequence[str],
    costs: Mapping[str, float],
    samples: int,
    min_gain: float,
    *,
    seed: int,
    reference: Rows | None,
) -> NextFeature:
    """See ``TableModel.next_feature``."""
    require_count("samples", samples, minimum=2)
    table = filler.table
    names = tuple(dict.fromkeys(names_of(target)))
    goal = table.members(names)
    if not names or any(isinstance(table.columns[j], Ignored) for j in goal.nonzero()[:, 0].tolist()):
        raise refuse("target", expected="names of columns that are modelled", got=names)
    price = prices(table, costs)
    if isinstance(min_gain, bool) or not isinstance(min_gain, Real) or min_gain != min_gain:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("min_gain", expected="a number of nats", got=repr(min_gain))
    x, known = filler.given(Rows(rows.x, rows.present & ~goal))
    wanted, free = goal.to(x.device).expand(x.shape), open_cells(table, known)
    standing = Standing.of(Rows(x, known), known, free & ~wanted, wanted)
    with threads(1):
        found, calibrated = _estimates(filler, standing, samples, seed, reference)
    is_open = standing.candidate.cpu().numpy()
    gain, stderr = (np.where(is_open, one.cpu().numpy(), np.nan) for one in (found.value, found.stderr))
    best = found.best(price.to(x.device), min_gain)
    chosen = tuple(None if j < 0 else table.names[j] for j in best.tolist())
    return NextFeature(names, table.names, gain, stderr, price.numpy(), chosen, calibrated.cpu().numpy())


def with_target(rows: Rows, table: Table, target: str | Sequence[str]) -> Rows:
    """These reference rows; ValueError if none of them has the target."""
    goal = table.members(target)
    if not bool(rows.present[:, goal].all(1).any()):
        raise refuse("reference", expected="rows that have the target", got=f"none in {len(rows)}")
    return rows


def _estimates(
    filler: Filler, standing: Standing, samples: int, seed: int, reference: Rows | None
) -> tuple[Information, Tensor]:
    """What candidates are expected to tell, and how many reference rows that was held against (B,); 0 = none.

    Calibrated where there are reference rows enough; elsewhere plain, from joint draws.
    """
    held = torch.zeros(len(standing.x), dtype=torch.int64, device=standing.x.device)
    chooser = None if reference is None or not len(reference) else calibrated_chooser(reference, samples=samples)
    if chooser is not None and _can_calibrate(filler.model):
        held = chooser.support(standing)
    parts: list[tuple[Tensor, Information]] = []
    rest, sure = (held == 0).nonzero()[:, 0], (held > 0).nonzero()[:, 0]
    # One row at a time: a product of another shape may be rounded differently.
    parts += [(row, _plain(filler, standing.take(row), samples, seed)) for row in rest.split(1) if len(row)]
    if chooser is not None and len(sure):
        own = standing.take(sure)
        each = [
            chooser.base.reward(filler.model, own.take(row), generator=Generator().manual_seed(seed))
            for row in torch.arange(len(sure), device=sure.device).split(1)
        ]
        value, stderr = (torch.cat([getattr(one, name) for one in each]) for name in ("value", "stderr"))
        found = Information(value, stderr, own.candidate, each[0].samples)
        parts.append((sure, chooser.corrected(filler.model, own, found, seed=seed)))
    value, stderr = torch.zeros(2, *standing.x.shape, dtype=torch.float64, device=standing.x.device)
    for index, found in parts:
        value[index], stderr[index] = found.value, found.stderr
    return Information(value, stderr, standing.candidate, samples), held


def _plain(filler: Filler, standing: Standing, samples: int, seed: int) -> Information:
    x, known, wanted = standing.truth, standing.known, standing.target
    keys = row_keys(x, known, seed)
    drawn = sample_rowwise(filler.model, x, known, standing.candidate | wanted, keys=keys, draws=samples)
    return information(filler.model, drawn, known, wanted, candidate=standing.candidate)


def prices(table: Table, costs: Mapping[str, float]) -> Tensor:
    """float64 (N,): what each column costs."""
    price = torch.ones(len(table.columns), dtype=torch.float64)
    for name, cost in costs.items():
        if isinstance(cost, bool) or not isinstance(cost, Real) or not 0 < cost < float("inf"):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise refuse(f"cost of column {name!r}", expected="a finite number above 0", got=repr(cost))
        price[table.index(name)] = cost
    return price


def kept_rows(rows: Rows, maximum: int, *, seed: int) -> Rows | None:
    """At most so many of the rows, in random order; None if there are none."""
    shuffled = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    holes = (~rows.present).sum(1)[shuffled]
    kept = shuffled[holes.argsort(stable=True)[:maximum]]
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
    if reference is None or not _can_calibrate(model.model_):
        return Informed(samples=samples)
    return Calibrated(Quantiles(samples), reference, observed_rows=100, expected_rows=12)


def _can_calibrate(model: Model) -> bool:
    return answers_each(model) and not model.corruption.shows_unknown
