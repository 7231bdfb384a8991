"""Which jobs there are and in which order: all of a run, or turn after turn where a run ends at a time by the clock.

A turn is what ``python -m benchmarks.imputation`` takes as options: methods, tables, holes, modes and seeds, separated
by commas; what is not named is every one (of seeds: 0). A file of turns is a list of them as JSON. A job that several
turns name is done in the first.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import jobs, sets
from .holes import WAYS

DEFAULT_METHODS = ("mean", "knn", "ridge", "trees", "lightgbm", "em", "gaussian", "ours")
_COST = {
    "forestdiffusion": 60,
    "utrees": 40,
    "miceforest": 40,
    "posterior": 20,
    "missforest": 15,
    "trees": 10,
    "ours": 8,
}
"""About how a job's time grows with its cells: the longest first, so that no worker is left with one at the end."""
_SLOW = 40
"""Of methods that cost so much the smallest tables come first where the minutes are counted."""
_KEYS = ("methods", "tables", "holes", "modes", "seeds")
Turn = Mapping[str, str | None]


def read_turns(path: Path) -> list[Turn]:
    """The turns of a file; SystemExit if it has none."""
    found = json.loads(path.read_text())
    for one in found:
        if unknown := set(one) - set(_KEYS):
            raise SystemExit(f"{path}: expected {', '.join(_KEYS)}, got {', '.join(sorted(unknown))}")
    return found


class Tables:
    """How many cells the tables have; those that are not there are noted once and left out."""

    def __init__(self, folder: Path, notes: list[str]) -> None:
        self.folder, self.notes, self.cells = folder, notes, dict[str, int | None]()

    def size(self, table: str) -> int | None:
        """None if the table is not there."""
        if table not in sets.NAMES:
            raise SystemExit(f"--tables: expected {', '.join(sets.NAMES)}, got {table}")
        if table not in self.cells:
            try:
                self.cells[table] = sets.load(table, self.folder).frame.size
            except FileNotFoundError as error:
                self.notes.append(f"{table} is left out: {error.filename} is not there")
                self.cells[table] = None
        return self.cells[table]


def jobs_of(
    turns: Sequence[Turn], tables: Tables, *, draws: int, steps: int | None, costly: bool, by_clock: bool
) -> list[jobs.Job]:
    """All jobs in their order: ``by_clock`` that of the turns, else the longest first.

    In a turn seeds come one after the other, then holes and modes, then tables, the methods side by side; methods one
    after the other where there is one turn alone.
    """
    found: dict[str, jobs.Job] = {}
    for turn in turns:
        for job in _turn(turn, tables, draws, steps, costly, len(turns) == 1):
            found.setdefault(job.key, job)
    every = list(found.values())
    if not by_clock:
        every.sort(key=lambda job: (job.seed, -_COST.get(job.method, 1) * (tables.size(job.table) or 0)))
    return every


def _turn(turn: Turn, tables: Tables, draws: int, steps: int | None, costly: bool, alone: bool) -> list[jobs.Job]:
    groups = {"numeric": sets.NUMERIC, "mixed": sets.MIXED}
    named = itertools.chain(*(groups.get(one, (one,)) for one in listed(turn.get("tables"), sets.NAMES)))
    sizes = {one: size for one in named if (size := tables.size(one)) is not None}
    methods = listed(turn.get("methods"), DEFAULT_METHODS)
    ways, modes = listed(turn.get("holes"), WAYS), listed(turn.get("modes"), jobs.MODES)
    seeds = [int(seed) for seed in listed(turn.get("seeds"), ("0",))]
    found: list[jobs.Job] = []
    for table, method in itertools.product(sizes, methods):
        if (method, table) in jobs.COSTLY and not costly:
            tables.notes.append(f"{method} on {table} takes many minutes a job: only with --costly")
            continue
        found += [
            jobs.Job(table, way, mode, seed, method, draws, steps)  # pyright: ignore[reportArgumentType]
            for way, mode, seed in itertools.product(ways, modes, seeds)
        ]

    def place(job: jobs.Job) -> tuple[int, ...]:
        size = sizes[job.table] if _COST.get(job.method, 1) >= _SLOW else -sizes[job.table]
        setting, method = (ways.index(job.holes), modes.index(job.mode), size), methods.index(job.method)
        return (job.seed, method, *setting) if alone else (job.seed, *setting, method)

    return sorted(found, key=place)


def listed(text: str | None, default: Sequence[str]) -> list[str]:
    """What stands between commas."""
    return [one.strip() for one in text.split(",") if one.strip()] if text else list(default)
