"""What it runs on: how many threads to compute with, and which versions and device.

The number of threads is measured, because more is often slower: small tensors gain little from a second thread, and on
a machine that is busy with other things they lose a lot, for every operation waits for the thread that is held up.
"""

import os
import platform
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

import torch

_WORTH = 0.7
"""More threads must cut the time to this share to be taken."""


@contextmanager
def threads(count: int) -> Generator[None]:
    """Inside: torch computes with so many threads; afterwards as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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


def anyfill_version() -> str:
    """The installed version, or "unknown" in a checkout that was never installed."""
    try:
        return version("anyfill")
    except PackageNotFoundError:
        return "unknown"


def device_name() -> str:
    """The device that training takes by default, in words."""
    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    return f"cpu ({torch.get_num_threads()} threads)"


def environment() -> dict[str, str | int | None]:
    """Versions and device, as results files keep them."""
    return {
        "anyfill": anyfill_version(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": device_name(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
    }
