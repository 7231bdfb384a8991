"""A file's columns as a model has them: matched by name, in the model's order, absent ones missing in every row.

A model may be trained on a file that knows types and used on one of text, or the other way round: cells are read either
way, and ``writing_like`` makes the answers what the file's cells are.
"""

import copy
from dataclasses import replace
from typing import Any

import narwhals as nw

from anyfill.checks import refuse
from anyfill.data.frames import Frame
from anyfill.data.table import Datetime, Number, Table, Variable


def aligned(frame: Frame, table: Table) -> Frame:
    """The same rows with the columns of ``table``; ValueError if there is one that it does not know.

    A column that is absent is missing in every row: nothing is told of it. One that the table does not know is refused,
    since it may be a misspelt one.
    """
    if frame.names == table.names:
        return frame
    extra = [repr(name) for name in frame.names if name not in table.names]
    if extra:
        raise refuse("columns", expected=f"only {', '.join(table.names)}", got=f"also {', '.join(extra)}")
    wrapped = nw.from_native(frame.native, eager_only=True)
    nothing: Any = nw.lit(None, nw.String())
    wrapped = wrapped.with_columns(nothing.alias(name) for name in table.names if name not in frame.names)
    return Frame.of(wrapped.select(list(table.names)).to_native(), missing=frame.missing)


def writing_like(model: Any, frame: Frame) -> Any:
    """A ``TableModel`` with the same answers; numbers and dates are text where the cells of ``frame`` are."""
    text = {column.name: column.kind == "text" for column in frame.columns if column.present.any()}
    columns = tuple(_written(column, text.get(column.name)) for column in model.table_.columns)
    if columns == model.table_.columns:
        return model
    other = copy.copy(model)
    other.table_ = replace(model.table_, columns=columns)
    return other


def _written(column: Variable, as_text: bool | None) -> Variable:
    if as_text is None:
        return column
    if isinstance(column, Number):
        return replace(column, text=as_text)
    if isinstance(column, Datetime) and as_text != (column.format is not None):
        style = "%Y-%m-%d" if column.unit >= 86_400 else "%Y-%m-%d %H:%M:%S"
        return replace(column, format=style if as_text else None)
    return column
