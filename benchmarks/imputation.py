"""Filling holes: anyfill and others on the same tables with the same holes, in one run.

    python -m benchmarks.imputation [--data ../shared/data] [--workers 2] [--lines results/logs/imputation.jsonl]
                                    [--tables …] [--methods …] [--holes …] [--modes …] [--seeds 0,1,2] [--quick]
                                    [--minutes 8]

Every combination of table, holes, mode, seed and method is a job of its own, done by fresh processes with one thread
each. Its scores are a line of the file ``--lines``; what is there already is not done again, so a run that was stopped
goes on where it was, there or on another machine. Then the means over seeds, ranks and a picture are made of all lines
that belong to the run (``--work-only``: not; ``--report-only``: of the lines there are). A line says where it was made.

``--minutes`` ends the work at a time by the clock: jobs are then begun in the order in which methods, holes and modes
are named, and those still under way at the end leave no line. Where a process has been given a prepared folder of
packages on PYTHONPATH, the peers' processes find it too.

``--name`` says what results are called: several runs of some tables each need not overwrite one another.

Tables: ``tables/sets.py``. Holes: ``tables/holes.py``. Modes: ``tables/jobs.py``. Peers: ``tables/peers.py``, and two
baselines that come with anyfill (*): ``em``, a joint Gaussian by EM on plainly standardised columns, and ``gaussian``,
the same behind TableModel, with its warped columns. Scores: ``tables/scores.py``; ``ours`` is ``TableModel()``.
CPU seconds are of fitting and filling, draws included only where a method needs them for its answer (posterior).

Writes results/imputation.json and results/imputation.png.
"""

import argparse
import importlib
import itertools
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS, ROOT, commit, write_result
from benchmarks.tables import jobs, report, sets
from benchmarks.tables.holes import WAYS

DEFAULT_METHODS = ("mean", "knn", "ridge", "trees", "lightgbm", "em", "gaussian", "ours")
QUICK = {"tables": "wine,penguins", "methods": "mean,knn,ridge,em,ours", "holes": "mcar", "modes": "in", "seeds": "0"}
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


def main() -> None:
    arguments = _arguments()
    folder = Path(arguments.data).resolve()
    notes: list[str] = []
    wanted = _jobs(arguments, folder, notes)
    lines = Path(arguments.lines)
    done = jobs.read_lines(lines)
    open_jobs = [job for job in wanted if "error" in done.get(job.key, {"error": "not done"})]
    for note in notes:
        print(f"note: {note}")
    print(f"{len(wanted)} jobs, {len(wanted) - len(open_jobs)} of them done before; {arguments.workers} workers")
    if not arguments.report_only:
        _work(open_jobs, lines, arguments.workers, folder, arguments.minutes)
        done = jobs.read_lines(lines)
    if arguments.work_only:
        return
    if arguments.any_draws:
        good = [line for line in done.values() if "error" not in line]
        done |= {line["key"].replace(f"|{line['draws']}|", "|*|"): line for line in good}
    own = [done.get(job.key) or done[job.undrawn] for job in wanted if job.key in done or job.undrawn in done]
    failed = [line for line in own if "error" in line]
    for method, error in sorted({(line["method"], line["error"]) for line in failed}):
        count = sum((line["method"], line["error"]) == (method, error) for line in failed)
        print(f"failed, {count} jobs: {method}: {error}")
    found = report.means(own)
    result = report.summary(found)
    print(report.show(found, result))
    commits = sorted({line["commit"] for line in own})
    if len(commits) > 1:
        print(f"note: the lines are of {len(commits)} commits: {', '.join(commits)}")
    payload: dict[str, Any] = {
        "arguments": {key: value for key, value in vars(arguments).items() if key not in ("data", "lines")},
        "versions": _versions(),
        "notes": notes,
        "jobs": len(own) - len(failed),
        "commits": commits,
        "machines": _machines(own),
        "failed": [{key: line[key] for key in ("key", "error")} for line in failed],
        "means": found,
        **result,
    }
    name = "imputation_quick" if arguments.quick else arguments.name
    print(f"\nwrote {write_result(name, payload)}")
    report.draw(found, RESULTS / f"{name}.png")
    print(f"wrote {RESULTS / f'{name}.png'}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ANYFILL_DATA", str(ROOT.parent / "shared" / "data")))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--lines", help="JSON lines, one a job (default: beside the result)")
    parser.add_argument("--name", default="imputation", help="of the results: results/NAME.json")
    parser.add_argument("--tables", help=f"of {', '.join(sets.NAMES)}; or numeric, mixed")
    parser.add_argument("--methods", help=f"of {', '.join(jobs.METHODS)}, gaussian, ours, recipe:NAME")
    parser.add_argument("--holes", help=f"of {', '.join(WAYS)}")
    parser.add_argument("--modes", help=f"of {', '.join(jobs.MODES)}")
    parser.add_argument("--seeds", help="comma-separated (default 0,1,2)")
    parser.add_argument("--steps", type=int, help="the most optimizer steps of ours")
    parser.add_argument("--draws", type=int, help="behind CRPS and energy score of ours and em (default 100)")
    parser.add_argument("--any-draws", action="store_true", help="report lines with another number of draws, too")
    parser.add_argument("--costly", action="store_true", help="also run what takes many minutes for one job")
    parser.add_argument("--work-only", action="store_true", help="jobs and their lines, no report")
    parser.add_argument("--report-only", action="store_true", help="no jobs, only the report of the lines there are")
    parser.add_argument("--minutes", type=float, help="by the clock, after which no line is added")
    parser.add_argument("--quick", action="store_true", help="two tables, five methods, 30 steps: does it run?")
    arguments = parser.parse_args()
    for key, value in QUICK.items() if arguments.quick else ():
        setattr(arguments, key, getattr(arguments, key) or value)
    if arguments.quick:
        arguments.steps, arguments.draws = arguments.steps or 30, arguments.draws or 20
    arguments.draws = arguments.draws or 100
    default = "imputation_quick.jsonl" if arguments.quick else "imputation.jsonl"
    arguments.lines = arguments.lines or str(RESULTS / "logs" / default)
    return arguments


def _jobs(arguments: argparse.Namespace, folder: Path, notes: list[str]) -> list[jobs.Job]:
    groups = {"numeric": sets.NUMERIC, "mixed": sets.MIXED}
    cells: dict[str, int] = {}
    tables = list(itertools.chain(*(groups.get(one, (one,)) for one in _list(arguments.tables, sets.NAMES))))
    for table in list(tables):
        if table not in sets.NAMES:
            raise SystemExit(f"--tables: expected {', '.join(sets.NAMES)}, got {table}")
        try:
            cells[table] = sets.load(table, folder).frame.size
        except FileNotFoundError as error:
            notes.append(f"{table} is left out: {error.filename} is not there")
            tables.remove(table)
    methods = _list(arguments.methods, DEFAULT_METHODS)
    seeds = [int(seed) for seed in _list(arguments.seeds, ("0", "1", "2"))]
    found: list[jobs.Job] = []
    for table, method in itertools.product(tables, methods):
        if (method, table) in jobs.COSTLY and not arguments.costly:
            notes.append(f"{method} on {table} takes many minutes a job: only with --costly")
            continue
        settings = itertools.product(_list(arguments.holes, WAYS), _list(arguments.modes, jobs.MODES), seeds)
        found += [
            jobs.Job(table, way, mode, seed, method, arguments.draws, arguments.steps)  # pyright: ignore[reportArgumentType]
            for way, mode, seed in settings
        ]
    if arguments.minutes is None:
        return sorted(found, key=lambda job: (job.seed, -_COST.get(job.method, 1) * cells[job.table]))
    ways, modes = _list(arguments.holes, WAYS), _list(arguments.modes, jobs.MODES)

    def turn(job: jobs.Job) -> tuple[int, ...]:
        size = cells[job.table] if _COST.get(job.method, 1) >= _SLOW else -cells[job.table]
        return job.seed, methods.index(job.method), ways.index(job.holes), modes.index(job.mode), size

    return sorted(found, key=turn)


def _work(wanted: list[jobs.Job], lines: Path, workers: int, folder: Path, minutes: float | None = None) -> None:
    """Do the jobs, as many as so many minutes allow; a line appears as soon as one is done."""
    if not wanted:
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # fresh processes read it when they import numpy and torch
    start, now = time.time(), commit()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=jobs.one_thread) as pool:
        futures = [pool.submit(jobs.run, job, str(folder), now) for job in wanted]
        try:
            done = as_completed(futures, None if minutes is None else 60 * minutes)
            for count, future in enumerate(done, 1):
                line = future.result()
                jobs.append(lines, line)
                spent = time.time() - start
                left = spent / count * (len(wanted) - count)
                said = line.get("error") or f"{line['cpu_seconds']:.1f} CPU s"
                when = f"({spent:.0f} s, about {left:.0f} s left)"
                print(f"{count}/{len(wanted)} {line['key']}: {said} {when}", flush=True)
        except TimeoutError:
            print(f"the {minutes:g} minutes are over", flush=True)
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()


def _machines(lines: list[dict[str, Any]]) -> list[Any]:
    """What the lines were made on."""
    return [json.loads(one) for one in sorted({json.dumps(line["machine"]) for line in lines if "machine" in line})]


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in ("numpy", "scipy", "scikit-learn", "pandas", "narwhals", "miceforest", "lightgbm"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            module = importlib.import_module(name) if name == "narwhals" else None
            found[name] = getattr(module, "__version__", "none")
    return found


def _list(text: str | None, default: Any) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()] if text else list(default)


if __name__ == "__main__":
    main()
