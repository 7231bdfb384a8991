"""Straight lines beside a model: for means in own units, what one joint Gaussian of the *unwarped* columns expects.

A model of warped columns (logarithms of areas, say) bends every relation as the warp does. Where relations are straight
in own units a plain joint Gaussian errs elsewhere than the model, and the mean of both errs least:

    mean_j = (1 - w_j) E_model[x_j | known] + w_j E_gaussian[x_j | known]

Only means that are filled in are corrected like this; distributions, intervals and draws are the model's alone.

**Weights** are by cells that neither has seen: for each fold of cells a Gaussian is fitted without it. With a the
model's mean of a left-out cell, b the Gaussian's and x its value, all in own standard deviations, the squared error
sum (x - a - w (b - a))^2 is least at

    w_j = sum (b - a)(x - a) / sum (b - a)^2,

over the cells of column j, drawn towards that of all columns as if ``PRIOR_CELLS`` more cells had said so, and clipped
to [0, ``MAX_WEIGHT``]. The model's part here has fewer members than it will have (``cross_fit.Unseen``), so w errs
upwards a little.
"""

import base64
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.tables.cells import mean_of_part, read_cells, read_parameters
from anyfill.tables.columns import Floats
from anyfill.tables.cross_fit import Unseen
from anyfill.tables.gaussian_em import gaussian_em_model, gaussian_model
from anyfill.tables.gaussian_joint import GaussianJoint
from anyfill.tables.table import Ignored, Table

FARTHEST = 1e3
"""Values are given to the Gaussian as at most so many deviations away."""
MAX_FEATURES = 64
"""The most features (numbers count one, categories one for each level) for which lines are fitted."""
MIN_CELLS = 200
"""With fewer left-out cells nothing is known about the weights."""
PRIOR_CELLS = 50.0
MAX_WEIGHT = 0.75
_LARGE = 1e100  # own units beyond this are left to the warps
_TOLERANCE = 1e-2  # nats a row, where a Gaussian is only weighed


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A joint Gaussian of own units, and how much it counts.

    Attributes:
        model: of columns standardised by location and scale, without warps.
        location, scale: float64 (N,).
        weight: float64 (N,), w_j; 0 for what is no number.
    """

    model: Model
    location: Floats
    scale: Floats
    weight: Floats

    def blend(self, table: Table, x: Tensor, known: Tensor, asked: Tensor, means: Tensor) -> Tensor:
        """float32 (B, N): means (B, N) of the asked cells, standardised and warped, drawn towards the Gaussian's."""
        wanted = asked & torch.from_numpy(self.weight > 0).to(asked.device)
        straight = self.expected(table, x, known, wanted)
        out = means.clone()
        for j in np.flatnonzero(self.weight):
            number, cells = table.number(int(j)), wanted[:, j].nonzero()[:, 0]
            if number is None or not len(cells):
                continue
            own = number.decode(means[cells, j].double().cpu().numpy(), rounded=False)
            other = straight[cells, j].double().cpu().numpy() * self.scale[j] + self.location[j]
            mixed = np.clip((1 - self.weight[j]) * own + self.weight[j] * other, number.low, number.high)
            out[cells, j] = torch.from_numpy(number.encode(mixed)).to(out)
        return out

    def expected(self, table: Table, x: Tensor, known: Tensor, asked: Tensor) -> Tensor:
        """float32 (B, N): what the Gaussian expects of asked numbers, in its own standard units."""
        plain = straightened(table, x, known, self.location, self.scale)
        return read_cells(self.model, table, plain, known, asked, lambda _, marginals: marginals.mean()[:, 0])[0]

    def to(self, device: torch.device) -> "Linear":
        """The same elsewhere."""
        return Linear(self.model.to(device), self.location, self.scale, self.weight)

    def to_json(self) -> dict[str, str]:
        """All of it as text, to the last bit."""
        joint: Any = self.model.network
        parts = {"location": self.location, "scale": self.scale, "weight": self.weight}
        parts |= {name: joint.get_buffer(name).double().cpu().numpy() for name in ("mean", "covariance")}
        return {name: base64.b64encode(part.astype("<f8").tobytes()).decode("ascii") for name, part in parts.items()}

    @classmethod
    def from_json(cls, table: Table, kept: dict[str, str]) -> "Linear":
        """What ``to_json`` made; ValueError or KeyError if it is nothing of that kind."""
        parts = {name: np.frombuffer(base64.b64decode(text), dtype="<f8").copy() for name, text in kept.items()}
        model = gaussian_model(table.sizes)
        joint, mean = cast(GaussianJoint, model.network), torch.from_numpy(parts["mean"])
        joint.set_moments(mean, torch.from_numpy(parts["covariance"]).view(len(mean), len(mean)))
        return cls(model, parts["location"], parts["scale"], parts["weight"])


def straightened(table: Table, x: Tensor, known: Tensor, location: Floats, scale: Floats) -> Tensor:
    """float32 (B, N): values without their warps, standardised plainly; codes as they are; 0 where not known."""
    out = x.clone()
    for j in range(len(table.columns)):
        number = table.number(j)
        if number is not None:
            own = number.decode(x[:, j].double().cpu().numpy(), rounded=False)
            with np.errstate(over="ignore", invalid="ignore"):
                plain = np.clip(np.nan_to_num((own - location[j]) / scale[j]), -FARTHEST, FARTHEST)
            out[:, j] = torch.from_numpy(plain).to(out)
    return torch.where(known, out, torch.zeros_like(out))


def fit_linear(table: Table, rows: Rows, unseen: Unseen) -> Linear | None:
    """The Gaussian of all rows with its weights; None where the table is too wide or too small, or nothing is gained.

    Args:
        table: the columns.
        rows: their values, as the model was trained on them.
        unseen: what the model says of cells that it has not seen.
    """
    features = sum(size or 1 for size in table.sizes)
    found = {j: table.number(j) for j in range(len(table.columns))}
    numbers = [j for j, number in found.items() if number is not None and not number.period]  # no line goes round
    if features > MAX_FEATURES or len(unseen.row) < MIN_CELLS or not numbers:
        return None
    units = _units(table, rows)
    if units is None:
        return None
    location, scale = units
    plain = straightened(table, rows.x, rows.present, location, scale)
    own, other, truth = _answers(table, rows, plain, unseen, location, scale)
    weight = _weights(own, other, truth, unseen.variable.numpy(), numbers, len(table.columns))
    if not weight.any():
        return None
    return Linear(gaussian_em_model(Rows(plain, rows.present), table.sizes), location, scale, weight)


def _units(table: Table, rows: Rows) -> tuple[Floats, Floats] | None:
    """Mean and deviation (N,) of the present values of each number; None if some are too large to reckon with."""
    location, scale = np.zeros(len(table.columns)), np.ones(len(table.columns))
    for j, column in enumerate(table.columns):
        number, here = table.number(j), rows.present[:, j]
        if number is None or isinstance(column, Ignored) or not bool(here.any()):
            continue
        own = number.decode(rows.x[here, j].double().numpy(), rounded=False)
        if not (np.isfinite(own).all() and np.abs(own).max() < _LARGE):
            return None
        location[j], deviation = own.mean(), own.std()
        scale[j] = deviation if deviation > 0 else 1.0
    return location, scale


def _answers(
    table: Table, rows: Rows, plain: Tensor, unseen: Unseen, location: Floats, scale: Floats
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
        seen = Rows(plain, rows.present & (unseen.folds != fold))
        model = gaussian_em_model(seen, table.sizes, tolerance=_TOLERANCE)
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
    common = float(np.clip((apart * error).sum() / total, 0.0, MAX_WEIGHT))
    for j in numbers:
        cells = good & (variable == j)
        amount = float((apart[cells] ** 2).sum())
        if amount > 0.0:
            prior = PRIOR_CELLS * amount / cells.sum()
            weight[j] = np.clip(((apart * error)[cells].sum() + prior * common) / (amount + prior), 0.0, MAX_WEIGHT)
    return weight
