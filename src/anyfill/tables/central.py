"""How holes of codes are filled, by a model's own answers about cells that it has not seen.

The schema decides by a ridge regression whether codes are filled with their likeliest level or with the level nearest
to their mean (``coded``). Where a trained model says something of left-out cells, these decide instead, by the same
rule: the likeliest level if it is right more often, by more than chance.
"""

from collections.abc import Mapping
from dataclasses import replace

import torch

from anyfill.tables.cells import mean_of_part, read_parameters
from anyfill.tables.coded import is_more_often_right
from anyfill.tables.cross_fit import Unseen
from anyfill.tables.table import Category, Table

MIN_CELLS = 30
"""With fewer left-out cells of a column, what the schema said stays."""


def settle_codes(table: Table, unseen: Unseen) -> Table:
    """The table with codes filled as the left-out cells ask for; those with an order stay as they are."""
    cells = torch.bincount(unseen.variable, minlength=len(table.columns)).tolist()
    judged = {
        j: replace(column, central=True)
        for j, column in enumerate(table.columns)
        if isinstance(column, Category) and column.coded and not column.ordered
        if column.size > 2 and cells[j] >= MIN_CELLS
    }
    if not judged:
        return table
    asked = _with(table, judged)
    own = torch.isin(unseen.variable, torch.tensor(list(judged)))
    which, params = unseen.variable[own], unseen.params[own]
    truth = unseen.x[unseen.row[own], which]
    nearest = read_parameters(unseen.likelihood, asked, which, params, mean_of_part) == truth
    likeliest = read_parameters(unseen.likelihood, asked, which, params, lambda part, said: part.level(said)) == truth
    for j, column in judged.items():
        here = which == j
        is_better = is_more_often_right(likeliest[here].numpy(), nearest[here].numpy())
        judged[j] = replace(column, central=not is_better)
    return _with(table, judged)


def _with(table: Table, columns: Mapping[int, Category]) -> Table:
    """The table with some columns in place of its own."""
    return replace(table, columns=tuple(columns.get(j, column) for j, column in enumerate(table.columns)))
