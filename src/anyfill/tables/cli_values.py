"""Values of the options of table commands, read and checked; rankings and answers as commands print them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anyfill.checks import refuse
from anyfill.tables.files import format_of
from anyfill.tables.recipes import NAMES
from anyfill.tables.schema import Declaration
from anyfill.tables.table import Category, Number, Table

if TYPE_CHECKING:
    from anyfill.tables.ask import Answer
    from anyfill.tables.measure import NextFeature

_FIGURES = ("value", "median", "low", "high")


def require_target(path: Path, suffixes: Sequence[str] = ()) -> None:
    """Say before the work begins that its result could not be written; ``suffixes`` of what is no table."""
    if not suffixes:
        format_of(path)
    elif path.suffix.lower() not in suffixes:
        raise refuse("output", expected=f"a name that ends in {suffixes[0]}", got=path.name)
    if path.is_dir():
        raise refuse(f"{path}", expected="the name of a file", got="a folder")
    parent = path.resolve().parent
    if parent.exists() and not parent.is_dir():
        raise refuse(f"{parent}", expected="a folder", got="a file")


def require_recipe(name: str) -> None:
    """ValueError if there is no recipe of this name."""
    if name not in NAMES:
        raise refuse("--recipe", expected=f"one of {', '.join(NAMES)}", got=repr(name))


def names_in(words: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in words.split(",") if name.strip()]


def read_columns(columns: Sequence[str]) -> dict[str, str]:
    """What is declared of columns, ``NAME=KIND`` each."""
    said: dict[str, str] = {}
    for one in columns:
        name, equals, kind = one.rpartition("=") if "ordinal:" not in one else one.partition("=")
        if not equals or not name or not kind:
            raise refuse("--column", expected="NAME=KIND, such as age=int", got=repr(one))
        if name in said:
            raise refuse("--column", expected="each name once", got=f"{name!r} twice")
        try:
            Declaration.of(name, kind)
        except ValueError as error:
            raise ValueError(f"--column: {error}") from error
        said[name] = kind
    return said


def read_given(table: Table, said: list[str]) -> dict[str, Any]:
    """What ``--given`` says, with the values as the table has them."""
    given: dict[str, Any] = {}
    for one in (piece for text in said for piece in re.split(r",(?=[^,=]+=)", text) if piece.strip()):
        name, equals, value = (part.strip() for part in one.partition("="))
        if not equals or not value:
            raise refuse("given", expected="NAME=VALUE, such as age=40", got=repr(one))
        if name in given:
            raise refuse("given", expected="each column once", got=f"{name!r} twice")
        column = table.columns[table.index(name)]
        if isinstance(column, Number) and not column.text:
            try:
                given[name] = float(value)
            except ValueError:
                raise refuse(f"given {name}", expected="a number", got=repr(value)) from None
        elif isinstance(column, Category):
            levels = {str(level).lower(): level for level in column.values if not isinstance(level, str)}
            given[name] = levels.get(value.lower(), value)
        else:
            given[name] = value
    return given


def answer_json(answer: "Answer", table: Table) -> dict[str, Any]:
    """An answer as JSON can keep it: numbers are numbers, also where the table has them as text."""
    found = answer.to_dict()
    for name in (column.name for column in table.columns if isinstance(column, Number) and column.text):
        for fields, keys in ((found["given"], (name,)), (found["answers"].get(name, {}), _FIGURES)):
            fields |= {key: float(fields[key]) for key in keys if fields.get(key) is not None}
    return found


def read_costs(path: Path, table: Table) -> dict[str, float]:
    """The costs in a JSON file, by the names of columns."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError):
        raise refuse(f"{path}", expected='JSON such as {"age": 0.5}', got="something else") from None
    if not isinstance(found, dict):
        raise refuse(f"{path}", expected='names with their costs, {"age": 0.5}', got="something else")
    costs: dict[str, float] = {}
    for name, cost in cast("dict[str, Any]", found).items():
        table.index(name)
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 < cost < float("inf"):
            raise refuse(f"cost of {name!r}", expected="a number above 0", got=repr(cost))
        costs[name] = float(cost)
    return costs


def rankings(found: "NextFeature") -> str:
    """What to measure next, as an aligned table for each row."""
    lines: list[str] = []
    for row, best in enumerate(found.best):
        ranking = found.ranking(row)
        wide = max([len("column"), *(len(name) for name, *_ in ranking)])
        if len(found.best) > 1:
            lines.append(f"row {row + 1}")
        lines.append(f"{'column':<{wide}}  {'gain':>8}  {'error':>7}  {'cost':>7}  {'gain/cost':>9}")
        for name, gain, error, cost in ranking:
            lines.append(f"{name:<{wide}}  {gain:8.3f}  {error:7.3f}  {cost:7g}  {gain / cost:9.3f}")
        verdict = "stop: nothing left is worth its cost" if best is None else f"measure {best}"
        lines.append(f"about {', '.join(found.target)}: {verdict} ({found.basis(row)})")
    return "\n".join(lines)
