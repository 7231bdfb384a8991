"""What every benchmark and experiment writes: one JSON with the numbers and everything needed to run them again.

``environment()`` says where a number came from; ``write_result(name, payload)`` adds it and writes results/NAME.json
under a temporary name first, so that a run that is cut short never leaves half a file.
"""

import json
import math
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
A = TypeVar("A")
B = TypeVar("B")


def commit() -> str:
    """The commit of the working tree, with ``-dirty`` if files differ from it.

    Outside a repository (a copy of the tree on another machine) it is what ANYFILL_COMMIT says, or ``unknown``.
    """
    if named := os.environ.get("ANYFILL_COMMIT"):
        return named
    try:
        head = _git("rev-parse", "--verify", "--quiet", "HEAD")
        return head + ("-dirty" if _git("status", "--porcelain", "--", "src", "benchmarks", "experiments") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


_work: list[Callable[[Any], Any]] = []
"""What the processes of ``spread`` do: they are forks, and find it here."""


def _timed(item: Any) -> tuple[Any, float]:
    started = time.process_time()
    return _work[-1](item), time.process_time() - started


def spread(work: Callable[[A], B], items: Sequence[A], processes: int = 1) -> tuple[list[B], float]:
    """What the work makes of each item, in their order, and the CPU seconds of one on average.

    With several processes (forks, each of one thread) items are handed out one by one.
    """
    _work.append(work)
    try:
        if processes == 1:
            found = [_timed(one) for one in items]
        else:
            torch.set_num_threads(1)
            with multiprocessing.get_context("fork").Pool(processes) as pool:
                found = list(pool.imap(_timed, items))
    finally:
        _work.pop()
    return [one for one, _ in found], sum(seconds for _, seconds in found) / max(len(found), 1)


def appended(
    work: Callable[[A], Mapping[str, object]],
    items: Sequence[A],
    path: Path,
    *,
    processes: int = 1,
    seconds: float = math.inf,
) -> None:
    """Append what the work makes of each item to a file of lines, with the CPU seconds it took, as soon as it is there.

    So many processes work side by side; this one writes. No more is waited for once ``seconds`` have passed.
    """
    stop = time.monotonic() + seconds
    _work.append(work)
    try:
        with path.open("a") as file, multiprocessing.get_context("fork").Pool(processes) as pool:
            for row, spent in pool.imap_unordered(_timed, items):
                file.write(json.dumps({**row, "cpu_seconds": round(spent, 4)}) + "\n")
                file.flush()
                if time.monotonic() > stop:
                    break
    finally:
        _work.pop()


def rows_in(path: Path) -> list[dict[str, Any]]:
    """The lines of such a file; none if it is not there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def machine() -> dict[str, object]:
    """The processor, its cores, and the versions of what computes: of lines that are made elsewhere."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.is_file() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    names = ("numpy", "sklearn", "lightgbm")
    packages = {name: getattr(sys.modules.get(name), "__version__", "none") for name in names}
    cores = os.cpu_count()
    return {"cpu": models[0] if models else platform.machine(), "cores": cores, **packages, "torch": torch.__version__}


def environment(device: str | torch.device = "cpu") -> dict[str, object]:
    """Commit, device, versions and cores of this run."""
    device = torch.device(device)
    is_cuda = device.type == "cuda"
    return {
        "commit": commit(),
        "device": torch.cuda.get_device_name(device) if is_cuda else (platform.processor() or platform.machine()),
        "device_type": device.type,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def write_result(name: str, payload: Mapping[str, object], *, device: str | torch.device = "cpu") -> Path:
    """Write results/NAME.json or results/PAPER/NAME.json: the payload beside the environment, at once."""
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    document = {"name": name, "environment": environment(device), **payload}
    temporary.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")
    temporary.replace(path)
    return path


def median_seconds(
    run: Callable[[], object], *, repeats: int, warm_up: int = 1, device: str | torch.device = "cpu"
) -> float:
    """Median wall-clock seconds of one call, after ``warm_up`` calls that do not count."""
    for _ in range(warm_up):
        run()
    times: list[float] = []
    for _ in range(repeats):
        _wait(device)
        start = time.perf_counter()
        run()
        _wait(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _wait(device: str | torch.device) -> None:
    """Wait for the device: on a GPU a call returns before its work is done."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def _git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()
