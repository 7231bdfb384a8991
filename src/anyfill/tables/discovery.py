"""Finding columns that are functions of others: on one half of the rows, held against the other half, both ways round.

A candidate (``functions``: a recoding, steps, a formula) is read off one half of the rows that have all its columns,
and asked about the other half. It is a function of the table if

    no row disagrees                                          in either half
    it answers ``MIN_ANSWERED`` of the rows                   the others have levels, or lie between values, not seen
    agreeing is no accident                                   evidence of ``EVIDENCE`` nats at least in each half

**Evidence.** Were the column unrelated to its sources, every order of its values over the rows would be as likely as
any other, and at most one in  n! / (n_1! n_2! …)  of them agrees in n rows with n_k of each value. The logarithm of
that is the evidence: 1000 rows with five of a rare level have 29.6 nats, 60 rows of two levels, half each, 39. So one
candidate agrees by chance with a probability of e^-25 = 1.4e-11 at most, and a table of 100 columns, which has 10^4
candidates of one source and 10^6 of two, has a false alarm with 1.4e-5 at most. What relates *nearly* as a function
does is another matter: no disagreement in n rows says that fewer than 3/n of all rows disagree (95 %), hence
``Function.doubt``.

Formulas are looked for in ``anyfill.tables.formula_search``, and confirmed in the same way.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from anyfill.rows import Rows
from anyfill.tables.columns import Floats
from anyfill.tables.formula_search import EVIDENCE, MIN_ROWS, evidence, find_formulas
from anyfill.tables.frames import Frame
from anyfill.tables.functions import Function, Recoding, Steps, answered, is_numeric
from anyfill.tables.kinds import Ignored, Variable
from anyfill.tables.numbers import Number, read_numbers
from anyfill.tables.table import Table

MIN_ANSWERED = 0.8
MAX_ROWS = 10_000
"""Rows that are looked at, evenly spaced."""
MAX_PIECES = 64
MAX_NOISE = 0.02
"""Standard deviations that a function may be off by rounding: the floor of a model's own scales."""
MAX_EACH = 3
"""Functions of one column that are kept: where one source is missing, another may be there."""
_GLANCE = 200  # rows that rule most candidates out
_MAX_PAIRS = 10_000  # of target and source that are looked at beyond that
_PER_PIECE = 8  # rows, on average, of a piece or a level

Answering = Callable[[Floats], Floats]


def find_functions(columns: Sequence[Variable], x: Floats, own: Mapping[int, Floats]) -> tuple[Function, ...]:
    """The functions among columns.

    Args:
        columns: what they are.
        x: standardised values and codes (B, N); NaN = missing.
        own: for the number of each column of numbers its values (B,) in own units; NaN = missing.
    """
    some = np.linspace(0, len(x) - 1, min(len(x), MAX_ROWS)).round().astype(np.int64) if len(x) else []
    x = np.asarray(x, dtype=np.float64)[some]
    used = [j for j, column in enumerate(columns) if not isinstance(column, Ignored)]
    orders = {j: np.argsort(x[:, j], kind="stable") for j in used if columns[j].size == 0}
    reckoned = find_formulas(columns, {j: own[j][some] for j in used if j in own})
    pairs = _at_a_glance(columns, x, used)
    found: list[Function] = []
    for t in used:
        single = [one for s in pairs.get(t, ()) for one in _of_one(columns, x, t, s, orders.get(s))]
        # The one that answers most rows first; among equals the one of the first column, as sorting is stable.
        each = [*reckoned.get(t, []), *sorted(single, key=lambda one: -one.confirmed)]
        found += [made for one in each[:MAX_EACH] if (made := _in_rows(one, columns, x, t)) is not None]
    return tuple(found)


def with_functions(table: Table, frame: Frame, rows: Rows, origin: Tensor | None = None) -> Table:
    """The table, with the functions among its columns that these rows of it confirm.

    ``origin`` (B,) says of which row each is a copy: copies confirm nothing.
    """
    x = np.where(rows.present.numpy(), rows.x.double().numpy(), math.nan)
    own = numbers_of(table.columns, frame)
    if origin is not None:
        first = np.unique(origin.numpy(), return_index=True)[1]
        x, own = x[first], {j: values[first] for j, values in own.items()}
    return replace(table, functions=find_functions(table.columns, x, own))


def numbers_of(columns: Sequence[Variable], frame: Frame) -> dict[int, Floats]:
    """For each column of numbers, or of codes that are numbers, its values (B,) in own units; NaN = missing."""
    found: dict[int, Floats] = {}
    for j, column in enumerate(columns):
        if is_numeric(column):
            style = column.style if isinstance(column, Number) else None
            found[j] = read_numbers(frame[column.name], unknown="missing", style=style)
    return found


def _in_rows(function: Function, columns: Sequence[Variable], x: Floats, t: int) -> Function | None:
    """The function, and how far off the 32 bits of rows leave it; None if that is too far to be called one."""
    known = ~np.isnan(x)
    known[:, t] = False
    said = answered((function,), columns, np.nan_to_num(x), known)[0][:, t]
    both = ~np.isnan(said) & ~np.isnan(x[:, t])
    noise = float(np.abs(said - x[:, t])[both].max(initial=0.0))
    return replace(function, noise=noise) if noise <= (MAX_NOISE if columns[t].size == 0 else 0.0) else None


def _of_one(
    columns: Sequence[Variable], x: Floats, t: int, s: int, order: NDArray[np.int64] | None
) -> Iterator[Function]:
    """Column t as a recoding or as steps of column s; nothing where it is neither."""
    coded = order is None
    rows = np.arange(len(x)) if order is None else order
    source, target = x[rows, s], x[rows, t]
    there = ~(np.isnan(source) | np.isnan(target))
    source, target, number = source[there], target[there], rows[there]
    count = len(source)
    if count < MIN_ROWS or (coded and columns[s].size < 2):
        return
    most = min(MAX_PIECES, count // _PER_PIECE)
    if len(np.unique(target)) not in range(2, most + 1):
        return
    halves = number % 2 == 0
    agreed = 0
    for fit in (halves, ~halves):
        made = _fitted(source[fit], target[fit], coded, most)
        if made is None:
            return
        said = made(source[~fit])
        answers = ~np.isnan(said)
        if (said != target[~fit])[answers].any() or answers.mean() < MIN_ANSWERED:
            return
        if evidence(target[~fit][answers]) < EVIDENCE:
            return
        agreed += int(answers.sum())
    names = columns[t].name, (columns[s].name,), agreed
    if coded:
        table = _levels(source, target)
        if table is not None:
            yield Recoding(*names, answers=tuple(table.get(code, math.nan) for code in range(columns[s].size)))
        return
    pieces = _pieces(source, target)
    if pieces is not None and len(pieces[0]) <= most:
        yield Steps(*names, *(tuple(part.tolist()) for part in pieces))


def _at_a_glance(columns: Sequence[Variable], x: Floats, used: Sequence[int]) -> dict[int, list[int]]:
    """For each target the sources that a few rows do not rule out, in order, at most ``_MAX_PAIRS`` pairs in all.

    A level with two answers rules out a recoding; as many changes as a third of the rows, ascending, rules out steps.
    """
    some = x[np.linspace(0, len(x) - 1, min(len(x), _GLANCE)).round().astype(np.int64)] if len(x) else x
    there = ~np.isnan(x)
    telling = [t for t in used if there[:, t].sum() >= MIN_ROWS and evidence(x[there[:, t], t]) >= 2 * EVIDENCE]
    found: dict[int, list[int]] = {}
    left = _MAX_PAIRS
    for s in used:
        rows = some[~np.isnan(some[:, s])]
        if not len(rows) or columns[s].size == 1:
            continue
        rows = rows[np.argsort(rows[:, s], kind="stable")]
        targets = rows[:, telling]
        if columns[s].size:
            first = np.flatnonzero(np.append(True, np.diff(rows[:, s]) != 0))
            least, most = (how.reduceat(targets, first, axis=0) for how in (np.fmin, np.fmax))
            fits = ~(least < most).any(0)  # NaN, where a level has no answer, is neither
        else:
            both = ~(np.isnan(targets[1:]) | np.isnan(targets[:-1]))
            fits = ((targets[1:] != targets[:-1]) & both).sum(0) <= np.maximum(both.sum(0) // 3, 1)
        chosen = [t for t, fit in zip(telling, np.atleast_1d(fits).tolist()) if fit and t != s][:left]
        left -= len(chosen)
        for t in chosen:
            found.setdefault(t, []).append(s)
    return found


def _fitted(source: Floats, target: Floats, coded: bool, most: int) -> Answering | None:
    """The function of these rows; None if they disagree among themselves, or take too many pieces."""
    if coded:
        table = _levels(source, target)
        if table is None:
            return None
        answers = np.full(int(max(table)) + 2, math.nan)
        answers[list(table)] = list(table.values())
        return lambda other: answers[np.minimum(other, len(answers) - 1).astype(np.int64)]
    pieces = _pieces(source, target)
    if pieces is None or len(pieces[0]) > most:
        return None
    steps = Steps("target", ("source",), 0, *(tuple(part.tolist()) for part in pieces))
    return lambda other: steps.encoded({}, {"source": other})


def _levels(source: Floats, target: Floats) -> dict[int, float] | None:
    """For each code the one value that goes with it; None if there are two."""
    codes = source.astype(np.int64)
    values, which = np.unique(target, return_inverse=True)
    low, high = np.full(int(codes.max()) + 1, len(values)), np.full(int(codes.max()) + 1, -1)
    np.minimum.at(low, codes, which)
    np.maximum.at(high, codes, which)
    seen = high >= 0
    if (low != high)[seen].any():
        return None
    return {int(code): float(values[low[code]]) for code in np.flatnonzero(seen)}


def _pieces(source: Floats, target: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Least and greatest source and the value of each piece, rows ascending by source; None if one value has two."""
    new = np.concatenate([[True], target[1:] != target[:-1]])
    start = np.flatnonzero(new)
    end = np.append(start[1:], len(source)) - 1
    low, high = source[start], source[end]
    if (low[1:] <= high[:-1]).any():
        return None
    return low, high, target[start]
