"""What a model thinks of the cells that are there: which of them surprise it, and how well it answers hidden ones.

**Surprise.** A row's score is nats = -log p(its present cells), a cell's nats = -log p(cell | the row's other present
cells). Neither can be compared across rows with different holes, or across columns with different units. So what is
usual is taken off:

    surprise = nats - E[nats of rows that the model itself draws, with the same holes]

estimated from draws with the holes of the file's first rows, by least squares on which cells are present (for cells,
the mean of the column). It is 0 for a usual row, whatever the units, and above 0 for one that the model rarely draws.

**Hidden cells** are asked back and compared. For each hidden number y with M joint draws x_1 … x_M of its row's holes,
given all that is left of the row:

    rank       (number of draws below y + U (number equal to y + 1)) / (M + 1), U uniform: uniform on [0, 1] for a model
               that is right (the randomised probability integral transform); the central interval of level c holds y
               where |rank - 1/2| <= c/2
    CRPS       mean |x_m - y| - 1/2 mean_{m != n} |x_m - x_n|, the estimator without bias
    RMSE       of the mean that ``transform`` fills in

against what knows only the column: its mean, its most frequent level, and for CRPS the column's own values as draws.
Errors are in standard deviations of the column.

**Log-probabilities** are of each row by itself: the blocks of ``anyfill.samplers.rowwise``, one term a row.

The same numbers as ``anyfill.evaluation.log_prob`` in the model's own order; but a row's does not depend, not even by
rounding, on the rows that come with it, and each row is read in the most direct way the model was trained for.
"""

import heapq
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import LogProb
from anyfill.evaluation.chain import of_one_order
from anyfill.interface.threads import threads
from anyfill.likelihoods import Mixed, Pooled, SpikedMixture
from anyfill.likelihoods.marginals import Likelihood
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.questions.question import Factorization, Question, chain_rank
from anyfill.questions.supported import step_factorization, untrained
from anyfill.rank import asked_in
from anyfill.rows import Rows
from anyfill.samplers.rowwise import block_size, chain_parameters, parameters, portions
from anyfill.tables.columns import Floats
from anyfill.tables.files import metered_parts, open_writer
from anyfill.tables.filler import Filler
from anyfill.tables.frames import Frame, blank, rows_of
from anyfill.tables.table import Ignored, Names, Table

if TYPE_CHECKING:
    from anyfill.tables.estimator import TableModel
    from anyfill.tables.file_model import FileModel


def score(model: Model, x: Tensor, question: Question) -> LogProb:
    """log p(x_asked | x_given) of rows (B, N), in the units of the model."""
    model.check_rows(x)
    question = question.checked()
    used = question.given | question.asked
    model.check_given(x, question.given)
    if model.corruption.shows_unknown:
        raise refuse("corruption", expected="one that shows no noise", got=repr(model.corruption))
    x = torch.where(used, x, torch.zeros_like(x))
    direct = _is_direct(model, question)
    order = model.fixed_order

    def chain(rows: Tensor, given: Tensor, asked: Tensor) -> Tensor:
        return _chain(model, x[rows], chain_rank(order, Question(given[rows], asked[rows])))

    value = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    one, other = direct.nonzero()[:, 0], (~direct).nonzero()[:, 0]
    value[one] = chain(one, question.given, question.asked)
    factorization = step_factorization(model.factorizations, question, model.order, order=order)
    if len(other):
        nothing, factorization = torch.zeros_like(used), Factorization.DIFFERENCE
        both, part = chain(other, nothing, used), chain(other, nothing, question.given)
        value[other] = torch.where(both.isneginf(), both, both - part)  # impossible evidence: -inf, not NaN
    passes = 1 if model.is_one_pass else int(question.asked.sum(1).max()) if len(x) else 0
    return of_one_order(model, value, passes, factorization or Factorization.DIRECT)


def score_columns(filler: Filler, frame: Frame, rows: Rows, *, asked: Names, given: Names, own_units: bool) -> LogProb:
    """log p(asked | given) of columns by their names, see ``TableModel.log_prob``."""
    table = filler.table
    known = table.members(given)
    wanted = ~known if asked is None else table.members(asked)
    if bool((known & wanted).any()):
        both = table.names[int((known & wanted).nonzero()[0])]
        raise refuse("asked and given", expected="different columns", got=f"{both!r} in both")
    x, present = filler.given(rows)
    question = Question(*(part.to(x.device).expand(x.shape) for part in (known, wanted))).within(present)
    with threads(1):
        answer = score(filler.model, x, question)
    value = answer.value.cpu()
    if own_units:
        units = log_units(filler.model, table, rows.x, frame)
        value = value + torch.where(question.asked.cpu(), units, 0.0).sum(1)
    return replace(answer, value=value, stderr=answer.stderr.cpu())


def score_cells(filler: Filler, frame: Frame, rows: Rows, *, own_units: bool) -> Tensor:
    """float64 (B, N): log p of each present cell given all others of its row, see ``TableModel.cell_log_prob``."""
    with threads(1):
        value = _each_cell(filler.model, *filler.given(rows)).cpu()
    return value + log_units(filler.model, filler.table, rows.x, frame) if own_units else value


def _each_cell(model: Model, x: Tensor, present: Tensor) -> Tensor:
    """float64 (B, N): log p(x_j | all other present values) of each present value; NaN elsewhere."""
    answer = torch.full(x.shape, torch.nan, dtype=torch.float64, device=x.device)
    places = present.nonzero()
    for some in places.split(2**14):
        row, j = some.unbind(1)
        asked = torch.zeros(len(some), x.shape[1], dtype=torch.bool, device=x.device)
        asked[torch.arange(len(some), device=x.device), j] = True
        answer[row, j] = score(model, x[row], Question(present[row] & ~asked, asked)).value
    return answer


def log_units(model: Model, table: Table, x: Tensor, data: Any = None) -> Tensor:
    """float64 (B, N): what makes a log-probability of each value of x (B, N) one per unit of the table.

    ``Table.log_units``, where the likelihood of a column of whole numbers has masses; where it has densities (a plain
    Gaussian, an energy) the slope. ``data``, the table behind x, tells apart the levels that share a code.
    """
    units = table.log_units(x, data).cpu()
    for j, column in enumerate(_columns(model.likelihood, len(table.columns))):
        number = table.number(j)
        if number is not None and number.step > 0 and not (isinstance(column, SpikedMixture) and column.step > 0):
            units[:, j] = torch.from_numpy(number.log_slope_at(x[:, j].double().cpu().numpy()))
    return units


def _columns(likelihood: Likelihood, count: int) -> Sequence[Likelihood]:
    """The likelihood of each column."""
    while isinstance(likelihood, Pooled):
        likelihood = likelihood.base
    return likelihood.columns if isinstance(likelihood, Mixed) else [likelihood] * count


def _is_direct(model: Model, question: Question) -> Tensor:
    """bool (B,): which rows are read step by step; the others as differences. ValueError if one is neither."""
    order = model.fixed_order
    asking = question.asked.any(1)
    if step_factorization(model.factorizations, question, model.order, order=order) is not None:
        return torch.ones_like(asking)
    both = torch.cat([question.given, question.asked], 1)
    patterns, which = both.unique(dim=0, return_inverse=True)
    each = [Question(*pattern.chunk(2, 1)) for pattern in patterns.split(1)]
    covered = [step_factorization(model.factorizations, one, model.order, order=order) is not None for one in each]
    direct = torch.tensor(covered, device=asking.device)[which] | ~asking
    if Factorization.DIFFERENCE not in model.factorizations and not bool(direct.all()):
        raise untrained(model.factorizations, "log p(asked | given)")
    return direct


def _chain(model: Model, x: Tensor, rank: Tensor) -> Tensor:
    """float64 (B,): the sum over asked variables of log p(x_j | all that rank before j)."""
    value = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    size = block_size(model)
    asked = asked_in(rank)
    with model.evaluating():
        if model.is_one_pass:
            for rows in portions(asked.any(1).nonzero()[:, 0], size):
                params = chain_parameters(model, x[rows], rank[rows], size)
                terms = model.likelihood(params).log_prob(_padded(x[rows], size))[: len(rows)].double()
                value[rows] = torch.where(asked[rows], terms, 0.0).sum(1)
            return value
        for some in portions(asked.nonzero(), size):
            rows, variable = some[:, 0], some[:, 1:]
            when = rank[rows]
            known = when < when.gather(1, variable)
            params = parameters(model, x[rows], known, when, size)
            wanted = _padded(variable, size)
            own = params.gather(1, wanted.unsqueeze(-1).expand(-1, 1, params.shape[2]))
            term = marginals_at(model.likelihood, own, wanted).log_prob(_padded(x[rows].gather(1, variable), size))
            value.index_add_(0, rows, term[: len(rows), 0].double())
    return value


def _padded(part: Tensor, size: int) -> Tensor:
    """(size, n): the first rows, and zeros."""
    whole = part.new_zeros(size, part.shape[1])
    whole[: len(part)] = part
    return whole


CHUNK = 4096
USUAL_ROWS = 512
"""Rows drawn to learn what is usual."""
HIDDEN_SHARE = 0.1
"""Of the present cells, that are hidden and asked back, in so many rows (fewer: several times) with so many draws:"""
CHECKED_ROWS, CHECK_DRAWS, MAX_ROUNDS = 1000, 50, 10


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """What is usual: nats of a row as a constant and a sum over present columns (1 + N,); of cells by column (N,)."""

    row: Floats
    cell: Floats

    def of_rows(self, present: NDArray[np.bool_]) -> Floats:
        """(B,): the usual nats of rows with these cells (B, N); 0 where there are none."""
        return np.where(present.any(1), self.row[0] + present @ self.row[1:], 0.0)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its column, what it says, what the model expects there instead, and its surprise in nats."""

    column: str
    value: str
    expected: str
    surprise: float


@dataclass(frozen=True, slots=True)
class Surprising:
    """A row: its number from 1, -log p of its present cells, its surprise in nats, and its cells, worst first."""

    row: int
    nats: float
    surprise: float
    cells: tuple[Cell, ...]


def blanked(frame: Frame, hidden: NDArray[np.bool_], names: tuple[str, ...]) -> Frame:
    """The same table with cells (rows, len(names)) missing where ``hidden``."""
    some = {name: hidden[:, j] for j, name in enumerate(names) if name in frame.names and hidden[:, j].any()}
    return Frame.of(blank(frame.native, some), missing=frame.missing)


def present_cells(frame: Frame, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """bool (rows, len(names)): which cells exist; those of absent columns do not."""
    absent = np.zeros(len(frame), dtype=bool)
    return np.stack([frame[name].present if name in frame.names else absent for name in names], 1)


def learn_usual(model: "TableModel", present: NDArray[np.bool_], *, seed: int) -> Usual:
    """What is usual for rows with the holes of ``present`` (B, N)."""
    generator = np.random.Generator(np.random.Philox(seed))
    drawn = model.table_.align(Frame.of(model.sample_rows(USUAL_ROWS, seed=seed)))
    names = model.table_.names
    there = present[generator.integers(len(present), size=USUAL_ROWS)] & present_cells(drawn, names)
    rows = blanked(drawn, ~there, names)
    nats, cells = -_finite(model.score_samples(rows)), -_finite(model.cell_log_prob(rows))
    terms = np.column_stack([np.ones(len(there)), there])
    row, *_ = np.linalg.lstsq(terms, nats, rcond=None)
    count = there.sum(0)
    return Usual(row.astype(np.float64), np.where(there, cells, 0.0).sum(0) / np.maximum(count, 1))


def score_file(
    file_model: "FileModel", source: Path, *, top: int, seed: int, target: Path | None = None
) -> list[Surprising]:
    """The most surprising rows of a file, worst first; all scores into ``target``.

    Args:
        file_model: of the table.
        source: the table, read in parts.
        top: how many rows are given.
        seed: of the draws that say what is usual.
        target: a file with a line for each row: its number (from 1), nats, surprise, and the surprise of each cell.
    """
    model, names = file_model.model, file_model.table.names
    usual: Usual | None = None
    worst: list[tuple[float, int, float, Frame]] = []
    with ExitStack() as stack:
        writer = stack.enter_context(open_writer(target)) if target is not None else None
        for part, start, _ in metered_parts(source, CHUNK, f"scoring {source.name}"):
            with rows_of(source.name, lambda row, start=start: start + row):
                frame = file_model.frame(part)
                nats = -np.asarray(model.score_samples(frame), dtype=np.float64)
            present = present_cells(frame, names)
            usual = learn_usual(model, present, seed=seed) if usual is None else usual
            surprise = nats - usual.of_rows(present)
            likely = np.argsort(-surprise, kind="stable")[:top].tolist()
            worst += [(float(surprise[i]), -(start + i), float(nats[i]), frame.take(slice(i, i + 1))) for i in likely]
            worst = heapq.nlargest(top, worst, key=lambda one: one[:2])
            if writer is not None:
                cells = -np.asarray(model.cell_log_prob(frame)) - usual.cell
                scores = {"row": np.arange(start + 1, start + len(frame) + 1), "nats": nats, "surprise": surprise}
                each = {f"surprise_{name}": cells[:, j] for j, name in enumerate(names)}
                writer.write(pd.DataFrame({**scores, **each}))
    if usual is None:
        return []
    return [Surprising(1 - row, nats, s, _cells(file_model, frame, usual)) for s, row, nats, frame in worst]


def _finite(values: Any) -> Floats:
    """Impossible becomes very improbable, so that means stay numbers."""
    return np.maximum(np.asarray(values, dtype=np.float64), -1e6)


def _cells(file_model: "FileModel", frame: Frame, usual: Usual) -> tuple[Cell, ...]:
    """The cells of one row, worst first, with what the model expects of each given the others."""
    model, names = file_model.writing_like(frame), file_model.table.names
    present = present_cells(frame, names)[0]
    surprise = -np.asarray(file_model.model.cell_log_prob(frame), dtype=np.float64)[0] - usual.cell
    places = sorted(np.flatnonzero(present).tolist(), key=lambda j: -float(surprise[j]))
    cells: list[Cell] = []
    for j in places[:3]:
        hidden = np.arange(len(names))[None] == j
        expected = Frame.of(model.transform(blanked(frame, hidden, names)))
        cells.append(Cell(names[j], _shown(frame, names[j]), _shown(expected, names[j]), float(surprise[j])))
    return tuple(cells)


def _shown(frame: Frame, name: str) -> str:
    """The first cell of a column, for people."""
    value = nw.from_native(frame.native, eager_only=True)[name].to_list()[0]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """How one column was answered.

    Attributes:
        name: of the column.
        cells: how many were hidden.
        error, error_baseline: RMSE of a number, share of wrong levels of a category.
        crps, crps_baseline: NaN for categories.
        rank: (cells,), of numbers; empty for categories.
    """

    name: str
    cells: int
    error: float
    error_baseline: float
    crps: float
    crps_baseline: float
    rank: Floats

    @property
    def is_number(self) -> bool:
        """True for numbers and dates."""
        return bool(np.isfinite(self.crps))


def check_hidden(model: "TableModel", frame: Frame, *, seed: int) -> list[Check]:
    """Hide a tenth of the present cells of (at most a thousand) rows, and ask them back; few rows, several times."""
    generator = np.random.Generator(np.random.Philox(seed))
    table, names = model.table_, model.table_.names
    if len(frame) > CHECKED_ROWS:
        frame = frame.take(np.sort(generator.choice(len(frame), CHECKED_ROWS, replace=False)))
    frame = frame.take(np.tile(np.arange(len(frame)), max(1, min(MAX_ROUNDS, CHECKED_ROWS // len(frame)))))
    ignored = np.array([isinstance(column, Ignored) for column in table.columns])
    hidden = present_cells(frame, names) & (generator.random((len(frame), len(names))) < HIDDEN_SHARE) & ~ignored
    some = np.flatnonzero(hidden.any(1))
    if not len(some):
        return []
    left = blanked(frame, hidden, names)
    asked = left.take(some)
    truth, rest = (table.encode(one, unknown="missing") for one in (frame, left))
    drawn = [_values(model, one) for one in model.sample(asked, CHECK_DRAWS, seed=seed)]
    best = _values(model, model.transform(asked))
    checks: list[Check] = []
    for j, name in enumerate(names):
        there = hidden[some, j] & truth.present[some, j].numpy()
        column = rest.x[:, j].double().numpy()[rest.present[:, j].numpy()]
        if there.sum() < 1 or not len(column):
            continue
        y = truth.x[some, j].double().numpy()[there]
        guess, draws = best[there, j], np.stack([one[there, j] for one in drawn])
        number = table.number(j)
        if number is None:
            checks.append(_category(name, y, guess, column))
        else:
            own = [number.decode(values) for values in (y, guess, draws, column)]
            checks.append(_number(name, *own, generator=generator))
    return checks


def coverage(ranks: Floats, levels: Floats) -> Floats:
    """The share of ranks within the central interval of each level."""
    return (np.abs(ranks - 0.5)[:, None] <= levels / 2).mean(0)


def crps(draws: Floats, y: Floats) -> float:
    """Mean over cells (n,) of the CRPS of draws (M, n)."""
    count = len(draws)
    near = np.abs(draws - y).mean()
    if count < 2:
        return float(near)
    weight = 2 * np.arange(1, count + 1) - count - 1  # sum of |x_m - x_n| over pairs, of sorted draws
    spread = (np.sort(draws, 0) * weight[:, None]).sum(0) / (count * (count - 1) / 2)
    return float(near - spread.mean() / 2)


def _values(model: "TableModel", table: Any) -> Floats:
    """float64 (rows, N): standardised values and codes."""
    return model.table_.encode(Frame.of(table), unknown="missing").x.double().numpy()


def _category(name: str, y: Floats, guess: Floats, column: Floats) -> Check:
    codes, counts = np.unique(column, return_counts=True)
    usual = codes[counts.argmax()]
    nan = float("nan")
    return Check(name, len(y), float((guess != y).mean()), float((usual != y).mean()), nan, nan, np.empty(0))


def _number(
    name: str, y: Floats, guess: Floats, draws: Floats, column: Floats, *, generator: np.random.Generator
) -> Check:
    unit = float(column.std()) or 1.0
    below, equal = (draws < y).sum(0), (draws == y).sum(0)
    rank = (below + generator.random(len(y)) * (equal + 1)) / (len(draws) + 1)
    others = generator.choice(column, 200)[:, None] + np.zeros(len(y))
    return Check(
        name,
        len(y),
        float(np.sqrt(((guess - y) ** 2).mean())) / unit,
        float(np.sqrt(((column.mean() - y) ** 2).mean())) / unit,
        crps(draws, y) / unit,
        crps(others, y) / unit,
        rank,
    )
