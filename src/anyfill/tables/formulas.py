"""Formulas of columns: ``weight / height**2`` as a tree that is reckoned, never run.

A formula has names of columns (in backticks where they are no plain words: ``\\`body mass\\` / 2``), numbers,
+ - * / ** and brackets, and the functions of ``FUNCTIONS``; ² and ³ are powers. It is read as a tree and reckoned in
float64; nothing in it is ever run as code.
"""

import ast
import functools
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anyfill.checks import refuse
from anyfill.tables.columns import Floats

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{"log": np.log, "log10": np.log10, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs, "round": np.round},
    "floor": np.floor,
    "min": lambda *parts: functools.reduce(np.minimum, parts),
    "max": lambda *parts: functools.reduce(np.maximum, parts),
}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
SAMPLE = "weight / height**2"


@dataclass(frozen=True, slots=True)
class Formula:
    """What a passive column is.

    Attributes:
        name: of the column.
        text: as it was written.
        parts: the columns that it is made of, in the order in which they come up.
    """

    name: str
    text: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, name: str, text: str) -> "Formula":
        """Read a formula; ValueError if it is none."""
        tree, names = _tree(name, text)
        with np.errstate(all="ignore"):
            _reckoned(name, text, tree, names, {part: np.ones(1) for part in names.values()})
        parts = tuple(dict.fromkeys(names[node.id] for node in _names(tree) if node.id in names))
        if not parts:
            raise refuse(what_of(name), expected=f"columns, such as {SAMPLE}", got=repr(text))
        if name in parts:
            raise refuse(what_of(name), expected="other columns", got=repr(text))
        return cls(name, text, parts)

    def reckon(self, values: Mapping[str, Floats]) -> Floats:
        """(B,) from the values (B,) of the parts; NaN where there is no finite number."""
        tree, names = _tree(self.name, self.text)
        with np.errstate(all="ignore"):
            found = np.asarray(_reckoned(self.name, self.text, tree, names, values), dtype=np.float64)
        found = np.broadcast_to(found, np.shape(values[self.parts[0]]))
        return np.where(np.isfinite(found), found, np.nan)


def read_equations(said: list[str]) -> dict[str, str]:
    """What ``--passive`` says: ``NAME = FORMULA`` each."""
    found: dict[str, str] = {}
    for one in said:
        name, equals, text = (part.strip() for part in one.partition("="))
        if not equals or not name or not text:
            raise refuse("--passive", expected=f"NAME = FORMULA, such as 'bmi = {SAMPLE}'", got=repr(one))
        if name in found:
            raise refuse("--passive", expected="each name once", got=f"{name!r} twice")
        found[name] = Formula.of(name, text).text
    return found


def what_of(name: str) -> str:
    """How a refusal calls a formula."""
    return f"formula of column {name!r}"


def _tree(name: str, text: str) -> tuple[ast.expr, dict[str, str]]:
    """The formula as a tree, and for the names in it the columns that they stand for."""
    quoted: dict[str, str] = {}

    def stand_in(found: re.Match[str]) -> str:
        key = f"_column_{len(quoted)}"
        quoted[key] = found[1]
        return key

    plain = re.sub(r"`([^`]+)`", stand_in, text).replace("²", "**2").replace("³", "**3").replace("^", "**")
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refuse(what_of(name), expected=f"a formula such as {SAMPLE}", got=repr(text)) from None
    names = {node.id: quoted.get(node.id, node.id) for node in _names(tree) if node.id not in FUNCTIONS}
    return tree, names


def _names(tree: ast.expr) -> list[ast.Name]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Name)]


def _reckoned(name: str, text: str, node: ast.expr, names: Mapping[str, str], values: Mapping[str, Any]) -> Any:
    """What a tree comes to; only what the top of this file names is in it."""

    def at(part: ast.expr) -> Any:
        return _reckoned(name, text, part, names, values)

    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return np.float64(number)
        case ast.Name(id=key) if key in names:
            return values[names[key]]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](at(left), at(right))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _SIGNS:
            return _SIGNS[type(op)](at(operand))
        case ast.Call(func=ast.Name(id=key), args=args, keywords=[]) if key in FUNCTIONS and args:
            if len(args) > 1 and key not in ("min", "max"):
                raise refuse(what_of(name), expected=f"one number for {key}", got=repr(text))
            return FUNCTIONS[key](*map(at, args))
        case _:
            raise refuse(
                what_of(name), expected=f"numbers, columns, + - * / ** and {', '.join(FUNCTIONS)}", got=repr(text)
            )
