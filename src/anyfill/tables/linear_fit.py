"""How much a plain joint Gaussian counts beside a model (``anyfill.tables.linear``): by cells that neither has seen.

For each fold of cells a Gaussian is fitted without it. With a the model's mean of a left-out cell, b the Gaussian's and
x its value, all in own standard deviations, the squared error sum (x - a - w (b - a))^2 is least at

    w_j = sum (b - a)(x - a) / sum (b - a)^2,

over the cells of column j, drawn towards that of all columns as if ``PRIOR_CELLS`` more cells had said so, and clipped
to [0, ``MOST``]. The model's part here has fewer members than it will have (``recipes.weighing.Unseen``), so w errs
upwards a little.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.tables.cells import read_parameters
from anyfill.tables.gaussian_em import gaussian_em_model
from anyfill.tables.linear import Floats, Linear, straightened
from anyfill.tables.means import mean_of_part
from anyfill.tables.table import Ignored, Table
from anyfill.tables.weighing import Unseen

MAX_FEATURES = 64
"""The most features (numbers count one, categories one for each level) for which this is done."""
FEWEST_CELLS = 200
"""With fewer left-out cells nothing is known about the weights."""
PRIOR_CELLS = 50.0
MAX = 0.75
_LARGE = 1e100  # own units beyond this are left to the warps


def fit_linear(table: Table, rows: Rows, unseen: Unseen) -> Linear | None:
    """The Gaussian of all rows with its weights; None where the table is too wide or too small, or nothing is gained.

    Args:
        table: the columns.
        rows: their values, as the model was trained on them.
        unseen: what the model says of cells that it has not seen.
    """
    features = sum(size or 1 for size in table.sizes)
    numbers = [j for j in range(len(table.columns)) if table.number(j) is not None]
    if features > MAX_FEATURES or len(unseen.row) < FEWEST_CELLS or not numbers:
        return None
    location, scale = _units(table, rows)
    if location is None or scale is None:
        return None
    plain = straightened(table, rows.x, rows.present, location, scale)
    own, other, truth = _answers(table, rows, plain, unseen, location, scale)
    weight = _weights(own, other, truth, unseen.variable.numpy(), numbers, len(table.columns))
    if not weight.any():
        return None
    return Linear(_gaussian(table, Rows(plain, rows.present)), location, scale, weight)


def _gaussian(table: Table, rows: Rows) -> Model:
    return gaussian_em_model(rows, table.sizes)


def _units(table: Table, rows: Rows) -> tuple[Floats | None, Floats | None]:
    """Mean and deviation (N,) of the present values of each number; None if some are too large to reckon with."""
    location, scale = np.zeros(len(table.columns)), np.ones(len(table.columns))
    for j, column in enumerate(table.columns):
        number, here = table.number(j), rows.present[:, j]
        if number is None or isinstance(column, Ignored) or not bool(here.any()):
            continue
        own = number.decode(rows.x[here, j].double().numpy(), rounded=False)
        if not (np.isfinite(own).all() and np.abs(own).max() < _LARGE):
            return None, None
        location[j], deviation = own.mean(), own.std()
        scale[j] = deviation if deviation > 0 else 1.0
    return location, scale


def _answers(
    table: Table, rows: Rows, plain: torch.Tensor, unseen: Unseen, location: Floats, scale: Floats
) -> tuple[Floats, Floats, Floats]:
    """(H,) each, in own standard deviations: the model's mean, the Gaussian's, and the value of each left-out cell."""
    variable = unseen.variable
    z = read_parameters(unseen.likelihood, table, variable, unseen.params, mean_of_part)
    x = unseen.x[unseen.row, variable]
    own, truth = np.zeros(len(z)), np.zeros(len(z))
    other = torch.zeros(len(z), dtype=torch.float64)
    for j in range(len(table.columns)):
        number, cells = table.number(j), (variable == j).nonzero()[:, 0].numpy()
        if number is not None and len(cells):
            for out, values in ((own, z), (truth, x)):
                decoded = number.decode(values[cells].double().numpy(), rounded=False)
                out[cells] = (decoded - location[j]) / scale[j]
    asked = torch.zeros_like(unseen.given)
    asked[unseen.row, variable] = True
    is_number = torch.tensor([table.number(j) is not None for j in range(len(table.columns))])
    for fold in unseen.fold.unique().tolist():
        model = _gaussian(table, Rows(plain, rows.present & (unseen.folds != fold)))
        chosen = (unseen.fold == fold).nonzero()[:, 0]
        linear = Linear(model, location, scale, np.ones(len(location)))
        answer = torch.zeros(len(unseen.x), len(location))
        answer[chosen] = linear.expected(table, unseen.x[chosen], unseen.given[chosen], asked[chosen] & is_number)
        of_fold = unseen.fold[unseen.row] == fold
        other[of_fold] = answer[unseen.row[of_fold], variable[of_fold]].double()
    return own, other.numpy(), truth


def _weights(
    own: Floats, other: Floats, truth: Floats, variable: NDArray[np.int64], numbers: list[int], count: int
) -> Floats:
    """(N,): w_j of each column of numbers; 0 elsewhere."""
    weight = np.zeros(count)
    good = np.isfinite(own) & np.isfinite(other) & np.isin(variable, numbers)
    apart, error = np.where(good, other - own, 0.0), np.where(good, truth - own, 0.0)
    total = float((apart**2).sum())
    if total == 0.0:
        return weight
    common = float(np.clip((apart * error).sum() / total, 0.0, MAX))
    for j in numbers:
        cells = good & (variable == j)
        amount = float((apart[cells] ** 2).sum())
        if amount > 0.0:
            prior = PRIOR_CELLS * amount / cells.sum()
            weight[j] = np.clip(((apart * error)[cells].sum() + prior * common) / (amount + prior), 0.0, MAX)
    return weight
