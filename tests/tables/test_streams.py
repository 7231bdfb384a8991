"""Standard input and output, lone markers, formulas and long files from the command line."""

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anyfill.cli.main import run
from anyfill.tables.file_model import lone_marker

FAST = ["--recipe", "gaussian"]


def table(rows: int = 60) -> str:
    rng = np.random.default_rng(0)
    height = rng.normal(1.7, 0.1, rows).round(2)
    weight = (22 * height**2 + rng.normal(0, 4, rows)).round(1)
    frame = pd.DataFrame({"height": height, "weight": weight, "bmi": (weight / height**2).round(2)}).astype(str)
    return frame.mask(rng.random(frame.shape) < 0.2, "").to_csv(index=False, lineterminator="\n")


def test_a_table_goes_through_standard_input_and_output(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(table())
    command = [sys.executable, "-m", "anyfill", "fill", *FAST]
    piped = subprocess.run(
        [*command, "-", "-o", "-"], input=table().encode(), capture_output=True, check=True, timeout=120
    )
    subprocess.run(
        [*command, str(tmp_path / "in.csv"), "-o", str(tmp_path / "out.csv")],
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert piped.stdout == (tmp_path / "out.csv").read_bytes()  # nothing else goes there
    assert b"standard input: 60 rows" in piped.stderr


@pytest.mark.parametrize(("content", "suffix"), [(b'{"a": 1}\n', ".jsonl"), (b"a,b\n", ".csv"), (b"PAR1", ".parquet")])
def test_the_format_of_standard_input_is_found_out(
    monkeypatch: pytest.MonkeyPatch, content: bytes, suffix: str
) -> None:
    from anyfill.tables.streams import STANDARD, standard_input

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    with standard_input(STANDARD) as path:
        assert path.name == f"stdin{suffix}"
        assert path.read_bytes() == content
    assert not path.exists()


def test_nothing_on_standard_input_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    assert run(["fill", "-", "-o", "-", *FAST]) == 2
    assert capsys.readouterr().err.strip() == "anyfill: standard input: expected a table, got nothing"


@pytest.mark.parametrize(
    ("cells", "marker"),
    [
        (["1", "2", "3.5", "7", "unknown", "unknown"], "unknown"),
        (["1", "2", "3", "4", "-"], "-"),
        (["$1.50", "$2.00", "n.d.", None], "n.d."),
        (["2020-01-01", "2020-01-02", "never"], "never"),
        (["1", "2", "3", "4", "5", "-999", "-999", "-999"], "-999"),
        (["1", "2", "3", "4", "5", "9", "9", "9"], ""),  # not far from the others
        (["1", "2", "3", "4", "a", "b"], ""),  # two words
        (["red", "green", "blue"], ""),
        (["1", "2", "3", "4"], ""),
        ([], ""),
    ],
)
def test_a_lone_marker_is_found(cells: list[Any], marker: str) -> None:
    assert lone_marker(np.array([*cells, None], dtype=object)[:-1]) == marker


def test_a_lone_marker_is_proposed_and_then_filled(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "in.csv").write_text(table().replace(",,", ",unknown,"))
    arguments = ["fill", str(tmp_path / "in.csv"), "-o", str(tmp_path / "out.csv"), *FAST]
    assert run(arguments) == 0
    assert "if that means missing, say --missing=unknown" in capsys.readouterr().err
    assert run([*arguments, "--missing=unknown"]) == 0
    assert "unknown" not in (tmp_path / "out.csv").read_text()


def test_formulas_and_long_files_from_the_command_line(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "in.csv").write_text(table())
    source, formula = str(tmp_path / "in.csv"), "bmi = weight / height**2"
    assert run(["fit", source, "-o", str(tmp_path / "model"), *FAST, "--passive", formula]) == 0
    long = tmp_path / "long.parquet"
    assert (
        run(["fill", str(tmp_path / "model"), source, "-o", str(tmp_path / "long.csv"), "--draws", "2", "--long"]) == 0
    )
    found = pd.read_csv(tmp_path / "long.csv")
    assert found.columns.tolist() == [".imp", ".id", "height", "weight", "bmi"]
    assert found[".imp"].value_counts().to_dict() == {0: 60, 1: 60, 2: 60}
    hole = found["bmi"][found[".imp"] == 0].isna().to_numpy()
    for number in (1, 2):
        part = found[found[".imp"] == number]
        assert (part["bmi"] == (part["weight"] / part["height"] ** 2).round(2))[hole].all()
    capsys.readouterr()
    for bad, said in (
        (["--long"], "--long: expected --draws as well"),
        (["--passive", "bmi"], "--passive: expected NAME = FORMULA"),
        (["--passive", "bmi = weight / size"], "got 'size'"),
        (["--passive", "bmi = open(weight)"], "expected numbers, columns"),
    ):
        assert run(["fill", source, "-o", str(long), *FAST, *bad]) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert said in error
        assert error.startswith("anyfill: ")


def test_json_lines_are_filled_by_the_command_line(tmp_path: Path) -> None:
    rows = pd.read_csv(io.StringIO(table())).to_dict("records")
    lines = "".join(
        json.dumps({key: None if value != value else value for key, value in row.items()}) + "\n" for row in rows
    )
    (tmp_path / "in.jsonl").write_text(lines)
    assert run(["fill", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl"), *FAST]) == 0
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert all(value is not None for row in found for value in row.values())
    assert all(row[key] == value for row, old in zip(found, rows) for key, value in old.items() if value == value)


def test_another_encoding_is_said(tmp_path: Path, capsys: Any) -> None:
    text = table().replace("height", "Größe")
    (tmp_path / "in.csv").write_bytes(text.encode("cp1252"))
    assert run(["fill", str(tmp_path / "in.csv"), "-o", str(tmp_path / "out.csv"), *FAST]) == 0
    assert "read as Windows-1252" in capsys.readouterr().err
    assert (tmp_path / "out.csv").read_bytes().startswith("Größe".encode("cp1252"))
