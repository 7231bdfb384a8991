"""What the variables of a row are, and how numbers become the standardised values that networks see.

A row of a step t is

    [ o_(t-H+1) … o_t,   g_t,   a_t … a_(t+C-1),   the foreseen part of o_(t+C) ]

with a history of H observations and a chunk of C actions. What lies before the beginning of a trajectory or behind its
end is missing: neither given nor asked. A row of a *whole* trajectory has its P evenly spaced observations as history,
and no actions.

    value = (number - mean) / scale      for numbers, each column by its own moments, and in whole trajectories each
                                         point of a column; what hardly varies keeps its own unit
    value = code                         for goals with categories
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.policy.demonstrations import Columns, Demonstrations
from anyfill.rows import Rows

GROUPS = ("observation", "goal", "action", "next")
_STILL = 1e-6


@dataclass(frozen=True, slots=True)
class Blocks:
    """How many variables of a row are observation (history and all), goal, action and next, in this order."""

    observation: int
    goal: int = 0
    action: int = 0
    next: int = 0

    @property
    def variables(self) -> int:
        """N."""
        return self.observation + self.goal + self.action + self.next

    def place(self, group: str) -> slice:
        """Where a group stands."""
        begin = 0
        for name in GROUPS:
            if name == group:
                return slice(begin, begin + int(getattr(self, name)))
            begin += int(getattr(self, name))
        raise refuse("group", expected=", ".join(GROUPS), got=repr(group))


@dataclass(frozen=True, slots=True)
class Layout:
    """The variables of a row.

    Attributes:
        columns: the names.
        history: H.
        chunk: C.
        whole: P, if rows are whole trajectories; then it is the history.
        center, scale: of the columns observation, goal, action, one after another; of every variable if whole.
    """

    columns: Columns
    history: int = 1
    chunk: int = 1
    whole: int = 0
    center: tuple[float, ...] = field(default=())
    scale: tuple[float, ...] = field(default=())

    def __post_init__(self) -> None:
        require_count("history", self.history)
        require_count("chunk", self.chunk)
        require_count("points", self.whole, minimum=0)
        c = self.columns
        if self.whole == 1:
            raise refuse("points", expected="two at least of a trajectory", got=1)
        if not self.whole and not c.action:
            expected = "actions (columns named in its group), or --points for whole trajectories without any"
            raise refuse("demonstrations", expected=expected, got="no actions")

    @classmethod
    def of(cls, demonstrations: Demonstrations, *, history: int = 1, chunk: int = 1, points: int = 0) -> "Layout":
        """The layout of rows of these demonstrations, standardised by their means and deviations."""
        columns = demonstrations.columns
        if points:
            columns, history, chunk = replace(columns, action=(), next=()), points, 1
        made = cls(columns, history, chunk, points)
        groups = (demonstrations.observation, demonstrations.goal, demonstrations.action)
        values = (_whole(made, demonstrations) if points else np.concatenate(groups, 1)).astype(np.float64)
        observed = made.blocks.observation if points else len(columns.observation)
        coded = np.array([False] * observed + [bool(c) for c in columns.categories])
        coded = np.concatenate([coded, np.zeros(values.shape[1] - len(coded), dtype=bool)])
        there = np.isfinite(values)
        count = np.maximum(there.sum(0), 1)
        center = np.where(there, values, 0.0).sum(0) / count
        deviation = np.sqrt(np.where(there, (values - center) ** 2, 0.0).sum(0) / count)
        still = deviation <= _STILL * np.maximum(np.abs(center), 1.0)
        center, scale = np.where(coded, 0.0, center), np.where(coded | still, 1.0, deviation)
        return replace(made, center=tuple(center.tolist()), scale=tuple(scale.tolist()))

    @property
    def blocks(self) -> Blocks:
        """How many variables of each group there are."""
        c = self.columns
        sizes = (self.history * len(c.observation), len(c.goal), self.chunk * len(c.action), len(c.next))
        return Blocks(*sizes)

    @property
    def variables(self) -> int:
        """N."""
        return self.blocks.variables

    @property
    def names(self) -> tuple[str, ...]:
        """What each variable is called: ``x``, ``x@-1`` one step before, ``push@+1`` one step later, ``next x``."""
        c = self.columns

        def at(name: str, step: int) -> str:
            return f"{name}@{step}" if self.whole else name if step == 0 else f"{name}@{step:+d}"

        times = range(self.whole) if self.whole else range(1 - self.history, 1)
        observed = [at(name, time) for time in times for name in c.observation]
        actions = [at(name, time) for time in range(self.chunk) for name in c.action]
        return (*observed, *c.goal, *actions, *(f"next {c.observation[place]}" for place in c.next))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each variable has; 0 = a number."""
        b = self.blocks
        codes = tuple(len(categories) for categories in self.columns.categories)
        return (*(0,) * b.observation, *codes, *(0,) * (b.action + b.next))

    def _moments(self, of: tuple[float, ...]) -> Tensor:
        """(N,) float64: of each variable, from those of each column."""
        c = self.columns
        if self.whole:
            return torch.tensor(of, dtype=torch.float64)
        observed, rest = of[: len(c.observation)], of[len(c.observation) :]
        goal, action = rest[: len(c.goal)], rest[len(c.goal) :]
        spread = (*observed * self.history, *goal, *action * self.chunk, *(observed[place] for place in c.next))
        return torch.tensor(spread, dtype=torch.float64)

    def standardise(self, numbers: Tensor) -> Tensor:
        """Values (B, N) float32 from numbers in the user's units."""
        return ((numbers.double() - self._moments(self.center)) / self._moments(self.scale)).float()

    def restore(self, values: Tensor) -> Tensor:
        """Numbers (…, N) float64 in the user's units from values."""
        device = values.device
        return values.double() * self._moments(self.scale).to(device) + self._moments(self.center).to(device)

    @property
    def log_scale(self) -> Tensor:
        """(N,) float64: what to add to nats of values for nats of numbers in the user's units."""
        return self._moments(self.scale).log()

    def rows(self, demonstrations: Demonstrations) -> Rows:
        """A row for each step, or for each trajectory if they are whole."""
        if demonstrations.columns.observation != self.columns.observation or (
            not self.whole and demonstrations.columns.action != self.columns.action
        ):
            c, own = demonstrations.columns, self.columns
            expected = f"{len(own.observation)} observed columns and {len(own.action)} actions, called as in training"
            raise refuse(demonstrations.name, expected=expected, got=f"{len(c.observation)} and {len(c.action)}")
        numbers = _whole(self, demonstrations) if self.whole else _steps(self, demonstrations)
        return Rows.from_values(self.standardise(torch.from_numpy(numbers)))


def _goals(layout: Layout, demonstrations: Demonstrations) -> Any:
    """(T, G): the goals of the layout, by their own codes; NaN = not known, or a code that was never seen."""
    c = demonstrations.columns
    columns: list[Any] = []
    for name, categories in zip(layout.columns.goal, layout.columns.categories):
        if name not in c.goal:
            columns.append(np.full(demonstrations.steps, np.nan, dtype=np.float32))
            continue
        place = c.goal.index(name)
        values = demonstrations.goal[:, place]
        if c.categories[place] != categories and not np.isnan(values).all():
            own = _meanings(c.categories[place], categories, f"goal {name!r} of {demonstrations.name}")
            values = np.where(np.isnan(values), np.nan, own[np.nan_to_num(values).astype(np.int64)])
        columns.append(values)
    return np.stack(columns, 1) if columns else np.zeros((demonstrations.steps, 0), dtype=np.float32)


def _meanings(own: tuple[str, ...], categories: tuple[str, ...], what: str) -> Any:
    """float32 (K,): what each code of a file is in training, a code there (NaN = never seen) or a number."""
    if not own:
        raise refuse(what, expected="words or whole numbers, as in training", got="other numbers")
    code = {word: float(number) for number, word in enumerate(categories)}
    try:
        return np.array([code.get(word, np.nan) if code else float(word) for word in own], dtype=np.float32)
    except ValueError:
        raise refuse(what, expected="numbers, as in training", got=f"words such as {own[0]!r}") from None


def _steps(layout: Layout, demonstrations: Demonstrations) -> Any:
    """float32 (T, N): one row for each step, NaN where there is nothing."""
    first = np.repeat(demonstrations.start, demonstrations.length)
    last = first + np.repeat(demonstrations.length, demonstrations.length) - 1
    step = np.arange(demonstrations.steps)

    def moved(values: Any, by: int) -> Any:
        place = step + by
        inside = (place >= first) & (place <= last)
        return np.where(inside[:, None], values[np.clip(place, first, last)], np.float32(np.nan))

    past = [moved(demonstrations.observation, time) for time in range(1 - layout.history, 1)]
    actions = [moved(demonstrations.action, time) for time in range(layout.chunk)]
    foreseen = moved(demonstrations.observation[:, list(layout.columns.next)], layout.chunk)
    return np.concatenate([*past, _goals(layout, demonstrations), *actions, foreseen], 1).astype(np.float32)


def _whole(layout: Layout, demonstrations: Demonstrations) -> Any:
    """float32 (D, N): one row for each trajectory, its observations between the steps interpolated."""
    goals = _goals(layout, demonstrations)
    made: list[Any] = []
    for begin, steps in zip(demonstrations.start, demonstrations.length):
        points = resampled(demonstrations.observation[begin : begin + steps], layout.whole)
        made.append(np.concatenate([points.ravel(), goals[begin]]))
    return np.stack(made).astype(np.float32)


def resampled(observation: Any, points: int) -> Any:
    """(P, O): so many evenly spaced steps of a trajectory (T, O), interpolated linearly between its own."""
    steps = np.linspace(0, len(observation) - 1, points)
    own = np.arange(len(observation))
    return np.stack([np.interp(steps, own, column) for column in observation.T], 1)
