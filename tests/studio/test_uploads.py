"""Files of strangers: what is too large, broken or hostile is refused in a sentence, and leaves nothing behind."""

import io
import zipfile

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from anyfill.studio import uploads


def upload(visitor, name, content):
    return visitor.client.post("/api/tables/upload", files={"file": (name, content)})


@pytest.fixture(autouse=True)
def nothing_is_left(studio):
    """Whatever is refused leaves no file."""
    before = set(studio.folder.iterdir())
    yield
    assert set(studio.folder.iterdir()) == before


def workbook(**parts):
    """An Excel file with some of its parts replaced."""
    plain = io.BytesIO()
    pd.DataFrame({"a": [1, 2], "b": [3, 4]}).to_excel(plain, index=False)
    made = io.BytesIO()
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, parts.pop(name.split("/")[-1].removesuffix(".xml"), old.read(name)))
    return made.getvalue()


def refused(answer, words):
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["detail"]
    assert "Traceback" not in answer.text
    assert "/tmp" not in answer.text


def test_a_header_of_a_great_many_cells(visitor):
    refused(upload(visitor, "x.csv", b"a," * 100_000 + b"a\n1\n"), "columns")


def test_a_zip_bomb_in_a_workbook(visitor, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_UNPACKED", 2**20)
    refused(upload(visitor, "x.xlsx", workbook(sheet1=b"0" * (uploads.MAX_UNPACKED + 1))), "unpacked")


def test_a_cell_at_the_far_end_of_a_sheet(visitor):
    sheet = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1">'
        b'<c r="A1"><v>1</v></c></row><row r="20000"><c r="ALL20000"><v>1</v></c></row></sheetData></worksheet>'
    )
    refused(upload(visitor, "x.xlsx", workbook(sheet1=sheet)), "cells")


def test_entities_in_a_workbook(visitor):
    laughs = b'<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;">]><worksheet><sheetData/></worksheet>'
    refused(upload(visitor, "x.xlsx", workbook(sheet1=laughs)), "document type")
    behind = b"<?xml version='1.0'?>" + b"<!-- " + b"x" * 100_000 + b" -->" + laughs
    refused(upload(visitor, "x.xlsx", workbook(sheet1=behind)), "document type")


@pytest.mark.parametrize("name", ["x.xlsx", "x.parquet"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04broken", b"PAR1broken", b"\x00" * 5000, b"a,b\n1,2\n"])
def test_files_that_are_not_what_they_are_called(visitor, name, content):
    refused(upload(visitor, name, content), "expected")


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"a,b\n", b"a,a\n1,2\n", b'a,b\n"1,2\n', b"a,b\n1\n", b"\xff\xfe1", b"\x00"]
)
def test_text_that_is_no_table(visitor, content):
    refused(upload(visitor, "x.csv", content), "expected")


def test_one_value_stored_once_for_a_great_many_rows(visitor, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_UNPACKED", 20 * 2**20)
    word = pa.array(["x" * 50_000] * 2_000).dictionary_encode()
    data = io.BytesIO()
    parquet.write_table(pa.table({"a": word.cast(pa.string())}), data, use_dictionary=True)
    assert len(data.getvalue()) < 2**20
    refused(upload(visitor, "x.parquet", data.getvalue()), "in memory")


def test_too_many_cells(visitor, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_CELLS", 10)
    data = io.BytesIO()
    pd.DataFrame({"a": range(6), "b": range(6)}).to_parquet(data)
    refused(upload(visitor, "x.parquet", data.getvalue()), "at most 10 cells")
    refused(upload(visitor, "x.csv", b"a,b\n" + b"1,2\n" * 6), "at most 10 cells")


@pytest.mark.parametrize("name", ["../../x.csv", "/etc/x.csv", "x.csv\x00.csv", "a" * 500 + ".csv", "..\\x.csv"])
def test_files_are_never_named_by_the_visitor(visitor, studio, name):
    before = set(studio.folder.iterdir())
    answer = upload(visitor, name, b"a,b\n1,2\n3,4\n5,6\n")
    assert answer.status_code == 200
    (made,) = set(studio.folder.iterdir()) - before
    assert made.parent == studio.folder
    assert made.suffix == ".csv"
    assert made.stem.isalnum()
    made.unlink()


@pytest.mark.parametrize("name", ["x.exe", "x", "", "x.csv.gz", ".csv/"])
def test_other_kinds_of_files_are_refused(visitor, name):
    assert upload(visitor, name, b"a\n1\n").status_code == 422


def test_an_upload_over_the_limit(visitor, monkeypatch):
    from anyfill.studio import security

    monkeypatch.setattr(security, "MAX_UPLOAD", 1000)
    answer = upload(visitor, "x.csv", b"a\n" + b"1\n" * 1000)
    assert answer.status_code == 413
