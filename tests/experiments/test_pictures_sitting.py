"""The sitting over pictures: who compiles when, what is left out, and sheets that are read as they were."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from anyfill.images.reading import read_pictures
from experiments.sfarm import sitting, sitting_report
from experiments.sfarm.picture_scores import asked_model, in_halves, scored
from experiments.sfarm.picture_sheets import write_sheet
from experiments.sfarm.pictures import load, made, parser_of


class Child:
    """A process that ends after some looks at it."""

    def __init__(self, looks: int) -> None:
        self.left, self.returncode = looks, 0

    def poll(self) -> int | None:
        self.left -= 1
        return None if self.left > 0 else 0

    def kill(self) -> None:
        self.left = 0

    def wait(self) -> int:
        return 0


def arguments(out: Path, *only: str, memory: float = 24.0, limit: float = 20.0) -> argparse.Namespace:
    return argparse.Namespace(
        out=out, runs=None, limit=limit, total=None, drawing=0.0, ready=1.0, only=list(only), warm=False, memory=memory,
        compile_only=True, train_only=False, score_only=False, lenet=None, tiny=True,
    )  # fmt: skip


def test_compiling_beforehand_stays_within_the_memory_and_starts_everyone_once(tmp_path, monkeypatch) -> None:
    plan = sitting.Sitting(arguments(tmp_path, "cifar10", "fashion"))
    jobs = {job.name: job for job in plan.jobs}
    started: list[str] = []

    def start(job: sitting.Job) -> Child:
        running = [name for name in started if plan.children[name].left > 0]
        assert not running or sum(jobs[name].memory for name in [*running, job.name]) <= 24.0
        assert job.after not in jobs or job.after in started
        started.append(job.name)
        (tmp_path / "runs" / f"{job.name}.ready").touch()
        return Child(6)

    monkeypatch.setattr(plan, "_start", start)
    monkeypatch.setattr(sitting.time, "sleep", lambda _: None)
    plan.side_by_side()
    assert sorted(started) == sorted(jobs)
    assert len(plan.lines) == len(jobs)
    assert all(line["what"].endswith(": compiled") for line in plan.lines)


def test_what_does_not_end_in_time_is_said_not_to_be_compiled(tmp_path, monkeypatch) -> None:
    plan = sitting.Sitting(arguments(tmp_path, "cifar10.ardm", limit=0.2))
    monkeypatch.setattr(plan, "_start", lambda job: Child(10**9))
    plan.side_by_side()
    assert [line["what"] for line in plan.lines] == ["cifar10.ardm: not compiled"]


def test_jobs_begin_in_the_order_they_are_named_in(tmp_path) -> None:
    plan = sitting.Sitting(arguments(tmp_path, "static.vae", "dynamic", "static.ardm", "dynamic.sfarm"))
    names = [job.name for job in plan.jobs]
    assert names[0] == "static.vae"
    assert names[-1] == "static.ardm"
    assert len(names) == len(set(names)) == 6
    assert not plan.figures


def test_a_table_keeps_the_methods_of_a_sitting_before() -> None:
    def line(nats: float) -> dict[str, Any]:
        return {"joint": {"nats": nats, "rows": 10}}

    before = {"environment": {"commit": "a"}, "set": "fashion", "methods": {"ardm": line(5.0), "sfarm": line(9.0)}}
    now = {"environment": {"commit": "b"}, "set": "fashion", "methods": {"sfarm": line(7.0)}}
    both = sitting_report.merged(now, before)
    assert both["methods"]["ardm"]["environment"] == {"commit": "a"}
    assert both["methods"]["sfarm"]["joint"]["nats"] == 7.0
    assert both["methods"]["sfarm"]["nats more than ardm"] == {"mean": 2.0, "rows": 10}


def test_masks_of_other_rows_do_not_stand_beside_one_another() -> None:
    def masks(rows: int, label: str, bits: float) -> dict[str, Any]:
        return {"environment": {}, "rows": rows, "questions": {"right": {label: {"bits_per_missing": bits}}}}

    both = sitting_report.merged_masks(masks(5, "sfarm", 3.0), masks(5, "ardm", 2.5))
    assert both["questions"]["right"]["sfarm"]["less ardm"] == 0.5
    with pytest.raises(ValueError, match="masks of 4 rows"):
        sitting_report.merged_masks(masks(4, "sfarm", 3.0), masks(5, "ardm", 2.5))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_sheet_is_read_as_it_was_written(channels, tmp_path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (12, 8, 8, channels), dtype=np.uint8)
    write_sheet(pixels, tmp_path / "sheet.webp", columns=4)  # compares by itself, too
    again = read_pictures(f"{tmp_path / 'sheet.webp'}:8x8", size=(8, 8)).pixels
    assert again.shape == pixels.shape
    assert np.array_equal(again, pixels)


@pytest.mark.parametrize("method", ["one-pass", "ardm", "sfarm"])
def test_scores_in_bf16_are_those_of_32_bits_within_a_thousandth(method, tmp_path) -> None:
    small = ("--set", "digits", "--rows", "8", "--unet-width", "16", "--unet-blocks", "1", "--width", "64")
    parser = parser_of("", sets=("static",), methods=("one-pass",))
    options = parser.parse_args(["--out", str(tmp_path), *small, "--depth", "2", "--dropout", "0"])
    data = load(options)
    model, objective = made(method, data, options)
    model.factorizations = objective.factorizations
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():  # heads begin at zero, where there is nothing to round
        for parameter in model.parameters():
            parameter += 0.02 * torch.randn(parameter.shape, generator=noise)
    heads = [part for part in model.modules() if isinstance(part, torch.nn.Conv2d | torch.nn.Linear)]
    asked = asked_model(method, model.eval())
    whole = scored(method, asked, data.test, None, 1, passes=2)
    with in_halves(asked, always=True):
        half = scored(method, asked, data.test, None, 1, passes=2)
    assert not torch.equal(half, whole)
    assert float(((half - whole) / whole).abs().max()) < 1e-3
    assert [part for part in model.modules() if isinstance(part, torch.nn.Conv2d | torch.nn.Linear)] == heads
