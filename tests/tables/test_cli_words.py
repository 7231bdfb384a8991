"""What the commands for tables say, to the letter."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anyfill.cli import main as cli
from anyfill.tables.columns import on_one_line
from anyfill.tables.frames import Frame
from anyfill.tables.schema import infer
from anyfill.tables.table import Table


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("words")
    age = np.random.default_rng(0).integers(20, 80, 60)
    table = pd.DataFrame({"age": age, "height": 150 + age // 4 + 0.5, "note": np.where(age > 50, "two\nlines", "one")})
    table.to_csv(folder / "data.csv", index=False)
    arguments = ["fit", str(folder / "data.csv"), "-o", str(folder / "model"), "--recipe", "gaussian"]
    assert cli.run([*arguments, "--reference-rows", "0"]) == 0
    return str(folder / "model")


def test_what_is_given_has_no_row(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ask", model, "--given", "age=forty", "--want", "height"]) == 2
    assert capsys.readouterr().err == "anyfill: given age: expected a number, got 'forty'\n"


def test_a_column_that_is_wanted_twice_is_answered_once(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ask", model, "--want", "height,age,height"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["given", "height", "age"]


def test_a_target_that_is_known_is_said_to_be_left_out(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = tmp_path / "row.csv"
    row.write_text("age,height,note\n40,,\n")
    assert cli.run(["next", model, str(row), "--target", "age"]) == 0
    assert f"note: age has a value in {row}, which is not looked at: it is the target\n" in capsys.readouterr().err
    assert cli.run(["next", model, str(row), "--target", "height"]) == 0
    assert "note: " not in capsys.readouterr().err


def test_one_is_not_several(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.csv").write_text("age,height,note\n40,,one\n")
    assert cli.run(["fill", model, str(tmp_path / "one.csv"), "-o", str(tmp_path / "out.csv")]) == 0
    assert capsys.readouterr().out.startswith("1 cell of 1 row filled: ")
    assert cli.run(["sample", model, "-n", "1", "-o", str(tmp_path / "new.csv")]) == 0
    assert capsys.readouterr().out.startswith("1 row: ")
    (tmp_path / "a.csv").write_text("a\n1\n")
    assert cli.run(["fit", str(tmp_path / "a.csv"), "-o", str(tmp_path / "m"), "--recipe", "gaussian"]) == 0
    assert ": 1 row, 1 column\n" in capsys.readouterr().out


def test_a_level_with_a_line_break_stays_on_its_line(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table.of({"a\nb": ["x\ny", "z", "x\ny"]})
    assert table.describe().splitlines()[1:] == ["a\\nb    category     0.0%  2 levels: x\\ny, z"]
    assert on_one_line("café ⏎") == "café ⏎"
    assert cli.run(["ask", model, "--want", "note"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_clock_times_are_told_how_they_could_be_modelled() -> None:
    times = [f"{n % 24:02}:{n % 60:02}" for n in range(60)]
    (column,) = Frame.of({"at": times}).columns
    hint = "clock times are modelled as hours, 5.5 for 05:30, with cyclic[24]"
    assert infer(column).details == f"free text: 60 distinct values in 60 cells; {hint}"
    (column,) = Frame.of({"at": [*times[:-1], "noon"]}).columns
    assert infer(column).details == "free text: 60 distinct values in 60 cells"
