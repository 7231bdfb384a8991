"""Straight lines beside a model: for means in own units, what one joint Gaussian of the *unwarped* columns expects.

A model of warped columns (logarithms of areas, say) bends every relation as the warp does. Where relations are straight
in own units a plain joint Gaussian errs elsewhere than the model, and the mean of both errs least:

    mean_j = (1 - w_j) E_model[x_j | known] + w_j E_gaussian[x_j | known]

with w_j in [0, 1] by cells that neither had seen (``anyfill.tables.linear_fit``). Only means that are filled
in are corrected like this; distributions, intervals and draws are the model's alone.
"""

import base64
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.model import Model
from anyfill.tables.cells import read_cells
from anyfill.tables.gaussian_em import gaussian_model
from anyfill.tables.gaussian_joint import GaussianJoint
from anyfill.tables.table import Table

Floats = NDArray[np.float64]
FARTHEST = 1e3
"""Values are told to the Gaussian as at most so many deviations away."""


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
        told = straightened(table, x, known, self.location, self.scale)
        return read_cells(self.model, table, told, known, asked, lambda _, marginals: marginals.mean()[:, 0])[0]

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
