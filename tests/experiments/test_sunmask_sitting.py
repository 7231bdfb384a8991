"""A sitting: tasks in an order that can be done, chains as long as they may be, and everything packed."""

import argparse
import sys
import tarfile

import pytest
import torch

from anyfill.recipes import sunmask
from experiments.sunmask import sitting
from experiments.sunmask.replay import replayed

PACE = {**dict.fromkeys(("smc", "sd", "smc_short", "smc_keep", "smc_time"), 0.01), "smt": 0.005, "coconet": 0.05}


def tasks(**pace: float) -> list[sitting.Task]:
    arguments = argparse.Namespace(rounds=1024, chain=40.0, crop=128, trial=8.0, seconds=110.0, others=36.0)
    return sitting.tasks_of(arguments, {**PACE, **pace})


def test_nothing_is_drawn_before_it_is_trained() -> None:
    trained: set[str] = set()
    for _, task, guess in tasks():
        name = task.get("label") or task["model"]
        assert guess > 0
        if task["do"] in ("sample", "figures", "nats"):
            assert name in trained
        elif task["do"] == "train":
            trained.add(name)
    assert trained == {"smc", "smc_short", "smc_keep", "smc_time", "smt", "sd", "coconet"}


@pytest.mark.parametrize(("pace", "rounds"), [(0.01, 1024), (0.05, 512), (0.1, 256), (10.0, 128)])
def test_a_slow_machine_makes_fewer_rounds(pace: float, rounds: int) -> None:
    first = next(task for _, task, _ in tasks(smc=pace) if task["do"] == "sample")
    assert first["rounds"] == rounds


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
