"""Text on its way into files with types: a column gets one only where no cell of it loses anything."""

import json
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


def test_a_file_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = tmp_path / "held"
    held.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(held))
    source = tmp_path / "t.csv"
    source.write_text("a\n1\n")

    def write(*parts: Any) -> None:
        with open_writer(tmp_path / "t.parquet", like=source) as writer:
            for part in parts:
                writer.write(part)

    with pytest.raises(ValueError, match="further rows"):
        write(read_table(source), pd.DataFrame({"b": ["1"]}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held", "t.csv"]
    assert list(held.iterdir()) == []
    write(read_table(source))
    assert list(held.iterdir()) == []


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
