"""Tables of text on their way into files that know the types of their cells (Parquet, Arrow, Excel, JSON lines).

A column becomes whole numbers, numbers or booleans only where every cell is one that loses nothing by it, or missing:

    whole numbers   42, -7; not 007 or 1,000, and none beyond 64 bits
    numbers         1.5, .5, 1e-3; of no more digits than a double keeps
    booleans        True and False, also in capitals or small letters

The value is kept, not its spelling: 2.50 is 2.5. In such a column the words for a missing value (NA, nan, …) are null.
All else stays text, dates too; there only a cell that is empty or of spaces is null. One cell decides about a whole
column, so nothing is written in its type before all is known: the rows wait as text in a folder beside the target.
"""

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
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
_DIALECT = Dialect()  # of the waiting rows


class RetypedSink(Sink):
    """Takes tables of text for another sink, which gets them with the types that all their cells allow."""

    def __init__(self, sink: Sink, target: Path, missing: Sequence[str] = MISSING_TOKENS) -> None:
        self._sink, self._missing = sink, ("", *missing)
        self._held = ExitStack()
        folder = tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent)
        self._path = Path(self._held.enter_context(folder)) / "text.csv"
        self._file = self._held.enter_context(self._path.open("wb"))
        self._text = DelimitedSink(self._file, _DIALECT, self._path)
        self._names: list[str] = []
        self._rows = 0

    def write(self, frame: nw.DataFrame[Any]) -> None:
        """Append the rows of a frame."""
        self._names = [str(name) for name in frame.columns]
        self._rows += len(frame)
        self._sink.require_room(self._rows)
        self._text.write(frame)

    def close(self) -> None:
        """Write everything; the file itself stays open."""
        with self._held:
            self._text.close()
            self._file.close()
            types = types_of(self._tables(), self._missing, self._sink.largest)
            for table in self._tables():
                cells = [retyped(column, dtype, self._missing) for column, dtype in zip(table.columns, types)]
                self._sink.write(nw.from_native(pa.table(cells, names=self._names), eager_only=True))
            self._sink.close()

    def abandon(self) -> None:
        """Let go of the file, which is not wanted any more."""
        with self._held:
            self._sink.abandon()

    def _tables(self) -> Iterable[Any]:
        if not self._rows:
            yield pa.table([pa.array([], pa.string())] * len(self._names), names=self._names)
            return
        for frame, _ in read_delimited(self._path, _ROWS, known=(_DIALECT, self._names)):
            yield pa.table([pa.array(frame[name], pa.string()) for name in self._names], names=self._names)


def types_of(
    tables: Iterable[Any], missing: Sequence[str] = MISSING_TOKENS, largest: int = Sink.largest
) -> Sequence[Any]:
    """For each column of tables of text, which have the same columns, the type of Arrow that all its cells allow.

    Args:
        tables: of pyarrow.
        missing: what stands for a missing value.
        largest: a column with whole numbers further from 0 stays text.
    """
    found: list[_Seen] = []
    for table in tables:
        found = found or [_Seen() for _ in table.columns]
        for seen, column in zip(found, table.columns):
            seen.add(compute.drop_null(_without(column, missing)))
    return [seen.dtype(largest) for seen in found]


class _Seen:
    """What the cells of a column allow, as far as it has been seen."""

    def __init__(self) -> None:
        self._possible = list(_LIKELIEST)
        self._count, self._farthest = 0, 0

    def add(self, cells: Any) -> None:
        """Look at further cells of text, none of them missing."""
        self._possible = [dtype for dtype in self._possible if _allows(cells, dtype)]
        self._count += len(cells)
        if len(cells) and pa.int64() in self._possible:
            ends = compute.min_max(cells.cast(pa.int64())).as_py().values()
            self._farthest = max(self._farthest, *map(abs, ends))

    def dtype(self, largest: int) -> Any:
        """The likeliest type; text for whole numbers beyond ``largest``."""
        dtype = self._possible[0] if self._possible and self._count else pa.string()
        return pa.string() if dtype == pa.int64() and self._farthest > largest else dtype


def retyped(cells: Any, dtype: Any, missing: Sequence[str] = MISSING_TOKENS) -> Any:
    """A column of text in a type that it allows; null where it was missing."""
    if dtype == pa.string():
        return _without(cells, ("",))
    present = _without(cells, missing)
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
    if dtype == pa.bool_():
        return True
    long = compute.greater(compute.utf8_length(cells), _SAFE)
    if dtype == pa.int64():
        return all(-(2**63) <= int(one) < 2**63 for one in cells.filter(long).to_pylist())
    # A double has more digits than anyone wrote only if there are more than it keeps. Most are as Arrow writes them.
    doubtful = cells.filter(compute.or_(long, compute.match_substring_regex(cells, "[eE]")))
    doubtful = doubtful.filter(compute.not_equal(doubtful.cast(dtype).cast(pa.string()), doubtful))
    return all(Decimal(repr(float(one))) == Decimal(one) for one in doubtful.to_pylist())
