"""Every format goes there and back, in parts as well as whole; a failure leaves what was there and nothing else."""

import gc
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anyfill.tables.files import Part, format_of, open_writer, read_parts, read_table
from anyfill.tables.frames import Frame
from anyfill.tables.numbers import read_numbers

TEXT = [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"]
TYPED = [".parquet", ".pq", ".feather", ".arrow", ".ipc"]
ROWS = 23


def with_answers(frame: Frame, answers: dict[str, Any], holes: dict[str, Any]) -> Any:
    """The caller's table with answers (rows,) where holes (rows,) are True."""
    return frame.put({name: (np.flatnonzero(hole), np.asarray(answers[name])[hole]) for name, hole in holes.items()})


def suffixes() -> list[str]:
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        return TEXT + TYPED
    return [*TEXT, *TYPED, ".xlsx"]


def sample() -> Any:
    """A table of text, numbers, flags and dates, each with holes."""
    n = np.arange(ROWS)
    return pd.DataFrame(
        {
            "text": pd.Series([None if k % 5 == 0 else f'w{k}, "{k}"' for k in n], dtype="str"),
            "real": np.where(n % 4 == 1, np.nan, n / 8),
            "whole": pd.Series([None if k % 7 == 2 else int(k) for k in n], dtype="Int64"),
            "flag": pd.Series([None if k % 6 == 3 else bool(k % 2) for k in n], dtype="boolean"),
            "when": pd.Series(
                [pd.NaT if k % 3 == 0 else pd.Timestamp(2020, 1, 1) + pd.Timedelta(hours=int(k)) for k in n]
            ),
        }
    )


def libraries() -> list[Callable[[Any], Any]]:
    made: list[Callable[[Any], Any]] = [
        lambda frame: frame,
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    ]
    try:
        import polars as pl
    except ImportError:
        return made
    return [*made, lambda frame: pl.DataFrame(pa.Table.from_pandas(frame, preserve_index=False))]


def write(path: Path, *frames: Any, like: Path | None = None) -> Path:
    with open_writer(path, like=like) as writer:
        for frame in frames:
            writer.write(frame)
    return path


def values(data: Any) -> dict[str, list[Any]]:
    """Canonical values: what a model would see, None = missing."""
    return {
        column.name: [v if there else None for v, there in zip(column.values.tolist(), column.present.tolist())]
        for column in Frame.of(data).columns
    }


@pytest.mark.parametrize("suffix", suffixes())
@pytest.mark.parametrize("library", range(len(libraries())))
def test_a_table_comes_back_from_a_file(tmp_path: Path, suffix: str, library: int) -> None:
    frame = libraries()[library](sample())
    back = values(read_table(write(tmp_path / f"t{suffix}", frame)))
    expected = values(frame)
    if suffix in TEXT:  # whatever is no text is now its spelling
        assert back.pop("text") == expected.pop("text")
        assert {name: [v is None for v in cells] for name, cells in back.items()} == {
            name: [v is None for v in cells] for name, cells in expected.items()
        }
        assert [None if v is None else float(v) for v in back["real"]] == expected["real"]
        assert [None if v is None else int(v) for v in back["whole"]] == expected["whole"]
        assert [None if v is None else float(v == "True") for v in back["flag"]] == expected["flag"]
        assert [None if v is None else pd.Timestamp(v).timestamp() for v in back["when"]] == expected["when"]
    else:
        assert back == expected


@pytest.mark.parametrize("suffix", TYPED)
def test_typed_files_keep_the_schema(tmp_path: Path, suffix: str) -> None:
    table = pa.Table.from_pandas(sample(), preserve_index=False).append_column(
        "level", pa.array(["u", None, "v"] * 7 + ["u", "u"]).dictionary_encode()
    )
    again = read_table(write(tmp_path / f"t{suffix}", table.slice(0, 9), table.slice(9)))
    assert again.schema.equals(table.schema, check_metadata=True)
    assert again.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("suffix", suffixes())
@pytest.mark.parametrize("rows", [1, 7, ROWS, 1000])
def test_parts_are_never_larger_than_asked_and_make_up_the_whole(tmp_path: Path, suffix: str, rows: int) -> None:
    path = write(tmp_path / f"t{suffix}", sample().iloc[:10], sample().iloc[10:])
    whole = values(read_table(path))
    sizes: list[int] = []
    shares: list[float] = []
    parts: dict[str, list[Any]] = {name: [] for name in whole}
    for part in read_parts(path, rows):
        assert part.start == sum(sizes)
        sizes.append(len(part.frame))
        shares.append(part.share)
        for name, cells in values(Frame.of(part.frame)).items():
            parts[name] += cells
    assert sizes == [rows] * (ROWS // rows) + [ROWS % rows] * (ROWS % rows > 0)
    assert parts == whole
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("source", [".csv", ".parquet", ".feather"])
@pytest.mark.parametrize("target", suffixes())
def test_any_format_goes_into_any_other(tmp_path: Path, source: str, target: str) -> None:
    path = write(tmp_path / f"in{source}", sample())
    out = write(tmp_path / f"out{target}", *(part.frame for part in read_parts(path, 10)), like=path)
    if source == ".csv":
        before, after = (Frame.of(read_table(one)) for one in (path, out))
        assert {column.kind for column in before.columns} == {"text"}
        kinds = {column.name: column.kind for column in after.columns}
        own_types = target in (".parquet", ".pq", ".feather", ".arrow", ".ipc", ".jsonl", ".ndjson", ".xlsx")
        typed = {"whole": "number", "real": "number", "flag": "bool"}
        assert {name: kind for name, kind in kinds.items() if kind != "text"} == (typed if own_types else {})
        assert values(read_table(out))["text"] == values(read_table(path))["text"]
        np.testing.assert_array_equal(read_numbers(after["real"]), read_numbers(before["real"]))
        np.testing.assert_array_equal(after["flag"].present, before["flag"].present)
    else:
        again = write(tmp_path / f"again{source}", read_table(out))
        assert values(read_table(again))["text"] == values(sample())["text"]


@pytest.mark.parametrize("suffix", suffixes())
def test_untouched_cells_of_a_filled_file_are_identical(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"in{suffix}", sample())

    def filled(part: Part) -> Any:
        frame = Frame.of(part.frame)
        answers = {c.name: np.full(frame.rows, c.values[c.present][0], dtype=c.values.dtype) for c in frame.columns}
        return with_answers(frame, answers, {c.name: ~c.present for c in frame.columns})

    before = values(read_table(path))
    after = values(read_table(write(tmp_path / f"out{suffix}", *map(filled, read_parts(path, 10)), like=path)))
    for name, cells in before.items():
        assert None not in after[name]
        assert [b for a, b in zip(cells, after[name], strict=True) if a is not None] == [
            a for a in cells if a is not None
        ]


@pytest.mark.parametrize("suffix", suffixes())
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, suffix: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    def fail(target: Path, *frames: Any) -> None:
        with open_writer(target) as writer:
            for frame in frames:
                writer.write(frame)
            raise error

    path = write(tmp_path / f"t{suffix}", sample())
    before = path.read_bytes()
    for target, frames in ((path, [sample()]), (path, []), (tmp_path / f"new{suffix}", [sample(), sample()])):
        with pytest.raises(error):
            fail(target, *frames)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
    gc.collect(1)  # whatever held the file must not write to it any more
    assert unraisable == []


def test_the_file_appears_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "t.csv"
    with open_writer(path) as writer:
        writer.write(sample())
        assert not path.exists()
        assert len(list(path.parent.iterdir())) == 1
    assert list(path.parent.iterdir()) == [path]


def test_a_file_may_be_filled_in_place(tmp_path: Path) -> None:
    for suffix in (".csv", ".parquet", ".arrow"):
        path = write(tmp_path / f"t{suffix}", sample())
        before = values(read_table(path))
        with open_writer(path, like=path) as writer:
            for part in read_parts(path, 5):
                writer.write(part.frame)
        assert values(read_table(path)) == before


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", sample())
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)
    path.chmod(0o640)
    (tmp_path / "link.csv").symlink_to(path)
    write(tmp_path / "link.csv", sample().iloc[:1])
    assert (tmp_path / "link.csv").is_symlink()
    assert len(read_table(path)) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_reading_may_stop_early(tmp_path: Path) -> None:
    for suffix in suffixes():
        parts = read_parts(write(tmp_path / f"t{suffix}", sample()), 2)
        assert len(next(parts).frame) == 2
        parts.close()
        assert list(parts) == []


def test_the_delimiter_of_the_input_is_kept_unless_the_suffix_says_otherwise(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("a;b\r\n1;2\r\n", newline="")
    for name, like, expected in (
        ("o.csv", source, b"a;b\r\n1;2\r\n"),
        ("o.txt", source, b"a;b\r\n1;2\r\n"),
        ("o.tsv", source, b"a\tb\r\n1\t2\r\n"),
        ("p.csv", tmp_path / "o.tsv", b"a,b\r\n1,2\r\n"),
        ("q.csv", None, b"a,b\n1,2\n"),
    ):
        assert write(tmp_path / name, read_table(source), like=like).read_bytes() == expected


def test_what_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    for call, sentence in (
        (lambda: read_table(folder), r"expected a file, got a folder$"),
        (lambda: open_writer(folder).__enter__(), r"expected the name of a file, got a folder$"),
        (lambda: read_table(tmp_path / "t.xls"), r"expected a name that ends in one of \.csv .*\.xlsx, got t\.xls$"),
        (lambda: open_writer(tmp_path / "t").__enter__(), r"expected a name that ends in one of \.csv .*, got t$"),
        (lambda: read_parts(tmp_path / "t.csv", 0), r"^rows: expected a whole number from 1 up, got 0$"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
    with pytest.raises(FileNotFoundError):
        read_parts(tmp_path / "absent.csv")
    for suffix in suffixes():
        (tmp_path / f"empty{suffix}").touch()
        with pytest.raises(ValueError, match=r"expected a table, got an empty file$"):
            read_table(tmp_path / f"empty{suffix}")


def test_suffixes_are_read_in_any_case() -> None:
    assert [format_of(name) for name in ("a.CSV", "b.tsv.GZ", "c.Parquet", "d.e.feather", "f.XLSX")] == [
        *("delimited", "tabs", "parquet", "arrow", "excel")
    ]


@pytest.mark.parametrize("suffix", suffixes())
def test_a_writer_refuses_other_columns_other_things_and_nothing(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    for frames, sentence in (
        ([pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})], r"^further rows: expected the columns a, got b$"),
        ([np.zeros((2, 2))], r"^table to write: expected a data frame of .*, got ndarray$"),
        ([], r"^table to write: expected at least one part, got none$"),
    ):
        with pytest.raises(ValueError, match=sentence):
            write(path, *frames)
    assert list(tmp_path.iterdir()) == []
