"""Weights spread over two processes learn what one process learns, and can be carried on by any other number."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from training_standin import TOGETHER, VARIABLES, AskOne, one_pass_model, tiny_rows, uneven_model

from anyfill.recipes import one_pass
from anyfill.training import FitOptions, fit, fit_steps, load_model
from anyfill.training.distributed import local, part, whole, wholes

MUON = replace(TOGETHER, optimizer="muon")
VALIDATION = tiny_rows(13, seed=5)
"""Seven batches of two or one: four for the first process, three for the second."""


def alone(options: FitOptions, *, steps: int | None = None, **others) -> dict:
    """The curve and the weights of one process."""
    model = one_pass_model()
    others = {"validation": VALIDATION} | others
    reports = fit_steps(model, tiny_rows(), one_pass.objective(VARIABLES), options, **others)
    curve = [[r.loss, r.gradient_norm, r.validation_loss] for r in islice(reports, steps)]
    reports.close()
    return {"curve": curve, "weights": {name: value.tolist() for name, value in model.state_dict().items()}}


def two_processes(folder: Path, *arguments: str) -> list[dict]:
    """What each of two processes saw."""
    program = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    program += [str(Path(__file__).with_name("sharded.py")), str(folder), *arguments]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"process{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def together(tmp_path_factory) -> tuple[Path, list[dict]]:
    """A folder, and what the two processes of torchrun saw."""
    folder = tmp_path_factory.mktemp("sharded")
    alone(MUON, steps=5, folder=folder / "begun")
    return folder, two_processes(folder)


def assert_close(one: dict, two: dict, atol: float = 1e-4) -> None:
    for a, b in zip(one["curve"][-len(two["curve"]) :], two["curve"], strict=True):
        assert b == pytest.approx(a, abs=atol)
    assert one["weights"].keys() == two["weights"].keys()
    for name, value in one["weights"].items():
        torch.testing.assert_close(torch.tensor(two["weights"][name]), torch.tensor(value), rtol=1e-3, atol=atol)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_sharded_training_gives_the_weights_of_one_process(together, optimizer: str) -> None:
    _, seen = together
    one = alone(replace(TOGETHER, optimizer=optimizer))
    assert one["curve"][-1][0] < one["curve"][0][0]
    for process in seen:
        assert_close(one, process[optimizer])
    assert seen[0][optimizer] == seen[1][optimizer], "both processes end with the same weights"


def test_tensors_that_cannot_be_halved_are_learnt_and_unused_ones_are_left_alone(together) -> None:
    model = uneven_model()
    before = model.network.unused.weight.clone()
    fit(model, tiny_rows(), AskOne(), MUON)
    for process in together[1]:
        for name, value in model.state_dict().items():
            torch.testing.assert_close(torch.tensor(process["uneven"][name]), value, rtol=1e-3, atol=1e-4)
        assert process["uneven"]["network.unused.weight"] == before.tolist()


@pytest.mark.slow
def test_compiled_blocks_can_be_sharded(tmp_path: Path) -> None:
    assert_close(alone(MUON), two_processes(tmp_path, "compile")[0]["compiled"])


@pytest.mark.parametrize(("precision", "atol"), [("bf16-mixed", 0.02), ("bf16-true", 0.1)])
def test_sharded_training_works_in_16_bits(together, precision: str, atol: float) -> None:
    assert_close(alone(replace(TOGETHER, precision=precision)), together[1][0][precision], atol=atol)


def test_each_process_holds_about_half_of_the_weights_and_of_the_state(together) -> None:
    _, seen = together
    for name in ("weights held", "state held"):
        held, total = zip(*(process[name] for process in seen))
        assert total[0] == total[1] == sum(held)
        assert max(held) < 0.55 * total[0]


def test_the_folder_is_that_of_any_other_run(together) -> None:
    folder, seen = together
    saved = load_model(folder / "whole").state_dict()
    assert {name: value.tolist() for name, value in saved.items()} == seen[0]["muon"]["weights"]


def test_a_sharded_run_that_was_stopped_resumes_exactly(together) -> None:
    _, seen = together
    for process in seen:
        assert process["resumed"]["curve"] == process["muon"]["curve"][5:]
        assert process["resumed"]["weights"] == process["muon"]["weights"]
        assert process["stopped"] != process["muon"]["weights"]
        assert process["again"] == {"curve": [], "weights": process["muon"]["weights"]}, "a run that has ended is kept"


def test_a_sharded_run_goes_on_unsharded_and_in_one_process_and_the_other_way_round(together) -> None:
    folder, seen = together
    one = alone(MUON, folder=folder / "alone", resume=True)
    assert len(one["curve"]) == 7
    assert_close(seen[0]["muon"], one)
    assert_close(seen[0]["muon"], seen[0]["copied"])
    assert_close(seen[0]["muon"], seen[0]["begun alone"])


def test_ctrl_c_in_one_process_leaves_a_checkpoint_of_both(together) -> None:
    _, seen = together
    for process in seen:
        assert process["interrupted at"] == 4
        assert process["interrupted"] is not None
        assert process["after the interrupt"]["weights"] == process["muon"]["weights"]
    assert seen[0]["interrupted"] == seen[1]["interrupted"]


def test_validation_with_fewer_batches_than_processes_does_not_hang(together) -> None:
    one = alone(TOGETHER, validation=tiny_rows(1, seed=5), validation_objective=one_pass.objective(VARIABLES))
    assert_close(one, together[1][0]["one row"])


def test_a_budget_of_time_ends_a_sharded_run_after_the_same_step_everywhere(together) -> None:
    _, seen = together
    assert seen[0]["seconds"] == seen[1]["seconds"] > 0


def test_what_cannot_be_sharded_is_refused_by_name(together) -> None:
    for process in together[1]:
        assert "scalar, to be sharded: expected at least one dimension" in process["refused"]


def test_with_one_process_there_is_nothing_to_shard() -> None:
    assert alone(replace(TOGETHER, shard=True)) == alone(TOGETHER)


def test_plain_tensors_are_whole_already() -> None:
    value = torch.randn(3, 2)
    assert whole(value) is local(value) is part(value, torch.zeros(3, 2)) is value
    assert wholes({"a": value})["a"] is value
    assert wholes({"a": value}, keep=False) == {}
