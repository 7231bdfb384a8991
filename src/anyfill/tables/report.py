"""A page about a table, its holes, and how well a model fills them: one HTML file that needs nothing else.

Schema, missingness, observed against filled values (draws, not means: a mean is no value of the table), calibration and
accuracy on cells that were hidden and asked back, and on request how fast a target is learnt by measuring.
"""

from collections.abc import Generator, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill.checks import counted, refuse
from anyfill.disk import write_bytes
from anyfill.interface import page
from anyfill.interface.progress import metered
from anyfill.interface.threads import threads
from anyfill.tables.acquisition import acquire_steps
from anyfill.tables.choosers import AtRandom
from anyfill.tables.estimator import TableModel
from anyfill.tables.file_model import FileModel
from anyfill.tables.files import sample_file
from anyfill.tables.frames import Frame, rows_of
from anyfill.tables.hidden_cells import HIDDEN_SHARE, Check, check_hidden, coverage, present_cells
from anyfill.tables.measure import curve_chooser
from anyfill.tables.pictures import (
    STYLE,
    coverage_curve,
    draw_means,
    histograms,
    learning_curve,
    line_curves,
    missing_map,
    pit_histogram,
    shares,
)
from anyfill.tables.table import Category, Datetime, Ignored

MAX_COLUMNS = 60
"""Columns whose values are drawn."""
CURVE_ROWS, CURVE_SAMPLES, CURVE_STEPS = 40, 10, 10
"""Of an acquisition curve the most rows, the draws behind each choice, and the most measurements."""
DIAGNOSTIC_DRAWS = 5
Piece = tuple[list[str], float]


def write_report(
    file_model: FileModel, source: Path, target: Path, *, rows: int, target_column: str | None, seed: int
) -> None:
    """Write the page; it appears when all of it is there.

    Args:
        file_model: of the table.
        source: the table that the page is about.
        target: where the page shall be.
        rows: how many rows to look at, chosen evenly.
        target_column: whose acquisition curve is shown; None = none.
        seed: of everything random.
    """
    sampled = sample_file(source, rows, seed=seed)
    with rows_of(source.name, lambda row: int(sampled.rows[row])):
        frame = file_model.frame(sampled.frame)
        file_model.table.encode(frame, unknown=file_model.model.unknown)  # refuses what cannot be read
    model = file_model.writing_like(frame)
    goal = None if target_column is None else model.table_.index(target_column)
    if goal is not None and (
        model.table_.sizes[goal] == 1 or not present_cells(frame, model.table_.names)[:, goal].any()
    ):
        raise refuse("target", expected="a column with values", got=repr(target_column))
    some = f"{len(frame):,} of " * (len(frame) < sampled.total) + counted(sampled.total, "row")
    top = [
        STYLE,
        page.heading(source.name, 1),
        page.paragraph(f"What is missing in this table, and how well a model fills it. Looked at: {some}.", "lead"),
    ]
    sections = metered(_sections(model, frame, goal, seed), f"report on {source.name}")
    pieces = [*top, *(piece for section in sections for piece in section)]
    pieces.append(page.footer(f"anyfill, recipe {model.recipe_}, seed {seed}."))
    write_bytes(page.page(f"{source.name}: report", pieces).encode(), target)


def _sections(model: TableModel, frame: Frame, goal: int | None, seed: int) -> Generator[Piece]:
    yield _schema(model, frame), 0.05
    yield _holes(model, frame), 0.1
    yield _values(model, frame, seed), 0.25
    yield _diagnostics(model, frame, seed), 0.35
    yield _answers(check_hidden(model, frame, seed=seed)), 0.6
    if goal is not None:
        yield _acquisition(model, frame, goal, seed), 1.0


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], **style: Any) -> str:
    return page.table(head, [[page.text(cell) for cell in row] for row in rows], **style)


def _schema(model: TableModel, frame: Frame) -> list[str]:
    present = present_cells(frame, model.table_.names)
    rows = (
        (column.name, column.label, f"{1 - present[:, j].mean():.1%}", model.table_.details(j))
        for j, column in enumerate(model.table_.columns)
    )
    head = ("column", "kind", "missing", "what is known of it")
    return [page.heading("Columns"), _table(head, rows, numbers=(2,), short=(0, 1))]


def _holes(model: TableModel, frame: Frame) -> list[str]:
    names = model.table_.names
    present = present_cells(frame, names)
    missing = 1 - present.mean(0)
    pieces = [page.heading("What is missing")]
    if not missing.any():
        return [*pieces, page.paragraph("Nothing: every cell has a value.")]
    patterns, counts = np.unique(present, axis=0, return_counts=True)
    usual = np.argsort(-counts, kind="stable")
    lacking = [
        ", ".join(name for name, there in zip(names, patterns[i]) if not there) or "nothing" for i in usual[:3].tolist()
    ]
    patterned = "; ".join(f"{w} ({counts[i] / len(present):.0%} of rows)" for w, i in zip(lacking, usual[:3].tolist()))
    shares = sorted(((name, float(share)) for name, share in zip(names, missing) if share > 0), key=lambda one: -one[1])
    return [
        *pieces,
        page.paragraph(
            f"{missing.mean():.1%} of all cells, in {(~present.all(1)).mean():.0%} of the rows. Each line of the "
            "picture is a row, the most complete ones first, rows with the same holes side by side; holes are coloured."
        ),
        f'<div class="scroll">{missing_map(present, names)}</div>',
        page.bars(shares[:30]),
        page.paragraph(f"Most frequent patterns, by what is missing: {patterned}.", "faint"),
    ]


def _values(model: TableModel, frame: Frame, seed: int) -> list[str]:
    table = model.table_
    given = table.encode(frame, unknown="missing")
    drawn = model.sample(frame, 1, seed=seed, row_seeds=np.arange(len(frame)))[0]
    full = table.encode(frame.reread(drawn), unknown="missing")
    shown: list[str] = []
    for j, column in list(enumerate(table.columns))[:MAX_COLUMNS]:
        if isinstance(column, Ignored):
            continue
        there = given.present[:, j].numpy()
        made = ~there & full.present[:, j].numpy()
        seen_z, made_z = (full.x[:, j].double().numpy()[which] for which in (there, made))
        drawing = (
            _shares(column, seen_z, made_z) if isinstance(column, Category) else _densities(table, j, seen_z, made_z)
        )
        note = f"{made.sum():,} filled" if made.any() else "no holes"
        number = table.number(j)
        note += f", {number.warp} scale" if number is not None and number.warp != "none" else ""
        shown.append(f"<figure><figcaption>{page.text(column.name, note)}</figcaption>{drawing}</figure>")
    return [
        page.heading("Observed and filled values"),
        page.paragraph(
            "Shares of the values that are there, and of draws for those that are missing. They need not agree: what "
            "is missing may differ from what is there, and the model takes the rest of each row into account."
        ),
        '<p class="faint"><span class="key seen"></span>observed<span class="key made"></span>filled</p>',
        f'<div class="grid">{"".join(shown)}</div>',
    ]


def _diagnostics(model: TableModel, frame: Frame, seed: int) -> list[str]:
    """Whether learning had come to an end, and how far draws differ from each other."""
    pieces: list[str] = []
    history = getattr(model, "history_", [])
    judged = [(step, kept) for step, _, kept in history if kept is not None and np.isfinite(kept)]
    points = judged if len(judged) > 1 else [(step, loss) for step, loss, _ in history if np.isfinite(loss)]
    if len(points) > 1:
        what = "on cells or rows kept aside" if points is judged else "on the rows it learnt from"
        words = f"The loss {what}, in nats per row, by steps of training. Flat at the end: more steps would add little."
        drawing = f'<div class="scroll">{learning_curve(points)}</div>'
        pieces += [page.heading("How it was learnt", 3), page.paragraph(words), drawing]
    lines = _draw_lines(model, frame, seed)
    if lines:
        words = (
            f"{DIAGNOSTIC_DRAWS} sets of draws. Each mark is the mean of one set's filled cells, in observed standard "
            "deviations from the observed mean; the number is their spread over the observed one. Marks that lie "
            "together mean that few draws will do; all of them to one side, that what is missing differs from what is "
            "there."
        )
        drawing = f'<div class="scroll">{draw_means(lines)}</div>'
        pieces += [page.heading("From draw to draw", 3), page.paragraph(words), drawing]
    return [page.heading("Diagnostics"), *pieces] if pieces else []


def _draw_lines(model: TableModel, frame: Frame, seed: int) -> list[tuple[str, list[float], list[float]]]:
    """For each number with at least two observed and two missing cells: see ``draw_means``."""
    table = model.table_
    given = table.encode(frame, unknown="missing")
    tables = model.sample(frame, DIAGNOSTIC_DRAWS, seed=seed, row_seeds=np.arange(len(frame)))
    sets = [table.encode(frame.reread(one), unknown="missing") for one in tables]
    lines: list[tuple[str, list[float], list[float]]] = []
    for j in range(len(table.columns)):
        there = given.present[:, j]
        made = ~there & sets[0].present[:, j]
        if table.number(j) is None or int(there.sum()) < 2 or int(made.sum()) < 2 or len(lines) == MAX_COLUMNS:
            continue
        seen = given.x[there, j].double()
        unit = float(seen.std()) or 1.0
        filled = [one.x[made, j].double() for one in sets]
        means = [float(one.mean() - seen.mean()) / unit for one in filled]
        lines.append((table.names[j], means, [float(one.std()) / unit for one in filled]))
    return lines


def _densities(table: Any, j: int, seen: Any, made: Any) -> str:
    """Histograms on the model's scale: standardised, and warped where the column is."""
    if not len(seen):
        return ""
    number, column = table.number(j), table.columns[j]
    ends = number.decode(np.quantile(seen, (0.002, 0.998)))
    ends = np.where(np.abs(ends) < 1e-6 * np.abs(ends).max(), 0.0, ends) + 0.0  # no minus zero
    words = [
        str(column.written(ends[k : k + 1])[0]) if isinstance(column, Datetime) else f"{ends[k]:.4g}" for k in (0, 1)
    ]
    return histograms(seen, made, (words[0], words[1]))


def _shares(column: Category, seen: Any, made: Any) -> str:
    counts = [np.bincount(codes.astype(int), minlength=column.size) for codes in (seen, made)]
    parts = [count / max(count.sum(), 1) for count in counts]
    order = (
        np.argsort(-parts[0], kind="stable")[:7].tolist() if not column.ordered else list(range(min(column.size, 9)))
    )
    levels = [(str(column.values[code]), float(parts[0][code]), float(parts[1][code])) for code in order]
    return shares(levels, bool(len(made)))


def _answers(checks: list[Check]) -> list[str]:
    pieces = [page.heading("How well hidden cells are answered")]
    if not checks:
        return [*pieces, page.paragraph("There are too few values to hide some and ask them back.")]
    hidden = sum(check.cells for check in checks)
    pieces.append(
        page.paragraph(
            f"{HIDDEN_SHARE:.0%} of the values that are there were hidden and asked back, {hidden:,} cells in all "
            "(in a short table several times, at random). If the model was trained on these very rows, it has seen the "
            "hidden cells: the figures then flatter it."
        )
    )
    ranks = np.concatenate([check.rank for check in checks])
    if len(ranks):
        levels = np.linspace(0.0, 1.0, 41)
        at = float(coverage(ranks, np.array([0.9]))[0])
        pieces += [
            page.heading("Calibration", 3),
            page.paragraph(
                "First, the rank of each hidden number among its predicted draws: flat is right, a hump in the middle "
                "means intervals too wide, high ends mean too narrow; the band holds about 95 % of the bars of a model "
                "that is right. Second, how many hidden numbers lie in intervals of each level: the dashed line is "
                f"right. 90 % intervals hold {at:.1%}."
            ),
            f'<div class="pair"><figure>{pit_histogram(ranks)}</figure>'
            f"<figure>{coverage_curve(levels, coverage(ranks, levels))}</figure></div>",
        ]
    numbers, levels_ = [c for c in checks if c.is_number], [c for c in checks if not c.is_number]
    if numbers:
        head = ("column", "cells", "RMSE", "of the mean", "CRPS", "of the column", "90 % interval")
        words = (
            "Errors in standard deviations of the column, lower is better, each beside that of a baseline that knows "
            "the column but not the row."
        )
        pieces += [page.heading("Numbers and dates", 3), page.paragraph(words, "faint")]
        pieces.append(_table(head, map(_number_line, numbers), numbers=range(1, 7)))
    if levels_:
        head = ("column", "cells", "right", "most frequent level")
        rows = ((c.name, f"{c.cells:,}", f"{1 - c.error:.1%}", f"{1 - c.error_baseline:.1%}") for c in levels_)
        words = "How often the likeliest level is right, and how often the column's most frequent one."
        pieces += [page.heading("Categories", 3), page.paragraph(words, "faint")]
        pieces.append(_table(head, rows, numbers=range(1, 4)))
    return pieces


def _number_line(check: Check) -> tuple[str, ...]:
    errors = (check.error, check.error_baseline, check.crps, check.crps_baseline)
    within = coverage(check.rank, np.array([0.9]))[0]
    return check.name, f"{check.cells:,}", *(f"{error:.3f}" for error in errors), f"{within:.0%}"


def curve_rows(present: Tensor, seed: int) -> Tensor:
    """At most ``CURVE_ROWS`` of the rows that are True in ``present`` (B,), each with the same chance, in order."""
    index = present.nonzero()[:, 0]
    order = torch.randperm(len(index), generator=torch.Generator().manual_seed(seed))
    return index[order[:CURVE_ROWS].sort().values]


def _acquisition(model: TableModel, frame: Frame, goal: int, seed: int) -> list[str]:
    table = model.table_
    rows = table.encode(frame, unknown="missing")
    index = curve_rows(rows.present[:, goal], seed)
    some = rows.take(index)
    number = table.number(goal) is not None
    curves: dict[str, list[float]] = {}
    first = ""
    with threads(1):
        informed = curve_chooser(model, CURVE_SAMPLES)
        for name, chooser in (("most telling first", informed), ("at random", AtRandom())):
            generator = torch.Generator().manual_seed(seed)
            every = acquire_steps(model.model_, some, goal, chooser, generator=generator)
            steps = list(islice(every, CURVE_STEPS + 1))
            key = [one.squared_error if number else one.wrong for one in steps]
            curves[name] = [float(one.mean().sqrt() if number else one.mean()) for one in key]
            if not first and len(steps) > 1:
                codes, counts = np.unique(steps[1].chosen.numpy(), return_counts=True)
                first = table.names[int(codes[counts.argmax()])]
    what = "Root mean squared error, in the model's standard units," if number else "Share of wrong answers"
    name, count = table.names[goal], max(map(len, curves.values())) - 1
    return [
        page.heading(f"How fast {name} is learnt"),
        page.paragraph(
            f"{what} for {name} in {len(index)} rows after each of {count} measurements at most, from nothing known. "
            "Most telling first: "
            f"each row measures what the model expects to tell most about {name}; most often {first} comes first."
        ),
        f'<div class="scroll">{line_curves(curves, "measurements")}</div>',
    ]
