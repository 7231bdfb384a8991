"""What it runs on: which device, how many threads to compute with, and which versions.

The number of threads is measured, because more is often slower: small tensors gain little from a second thread, and on
a machine that is busy with other things they lose a lot, for every operation waits for the thread that is held up.
"""

import os
import platform
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Literal

import torch

from anyfill.checks import refuse
from anyfill.version import __version__

_WORTH = 0.7
"""More threads must cut the time to this share to be taken."""
_MAX_FREE = 4


def compute_device(device: str) -> Literal["cpu", "cuda"]:
    """Where to compute; "auto" is CUDA if it is there. ValueError if it is asked for and is not."""
    if device == "cuda" and not torch.cuda.is_available():
        raise refuse("--device", expected="cpu (torch finds no CUDA device here)", got="cuda")
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"


@contextmanager
def threads(count: int) -> Generator[None]:
    """Inside: torch computes with so many threads; afterwards as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def free_threads() -> int:
    """How many threads to compute with: as many as nobody else uses, for the load of the last minute; at most four.

    On a busy machine every operation of several threads waits for the one that is held up, and takes many times as long
    as with one; and finding out by trying would take longer than a short answer takes.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    free = round((os.cpu_count() or 1) - load)
    return max(1, min(free, torch.get_num_threads(), _MAX_FREE))


def best_threads(work: Callable[[], object], *, repeats: int = 3) -> int:
    """The number of threads, a power of two up to torch's own setting, with which ``work`` is fastest."""
    best, best_seconds = 1, _seconds(work, 1, repeats)
    count = 2
    while count <= torch.get_num_threads():
        seconds = _seconds(work, count, repeats)
        if seconds > _WORTH * best_seconds:
            break
        best, best_seconds, count = count, seconds, 2 * count
    return best


def _seconds(work: Callable[[], object], count: int, repeats: int) -> float:
    """Seconds that ``work`` takes with so many threads: the median, after one call that does not count."""
    times: list[float] = []
    with threads(count):
        work()
        for _ in range(repeats):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def device_name() -> str:
    """The device that training takes by default, in words."""
    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    return f"cpu ({torch.get_num_threads()} threads)"


def environment() -> dict[str, str | int | None]:
    """Versions and device, as results files keep them."""
    return {
        "anyfill": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": device_name(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
    }
