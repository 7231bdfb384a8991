"""The demo from end to end, small, and its parts."""

import errno
import io
import json
import math
import re
from pathlib import Path

import pytest
import torch
from matplotlib.image import imread
from rich.console import Console

from anyfill.cli import demo
from anyfill.cli import main as cli
from anyfill.cli.demo import MADE_BY, Sizes, run_demo
from anyfill.cli.demo_digits import CONTENDERS, patterns, score
from anyfill.cli.examples import digits, penguins
from anyfill.questions import Question
from anyfill.tables.table import Table
from anyfill.training import load_model, load_notes

from .test_page import check

SMALL = Sizes(held_out=2, samples=2, dreams=3, penguin_steps=3, draws=4, orders=2)


def consoles() -> tuple[Console, io.StringIO, Console]:
    text = io.StringIO()
    return Console(file=text, width=80), text, Console(file=io.StringIO())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small demo, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    out, text, err = consoles()
    run_demo(folder, seconds=0.2, seed=3, sizes=SMALL, out=out, err=err)
    return folder, text.getvalue()


def test_everything_is_there(made: tuple[Path, str]) -> None:
    folder, _ = made
    results = json.loads((folder / "results.json").read_text())
    assert results["made_by"] == MADE_BY
    assert results["files"] == sorted(path.name for path in folder.iterdir())
    assert results["seed"] == 3
    assert {"anyfill", "torch", "python", "device"} <= results["environment"].keys()
    models = results["digits"]["models"]
    assert [one["name"] for one in models] == ["one-pass", "ARDM", "MAC"]
    for one in models:
        assert one["steps"] >= 1
        for name, found in one["scores"].items():
            assert 0 < found["bits"] < 10, name
            assert found["kind"] == "exact"
    assert [one["scores"]["joint"]["passes"] for one in models] == [1, 64, 64]
    assert {one["kind"] for one in results["penguins"]["answers"]} == {"exact", "bound", "estimate"}


def test_the_page_shows_it(made: tuple[Path, str]) -> None:
    folder, _ = made
    document = (folder / "index.html").read_text(encoding="utf-8")
    links = check(document)
    assert sorted(links) == [
        f"{name}{ending}.png" for name in ("dreams", "fills", "shipped") for ending in ("-dark", "")
    ]
    for link in links:
        assert imread(folder / link).ndim == 3
    for words in ("one-pass", "ARDM", "MAC", "difference of two marginals", "species", "exact", "bound", "estimate"):
        assert words in document
    assert "depends on the machine" in document
    assert "nan" not in re.sub(r"<style>.*?</style>", "", document, flags=re.DOTALL).lower().replace("tenant", "")


def test_the_terminal_shows_it(made: tuple[Path, str]) -> None:
    _, printed = made
    assert "One held-out penguin" in printed
    assert "one-pass" in printed
    assert "…" not in printed  # nothing is cut off at 80 columns
    assert printed.rstrip().endswith("index.html")


def test_the_models_can_be_loaded_and_asked(made: tuple[Path, str]) -> None:
    folder, _ = made
    model = load_model(folder / "models" / "one-pass")
    blank = torch.zeros(1, 64, dtype=torch.int64)
    drawn = model.given(blank, torch.zeros_like(blank, dtype=torch.bool)).sample(2, seed=0)
    assert drawn.shape == (2, 1, 64)
    assert load_notes(folder / "models" / "mac")["recipe"] == "MAC"
    columns = load_notes(folder / "models" / "penguins")["columns"]
    assert Table.from_json(columns) == penguins().table  # type: ignore[arg-type]


def test_an_earlier_demo_is_replaced_and_other_things_are_not(
    made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = made
    report: list[object] = []
    keep = json.loads((folder / "results.json").read_text())["seconds"]

    def full(*_: object, **__: object) -> None:
        report.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(demo, "_make", full)
    out, _, err = consoles()
    with pytest.raises(OSError, match="No space"):
        run_demo(folder, out=out, err=err)
    assert report == [1]
    assert json.loads((folder / "results.json").read_text())["seconds"] == keep
    assert [path.name for path in folder.parent.iterdir()] == ["out"]


def test_a_full_disk_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(cli.DEBUG, raising=False)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "index.html"))

    monkeypatch.setattr(demo, "_make", full)
    assert cli.run(["demo", "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"anyfill: {tmp_path / 'index.html'}: No space left on device\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan])
def test_seconds_must_be_positive(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds"):
        run_demo(tmp_path / "out", seconds=seconds)
    assert list(tmp_path.iterdir()) == []


def test_score_is_bits_per_asked_pixel() -> None:
    """A network whose head is 0 is uniform over the 17 levels, whatever is asked: log2(17) bits, without error."""
    images = digits()
    contender = CONTENDERS["one-pass"]
    model = contender.build(images, 0)
    torch.nn.init.zeros_(model.network.head.weight)  # type: ignore[arg-type]
    torch.nn.init.zeros_(model.network.head.bias)  # type: ignore[arg-type]
    model.factorizations = contender.objective(64).factorizations
    asked = torch.rand(5, 64, generator=torch.Generator().manual_seed(0)) < 0.5
    found = score(model, images.test.x[:5], Question(torch.zeros_like(asked), asked))
    assert found.bits == pytest.approx(math.log2(17), abs=1e-5)
    assert found.stderr == pytest.approx(0.0, abs=1e-5)
    assert (found.kind, found.passes) == ("exact", 1)


def test_patterns_erase_something_and_leave_something() -> None:
    for name, given in patterns((8, 8), 0).items():
        assert 0 < int(given.sum()) < 64, name
    assert int(patterns((8, 8), 0)["bottom half erased"].sum()) == 32
    assert patterns((8, 8), 0)["bottom half erased"][:32].all()


@pytest.mark.slow
def test_the_command_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["demo", "-o", str(tmp_path / "out"), "--seconds", "1"]) == 0
    assert "Bits per pixel on 64 held-out digits" in capsys.readouterr().out
    assert cli.run(["demo", "-o", str(tmp_path / "out"), "--seconds", "0.1"]) == 0  # replaces it
