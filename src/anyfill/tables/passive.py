"""Passive columns: ``bmi = weight / height**2`` is recomputed from what was filled, so that the table adds up.

A passive column (its formula: ``anyfill.tables.formulas``) is modelled like any other, so that where it is there it
tells about its parts; where it was missing and all its parts are numbers, its cell becomes what the formula says. Where
that is no finite number (a part is missing, a division by 0) the model's own answer stays.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from anyfill.checks import refuse
from anyfill.tables.columns import Array
from anyfill.tables.formulas import FUNCTIONS, Formula, read_equations, what_of
from anyfill.tables.frames import Frame
from anyfill.tables.numbers import Number, read_numbers
from anyfill.tables.table import Table

__all__ = ["FUNCTIONS", "Formula", "emptied", "read_equations", "read_passive", "recomputed"]


def read_passive(said: Mapping[str, str] | None, table: Table) -> list[Formula]:
    """The formulas, one that needs another's column behind that; ValueError if a column is none of the table's."""
    formulas = {name: Formula.of(name, text) for name, text in (said or {}).items()}
    for formula in formulas.values():
        for name in (formula.name, *formula.parts):
            if not isinstance(table.columns[table.index(name)], Number):
                kind = table.columns[table.index(name)].label
                expected = f"columns of numbers (--column {name}=number)"
                raise refuse(what_of(formula.name), expected=expected, got=f"{name!r}, a {kind}")
    ordered: list[Formula] = []
    while formulas:
        ready = [formula for formula in formulas.values() if not any(part in formulas for part in formula.parts)]
        if not ready:
            raise refuse("passive columns", expected="none that needs itself", got=", ".join(formulas))
        ordered += ready
        formulas = {name: formula for name, formula in formulas.items() if formula not in ready}
    return ordered


def recomputed(formulas: list[Formula], table: Table, before: Frame, filled: Any) -> Any:
    """A filled table whose passive cells that were missing are those of their formulas.

    Args:
        formulas: in order.
        table: the columns, as their cells are written.
        before: the table with its holes, under the names of ``table``.
        filled: the same, filled.
    """
    for formula in formulas:
        hole = ~before[formula.name].present
        if not hole.any():
            continue
        after = before.reread(filled)
        at = {name: number for number, name in enumerate(before.names)}
        columns = {name: after.columns[at[name]] for name in (formula.name, *formula.parts)}
        values = {name: read_numbers(columns[name], style=_number(table, name).style) for name in formula.parts}
        answers: Array = formula.reckon(values)[hole]
        number, cells = _number(table, formula.name), before[formula.name]
        if cells.kind == "text":
            answers = number.written(answers)
        filled = after.put({columns[formula.name].name: (np.flatnonzero(hole), answers)})
    return filled


def emptied(frame: Frame) -> Frame:
    """The same columns with nothing in them."""
    nothing = {kind: None if kind == "text" else np.nan for kind in ("text", "number", "bool", "datetime")}
    columns = [replace(one, values=np.full_like(one.values, nothing[one.kind])) for one in frame.columns]
    return replace(frame, columns=tuple(columns))


def _number(table: Table, name: str) -> Number:
    column = table.columns[table.index(name)]
    if not isinstance(column, Number):
        raise refuse(what_of(name), expected="a column of numbers", got=column.label)
    return column
