"""A run that was stopped, however it was stopped, ends as if it had not been."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Generator, Tensor
from training_standin import AskOne, TinyNetwork, tiny_model, tiny_rows

from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.training import CheckpointError, FitOptions, JsonLines, fit, fit_steps, load_model, load_notes, save_model
from anyfill.training.checkpoint import read_config, read_tensors, write_folder

OPTIONS = FitOptions(
    steps=15,
    batch_size=8,
    accumulate=2,
    optimizer="muon",
    learning_rate=1e-2,
    ema=0.9,
    report_every=4,
    validate_every=5,
    save_every=1000,
    device="cpu",
)
VALIDATION = tiny_rows(9, seed=5)


def weights_of(model: Model) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def lines_of(path: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "rows_per_second", "eta")} for line in lines]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Tensor], list[dict[str, object]]]:
    """The weights and reports of the run that is never stopped."""
    folder, model = tmp_path_factory.mktemp("whole"), tiny_model()
    metrics = [JsonLines(folder / "metrics.jsonl")]
    fit(model, tiny_rows(), AskOne(noise=0.5), OPTIONS, validation=VALIDATION, metrics=metrics)
    return weights_of(model), lines_of(folder / "metrics.jsonl")


def resume(folder: Path, objective: AskOne | None = None, options: FitOptions = OPTIONS) -> Model:
    model = tiny_model()
    fit(
        model,
        tiny_rows(),
        objective or AskOne(noise=0.5),
        options,
        validation=VALIDATION,
        folder=folder,
        resume=True,
        metrics=[JsonLines(folder / "metrics.jsonl")],
    )
    return model


def test_closing_the_iterator_leaves_a_checkpoint_that_resumes_exactly(
    tmp_path: Path, undisturbed: tuple[dict[str, Tensor], list[dict[str, object]]]
) -> None:
    for _ in range(3):
        model, metrics = tiny_model(), [JsonLines(tmp_path / "metrics.jsonl")]
        reports = fit_steps(model, tiny_rows(), AskOne(noise=0.5), OPTIONS, validation=VALIDATION, folder=tmp_path,
                            resume=True, metrics=metrics)  # fmt: skip
        next(reports)
        reports.close()
        assert not model.training
        assert same(weights_of(model), weights_of(load_model(tmp_path, parts=[TinyNetwork])))
    weights, lines = undisturbed
    assert same(weights_of(resume(tmp_path)), weights)
    assert lines_of(tmp_path / "metrics.jsonl") == lines


@dataclass(frozen=True)
class Interrupts(AskOne):
    """Raises the signal, or the exception, in a given call of the loss; otherwise the same objective."""

    noise: float = 0.5

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        when, how = PLAN
        PLAN[0] = when - 1
        if when == 0 and how == "signal":
            signal.raise_signal(signal.SIGINT)
        if when == 0 and how == "exception":
            raise KeyboardInterrupt
        return super().loss(model, rows, rank, generator=generator)


PLAN: list = [0, "signal"]


@pytest.mark.parametrize("how", ["signal", "exception"])
@pytest.mark.parametrize("call", [0, 1, 6, 7, 13])
def test_an_interrupt_in_the_middle_of_a_step_leaves_a_checkpoint_of_whole_steps_that_resumes_exactly(
    tmp_path: Path, how: str, call: int, undisturbed: tuple[dict[str, Tensor], list[dict[str, object]]]
) -> None:
    PLAN[:] = [call, how]
    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path, Interrupts())
    config = json.loads((tmp_path / "config.json").read_text())
    finished = call // 2 if call < 10 else (call - 3) // 2  # two calls a step; three validate after the fifth
    assert config["training"]["progress"]["step"] == finished + (how == "signal")
    PLAN[:] = [-1, "never"]
    weights, lines = undisturbed
    assert same(weights_of(resume(tmp_path, Interrupts())), weights)
    assert lines_of(tmp_path / "metrics.jsonl") == lines


def test_ctrl_c_is_left_to_a_program_that_handles_it_itself() -> None:
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        PLAN[:] = [3, "signal"]
        fit(tiny_model(), tiny_rows(), Interrupts(), replace(OPTIONS, steps=4))
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [1]


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    first = resume(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    second = tiny_model(seed=9)
    assert list(fit_steps(second, tiny_rows(), AskOne(noise=0.5), OPTIONS, validation=VALIDATION, folder=tmp_path,
                          resume=True)) == []  # fmt: skip
    assert same(weights_of(first), weights_of(second))
    assert second.factorizations == first.factorizations
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_resuming_may_change_what_does_not_change_the_result(
    tmp_path: Path, undisturbed: tuple[dict[str, Tensor], list[dict[str, object]]]
) -> None:
    reports = fit_steps(tiny_model(), tiny_rows(), AskOne(noise=0.5), OPTIONS, validation=VALIDATION, folder=tmp_path)
    next(reports)
    reports.close()
    model = resume(tmp_path, options=replace(OPTIONS, save_every=2, device="auto"))
    if not torch.cuda.is_available():
        assert same(weights_of(model), undisturbed[0])


def test_resuming_with_anything_else_different_is_refused_by_name(tmp_path: Path) -> None:
    arguments = {"validation": VALIDATION, "folder": tmp_path}
    reports = fit_steps(tiny_model(), tiny_rows(), AskOne(noise=0.5), OPTIONS, **arguments)
    next(reports)
    reports.close()

    def refused(name: str, **change: object) -> None:
        given = {"model": tiny_model(), "rows": tiny_rows(), "objective": AskOne(noise=0.5), "options": OPTIONS}
        with pytest.raises(ValueError, match=name):
            fit_steps(**{**given, **arguments, "resume": True, **change})

    refused("folder.*resume=True", resume=False)
    refused("steps: expected 15.*got 16", options=replace(OPTIONS, steps=16))
    refused("learning_rate", options=replace(OPTIONS, learning_rate=0.5))
    refused("seed", options=replace(OPTIONS, seed=1))
    refused("rows: expected 40.*got 39", rows=tiny_rows(39))
    refused("^rows_content: expected '.*as in the run that is to be resumed", rows=tiny_rows(seed=2))
    refused("validation_rows_content", validation=tiny_rows(9, seed=6))
    refused("objective.options.noise", objective=AskOne(noise=0.25))
    refused("validation_rows", validation=tiny_rows(8, seed=5))
    refused("model.network.options.width: expected 16.*got 8", model=tiny_model(width=8))
    save_model(tiny_model(), tmp_path)
    refused("without", options=OPTIONS)


def test_an_unfinished_run_of_version_0_1_goes_on_under_todays_names(
    tmp_path: Path, undisturbed: tuple[dict[str, Tensor], list[dict[str, object]]]
) -> None:
    arguments = {"validation": VALIDATION, "metrics": [JsonLines(tmp_path / "metrics.jsonl")]}
    reports = fit_steps(tiny_model(), tiny_rows(), AskOne(noise=0.5), OPTIONS, folder=tmp_path, **arguments)
    next(reports)
    reports.close()
    config = read_config(tmp_path)
    files = {role: read_tensors(tmp_path, config, role) for role in ("weights", "resume")}
    old = {name.replace("optimizer/", "optimiser/"): value for name, value in files["resume"].items()}
    assert old.keys() != files["resume"].keys()
    settings, model = config["training"]["conditions"], config["model"]
    settings["optimiser"] = settings.pop("optimizer")
    settings["objective"]["options"]["readings"] = settings["objective"]["options"].pop("factorizations")
    model["readings"], model["corruption"]["part"] = model.pop("factorizations"), "corruption.Absorb"
    write_folder(tmp_path, config, {**files, "resume": old})
    assert load_model(tmp_path, parts=[TinyNetwork]).factorizations == AskOne().factorizations
    weights, lines = undisturbed
    assert same(weights_of(resume(tmp_path)), weights)
    assert lines_of(tmp_path / "metrics.jsonl") == lines


def test_a_damaged_checkpoint_is_not_resumed_from(tmp_path: Path) -> None:
    reports = fit_steps(tiny_model(), tiny_rows(), AskOne(), OPTIONS, folder=tmp_path)
    next(reports)
    reports.close()
    path = next(tmp_path.glob("resume-*"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="cut off"):
        fit_steps(tiny_model(), tiny_rows(), AskOne(), OPTIONS, folder=tmp_path, resume=True)


def test_the_folder_holds_the_best_model_so_far_while_training_and_only_the_model_after(tmp_path: Path) -> None:
    options = replace(OPTIONS, save_every=4, validate_every=1000, ema=None)
    reports = fit_steps(tiny_model(), tiny_rows(), AskOne(), options, folder=tmp_path, notes={"from": "a test"})
    next(reports)
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"config.json", "resume", "weights"}
    load_model(tmp_path, parts=[TinyNetwork])
    assert load_notes(tmp_path) == {"from": "a test"}
    list(reports)
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"config.json", "weights"}
    assert load_model(tmp_path, parts=[TinyNetwork]).factorizations == AskOne().factorizations


def test_a_disk_that_fills_up_while_training_keeps_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: tuple[dict[str, Tensor], list[dict[str, object]]]
) -> None:
    real, calls = os.fsync, []

    def full(handle: int) -> None:
        calls.append(1)
        if len(calls) > 12:
            raise OSError(28, "No space left on device")
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(CheckpointError, match="No space left"):
            resume(tmp_path, options=replace(OPTIONS, save_every=2))
    assert not list(tmp_path.glob(".*"))
    assert same(weights_of(resume(tmp_path)), undisturbed[0])


def kill_again(folder: Path, kills: int, seed: int) -> dict[str, object]:
    program = [sys.executable, str(Path(__file__).with_name("kill_again.py")), str(folder), str(kills), str(seed)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_killed_at_random_moments_ends_bit_for_bit_like_the_run_that_was_not(tmp_path: Path) -> None:
    result = kill_again(tmp_path, kills=7, seed=0)
    assert result["killed"] >= 3
    assert result["resumed"] == result["whole"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("seed", range(1, 4))
def test_many_kills_some_of_them_during_a_save_change_nothing(tmp_path: Path, seed: int) -> None:
    result = kill_again(tmp_path, kills=40, seed=seed)
    assert result["killed"] >= 10
    assert result["during_save"] >= 3
    assert result["resumed"] == result["whole"]
