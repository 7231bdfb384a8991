"""In the simulator: the same seed is the same episode, actions played again lead where they led, what is off is off."""

import json

import numpy as np
import pytest
import torch

pytest.importorskip("gymnasium_robotics")

from anyfill import policy
from anyfill.cli.main import run
from anyfill.policy.kitchen import JOINTS, MOTORS
from anyfill.policy.rollouts import Conditions, rollout
from anyfill.policy.simulator import Kitchen, Kitchens

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Hardly trained, on noise."""
    source = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("rollouts")
    from anyfill.policy.kitchen import TASKS

    arrays = {"qpos": source.normal(size=(40, 30)), "act": source.uniform(-1, 1, (40, 9)), "length": np.full(4, 10)}
    np.savez(folder / "demos.npz", **arrays, tasks=np.array(TASKS), when=source.integers(-1, 10, (4, 7)))
    small = {"steps": 2, "width": 16, "depth": 1, "components": 2, "batch": 8, "device": "cpu"}
    return policy.train(folder / "demos.npz", folder / "model", chunk=2, history=2, **small), folder / "model"


def test_the_same_seed_gives_the_same_episodes_in_one_process_and_in_two(model):
    how = {"episodes": 3, "steps": 6, "seed": 5, "goal": "microwave,kettle"}
    one, two, other = (
        rollout(model[0], **how),
        rollout(model[0], workers=2, **how),
        rollout(model[0], **how | {"seed": 6}),
    )
    assert np.array_equal(one.actions, two.actions)
    assert np.array_equal(one.states, two.states)
    assert not np.array_equal(one.actions, other.actions)


def test_actions_played_again_lead_where_they_led(model):
    found = rollout(model[0], episodes=1, steps=8, seed=2)
    kitchen = Kitchen()
    kitchen.reset(2)
    states = np.stack([kitchen.step(action)[0] for action in found.actions[0]])
    assert np.array_equal(states, found.states[0])


def test_environments_side_by_side_step_as_each_by_itself():
    actions = np.random.default_rng(0).uniform(-1, 1, (4, 2, JOINTS)).astype(np.float32)
    together = Kitchens([1, 2], 2)
    together.reset()
    states = [together.step(action)[0] for action in actions]
    together.close()
    for number, seed in enumerate((1, 2)):
        alone = Kitchen()
        alone.reset(seed)
        assert np.array_equal(
            np.stack([alone.step(action[number])[0] for action in actions]), np.stack(states)[:, number]
        )


@pytest.mark.parametrize("told", [True, False])
def test_a_motor_that_is_off_does_nothing_told_or_not(model, told):
    found = rollout(model[0], episodes=2, steps=4, conditions=Conditions(0.3, MOTORS[2], told))
    assert not found.actions[:, :, 2].any()
    assert found.actions[:, :, 3].any()


def test_what_is_lost_is_not_read(model):
    """All sensors lost and told: whatever the kitchen does, the first draws of two seeds' actions have one law."""
    first = rollout(model[0], episodes=1, steps=2, seed=3, temperature=0.0, conditions=Conditions(1.0))
    second = rollout(model[0], episodes=1, steps=2, seed=4, temperature=0.0, conditions=Conditions(1.0))
    assert np.array_equal(first.actions, second.actions)
    assert not np.array_equal(first.states, second.states)


def test_the_task_that_is_done_is_noted_at_its_step_and_the_goal_moves_on(model):
    """The slide cabinet is put where it shall be: the environment says done, once."""
    kitchen = Kitchen()
    kitchen.reset(0)
    inner = kitchen.env.unwrapped
    inner.data.qpos[19] = 0.37
    done = [task for _ in range(3) for task in kitchen.step(np.zeros(JOINTS, dtype=np.float32))[1]]
    assert done == ["slide cabinet"]
    from anyfill.policy.rollouts import _Task

    task = _Task(model[0], [3, 6], Conditions(), 1.0)
    completed = np.full((3, 7), -1)
    completed[1, 3], completed[2, [3, 6]] = 5, 7
    assert task._next(completed).tolist() == [3.0, 6.0, 7.0]


def test_the_command_writes_results_and_the_report_a_page(model, tmp_path):
    out, page = tmp_path / "out", tmp_path / "page"
    words = ["--episodes", "2", "--steps", "3", "--goal", "kettle", "--seed", "0", "--no-film"]
    assert run(["policy", "rollout", str(model[1]), "-o", str(out), *words]) == 0
    result = json.loads((out / "results.json").read_text())
    assert result["episodes"] == 2
    assert result["of_goal"]["mean"] == 0.0
    assert (out / "states.png").stat().st_size > 1000
    assert run(["policy", "report", str(out), "-o", str(page)]) == 0
    assert "bottom burner" in (page / "index.html").read_text()


def test_a_model_of_another_robot_is_refused():
    from anyfill.policy.model import PolicyModel
    from tests.policy.test_linear_gaussian import exact_layout

    other = PolicyModel(torch.nn.Module(), exact_layout(), "joint")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"MODEL: expected a model of 30 positions and 9 actions.*got 3 and 2"):
        rollout(other, episodes=1, steps=1)
