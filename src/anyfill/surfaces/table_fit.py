"""A model from a file: read evenly, look at the columns, train, save."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from anyfill.data.frames import MISSING_TOKENS, Frame
from anyfill.data.table import Table
from anyfill.surfaces.reservoir import sample_file
from anyfill.surfaces.table_folder import require_place, save_table_model

ROWS = 200_000
"""The most rows a model is trained on by default."""


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
    say: Callable[[str], None],
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
        say: takes what is worth telling.
    """
    from anyfill.surfaces.estimator import TableModel

    require_place(folder)
    tokens = tuple(dict.fromkeys([*MISSING_TOKENS, *missing]))
    sampled = sample_file(source, rows, seed=seed)
    frame = Frame.of(sampled.frame, missing=tokens)
    some = f"{len(frame):,} of {sampled.total:,} rows" if len(frame) < sampled.total else f"{len(frame):,} rows"
    say(f"{source}: {some}, {len(frame.columns)} columns\n")
    say(Table.of(frame, columns).describe() + "\n")
    model = TableModel(
        recipe=recipe,
        columns=None if columns is None else dict(columns),
        unknown=unknown,
        steps=steps,
        random_state=seed,
        verbose=True,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not modelled")  # the description says so
        model.fit(frame)
    save_table_model(model, folder, tokens)
    return model
