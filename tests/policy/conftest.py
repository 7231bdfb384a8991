"""Small demonstrations to try things on; nothing here is a real robot."""

from pathlib import Path

import numpy as np
import pytest

from anyfill.policy.kitchen import TASKS


def noise() -> dict[str, np.ndarray]:
    """Arrays as the kitchen's file has them, of noise: three trajectories of 6, 4 and 5 steps."""
    source = np.random.default_rng(0)
    length = np.array([6, 4, 5])
    when = np.full((3, 7), -1)
    when[0, TASKS.index("microwave")], when[0, TASKS.index("kettle")] = 2, 4
    when[1, TASKS.index("light switch")] = 3
    return {
        "qpos": source.normal(size=(15, 30)).astype(np.float32),
        "act": source.uniform(-1, 1, size=(15, 9)).astype(np.float32),
        "length": length,
        "tasks": np.array(TASKS),
        "when": when,
        "folder": np.array(["a"] * 3),
        "log": np.array(["a"] * 3),
    }


@pytest.fixture
def kitchen_arrays() -> dict[str, np.ndarray]:
    return noise()


@pytest.fixture
def kitchen_file(tmp_path: Path, kitchen_arrays: dict[str, np.ndarray]) -> Path:
    path = tmp_path / "demos.npz"
    np.savez(path, **kitchen_arrays)
    return path


CSV = """run,t,x,y,push,room
a,0,0.0,1.0,0.5,hall
a,1,0.1,1.1,0.4,hall
a,2,0.2,1.2,0.3,kitchen
b,0,5.0,2.0,-1,hall
b,1,5.5,2.5,-2,hall
"""
GROUPS = '{"episode": "run", "observation": ["x", "y"], "action": ["push"], "goal": ["room"], "next": ["y"]}'


@pytest.fixture
def table(tmp_path: Path) -> tuple[Path, Path]:
    """A CSV file of two trajectories, and its groups."""
    (tmp_path / "runs.csv").write_text(CSV)
    (tmp_path / "groups.json").write_text(GROUPS)
    return tmp_path / "runs.csv", tmp_path / "groups.json"
