"""Text on its way into files with types: a column gets one only where no cell of it loses anything."""

import errno
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.cli import main as cli
from anyfill.tables import text_types
from anyfill.tables.files import open_writer, read_parts, read_table
from anyfill.tables.text_types import retyped, types_of


def typed(*cells: str) -> list[Any]:
    column = pa.chunked_array([pa.array(cells, pa.string())])
    (dtype,) = types_of([pa.table({"a": column})])
    return retyped(column, dtype).to_pylist()


def test_a_column_gets_the_type_that_all_its_cells_allow() -> None:
    assert typed("1", "", "-20", "NA") == [1, None, -20, None]
    assert typed("1", "2.50", ".5", "-1e-3", " ") == [1.0, 2.5, 0.5, -0.001, None]
    assert typed("True", "", "False") == [True, None, False]
    assert typed("TRUE", "false") == [True, False]
    assert typed("2024-01-31", "") == ["2024-01-31", None]
    assert typed("", "") == [None, None]
    assert typed("yes", "", "NA") == ["yes", None, "NA"]


LOSING = "007,00.5,1 000,+5,5.,1_000,0x10,nan,inf,1e999,$5,12%,1.2.3,1 ,12345678901234567890,0.1234567890123456789,True"


@pytest.mark.parametrize("cell", [*LOSING.split(","), "1,000"])
def test_a_column_with_a_cell_that_would_lose_something_stays_text(cell: str) -> None:
    expected = [cell, "5", None] if cell != "nan" else [None, 5, None]  # which stands for a missing value
    assert typed(cell, "5", "") == expected


def test_whole_numbers_are_exact_to_the_last_of_64_bits() -> None:
    cells = (str(2**63 - 1), str(-(2**63)), "100000000000000001")
    assert [str(value) for value in typed(*cells)] == list(cells)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70), min_size=1))
def test_no_number_is_changed(numbers: list[float]) -> None:
    for cell, number in zip(typed(*map(str, numbers)), numbers):
        assert cell == number or cell == str(number)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.jsonl", "t.jsonl.gz", "t.xlsx"])
def test_one_cell_far_down_decides_for_the_whole_column(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_types, "_ROWS", 7)
    source = tmp_path / "t.csv"
    text = pd.DataFrame({"n": [str(i) for i in range(40)], "late": ["1"] * 39 + ["x"], "real": ["1"] * 39 + ["1.5"]})
    text.to_csv(source, index=False)
    with open_writer(tmp_path / name, like=source) as writer:
        for part in read_parts(source, 10):
            writer.write(part.frame)
    found = read_table(tmp_path / name)
    found = found.to_pandas() if isinstance(found, pa.Table) else found
    assert found["n"].tolist() == list(range(40))
    assert found["late"].tolist() == ["1"] * 39 + ["x"]
    assert found["real"].tolist() == [1.0] * 39 + [1.5]


def test_numbers_as_programs_write_them_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one: list[str] = []

    def exact(cell: str) -> Decimal:
        one_by_one.append(cell)
        return Decimal(cell)

    monkeypatch.setattr(text_types, "Decimal", exact)
    assert typed(*(repr(n / 7) for n in range(1, 500)), repr(1e300 / 3))[0] == 1 / 7
    assert one_by_one == []
    assert typed("0.12345678901234560") == [0.1234567890123456]
    assert one_by_one


def write(path: Path, *names: str) -> None:
    """One cell of text below each name, in a table of its own each."""
    with open_writer(path, of_text=True) as writer:
        for name in names:
            writer.write(pd.DataFrame({name: ["1"]}))


def test_the_rows_wait_beside_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    write(tmp_path / "t.parquet", "a")
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_a_full_disk_is_told_by_the_name_of_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(text_types.DelimitedSink, "write", full)
    with pytest.raises(OSError, match="No space") as caught:
        write(tmp_path / "t.parquet", "a")
    assert caught.value.filename == str(tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_what_cannot_be_closed_is_let_go_all_the_same(tmp_path: Path) -> None:
    let_go: list[bool] = []

    class Other(text_types.Sink):
        def write(self, frame: Any) -> None:
            raise AssertionError

        def close(self) -> None:
            let_go.append(True)

    made: Any = text_types.RetypedSink(Other(), tmp_path / "t.parquet")
    made._file.write(b"held")
    with Path("/dev/full").open("wb") as full:
        os.dup2(full.fileno(), made._file.fileno())
    with pytest.raises(OSError, match="No space"):
        made.abandon()
    assert let_go
    assert list(tmp_path.iterdir()) == []


def test_a_cell_with_a_zero_byte_is_one_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b;|\n1,x\0y\n2,z\n".encode("utf-16"))
    for name in ("t.parquet", "t.jsonl"):
        with open_writer(tmp_path / name, like=tmp_path / "t.csv") as writer:
            writer.write(read_table(tmp_path / "t.csv"))
        found = read_table(tmp_path / name)
        found = found.to_pandas() if isinstance(found, pa.Table) else found
        assert found.to_dict("list") == {"a": [1, 2], "b;|": ["x\0y", "z"]}


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    with open_writer(tmp_path / "t.parquet", of_text=True) as writer:
        writer.write(pd.DataFrame({"a": []}, dtype="str"))
    assert parquet.read_schema(tmp_path / "t.parquet").names == ["a"]


def test_a_file_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="further rows"):
        write(tmp_path / "t.parquet", "a", "b")
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "t.parquet", "a")
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_fill_and_sample_write_types(tmp_path: Path) -> None:
    rows = [f"{20 + n % 50},{n % 7}.25,{n % 3 == 0},00{n % 4},{'' if n % 5 else n}" for n in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["age,size,flag,code,holes", *rows]) + "\n")
    model = str(tmp_path / "model")
    assert cli.run(["fit", str(tmp_path / "t.csv"), "-o", model, "--recipe", "gaussian"]) == 0
    for arguments in (["fill", model, str(tmp_path / "t.csv")], ["sample", model, "-n", "5"]):
        assert cli.run([*arguments, "-o", str(tmp_path / "out.parquet")]) == 0
        types = [str(field.type) for field in parquet.read_schema(tmp_path / "out.parquet")]
        assert types == ["int64", "double", "bool", "string", "int64"]
        assert cli.run([*arguments, "-o", str(tmp_path / "out.jsonl")]) == 0
        first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
        assert [type(value) for value in first.values()] == [int, float, bool, str, int]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a word of its own for what is missing, and the folder of a model that was told it."""
    folder = tmp_path_factory.mktemp("trained")
    rows = [f"{20 + n % 50},{'unknown' if n % 5 == 0 else n},{n % 7}.25,{'ab'[n % 2]}" for n in range(80)]
    (folder / "t.csv").write_text("\n".join(["age,holes,size,kind", *rows]) + "\n")
    arguments = ["-o", str(folder / "model"), "--recipe", "gaussian", "--missing=unknown"]
    assert cli.run(["fit", str(folder / "t.csv"), *arguments]) == 0
    return folder


OWN = {"age": "int64", "holes": "int64", "size": "double", "kind": "string"}
FORMS = {
    "--draws 2": {**OWN, "draw": "int64"},
    "--draws 2 --long": {".imp": "int64", ".id": "int64", **OWN},
    "--intervals 0.9": {**OWN, "holes_low": "int64", "holes_high": "int64"},
}


@pytest.mark.parametrize("how", FORMS)
@pytest.mark.parametrize("model", ["of a folder", "trained first"])
def test_every_form_of_answer_is_written_in_types(trained: Path, tmp_path: Path, how: str, model: str) -> None:
    out = tmp_path / "out.parquet"
    first = [str(trained / "model")] if model == "of a folder" else ["--recipe", "gaussian", "--missing=unknown"]
    assert cli.run(["fill", *first, str(trained / "t.csv"), "-o", str(out), *how.split()]) == 0
    assert {field.name: str(field.type) for field in parquet.read_schema(out)} == FORMS[how]
    table = read_table(out)
    nulls = 16 if "--long" in how else 0
    assert table["holes"].null_count == nulls
    assert table["age"].null_count == 0
