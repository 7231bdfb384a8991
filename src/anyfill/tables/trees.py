"""Any-order trees as distributions: what boosted models of each column say of some cells, given what is known.

Inputs of every model of column j are the known values of the row (missing where not known), where in their turns those
that go round stand (the weekday of a date, say), and where a joint Gaussian, if there is one, says that column j is:
center c and log-spread log s of a number, log-chances of codes. A model of a number begins there, so trees learn what
the joint does not know. A joint of many codes is far too sure of the rows it was fitted to, so of codes there are two
models, one that begins there and one that knows nothing of it (in large tables the latter alone).

    codes     two answers: logits  log chances of the joint + f(inputs),  and  f(inputs)
    numbers   two answers, of which a blend may take either:
              around a mean    sum_k w_k N(m, (r v_k)^2)      m = c + f(inputs), r = s e^{g(inputs)}
              by cells         sum_a P(a) spike_a + sum_b P(b) N(m_b, r_b^2)
                               P over spikes and T cells between quantiles, m_b = middle of cell b + h(inputs, b)

The first is sharp where a number is a function of others and some noise; w and v are the shape of that noise. The
second has as many modes as there are, each as sharp as h can place it inside its cell. All centers are kept inside the
range of what was seen. Everything is a mixture of Gaussians with the column's spikes, so pools of these answers and a
network's are again such mixtures (``likelihoods.Pooled``).
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anyfill.checks import refuse
from anyfill.likelihoods.continuous import raw_of, spread
from anyfill.networks.embed import Cycle
from anyfill.tables.boosting import log_softmax, scores_of
from anyfill.tables.columns import Floats

GROUPS = 3
"""Members of a pool that the cells of a column are spread over; each has the K components of the likelihood."""
UseOfJoint = Literal["begins", "nothing"]
NOTHING = -80.0
"""The log-weight of what has none: e^-80 is nothing beside 1, and a finite number."""


def tree_values(x: Tensor, known: Tensor, cycles: Sequence[Cycle]) -> NDArray[Any]:
    """(B, N + C): known values of x (B, N), and where in each of their C turns (weekday, hour, month) they stand; NaN =
    not known."""
    values = [torch.where(known, x, torch.nan)]
    for cycle in cycles:
        place = cycle.position(x[:, cycle.variable]).to(x)
        values.append(torch.where(known[:, cycle.variable], place, torch.nan).unsqueeze(1))
    return torch.cat(values, 1).cpu().numpy()


class Inputs(NamedTuple):
    """What models of one column are given, for n cells.

    Attributes:
        values: (n, N + C), see ``tree_values``.
        center, scale: (n,), where the joint says that a number is.
        log_chances: (n, S), what it says of codes.
    """

    values: Floats
    center: Floats
    scale: Floats
    log_chances: Floats

    def take(self, which: Any) -> "Inputs":
        """Those of some of the cells."""
        return Inputs(*(part[which] for part in self))

    def table(self, coded: bool) -> Floats:
        """(n, F): all of it, for a model."""
        own = [self.log_chances] if coded else [self.center[:, None], np.log(self.scale)[:, None]]
        return np.concatenate([self.values, *own], 1)


@dataclass(frozen=True, slots=True)
class Cells:
    """The answer by cells.

    Attributes:
        shares, inside: the models of P and h.
        edges: between cells, ascending.
        middle, spread, low, high: (T,) of the values in each cell.
    """

    shares: str
    inside: str
    edges: tuple[float, ...]
    middle: tuple[float, ...]
    spread: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ColumnTrees:
    """The models of one column.

    Attributes:
        size: its number of codes, 0 = a number.
        mean: the model of f.
        scale: the models whose mean is g; empty = g is 0.
        low, high: the range of the center.
        noise: (w_k, v_k) of each component.
        cells: the answer by cells, if it pays.
        joint: whether the model of codes begins at what the joint says, or knows nothing of it.
        alone: beside one that begins there, a model of codes that knows nothing of it; empty = none.
    """

    size: int
    mean: str
    scale: str = ""
    low: float = 0.0
    high: float = 0.0
    noise: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    cells: Cells | None = None
    joint: UseOfJoint = "begins"
    alone: str = ""

    @property
    def has_second(self) -> bool:
        """True if there are two answers."""
        return self.cells is not None or bool(self.alone)

    def centers(self, given: Inputs, table: Floats) -> Floats:
        """(n,): m."""
        return np.clip(given.center + scores_of(self.mean, table), self.low, self.high)

    def scales(self, given: Inputs, table: Floats) -> Floats:
        """(n,): r."""
        return given.scale * np.exp(np.clip(scores_of(self.scale, table), -4.0, 2.0)) if self.scale else given.scale

    def log_chances(self, given: Inputs, table: Floats) -> Floats:
        """(n, S): of codes."""
        scores = scores_of(self.mean, given.values if self.joint == "nothing" else table)
        return log_softmax(begin_of(given.log_chances) + scores if self.joint == "begins" else scores)

    def by_cells(self, table: Floats) -> tuple[Floats, Floats, Floats]:
        """log P (n, A + T) of spikes and cells, then centers and scales (n, T) of cells; only where there are cells."""
        cells = self.cells
        if cells is None:
            raise refuse("trees", expected="a column that is answered by cells", got="none such")
        count = len(cells.middle)
        log_shares = log_softmax(scores_of(cells.shares, table))
        centers = np.stack([inside_of(cells, table, b) for b in range(count)], 1)
        return log_shares, centers, np.broadcast_to(np.array(cells.spread), centers.shape)


def begin_of(log_chances: Floats) -> Floats:
    """Where scores begin: log-odds (n,) of two codes, log-chances (n, S) of more."""
    return log_chances[:, 1] - log_chances[:, 0] if log_chances.shape[1] == 2 else log_chances


def inside_of(cells: Cells, table: Floats, cell: int | NDArray[Any]) -> Floats:
    """(n,): the centers of cell b, or of each row's own cell (n,)."""
    which = np.broadcast_to(np.asarray(cell), len(table))
    moved = scores_of(cells.inside, with_cell(table, which)) if cells.inside else np.zeros(len(table))
    middle, low, high = (np.array(part)[which] for part in (cells.middle, cells.low, cells.high))
    return np.clip(middle + moved, low, high)


def with_cell(table: Floats, cell: NDArray[Any]) -> Floats:
    """(n, F + 1): inputs and the number of a cell."""
    return np.concatenate([table, cell[:, None].astype(np.float64)], 1)


@dataclass(frozen=True, slots=True)
class Reader:
    """What reads the answers of one number: its likelihood's spikes, floor and components, and P outputs in all."""

    spikes: int
    min_scale: float
    components: int
    outputs: int

    def answer(self, column: ColumnTrees, given: Inputs) -> tuple[NDArray[Any], NDArray[Any]]:
        """(n, 1 + GROUPS, P) and (n, 1 + GROUPS), as ``AnyOrderTrees.answer``, of n cells of one column."""
        table = given.table(column.size > 0)
        params = np.zeros((len(table), 1 + GROUPS, self.outputs), dtype=np.float32)
        weights = np.full((len(table), 1 + GROUPS), -np.log(GROUPS), dtype=np.float32)
        if column.size:
            params[:, :, : column.size] = column.log_chances(given, table)[:, None]
            if column.alone:  # the second answer, in every group alike
                other = replace(column, mean=column.alone, joint="nothing")
                params[:, 1:, : column.size] = other.log_chances(given, table)[:, None]
            return params, weights
        noise = np.array(column.noise)
        shape = (len(table), len(noise))
        center = np.broadcast_to(column.centers(given, table)[:, None], shape)
        scale = column.scales(given, table)[:, None] * noise[:, 1]
        none = np.full((len(table), self.spikes), NOTHING)
        logits = np.concatenate([none, np.broadcast_to(np.log(noise[:, 0]), shape)], 1)
        params[:, 0] = self._params(logits, center, scale)
        if column.cells is not None:
            log_shares, centers, scales = column.by_cells(table)
            lacking = ((0, 0), (0, GROUPS * self.components - centers.shape[1]))
            log_cells = np.pad(log_shares[:, self.spikes :], lacking, constant_values=NOTHING)
            centers, scales = np.pad(centers, lacking), np.pad(scales, lacking, constant_values=1.0)
            for group in range(GROUPS):
                part = slice(group * self.components, (group + 1) * self.components)
                logits = np.concatenate([none if group else log_shares[:, : self.spikes], log_cells[:, part]], 1)
                params[:, 1 + group] = self._params(logits, centers[:, part], scales[:, part])
                weights[:, 1 + group] = np.logaddexp.reduce(logits, 1)
        return params, weights

    def _params(self, logits: Floats, centers: Floats, scales: Floats) -> NDArray[Any]:
        """(n, P): what ``SpikedMixture`` reads, see its ``params``."""
        before = centers - np.array(spread(self.components))
        raw = raw_of(torch.from_numpy(scales.copy()), self.min_scale).numpy()
        found = np.concatenate([logits, before, raw], 1)
        return np.pad(found, ((0, 0), (0, self.outputs - found.shape[1])))


@dataclass(eq=False, repr=False)
class AnyOrderTrees(nn.Module):
    """The models of all columns.

    Attributes:
        sizes: number of codes of each variable, 0 = a number.
        spikes: for each variable how many spikes its likelihood has.
        min_scales: for each variable the floor of its likelihood's scales.
        components: K Gaussians of each number.
        outputs: P, the width of the ``Mixed`` that reads an answer.
        kept: uint8, the models of all columns, compressed JSON (see ``pack``).
    """

    sizes: tuple[int, ...]
    spikes: tuple[int, ...]
    min_scales: tuple[float, ...]
    components: int
    outputs: int
    kept: Tensor

    def __post_init__(self) -> None:
        super().__init__()
        self.sizes, self.spikes = tuple(self.sizes), tuple(self.spikes)
        self.columns = unpack(self.kept)

    @property
    def members(self) -> int:
        """How many answers each cell gets: around a mean, and ``GROUPS`` for its cells."""
        return 1 + GROUPS

    def reader(self, j: int) -> Reader:
        """What reads the answers of column j."""
        return Reader(self.spikes[j], self.min_scales[j], self.components, self.outputs)

    def answer(
        self,
        values: NDArray[Any],
        variable: NDArray[Any],
        center: Floats,
        scale: Floats,
        log_chances: Floats,
        columns: Mapping[int, ColumnTrees] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(H, 1 + GROUPS, P) and (H, 1 + GROUPS): the answers to H cells, and log-weights among those by cells.

        A column without models gets answers that mean nothing, and one without cells too: they must weigh nothing.

        Args:
            values: (H, N + C), of the row of each cell, see ``tree_values``.
            variable: (H,).
            center, scale: (H,), where the joint says that a number is.
            log_chances: (H, P), what it says of codes.
            columns: models in place of all there are.
        """
        params = np.zeros((len(variable), self.members, self.outputs), dtype=np.float32)
        weights = np.zeros((len(variable), self.members), dtype=np.float32)
        for j, column in (self.columns if columns is None else columns).items():
            own = np.flatnonzero(variable == j)
            if len(own):
                seen = values[own].astype(np.float64)
                seen[:, j] = np.nan
                given = Inputs(seen, center[own], scale[own], log_chances[own, : max(self.sizes[j], 1)])
                params[own], weights[own] = self.reader(j).answer(column, given)
        return torch.from_numpy(params), torch.from_numpy(weights)


def pack(columns: Mapping[int, ColumnTrees]) -> Tensor:
    """The models as bytes, uint8."""
    text = json.dumps({str(j): asdict(column) for j, column in columns.items()}, separators=(",", ":"))
    return torch.frombuffer(bytearray(zlib.compress(text.encode("ascii"), 6)), dtype=torch.uint8)


def unpack(kept: Tensor) -> dict[int, ColumnTrees]:
    """What ``pack`` packed; ValueError if it is nothing of that kind."""
    try:
        found: dict[str, Any] = json.loads(zlib.decompress(kept.cpu().numpy().tobytes()))
        return {int(j): _column(column) for j, column in found.items()}
    except (zlib.error, UnicodeDecodeError, TypeError, KeyError, AttributeError, json.JSONDecodeError) as error:
        raise refuse("kept trees", expected="compressed JSON of models", got=str(error)) from None


def _column(kept: dict[str, Any]) -> ColumnTrees:
    cells = kept.pop("cells")
    column = ColumnTrees(**kept)
    noise = tuple((float(weight), float(scale)) for weight, scale in column.noise)
    if cells is None:
        return replace(column, noise=noise)
    listed: dict[str, Any] = {name: tuple(cells[name]) for name in ("edges", "middle", "spread", "low", "high")}
    return replace(column, noise=noise, cells=Cells(cells["shares"], cells["inside"], **listed))


def without_second(column: ColumnTrees) -> ColumnTrees:
    """The models of the first answer alone."""
    return replace(column, cells=None, alone="")
