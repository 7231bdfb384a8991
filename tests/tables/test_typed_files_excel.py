"""An Excel sheet is a header and rows of typed cells, there and back."""

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anyfill.tables import typed_files
from anyfill.tables.files import open_writer, read_parts, read_table
from anyfill.tables.frames import Frame

openpyxl = pytest.importorskip("openpyxl")


def book(path: Path, rows: list[list[Any]], title: str = "first") -> Path:
    made = openpyxl.Workbook()
    made.active.title = title
    for row in rows:
        made.active.append(row)
    made.save(path)
    return path


ROWS = [
    ["n", "x", "t", "flag", "when"],
    [1, 1.5, "a", True, dt.datetime(2020, 2, 29, 12)],
    [None, None, None, None, None],
]
ROWS.append([3, 2.5, "007", False, dt.datetime(2021, 1, 1)])


def test_cells_have_their_types_and_missing_ones_are_missing(tmp_path: Path) -> None:
    frame = Frame.of(read_table(book(tmp_path / "b.xlsx", ROWS)))
    assert [(c.name, c.kind) for c in frame.columns] == [
        *(("n", "number"), ("x", "number"), ("t", "text"), ("flag", "bool"), ("when", "datetime"))
    ]
    assert [c.present.tolist() for c in frame.columns] == [[True, False, True]] * 5
    assert frame["t"].values.tolist() == ["a", None, "007"]


def test_a_sheet_comes_back_as_it_was(tmp_path: Path) -> None:
    path = book(tmp_path / "b.xlsx", ROWS)
    before = read_table(path)
    with open_writer(tmp_path / "o.xlsx") as writer:
        for part in read_parts(path, 2):
            writer.write(part.frame)
    pd.testing.assert_frame_equal(read_table(tmp_path / "o.xlsx"), before)


def test_text_that_looks_like_a_formula_stays_text(tmp_path: Path) -> None:
    with open_writer(tmp_path / "o.xlsx") as writer:
        writer.write(pd.DataFrame({"a": ["=1+1", "=cmd|' /C calc'!A0", "plain"]}))
    sheet = openpyxl.load_workbook(tmp_path / "o.xlsx").active
    assert [cell.data_type for cell in sheet["A"]] == ["s"] * 4
    assert read_table(tmp_path / "o.xlsx")["a"].tolist() == ["=1+1", "=cmd|' /C calc'!A0", "plain"]


def test_empty_edges_are_no_part_of_the_table_and_errors_are_missing(tmp_path: Path) -> None:
    rows = [[None] * 4, [None, "a", "b", None], [None, 1, "#N/A", None], [None, 2, "", None], [None] * 4]
    frame = read_table(book(tmp_path / "b.xlsx", rows))
    assert list(frame.columns) == ["a", "b"]
    assert frame["a"].tolist() == [1, 2]
    assert frame["b"].isna().all()


def test_sheets_are_found_by_name_and_number(tmp_path: Path) -> None:
    path = tmp_path / "b.xlsx"
    made = openpyxl.load_workbook(book(path, [["a"], [1]]))
    made.create_sheet("second").append(["b"])
    made["second"].append([2])
    made.save(path)
    assert [list(read_table(path, sheet=sheet).columns) for sheet in (None, 0, "first", 1, "second")] == [
        *(["a"], ["a"], ["a"], ["b"], ["b"])
    ]
    for sheet in ("third", 2, -1):
        with pytest.raises(ValueError, match=r"^sheet of .*: expected one of first, second, got"):
            read_table(path, sheet=sheet)
    with pytest.raises(ValueError, match=r"^sheet: expected an Excel file, got t.csv$"):
        read_table(tmp_path / "t.csv", sheet=0)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "expected a header and rows, got an empty sheet$"),
        ([["a", "b"]], "expected rows below the header, got none$"),
        ([["a", "a"], [1, 2]], "expected each name once, got 'a' twice$"),
        ([["a", None, "c"], [1, 2, 3]], "column 2: expected a name, got an empty cell$"),
    ],
)
def test_a_sheet_that_is_no_table_is_refused(tmp_path: Path, rows: list[list[Any]], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_table(book(tmp_path / "b.xlsx", rows))


def test_a_file_that_is_no_workbook_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.xlsx").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"expected an Excel file \(.xlsx\), got"):
        read_table(tmp_path / "b.xlsx")


def test_what_excel_cannot_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(ValueError, match=r"^Excel file, row 2: expected cells that Excel can hold, got"),
        open_writer(tmp_path / "o.xlsx") as writer,
    ):
        writer.write(pd.DataFrame({"a": ["\x01"]}))
    monkeypatch.setattr(typed_files, "_MAX_EXCEL_ROWS", 3)
    with (
        pytest.raises(ValueError, match=r"^Excel file: expected at most 3 rows with the header .*, got more$"),
        open_writer(tmp_path / "o.xlsx") as writer,
    ):
        writer.write(pd.DataFrame({"a": [1, 2, 3]}))
    assert list(tmp_path.iterdir()) == []


def test_moments_with_a_zone_become_text(tmp_path: Path) -> None:
    with open_writer(tmp_path / "o.xlsx") as writer:
        writer.write(pd.DataFrame({"a": pd.to_datetime(["2020-02-29 12:00"]).tz_localize("Asia/Tokyo")}))
    assert read_table(tmp_path / "o.xlsx")["a"].tolist() == ["2020-02-29 12:00:00+09:00"]


def test_without_openpyxl_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = book(tmp_path / "b.xlsx", ROWS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    sentence = r'^Excel files: expected the package openpyxl \(pip install "anyfill\[excel\]"\), got none$'
    with pytest.raises(ValueError, match=sentence):
        read_table(path)
    with pytest.raises(ValueError, match=sentence), open_writer(tmp_path / "o.xlsx"):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["b.xlsx"]


def test_a_column_with_a_whole_number_that_excel_does_not_show_is_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"id,n,real\n1,{10**15 - 1},1.5\n{10**15},2,{10**15}\n")
    with open_writer(tmp_path / "o.xlsx", like=tmp_path / "t.csv") as writer:
        writer.write(read_table(tmp_path / "t.csv"))
    found = read_table(tmp_path / "o.xlsx")
    assert found["id"].tolist() == ["1", str(10**15)]
    assert found["n"].tolist() == [10**15 - 1, 2]
    assert found["real"].tolist() == [1.5, 1e15]


def test_whole_numbers_with_types_stay_numbers_as_far_as_they_are_exact(tmp_path: Path) -> None:
    with open_writer(tmp_path / "o.xlsx") as writer:
        writer.write(pd.DataFrame({"a": [1, 10**15, 2**53, 2**53 + 1]}))
    assert read_table(tmp_path / "o.xlsx")["a"].tolist() == [1, 10**15, 2**53, str(2**53 + 1)]


def test_a_row_too_many_is_refused_when_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed_files, "_MAX_EXCEL_ROWS", 3)
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    table = read_table(tmp_path / "t.csv")
    for like in (None, tmp_path / "t.csv"):
        with open_writer(tmp_path / "o.xlsx", like=like) as writer:
            writer.write(table)
            with pytest.raises(ValueError, match=r"^Excel file: expected at most 3 rows with the header .*, got more$"):
                writer.write(table.head(1))
