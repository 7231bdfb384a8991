"""Files become trajectories as they are meant, and what cannot be learnt from gets one sentence."""

import json

import numpy as np
import pandas as pd
import pytest

from anyfill.policy import read_demonstrations
from anyfill.policy.kitchen import TASKS, next_task
from anyfill.policy.layout import Layout

NAN = float("nan")


def test_the_goal_of_a_kitchen_step_is_the_task_done_next(kitchen_file):
    found = read_demonstrations(kitchen_file)
    names = [(*TASKS, "none")[int(code)] for code in found.goal[:, 0]]
    assert names[:6] == ["microwave"] * 3 + ["kettle"] * 2 + ["none"]
    assert names[6:10] == ["light switch"] * 4
    assert names[10:] == ["none"] * 5


def test_of_tasks_never_done_none_is_next():
    assert next_task(np.full(7, -1), 3).tolist() == [7, 7, 7]


def test_csv_and_parquet_and_a_folder_give_the_same_trajectories(table, tmp_path):
    path, groups = table
    frame = pd.read_csv(path)
    frame.to_parquet(tmp_path / "runs.parquet")
    (tmp_path / "apart").mkdir()
    for name, part in frame.groupby("run"):
        part.to_csv(tmp_path / "apart" / f"{name}.csv", index=False)
    told = json.loads(groups.read_text())
    several = [
        read_demonstrations(path, groups),
        read_demonstrations(tmp_path / "runs.parquet", told),
        read_demonstrations(tmp_path / "apart", {key: value for key, value in told.items() if key != "episode"}),
    ]
    for found in several:
        assert found.length.tolist() == [3, 2]
        assert found.columns.categories == (("hall", "kitchen"),)
        assert found.goal[:, 0].tolist() == [0, 0, 1, 0, 0]
        assert np.allclose(found.observation, frame[["x", "y"]])
        assert np.allclose(found.action, frame[["push"]])


@pytest.mark.parametrize("kind", ["csv", "parquet", "nullable", "category"])
def test_a_gap_among_whole_numbers_leaves_goals_codes(table, tmp_path, kind):
    """Pandas reads 3, nothing, 5 as 3.0, NaN, 5.0; other numbers stay numbers."""
    frame = pd.read_csv(table[0])
    frame["room"] = [3, None, 5, 3, 3]
    if kind == "nullable":
        frame["room"], frame["x"] = frame["room"].astype("Int64"), frame["x"].astype("Float64")
    if kind == "category":
        frame["room"] = frame["room"].astype("Int64").astype(str).replace("<NA>", None).astype("category")
    path = tmp_path / ("gaps.csv" if kind == "csv" else "gaps.parquet")
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    found = read_demonstrations(path, table[1])
    assert found.columns.categories == (("3", "5"),)
    assert np.array_equal(found.goal[:, 0], np.array([0, NAN, 1, 0, 0], dtype=np.float32), equal_nan=True)
    assert np.allclose(found.observation[:, 0], frame["x"].astype(float))
    frame["room"] = [3.5, None, 5, 3, 3]
    frame.to_csv(tmp_path / "numbers.csv", index=False)
    assert read_demonstrations(tmp_path / "numbers.csv", table[1]).columns.categories == ((),)


def test_a_step_of_no_trajectory_is_refused(table):
    path, groups = table
    path.write_text(path.read_text().replace("b,1,", ",1,"))
    with pytest.raises(ValueError, match=r"'run' at row 5 of .*runs.csv: expected its trajectory, got an empty cell"):
        read_demonstrations(path, groups)


def test_yaml_says_the_same_as_json(table, tmp_path):
    yaml = pytest.importorskip("yaml")
    path, groups = table
    (tmp_path / "groups.yaml").write_text(yaml.safe_dump(json.loads(groups.read_text())))
    ours, theirs = (read_demonstrations(path, one) for one in (groups, tmp_path / "groups.yaml"))
    assert ours.columns == theirs.columns


def test_arrays_of_many_equal_trajectories_need_no_lengths(tmp_path):
    values = np.arange(2 * 3 * 4 * 2, dtype=np.float32).reshape(2, 3, 4, 2)
    np.savez(tmp_path / "pos.npz", pos=values)
    found = read_demonstrations(tmp_path / "pos.npz", {"observation": ["pos"]})
    assert found.length.tolist() == [4] * 6
    assert found.columns.observation == ("pos[0]", "pos[1]")
    assert np.array_equal(found.observation, values.reshape(-1, 2))
    second = read_demonstrations(tmp_path / "pos.npz", {"observation": ["pos[1]"]})
    assert np.array_equal(second.observation[:, 0], values.reshape(-1, 2)[:, 1])


def test_whole_trajectories_are_held_out(kitchen_file):
    found = read_demonstrations(kitchen_file)
    train, held = found.split(0.34)
    assert held is not None
    assert (len(train), len(held)) == (2, 1)
    together = {tuple(row) for row in np.concatenate([train.observation, held.observation]).tolist()}
    assert together == {tuple(row) for row in found.observation.tolist()}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda a: a["qpos"].__setitem__((3, 4), NAN), r"'joint 5' at step 3 of demos.npz: expected a finite number"),
        (lambda a: a.update(qpos=a["qpos"][:, :29]), r"qpos of demos.npz: expected \(steps, 30\)"),
        (lambda a: a.update(act=a["act"][:, :7]), r"act of demos.npz: expected \(steps, 9\).*got \(15, 7\)"),
        (lambda a: a.update(act=a["act"][:9]), "action of demos.npz: expected 15 steps of 9 columns, got 9 of 9"),
        (lambda a: a.update(length=np.array([6, 8, 1])), "expected two steps at least in each trajectory, got 1 in"),
        (lambda a: a.pop("act"), r"expected actions \(an array act\), got none"),
        (lambda a: a.update(tasks=np.array(["door"] * 7)), "tasks of demos.npz: expected those of FrankaKitchen-v1"),
        (lambda a: a.update(when=a["when"][:2]), r"when of demos.npz: expected \(3, 7\), got \(2, 7\)"),
        (lambda a: a.pop("when"), "expected demonstrations of FrankaKitchen .*, or --groups"),
    ],
)
def test_bad_kitchen_demonstrations_get_one_sentence(tmp_path, kitchen_arrays, change, sentence):
    change(kitchen_arrays)
    np.savez(tmp_path / "demos.npz", **kitchen_arrays)
    with pytest.raises(ValueError, match=sentence):
        read_demonstrations(tmp_path / "demos.npz")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"observation": ["x", "z"]}, "expected a column 'z', got run, t, x, y, push, room"),
        ({"observation": ["room"], "goal": [], "next": []}, "column 'room' of runs.csv: expected numbers, got words"),
        ({"observation": ["x", "push"], "next": ["x"]}, "expected each in one group, got push twice"),
        ({"next": ["push"]}, "next in runs.csv: expected columns that are observed, got push"),
        ({"episode": None}, "expected episode in the groups"),
        ({"observations": ["x"]}, "groups: expected observation, action, .*, got 'observations'"),
        ({"observation": []}, "expected a list of columns as observation, got none"),
        ({"missing": "yes"}, "missing in groups: expected true or false"),
    ],
)
def test_groups_that_do_not_fit_get_one_sentence(table, change, sentence):
    path, groups = table
    with pytest.raises(ValueError, match=sentence):
        read_demonstrations(path, {**json.loads(groups.read_text()), **change})


def test_a_hole_is_refused_unless_sensors_may_be_missing(table):
    path, groups = table
    path.write_text(path.read_text().replace("0.1,1.1", ",1.1"))
    told = json.loads(groups.read_text())
    with pytest.raises(ValueError, match=r"'x' at step 1 of runs.csv: expected a finite number"):
        read_demonstrations(path, told)
    found = read_demonstrations(path, {**told, "missing": True})
    rows = Layout.of(found).rows(found)
    assert rows.present[:, 0].tolist() == [True, False, True, True, True]


def test_other_files_get_one_sentence(tmp_path, table):
    (tmp_path / "no.npz").write_bytes(b"nothing of the kind")
    (tmp_path / "no.parquet").write_bytes(b"nothing of the kind")
    (tmp_path / "no.json").write_text("{")
    np.savez(tmp_path / "objects.npz", x=np.array([None, {}], dtype=object))
    for path, groups, sentence in (
        (tmp_path / "no.npz", None, "an npz file of plain arrays, got something else$"),
        (tmp_path / "objects.npz", None, "an npz file of plain arrays, got something else$"),
        (tmp_path / "no.parquet", table[1], "that can be read"),
        (table[0], tmp_path / "no.json", "expected JSON"),
        (table[0], None, "expected --groups FILE"),
        (tmp_path / "absent.csv", None, "nothing there"),
    ):
        with pytest.raises(ValueError, match=sentence):
            read_demonstrations(path, groups)
