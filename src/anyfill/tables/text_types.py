"""Tables of text on their way into files that know the types of their cells (Parquet, Arrow, Excel, JSON lines).

A column becomes whole numbers, numbers or booleans only where every cell is one that loses nothing by it, or missing:

    whole numbers   42, -7; not 007 or 1,000, and none beyond 64 bits
    numbers         1.5, .5, 1e-3; of no more digits than a double keeps
    booleans        True and False, also in capitals or small letters

All else stays text, dates too; an empty cell is null. One cell decides about a whole column, so nothing is written in
its type before all is known: the rows wait as text in a temporary file.
"""

import tempfile
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.compute

from anyfill.tables.columns import MISSING_TOKENS
from anyfill.tables.delimited import DelimitedSink, Dialect, read_delimited
from anyfill.tables.typed_files import Sink

compute: Any = pyarrow.compute  # its functions are made when it is imported
_ROWS = 50_000  # read at a time
_WHOLE = r"^(0|-?[1-9][0-9]*)$"
_DECIMAL = r"^-?((0|[1-9][0-9]*)(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_BOOLEAN = r"^([Tt]rue|TRUE|[Ff]alse|FALSE)$"
_SAFE = 15
"""Letters of a number that a double always keeps."""
_LIKELIEST = (pa.bool_(), pa.int64(), pa.float64())


class RetypedSink(Sink):
    """Takes tables of text for another sink, which gets them with the types that all their cells allow."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._folder = tempfile.TemporaryDirectory(prefix="anyfill-")
        self._path = Path(self._folder.name) / "text.csv"
        self._file = self._path.open("wb")
        self._text = DelimitedSink(self._file, Dialect(), self._path)

    def write(self, frame: nw.DataFrame[Any]) -> None:
        """Append the rows of a frame."""
        self._text.write(frame)

    def close(self) -> None:
        """Write everything; the file itself stays open."""
        self._text.close()
        self._file.close()
        types = types_of(self._tables())
        for table in self._tables():
            cells = [retyped(column, dtype) for column, dtype in zip(table.columns, types)]
            self._sink.write(nw.from_native(pa.table(cells, names=table.column_names), eager_only=True))
        self._sink.close()
        self._folder.cleanup()

    def abandon(self) -> None:
        """Let go of the file, which is not wanted any more."""
        self._file.close()
        self._folder.cleanup()
        self._sink.abandon()

    def _tables(self) -> Iterable[Any]:
        for frame, _ in read_delimited(self._path, _ROWS, ","):
            yield pa.table({name: pa.array(frame[name], pa.string()) for name in frame.columns})


def types_of(tables: Iterable[Any]) -> Sequence[Any]:
    """For each column of tables of text, which have the same columns, the type of Arrow that all its cells allow."""
    possible: list[list[Any]] = []
    some: list[bool] = []
    for table in tables:
        possible = possible or [list(_LIKELIEST) for _ in table.columns]
        some = some or [False] * table.num_columns
        for j, column in enumerate(table.columns):
            if possible[j]:
                cells = compute.drop_null(_without(column, MISSING_TOKENS))
                possible[j] = [dtype for dtype in possible[j] if _allows(cells, dtype)]
                some[j] = some[j] or len(cells) > 0
    return [left[0] if left and there else pa.string() for left, there in zip(possible, some)]


def retyped(cells: Any, dtype: Any) -> Any:
    """A column of text in a type that it allows; null where it was missing."""
    if dtype == pa.string():
        return _without(cells, ("",))
    present = _without(cells, MISSING_TOKENS)
    return (compute.utf8_lower(present) if dtype == pa.bool_() else present).cast(dtype)


def _without(cells: Any, tokens: Sequence[str]) -> Any:
    """Text with null for what stands for a missing value."""
    gone = compute.is_in(compute.utf8_trim_whitespace(cells), value_set=pa.array(tokens))
    return compute.if_else(gone, pa.scalar(None, pa.string()), cells)


def _allows(cells: Any, dtype: Any) -> bool:
    """Whether all cells of text, none of them missing, are of this type and lose nothing by it."""
    pattern = {pa.bool_(): _BOOLEAN, pa.int64(): _WHOLE, pa.float64(): _DECIMAL}[dtype]
    if not compute.all(compute.match_substring_regex(cells, pattern), min_count=0).as_py():
        return False
    long = cells.filter(compute.greater(compute.utf8_length(cells), _SAFE)).to_pylist()
    if dtype == pa.int64():
        return all(-(2**63) <= int(one) < 2**63 for one in long)
    # A double has more digits than anyone wrote only if there are more than it keeps.
    extreme = cells.filter(compute.match_substring_regex(cells, "[eE]")).to_pylist()
    return dtype == pa.bool_() or all(Decimal(repr(float(one))) == Decimal(one) for one in [*long, *extreme])
