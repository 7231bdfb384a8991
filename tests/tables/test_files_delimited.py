"""A cell of a text file is read as the text it is, written so again, and a broken file is refused with the line."""

import bz2
import csv
import errno
import gzip
import io
import lzma
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.tables import delimited
from anyfill.tables.delimited import Dialect, sniff
from anyfill.tables.files import open_writer, read_parts, read_table
from anyfill.tables.packed import arrow_stream


def text_file(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows_of(path: Path) -> list[list[str]]:
    return read_table(path).to_numpy().tolist()


def line(row: list[str], delimiter: str) -> str:
    """A line by the standard library, without its end; cells with either end of line are quoted."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerow(row)
    return text.getvalue().removesuffix("\r\n")


LETTERS = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
CELL = LETTERS | st.sampled_from(
    ["007", "1.50", " x ", "", "NA", 'a"b', "a,b", "a;b", "a\tb", "a\nb", "a\rb", "a\r\nb", "=1"]
)
TABLES = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=6)
)


@given(
    TABLES,
    st.sampled_from([".csv", ".tsv", ".csv.gz"]),
    st.sampled_from([",", ";", "|", "\t"]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
def test_text_goes_through_unchanged(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    suffix: str,
    delimiter: str,
    mark: bool,
    newline: str,
) -> None:
    """What the standard library wrote is read cell by cell, and written again byte by byte."""
    folder = tmp_path_factory.mktemp("text")
    delimiter = "\t" if suffix == ".tsv" else delimiter
    names = [f"n{j}" for j in range(len(rows[0]))]
    body = "".join(line(row, delimiter) + newline for row in [names, *rows])
    content = (b"\xef\xbb\xbf" if mark else b"") + body.encode()
    path = text_file(folder, gzip.compress(content) if suffix.endswith("gz") else content, f"in{suffix}")
    assert rows_of(path) == rows
    out = folder / f"out{suffix}"
    with open_writer(out, like=path) as writer:
        for frame, *_ in read_parts(path, 2):
            writer.write(frame)
    written = gzip.decompress(out.read_bytes()) if suffix.endswith("gz") else out.read_bytes()
    assert written == content


def test_unix_ends_of_lines_are_kept(tmp_path: Path) -> None:
    path = text_file(tmp_path, 'a;b\n1;"x\r"\n;"y\nz"\n')
    with open_writer(tmp_path / "out.csv", like=path) as writer:
        writer.write(read_table(path))
    assert (tmp_path / "out.csv").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb\n1,5\t2,5\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ("one\n1\n2\n", ","),
        ('a;b\n"x,y,z";1\n', ";"),
        ('a,b\n"x;y",1\n"u;v",2\n', ","),
        ("a,b,c\n1,2\n", ","),
    ],
)
def test_the_delimiter_is_the_one_that_cuts_lines_alike(tmp_path: Path, text: str, delimiter: str) -> None:
    assert sniff(text_file(tmp_path, text))[0] == Dialect(delimiter)
    assert sniff(text_file(tmp_path, text.replace("\n", "\r\n").encode("utf-8-sig")))[0] == Dialect(
        delimiter, "\r\n", True
    )


def test_the_delimiter_is_found_where_the_sample_ends_within_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = text_file(tmp_path, "a;b;c\n" + "é;2;3\n" * 100)
    for size in range(40, 60):
        monkeypatch.setattr(delimited, "SAMPLE", size)
        assert sniff(path)[0].delimiter == ";"


def test_tabs_are_tabs_and_text_files_are_looked_at(tmp_path: Path) -> None:
    assert rows_of(text_file(tmp_path, "a,b\tc\n1,2\t3\n", "t.tsv")) == [["1,2", "3"]]
    assert rows_of(text_file(tmp_path, "a|b\n1|2\n", "t.TXT")) == [["1", "2"]]


def test_empty_lines_are_no_rows_but_empty_cells_of_a_single_column(tmp_path: Path) -> None:
    assert rows_of(text_file(tmp_path, "\na,b\n1,2\n\n\n3,4\n\n")) == [["1", "2"], ["3", "4"]]
    assert rows_of(text_file(tmp_path, 'a\n1\n\n""\n4\n')) == [["1"], [""], [""], ["4"]]
    assert rows_of(text_file(tmp_path, "a\n1")) == [["1"]]


def test_a_single_column_keeps_its_empty_cells_on_the_way_out(tmp_path: Path) -> None:
    with open_writer(tmp_path / "o.csv") as writer:
        writer.write(pd.DataFrame({"a": ["1", "", None, "4"]}))
    assert rows_of(tmp_path / "o.csv") == [["1"], [""], [""], ["4"]]


BROKEN = {
    "a,b\n1,2\n3\n": "line 3: expected 2 cells as in the header, got 1$",
    "a,b\n1,2\n3,4,5\n": "line 3: expected 2 cells as in the header, got 3$",
    'a,b\n"x\n\ny",2\n3,4,\n': "line 5: expected 2 cells as in the header, got 3$",
    "a,b\n": "expected rows below the header, got none$",
    "a,b": "expected rows below the header, got none$",
    "one\n": "expected rows below the header, got none$",
    "": "got an empty file$",
    " \n\r\n": "expected a header and rows, got an empty file$",
    "a,b,a\n1,2,3\n": r"^header of .*: expected each name once, got 'a' twice$",
    'a,b\n1,2\n3,"x\n5,6\n': "the row after line 2: expected a quote that is closed, got the end of the file$",
    "\na\n1\n": "^header of .*: expected a, got $",
    b"\xff\xfea\0,\0": "expected rows below the header, got none$",
    b"a,b\n1,\xe9\x01\x02\n": "expected text, got binary data$",
    b"a\0,b\n\0\0\0": "expected text, got binary data$",
    b"PK\x03\x04\0\0": "expected text, got binary data$",
}


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_refused_in_one_sentence(tmp_path: Path, content: str | bytes) -> None:
    for name in ("t.csv", "t.csv.gz"):
        raw = content if isinstance(content, bytes) else content.encode()
        path = text_file(tmp_path, raw if name == "t.csv" else gzip.compress(raw), name)
        sentence = BROKEN[content] if raw or name == "t.csv" else "expected a header and rows, got an empty file$"
        with pytest.raises(ValueError, match=sentence) as refused:
            read_table(path)
        assert "\n" not in str(refused.value)
        assert str(path) in str(refused.value)


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(5000)))
    for content in (packed[: len(packed) // 2], b"a,b\n1,2\n", packed[:50] + b"????" + packed[54:]):
        with pytest.raises(ValueError, match="expected a whole gzip file, got"):
            read_table(text_file(tmp_path, content, "t.csv.gz"))


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.bz2", "t.csv.xz", "t.csv.zip"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_arrow_reads_without_python_whose_end_its_threads_may_outlive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, encoding: str
) -> None:
    given: list[Any] = []

    def opened(stream: Any, **options: Any) -> Any:
        given.append(stream)
        return open_csv(stream, **options)

    open_csv = delimited.arrow_csv.open_csv
    monkeypatch.setattr(delimited.arrow_csv, "open_csv", opened)
    text, path = "a,b\n1,é\n".encode(encoding), tmp_path / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("t.csv", text)
    else:
        packers = {".csv": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
        path.write_bytes(packers[path.suffix](text))
    assert rows_of(path) == [["1", "é"]]
    assert [type(stream) for stream in given if not isinstance(stream, pa.OSFile | pa.CompressedInputStream)] == []


def test_members_of_a_gzip_file_are_read_one_after_the_other(tmp_path: Path) -> None:
    path = text_file(tmp_path, gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"), "t.csv.gz")
    assert rows_of(path) == [["1", "2"], ["3", "4"]]


def test_python_ends_as_usual_after_a_refused_file(tmp_path: Path) -> None:
    path = text_file(tmp_path, "a,b,c\n")
    code = "import sys, anyfill\ntry: anyfill.TableModel().fit(sys.argv[1])\nexcept ValueError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("expected rows below the header, got none\n")


def test_a_row_longer_than_a_block_is_refused_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 1000)
    with pytest.raises(ValueError, match=r"^file .*: expected a table as text, got straddling object"):
        read_table(text_file(tmp_path, "a,b\n" + "1,2\n" * 300 + "x" * 5000 + ",2\n"))


def test_numbers_dates_and_missing_cells_are_spelt_plainly(tmp_path: Path) -> None:
    table = pa.table(
        {
            "whole": pa.array([1, None], pa.int8()),
            "real": pa.array([0.1, float("nan")]),
            "narrow": pa.array([0.1, None], pa.float32()),
            "flag": pa.array([True, None]),
            "day": pa.array([18321, None], pa.date32()),
            "when": pa.array([1, None], pa.timestamp("ns", "UTC")),
            "level": pa.array(["x", None]).dictionary_encode(),
        }
    )
    tables: list[Any] = [table, table.to_pandas(types_mapper=pd.ArrowDtype)]
    try:
        import polars as pl
    except ImportError:
        pass
    else:
        tables.append(
            pl.DataFrame(table.drop_columns("when")).insert_column(
                5, pl.Series("when", [1, None]).cast(pl.Datetime("ns", "UTC"))
            )
        )
    for number, frame in enumerate(tables):
        with open_writer(tmp_path / f"{number}.csv") as writer:
            writer.write(frame)
        lines = (tmp_path / f"{number}.csv").read_text().splitlines()
        assert lines[0] == "whole,real,narrow,flag,day,when,level"
        assert lines[1].startswith("1,0.1,0.1,True,2020-02-29,1970-01-01 00:00:00")
        assert lines[1].endswith("+00:00,x")
        assert lines[2] == ",,,,,,"


def test_cells_are_quoted_only_where_they_must_be(tmp_path: Path) -> None:
    with open_writer(tmp_path / "o.csv") as writer:
        writer.write(pd.DataFrame({"plain": ["red"], "comma": ["a,b"], "semicolon": ["a;b"], "number": ["1.50"]}))
    assert (tmp_path / "o.csv").read_text() == 'plain,comma,semicolon,number\nred,"a,b",a;b,1.50\n'


@pytest.mark.parametrize("behind", [b"\0", b"\0" * 4, b"\0" * 512])
def test_zeros_behind_a_packed_file_are_no_part_of_it(tmp_path: Path, behind: bytes) -> None:
    text = b"a,b\n" + b"1,2\n" * 1000
    for packed, name in ((gzip.compress(text), "t.csv.gz"), (bz2.compress(text), "t.csv.bz2")):
        assert len(rows_of(text_file(tmp_path, packed + behind, name))) == 1000
    assert len(rows_of(text_file(tmp_path, bz2.compress(text) + b"or others", "t.csv.bz2"))) == 1000


@pytest.mark.parametrize("rows", [*range(1, 40), 5000])
def test_what_ends_as_a_packed_file_does_is_read_without_being_unpacked_first(tmp_path: Path, rows: int) -> None:
    text = "a,b\n" + "".join(f"{n},{n % 3}\n" for n in range(rows))
    for packed, name in ((gzip.compress(text.encode()), "t.csv.gz"), (bz2.compress(text.encode()), "t.csv.bz2")):
        with arrow_stream(text_file(tmp_path, packed, name), "utf-8") as (stream, _):
            assert isinstance(stream, pa.CompressedInputStream)


def test_zeros_between_members_of_a_gzip_file_are_no_part_and_no_row_comes_twice(tmp_path: Path) -> None:
    lines = [f"{n},{n % 7}\n" for n in range(200_000)]  # Arrow yields rows of the first member before it fails
    first, second = ("".join(["a,b\n", *lines[:150_000]]), "".join(lines[150_000:]))
    packed = gzip.compress(first.encode()) + b"\0" * 512 + gzip.compress(second.encode())
    path = text_file(tmp_path, packed, "t.csv.gz")
    frames = [frame for frame, _ in delimited.read_delimited(path, 1_000)]
    assert len(frames) == 200
    assert [int(n) for frame in frames for n in frame["a"]] == list(range(200_000))


def test_what_cannot_be_unpacked_is_refused_with_its_name(tmp_path: Path) -> None:
    text = b"a,b\n" + b"1,2\n" * 1000
    empty_between = bz2.compress(text) + bz2.compress(b"") + bz2.compress(text)
    half = bytearray(bz2.compress(bytes(range(97, 123)) * 100_000))
    half[len(half) // 2] ^= 255
    with zipfile.ZipFile(tmp_path / "t.csv.zip", "w") as archive:
        archive.writestr("t.csv", text)
    stored = bytearray((tmp_path / "t.csv.zip").read_bytes())
    secret, unknown = bytearray(stored), bytearray(stored)
    for header, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        secret[stored.index(header) + at] |= 1
        unknown[stored.index(header) + at + 2] = 99
    cases = [
        ("t.csv.bz2", empty_between, "expected a whole bz2 file"),
        ("h.csv.bz2", bytes(half), "expected a whole bz2 file"),
        ("s.csv.zip", bytes(secret), "expected a zip file that can be unpacked, got .* password"),
        ("u.csv.zip", bytes(unknown), "expected a zip file that can be unpacked, got .* not supported"),
    ]
    for name, content, complaint in cases:
        with pytest.raises(ValueError, match=f"^file .*{re.escape(name)}: {complaint}"):
            read_table(text_file(tmp_path, content, name))


@pytest.mark.parametrize("rows", [3, 300_000])
def test_a_letter_that_utf_16_has_not_is_told_of_the_file(tmp_path: Path, rows: int) -> None:
    text = ("a,b\n" + "1,2\n" * rows).encode("utf-16")
    for content in (text + b"\x0a", text + b"\x00\xd8\x00\x00"):
        with pytest.raises(ValueError, match=r"^file .*t\.csv: expected whole UTF-16 text, got a letter that is none"):
            read_table(text_file(tmp_path, content))


def test_a_full_disk_is_told_by_the_place_where_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = text_file(tmp_path, lzma.compress(b"a,b\n1,2\n"), "t.csv.xz")
    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(OSError, match="No space") as caught:
        read_table(path)
    assert str(caught.value.filename).startswith(tempfile.gettempdir())


@pytest.mark.skipif(sys.platform != "linux", reason="names that are not UTF-8")
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.xz", ".parquet", ".arrow", ".jsonl"])
def test_names_may_have_any_bytes(tmp_path: Path, suffix: str) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff" + suffix.encode()))
    with open_writer(path) as writer:
        writer.write(pd.DataFrame({"a": ["x"], "b": ["y"]}))
    assert [len(part.frame) for part in read_parts(path)] == [1]
