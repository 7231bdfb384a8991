"""A model that knows which columns are functions of others: the functions' answers as one more member of its pool.

With p(x_j | known) what the model has learnt, v what a function says of x_j given its sources, and d its doubt,

    p'(x_j | known) = (1 - d) spike(x_j; v) + d p(x_j | known)       where the sources are known and v exists
    p'(x_j | known) = p(x_j | known)                                 elsewhere

Both are distributions, so p' is one, and chains of it are exact. The spike of a code is that code; of a number a
Gaussian ``functions.narrow_scale`` wide, as narrow as spikes at values that repeat. The floor of the model's own scales
is far above that, so the likelihood of such a column gets a lower one and the model's scales are written anew.

**Order.** A function of age alone tells nothing of age, so age is asked before its class: one-way functions come after
their sources (``order_for``). Where every column is a function of the others (a + b = c) any order will do: the last is
determined.

Means are v itself: ``for_means`` has no doubt. Models whose likelihood is no pool of spiked mixtures and categoricals
(gaussian, sfarm, ace), and those that answer a chain in one pass, fill by functions; their densities and draws stay
what they have learnt.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from anyfill.likelihoods import Categorical, Mixed, Pooled, SpikedMixture
from anyfill.likelihoods.continuous import raw_of, scale_of
from anyfill.likelihoods.marginals import Likelihood
from anyfill.model import Model
from anyfill.networks.network import AnswersCells, Network, Unspecified
from anyfill.questions.order import ByRegion, Increasing
from anyfill.tables.columns import Floats
from anyfill.tables.discovery import numbers_of
from anyfill.tables.frames import Frame
from anyfill.tables.functions import Reckoned, answered, narrow_scale
from anyfill.tables.table import Number, Table

_NEVER = -80.0  # the log-weight of what has none
_AHEAD = 60.0  # of the logit of the one code


def determined(model: Model, table: Table) -> Model:
    """The model with the functions of its table; itself where there are none, or it cannot be asked cell by cell."""
    pool = _pool_of(model.likelihood)
    if not table.functions or pool is None or model.is_one_pass or model.corruption.shows_unknown:
        return model
    narrow = {table.index(function.target) for function in table.functions}
    columns = tuple(
        replace(column, min_scale=min(column.min_scale, narrow_scale(table.columns[j])))
        if j in narrow and isinstance(column, SpikedMixture)
        else column
        for j, column in enumerate(pool.columns)
    )
    network = Determined(cast(Any, model.network), table, pool, columns)
    likelihood = Pooled(Mixed(columns), pool.members + 1, weighted=True)
    order = order_for(table) if model.order == Increasing() else model.order
    made = Model(network, likelihood, corruption=model.corruption, order=order, factorizations=model.factorizations)
    return made.train(model.training)


def order_for(table: Table) -> ByRegion | Increasing:
    """By position, but one-way functions after their sources, as far as they do not go round."""
    reach = {(source, one.target) for one in table.functions for source in one.sources}
    one_way = {(a, b) for a, b in reach if (b, a) not in reach}
    if not one_way:
        return Increasing()
    level = dict.fromkeys(table.names, 0)
    for _ in table.names:  # as long as a path may be
        for source, target in sorted(one_way):
            level[target] = min(max(level[target], level[source] + 1), len(level))
    return ByRegion(tuple(level[name] for name in table.names))


class _Pool(NamedTuple):
    """Of a likelihood: what reads each column, how many members are pooled, and whether with weights."""

    columns: tuple[Likelihood, ...]
    members: int
    weighted: bool


def _pool_of(likelihood: Likelihood) -> _Pool | None:
    """The pool that a likelihood is; None if it is none of numbers and codes."""
    members, weighted, mixed = 1, False, likelihood
    if isinstance(likelihood, Pooled):
        members, weighted, mixed = likelihood.members, likelihood.weighted, likelihood.base
    if not isinstance(mixed, Mixed) or not all(isinstance(one, SpikedMixture | Categorical) for one in mixed.columns):
        return None
    return _Pool(mixed.columns, members, weighted)


class Determined(nn.Module, Unspecified):
    """(B, N, (M + 1) (P + 1)): the M members of a base network, and what functions say.

    Args:
        base: the network; its answers are for the columns of ``pool``.
        table: the columns and their functions.
        pool: how the base network's answers are read.
        columns: the same likelihoods, those of functions with lower floors.
        sure: no doubt is left to the base.
    """

    def __init__(
        self, base: Network, table: Table, pool: _Pool, columns: Sequence[Likelihood], *, sure: bool = False
    ) -> None:
        super().__init__()
        self.base: Any = base
        self.table, self.pool, self.columns, self.sure = table, pool, tuple(columns), sure
        self.width = max(column.width for column in columns)

    @property
    def variables(self) -> int:
        """N."""
        return self.base.variables

    @property
    def outputs(self) -> int:
        """(M + 1) (P + 1)."""
        return (self.pool.members + 1) * (self.width + 1)

    @property
    def context_width(self) -> int:
        """0: none is taken."""
        return 0

    @property
    def exact(self) -> bool:
        """As the base is."""
        return self.base.exact

    def for_means(self) -> "Determined":
        """The base with the weights of means, and functions without doubt."""
        return Determined(self.base.for_means(), self.table, self.pool, self.columns, sure=True)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, outputs): every variable given the known ones (B, N)."""
        params = self.base(x, known, context)
        row = torch.arange(len(x), device=x.device).repeat_interleave(x.shape[1])
        variable = torch.arange(x.shape[1], device=x.device).repeat(len(x))
        return self._widened(x, known, row, variable, params.flatten(0, 1)).view(*x.shape, -1)

    def at(self, x: Tensor, known: Tensor, row: Tensor, variable: Tensor) -> Tensor:
        """(H, outputs): of the variables ``variable`` (H,) of the rows ``row`` (H,) alone."""
        if isinstance(self.base, AnswersCells):
            params = self.base.at(x, known, row, variable)
        else:
            params = self.base(x, known, None)[row, variable]
        return self._widened(x, known, row, variable, params)

    def _widened(self, x: Tensor, known: Tensor, row: Tensor, variable: Tensor, params: Tensor) -> Tensor:
        """(H, outputs) from the base's parameters (H, ·) of these cells."""
        count, width = self.pool.members, self.width
        members = params[:, : count * width].unflatten(1, (count, width))
        weights = params[:, count * width :] if self.pool.weighted else params.new_zeros(len(params), count)
        weights = weights.log_softmax(1)
        fresh = params.new_zeros(len(params), 1, width)
        last = params.new_full((len(params), 1), _NEVER)
        value, doubt, spike = (part[row, variable] for part in self._said(x, known))
        for j, (before, after) in enumerate(zip(self.pool.columns, self.columns)):
            if before != after and isinstance(before, SpikedMixture) and isinstance(after, SpikedMixture):
                own = (variable == j).nonzero()[:, 0]
                raw = slice(before.width - before.components, before.width)
                scales = scale_of(members[own][..., raw].double(), before.min_scale)
                narrowed = members[own]
                narrowed[..., raw] = raw_of(scales, after.min_scale).to(narrowed)
                members = members.index_copy(0, own, narrowed)
        for j in {self.table.index(function.target) for function in self.table.functions}:
            own = ((variable == j) & ~value.isnan()).nonzero()[:, 0]
            if not len(own):
                continue
            fresh[own, 0] = self._pinned(j, value[own], spike[own]).to(fresh)
            left = doubt[own].to(weights)
            keep = torch.full_like(left, _NEVER) if self.sure else left.log()
            weights[own] = weights[own] + keep.unsqueeze(1)
            last[own, 0] = torch.zeros_like(left) if self.sure else torch.log1p(-left)
        parts = [members.flatten(1), fresh.flatten(1), weights, last]
        return torch.cat(parts, 1)

    def _said(self, x: Tensor, known: Tensor) -> list[Tensor]:
        """float64 (B, N) each: what functions say, NaN where nothing, their doubts and widths."""
        values = torch.where(known, x, torch.zeros_like(x)).double().cpu().numpy()
        found = answered(self.table.functions, self.table.columns, values, known.cpu().numpy())
        return [torch.from_numpy(part).to(x.device) for part in found]

    def _pinned(self, j: int, value: Tensor, spike: Tensor) -> Tensor:
        """(H, P): parameters of column j with all of its mass at values (H,), in spikes so wide (H,)."""
        column = self.columns[j]
        if isinstance(column, SpikedMixture):
            ones = value.new_ones(len(value), column.components)
            logits = torch.cat([value.new_full((len(value), len(column.spikes)), _NEVER), 0 * ones], 1)
            params = column.params(logits, value.unsqueeze(1) * ones, spike.unsqueeze(1) * ones)
        else:
            params = torch.where(value.unsqueeze(1) == torch.arange(column.width), 0.0, -_AHEAD).double()
        return nn.functional.pad(params, (0, self.width - params.shape[1]))


def determined_cells(table: Table, x: Tensor, known: Tensor) -> Tensor:
    """float32 (B, N): what functions say of the unknown cells of rows (B, N), standardised; NaN where nothing."""
    values = torch.where(known, x, torch.zeros_like(x)).double().cpu().numpy()
    said = answered(table.functions, table.columns, values, known.cpu().numpy())[0]
    return torch.from_numpy(said).to(x.device, torch.float32)


def reckoned_cells(table: Table, frame: Frame) -> dict[int, Floats]:
    """For columns of numbers what their formulas say (rows,), to the last of 64 bits; NaN where a part is missing.

    Rows are 32 bits wide, which is enough for a model but not for the books: 123,456.78 must add up.
    """
    found: dict[int, Floats] = {}
    for function in table.functions:
        j = table.index(function.target)
        if isinstance(function, Reckoned) and isinstance(table.columns[j], Number):
            parts = {name: numbers_of([table.columns[table.index(name)]], frame)[0] for name in function.sources}
            found.setdefault(j, function.own(parts))
    return found


def settled(table: Table, known: Tensor, drawn: Tensor) -> Tensor:
    """Draws (n, B, N) of rows of which ``known`` (B, N) was given: what came from a function's spike is its value.

    The spike is as narrow as it is so that nothing else lies in it: six of its widths miss a draw twice in 10^9.
    """
    if not table.functions:
        return drawn
    out = drawn.clone()
    asked = ~known.cpu().numpy()
    for one in out:
        values = one.double().cpu().numpy()
        for function in table.functions:
            j = table.index(function.target)
            row = np.flatnonzero(asked[:, j])
            if not len(row) or table.number(j) is None:
                continue
            sources = {name: values[row, table.index(name)] for name in function.sources}
            said = function.encoded(dict(zip(table.names, table.columns)), sources)
            near = np.abs(said - values[row, j]) <= 6 * function.width(table.columns[j])
            values[row[near], j] = said[near]
            one[torch.from_numpy(row[near]), j] = torch.from_numpy(said[near]).to(one)
    return out
