"""Filling many rows: speed against IterativeImputer, memory while a file streams, and the engines, in one run.

    python -m benchmarks.tables_scale [--rows 10000,100000] [--stream 100000,400000] [--engines none,processes,dask,ray]
                                      [--workers 2] [--repeats 3] [--steps N] [--profile] [--seed 0]
    python -m benchmarks.tables_scale --columns 100 --train 200000 --rows "" --stream 1000000 --engines "" --name wide

speed    20 columns, curved functions of 5 hidden factors, noise, 20 % holes. ``TableModel`` and ``IterativeImputer``
         (BayesianRidge, max_iter 10: its defaults) learn from the same 10^4 rows; then both fill the same new rows, one
         thread each: rows per second by the clock, and their ratio. The RMSE of both is beside it, in standard units.
memory   ``anyfill fill model rows.csv`` in a process of its own, once with few rows and once with many: the peak
         resident memory of its largest process. It is flat if a file is never held as a whole.
engines  the same file filled by each engine with ``--workers`` workers: seconds, start-up included, and whether the
         output is the same byte for byte.

--profile also prints where the time of ``TableModel.transform`` goes. Writes results/tables_scale.json, with --name
results/tables_scale_NAME.json.
"""

import argparse
import cProfile
import hashlib
import importlib.util
import io
import pstats
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from threadpoolctl import threadpool_limits

from anyfill.tables.estimator import TableModel
from benchmarks.common import median_seconds, write_result

COLUMNS, FACTORS, SHARE = 20, 5, 0.2
# A process whose children are waited for, so that the peak it reports is of the command alone.
_PEAK = (
    "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
)


def rows_of(count: int, seed: int, columns: int = COLUMNS) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Full rows (count, columns), and the same with holes. The functions are always the same, rows follow the seed."""
    law, rng = np.random.default_rng(0), np.random.default_rng([1, seed])
    linear, bent = law.normal(size=(2, FACTORS, columns))
    factors = rng.normal(size=(count, FACTORS))
    clean = factors @ linear + np.sin(2 * factors @ bent) + (factors @ bent) ** 2 / FACTORS
    full = clean + 0.3 * rng.normal(size=clean.shape)
    return full, np.where(rng.random(full.shape) < SHARE, np.nan, full)


def speed(arguments: argparse.Namespace, model: TableModel) -> list[dict[str, float]]:
    """Rows per second of both, for each number of rows."""
    peer = IterativeImputer(max_iter=10, random_state=arguments.seed)
    full, train = rows_of(arguments.train, arguments.seed, arguments.columns)
    scale = full.std(0)
    with threadpool_limits(1):
        peer.fit(train)
        found: list[dict[str, float]] = []
        for count in arguments.rows:
            full, holed = rows_of(count, arguments.seed + 1, arguments.columns)
            gone = np.isnan(holed)
            result: dict[str, float] = {"rows": count}
            for name, fill in (("anyfill", model.transform), ("iterative", peer.transform)):
                seconds = median_seconds(lambda fill=fill, x=holed: fill(x), repeats=arguments.repeats, warm_up=0)
                error = ((fill(holed) - full) / scale)[gone]
                result[f"{name}_seconds"] = seconds
                result[f"{name}_rows_per_second"] = count / seconds
                result[f"{name}_rmse"] = float(np.sqrt((error**2).mean()))
            result["ratio"] = result["iterative_seconds"] / result["anyfill_seconds"]
            found.append(result)
            print(
                f"{count:9,} rows   anyfill {result['anyfill_rows_per_second']:10,.0f} rows/s (RMSE "
                f"{result['anyfill_rmse']:.3f})   IterativeImputer {result['iterative_rows_per_second']:10,.0f} rows/s "
                f"(RMSE {result['iterative_rmse']:.3f})   ratio {result['ratio']:.2f} x",
                flush=True,
            )
    return found


def write_csv(path: Path, count: int, seed: int, columns: int) -> None:
    """A file of rows with holes, made piece by piece; its first rows do not depend on how many follow."""
    with path.open("w") as file:
        file.write(",".join(f"x{j}" for j in range(columns)) + "\n")
        for start in range(0, count, 10_000):
            _, holed = rows_of(min(10_000, count - start), seed + 1000 + start, columns)
            lines = [",".join("" if np.isnan(cell) else f"{cell:.4f}" for cell in row) for row in holed]
            file.write("\n".join(lines) + "\n")


def filled(folder: Path, source: Path, engine: str, workers: int) -> dict[str, Any]:
    """Seconds, peak MiB and hash of one ``anyfill fill``."""
    target = folder / f"filled_{engine}.csv"
    command = [sys.executable, "-m", "anyfill", "fill", str(folder / "model"), str(source), "-o", str(target)]
    command += ["--engine", engine, "--workers", str(workers)]
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", _PEAK, *command], capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"anyfill fill with engine {engine} failed: {done.stderr.strip()[-500:]}")
    peak = int(done.stdout.strip().splitlines()[-1]) / (1024 if sys.platform != "darwin" else 1024**2)
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    target.unlink()
    return {"seconds": seconds, "peak_mib": peak, "sha256": digest}


def streaming(arguments: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Peak memory for each number of rows, without further processes."""
    found: list[dict[str, Any]] = []
    for count in arguments.stream:
        source = folder / f"rows_{count}.csv"
        write_csv(source, count, arguments.seed, arguments.columns)
        megabytes = source.stat().st_size / 2**20
        result = {"rows": count, "file_mib": megabytes, **filled(folder, source, "none", 1)}
        found.append(result)
        print(
            f"{count:9,} rows ({megabytes:6.1f} MiB of CSV)   peak memory {result['peak_mib']:7.1f} MiB   "
            f"{result['seconds']:7.1f} s",
            flush=True,
        )
    more = found[-1]["rows"] / found[0]["rows"]
    print(f"memory {found[-1]['peak_mib'] / found[0]['peak_mib']:.3f} x for {more:.1f} x the rows")
    return found


def engines(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Each engine on the smallest streamed file."""
    source = folder / f"rows_{min(arguments.stream)}.csv"
    found: dict[str, Any] = {}
    for engine in arguments.engines:
        package = {"dask": "distributed", "ray": "ray"}.get(engine)
        if package and importlib.util.find_spec(package) is None:
            found[engine] = {"left_out": f"{package} is not installed"}
            print(f"{engine:10s} left out: {package} is not installed")
            continue
        found[engine] = filled(folder, source, engine, arguments.workers)
        print(f"{engine:10s} {found[engine]['seconds']:7.1f} s   {found[engine]['sha256'][:16]}", flush=True)
    digests = {one["sha256"] for one in found.values() if "sha256" in one}
    print("the same bytes from every engine" if len(digests) == 1 else "THE ENGINES DIFFER")
    return {"each": found, "is_same": len(digests) == 1}


def profile(model: TableModel, seed: int) -> str:
    """The functions in which ``transform`` of 20 000 rows spends most."""
    _, holed = rows_of(20_000, seed + 2)
    watch = cProfile.Profile()
    with threadpool_limits(1):
        watch.runcall(model.transform, holed)
    text = io.StringIO()
    stats = pstats.Stats(watch, stream=text).strip_dirs()
    stats.sort_stats("cumulative").print_stats(45)
    stats.sort_stats("tottime").print_stats(30)
    return text.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument("--rows", type=_counts, default=[10_000, 100_000])
    parser.add_argument("--stream", type=_counts, default=[100_000, 400_000])
    parser.add_argument(
        "--engines",
        type=lambda text: [one for one in text.split(",") if one],
        default=["none", "processes", "dask", "ray"],
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--train", type=int, default=10_000, help="rows that both learn from")
    parser.add_argument("--steps", type=int, help="the most training steps; speed does not depend on it")
    parser.add_argument("--recipe", default="auto")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--name", help="of the result, beside the usual one")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    start = time.process_time()
    model = TableModel(recipe=arguments.recipe, steps=arguments.steps, random_state=arguments.seed)
    model.fit(rows_of(arguments.train, arguments.seed, arguments.columns)[1])
    fit_seconds = time.process_time() - start
    print(f"fitted {arguments.train:,} rows in {fit_seconds:.1f} CPU s, {model.n_iter_} steps", flush=True)
    payload: dict[str, Any] = {
        "arguments": vars(arguments),
        "columns": arguments.columns,
        "fit_cpu_seconds": fit_seconds,
    }
    payload["speed"] = speed(arguments, model) if arguments.rows else []
    if arguments.profile:
        print(profile(model, arguments.seed))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder / "model")
        payload["streaming"] = streaming(arguments, folder)
        payload["engines"] = engines(arguments, folder) if arguments.engines else {}
    print(f"wrote {write_result('_'.join(['tables_scale', *filter(None, [arguments.name])]), payload)}")


def _counts(text: str) -> list[int]:
    return [int(float(one)) for one in text.split(",") if one]


if __name__ == "__main__":
    main()
