"""New rows into a file, part by part, so that their number is not bounded by memory."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

from anyfill.interface.progress import metered
from anyfill.tables.files import open_writer

CHUNK = 10_000
"""Rows drawn at a time."""


def sample_file(model: Any, target: Path, count: int, *, seed: int) -> None:
    """Draw ``count`` rows from a fitted ``TableModel`` into a file; part i has its own seed, from ``seed`` and i."""
    with open_writer(target) as writer:
        for part in metered(_parts(model, count, seed), "drawing rows"):
            writer.write(part)


def _parts(model: Any, count: int, seed: int) -> Generator[tuple[Any, float]]:
    import numpy as np

    for i, start in enumerate(range(0, count, CHUNK)):
        rows = min(CHUNK, count - start)
        own = int(np.random.SeedSequence((seed, i)).generate_state(1, np.uint32)[0])
        yield model.sample_rows(rows, seed=own), (start + rows) / count
