"""A sitting: tasks in an order that can be done, by whoever is ready, and everything packed."""

import argparse
import json
import sys
import tarfile
import time
from typing import Any

import numpy as np
import pytest
import torch

from anyfill.recipes import sunmask
from experiments.sunmask import packing, plans, processes, sitting, worker
from experiments.sunmask.replay import replayed

SIZES = argparse.Namespace(
    seconds=130.0, transformer=50.0, coconet=45.0, others=30.0, least=45.0, seed=1,
    rounds=512, short=128, long=1024, own=256,
)  # fmt: skip


def tasks() -> list[plans.Task]:
    return plans.table2(SIZES, 1000.0)


class Stub:
    """A process that answers at once."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.asked, self.ended = list(answers), list[dict[str, Any]](), False
        self.has_answered, self.is_alive = bool(answers), True

    def ask(self, task: dict[str, Any]) -> None:
        self.asked.append(task)

    def answer(self, seconds: float) -> dict[str, Any]:
        return self.answers.pop(0) if self.answers else {}

    def end(self) -> None:
        self.ended = True


def begun(processes: dict[str, Any], seconds: float, chosen: list[plans.Task] | None = None):
    told: list[dict[str, Any]] = []
    found = sitting.Sitting(processes.__getitem__, list(processes), lambda **line: told.append(line))
    found.until = time.time() + seconds
    found.tasks = tasks() if chosen is None else chosen
    found.look()
    return found, told


def test_nothing_is_drawn_before_it_is_trained() -> None:
    trained: set[str] = set()
    for _, task in tasks():
        name = plans.name_of(task)
        assert plans.expected(task, {}) > 0
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
    assert "smc" not in [plans.name_of(task) for task in process.asked]
    assert {"smc"} <= {plans.name_of(line["left_out"]) for line in told if "left_out" in line}


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
    assert not {"least", "last"} & set(process.asked[0])


def test_nothing_is_asked_of_a_model_whose_training_still_waits() -> None:
    process = Stub({"ready": 1.0})
    last = [task for task in tasks() if task[1].get("label") == "smt_long" or task[1]["model"] == "smt_long"]
    assert [task["do"] for _, task in last] == ["train", "sample"]
    found, told = begun({"transformer": process, "pitch": Stub()}, 500.0, last)
    assert found.next() is None
    assert not process.asked
    assert not [line for line in told if "left_out" in line]


def test_equal_trainings_wait_for_nobody_who_still_compiles() -> None:
    processes = {"transformer": Stub({"ready": 1.0}), "pitch": Stub(), "time": Stub()}
    found, _ = begun(processes, 412.0, plans.equal(SIZES, 412.0))
    first = found.next()
    assert first is not None
    assert (first[1]["model"], first[1]["do"]) == ("smt", "train")
    assert first[1]["seconds"] == plans.equal(SIZES, 412.0)[0][1]["seconds"]
    found.do(first)
    assert [(one["model"], one["do"]) for _, one in found.tasks[:3]] == [
        ("smt", "save"),
        ("smt", "sample"),
        ("smt", "sample"),
    ]
    assert found.tasks[3][1]["model"] == "smc"
    assert len(found.tasks) == len(plans.equal(SIZES, 412.0)) - 1


@pytest.mark.parametrize("group", plans.GROUPS)
def test_everything_a_sitting_needs_is_compiled_before(group: str) -> None:
    kinds = {kind for lane in sitting.LANES for one, kind in lane if one == group}
    assert kinds in ({"all"}, {"train", "validate", "sample"})


@pytest.mark.parametrize("left", [150.0, 300.0, 412.0, 2000.0])
def test_equal_trainings_share_what_is_left_and_all_of_it_fits(left: float) -> None:
    listed = plans.equal(SIZES, left)
    seconds = {task["model"]: task["seconds"] for _, task in listed if task["do"] == "train"}
    assert len(set(seconds.values())) == 1
    assert SIZES.least <= seconds["smc"] <= SIZES.seconds
    assert list(seconds) == list(plans.EQUAL)[: len(seconds)]
    drawn = {task["model"] for _, task in listed if task["do"] == "sample" and task["key"] == "T-128"}
    saved = {task["model"] for _, task in listed if task["do"] == "save"}
    assert drawn == saved == set(seconds)
    needed = sum(plans.expected(task, {}) for _, task in listed if task.get("key") != "plain-128")
    assert needed <= left + 0.5
    assert len(seconds) == 5 or needed > left - SIZES.least - 20.0  # one more would not have fitted


def test_long_chains_are_of_models_that_were_saved_and_the_paper_s_come_first() -> None:
    listed = [task for _, task in plans.late(SIZES, 400.0)]
    loaded = {task["model"] for task in listed if task["do"] == "load"}
    chains = [(task["model"], task["key"]) for task in listed if task["do"] == "sample"]
    assert {model for model, _ in chains} == loaded <= set(plans.EQUAL)
    assert chains[:3] == [("smc", "T-1024"), ("smt", "T-1024"), ("smc", "plain-1024")]
    assert len(set(chains)) == len(chains)


@pytest.mark.parametrize(("left", "names"), [(250.0, 4), (110.0, 2), (2000.0, 4)])
def test_the_third_sitting_trains_for_equal_seconds_and_leaves_judging_and_drawing_for_later(left, names) -> None:
    listed = [task for _, task in plans.third(SIZES, left)]
    trained = [task for task in listed if task["do"] == "train"]
    assert [task["model"] for task in trained] == list(plans.THIRD)[:names]
    assert len({task["seconds"] for task in trained}) == 1
    assert SIZES.least <= trained[0]["seconds"] <= SIZES.seconds
    assert not any(task["judged"] for task in trained)
    assert [task["do"] for task in listed] == ["train", "save"] * names
    assert left - 100.0 * (left == 2000.0) >= sum(plans.expected(task, {}) for task in listed)
    later = [task for _, task in plans.long(SIZES, 400.0)]
    assert {task["model"] for task in later if task["do"] == "judge"} == {"smc", "sd", "smt"}


def test_of_the_third_sitting_the_paper_s_own_rounds_come_first_and_nothing_is_drawn_before_it_is_loaded() -> None:
    listed = [task for _, task in plans.long(SIZES, 400.0)]
    chains = [(task["model"], task["key"]) for task in listed if task["do"] == "sample"]
    assert chains[0] == ("smc", "T-1024")
    published = {("smc", "T-1024"), ("smc", "plain-1024"), *(("smc", f"{one}-512") for one in ("A", "AT", "ATN"))}
    published |= {("smt", "T-512"), ("sd", "T-512"), ("coconet", f"own-{SIZES.own}")}
    assert published <= set(chains[:9])
    assert len(set(chains)) == len(chains)
    loaded: set[str] = set()
    for task in listed:
        assert task["do"] == "load" or task["model"] in loaded
        loaded |= {task["model"]} if task["do"] == "load" else set()


def test_a_training_is_judged_later_as_it_would_have_been_at_once(tmp_path) -> None:
    pieces = np.random.default_rng(0).integers(50, 70, (6, 40, 4)).tolist()
    (tmp_path / "jsb_chorales").mkdir()
    (tmp_path / "jsb_chorales" / "jsb16_train_valid.json").write_text(json.dumps({"train": pieces, "valid": pieces}))
    arguments = argparse.Namespace(
        out=tmp_path, data=tmp_path, crop=32, width=4, transformer_width=32, coconet_width=8, dropout=0.0, samples=3,
        no_compile=False, shrink=True, even=False,
    )  # fmt: skip
    asked = {"do": "train", "model": "smt", "seconds": 60.0, "steps": 3}
    nats: list[list[float]] = []
    for judged in (True, False):
        one = worker.Worker(arguments)
        one.do({**asked, "judged": judged})
        record = json.loads((tmp_path / "smt.json").read_text())
        assert ("nats" in record) == judged
        if not judged:
            assert one.do({"do": "judge", "model": "smt"})["nats"] > 0
            record = json.loads((tmp_path / "smt.json").read_text())
        nats.append(record["nats"])
    assert nats[0] == nats[1]


def test_the_same_processes_go_on_with_long_chains_when_they_are_told_to(tmp_path, monkeypatch) -> None:
    asked: list[tuple[str, str]] = []

    def stub(group: str, *more: object) -> Stub:
        found = Stub({"ready": 1.0})
        found.ask = lambda task: asked.append((task["do"], task["model"]))
        return found

    monkeypatch.setattr(sitting, "Process", stub)
    out = tmp_path / "out"
    for name in ("go", "later"):
        (tmp_path / name).write_text(f"{time.time() + 1000.0}\n")
    options = [
        "--plan",
        "third",
        "--go",
        tmp_path / "go",
        "--later",
        tmp_path / "later",
        "--pack",
        tmp_path / "a.tar.gz",
    ]
    monkeypatch.setattr("sys.argv", ["sitting", "--out", str(out), "--data", str(tmp_path), *map(str, options)])
    sitting.main()
    assert asked[:8] == [(do, name) for name in plans.THIRD for do in ("train", "save")]
    assert [do for do, _ in asked[8:10]] == ["load", "sample"]
    assert (out / "ended").exists()
    lines = [json.loads(line) for line in (out / "tasks.jsonl").read_text().splitlines()]
    assert [line["plan"] for line in lines if "plan" in line] == ["third", "long"]


def test_a_process_that_ends_is_begun_once_more_and_its_task_done() -> None:
    gone = Stub({"ready": 1.0}, {"error": processes.GONE[1]})
    fresh = Stub({"ready": 1.0}, {"steps": 5}, {})
    both = [gone, fresh]
    found = sitting.Sitting(lambda group: both.pop(0), ["pitch"], lambda **line: None)
    found.until = time.time() + 1000.0
    found.tasks = tasks()[:2]
    found.run()
    assert gone.ended
    assert [task["do"] for task in fresh.asked] == ["train", "sample"]
    assert not found.lost


def test_a_process_that_ends_while_it_waits_is_begun_once_more() -> None:
    first, second = Stub({"ready": 1.0}), Stub({"ready": 1.0})
    both = [first, second]
    found = sitting.Sitting(lambda group: both.pop(0), ["pitch"], lambda **line: None)
    found.look()
    first.is_alive = False
    found.look()
    assert found.coming == {"pitch"}
    found.look()
    assert found.ready["pitch"] is second
    second.is_alive = False
    found.look()
    assert not found.ready
    assert not found.coming


def test_it_begins_when_it_is_told_to_and_processes_compile_one_by_one(tmp_path) -> None:
    stubs = {"pitch": Stub({"ready": 1.0}), "time": Stub({"ready": 1.0})}
    found = sitting.Sitting(lambda group: stubs[group], list(stubs), lambda **line: None, beside=1)
    assert found.coming == {"pitch", "time"}
    assert list(found.starting) == ["pitch"]
    assert not found.wait(tmp_path / "go", tmp_path / "ready", 0.7)
    assert (tmp_path / "ready").exists()
    assert set(found.ready) == {"pitch", "time"}
    (tmp_path / "go").write_text("1234567890\n")
    assert found.wait(tmp_path / "go", tmp_path / "ready", 0.5)
    assert found.until == 1234567890.0


def test_what_was_saved_is_drawn_from_by_another_process_and_earlier_samples_stay(tmp_path) -> None:
    pieces = np.random.default_rng(0).integers(50, 70, (6, 40, 4)).tolist()
    (tmp_path / "jsb_chorales").mkdir()
    path = tmp_path / "jsb_chorales" / "jsb16_train_valid.json"
    path.write_text(json.dumps({"train": pieces, "valid": pieces}))
    arguments = argparse.Namespace(
        out=tmp_path, data=tmp_path, crop=32, width=4, transformer_width=32, coconet_width=8, dropout=0.0, samples=3,
        no_compile=False, shrink=True, even=True,
    )  # fmt: skip
    first = worker.Worker(arguments)
    first.do({"do": "train", "model": "smt", "seconds": 0.5})
    first.do({"do": "save", "model": "smt"})
    first.do({"do": "sample", "model": "smt", "variant": "T", "rounds": 2, "key": "T-2"})
    other = worker.Worker(arguments)
    assert other.do({"do": "load", "model": "smt"})["seconds_a_round"] > 0
    other.do({"do": "sample", "model": "smt", "variant": "T", "rounds": 2, "key": "again"})
    with np.load(tmp_path / "smt.npz") as file:
        assert set(file.files) == {"T-2", "again"}
        assert np.array_equal(file["T-2"], file["again"])
    record = json.loads((tmp_path / "smt.json").read_text())
    assert set(record["sampling_seconds"]) == {"T-2", "again"}
    assert len(record["nats"]) == len(record["nats_kept"]) == record["valid"]["windows"]
    assert record["nats"] != record["nats_kept"]


def test_all_is_packed_and_weights_come_in_parts(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(packing, "PART", 4096)
    (tmp_path / "smc.json").write_text("{}")
    (tmp_path / "smc").mkdir()
    (tmp_path / "smc" / "weights").write_bytes(bytes(range(256)) * 40)
    packing.packed(tmp_path)
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


def test_a_small_pack_is_whole_and_leaves_weights_where_they_are(tmp_path) -> None:
    out = tmp_path / "out"
    (out / "smc").mkdir(parents=True)
    (out / "smc" / "weights").write_text("w")
    (out / "smc.json").write_text("{}")
    for _ in range(2):
        packing.packed_small(out, tmp_path / "all.tar.gz")
    with tarfile.open(tmp_path / "all.tar.gz") as tar:
        assert tar.getnames() == ["smc.json"]
    assert (out / "smc" / "weights").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.tar.gz", "out"]


def test_a_process_that_has_ended_answers_with_an_error(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    process = processes.Process("pitch", [], tmp_path / "log", 1)
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
