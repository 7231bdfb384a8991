"""Policies: one model of demonstrations answers every question about a robot, or about any trajectories.

    >>> from anyfill import policy
    >>> model = policy.train("demos.npz", "model")  # doctest: +SKIP
    >>> model = policy.load("model")  # doctest: +SKIP
    >>> demos = policy.read_demonstrations("demos.npz")  # doctest: +SKIP
    >>> model.ask(demos, "inverse", trajectory=3, step=40, n=5)  # doctest: +SKIP
    >>> policy.rollout(model, goal="microwave,kettle", episodes=8, seed=0)  # doctest: +SKIP

The simulator is an extra: ``pip install "anyfill[policy]"``.
"""

from typing import TYPE_CHECKING

from anyfill.lazy import lazily

if TYPE_CHECKING:
    from anyfill.policy.demonstrations import Columns, Demonstrations
    from anyfill.policy.layout import Blocks, Layout
    from anyfill.policy.model import Answer, PolicyModel, load
    from anyfill.policy.neighbour import NearestRow
    from anyfill.policy.reading import read_demonstrations
    from anyfill.policy.rollouts import Conditions, Rollouts, rollout
    from anyfill.policy.training import train

__all__ = [
    "Answer",
    "Blocks",
    "Columns",
    "Conditions",
    "Demonstrations",
    "Layout",
    "NearestRow",
    "PolicyModel",
    "Rollouts",
    "load",
    "read_demonstrations",
    "rollout",
    "train",
]

_HOME = {
    "Answer": "model",
    "Blocks": "layout",
    "Columns": "demonstrations",
    "Conditions": "rollouts",
    "Demonstrations": "demonstrations",
    "Layout": "layout",
    "NearestRow": "neighbour",
    "PolicyModel": "model",
    "Rollouts": "rollouts",
    "load": "model",
    "read_demonstrations": "reading",
    "rollout": "rollouts",
    "train": "training",
}

__getattr__, __dir__ = lazily(__name__, _HOME)
