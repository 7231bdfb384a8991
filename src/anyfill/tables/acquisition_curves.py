"""How fast a prediction improves as variables are measured, and who measures best.

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

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

from anyfill.checks import refuse, require_count

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
