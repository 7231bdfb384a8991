"""Looking for formulas among columns of numbers: y = c_0 + c_1 a + c_2 b …, and y = c a^p b^q with p, q halves.

One source, two sources (every pair, up to ``MAX_PAIRED`` columns of numbers), and more by orthogonal matching
pursuit: the column that explains most of what is left is added until nothing is left. Coefficients are those with the
fewest digits that agree; agreeing is meeting y up to half a unit of its last decimal.

How far off is as good as met is told by how y varies and by its last decimal, never by how large it is: nanoseconds
since 1970 are not a thousand million times the seconds, though they are up to 1e-9 of their size.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import gammaln

from anyfill.tables.columns import Floats
from anyfill.tables.formulas import FUNCTIONS
from anyfill.tables.functions import Function, Reckoned
from anyfill.tables.kinds import Variable

EVIDENCE = 25.0
"""Nats, in each half of the rows, that agreeing is no accident (see ``discovery``)."""
MIN_ROWS = 60
MAX_PAIRED = 30
MAX_TERMS = 8
_ROWS = 2000  # that are looked at
_SCREENED = 10  # rows behind the first look at a formula
_LARGEST = 1e60  # products of columns with greater values are no numbers any more
_ULPS = 16  # units in the last place of the largest value by which computing may be off
_MAX_TRIED = 40  # sets of columns that pass it and are looked at again


def evidence(values: Floats) -> float:
    """log n! / (n_1! n_2! …) of values (n,)."""
    counts = np.unique(values, return_counts=True)[1]
    return float(gammaln(counts.sum() + 1) - gammaln(counts + 1).sum())


def find_formulas(columns: Sequence[Variable], own: Mapping[int, Floats]) -> dict[int, list[Function]]:
    """For columns of numbers the formula that each is, if there is one."""
    numeric = [
        j
        for j, part in own.items()
        if "`" not in columns[j].name
        and not getattr(columns[j], "period", 0.0)
        and float(np.abs(part[~np.isnan(part)]).max(initial=0.0)) < _LARGEST
    ]
    found: dict[int, list[Function]] = {}
    if len(numeric) < 2:
        return found
    values = np.column_stack([own[j] for j in numeric])
    some = np.linspace(0, len(values) - 1, min(len(values), _ROWS)).round().astype(np.int64)
    values, names = values[some], [columns[j].name for j in numeric]
    if len(values) < MIN_ROWS:
        return found
    positive = np.array([bool((part[~np.isnan(part)] > 0).all()) for part in values.T])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(positive, np.log(values), math.nan)
    for k, t in enumerate(numeric):
        y = values[:, k]
        there = ~np.isnan(y)
        if there.sum() < MIN_ROWS or len(np.unique(y[there])) < 3:
            continue
        slack = _slack(y)
        tries = [(values, np.full(len(y), slack))]
        if positive[k]:
            tries.append((logs, slack / y))
        for table, allowed in tries:
            log = table is logs
            made = _search(table, k, 2 * allowed, partial(_confirmed, values, k, names, log=log))
            if made is not None:
                found[t] = [made]
                break
    return found


def _search(
    values: Floats, k: int, allowed: Floats, confirmed: Callable[[tuple[int, ...]], Reckoned | None]
) -> Reckoned | None:
    """The first set of columns of which column k (of values (B, Q)) is linear up to ``allowed`` (B,)."""
    others = [q for q in range(values.shape[1]) if q != k and not np.isnan(values[:, q]).all()]
    for size in (1, 2) if len(others) < MAX_PAIRED else (1,):
        for chosen in islice(_screened(values, k, allowed, list(combinations(others, size))), _MAX_TRIED):
            if (made := confirmed(chosen)) is not None:
                return made
    chosen = _pursued(values, k, allowed, others)
    return confirmed(chosen) if len(chosen) > 2 else None


def _screened(values: Floats, k: int, allowed: Floats, sets: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Those of the sets of columns of which column k is linear in a few rows, of many different y, that have all."""
    if not sets:
        return
    head = _diverse(values[:, k])[: 8 * _SCREENED]
    some, there = values[head], ~np.isnan(values[head])
    index = np.array(sets)
    full = there[:, index].all(2) & there[:, k, None]  # (rows, sets)
    enough = full.sum(0) >= _SCREENED
    index, full = index[enough], full[:, enough]
    if not len(index):
        return
    rows = np.argsort(~full, axis=0, kind="stable")[:_SCREENED].T  # (sets, rows)
    y = some[rows, k]
    floor = _rounding(y, axis=1)
    y = y - y.mean(1, keepdims=True)  # centred, so that nothing is lost where values are large and alike
    design = np.stack([some[rows, index[:, i, None]] for i in range(index.shape[1])], 2)
    design = design - design.mean(1, keepdims=True)
    basis = np.linalg.qr(design / np.maximum(np.abs(design).max(1, keepdims=True), 1e-300))[0]
    error = np.abs((basis @ (basis.swapaxes(1, 2) @ y[:, :, None]))[:, :, 0] - y)
    close = (error <= allowed[head][rows] + np.maximum(1e-7 * np.ptp(y, axis=1, keepdims=True), floor)).all(1)
    for place in np.flatnonzero(close):
        yield tuple(index[place].tolist())


def _diverse(y: Floats) -> NDArray[np.int64]:
    """The rows that have a y, each different one before any comes again."""
    there = np.flatnonzero(~np.isnan(y))
    _, which = np.unique(y[there], return_inverse=True)
    order = np.argsort(which, kind="stable")
    first = np.concatenate([[0], np.flatnonzero(np.diff(which[order])) + 1])
    turn = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    return there[order[np.argsort(turn, kind="stable")]]


def _pursued(values: Floats, k: int, allowed: Floats, others: Sequence[int]) -> tuple[int, ...]:
    """Columns that explain column k, each what those before it leave, until nothing is left; () if something is."""
    chosen: tuple[int, ...] = ()
    y = values[:, k]
    rest, rows = y - np.nanmean(y), ~np.isnan(y)
    for _ in range(min(MAX_TERMS, len(others))):
        best, gain = -1, 0.3
        for q in others:
            both = rows & ~np.isnan(values[:, q])
            if q not in chosen and both.sum() >= MIN_ROWS:
                a, r = values[both, q], rest[both]
                deviation = float(a.std() * r.std())
                found = abs(float(((a - a.mean()) * (r - r.mean())).mean())) / deviation if deviation > 0 else 0.0
                best, gain = (q, found) if found > gain else (best, gain)
        if best < 0:
            return ()
        chosen = (*chosen, best)
        rows = rows & ~np.isnan(values[:, best])
        if rows.sum() < MIN_ROWS:
            return ()
        weights = _least_squares(values[rows][:, chosen], y[rows])
        rest = np.full(len(y), math.nan)
        rest[rows] = y[rows] - (weights[0] + values[rows][:, chosen] @ weights[1:])
        if (np.abs(rest[rows]) <= allowed[rows] + np.maximum(1e-7 * np.ptp(y[rows]), _rounding(y[rows]))).all():
            return chosen
    return ()


def _rounding(y: Floats, axis: int | None = None) -> Floats:
    """How far off computing may be by the digits that a number has."""
    return _ULPS * np.spacing(np.abs(y).max(axis=axis, keepdims=True))


def _near(y: Floats, unit: float = math.inf) -> float:
    """How far off is as good as met: 1e-9 of how far values (n,) reach, within half a unit of the last decimal."""
    return max(min(1e-9 * float(np.ptp(y)), 0.5 * unit), _rounding(y).item())


def _decimals(y: Floats) -> int | None:
    """The fewest decimals that write all values; None if six do not."""
    y = y[~np.isnan(y)]
    for decimals in range(7):
        if np.abs(np.round(y, decimals) - y).max(initial=0.0) <= _near(y, 1e-3 * 10.0**-decimals):
            return decimals
    return None


def _slack(y: Floats) -> float:
    """How far off a formula may be: half a unit of the last decimal, if that is small beside how y varies, else 0."""
    decimals, there = _decimals(y), y[~np.isnan(y)]
    unit = math.inf if decimals is None else 10.0**-decimals
    return (0.5 * unit * (1 + 1e-6) if unit < 0.1 * float(there.std()) else 0.0) + _near(there, unit)


def _confirmed(own: Floats, k: int, names: Sequence[str], chosen: tuple[int, ...], *, log: bool) -> Reckoned | None:
    """The formula of column k (of own units (B, Q)) in the chosen columns, if both halves of the rows agree."""
    rows = np.flatnonzero(~np.isnan(own[:, [k, *chosen]]).any(1))
    if len(rows) < MIN_ROWS:
        return None
    parts, y = own[rows][:, chosen], own[rows, k]
    decimals, slack = _decimals(own[:, k]), _slack(own[:, k])
    half = rows % 2 == 0
    sources = tuple(names[q] for q in chosen)
    values = {name: parts[:, i] for i, name in enumerate(sources)}
    texts: list[str] = []
    for fit in (half, ~half):
        if min(fit.sum(), (~fit).sum()) < MIN_ROWS // 2 or evidence(y[~fit]) < EVIDENCE:
            return None
        found = list((_power if log else _linear)(parts[fit], y[fit], sources, slack))
        if not found:
            return None
        texts += found
    for text in sorted(dict.fromkeys(texts), key=len):  # each is of one half; what agrees in both is the column
        made = Reckoned(names[k], sources, len(rows), text, decimals)
        if bool((np.abs(made.own(values) - y) <= _near(y, math.inf if decimals is None else 10.0**-decimals)).all()):
            return made
    return None


def _linear(parts: Floats, y: Floats, names: Sequence[str], slack: float) -> Iterator[str]:
    """y = c_0 + sum c_i parts_i with as few digits as agree; nothing if no digits do, or a part does not matter."""
    design = np.column_stack([np.ones(len(y)), parts])
    unit = np.maximum(np.abs(design).max(0), 1e-300)
    squares = _least_squares(parts, y)
    if not (np.abs(design @ squares - y) <= 2 * slack).all():
        return
    if (np.abs(squares[1:]) * parts.std(0) <= 4 * slack).any():
        return
    tried = [squares]
    for exact in tried:
        weights = _tidied(exact, design, y, slack)
        if weights is not None and (weights[1:] != 0).all():
            yield _sum(weights, names)
        if len(tried) == 1 and slack > 1e-8 * np.ptp(y) and (nearest := _nearest(design / unit, y)) is not None:
            tried.append(nearest / unit)


def _least_squares(parts: Floats, y: Floats) -> Floats:
    """(1 + Q,): constant and coefficients of parts (n, Q) that come nearest to y, found around their means."""
    means, unit = parts.mean(0), np.maximum(parts.std(0), 1e-300)
    weights = np.linalg.lstsq((parts - means) / unit, y - y.mean(), rcond=None)[0] / unit
    return np.append(y.mean() - means @ weights, weights)


def _nearest(design: Floats, y: Floats) -> Floats | None:
    """The coefficients whose greatest error is least, by linear programming: rounding errs evenly, not normally."""
    rows, count = design.shape
    bound = -np.ones((rows, 1))
    sides = np.vstack([np.hstack([design, bound]), np.hstack([-design, bound])])
    free = [(None, None)] * count + [(0.0, None)]
    found = linprog(np.append(np.zeros(count), 1.0), A_ub=sides, b_ub=np.concatenate([y, -y]), bounds=free)
    return found.x[:-1] if found.success else None


def _tidied(exact: Floats, design: Floats, y: Floats, slack: float) -> Floats | None:
    """Coefficients with the fewest digits that meet y, without a constant if that will do; None if none do."""
    for digits in (1, 2, 3, 4, 5, 6, 8, 10, 12):
        rounded, turned = (
            np.array([how(one, digits) if one else 0.0 for one in exact.tolist()]) for how in (_short, _short_below)
        )
        for weights in (np.append(0.0, rounded[1:]), np.append(0.0, turned[1:]), rounded):
            if (np.abs(design @ weights - y) <= slack).all():
                return weights
    return None


def _short(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _short_below(value: float, digits: int) -> float:
    """The reciprocal of a short number: 1 / 2.54."""
    return 1.0 / _short(1.0 / value, digits)


def _power(parts: Floats, y: Floats, names: Sequence[str], slack: float) -> Iterator[str]:
    """y = c prod parts_i^p_i, p_i multiples of 1/2; nothing if that does not meet y."""
    design = np.column_stack([np.ones(len(y)), np.log(parts)])
    found = np.linalg.lstsq(design, np.log(y), rcond=None)[0]
    powers = np.round(2 * found[1:]) / 2
    if (powers == 0).any() or (np.abs(powers) > 4).any() or (np.abs(powers - found[1:]) > 0.05).any():
        return
    with np.errstate(over="ignore"):
        base = np.prod(parts**powers, axis=1)
    # c meets every row within its slack: the middle of what is allowed, with the fewest digits inside.
    low, high = float(((y - slack) / base).max()), float(((y + slack) / base).min())
    if not low <= high:
        return
    for digits in (1, 2, 3, 4, 5, 6, 8, 10, 12, 17):
        factor = float(f"{(low + high) / 2:.{digits - 1}e}")
        if low <= factor <= high:
            yield _product(factor, powers, names)
            return


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name not in FUNCTIONS else f"`{name}`"


def _sum(weights: Floats, names: Sequence[str]) -> str:
    """The text of c_0 + sum c_i name_i."""
    text = ""
    for weight, name in zip(weights[1:].tolist(), names):
        sign = ("-" if weight < 0 else "") if not text else (" - " if weight < 0 else " + ")
        text += f"{sign}{_times(abs(weight), _quoted(name))}"
    constant = float(weights[0])
    return text if constant == 0 else f"{text}{' - ' if constant < 0 else ' + '}{abs(constant):.12g}"


def _times(weight: float, name: str) -> str:
    """The text of c name, where c is as ``_tidied`` has it; 1 / 86400 divides, so that halves are rounded alike."""
    short = f"{weight:.12g}"
    if float(short) != weight:
        return f"{name} / {1 / weight:.12g}"
    return name if weight == 1 else f"{short} * {name}"


def _product(factor: float, powers: Floats, names: Sequence[str]) -> str:
    """The text of c prod name_i^p_i."""
    pairs = list(zip(powers.tolist(), names))

    def word(power: float, name: str) -> str:
        return _quoted(name) + ("" if power == 1 else f"**{power:g}")

    above = [word(power, name) for power, name in pairs if power > 0]
    below = [word(-power, name) for power, name in pairs if power < 0]
    text = " * ".join([*([] if factor == 1 and above else [f"{factor:.17g}"]), *above])
    return text + "".join(f" / {one}" for one in below)
