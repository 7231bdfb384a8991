"""A model from a file: read evenly, look at the columns, train, save."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from anyfill.checks import refuse
from anyfill.tables.aligned import rows_of
from anyfill.tables.folder import require_place, save_table_model
from anyfill.tables.frames import MISSING_TOKENS, Frame
from anyfill.tables.kinds import read_numbers
from anyfill.tables.measure import ROWS as REFERENCE_ROWS
from anyfill.tables.reservoir import sample_file
from anyfill.tables.table import Number, Table

ROWS = 200_000
"""The most rows a model is trained on by default."""
FEW = 10
"""With fewer values than this a column that rises is no sign of anything."""


def fit_file(
    source: Path,
    folder: Path,
    *,
    recipe: str = "auto",
    columns: Mapping[str, str] | None = None,
    steps: int | None = None,
    seed: int = 0,
    missing: Sequence[str] = (),
    unknown: Literal["error", "missing"] = "error",
    rows: int = ROWS,
    reference_rows: int = REFERENCE_ROWS,
    say: Callable[[str], None],
    warn: Callable[[str], None],
    check: Callable[[Table], None] | None = None,
) -> Any:
    """Train on a file and save the model; the fitted ``TableModel``.

    Args:
        source: the table.
        folder: for the model: new, empty, or with an earlier model, which is replaced at the very end.
        recipe: the name of the recipe.
        columns: what columns are, whatever they look like.
        steps: of training; None = as the recipe sees fit.
        seed: of everything random.
        missing: what else stands for a missing value in columns of text.
        unknown: what happens later to a value that training never saw: an error, or it counts as missing.
        rows: the most rows to train on, chosen evenly.
        reference_rows: how many of these the model keeps, for ``anyfill next``.
        say: takes what is worth telling.
        warn: takes what may be a mistake in the data.
        check: called with what the columns are, before anything is trained; may raise.
    """
    from anyfill.tables.estimator import TableModel

    require_recipe(recipe)
    require_place(folder)
    tokens = tuple(dict.fromkeys([*MISSING_TOKENS, *missing]))
    sampled = sample_file(source, rows, seed=seed)
    with rows_of(source.name, lambda row: int(sampled.rows[row])):
        frame = Frame.of(sampled.frame, missing=tokens)
        for name in columns or {}:
            if name not in frame.names:
                raise refuse("--column", expected=f"names of columns ({', '.join(frame.names)})", got=repr(name))
        table = Table.of(frame, columns)
    if check is not None:
        check(table)
    some = f"{len(frame):,} of {sampled.total:,} rows" if len(frame) < sampled.total else f"{len(frame):,} rows"
    say(f"{source}: {some}, {len(frame.columns)} columns\n")
    say(table.describe() + "\n")
    for name in row_numbers(frame, table):
        if name not in (columns or {}):
            warn(f"column {name!r} looks like a row number: --column {name}=ignore leaves it alone")
    model = TableModel(
        recipe=recipe,
        columns=None if columns is None else dict(columns),
        unknown=unknown,
        steps=steps,
        random_state=seed,
        reference_rows=reference_rows,
        verbose=True,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not modelled")  # the description says so
        model.fit(frame)
    save_table_model(model, folder, tokens)
    return model


def require_recipe(name: str) -> None:
    """ValueError if there is no recipe of this name."""
    from anyfill.tables.recipes import NAMES

    if name not in NAMES:
        raise refuse("--recipe", expected=f"one of {', '.join(NAMES)}", got=repr(name))


def row_numbers(frame: Frame, table: Table) -> list[str]:
    """The columns of whole numbers that rise from row to row, or are 1 to n, say, in any order."""
    found: list[str] = []
    for cells, column in zip(frame.columns, table.columns):
        if not isinstance(column, Number):
            continue
        values = read_numbers(cells)
        values = values[~np.isnan(values)]
        if len(values) < FEW or (values % 1 != 0).any():
            continue
        if (np.diff(values) > 0).all() or (np.diff(np.sort(values)) == 1).all():
            found.append(column.name)
    return found
