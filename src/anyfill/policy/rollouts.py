"""Rollouts: a model acts in many kitchens at once, with everything working or with sensors lost and a motor off.

At every step the model is asked p(a | o) or, with goals, p(a | o, next task): the first of the named tasks that is not
done yet. Of a chunk all actions are done one after another before the next question.

    sensors lost   in each episode a random part of the 30 positions, the same from beginning to end.
                   told: not given;  untold: stuck at what they read first
    a motor off    its action is 0 whatever is asked of it.  told: that 0 is given;  untold: nobody knows

Seed s of a run gives episode i the environment's seed s + i and its own lost sensors; draws come from one generator.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.checks import refuse, require_count, require_probability
from anyfill.interface.progress import metered
from anyfill.policy.demonstrations import Floats
from anyfill.policy.kitchen import ENVIRONMENT, JOINTS, MIXED, MOTORS, POSITIONS, STEPS, TASKS, task_codes
from anyfill.policy.model import PolicyModel, load
from anyfill.policy.simulator import Kitchens, require_environment
from anyfill.questions import Question

Episodes = tuple[Any, Floats, Floats]
"""Completed (E, 7), actions (E, T, 9), states (E, T, 30)."""
AT_ONCE = 50
"""Environments side by side."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What does not work.

    Attributes:
        lost: share of the sensors that are lost, 0 to 1.
        motor: the motor that is off, by name; None = all work.
        told: whether the model knows.
    """

    lost: float = 0.0
    motor: str | None = None
    told: bool = True

    def __post_init__(self) -> None:
        require_probability("--lose", self.lost)
        if self.motor is not None and self.motor not in MOTORS:
            raise refuse("--motor-off", expected=", ".join(MOTORS), got=repr(self.motor))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rollouts:
    """What came of E episodes.

    Attributes:
        completed: int64 (E, 7), the step at which each task was done; -1 = never.
        goal: the tasks that were asked for, in order; none = whatever demonstrations do.
        actions: float32 (E, T, 9), as they were done.
        states: float32 (E, T, 30), positions after each.
        seed: of the run.
    """

    completed: Any
    goal: tuple[str, ...]
    actions: Floats
    states: Floats
    seed: int

    def __len__(self) -> int:
        return len(self.completed)

    def __repr__(self) -> str:
        return f"<Rollouts: {self.describe()}>"

    def counted(self, tasks: tuple[str, ...]) -> Any:
        """int64 (E,): how many of these tasks each episode did."""
        return (self.completed[:, [TASKS.index(task) for task in tasks]] >= 0).sum(1)

    def describe(self) -> str:
        """In words."""
        four, seven = (interval(self.counted(tasks)) for tasks in (MIXED, TASKS))
        return f"{len(self)} episodes; tasks done: {four} of the four, {seven} of seven"

    def summary(self) -> dict[str, Any]:
        """Numbers for a results file."""
        share = (self.completed >= 0).mean(0)
        return {
            "episodes": len(self),
            "seed": self.seed,
            "goal": list(self.goal),
            "of_four": mean_and_error(self.counted(MIXED)),
            "of_seven": mean_and_error(self.counted(TASKS)),
            "of_goal": mean_and_error(self.counted(self.goal)) if self.goal else None,
            "share_done": {task: float(one) for task, one in zip(TASKS, share)},
            "completed": self.completed.tolist(),
        }


def mean_and_error(counts: Any) -> dict[str, float]:
    """Mean of counts over episodes, and its standard error."""
    deviation = float(counts.std(ddof=1)) if len(counts) > 1 else 0.0
    return {"mean": float(counts.mean()), "stderr": deviation / math.sqrt(len(counts))}


def interval(counts: Any) -> str:
    """Mean and twice its standard error, in words."""
    found = mean_and_error(counts)
    return f"{found['mean']:.2f} ± {2 * found['stderr']:.2f}"


def rollout(
    model: PolicyModel | str | Path,
    *,
    goal: str | None = None,
    episodes: int = 8,
    seed: int = 0,
    temperature: float = 1.0,
    conditions: Conditions | None = None,
    steps: int = STEPS,
    workers: int = 1,
    environment: str = ENVIRONMENT,
    progress: bool = False,
) -> Rollouts:
    """Let a model act in FrankaKitchen-v1.

    Args:
        model: trained on demonstrations of it.
        goal: tasks with commas between them, to be done in this order; None = no goal is told.
        episodes: how many.
        seed: of everything random.
        temperature: of the actions; 1 draws, 0 takes the mode.
        conditions: what does not work.
        steps: of an episode.
        workers: parallel processes.
        environment: FrankaKitchen-v1.
        progress: show on stderr how far it is.
    """
    require_environment(environment)
    model = model if isinstance(model, PolicyModel) else load(model)
    for name, count in (("--episodes", episodes), ("--steps", steps), ("--workers", workers)):
        require_count(name, count)
    codes = [] if goal is None else task_codes(goal)
    task = _Task(model, codes, Conditions() if conditions is None else conditions, temperature)
    source = torch.Generator(device=model.device).manual_seed(seed)

    def parts() -> Iterator[tuple[Episodes | None, float]]:
        for begin in range(0, episodes, AT_ONCE):
            numbers = [seed + i for i in range(begin, min(begin + AT_ONCE, episodes))]
            kitchens = Kitchens(numbers, min(workers, len(numbers)))
            try:
                for made, share in task.run(kitchens, numbers, steps, source):
                    done = (begin + share * len(numbers)) / episodes
                    yield made, done
            finally:
                kitchens.close()

    stream = metered(parts(), "rollouts") if progress else (made for made, _ in parts())
    whole = [made for made in stream if made is not None]
    completed, actions, states = (np.concatenate([one[i] for one in whole]) for i in range(3))
    return Rollouts(completed, tuple(TASKS[code] for code in codes), actions, states, seed)


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """A model, what it shall do and what fails it."""

    model: PolicyModel
    codes: list[int]
    conditions: Conditions
    temperature: float

    def __post_init__(self) -> None:
        layout = self.model.layout
        c = layout.columns
        if layout.whole or len(c.observation) != POSITIONS or len(c.action) != JOINTS:
            expected = f"a model of {POSITIONS} positions and {JOINTS} actions, as {ENVIRONMENT} has"
            raise refuse("MODEL", expected=expected, got=f"{len(c.observation)} and {len(c.action)}")
        if self.codes and c.goal != ("next task",):
            raise refuse("--goal", expected="a model that was trained with goals", got=f"{self.model.name}, without")

    def run(
        self, kitchens: Kitchens, seeds: list[int], steps: int, source: torch.Generator
    ) -> Iterator[tuple[Episodes | None, float]]:
        """After every step the share that is over; with the last one the episodes."""
        layout, fails = self.model.layout, self.conditions
        count = len(seeds)
        lost = np.stack([_lost(fails.lost, seed) for seed in seeds])
        first = kitchens.reset()
        past = np.full((count, layout.history, POSITIONS), np.nan, dtype=np.float32)
        completed = np.full((count, len(TASKS)), -1, dtype=np.int64)
        off = None if fails.motor is None else MOTORS.index(fails.motor)
        states, actions, plan = first, np.zeros((count, steps, JOINTS), dtype=np.float32), np.zeros((count, 0, JOINTS))
        visited = np.zeros((count, steps, POSITIONS), dtype=np.float32)
        for step in range(steps):
            read = np.where(lost, np.float32(np.nan) if fails.told else first, states)
            past = np.concatenate([past[:, 1:], read[:, None]], 1)
            if step % layout.chunk == 0:
                plan = self._plan(past, completed, off if fails.told else None, source)
            action = plan[:, step % layout.chunk].astype(np.float32)
            if off is not None:
                action[:, off] = 0.0
            actions[:, step] = np.clip(action, -1.0, 1.0)
            states, done = kitchens.step(actions[:, step])
            visited[:, step] = states
            for episode, tasks in enumerate(done):
                for task in tasks:
                    place = (episode, TASKS.index(task))
                    completed[place] = step if completed[place] < 0 else completed[place]
            yield (completed, actions, visited) if step + 1 == steps else None, (step + 1) / steps

    def _plan(self, past: Floats, completed: Any, held: int | None, source: torch.Generator) -> Any:
        """(B, C, 9): actions in the robot's units."""
        layout, blocks = self.model.layout, self.model.layout.blocks
        numbers = torch.full((len(past), layout.variables), torch.nan)
        numbers[:, blocks.place("observation")] = torch.from_numpy(past.reshape(len(past), -1))
        if self.codes:
            numbers[:, blocks.place("goal")] = torch.from_numpy(self._next(completed)).unsqueeze(1)
        action = blocks.place("action")
        if held is not None:
            numbers[:, action.start + held : action.stop : JOINTS] = 0.0
        x = layout.standardise(numbers)
        asked = torch.zeros_like(x, dtype=torch.bool)
        asked[:, action] = True
        given = ~x.isnan()
        x = torch.where(given, x, 0.0)
        question = Question(given, asked & ~given)
        answered = self.model.answer(x, question, temperature=self.temperature, generator=source)
        found = layout.restore(answered.cpu())[:, action]
        return found.reshape(len(past), layout.chunk, JOINTS).numpy()

    def _next(self, completed: Any) -> Floats:
        """float32 (B,): the code of the first task in order that is not done; behind the last, "none"."""
        code = np.full(len(completed), float(len(TASKS)), dtype=np.float32)
        for task in reversed(self.codes):
            code = np.where(completed[:, task] < 0, np.float32(task), code)
        return code


def _lost(share: float, seed: int) -> Any:
    """bool (30,): which sensors are lost in the episode of this seed."""
    order = np.random.default_rng([seed, 30]).permutation(POSITIONS)
    return np.isin(np.arange(POSITIONS), order[: round(share * POSITIONS)])
