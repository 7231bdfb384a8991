"""What a fitted ``TableModel`` answers: holes filled and drawn, intervals, probabilities, single questions, what to
measure next.

A missing value is neither given nor asked; what is filled is what the model says of it given the present values of
its own row. A row's answer depends on these values and its seed alone, not on the rows that come with it: to that end
rows are computed in blocks of one size, on one thread (see ``anyfill.samplers.rowwise``).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from anyfill.checks import require_count
from anyfill.evaluation import LogProb
from anyfill.likelihoods.marginals import Marginals
from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.tables import imputing, inputs
from anyfill.tables.answers import Statistic
from anyfill.tables.asking import Answer, ask_row
from anyfill.tables.filler import Filler
from anyfill.tables.frames import Frame, append_columns
from anyfill.tables.linear import Linear
from anyfill.tables.measure import NextFeature, next_features, with_target
from anyfill.tables.passive import emptied, read_passive, recomputed
from anyfill.tables.scoring import score_cells, score_columns
from anyfill.tables.table import Names, Table


class TableInference(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What can be asked of a fitted model of a table; its settings and attributes are told with ``TableModel``."""

    passive: Mapping[str, str] | None
    add_indicator: bool
    statistic: Statistic
    unknown: Literal["error", "missing"]
    random_state: Any
    model_: Model
    linear_: Linear | None
    table_: Table
    n_features_in_: int
    feature_names_in_: NDArray[Any]

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
        return (
            recomputed(formulas, self.table_, emptied(Frame.of(rows, unread=self.table_.ignored)), rows)
            if formulas
            else rows
        )

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

    @property
    def _filler(self) -> Filler:
        check_is_fitted(self)
        return Filler.of(self.model_, self.table_, self.linear_)

    def _answering(self, X: Any) -> tuple[Filler, Frame, Rows]:
        """What answers in cells like those of X, X as columns, and encoded."""
        frame, rows = self._rows(X)
        return Filler.of(self.model_, self.table_.written_like(frame), self.linear_), frame, rows

    def _adding_up(self, filler: Filler, frame: Frame, filled: Any) -> Any:
        """A filled table with its passive columns recomputed."""
        formulas = read_passive(self.passive, self.table_)
        return recomputed(formulas, filler.table, frame, filled) if formulas else filled

    def _rows(self, X: Any) -> tuple[Frame, Rows]:
        """X as columns under the names of ``table_``, and encoded."""
        check_is_fitted(self)
        return (frame := inputs.read_like(self, X, self.table_)), self.table_.encode(frame, unknown=self.unknown)

    def _seed(self, seed: int | None) -> int:
        return inputs.seed_of(seed, self.random_state)
