"""Demonstrations: trajectories of what was sensed, done and aimed at, one after another in time.

Step t of a trajectory has an observation o_t (O numbers), an action a_t (A numbers, taken in o_t and leading to
o_(t+1)) and a goal g_t: a code out of a list (the next task), or plain numbers (a place to reach).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anyfill.checks import refuse

Floats = np.ndarray[Any, np.dtype[np.float32]]
Whole = np.ndarray[Any, np.dtype[np.int64]]
_SPLIT_SEED = 7


@dataclass(frozen=True, slots=True)
class Columns:
    """What the numbers of a step are called.

    Attributes:
        observation, action, goal: names.
        next: of the observations, by index, those that are foreseen one step (one chunk of actions) later.
        categories: for each goal its codes by name; none = a number.
    """

    observation: tuple[str, ...]
    action: tuple[str, ...] = ()
    goal: tuple[str, ...] = ()
    next: tuple[int, ...] = ()
    categories: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.observation:
            raise refuse("observation", expected="a column at least", got="none")
        named = (*self.observation, *self.action, *self.goal)
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            raise refuse("columns", expected="each in one group", got=f"{', '.join(twice)} twice")
        if len(self.categories) != len(self.goal):
            raise refuse(
                "categories", expected=f"one list for each of {len(self.goal)} goals", got=len(self.categories)
            )
        for place in self.next:
            if not 0 <= place < len(self.observation):
                raise refuse("next", expected="columns that are observed", got=f"number {place}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Demonstrations:
    """Trajectories behind one another.

    Attributes:
        columns: the names.
        observation: float32 (T, O); NaN = missing, where that is allowed.
        action: float32 (T, A).
        goal: float32 (T, G), codes where the goal has categories; NaN = not known.
        length: int64 (D,), the steps of each trajectory.
        name: what to call them.
    """

    columns: Columns
    observation: Floats
    action: Floats
    goal: Floats
    length: Whole
    name: str = "demonstrations"

    def __post_init__(self) -> None:
        steps = int(self.length.sum()) if len(self.length) else 0
        wanted = zip(
            ("observation", "action", "goal"), (self.columns.observation, self.columns.action, self.columns.goal)
        )
        for group, names in wanted:
            shape = getattr(self, group).shape
            if shape != (steps, len(names)):
                expected = f"{steps:,} steps of {len(names)} columns"
                got = f"{shape[0]:,} of {shape[1]}" if len(shape) == 2 else f"an array of shape {shape}"
                raise refuse(f"{group} of {self.name}", expected=expected, got=got)
        if not len(self.length):
            raise refuse(self.name, expected="a trajectory at least", got="none")
        if self.length.min() < 2:
            short = int(self.length.argmin())
            expected = "two steps at least in each trajectory"
            raise refuse(self.name, expected=expected, got=f"{int(self.length[short])} in number {short}")

    def __len__(self) -> int:
        return len(self.length)

    @property
    def steps(self) -> int:
        """T."""
        return len(self.observation)

    @property
    def start(self) -> Whole:
        """int64 (D,): where each trajectory begins."""
        return np.cumsum(self.length) - self.length

    def __repr__(self) -> str:
        return f"<{self.describe()}>"

    def describe(self) -> str:
        """In words."""
        c = self.columns
        groups = f"{len(c.observation)} observed, {len(c.action)} actions, {len(c.goal)} goals"
        return f"{self.name}: {len(self):,} trajectories, {self.steps:,} steps; {groups}"

    def take(self, numbers: Sequence[int] | Whole) -> "Demonstrations":
        """Some of the trajectories, in this order."""
        start = self.start
        places = [np.arange(start[number], start[number] + self.length[number]) for number in numbers]
        index = np.concatenate(places) if places else np.zeros(0, dtype=np.int64)
        parts = (self.observation[index], self.action[index], self.goal[index])
        return Demonstrations(self.columns, *parts, self.length[np.asarray(numbers, dtype=np.int64)], self.name)

    def split(self, share: float) -> tuple["Demonstrations", "Demonstrations | None"]:
        """To train on, and held out: whole trajectories, so that no step is foreseen by its neighbours."""
        order = np.random.default_rng(_SPLIT_SEED).permutation(len(self))
        held = max(1, round(share * len(self))) if share > 0 and len(self) > 1 else 0
        if not held:
            return self, None
        return self.take(np.sort(order[held:])), self.take(np.sort(order[:held]))

    def without(self, *, goal: bool = False) -> "Demonstrations":
        """The same without goals, if that is wished."""
        if not goal or not self.columns.goal:
            return self
        c = self.columns
        columns = Columns(c.observation, c.action, (), c.next, ())
        return Demonstrations(columns, self.observation, self.action, self.goal[:, :0], self.length, self.name)


def refuse_not_finite(table: Floats, names: Sequence[str], where: str, *, missing: bool = False) -> None:
    """ValueError for the first cell (T, D) that is not finite; NaN is allowed if values may be missing."""
    bad = np.isinf(table) if missing else ~np.isfinite(table)
    if bad.any():
        step, place = (int(i) for i in np.argwhere(bad)[0])
        expected = "a finite number" + (
            "" if missing else " (missing: true in the groups allows sensors that are not read)"
        )
        raise refuse(f"{names[place]!r} at step {step} of {where}", expected=expected, got=table[step, place].item())
