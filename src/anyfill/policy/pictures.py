"""Pictures of rollouts: a strip of frames where the simulator can draw, and always the states over time."""

from pathlib import Path
from typing import Any

import numpy as np

from anyfill.policy.kitchen import SENSORS, TASKS
from anyfill.policy.rollouts import Rollouts
from anyfill.policy.simulator import film

_SHOWN = (
    "slide",
    "hinge right",
    "microwave",
    "kettle x",
    "kettle y",
    "light turn",
    "bottom left burner turn",
    "top left burner turn",
)


def save_states(rollouts: Rollouts, path: Path, *, episodes: int = 3) -> None:
    """Draw joints and moved things of the first episodes over time, with the steps at which tasks were done."""
    from matplotlib.figure import Figure

    shown = min(episodes, len(rollouts))
    figure = Figure(figsize=(4.2 * shown, 5.6), layout="constrained")
    axes: Any = figure.subplots(2, shown, sharex=True, squeeze=False)
    for column in range(shown):
        states = rollouts.states[column]
        for joint in range(7):
            axes[0][column].plot(states[:, joint], linewidth=1, label=SENSORS[joint])
        for name in _SHOWN:
            place = SENSORS.index(name)
            axes[1][column].plot(states[:, place] - states[0, place], linewidth=1, label=name)
        for task, step in zip(TASKS, rollouts.completed[column].tolist()):
            if step >= 0:
                axes[1][column].axvline(step, color="grey", linewidth=0.8, linestyle=":")
                axes[1][column].annotate(
                    task, (step, 1.0), xycoords=("data", "axes fraction"), rotation=90, fontsize=6, va="top"
                )
        axes[0][column].set_title(
            f"episode {column + 1}: {int((rollouts.completed[column] >= 0).sum())} tasks", fontsize=9
        )
        axes[1][column].set_xlabel("step")
    axes[0][0].set_ylabel("joints (rad)")
    axes[1][0].set_ylabel("moved since the start")
    for row in range(2):
        axes[row][-1].legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=110)


def save_film(rollouts: Rollouts, path: Path, *, episodes: int = 2, frames: int = 8) -> None:
    """Draw a strip of frames for the first episodes; ValueError where the simulator cannot draw."""
    from PIL import Image

    strips = [
        np.concatenate(film(rollouts.actions[number], rollouts.seed + number, frames), 1)
        for number in range(min(episodes, len(rollouts)))
    ]
    Image.fromarray(np.concatenate(strips, 0)).save(path)
