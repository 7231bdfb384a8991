"""FrankaKitchen: what its 30 positions, 9 actions and 7 tasks are, and human demonstrations of it as they come.

The file of demonstrations holds, one trajectory after another, at 12.5 steps a second,

    qpos (T, 30)   positions: 9 joints of the robot (7 of the arm, 2 of the gripper), 21 of the kitchen
    act (T, 9)     velocities asked of the 9 joints, as shares from -1 to 1
    length (D,)    steps of each trajectory
    tasks (7,)     names;  when (D, 7)  the step at which each was done, -1 = never

The goal of a step is the *next* task: that with the smallest ``when`` not before the step, or "none" behind the last.
The environment FrankaKitchen-v1 observes 59 numbers; those that the demonstrations have are its positions, at 0-8 and
18-38 (the others are velocities).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from anyfill.checks import refuse
from anyfill.policy.demonstrations import Columns, Demonstrations, Whole, refuse_not_finite

ENVIRONMENT = "FrankaKitchen-v1"
TASKS = ("bottom burner", "top burner", "light switch", "slide cabinet", "hinge cabinet", "microwave", "kettle")
NONE = "none"
MIXED = ("microwave", "kettle", "bottom burner", "light switch")
"""The four tasks of kitchen-mixed."""
STEPS = 280
"""Of an episode."""
POSITIONS, JOINTS = 30, 9
OBSERVED = (*range(9), *range(18, 39))
"""Where the 30 positions stand in the environment's observation."""

_KITCHEN = (
    *("bottom right burner turn", "bottom right burner light", "bottom left burner turn", "bottom left burner light"),
    *("top right burner turn", "top right burner light", "top left burner turn", "top left burner light"),
    *("light turn", "light on", "slide", "hinge left", "hinge right", "microwave"),
    *("kettle x", "kettle y", "kettle z", "kettle qw", "kettle qx", "kettle qy", "kettle qz"),
)
SENSORS = (*(f"joint {i}" for i in range(1, 8)), "finger 1", "finger 2", *_KITCHEN)
MOTORS = (*(f"motor {i}" for i in range(1, 8)), "grip 1", "grip 2")
COLUMNS = Columns(SENSORS, MOTORS, ("next task",), tuple(range(JOINTS)), ((*TASKS, NONE),))


def looks_like_kitchen(arrays: Mapping[str, Any]) -> bool:
    """True if these are the arrays of the file described above, whatever their shapes."""
    return {"qpos", "length", "when", "tasks"} <= arrays.keys()


def kitchen_demonstrations(arrays: Mapping[str, Any], name: str) -> Demonstrations:
    """The trajectories of such a file; ValueError names what is wrong with it."""
    if "act" not in arrays:
        raise refuse(name, expected="actions (an array act)", got=f"none among {', '.join(arrays)}")
    for key, width in (("qpos", POSITIONS), ("act", JOINTS)):
        if arrays[key].ndim != 2 or arrays[key].shape[1] != width:
            expected = f"(steps, {width}), as {ENVIRONMENT} has"
            raise refuse(f"{key} of {name}", expected=expected, got=f"{arrays[key].shape}")
    length = arrays["length"].astype(np.int64)
    when: Any = arrays["when"]
    tasks = tuple(str(task) for task in arrays["tasks"].tolist())
    if set(tasks) != set(TASKS) or len(tasks) != len(TASKS):
        raise refuse(f"tasks of {name}", expected=f"those of {ENVIRONMENT} ({', '.join(TASKS)})", got=", ".join(tasks))
    if when.shape != (len(length), len(TASKS)):
        raise refuse(f"when of {name}", expected=f"({len(length)}, {len(TASKS)})", got=f"{when.shape}")
    observation, action = (arrays[key].astype(np.float32) for key in ("qpos", "act"))
    refuse_not_finite(observation, SENSORS, name)
    refuse_not_finite(action, MOTORS, name)
    in_order = when[:, [tasks.index(task) for task in TASKS]]
    goal = np.concatenate([next_task(row, int(steps)) for row, steps in zip(in_order, length)] or [np.zeros(0)])
    return Demonstrations(COLUMNS, observation, action, goal.astype(np.float32).reshape(-1, 1), length, name)


def next_task(when: Any, steps: int) -> Whole:
    """int64 (steps,): at each step the code of the task that is done next; the last code = none.

    Args:
        when: (7,), the step at which each task is done; -1 = never.
        steps: of the trajectory.
    """
    done = np.where(when < 0, np.iinfo(np.int64).max, when.astype(np.int64))
    later = np.where(done[None, :] >= np.arange(steps)[:, None], done[None, :], np.iinfo(np.int64).max)
    return np.where(later.min(1) == np.iinfo(np.int64).max, len(TASKS), later.argmin(1)).astype(np.int64)


def task_codes(words: str) -> list[int]:
    """The codes of tasks named with commas between them; ValueError for another name."""
    codes: list[int] = []
    for word in words.split(","):
        task = word.strip().lower().replace("_", " ")
        if task not in TASKS:
            raise refuse("--goal", expected=f"tasks of {ENVIRONMENT} ({', '.join(TASKS)})", got=repr(word.strip()))
        codes.append(TASKS.index(task))
    return codes
