"""A page about rollouts counts what was done and shows pictures that are there; episodes here are made by hand."""

import json
import re

import numpy as np
import pytest

from anyfill.policy.kitchen import MIXED, TASKS
from anyfill.policy.report import save_rollouts, write_report
from anyfill.policy.rollouts import Conditions, Rollouts


def made() -> Rollouts:
    """Three episodes: two of the four tasks, one that is not of them, none."""
    completed = np.full((3, 7), -1)
    completed[0, [TASKS.index("kettle"), TASKS.index("microwave")]] = 40, 9
    completed[1, TASKS.index("slide cabinet")] = 5
    states = np.random.default_rng(0).normal(size=(3, 50, 30)).astype(np.float32).cumsum(1) / 50
    return Rollouts(completed, ("kettle", "slide cabinet"), np.zeros((3, 50, 9), np.float32), states, 0)


def test_tasks_are_counted_of_four_of_seven_and_of_the_goal():
    found = made()
    assert found.counted(MIXED).tolist() == [2, 0, 0]
    assert found.counted(TASKS).tolist() == [2, 1, 0]
    summary = found.summary()
    assert summary["of_goal"]["mean"] == pytest.approx(2 / 3)
    assert summary["of_seven"]["stderr"] == pytest.approx(1.0 / 3**0.5)  # deviation of 2, 1, 0 is 1
    assert summary["share_done"]["kettle"] == pytest.approx(1 / 3)


def test_every_picture_of_the_page_is_there_and_every_number_too(tmp_path):
    about = {"model": "m", "method": "joint", "temperature": 1.0, "filmed": False}
    save_rollouts(made(), tmp_path / "works", conditions=Conditions(), **about)
    save_rollouts(made(), tmp_path / "fails", conditions=Conditions(0.3, "motor 3", False), **about)
    assert json.loads((tmp_path / "fails" / "results.json").read_text())["conditions"]["told"] is False
    write_report([tmp_path / "works", tmp_path / "fails"], tmp_path / "page")
    page = (tmp_path / "page" / "index.html").read_text()
    shown = re.findall(r'(?:src|srcset)="([^"]+)"', page)
    assert len(shown) == 2
    assert all((tmp_path / "page" / name).is_file() for name in shown)
    assert "30% of the sensors lost, motor 3 off (untold)" in page
    assert page.count("1.00 ± 1.15") == 2
