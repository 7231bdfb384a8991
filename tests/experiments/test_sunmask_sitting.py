"""A sitting: tasks in an order that can be done, by whoever is ready, and everything packed."""

import argparse
import sys
import tarfile
import time
from typing import Any

import pytest
import torch

from anyfill.recipes import sunmask
from experiments.sunmask import sitting
from experiments.sunmask.replay import replayed

SIZES = {"seconds": 130.0, "transformer": 50.0, "coconet": 45.0, "others": 30.0, "rounds": 512, "half": 128, "own": 256}


def tasks() -> list[sitting.Task]:
    return sitting.tasks_of(argparse.Namespace(**SIZES))


class Stub:
    """A process that answers at once."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.asked, self.ended = list(answers), list[dict[str, Any]](), False
        self.has_answered = bool(answers)

    def ask(self, task: dict[str, Any]) -> None:
        self.asked.append(task)

    def answer(self, seconds: float) -> dict[str, Any]:
        return self.answers.pop(0) if self.answers else {}

    def end(self) -> None:
        self.ended = True


def begun(processes: dict[str, Any], seconds: float, chosen: list[sitting.Task] | None = None):
    told: list[dict[str, Any]] = []
    every = tasks() if chosen is None else chosen
    found = sitting.Sitting(every, processes, time.time() + seconds, lambda **line: told.append(line))
    found.look()
    return found, told


def test_nothing_is_drawn_before_it_is_trained() -> None:
    trained: set[str] = set()
    for _, task in tasks():
        name = sitting.name_of(task)
        assert sitting.expected(task, {}) > 0
        if task["do"] in ("sample", "figures"):
            assert name in trained
        elif task["do"] == "train":
            trained.add(name)
    assert trained == {"smc", "smc_short", "smc_keep", "smc_time", "smt", "smt_long", "sd", "coconet"}


def test_while_the_unet_compiles_coconet_goes_first_and_smc_as_soon_as_it_can() -> None:
    ready = {"ready": 1.0}
    pitch = Stub()
    found, _ = begun({"pitch": pitch, "transformer": Stub(ready), "coconet": Stub(ready), "time": Stub(ready)}, 1000.0)
    first = found.next()
    assert first is not None
    assert first[1] == {"do": "train", "model": "coconet", "seconds": 45.0}
    found.do(first)
    pitch.answers, pitch.has_answered = [ready], True
    found.look()
    then = found.next()
    assert then is not None
    assert then[1]["model"] == "smc"


def test_what_does_not_fit_is_left_out_with_what_needs_it_and_the_rest_goes_on() -> None:
    process = Stub({"ready": 1.0})
    found, told = begun({"pitch": process}, 60.0, [task for task in tasks() if task[0] == "pitch"])
    found.run()
    asked = [task["model"] for task in process.asked]
    assert asked[0] == "sd"
    assert "smc" not in [sitting.name_of(task) for task in process.asked]
    assert {"smc"} <= {sitting.name_of(line["left_out"]) for line in told if "left_out" in line}


def test_a_training_that_diverges_is_made_once_more_in_a_safer_way() -> None:
    process = Stub({"ready": 1.0}, {"error": "DivergedError"}, {"error": "DivergedError"})
    train, draw = tasks()[:2]
    found, told = begun({"pitch": process}, 1000.0, [train, draw])
    found.run()
    assert [task.get("optimizer") for task in process.asked] == [None, "adamw"]
    assert told[-1]["left_out"] == draw[1]


def test_the_last_training_takes_the_seconds_that_are_left() -> None:
    process = Stub({"ready": 1.0})
    long = next(task for task in tasks() if task[1].get("label") == "smt_long")
    found, _ = begun({"transformer": process, "time": Stub()}, 90.0, [long])
    assert found.next() is None  # somebody still compiles: what is worth more may come
    found.starting.clear()
    found.run()
    assert 80.0 < process.asked[0]["seconds"] < 90.0
    assert "least" not in process.asked[0]


@pytest.mark.parametrize("group", sitting.GROUPS)
def test_everything_a_sitting_needs_is_compiled_before(group: str) -> None:
    kinds = {kind for lane in sitting.LANES for one, kind in lane if one == group}
    assert kinds in ({"all"}, {"train", "validate", "sample"})


def test_all_is_packed_and_weights_come_in_parts(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sitting, "PART", 4096)
    (tmp_path / "smc.json").write_text("{}")
    (tmp_path / "smc").mkdir()
    (tmp_path / "smc" / "weights").write_bytes(bytes(range(256)) * 40)
    sitting.packed(tmp_path)
    with tarfile.open(tmp_path / "all.tar.gz") as tar:
        assert tar.getnames() == ["smc.json"]
    parts = sorted(tmp_path.glob("smc.tar.*"), key=lambda part: int(part.suffix[1:]))
    assert len(parts) > 2
    whole = tmp_path / "whole.tar"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    with tarfile.open(whole) as tar:
        weights = tar.extractfile("smc/weights")
        assert weights is not None
        assert weights.read() == bytes(range(256)) * 40


def test_a_process_that_has_ended_answers_with_an_error(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    process = sitting.Process("pitch", [], tmp_path / "log", 1)
    process.ask({"do": "train"})
    assert process.answer(20.0) == {"error": "the process has ended"}
    process.end()


def test_without_an_accelerator_answers_are_the_networks_own() -> None:
    model = sunmask.model(5, (8, 4), width=4, repeats=1)
    x, known = torch.zeros(2, 32, dtype=torch.int64), torch.zeros(2, 32, dtype=torch.bool)
    with replayed(model, 2, "cpu"):
        inside = model.marginals(x, known).log_probs
    with torch.no_grad():
        assert torch.equal(inside, model.eval().marginals(x, known).log_probs)
