"""The commands for tables, from the command line inwards: what they print, write, refuse, and leave behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anyfill.cli import main as cli
from anyfill.tables.asking import read_given
from anyfill.tables.cli import read_costs
from anyfill.tables.declarations import read_columns
from anyfill.tables.measure import prices
from anyfill.tables.table import Table


def make_table(rows: int, seed: int, holes: float = 0.15) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    a = generator.normal(size=rows)
    frame = pd.DataFrame(
        {
            "age": (50 + 12 * a).round().astype(int),
            "bmi": (25 + 3 * a + generator.normal(size=rows)).round(1),
            "smoker": np.where(a + generator.normal(size=rows) > 0, "yes", "no"),
        }
    )
    return frame.astype(object).mask(generator.random(frame.shape) < holes)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data.csv and a model of it, made by ``anyfill fit``."""
    folder = tmp_path_factory.mktemp("commands")
    make_table(300, 0).fillna("n.d.").to_csv(folder / "data.csv", index=False)
    arguments = ["fit", str(folder / "data.csv"), "-o", str(folder / "model"), "--recipe", "gaussian"]
    assert cli.run([*arguments, "--missing", "n.d.", "--column", "age=int"]) == 0
    return folder


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Run a command in an empty folder, with ``model`` and ``data.csv`` for the paths; exit code, stdout, stderr."""
    monkeypatch.delenv(cli.DEBUG, raising=False)
    monkeypatch.chdir(tmp_path)
    there = {"model": str(place / "model"), "data.csv": str(place / "data.csv")}

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.run([there.get(one, one) for one in arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


def test_fit_prints_the_schema_and_saves(run, tmp_path: Path) -> None:
    code, out, _ = run("fit", "data.csv", "-o", "m", "--recipe", "gaussian", "--missing", "n.d.", "--rows", "50")
    assert code == 0
    assert "50 of 300 rows, 3 columns" in out
    assert "smoker" in out
    assert "2 levels: no, yes" in out
    assert out.endswith("model saved in m, with up to 300 rows of the table (--reference-rows 0: none)\n")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_column_is_what_it_is_said_to_be(run) -> None:
    arguments = ("fit", "data.csv", "-o", "m", "--recipe", "gaussian", "--missing", "n.d.")
    code, out, _ = run(*arguments, "--column", "age=number[0,120]", "--column", "smoker=ignore")
    assert code == 0
    assert "0 to 120" in out
    assert "as told" in out


def test_fill_remembers_the_tokens_and_fills(run, tmp_path: Path, place: Path) -> None:
    code, out, error = run("fill", "model", "data.csv", "-o", "filled.csv")
    before, after = (pd.read_csv(path, dtype=str) for path in (place / "data.csv", tmp_path / "filled.csv"))
    holes = before == "n.d."
    assert code == 0
    assert out == f"{int(holes.to_numpy().sum())} cells of 300 rows filled: filled.csv\n"
    assert "filling data.csv: done" in error
    assert not (after == "n.d.").to_numpy().any()
    assert (after == before).to_numpy()[~holes.to_numpy()].all()


def test_one_shot_trains_and_fills(run, tmp_path: Path) -> None:
    arguments = ("fill", "data.csv", "-o", "filled.csv", "--recipe", "gaussian", "--missing", "n.d.")
    code, out, error = run(*arguments, "--draws", "2")
    assert code == 0
    assert "2 levels: no, yes" in error
    assert out.count("\n") == 1
    after = pd.read_csv(tmp_path / "filled.csv")
    assert after["draw"].tolist() == [1, 2] * 300
    assert not after.isna().to_numpy().any()
    assert [path.name for path in tmp_path.iterdir()] == ["filled.csv"]


def test_ask(run) -> None:
    code, out, _ = run("ask", "model", "--given", "age=70,smoker=yes", "--want", "bmi")
    assert code == 0
    assert "age = 70" in out
    assert "90%" in out
    code, out, _ = run("ask", "model", "--given", "age=70", "--given", "bmi=30", "--want", "smoker", "--json")
    shares = json.loads(out)["answers"]["smoker"]["probabilities"]
    assert code == 0
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["yes"] > 0.8


def test_next_ranks_by_gain_per_cost_and_can_stop(run, tmp_path: Path) -> None:
    (tmp_path / "row.csv").write_text("age,bmi,smoker\n,,\n")
    (tmp_path / "costs.json").write_text('{"age": 100}')
    code, out, _ = run("next", "model", "row.csv", "--target", "smoker")
    assert code == 0
    assert re.fullmatch(r"about smoker: measure age \(calibrated on \d+ rows\)", out.splitlines()[-1])
    code, out, _ = run("next", "model", "row.csv", "--target", "smoker", "--costs", "costs.json", "--json")
    candidates = json.loads(out)["rows"][0]["candidates"]
    assert [one["column"] for one in candidates] == ["bmi", "age"]
    assert candidates[1]["cost"] == 100
    code, out, _ = run("next", "model", "row.csv", "--target", "smoker", "--least-gain", "9")
    assert out.splitlines()[-1].startswith("about smoker: stop")


def test_next_takes_rows_to_hold_its_estimates_against(run, tmp_path: Path) -> None:
    (tmp_path / "row.csv").write_text("age,bmi,smoker\n,,\n")
    known = pd.DataFrame({"age": np.arange(20.0, 80.0, 2), "bmi": 25.0, "smoker": ["no"] * 15 + ["yes"] * 15})
    known.to_csv(tmp_path / "known.csv", index=False)
    code, out, _ = run("next", "model", "row.csv", "--target", "smoker", "--reference", "known.csv", "--json")
    assert code == 0
    assert json.loads(out)["rows"][0]["calibrated_on"] == 30
    known.head(9).to_csv(tmp_path / "known.csv", index=False)
    code, out, _ = run("next", "model", "row.csv", "--target", "smoker", "--reference", "known.csv")
    assert "(not calibrated)" in out
    known.assign(other=1).to_csv(tmp_path / "known.csv", index=False)
    code, _, err = run("next", "model", "row.csv", "--target", "smoker", "--reference", "known.csv")
    assert code != 0
    assert "other" in err


def test_score_shows_the_strange_row_first(run, tmp_path: Path) -> None:
    data = make_table(50, 1, holes=0.0)
    data.loc[6, "bmi"] = 95.0
    data.to_csv(tmp_path / "new.csv", index=False)
    code, out, _ = run("score", "model", "new.csv", "-o", "scores.parquet", "--top", "2")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("row 7: ")
    assert lines[1].startswith("    bmi = 95.0, expected ")
    assert sum(line.startswith("row ") for line in lines) == 2
    assert len(pd.read_parquet(tmp_path / "scores.parquet")) == 50


def test_sample_is_the_same_for_the_same_seed(run, tmp_path: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert run("sample", "model", "-n", "20", "-o", f"{name}.csv", "--seed", seed)[0] == 0
    first, second, third = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert first == second != third
    assert len(pd.read_csv(tmp_path / "a.csv")) == 20


def test_report(run, tmp_path: Path) -> None:
    code, out, _ = run("report", "model", "data.csv", "-o", "report.html", "--rows", "60")
    assert (code, out) == (0, "report: report.html\n")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


COMMANDS = ("fit", "fill", "ask", "next", "score", "sample", "report")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run, command: str) -> None:
    code, out, error = run(command, "--help")
    assert (code, error) == (0, "")
    assert f"Usage: anyfill {command}" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "data.csv"), "--output"),
        (("fit", "absent.csv", "-o", "m"), "absent.csv: No such file"),
        (("fit", "data.doc", "-o", "m"), "data.doc"),
        (("fit", "data.csv", "-o", "m", "--recipe", "magic"), "--recipe: expected one of"),
        (("fit", "absent.csv", "-o", "m", "--recipe", "magic"), "--recipe"),
        (("fill", "absent.csv", "-o", "f.csv", "--recipe", "magic"), "--recipe"),
        (("fit", "absent.csv", "-o", "m", "--column", "age=big"), "--column: kind of column 'age'"),
        (("fit", "data.csv", "-o", "m", "--column", "age"), "NAME=KIND"),
        (
            ("fit", "data.csv", "-o", "m", "--column", "old=int"),
            "--column: expected names of columns (age, bmi, smoker), got 'old'",
        ),
        (("fit", "data.csv", "-o", "m", "--column", "age=big"), "age"),
        (("fit", "data.csv", "-o", "keep", "--recipe", "gaussian"), "other things"),
        (("fill", "model", "-o", "f.csv"), "alone"),
        (("fill", "absent", "data.csv", "-o", "f.csv"), "absent"),
        (("fill", "a", "b", "c", "-o", "f.csv"), "arguments"),
        (("fill", "model", "data.csv", "-o", "f.doc"), "f.doc"),
        (("fill", "model", "data.csv", "-o", "keep"), "keep"),
        (("fill", "model", "data.csv", "-o", "f.csv", "--draws", "2", "--intervals", ".9"), "both"),
        (("fill", "model", "data.csv", "-o", "f.csv", "--intervals", "1.5"), "between 0 and 1"),
        (("fill", "model", "data.csv", "-o", "f.csv", "--engine", "spark"), "spark"),
        (("fill", "model", "data.csv", "-o", "f.csv", "--address", "x:1"), "dask or ray"),
        (("fill", "model", "data.csv", "-o", "f.csv", "--engine", "none", "--workers", "3"), "workers: expected none"),
        (("fill", "model", "data.csv", "-o", "f.csv", "--draws", "2", "--statistic", "mean"), "none with draws"),
        (("fill", "absent.csv", "-o", "f.csv", "--recipe", "gaussian", "--effort", "high"), "--effort: expected none"),
        (("fit", "absent.csv", "-o", "m", "--recipe", "gaussian", "--steps", "5"), "--steps: expected none"),
        (("fit", "absent.csv", "-o", "m", "--recipe", "fast", "--effort", "medium"), "--effort: expected none"),
        (("fill", "model", "data.csv", "-o", "f.csv", "--effort", "medium"), "--effort: expected none beside a MODEL"),
        (("fill", "model", "data.csv", "-o", "f.csv", "--rows", "200000"), "--rows: expected none beside a MODEL"),
        (("fill", "data.csv", "model", "-o", "f.csv"), "the folder of the model first"),
        (("fill", "model", "data.csv", "-o", "f.csv", "--recipe", "fast"), "--recipe: expected none beside a MODEL"),
        (("fill", "model", "data.csv", "-o", "f.csv", "--column", "age=int"), "--column"),
        (("score", "data.csv", "model"), "the folder of a model, which comes first"),
        (("ask", "model", "--want", "weight"), "'weight'"),
        (("ask", "model", "--want", " ,"), "--want"),
        (("ask", "model", "--want", "bmi", "--given", "age"), "NAME=VALUE"),
        (("ask", "model", "--want", "bmi", "--given", "age=old"), "old"),
        (("ask", "model", "--want", "bmi", "--given", "smoker=perhaps"), "perhaps"),
        (("ask", "model", "--want", "bmi", "--level", "2"), "level"),
        (("next", "model", "data.csv", "--target", "smoker"), "at most 100"),
        (("score", "model", "data.csv", "-o", "s.doc"), "s.doc"),
        (("sample", "model", "-n", "0", "-o", "n.csv"), "-n"),
        (("report", "model", "data.csv", "-o", "r.pdf"), ".html"),
        (("report", "model", "data.csv", "-o", "r.html", "--target", "wrong"), "wrong"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_leaves_nothing(
    run, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "mine.txt").write_text("mine")
    code, _, error = run(*arguments)
    last = error.splitlines()[-1]
    assert code == 2, error
    assert last.startswith("anyfill: ")
    assert error.count("anyfill: ") == 1
    assert "Traceback" not in error
    assert words in last
    assert [path.name for path in tmp_path.rglob("*")] == ["keep", "mine.txt"]


def test_workers_that_find_no_work_are_said(run) -> None:
    code, _, err = run("fill", "model", "data.csv", "-o", "f.csv", "--missing", "n.d.", "--workers", "3")
    assert code == 0
    assert "note: one worker filled it: 300 rows are one part (--chunk)" in err
    assert "note:" not in run("fill", "model", "data.csv", "-o", "f.csv", "--missing", "n.d.", "--workers", "1")[2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--draws", "2"), "--draws: expected a table without a column 'draw'"),
        (("--intervals", "0.9"), "--intervals: expected a table without a column 'x_high'"),
    ],
)
def test_a_clash_of_names_is_refused_before_training(run, tmp_path: Path, options: tuple[str, str], words: str) -> None:
    (tmp_path / "d.csv").write_text("x,draw,x_high,t\n" + "1.5,2,3,a\n2.5,7,1,b\n,4,1,a\n" * 10)
    arguments = ("d.csv", "-o", "f.csv", "--recipe", "mlp-ardm", "--steps", "1000000", *options)
    code, out, error = run("fill", *arguments)
    assert (code, out) == (2, "")
    assert words in error
    assert "levels" not in error  # the schema


def test_a_misspelt_column_is_refused_before_anything_is_printed(run) -> None:
    code, out, error = run("fit", "data.csv", "-o", "m", "--column", "agee=int")
    assert (code, out) == (2, "")
    assert "'agee'" in error


def test_numbers_are_numbers_in_json(run) -> None:
    """The model was trained on text."""
    code, out, _ = run("ask", "model", "--given", "age=70", "--want", "bmi,smoker", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["given"] == {"age": 70.0}
    bmi = found["answers"]["bmi"]
    assert all(isinstance(bmi[key], float) for key in ("value", "median", "low", "high"))
    assert bmi["low"] < bmi["median"] < bmi["high"]


@pytest.mark.parametrize("command", ["fit", "fill"])
def test_row_numbers_are_warned_of(run, tmp_path: Path, command: str) -> None:
    generator = np.random.default_rng(0)
    data = make_table(40, 0).assign(
        id=np.arange(7, 47), shuffled=generator.permutation(40), rising=np.arange(40) ** 2, known=np.arange(40)
    )
    data = data.assign(half=np.arange(40) / 2, twice=np.arange(40) // 2, count=generator.poisson(3, 40))
    data.to_csv(tmp_path / "d.csv", index=False)
    arguments = (command, "d.csv", "-o", "m" if command == "fit" else "f.csv", "--recipe", "gaussian")
    code, out, error = run(*arguments, "--rows", "40", "--column", "known=int")
    assert code == 0
    assert "looks like" not in out
    for name in ("id", "shuffled", "rising"):
        assert f"column '{name}' looks like a row number: --column {name}=ignore leaves it alone\n" in error
    assert error.count("looks like a row number") == 3


def interrupt(arguments: list[str], folder: Path, sign: str) -> tuple[int, str]:
    """Run a command in a group of its own, press Ctrl-C some time after ``sign`` is on stderr or stdout."""
    process = subprocess.Popen(
        [sys.executable, "-m", "anyfill", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    shown = ""
    while sign not in shown:
        line = process.stdout.readline()
        assert line, shown
        shown += line
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    return process.returncode, shown + rest


def test_ctrl_c_during_training_leaves_nothing(tmp_path: Path) -> None:
    make_table(300, 0).to_csv(tmp_path / "data.csv", index=False)
    arguments = ["fit", "data.csv", "-o", "m", "--recipe", "mlp-ardm", "--steps", "1000000"]
    code, shown = interrupt(arguments, tmp_path, "smoker")
    assert code == 130, shown
    assert "Traceback" not in shown
    assert shown.endswith("anyfill: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.slow
def test_ctrl_c_during_filling_with_processes_leaves_nothing(place: Path, tmp_path: Path) -> None:
    make_table(60_000, 0).to_csv(tmp_path / "data.csv", index=False)
    arguments = ["fill", str(place / "model"), "data.csv", "-o", "f.csv", "--draws", "50", "--intervals", "0.9"]
    arguments = [*arguments[:-2], "--workers", "2"]
    code, shown = interrupt_soon(arguments, tmp_path)
    assert code == 130, shown
    assert shown == "anyfill: interrupted\n"
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def interrupt_soon(arguments: list[str], folder: Path) -> tuple[int, str]:
    """The same, as soon as the output is begun."""
    process = subprocess.Popen(
        [sys.executable, "-m", "anyfill", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    begun = time.monotonic()
    while not list(folder.glob(".f.csv.*")):
        assert process.poll() is None
        assert time.monotonic() - begun < 60
        time.sleep(0.05)
    time.sleep(3.0)
    os.killpg(process.pid, signal.SIGINT)
    shown, _ = process.communicate(timeout=120)
    return process.returncode, shown


def test_given_is_read_as_the_table_has_it() -> None:
    table = Table.of(
        pd.DataFrame({"n": np.arange(40.5), "b": [True, False] * 20 + [True], "t": ["a", "b,c"] * 20 + ["a"]})
    )
    assert read_given(table, ["n=4.5,b=TRUE", "t=b,c"]) == {"n": 4.5, "b": True, "t": "b,c"}
    with pytest.raises(ValueError, match="twice"):
        read_given(table, ["n=1,n=2"])
    with pytest.raises(ValueError, match="a number"):
        read_given(table, ["n=many"])


@pytest.mark.parametrize("content", ["no", "[1]", '{"wrong": 1}', '{"n": 0}', '{"n": "dear"}', '{"n": true}'])
def test_bad_costs_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "costs.json").write_text(content)
    with pytest.raises(ValueError, match="expected"):
        prices(Table.of(pd.DataFrame({"n": np.arange(9.5)})), read_costs(tmp_path / "costs.json"))


def test_overrides_are_read() -> None:
    said = read_columns(["age=int", "a=b=number[0,1]", "size=ordinal:s<m<l=x"])
    assert said == {"age": "int", "a=b": "number[0,1]", "size": "ordinal:s<m<l=x"}
    with pytest.raises(ValueError, match="twice"):
        read_columns(["age=int", "age=bool"])
