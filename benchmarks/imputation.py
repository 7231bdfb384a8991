"""Filling holes: anyfill and others on the same tables with the same holes, in one run.

    python -m benchmarks.imputation [--data ../shared/data] [--workers 2] [--lines results/logs/imputation.jsonl]
                                    [--tables …] [--methods …] [--holes …] [--modes …] [--seeds 0,1,2] [--quick]
                                    [--minutes 8]

Every combination of table, holes, mode, seed and method is a job of its own, done by fresh processes with one thread
each. Its scores are a line of the file ``--lines``; what is there already is not done again, so a run that was stopped
goes on where it was, there or on another machine. Then the means over seeds, ranks and a picture are made of all lines
that belong to the run (``--work-only``: not; ``--report-only``: of the lines there are). A line says where it was made.

``--minutes`` ends the work at a time by the clock: jobs are then begun in the order in which methods, holes and modes
are named, or turn after turn of a file (``--turns``, ``tables/turns.py``; ranks are then of the first seed, which every
method has), and those still under way at the end leave no line. Where a process has been given a prepared folder of
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
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS, ROOT, commit, write_result
from benchmarks.tables import beside, jobs, report, sets, turns
from benchmarks.tables.holes import WAYS

_POOLS = 4
"""So often work is begun anew after a process was killed."""
QUICK = {"tables": "wine,penguins", "methods": "mean,knn,ridge,em,ours", "holes": "mcar", "modes": "in", "seeds": "0"}


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
    first = min((line["seed"] for line in own), default=0)
    found = report.means(own if not arguments.turns else [line for line in own if line["seed"] == first])
    result = {**report.summary(found), **beside.summary(own)}
    print(report.show(found, result))
    print(beside.show(result))
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
    parser.add_argument("--turns", help="a file of turns (tables/turns.py) in place of the five options above")
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
    stated: turns.Turn = {key: getattr(arguments, key) for key in ("methods", "tables", "holes", "modes")}
    own = [{**stated, "seeds": arguments.seeds or "0,1,2"}]
    return turns.jobs_of(
        turns.read_turns(Path(arguments.turns)) if arguments.turns else own,
        turns.Tables(folder, notes),
        draws=arguments.draws,
        steps=arguments.steps,
        costly=arguments.costly,
        by_clock=arguments.minutes is not None,
    )


def _work(wanted: list[jobs.Job], lines: Path, workers: int, folder: Path, minutes: float | None = None) -> None:
    """Do the jobs, as many as so many minutes allow; a line appears as soon as one is done."""
    if not wanted:
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # fresh processes read it when they import numpy and torch
    start, now, left = time.time(), commit(), list(wanted)
    for _ in range(_POOLS):
        until = None if minutes is None else start + 60 * minutes - time.time()
        left = _pooled(left, lines, workers, folder, now, until) if until is None or until > 0 else []
        if not left:
            return


def _pooled(
    wanted: list[jobs.Job], lines: Path, workers: int, folder: Path, now: str, seconds: float | None
) -> list[jobs.Job]:
    """Do the jobs in fresh processes; those that are left if one of these was killed, after the others."""
    start, context = time.time(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=jobs.one_thread) as pool:
        futures = {pool.submit(jobs.run, job, str(folder), now): job for job in wanted}
        over = set[str]()
        try:
            for count, future in enumerate(as_completed(futures, seconds), 1):
                line = future.result()
                jobs.append(lines, line)
                over.add(line["key"])
                spent = time.time() - start
                left = spent / count * (len(wanted) - count)
                said = line.get("error") or f"{line['cpu_seconds']:.1f} CPU s"
                when = f"({spent:.0f} s, about {left:.0f} s left)"
                print(f"{count}/{len(wanted)} {line['key']}: {said} {when}", flush=True)
        except TimeoutError:
            print(f"the time is over after {time.time() - start:.0f} s", flush=True)
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
        except BrokenProcessPool as error:
            open_jobs = [job for job in wanted if job.key not in over]
            print(f"a process was killed ({error}): {len(open_jobs)} jobs are left for others", flush=True)
            return [*open_jobs[workers:], *open_jobs[:workers]]  # what killed it may be one of the first
    return []


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


if __name__ == "__main__":
    main()
