"""``TableModel``: one model of a table with holes, as a scikit-learn estimator.

    model = TableModel().fit(frame)
    model.transform(frame)                          # every hole filled; type, dtypes and all other cells as they were
    model.sample(frame, 20)                         # twenty tables, drawn jointly over the holes
    model.interval(frame, 0.9)                      # two tables, the ends of 90 % intervals
    model.ask({"age": 40, "smoker": "yes"}, ["bmi"])
    model.next_feature(frame, "outcome")            # which missing cell to measure next
    model.score_samples(frame)                      # log p of what is there

Here are its settings, how it is fitted, kept in a folder and shown; what it answers when it is fitted stands in
``anyfill.tables.inference``.

Columns are taken by position, as scikit-learn does, and must have the names and order of ``fit`` where they have names.

``TableModel.pool`` are Rubin's rules (``anyfill.tables.rubin``).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from anyfill.tables import imputing, inputs
from anyfill.tables.answers import Statistic
from anyfill.tables.declarations import told_to_ignore
from anyfill.tables.discovery import with_functions
from anyfill.tables.filler import empty_like
from anyfill.tables.inference import TableInference
from anyfill.tables.measure import ROWS, kept_rows
from anyfill.tables.passive import read_passive
from anyfill.tables.recipes import require_used, train
from anyfill.tables.rubin import PooledEstimate, pool
from anyfill.tables.table import Table
from anyfill.training import StepReport

__all__ = ["PooledEstimate", "TableModel", "pool"]


class TableModel(TableInference):
    """A model of the rows of a table: fills, samples, scores, and says what to measure next.

    Takes data frames of pandas, polars and pyarrow, arrays, lists, and paths of files (.csv, .parquet, .xlsx …); gives
    back what it was given, of a file a data frame. The kinds of columns (numbers, whole numbers, booleans, categories,
    dates) are inferred in ``fit``, and shown with the fitted model.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"height": [1.6, 1.7, 1.8, None, 1.9], "weight": [60.0, 70.0, 80.0, 85.0, None]})
    >>> model = TableModel(recipe="gaussian", random_state=0).fit(frame)
    >>> model.transform(frame).round(2).iloc[3].tolist()
    [1.85, 85.0]
    >>> print(model.ask({"height": 1.75}, "weight"))  # doctest: +ELLIPSIS
    given height = 1.75
      weight  7...
    >>> model
    TableModel(random_state=0, recipe='gaussian')
    column  kind    missing  what is known of it
    height  number    20.0%  0 to 1.975
    weight  int       20.0%  0 to 92

    Args:
        recipe: how to model it: auto, trees, fast, gaussian, ensemble, network, one-pass, mlp-ardm, mlp-mac, sfarm,
            ace, ace-mac, vae or miwae (see ``anyfill.tables.recipes``).
        columns: for names of columns what they are, whatever they look like: number, int, number[0,1], bool, category,
            ordinal:low<mid<high, datetime, ignore. The columns of an array are called x0, x1, …
        missing_values: what counts as missing besides NaN, None and empty text: a number, a word, or a list of them.
        min_value, max_value: the least and the greatest number that is ever filled in or drawn: one for all columns of
            numbers, one for each column, or by name.
        passive: for names of columns formulas, ``{"bmi": "weight / height**2"}``: where such a column was missing, it
            is recomputed from the filled others (``anyfill.tables.passive``).
        find_functions: look for columns that are functions of others (thresholds, recodings, sums, products; confirmed
            by rows held out), and answer by them where what they are made of is known; the schema says which.
        add_indicator: ``transform`` adds a column ``missingindicator_NAME`` for each that had holes in ``fit``.
        statistic: what ``transform`` puts into holes of numbers: "mean", "median" or "mode". Categories always get
            their likeliest level. A mean is rounded where the column holds whole numbers (by its dtype, or in a data
            frame by its values); an array of floats keeps it as it is.
        unknown: what a level that ``fit`` has not seen, or text where there should be a number, comes to in later
            tables: "error", or "missing" (the model does not see the cell, and it stays as it is).
        steps: the most optimizer steps, and the most trees of a model; None = by the size of the table.
        effort: how much work auto and trees put into learning: "low", "medium" or "high" (``anyfill.tables.auto``).
        random_state: of training and of draws: a whole number, or a generator of numpy; the same in every process.
        reference_rows: the most training rows that the model keeps, and saves, for ``next_feature``; 0 = none, else
            at least 30.
        device: "cpu", "cuda" or "auto".
        on_report: called with each ``StepReport`` while training.
        verbose: show a progress bar.

    Attributes:
        model_: the trained ``anyfill.Model`` of standardised rows.
        linear_: the plain joint Gaussian that means are drawn towards (recipe auto), or None.
        reference_: the rows it keeps, as the model sees them (``anyfill.tables.measure``), or None.
        table_: the columns, an ``anyfill.tables.table.Table``.
        recipe_: the recipe that was fitted.
        empty_: a pandas data frame without rows: the dtypes of the table that was fitted.
        n_iter_: optimizer steps that were made.
        history_: how learning went: (step, loss, loss on cells or rows kept aside or None), in nats per row.
        n_features_in_: the number of columns.
        feature_names_in_: their names, if all were text.
    """

    def __init__(
        self,
        *,
        recipe: str = "auto",
        columns: Mapping[str, str] | None = None,
        missing_values: Any = None,
        min_value: Any = None,
        max_value: Any = None,
        passive: Mapping[str, str] | None = None,
        find_functions: bool = True,
        add_indicator: bool = False,
        statistic: Statistic = "mean",
        unknown: Literal["error", "missing"] = "error",
        steps: int | None = None,
        effort: Literal["low", "medium", "high"] = "medium",
        random_state: Any = None,
        reference_rows: int = ROWS,
        device: str = "cpu",
        on_report: Callable[[StepReport], object] | None = None,
        verbose: bool = False,
    ) -> None:
        self.recipe = recipe
        self.columns = columns
        self.missing_values = missing_values
        self.min_value = min_value
        self.max_value = max_value
        self.passive = passive
        self.find_functions = find_functions
        self.add_indicator = add_indicator
        self.statistic: Statistic = statistic
        self.unknown: Literal["error", "missing"] = unknown
        self.steps = steps
        self.effort: Literal["low", "medium", "high"] = effort
        self.random_state = random_state
        self.reference_rows = reference_rows
        self.device = device
        self.on_report = on_report
        self.verbose = verbose

    def __setstate__(self, state: dict[str, Any]) -> None:
        # One pickled by an earlier version has none of these.
        new = dict.fromkeys(("missing_values", "min_value", "max_value", "passive"))
        old = {"reference_rows": 0, "effort": "medium", "add_indicator": False, "find_functions": True}
        super().__setstate__({**old, **new, **state})

    def fit(self, X: Any, y: Any = None) -> "TableModel":
        """Learn the table X, holes and all; ``y`` is not used (a target to predict is one more column of X)."""
        return self.fit_table(X)

    def fit_weighted(self, X: Any, sample_weight: Any) -> "TableModel":
        """The same, each row of X counted by its weight: B numbers from 0 up.

        Rows are repeated or left out in proportion, as evenly as can be; whole weights of not more than four on average
        are met exactly. Not an argument of ``fit``: which rows a network sees first would depend on it.
        """
        frame = inputs.read_frame(self, X, reset=True, unread=told_to_ignore(self.columns or {}))
        index = imputing.weighted_rows(sample_weight, len(frame), seed=self._seed(None))
        return self.fit_table(nw.to_native(frame.take(index.numpy()).native, pass_through=True), origin=index)

    def fit_table(self, X: Any, table: Table | None = None, *, origin: Tensor | None = None) -> "TableModel":
        """The same where somebody has looked at the columns already: ``table`` is what they are.

        ``origin`` (B,) says of which row each is a copy: what is left out of one copy is left out of all.
        """
        inputs.require_settings(vars(self))
        inputs.require_enough_reference(self.reference_rows)
        require_used(self.recipe, {"effort": self.effort if self.effort != "medium" else None, "steps": self.steps})
        frame = inputs.read_frame(self, X, reset=True, unread=told_to_ignore(self.columns or {}))
        seed = self._seed(None)
        table = Table.of(frame, self.columns) if table is None else table
        table = imputing.within(table, self.min_value, self.max_value)
        read_passive(self.passive, table)
        inputs.warn_of_ignored(table)
        rows = table.encode(frame)
        if not self.find_functions:
            table = replace(table, functions=())
        elif not table.functions:
            table = with_functions(table, frame, rows, origin)
        watched, self.history_ = imputing.watched(self)
        self.model_, self.linear_, self.n_iter_, table = train(watched, table, rows, seed=seed, origin=origin)
        self.reference_ = kept_rows(rows, self.reference_rows, seed=seed)
        self.table_, self.recipe_, self.empty_ = table, self.recipe, empty_like(frame)
        return self

    pool = staticmethod(pool)

    def save(self, folder: Path | str) -> None:
        """Save in a folder (JSON and safetensors, nothing pickled); ``load`` gives the same answers bit for bit.

        With it go the rows that it keeps, up to 300 of its training table: fit with ``reference_rows=0``, or set
        ``reference_`` to None, where people may not see them. ``on_report`` and a ``random_state`` that is no number
        are not kept. For joblib the estimator can be pickled as well, by its plain attributes.
        """
        check_is_fitted(self)
        inputs.save_estimator(self, folder)

    @classmethod
    def load(cls, folder: Path | str, *, device: str = "cpu") -> "TableModel":
        """The model that ``save`` kept in a folder; CheckpointError (a ValueError) if there is none."""
        return inputs.load_estimator(cls, folder, device)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        said = super().__repr__(N_CHAR_MAX)
        return f"{said}\n{self.table_.describe()}" if hasattr(self, "table_") else said

    def _repr_html_(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not hasattr(self, "table_"):
            return f"<pre>{escape(repr(self))}</pre>"
        shares = self.table_.missing or [None] * len(self.table_.columns)
        lines = [
            f"<tr><td>{escape(column.name)}</td><td>{escape(column.label)}</td>"
            f"<td>{'' if share is None else f'{share:.1%}'}</td></tr>"
            for column, share in zip(self.table_.columns, shares)
        ]
        head = "<tr><th>column</th><th>kind</th><th>missing</th></tr>"
        return f"<p><code>{escape(super().__repr__())}</code></p><table>{head}{''.join(lines)}</table>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_tags__(self) -> Any:
        return inputs.accepting_holes(super().__sklearn_tags__())
