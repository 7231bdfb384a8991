"""Some rows of a file that may be longer than memory, each with the same chance.

Every row gets a random key; kept are the rows with the smallest keys, in the order of the file. The same seed keeps the
same rows, whatever the size of the parts in which the file is read.
"""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from anyfill.checks import require_count
from anyfill.interface.progress import metered
from anyfill.tables.columnar import joined
from anyfill.tables.files import ROWS, read_chunks


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Rows of a file: a data frame of them, their numbers (from 0), and how many rows the file has."""

    frame: Any
    rows: np.ndarray[Any, np.dtype[np.int64]]
    total: int


def sample_file(path: Path, rows: int, *, seed: int, chunk: int = ROWS) -> Sampled:
    """At most ``rows`` rows of a file, evenly; no more than twice as many are ever in memory, and one part.

    Args:
        path: of the file.
        rows: the most to keep.
        seed: of the choice.
        chunk: rows read at a time.
    """
    require_count("rows", rows)
    generator = np.random.Generator(np.random.Philox(seed))
    frames: list[Any] = []
    keys = np.empty(0)
    numbers = np.empty(0, dtype=np.int64)
    total = 0
    for part in metered(_parts(path, chunk), f"reading {path.name}"):
        frames.append(part)
        keys = np.concatenate([keys, generator.random(len(part))])
        numbers = np.concatenate([numbers, np.arange(total, total + len(part))])
        total += len(part)
        if len(keys) > 2 * rows:
            frames, keys, numbers = _smallest(frames, keys, numbers, rows)
    frames, keys, numbers = _smallest(frames, keys, numbers, rows)
    return Sampled(joined(frames), numbers, total)


def _parts(path: Path, chunk: int) -> Generator[tuple[Any, float]]:
    chunks = read_chunks(path, chunk)
    for part in chunks:
        yield part, chunks.fraction


def _smallest(frames: list[Any], keys: Any, numbers: Any, rows: int) -> tuple[list[Any], Any, Any]:
    if len(keys) <= rows:
        return frames, keys, numbers
    kept = np.sort(np.argpartition(keys, rows - 1)[:rows])
    whole = nw.from_native(joined(frames), eager_only=True)[kept].to_native()
    if hasattr(whole, "reset_index"):
        whole = whole.reset_index(drop=True)
    return [whole], keys[kept], numbers[kept]
