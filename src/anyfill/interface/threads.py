"""How many threads to compute with: measured, because more is often slower.

Small tensors gain little from a second thread, and on a machine that is busy with other things they lose a lot: every
operation waits for the thread that the other things hold up.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

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
