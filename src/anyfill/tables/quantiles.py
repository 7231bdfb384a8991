"""Informed choice without joint draws: each candidate at a few values that stand for its distribution.

I(y; x_j | x_O) = E KL( p(y | x_j, x_O) || p(y | x_O) ) over x_j ~ p(x_j | x_O). One pass gives every p(x_j | x_O), so

    numbers, many codes   M equally likely points: the quantiles of p(x_j | x_O) at (m + 1/2) / M, weight 1/M each
    at most M codes       all of them, each with its probability: exact, and no more passes than there are codes

which leaves less to chance than M joint draws. Points that (nearly) agree are computed once and their weights added up:
where a column holds few values, or is all but certain, that is most of them.

The divergence is a sum over the codes of y, or the mean over K = ``inner`` values of a real y ~ p(y | x_j, x_O), whose
noise is a Latin hypercube: the K numbers behind one point are spread evenly. For several targets y = (y_1, …, y_T) it
is split by the chain rule and averaged over K / 8 ways y_1, y_2, … drawn from p(. | x_j, x_O):

    KL( p(y | x_j, x_O) || p(y | x_O) ) = sum_t E KL( p(y_t | y_<t, x_j, x_O) || p(y_t | y_<t, x_O) )

The noise depends on the number of a point alone, neither on the row nor on the candidate: rows do not depend on their
company (but for rounding), and what noise does is much the same to all candidates that are compared.

Errors. Equally likely points have the error of a quadrature, not of chance; what is given is the standard error that M
draws would have, which is above it. That of codes comes from the K values of y alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.evaluation.acquire import (
    Information,
    each_given,
    log_ratio,
    open_variables,
    over_codes,
    portions,
    require_each,
    target_parameters,
)
from anyfill.evaluation.chain import CELLS_PER_PASS
from anyfill.likelihoods.marginals import Marginals
from anyfill.likelihoods.mixed import code_sizes, marginals_at
from anyfill.model import Model
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question, chain_rank
from anyfill.tables.choosers import Rewarding, Standing, require_costs

_MIN_CHANCE = 1e-6
"""Codes less likely than this are passed over."""


@dataclass(frozen=True, slots=True)
class Quantiles(Rewarding):
    """The variable that tells most about the target, per unit of cost, by values that stand for its distribution.

    Attributes:
        points: M, for each candidate.
        inner: K, values of a real target at each point; an eighth as many (two at least) ways through several.
        costs: N costs, those of targets unread; None = all alike.
        min_gain: stop where no gain per cost is above this by its standard error; None = never.
        same: points of a number that are no further apart than this count as one. Rows of numbers are standardised as
            a rule, and a two-hundredth of a standard deviation tells nothing that a column could.
        rows_per_pass: most rows in one call of the network.
    """

    points: int = 20
    inner: int = 16
    costs: tuple[float, ...] | None = None
    min_gain: float | None = None
    same: float = 0.005
    rows_per_pass: int | None = None

    def __post_init__(self) -> None:
        require_count("points", self.points, minimum=2)
        require_count("inner", self.inner, minimum=2)
        require_costs(self.costs)
        if not 0.0 <= self.same < 1.0:
            raise refuse("same", expected="a distance from 0 to 1, 1 excluded", got=repr(self.same))

    def reward(self, model: Model, standing: Standing, *, generator: Generator) -> Information:
        known, target = standing.known, standing.target
        candidate = open_variables(known, target, standing.candidate) & target.any(1, keepdim=True)
        several = bool((target.sum(1) > 1).any())
        inner = max(2, self.inner // 8) if several else self.inner
        asked = _Asked(model, standing, _Latin(self.points, inner, generator))
        with model.evaluating():
            value, weight = self._points(model, standing, candidate)
            cells = (torch.where(candidate, weight, 0.0) > _MIN_CHANCE).nonzero()  # (C, 3): point, row, variable
            each, noise = torch.zeros(2, *weight.shape, dtype=torch.float64, device=known.device)
            size = max(1, CELLS_PER_PASS // model.variables) if self.rows_per_pass is None else self.rows_per_pass
            for some in cells.split(max(1, size // inner) if several else size):
                point, row, j = some.unbind(1)
                each[point, row, j], noise[point, row, j] = asked.divergence(point, row, j, value[point, row, j])
        mean = (weight * each).sum(0)
        drawn = _is_drawn(model, self.points).to(known.device)
        spread = (weight * (each - mean) ** 2).sum(0) / (self.points - 1)
        variance = torch.where(drawn, spread, (weight**2 * noise).sum(0))
        stderr = variance.sqrt().nan_to_num(nan=torch.inf)
        value, error = (torch.where(candidate, one, 0.0) for one in (mean, stderr))
        return Information(value, error, open_variables(known, target, standing.candidate), self.points)

    def _points(self, model: Model, standing: Standing, candidate: Tensor) -> tuple[Tensor, Tensor]:
        """(M, B, N) values, and float64 weights that sum to 1 for each candidate; weight 0 = not to be looked at."""
        shape = (self.points, *standing.x.shape)
        value = standing.x.new_zeros(shape)
        weight = torch.zeros(shape, dtype=torch.float64, device=standing.x.device)
        drawn = _is_drawn(model, self.points).to(standing.x.device)
        sizes = code_sizes(model.likelihood, model.variables).to(standing.x.device)
        for rows in portions(len(standing.x), model, self.rows_per_pass, standing.x.device):
            context = None if standing.context is None else standing.context[rows]
            marginals = each_given(model, standing.x[rows], standing.known[rows], candidate[rows], context)
            if bool((drawn & candidate[rows]).any()):
                value[:, rows], weight[:, rows] = self._quantiles(marginals, value.dtype)
            for code in range(int(torch.where(drawn, 0, sizes).max())):
                codes = torch.full_like(value[0, rows], code)
                chance = torch.where(code < sizes, marginals.log_prob(codes).double().exp(), 0.0)
                value[code, rows] = torch.where(drawn, value[code, rows], codes)
                weight[code, rows] = torch.where(drawn, weight[code, rows], chance)
            count = torch.where(drawn, self.points, sizes)
            left = torch.arange(self.points, device=count.device)[:, None, None] < count
            weight[:, rows] = torch.where(left, weight[:, rows], 0.0)
        return value, weight / weight.sum(0).clamp(min=1e-300)

    def _quantiles(self, marginals: Marginals, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """(M, B, N) points that ascend, and their weights: of points that agree the first has that of all."""
        levels = [(m + 0.5) / self.points for m in range(self.points)]
        value = torch.stack([marginals.quantile(level) for level in levels]).to(dtype)
        weight = torch.zeros(value.shape, dtype=torch.float64, device=value.device)
        first, place = value[0], torch.zeros_like(value[0], dtype=torch.int64)
        for m in range(self.points):
            fresh = value[m] - first > self.same
            first, place = torch.where(fresh, value[m], first), torch.where(fresh, m, place)
            weight.scatter_add_(0, place[None], torch.full_like(weight[:1], 1 / self.points))
        return value, weight


def _is_drawn(model: Model, points: int) -> Tensor:
    """bool (N,): variables whose points are quantiles; the codes of the others are few enough to take them all."""
    sizes = code_sizes(model.likelihood, model.variables)
    return (sizes == 0) | (sizes > points)


class _Latin:
    """Noise for ``inner`` values at each of ``points`` points: a Latin hypercube over the values of a point."""

    def __init__(self, points: int, inner: int, generator: Generator) -> None:
        self.points, self.inner = points, inner
        seed = torch.randint(2**62, (), generator=generator, device=generator.device)
        self._generator = Generator().manual_seed(int(seed))
        self._tables: list[Tensor] = []

    def table(self, number: int, shape: Sequence[int]) -> Tensor:
        """float64 (points, inner, ...): the ``number``-th numbers of all values."""
        while len(self._tables) <= number:
            wide = (self.points, self.inner, *shape)
            keys, part = torch.rand(2, *wide, generator=self._generator, dtype=torch.float64)
            self._tables.append((keys.argsort(1).argsort(1) + part) / self.inner)
        return self._tables[number]


class _Stream:
    """The noise of some rows: that of the points (R,) and of one of the values at each of them (R,)."""

    def __init__(self, latin: _Latin, point: Tensor, value: Tensor, taken: int = 0) -> None:
        self.taken = taken
        self._latin, self._point, self._value = latin, point.cpu(), value.cpu()

    def uniform(self, shape: Sequence[int], device: torch.device) -> Tensor:
        table = self._latin.table(self.taken, tuple(shape[1:]))
        self.taken += 1
        return table[self._point, self._value].reshape(tuple(shape)).to(device)


class _Known(NamedTuple):
    """Values (R, N) and what of them is known."""

    x: Tensor
    known: Tensor

    def also(self, variable: Tensor, value: Tensor, where: Tensor | None = None) -> "_Known":
        """With the value (R, 1) of a variable (R, 1) known as well; ``where`` (R, 1) is True, if given."""
        value, known = value.to(self.x), torch.ones_like(variable, dtype=torch.bool)
        if where is not None:
            value = torch.where(where, value, self.x.gather(1, variable))
            known = where | self.known.gather(1, variable)
        return _Known(self.x.scatter(1, variable, value), self.known.scatter(1, variable, known))

    def repeated(self, times: int) -> "_Known":
        return _Known(self.x.repeat(times, 1), self.known.repeat(times, 1))


class _Asked:
    """What the targets of each row are, and how far a candidate's value moves them."""

    def __init__(self, model: Model, standing: Standing, latin: _Latin) -> None:
        self.model, self.latin = model, latin
        self.x, self.known, self.context = standing.x, standing.known, standing.context
        order = Increasing() if model.order.random else model.order
        rank = chain_rank(order, Question(standing.known, standing.target))
        self.rank = torch.where(standing.target, rank, -1)
        self.targets = int(standing.target.sum(1).max()) if len(rank) else 0
        self.sizes = code_sizes(model.likelihood, model.variables).to(rank.device)
        self._base: Tensor | None = None

    def divergence(self, point: Tensor, row: Tensor, j: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """float64 (C,) each: the divergence of the targets once x_j has this value, and its variance by chance."""
        before = _Known(self.x[row], self.known[row])
        after = before.also(j[:, None], value[:, None])
        at = self._target(row, 0)[0]
        laws = self._laws(after, row, at), marginals_at(self.model.likelihood, self.base[row], at)
        exact, is_code = over_codes(*laws, self.sizes[at]), self.sizes[at] > 0
        if self.targets == 1 and bool(is_code.all()):
            return exact[:, 0], torch.zeros_like(exact[:, 0])
        streams = [_Stream(self.latin, point, torch.full_like(row, way)) for way in range(self.latin.inner)]
        drawn = torch.stack([laws[0].sample(generator=stream) for stream in streams])  # (K, C, 1)
        ways = torch.stack([torch.where(is_code, exact, log_ratio(*laws, one)[1])[:, 0] for one in drawn])
        if self.targets > 1:
            ways = ways + self._further(before, after, point, row, drawn, streams[0].taken)
        return ways.mean(0), ways.var(0) / self.latin.inner

    def _further(self, before: _Known, after: _Known, point: Tensor, row: Tensor, drawn: Tensor, taken: int) -> Tensor:
        """float64 (K, C): the divergence of all targets but the first, each of K ways with its own value of that."""
        inner, count = len(drawn), len(row)
        before, after, value = before.repeated(inner), after.repeated(inner), drawn.flatten(0, 1)
        rows, points = row.repeat(inner), point.repeat(inner)
        way = torch.arange(inner, device=row.device).repeat_interleave(count)
        total = torch.zeros(len(rows), dtype=torch.float64, device=row.device)
        for number in range(1, self.targets):
            earlier, there = self._target(rows, number - 1)
            before, after = (one.also(earlier, value, there) for one in (before, after))
            at, has = self._target(rows, number)
            laws = self._laws(after, rows, at), self._laws(before, rows, at)
            stream = _Stream(self.latin, points, way, taken)
            value = laws[0].sample(generator=stream)
            taken = stream.taken
            size = self.sizes[at]
            term = torch.where(size > 0, over_codes(*laws, size), log_ratio(*laws, value)[1])
            total += torch.where(has, term, 0.0)[:, 0]
        return total.view(inner, count)

    def _target(self, row: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """(R, 1) each: the ``number``-th target of rows, and whether there is one."""
        here = self.rank[row] == number
        return here.to(torch.uint8).argmax(1, keepdim=True), here.any(1, keepdim=True)

    @property
    def base(self) -> Tensor:
        """(B, 1, P): the first target of every row given what it knows; computed once."""
        if self._base is None:
            every = torch.arange(len(self.x), device=self.x.device)
            parts = [
                self._parameters(_Known(self.x[rows], self.known[rows]), rows, self._target(rows, 0)[0])
                for rows in every.split(max(1, CELLS_PER_PASS // self.model.variables))
            ]
            self._base = torch.cat(parts)
        return self._base

    def _laws(self, now: _Known, row: Tensor, at: Tensor) -> Marginals:
        return marginals_at(self.model.likelihood, self._parameters(now, row, at), at)

    def _parameters(self, now: _Known, row: Tensor, at: Tensor) -> Tensor:
        """(R, 1, P): the parameters of the variables ``at`` (R, 1), given what is known."""
        require_each(self.model, now.known, torch.zeros_like(now.known).scatter(1, at, True) & ~now.known)
        return target_parameters(self.model, *now, at, None if self.context is None else self.context[row])
