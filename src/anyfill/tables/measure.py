"""What to measure next in rows of a table, by estimates that are held against reference rows where there are enough."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.evaluation import Information, information
from anyfill.interface.threads import threads
from anyfill.rows import Rows
from anyfill.samplers.rowwise import row_keys, sample_rowwise
from anyfill.tables.answers import answers_each, open_cells
from anyfill.tables.ask import names_of
from anyfill.tables.choosers import Standing
from anyfill.tables.filler import Filler
from anyfill.tables.questions import NextFeature
from anyfill.tables.reference import calibrated_chooser
from anyfill.tables.table import Ignored, Table


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
    price = _prices(table, costs)
    if isinstance(min_gain, bool) or not isinstance(min_gain, Real) or min_gain != min_gain:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("min_gain", expected="a number of nats", got=repr(min_gain))
    x, known = filler.told(Rows(rows.x, rows.present & ~goal))
    wanted, free = goal.to(x.device).expand(x.shape), open_cells(table, known)
    standing = Standing(torch.where(known, x, 0.0), known, free & ~wanted, wanted, x)
    with threads(1):
        estimates = _estimates(filler, standing, samples, seed, reference)
    found, is_open = estimates.information, standing.candidate.cpu().numpy()
    gain, stderr = (np.where(is_open, one.cpu().numpy(), np.nan) for one in (found.value, found.stderr))
    best = found.best(price.to(x.device), min_gain)
    chosen = tuple(None if j < 0 else table.names[j] for j in best.tolist())
    return NextFeature(names, table.names, gain, stderr, price.numpy(), chosen, estimates.calibrated.cpu().numpy())


def with_target(rows: Rows, table: Table, target: str | Sequence[str]) -> Rows:
    """These reference rows; ValueError if none of them has the target."""
    goal = table.members(tuple(names_of(target)))
    if not bool(rows.present[:, goal].all(1).any()):
        raise refuse("reference", expected="rows that have the target", got=f"none in {len(rows)}")
    return rows


@dataclass(frozen=True, slots=True)
class _Estimates:
    """What candidates are expected to tell, and how many reference rows that was held against (B,); 0 = none."""

    information: Information
    calibrated: Tensor


def _estimates(filler: Filler, standing: Standing, samples: int, seed: int, reference: Rows | None) -> _Estimates:
    """Calibrated where there are reference rows enough; elsewhere plain, from joint draws."""
    held = torch.zeros(len(standing.x), dtype=torch.int64, device=standing.x.device)
    chooser = None if reference is None or not len(reference) else calibrated_chooser(reference, samples=samples)
    if chooser is not None and answers_each(filler.model) and not filler.model.corruption.shows_unknown:
        held = chooser.support(standing)
    parts: list[tuple[Tensor, Information]] = []
    rest, sure = (held == 0).nonzero()[:, 0], (held > 0).nonzero()[:, 0]
    # One row at a time: a product of another shape may be rounded differently.
    parts += [(row, _plain(filler, _taken(standing, row), samples, seed)) for row in rest.split(1) if len(row)]
    if chooser is not None and len(sure):
        own = _taken(standing, sure)
        each = [
            chooser.base.reward(filler.model, _taken(own, row), generator=Generator().manual_seed(seed))
            for row in torch.arange(len(sure), device=sure.device).split(1)
        ]
        value, stderr = (torch.cat([getattr(one, name) for one in each]) for name in ("value", "stderr"))
        found = Information(value, stderr, own.candidate, each[0].samples)
        parts.append((sure, chooser.corrected(filler.model, own, found, seed=seed)))
    value, stderr = torch.zeros(2, *standing.x.shape, dtype=torch.float64, device=standing.x.device)
    for index, found in parts:
        value[index], stderr[index] = found.value, found.stderr
    return _Estimates(Information(value, stderr, standing.candidate, samples), held)


def _plain(filler: Filler, standing: Standing, samples: int, seed: int) -> Information:
    x, known, wanted = standing.truth, standing.known, standing.target
    keys = row_keys(x, known, seed)
    drawn = sample_rowwise(filler.model, x, known, standing.candidate | wanted, keys=keys, draws=samples)
    return information(filler.model, drawn, known, wanted, candidate=standing.candidate)


def _taken(standing: Standing, rows: Tensor) -> Standing:
    """The rows at an index."""
    x, known, candidate, target = (
        one[rows] for one in (standing.x, standing.known, standing.candidate, standing.target)
    )
    return Standing(x, known, candidate, target, standing.truth[rows])


def _prices(table: Table, costs: Mapping[str, float]) -> Tensor:
    """float64 (N,): what each column costs."""
    price = torch.ones(len(table.columns), dtype=torch.float64)
    for name, cost in costs.items():
        if isinstance(cost, bool) or not isinstance(cost, Real) or not 0 < cost < float("inf"):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise refuse(f"cost of column {name!r}", expected="a finite number above 0", got=repr(cost))
        price[table.index(name)] = cost
    return price
