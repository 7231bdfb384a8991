"""Typed files are read in parts of any size and written with the schema of their first part."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.tables import delimited
from anyfill.tables.files import open_writer, read_parts, read_table
from anyfill.tables.typed_files import regroup


def write(path: Path, *frames: Any) -> None:
    with open_writer(path) as writer:
        for frame in frames:
            writer.write(frame)


@given(st.lists(st.integers(0, 7), max_size=8), st.integers(1, 9))
def test_regrouping_keeps_the_rows_and_cuts_them_evenly(sizes: list[int], rows: int) -> None:
    total, tables = 0, []
    for size in sizes:
        tables.append((pa.table({"a": pa.array(range(total, total + size), pa.int64())}), float(total)))
        total += size
    parts = list(regroup(tables, rows))
    assert [value for part, _ in parts for value in part["a"].to_pylist()] == list(range(total))
    assert [len(part) for part, _ in parts] == [rows] * (total // rows) + [total % rows] * (total % rows > 0)
    assert [share for _, share in parts] == sorted(share for _, share in parts)


def test_a_stream_is_read_like_a_file(tmp_path: Path) -> None:
    table = pa.table({"a": [1, None, 3], "b": pa.array(["x", "y", None]).dictionary_encode()})
    with ipc.new_stream(str(tmp_path / "s.arrow"), table.schema) as stream:
        stream.write_table(table, max_chunksize=2)
    assert read_table(tmp_path / "s.arrow").equals(table)
    parts = list(read_parts(tmp_path / "s.arrow", 2))
    assert [len(part.frame) for part in parts] == [2, 1]
    assert parts[-1].share > 0.5


@pytest.mark.parametrize("suffix", [".feather", ".arrow", ".parquet"])
def test_dictionaries_may_differ_from_part_to_part(tmp_path: Path, suffix: str) -> None:
    """Other levels, the same in another order, none at all: every part must come back with its own values."""
    dtype = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    parts = [["b", "a", None], ["a", "c"], [None], ["c", "b", "d"]]
    with open_writer(tmp_path / f"o{suffix}") as writer:
        for cells in parts:
            writer.write(pa.table({"n": range(len(cells)), "level": pa.array(cells, dtype)}))
    out = read_table(tmp_path / f"o{suffix}")
    assert out.schema.field("level").type.value_type == pa.string()
    assert suffix == ".parquet" or out.schema.field("level").type == dtype
    assert out["level"].to_pylist() == [cell for part in parts for cell in part]


def test_others_read_what_is_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.5, None], "b": ["x", None], "c": pd.Categorical(["u", "v"])})
    for suffix, read in ((".feather", pd.read_feather), (".parquet", pd.read_parquet)):
        with open_writer(tmp_path / f"o{suffix}") as writer:
            writer.write(frame)
            writer.write(frame)
        pd.testing.assert_frame_equal(read(tmp_path / f"o{suffix}"), pd.concat([frame, frame], ignore_index=True))
    pl = pytest.importorskip("polars")
    assert pl.read_ipc(tmp_path / "o.feather")["a"].to_list() == [1.5, None, 1.5, None]


def test_what_others_write_is_read(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3]})
    feather.write_feather(table, tmp_path / "f.feather", compression="zstd")
    parquet.write_table(table, tmp_path / "f.pq", row_group_size=2)
    for name in ("f.feather", "f.pq"):
        assert read_table(tmp_path / name).equals(table)
        assert [part.frame["a"].to_pylist() for part in read_parts(tmp_path / name, 2)] == [[1, 2], [3]]


def test_later_parts_are_cast_to_the_first_ones_types_or_refused(tmp_path: Path) -> None:
    for suffix in (".parquet", ".arrow"):
        out = tmp_path / f"o{suffix}"
        write(out, pa.table({"a": pa.array([1.5])}), pa.table({"a": pa.array([2], pa.int8())}))
        assert read_table(out).to_pydict() == {"a": [1.5, 2.0]}
        with pytest.raises(ValueError, match=r"^further rows: expected the types of the first ones, got"):
            write(out, pa.table({"a": [1]}), pa.table({"a": ["x"]}))
        assert read_table(out).to_pydict() == {"a": [1.5, 2.0]}


def test_a_column_of_several_types_is_refused_by_name(tmp_path: Path) -> None:
    with (
        pytest.raises(
            ValueError, match=r"^table: expected columns of one type each, as Parquet has them, got .*column odd"
        ),
        open_writer(tmp_path / "o.parquet") as writer,
    ):
        writer.write(pd.DataFrame({"odd": pd.Series(["x", 1], dtype=object)}))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather", ".csv"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Arrow holds at its peak while a file is read in parts is the same for one ten times as long."""
    monkeypatch.setattr(delimited, "BLOCK", 1 << 12)  # both files are longer than the 32 blocks it reads ahead
    values = np.random.default_rng(0).normal(size=1000).round(4)
    part = pa.table({name: np.roll(values, shift) for shift, name in enumerate("abcdef")})

    def peak(parts: int) -> int:
        write(tmp_path / f"t{suffix}", *[part] * parts)
        before = pa.total_allocated_bytes()
        return max(pa.total_allocated_bytes() - before for _ in read_parts(tmp_path / f"t{suffix}", 1000))

    assert peak(100) < 1.5 * peak(10)


@pytest.mark.parametrize(("name", "wanted"), [("t.parquet", "a Parquet file"), ("t.feather", "an Arrow file")])
def test_a_broken_file_is_refused_in_one_sentence(tmp_path: Path, name: str, wanted: str) -> None:
    path = tmp_path / name
    with open_writer(path) as writer:
        writer.write(pa.table({"a": range(1000)}))
    whole = path.read_bytes()
    for content in (b"neither nor", whole[: len(whole) // 2], b"x" * 5000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"^file .*: expected {wanted}, got ") as refused:
            read_table(path)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_table_without_rows_is_refused(tmp_path: Path, name: str) -> None:
    with open_writer(tmp_path / name) as writer:
        writer.write(pa.table({"a": pa.array([], pa.int8())}))
    with pytest.raises(ValueError, match=r"^file .*: expected at least one row, got none$"):
        read_table(tmp_path / name)


def test_the_index_of_pandas_is_no_column(tmp_path: Path) -> None:
    frame: Any = pd.DataFrame({0: [1, 2]}, index=pd.Index(["x", "y"], name="key"))
    with open_writer(tmp_path / "o.parquet") as writer:
        writer.write(frame)
    assert read_table(tmp_path / "o.parquet").to_pydict() == {"0": [1, 2]}
