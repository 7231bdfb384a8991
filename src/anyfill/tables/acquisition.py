"""Sequential acquisition of information (SAIA; EDDI, HH-VAEM, SFARM section 4.2): measure, predict, choose, measure.

For every test row, from O = what is given (nothing by default):

    record how well y is predicted from x_O;  j <- chooser;  O <- O + j, x_j its true value;  until all is known

which makes d + 1 points for d measurable variables. A row stops early where its chooser answers -1, and its curve stays
flat from there. A value that is missing in the data cannot be measured, so it is no candidate; nor is it ever given.

Rows go through in one batch and each follows its own way, but they share the generator: what a row draws depends on
which rows come with it. Chooser and metrics look at nothing else of the other rows; for a result of one row that
repeats whatever its company, run it alone with its own seed.

**Curves** say how fast a prediction improves as variables are measured, and who measures best.

Of B rows after t = 0 … T measurements, with O what a row knows by then:

    rmse(t)   sqrt of the mean squared error of E[y | x_O]
    nll(t)    mean of -log p(y | x_O), nats
    error(t)  share of code-valued targets whose likeliest value is wrong

For a target with codes the squared error is half the Brier score, 1/2 sum_v (p(v | x_O) - [y = v])^2: with two codes
that is the squared error of the mean, and with more it does not read codes as quantities.

    area      trapezoid of the curve over t, divided by T (AUIC; lower is better, same unit as the metric)
    by cost   rows spend differently, so the curve is taken over the money c spent at most: each row stands where it
              stood after the last measurement it could pay. That is a step function, integrated exactly, divided by the
              largest c. With unit costs it is the left sum of the curve, not the trapezoid.

Two policies on the same rows are compared by the difference of their areas with a percentile bootstrap that resamples
rows (the same for both) or, over repeated splits, whole splits. Few splits (below about ten) make that interval narrow.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Literal, ParamSpec, TypeVar

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

from anyfill.checks import refuse, require_bool, require_count, require_positive
from anyfill.evaluation.acquire import each_given, portions
from anyfill.evaluation.chain import log_prob
from anyfill.likelihoods.marginals import Marginals
from anyfill.likelihoods.mixed import code_sizes
from anyfill.model import Model
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question
from anyfill.questions.supported import step_factorization, untrained
from anyfill.rows import Rows
from anyfill.tables.choosers import Chooser, Informed, Rewarding, Standing

Metric = Literal["rmse", "nll", "error"]


@dataclass(frozen=True, slots=True, eq=False)
class _Course:
    """What B rows measure and how well they then predict: (B,) at one step, or one more dimension for all of them."""

    chosen: Tensor
    gain: Tensor
    cost: Tensor
    squared_error: Tensor
    log_prob: Tensor
    wrong: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Acquired(_Course):
    """Where B rows stand after one step.

    Attributes:
        chosen: int64 (B,), what was just measured; -1 = nothing.
        gain: float64 (B,), the nats it was expected to tell; NaN where nobody said.
        cost: float64 (B,), spent so far.
        squared_error, log_prob, wrong: float64 (B,), how well the target is predicted (see ``Curves``).
        known: bool (B, N), given or measured.
        step: t, from 0 (before the first measurement).
        steps: T, the most there can be.
    """

    known: Tensor
    step: int
    steps: int


@dataclass(frozen=True, slots=True, eq=False)
class Curves(_Course):
    """What happened to each of B rows in T steps; a row that has stopped stays where it is.

    Attributes:
        chosen: int64 (B, T), the variable measured at each step; -1 = none any more.
        gain: float64 (B, T), the nats it was expected to tell; NaN where nobody said.
        cost: float64 (B, T + 1), spent so far.
        squared_error: float64 (B, T + 1), of the mean prediction, averaged over target variables.
        log_prob: float64 (B, T + 1), log p(y | x_O), over all target variables jointly.
        wrong: float64 (B, T + 1), share of code-valued target variables whose likeliest value is wrong; NaN if none.
    """

    @classmethod
    def of(cls, steps: Sequence[Acquired]) -> "Curves":
        """The curves of rows that went through these steps, the first before any measurement."""
        parts = [torch.stack([getattr(step, field.name) for step in steps], 1) for field in fields(cls)]
        chosen, gain = (part[:, 1:] for part in parts[:2])
        return cls(chosen, gain, *parts[2:]).extended(steps[0].steps)

    @classmethod
    def joined(cls, parts: Sequence["Curves"]) -> "Curves":
        """All rows of several curves; shorter ones stay flat to the end of the longest."""
        if not parts:
            raise refuse("parts", expected="one at least", got="none")
        steps = max(part.steps for part in parts)
        more = [part.extended(steps) for part in parts]
        return cls(*(torch.cat([getattr(part, field.name) for part in more]) for field in fields(cls)))

    def extended(self, steps: int) -> "Curves":
        """The same curves over ``steps`` steps, flat at the end."""
        extra = steps - self.steps
        require_count("steps", steps, minimum=self.steps)

        def flat(values: Tensor) -> Tensor:
            return torch.cat([values, values[:, -1:].expand(-1, extra)], 1)

        moves = pad(self.chosen, (0, extra), value=-1), pad(self.gain, (0, extra), value=torch.nan)
        return Curves(*moves, *map(flat, (self.cost, self.squared_error, self.log_prob, self.wrong)))

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def steps(self) -> int:
        """T."""
        return self.chosen.shape[1]

    def rmse(self) -> Tensor:
        """float64 (T + 1,): root mean squared error of the mean prediction."""
        return self.curve("rmse")

    def nll(self) -> Tensor:
        """float64 (T + 1,): mean negative log-probability of the target, nats."""
        return self.curve("nll")

    def error(self) -> Tensor:
        """float64 (T + 1,): how often the likeliest value of a code-valued target is wrong."""
        return self.curve("error")

    def curve(self, metric: Metric) -> Tensor:
        """float64 (T + 1,): a metric after each number of measurements."""
        return _read(metric, self.per_row(metric).mean(0))

    def per_row(self, metric: Metric) -> Tensor:
        """float64 (B, T + 1): what is averaged over rows (the square, for "rmse")."""
        found = {"rmse": self.squared_error, "nll": -self.log_prob, "error": self.wrong}
        if metric not in found:
            raise refuse("metric", expected=" or ".join(map(repr, found)), got=repr(metric))
        return found[metric]

    def area(self, metric: Metric = "rmse") -> float:
        """Trapezoid under the curve, per step."""
        return float(_trapezoid(self.curve(metric)))

    def at_cost(self, budget: Tensor, metric: Metric = "rmse") -> Tensor:
        """float64 (G,): the metric where no row may spend more than each of G budgets."""
        spent = self.cost.contiguous()
        limit = budget.to(spent).expand(len(self), -1) * (1 + 1e-12)  # sums of costs are not exact
        index = torch.searchsorted(spent, limit.contiguous(), right=True) - 1
        if bool((index < 0).any()):
            raise refuse("budget", expected="numbers from 0 up", got=budget.tolist())
        return _read(metric, self.per_row(metric).gather(1, index).mean(0))

    def area_by_cost(self, metric: Metric = "rmse", budget: float | None = None) -> float:
        """Mean of the metric over all budgets from 0 to ``budget`` (by default the most that any row spends)."""
        limit = float(self.cost.max()) if budget is None else budget
        values, start = self.per_row(metric), self.per_row(metric)[:, 0].mean()
        if not limit > 0:
            return float(_read(metric, start))
        paid, order = self.cost[:, 1:].flatten().sort()
        change = (values.diff(dim=1) / len(self)).flatten()[order]  # of the mean over rows, in order of money spent
        level = torch.cat([start[None], start + change.cumsum(0)])
        edge = pad(pad(paid, (1, 0)).clamp(max=limit), (0, 1), value=limit)
        return float((_read(metric, level) * edge.diff()).sum() / limit)


@dataclass(frozen=True, slots=True)
class Difference:
    """Area of the first less area of the second: below 0 the first is better.

    Attributes:
        value: the difference.
        low, high: its bootstrap interval.
        level: of the interval.
        over: what was resampled.
        count: how many of them there are.
    """

    value: float
    low: float
    high: float
    level: float
    over: Literal["rows", "splits"]
    count: int


def compare(
    first: Curves | Sequence[Curves],
    second: Curves | Sequence[Curves],
    *,
    metric: Metric = "rmse",
    level: float = 0.95,
    resamples: int = 2000,
    generator: Generator,
) -> Difference:
    """Area of ``first`` less area of ``second``, paired.

    Args:
        first, second: curves of the same rows in the same order: rows are resampled. Or a sequence for each, one entry
            per split: then the value is the mean over splits and splits are resampled.
        metric: which curve.
        level: of the interval.
        resamples: how many bootstrap samples.
        generator: draws them.
    """
    require_count("resamples", resamples)
    if isinstance(level, bool) or not 0.0 < level < 1.0:
        raise refuse("level", expected="a number between 0 and 1", got=repr(level))
    if isinstance(first, Curves) and isinstance(second, Curves):
        pair, over = (first.per_row(metric), second.per_row(metric)), "rows"
        if pair[0].shape != pair[1].shape:
            raise refuse("curves", expected=f"two of the shape {tuple(pair[0].shape)}", got=tuple(pair[1].shape))
        share = _resampled(len(first), resamples, generator).to(pair[0])
        drawn = torch.sub(*(_trapezoid(_read(metric, share @ rows)) for rows in pair))
        value = first.area(metric) - second.area(metric)
        count = len(first)
    elif isinstance(first, Curves) or isinstance(second, Curves):
        raise refuse("curves", expected="two, or two sequences of them", got="one and a sequence")
    else:
        if len(first) != len(second):
            raise refuse("splits", expected=f"{len(first)} on both sides", got=len(second))
        gap = torch.tensor([a.area(metric) - b.area(metric) for a, b in zip(first, second)], dtype=torch.float64)
        drawn, over = _resampled(len(gap), resamples, generator) @ gap, "splits"
        value, count = float(gap.mean()), len(gap)
    tail = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=drawn.dtype, device=drawn.device)
    low, high = drawn.quantile(tail).tolist()
    return Difference(value, low, high, level, over, count)


def _resampled(count: int, resamples: int, generator: Generator) -> Tensor:
    """float64 (R, count): the share of each of ``count`` things in each of R samples with replacement."""
    require_count("rows or splits to resample", count, minimum=2)
    index = torch.randint(count, (resamples, count), generator=generator, device=generator.device).cpu()
    share = torch.zeros(resamples, count, dtype=torch.float64)
    return share.scatter_add_(1, index, torch.full_like(share, 1.0 / count))


def _read(metric: Metric, mean: Tensor) -> Tensor:
    """A metric from the mean over rows of what ``per_row`` gives."""
    return mean.clamp(min=0).sqrt() if metric == "rmse" else mean


def _trapezoid(curve: Tensor) -> Tensor:
    """(..., T + 1) -> (...): the mean height of a curve; of a single point, the point."""
    if curve.shape[-1] == 1:
        return curve[..., 0]
    return torch.trapezoid(curve, dim=-1) / (curve.shape[-1] - 1)


_P = ParamSpec("_P")
_Step = TypeVar("_Step")
_All = TypeVar("_All")


def acquire_steps(
    model: Model,
    rows: Rows,
    target: int | Sequence[int] | Tensor,
    chooser: Chooser,
    *,
    given: Tensor | None = None,
    costs: Sequence[float] | None = None,
    generator: Generator,
    rows_per_pass: int | None = None,
) -> Iterator[Acquired]:
    """Measure one variable after another, each row its own; ends when no row can or wants to go on.

    Args:
        model: what predicts.
        rows: test rows; the target must be present in all of them.
        target: the variables to predict: one, several, or bool (B, N) for different ones in each row.
        chooser: what is measured next.
        given: bool (N,) or (B, N), known from the start (where present), at no cost; by default nothing.
        costs: N prices to add up (those of targets are not read); by default 1 each. The chooser has its own.
        generator: the source of all randomness.
        rows_per_pass: most rows in one call of the network when predictions are scored.
    """
    model.check_rows(rows.x)
    rows = rows.to(next(chain(model.parameters(), model.buffers()), rows.x).device)
    wanted = _wanted(target, rows)
    if bool((wanted & ~rows.present).any()):
        row, variable = (wanted & ~rows.present).nonzero()[0].tolist()
        raise refuse("target", expected="present in every row", got=f"row {row}, variable {variable} missing")
    known = _given(given, rows, wanted)
    price = _price(costs, rows)
    candidate = rows.present & ~known & ~wanted
    open_rows = candidate.any(1)
    steps = int(candidate.sum(1).max()) if len(rows) else 0
    chosen = torch.full((len(rows),), -1, device=known.device)
    gain = torch.full((len(rows),), torch.nan, dtype=torch.float64, device=known.device)
    cost = torch.zeros_like(gain)
    scores = _scores(model, rows, known, wanted, rows_per_pass)
    yield Acquired(chosen, gain, cost, *scores, known=known, step=0, steps=steps)
    for step in range(1, steps + 1):
        index = open_rows.nonzero()[:, 0]
        if not len(index):
            return
        standing = Standing.of(rows.take(index), known[index], candidate[index], wanted[index])
        choice = chooser.choose(model, standing, generator=generator)
        _check_choice(choice.variable, standing.candidate)
        chosen, gain = torch.full_like(chosen, -1), torch.full_like(gain, torch.nan)
        chosen[index], gain[index] = choice.variable, choice.gain
        moved = (chosen >= 0).nonzero()[:, 0]
        now = torch.zeros_like(known)
        now[moved, chosen[moved]] = True
        known, candidate = known | now, candidate & ~now
        cost = cost + torch.where(now, price, 0.0).sum(1)
        scores = scores.clone()
        scores[:, moved] = _scores(model, rows.take(moved), known[moved], wanted[moved], rows_per_pass)
        open_rows = (chosen >= 0) & candidate.any(1)
        yield Acquired(chosen, gain, cost, *scores, known=known, step=step, steps=steps)


def global_order_steps(
    model: Model,
    rows: Rows,
    target: int | Sequence[int] | Tensor,
    *,
    by: Rewarding | None = None,
    given: Tensor | None = None,
    generator: Generator,
) -> Iterator[tuple[int, float]]:
    """The next variable of the order and its mean reward, chosen greedily.

    Each step takes the variable with the greatest mean reward (per cost) over all rows, where every row knows what it
    has of the variables taken so far. A missing value is not given, but its reward counts; a given one has none left.

    Args:
        model: what predicts.
        rows: *training* rows: an order chosen on test rows would know them. A few hundred are enough.
        target: as for ``acquire_steps``; its values are read by a reward that looks at true values alone.
        by: whose reward; by default ``Informed()``.
        given: as for ``acquire_steps``; what is given in every row is no part of the order.
        generator: the source of all randomness.
    """
    model.check_rows(rows.x)
    by = Informed() if by is None else by
    rows = rows.to(next(chain(model.parameters(), model.buffers()), rows.x).device)
    if not len(rows):
        raise refuse("rows", expected="one at least", got="none")
    wanted = _wanted(target, rows)
    start = _given(given, rows, wanted)
    price = _price(by.costs, rows)
    left = ~(wanted | start).all(0)
    taken = torch.zeros_like(left)
    while bool(left.any()):
        known = start | (rows.present & taken)
        standing = Standing.of(rows, known, left & ~(wanted | start), wanted)
        reward = by.reward(model, standing, generator=generator).value.mean(0)
        best = int(torch.where(left, reward / price, -torch.inf).argmax())
        left[best], taken[best] = False, True
        yield best, float(reward[best])


def _to_the_end(steps: Callable[_P, Iterator[_Step]], gather: Callable[[list[_Step]], _All]) -> Callable[_P, _All]:
    """What ``gather`` makes of all steps."""

    def run(*args: _P.args, **options: _P.kwargs) -> _All:
        return gather(list(steps(*args, **options)))

    return run


acquire_rows = _to_the_end(acquire_steps, Curves.of)
"""The curves of a chooser on test rows: ``acquire_steps`` run to its end."""
global_order = _to_the_end(global_order_steps, lambda steps: tuple(variable for variable, _ in steps))
"""One order for all rows, for ``InOrder`` (SING): ``global_order_steps`` run to its end."""


def _scores(model: Model, rows: Rows, known: Tensor, wanted: Tensor, rows_per_pass: int | None) -> Tensor:
    """float64 (3, B): squared error of the mean, log p(y | x_known), share of wrong codes."""
    scores = torch.zeros(3, len(rows), dtype=torch.float64, device=known.device)
    if not len(rows):
        return scores
    order = Increasing() if model.order.random else None
    question = Question(known, wanted)
    factorization = step_factorization(
        model.factorizations, question, model.order, order=model.order if order is None else order
    )
    if factorization is None:
        raise untrained(model.factorizations, "log p(target | measured)")
    answer = log_prob(
        model,
        rows.x,
        question,
        factorization=factorization,
        order=order,
        context=rows.context,
        rows_per_pass=rows_per_pass,
    )
    scores[1] = answer.value
    sizes = code_sizes(model.likelihood, model.variables).to(known.device)
    with model.evaluating():
        for part in portions(len(rows), model, rows_per_pass, known.device):
            some, asked = rows.take(part), wanted[part]
            marginals = each_given(model, some.x, known[part], asked, some.context)
            error, wrong = _errors(marginals, some.x, sizes)
            coded = asked & (sizes > 0)
            scores[0, part] = torch.where(asked, error, 0.0).sum(1) / asked.sum(1)
            scores[2, part] = torch.where(coded, wrong, 0.0).sum(1) / coded.sum(1)  # NaN where there is none
    return scores


def _errors(marginals: Marginals, x: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """float64 (B, N) each: squared error of the mean (half the Brier score, for codes), and 1.0 = a wrong code."""
    error = (marginals.mean().double() - x.double()) ** 2
    brier, right, most = torch.zeros_like(error), torch.zeros_like(error), torch.full_like(error, -1.0)
    for code in range(int(sizes.max())):
        hit = (x == code).double()
        p = torch.where(code < sizes, marginals.log_prob(torch.full_like(x, code)).double().exp(), 0.0)
        brier += 0.5 * (p - hit) ** 2
        right, most = torch.where(p > most, hit, right), torch.maximum(p, most)
    return torch.where(sizes > 0, brier, error), 1.0 - right


def _wanted(target: int | Sequence[int] | Tensor, rows: Rows) -> Tensor:
    """bool (B, N): the target of each row, one variable at least."""
    if isinstance(target, Tensor):
        wanted = _widened("target", target, rows)
    else:
        wanted = torch.zeros_like(rows.present)
        for variable in [target] if isinstance(target, int) else target:
            require_count("target", variable, minimum=0, maximum=rows.variables - 1)
            wanted[:, variable] = True
    if not bool(wanted.any(1).all()):
        raise refuse("target", expected="one variable at least in every row", got="none")
    return wanted


def _given(given: Tensor | None, rows: Rows, wanted: Tensor) -> Tensor:
    """bool (B, N): what is known from the start."""
    if given is None:
        return torch.zeros_like(wanted)
    return Question(_widened("given", given, rows) & rows.present, wanted).checked().given


def _widened(name: str, flags: Tensor, rows: Rows) -> Tensor:
    """bool (B, N): flags (N,) or (B, N), where the rows are."""
    require_bool(name, flags)
    if tuple(flags.shape) not in (tuple(rows.x.shape[1:]), tuple(rows.x.shape)):
        raise refuse(f"shape of {name}", expected=f"{tuple(rows.x.shape)}", got=tuple(flags.shape))
    return flags.to(rows.x.device).expand(rows.x.shape)


def _price(costs: Sequence[float] | None, rows: Rows) -> Tensor:
    """float64 (N,): what each variable costs."""
    if costs is None:
        return torch.ones(rows.variables, dtype=torch.float64, device=rows.x.device)
    if len(costs) != rows.variables:
        raise refuse("costs", expected=f"one for each of {rows.variables} variables", got=len(costs))
    for cost in costs:
        require_positive("cost", cost)
    return torch.tensor(list(costs), dtype=torch.float64, device=rows.x.device)


def _check_choice(variable: Tensor, candidate: Tensor) -> None:
    """ValueError if a chooser names what is no candidate: a value would be measured twice, or the target given."""
    named = candidate.gather(1, variable.clamp(min=0)[:, None])[:, 0]
    if bool(((variable >= 0) & ~named).any()):
        raise refuse("choice", expected="a candidate of its row, or -1", got=variable.tolist())
