"""Training the model behind a ``TableModel``, with reports and a progress bar on the way."""

import warnings
from collections.abc import Callable, Generator, Iterator
from typing import Any

import torch

from anyfill.checks import refuse
from anyfill.interface.progress import watch
from anyfill.interface.threads import threads
from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.tables.linear import Linear
from anyfill.tables.linear_fit import fit_linear
from anyfill.tables.recipes import fit_recipe
from anyfill.tables.settings import device_of
from anyfill.tables.table import Ignored, Table
from anyfill.tables.weighing import Unseen
from anyfill.training import StepReport

_LARGE = 20_000
"""With more rows networks are large enough for several threads."""


def warn_of_ignored(table: Table) -> None:
    """Say which columns are not modelled; ValueError if none is."""
    ignored = [column for column in table.columns if isinstance(column, Ignored)]
    reasons = "; ".join(f"column {column.name!r} ({column.reason})" for column in ignored)
    if len(ignored) == len(table.columns):
        raise refuse("table", expected="a column that can be modelled", got=reasons)
    if ignored:
        warnings.warn(f"not modelled, their holes stay: {reasons}", UserWarning, stacklevel=3)


def train(settings: Any, table: Table, rows: Rows, *, seed: int) -> tuple[Model, Linear | None, int]:
    """The trained model, ready to be asked, what its means are drawn towards, and how many steps it took.

    Args:
        settings: a ``TableModel``: its recipe, steps, device, on_report and verbose (show a progress bar) are read.
        table: the columns.
        rows: their values.
        seed: of everything random.
    """
    recipe, steps, device = settings.recipe, settings.steps, settings.device
    on_report: Callable[[StepReport], object] | None = settings.on_report
    found: list[Model] = []
    linear: list[Linear | None] = [None]
    items = fit_recipe(recipe, table, rows, seed=seed, steps=steps, device=device)

    def keep(unseen: Unseen) -> None:
        linear.append(fit_linear(table, rows, unseen))

    reports = _reports(items, found, keep)
    taken = 0
    # Small networks gain nothing from a second thread and lose a lot where the machine is busy.
    with threads(1 if len(rows) <= _LARGE else torch.get_num_threads()):
        for report in watch(reports, steps, recipe) if settings.verbose else reports:
            taken = report.step
            if on_report is not None:
                on_report(report)
    where, straight = device_of(device), linear[-1]
    return found[0].to(where).eval(), None if straight is None else straight.to(where), taken


def _reports(
    items: Iterator[StepReport | Unseen | Model], found: list[Model], keep: Callable[[Unseen], None]
) -> Generator[StepReport]:
    """The reports among the items; models are put into ``found``, answers to left-out cells go to ``keep``."""
    for item in items:
        if isinstance(item, Model):
            found.append(item)
        elif isinstance(item, Unseen):
            keep(item)
        else:
            yield item
