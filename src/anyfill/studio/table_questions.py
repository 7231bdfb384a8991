"""Short questions about one row of a table: a cell, what if, what to measure next."""

from collections.abc import Mapping
from shlex import quote
from typing import Any

from anyfill.interface.output import jsonable
from anyfill.studio.how import spending
from anyfill.studio.table_answers import depends_on, distributions
from anyfill.studio.table_store import OpenTable
from anyfill.studio.table_work import fit_line, python_line
from anyfill.tables.answers import answers_each
from anyfill.tables.filler import Filler

LEVEL = 0.9
DRAWN = 60
"""Draws that are shown of a cell."""


def answer_cell(table: OpenTable, row: int, column: str, seed: int) -> dict[str, Any]:
    """The distribution of a cell given the others of its row, draws, and what it depends on most."""
    model = table.require_model().model
    j = model.table_.index(column)
    given = table.given(row, {column: None})
    with spending() as spent:
        x, known = _encoded(model, given)
        own = distributions(model, x, known, LEVEL)[column] if answers_each(model.model_) else {}
        drawn = model.ask(given, [column], draws=DRAWN, seed=seed)
        found = {**own, "depends": depends_on(model, x, known, j)[:8], "draws": drawn.to_dict()["draws"][column]}
        how = spent.how(
            given=f"the {len(given)} other known cells of row {row + 1}",
            asked=column,
            kind="exact" if model.model_.is_exact else "estimate",
            why="the model's own conditional distribution; draws are from it",
            python=f"{python_line(table)}\nmodel.ask({given!r}, [{column!r}], draws={DRAWN}, seed={seed})",
            cli=_ask_line(table, given, [column]),
        )
    return jsonable({"column": column, "row": row, **found, "how": how})


def answer_whatif(table: OpenTable, row: int, changes: Mapping[str, str | None]) -> dict[str, Any]:
    """The distributions of all columns that are not given, where some values of a row are said otherwise."""
    model = table.require_model().model
    given = table.given(row, changes)
    with spending() as spent:
        x, known = _encoded(model, given)
        if answers_each(model.model_):
            found = distributions(model, x, known, LEVEL)
        else:
            found = {one.name: one.to_dict() for one in model.ask(given, level=LEVEL).columns}
        how = spent.how(
            given=", ".join(f"{name} = {value}" for name, value in given.items()) or "nothing",
            asked="all other columns, each by itself",
            kind="exact" if model.model_.is_exact else "estimate",
            why="the model's own conditional distributions",
            python=f"{python_line(table)}\nmodel.ask({given!r})",
            cli=_ask_line(table, given, list(found)),
        )
    return jsonable({"given": {name: str(value) for name, value in given.items()}, "answers": found, "how": how})


def answer_next(
    table: OpenTable, row: int, changes: Mapping[str, str | None], target: str, costs: Mapping[str, float], seed: int
) -> dict[str, Any]:
    """What to measure next in a row, to learn a target."""
    file_model = table.require_model()
    model, given = file_model.model, table.given(row, {**changes, target: None})
    with spending() as spent:
        said = {name: [given.get(name)] for name in model.table_.names}
        frame = file_model.frame(said)
        found = model.next_feature(frame, target, costs=costs, samples=200, seed=seed)
        prices = f", costs={dict(costs)!r}" if costs else ""
        how = spent.how(
            given=", ".join(f"{name} = {value}" for name, value in given.items()) or "nothing",
            asked=f"how much each other cell would tell about {target}",
            kind="estimate",
            why=f"mutual information in nats, {found.basis()}",
            python=f"{python_line(table)}\nrow = pd.DataFrame({said!r})\n"
            f"model.next_feature(row, {target!r}{prices}, samples=200, seed={seed})",
            cli=f"{fit_line(table)}\nanyfill next MODEL row.csv --target {quote(target)} --seed {seed}"
            + (" --costs costs.json" if costs else ""),
        )
    return jsonable({**found.to_dict(), "how": how})


def _encoded(model: Any, given: dict[str, Any]) -> Any:
    """Values and what is known (1, N)."""
    filler = Filler.of(model.model_, model.table_, model.linear_)
    if not given:
        return filler.nothing(1)
    row = model.table_.encode({name: [value] for name, value in given.items()}, unknown="missing", absent="missing")
    return filler.given(row)


def _ask_line(table: OpenTable, given: dict[str, Any], want: list[str]) -> str:
    said = f" --given {quote(','.join(f'{name}={value}' for name, value in given.items()))}" if given else ""
    return f"{fit_line(table)}\nanyfill ask MODEL --want {quote(','.join(want))}{said}"
