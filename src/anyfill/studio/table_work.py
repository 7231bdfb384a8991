"""The long work on tables: train a model and fill, find what surprises, write files for download.

All of it is done by what the command line calls, so that answers are the same for the same seed: ``TrainingRows.fit``,
``PartFiller``, ``score_file``, ``fill_file``, ``write_report``. One model is trained at a time: weights and dropout are
drawn from the one generator that torch has.
"""

import re
import threading
from pathlib import Path
from shlex import quote
from typing import Any

import narwhals as nw
import numpy as np

from anyfill.interface.progress import metered
from anyfill.studio.how import Spent, spending
from anyfill.studio.jobs import Job
from anyfill.studio.passes import count_passes
from anyfill.studio.table_store import Filled, OpenTable
from anyfill.tables.engines import in_order
from anyfill.tables.file_model import FileModel
from anyfill.tables.files import open_writer, read_parts
from anyfill.tables.filling import CHUNK, PartFiller, fill_file, numbers_with_holes
from anyfill.tables.report import write_report
from anyfill.tables.surprises import score_file
from anyfill.tables.typed_files import joined

TRAINING = threading.Lock()
DRAWS = 20
"""Tables in a download of draws."""
REPORT_ROWS = 2000
_DEFAULT: dict[str, Any] = {"recipe": "gaussian", "seed": 0}


def fill(
    job: Job, table: OpenTable, settings: dict[str, Any], level: float, model: FileModel | None = None
) -> dict[str, Any]:
    """Train a model of a table, unless there is one, and fill it.

    Args:
        job: which is told how far it is.
        table: what to fill.
        settings: seed, and the recipe of the model or the folder that it is from.
        level: of the intervals.
        model: the one of that folder.
    """
    with spending() as spent:
        if model is None:
            with _Turn(job):
                model = table.read.fit(
                    recipe=settings["recipe"], steps=None, random_state=settings["seed"], unknown="missing"
                )
            count_passes(model.model.model_.network)
        table.model, table.filled = model, _filled(table, model, level, settings)
        return {**table.describe(), "how": _how_filled(table, spent, settings)}


def surprises(table: OpenTable, top: int, seed: int) -> dict[str, Any]:
    """The most surprising rows, and in each the most surprising cells."""
    model = table.require_model()
    with spending() as spent:
        found = score_file(model, table.path, top=top, seed=seed)
        how = spent.how(
            given="nothing for a row; for a cell all other cells of its row",
            asked="all present cells of each row",
            kind="exact" if model.model.model_.is_exact else "estimate",
            why="log p of what is there; what is usual is taken off, by 512 rows that the model drew",
            python=f"{python_line(table)}\nmodel.cell_log_prob({table.name!r}), model.score_samples({table.name!r})",
            cli=f"{fit_line(table)}\nanyfill score MODEL {quote(table.name)} --top {top} --seed {seed}",
        )
    rows = [
        {
            "row": one.row - 1,
            "surprise": one.surprise,
            "cells": [
                {"column": c.column, "value": c.value, "expected": c.expected, "surprise": c.surprise}
                for c in one.cells
            ],
        }
        for one in found
    ]
    return {"rows": rows, "how": how}


def download(table: OpenTable, what: str, suffix: str, seed: int, new_file: Any) -> dict[str, Any]:
    """Write a file: the filled table, draws of it, scores of all cells, or a report."""
    model, stem = table.require_model(), re.sub(r"[^\w.-]+", "_", Path(table.name).stem)[:60] or "table"
    target: Path = new_file(".html" if what == "report" else suffix)
    if what == "filled":
        if table.filled is None:
            raise ValueError("the table is not filled yet")
        with open_writer(target, like=table.path, missing=model.missing) as writer:
            for part in table.filled.parts:
                writer.write(part)
    elif what == "draws":
        fill_file(PartFiller(model, draws=DRAWS, seed=seed), table.path, target, engine="none")
    elif what == "scores":
        score_file(model, table.path, top=0, seed=seed, target=target)
    else:
        write_report(model, table.path, target, rows=REPORT_ROWS, target_column=None, seed=seed)
    table.files[target.stem] = (target, f"{stem}-{what}{target.suffix}")
    return {"file": target.stem, "name": table.files[target.stem][1]}


class _Turn:
    """Wait for one's turn to train; looks for cancel meanwhile."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __enter__(self) -> None:
        while not TRAINING.acquire(timeout=0.2):
            self.job.tell("waiting for another model to be trained", 0.0, "")

    def __exit__(self, *_: object) -> None:
        TRAINING.release()


def _filled(table: OpenTable, model: FileModel, level: float, settings: dict[str, Any]) -> Filled:
    """The table filled part by part, as ``fill_file`` does, with the ends of intervals kept apart."""
    names = table.frame.names
    holed = {name for j, name in enumerate(names) if not table.present[:, j].all()}
    bounded = tuple(name for name in numbers_with_holes(model.table) if name in holed)
    taken = {f"{name}_{end}" for name in bounded for end in ("low", "high")} & set(names)
    ends: dict[str, Any] = {} if taken else {"level": level, "bounded": bounded}
    filler = PartFiller(model, seed=settings["seed"], source=table.name, **ends)
    done = in_order("none", filler.counted, read_parts(table.path, CHUNK))
    parts = [part.frame for part in metered(done, "filling")]
    whole = nw.from_native(joined(parts), eager_only=True)
    found = {name: (whole[f"{name}_low"].to_list(), whole[f"{name}_high"].to_list()) for name in bounded if not taken}
    plain = [nw.from_native(part, eager_only=True).select(list(names)).to_native() for part in parts]
    columns = {name: tuple(np.array(end, dtype=object) for end in both) for name, both in found.items()}
    return Filled(plain, whole.select(list(names)), columns, level, settings)  # pyright: ignore[reportArgumentType]


def _how_filled(table: OpenTable, spent: Spent, settings: dict[str, Any]) -> dict[str, Any]:
    name = table.name
    own, made = settings.get("folder"), f" --recipe {settings.get('recipe')}{_columns(table)}"
    return spent.how(
        given="of each row the cells that are there",
        asked=f"{int((~table.present).sum()):,} missing cells, each by itself",
        kind="exact" if table.require_model().model.model_.is_exact else "estimate",
        why="means and quantiles of the model's own conditional distributions",
        python=f"{python_line(table)}\nfilled = model.transform({name!r})\nlow, high = model.interval({name!r}, 0.9)",
        cli=f"anyfill fill {f'{quote(own)} ' if own else ''}{quote(name)} -o filled.csv"
        f"{'' if own else made} --seed {settings['seed']}",
    )


def python_line(table: OpenTable) -> str:
    """The line of Python that makes the model."""
    settings = _DEFAULT if table.filled is None else table.filled.settings
    if "folder" in settings:
        return f"model = TableModel.load({settings['folder']!r})"
    said = f", columns={table.columns!r}" if table.columns else ""
    made = f"recipe={settings['recipe']!r}{said}, random_state={settings['seed']}, unknown='missing'"
    return f"model = TableModel({made}).fit({table.name!r})"


def fit_line(table: OpenTable) -> str:
    """The command that makes the model."""
    settings = _DEFAULT if table.filled is None else table.filled.settings
    if "folder" in settings:
        return f"MODEL={quote(settings['folder'])}"
    options = f"--recipe {settings['recipe']}{_columns(table)} --seed {settings['seed']} --unknown missing"
    return f"anyfill fit {quote(table.name)} -o MODEL {options}"


def _columns(table: OpenTable) -> str:
    return "".join(f" --column {quote(f'{column}={kind}')}" for column, kind in table.columns.items())
