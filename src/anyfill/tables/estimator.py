"""``TableModel``: one model of a table with holes, as a scikit-learn estimator.

    model = TableModel().fit(frame)
    model.transform(frame)                          # every hole filled; type, dtypes and all other cells as they were
    model.sample(frame, 20)                         # twenty tables, drawn jointly over the holes
    model.interval(frame, 0.9)                      # two tables, the ends of 90 % intervals
    model.ask({"age": 40, "smoker": "yes"}, ["bmi"])
    model.next_feature(frame, "outcome")            # which missing cell to measure next
    model.score_samples(frame)                      # log p of what is there

A missing value is neither given nor asked; what is filled is what the model says of it given the present values of
its own row. A row's answer depends on these values and its seed alone, not on the rows that come with it: to that end
rows are computed in blocks of one size, on one thread (see ``anyfill.samplers.rowwise``).

Columns are taken by position, as scikit-learn does, and must have the names and order of ``fit`` where they have names.

``TableModel.pool`` are Rubin's rules (``anyfill.tables.rubin``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from anyfill.checks import require_count
from anyfill.evaluation import LogProb
from anyfill.likelihoods.marginals import Marginals
from anyfill.rows import Rows
from anyfill.tables import imputing, inputs
from anyfill.tables.answers import Statistic
from anyfill.tables.asking import Answer, ask_row
from anyfill.tables.discovery import with_functions
from anyfill.tables.filler import Filler, empty_like
from anyfill.tables.frames import Frame, append_columns
from anyfill.tables.measure import ROWS, NextFeature, kept_rows, next_features, with_target
from anyfill.tables.passive import emptied, read_passive, recomputed
from anyfill.tables.recipes import require_used, train
from anyfill.tables.rubin import PooledEstimate, pool
from anyfill.tables.scoring import score_cells, score_columns
from anyfill.tables.table import Names, Table
from anyfill.training import StepReport

__all__ = ["PooledEstimate", "TableModel", "pool"]


class TableModel(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
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

    n_features_in_: int
    feature_names_in_: NDArray[Any]

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
        frame = inputs.read_frame(self, X, reset=True)
        index = imputing.weighted_rows(sample_weight, len(frame), seed=self._seed(None))
        return self.fit_table(nw.to_native(frame.take(index.numpy()).native, pass_through=True), origin=index)

    def fit_table(self, X: Any, table: Table | None = None, *, origin: Tensor | None = None) -> "TableModel":
        """The same where somebody has looked at the columns already: ``table`` is what they are.

        ``origin`` (B,) says of which row each is a copy: what is left out of one copy is left out of all.
        """
        inputs.require_settings(vars(self))
        inputs.require_enough_reference(self.reference_rows)
        require_used(self.recipe, {"effort": self.effort if self.effort != "medium" else None, "steps": self.steps})
        frame, seed = inputs.read_frame(self, X, reset=True), self._seed(None)
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

    def transform(self, X: Any) -> Any:
        """X with every hole filled by ``statistic`` given the rest of its row; those of columns not modelled stay."""
        inputs.require_settings(vars(self))
        filler, frame, rows = self._answering(X)
        filled = self._adding_up(filler, frame, filler.fill(frame, rows, self.statistic))
        if self.add_indicator:
            filled = append_columns(filled, imputing.indicators(self.table_, frame))
        return inputs.as_configured(self, filled)

    def sample(
        self, X: Any, n: int = 1, *, seed: int | None = None, row_seeds: Sequence[int] | NDArray[Any] | None = None
    ) -> list[Any]:
        """n tables like X, each with its holes drawn, jointly over the holes of a row (multiple imputation).

        A row's draws follow from the seed, its values and its holes; of rows that are equal in that, from how many came
        before it as well. Draws are of one fitted model, so what is not known about the model itself is not in them:
        standard errors by ``pool`` are a little too small.

        Args:
            X: a table.
            n: how many.
            seed: of the draws; by default that of ``random_state``, new draws each time if that is None.
            row_seeds: a whole number for each row, in place of its values.
        """
        require_count("n", n)
        filler, frame, rows = self._answering(X)
        drawn = filler.draw(frame, rows, n, self._seed(seed), row_seeds)
        return [self._adding_up(filler, frame, one) for one in drawn]

    def sample_long(self, X: Any, n: int = 5, *, seed: int | None = None, original: bool = True) -> Any:
        """n filled tables in one data frame, one below the other, as ``complete(imp, "long")`` of R's mice has them.

        Before the columns of X come ``.imp``, the number of the table, and ``.id``, that of the row, from 1. With
        ``original`` X itself, holes and all, comes first as number 0.
        """
        tables = self.sample(X, n, seed=seed)
        _, frame, _ = self._answering(X)
        return imputing.long_table([*([frame.native] if original else []), *tables], first=0 if original else 1)

    def sample_rows(self, n: int, seed: int | None = None) -> pd.DataFrame:
        """n new rows, a pandas data frame with the dtypes of ``fit``; row i depends on the seed and i alone."""
        require_count("n", n)
        rows = self._filler.new_rows(n, self._seed(seed), getattr(self, "empty_", None))
        formulas = read_passive(self.passive, self.table_)
        return recomputed(formulas, self.table_, emptied(Frame.of(rows)), rows) if formulas else rows

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns of ``transform``: those that came in, and indicators where these are added."""
        names: Any = super().get_feature_names_out(input_features)
        if not self.add_indicator:
            return names
        return np.concatenate([names, np.array(list(imputing.indicator_names(self.table_).values()), dtype=object)])

    def interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Two tables like X: in the holes the ends of central intervals of each by itself, elsewhere X itself.

        Categories without an order have no interval: both tables hold the likeliest level.
        """
        inputs.require_level(level)
        filler, frame, rows = self._answering(X)
        return filler.interval(frame, rows, level)

    def marginals(self, X: Any) -> Marginals:
        """p(z_j | present values of the row) for every hole, standardised: the distributions behind the answers.

        They mean nothing at present cells. Means that ``transform`` fills in have weights of their own
        (``Model.for_means``), and may be drawn further, towards ``linear_``.
        ``table_.decode_column(j, z)`` turns values into own units. All rows are computed in one pass of their own size.
        """
        filler = self._filler
        return filler.model.given(*filler.given(self._rows(X)[1])).marginals()

    def log_prob(self, X: Any, asked: Names = None, given: Names = None, own_units: bool = True) -> LogProb:
        """log p(asked | given) of each row, in nats; missing cells are neither asked nor given.

        Args:
            X: a table.
            asked: names of columns, scored jointly; by default all that are not given.
            given: names of columns; by default none.
            own_units: densities per unit of the table; False = per standard unit of the model.
        """
        return score_columns(self._filler, *self._rows(X), asked=asked, given=given, own_units=own_units)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """(B,): log p of all present cells of each row, in nats and own units; low = surprising."""
        return self.log_prob(X).value.numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of ``score_samples``: what grid search makes greatest by default."""
        return float(np.mean(self.score_samples(X)))

    def cell_log_prob(self, X: Any, own_units: bool = True) -> NDArray[np.float64]:
        """(B, N): log p of each present cell given all other present cells of its row; NaN where there is none."""
        return score_cells(self._filler, *self._rows(X), own_units=own_units).numpy()

    def ask(
        self,
        given: Mapping[str, Any] | None = None,
        want: Names = None,
        *,
        level: float = 0.9,
        draws: int = 0,
        seed: int | None = None,
    ) -> Answer:
        """What is likely, given some values: ``print(model.ask({"age": 40}, ["bmi"]))``.

        Args:
            given: for names of columns their values; a missing one is not given.
            want: names of columns; by default all that are not given.
            level: of intervals.
            draws: how many joint draws of the wanted columns to add.
            seed: of these draws.
        """
        filler, seed = self._filler, self._seed(seed)
        return ask_row(filler, given or {}, want, level=level, draws=draws, seed=seed, unknown=self.unknown)

    def next_feature(
        self,
        X: Any,
        target: str | Sequence[str],
        *,
        costs: Mapping[str, float] | None = None,
        samples: int = 100,
        min_gain: float = 0.0,
        seed: int | None = None,
        reference: Any = None,
    ) -> NextFeature:
        """Which missing cell of each row is expected to tell most about the target, per unit of its cost.

        The expected gain is the mutual information I(target; x_j | present cells of the row), held against what x_j
        told in reference rows (``anyfill.tables.calibrated``) where 30 at least have the cells that the row has,
        the target and x_j; else a plain estimate (``anyfill.evaluation.information``). The answer says which. Values of
        the target that X may hold are not looked at.

        Args:
            X: a table.
            target: names of one or several columns to learn about.
            costs: for names of columns what measuring them costs; 1 where none is named.
            samples: joint draws for a plain estimate; a fifth as many points for a calibrated one.
            min_gain: nats per cost below which (with one standard error to spare) nothing is worth measuring.
            seed: of the noise.
            reference: a table like X, its rows with their targets; by default the rows that the model kept.
        """
        (_, rows), seed = self._rows(X), self._seed(seed)
        filler = Filler(self.model_, self.table_, self.linear_)  # what is told is learnt: functions have no part in it
        held = getattr(self, "reference_", None)
        if reference is not None:
            held = with_target(self._rows(reference)[1], self.table_, target)
        return next_features(filler, rows, target, costs or {}, samples, min_gain, seed=seed, reference=held)

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

    @property
    def _filler(self) -> Filler:
        check_is_fitted(self)
        return Filler.of(self.model_, self.table_, self.linear_)

    def _answering(self, X: Any) -> tuple[Filler, Frame, Rows]:
        """What answers in cells like those of X, X as columns, and encoded."""
        frame, rows = self._rows(X)
        check_is_fitted(self)
        return Filler.of(self.model_, self.table_.written_like(frame), self.linear_), frame, rows

    def _adding_up(self, filler: Filler, frame: Frame, filled: Any) -> Any:
        """A filled table with its passive columns recomputed."""
        formulas = read_passive(self.passive, self.table_)
        return recomputed(formulas, filler.table, frame, filled) if formulas else filled

    def _rows(self, X: Any) -> tuple[Frame, Rows]:
        """X as columns under the names of ``table_``, and encoded."""
        return (frame := inputs.read_like(self, X, self.table_.names)), self.table_.encode(frame, unknown=self.unknown)

    def _seed(self, seed: int | None) -> int:
        return inputs.seed_of(seed, self.random_state)
