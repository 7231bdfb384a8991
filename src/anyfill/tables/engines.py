"""Who fills parts of a table: this process, further processes, Dask or Ray; all give the same results in order.

A pure function is called on parts of a table. At most two parts for each worker are under way, so memory
does not grow with the number of parts, and results come in the order of the parts. Every worker computes with one
thread: sums then have one order, and the same bits, everywhere.

    none        here, one part after the other
    processes   fresh Python processes on this machine; with a single part, here
    dask        a local cluster of processes, or the one at an address (extra ``dask``)
    ray         local worker processes, or the cluster at an address (extra ``ray``)
"""

import itertools
import logging
import multiprocessing
import os
import signal
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, get_args

import torch

from anyfill.checks import refuse, require_count, require_package
from anyfill.interface.threads import threads
from anyfill.tables.files import Part

Engine = Literal["processes", "dask", "ray", "none"]
Call = Callable[[Any, int], Any]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def require_engine(engine: str, address: str | None = None, workers: int | None = None) -> None:
    """ValueError unless this engine can be used; says what to install."""
    if engine not in get_args(Engine):
        raise refuse("engine", expected=f"one of {', '.join(get_args(Engine))}", got=repr(engine))
    if address is not None and engine not in ("dask", "ray"):
        raise refuse("address", expected="the engine dask or ray", got=f"the engine {engine}")
    if workers is not None and engine == "none":
        raise refuse("workers", expected="none with the engine none: parts are filled here, one by one", got=workers)
    if engine in ("dask", "ray"):
        require_package("distributed" if engine == "dask" else "ray", f"engine {engine}", extra=engine)


def in_order(
    engine: Engine,
    call: Call,
    parts: Iterable[Part],
    *,
    workers: int | None = None,
    address: str | None = None,
    sent: Callable[[], AbstractContextManager[Call]] | None = None,
) -> Generator[tuple[Any, float]]:
    """``call(part.frame, part.start)`` for each part in order, with its share.

    Args:
        engine: who calls.
        call: depends on nothing but its arguments.
        parts: read as they are needed.
        workers: how many parts at a time; by default one for each core.
        address: of a running Dask scheduler or Ray cluster, instead of a local one.
        sent: what other processes call, for as long as they work, instead of ``call``; must be picklable, as ``call``
            if there is none. Not asked for where all is done here.
    """
    require_engine(engine, address, workers)
    workers = cores() if workers is None else workers
    require_count("workers", workers)
    rest = iter(parts)
    first = list(itertools.islice(rest, 2))
    work = itertools.chain(first, rest)
    if engine == "none" or (engine == "processes" and len(first) < 2):
        with threads(1):
            for part in work:
                yield call(part.frame, part.start), part.share
        return
    pool = {"processes": _processes, "dask": _dask, "ray": _ray}[engine]
    with nullcontext(call) if sent is None else sent() as remote, pool(workers, address) as (submit, collect):
        yield from _bounded(remote, work, submit, collect, 2 * workers)


def alone(call: Call, frame: Any, start: int) -> Any:
    """What a worker does."""
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    return call(frame, start)


def _bounded(
    call: Call, parts: Iterator[Part], submit: Callable[..., Any], collect: Callable[[Any], Any], ahead: int
) -> Generator[tuple[Any, float]]:
    """Results in order, never more than ``ahead`` parts under way."""
    waiting: deque[tuple[Any, float]] = deque()
    for part in parts:
        waiting.append((submit(alone, call, part.frame, part.start), part.share))
        if len(waiting) >= ahead:
            result, share = waiting.popleft()
            yield collect(result), share
    for result, share in waiting:
        yield collect(result), share


Pool = Generator[tuple[Callable[..., Any], Callable[[Any], Any]]]


@contextmanager
def _processes(workers: int, _address: str | None) -> Pool:
    # Fresh processes: a fork of one that has used torch's threads hangs.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))

    def submit(*arguments: Any) -> Any:
        with _interrupts_held():  # processes begin here, and inherit that Ctrl-C is for the parent alone
            return pool.submit(*arguments)

    try:
        yield submit, lambda future: future.result()
    except BrokenProcessPool:
        raise _died("process") from None
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held() -> Generator[None]:
    """Inside: Ctrl-C waits, and processes that are begun never see it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _dask(workers: int, address: str | None) -> Pool:
    distributed = require_package("distributed", "engine dask", extra="dask")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*(Sending large graph|Port .* is already in use)")
        local = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        try:
            client = distributed.Client(address) if address else distributed.Client(**local, silence_logs=logging.ERROR)
        except (OSError, ValueError) as error:
            raise refuse("Dask scheduler", expected=f"one at {address}", got=" ".join(str(error).split())) from None
        with client:
            try:
                yield lambda *arguments: client.submit(*arguments, pure=False), lambda future: future.result()
            except distributed.KilledWorker:
                raise _died("Dask worker") from None


@contextmanager
def _ray(workers: int, address: str | None) -> Pool:
    ray = require_package("ray", "engine ray", extra="ray")
    begun = not ray.is_initialized()
    if begun:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        local: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False}
        try:
            ray.init(**({"address": address} if address else local), **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise refuse("Ray cluster", expected=f"one at {address}", got=" ".join(str(error).split())) from None
    task = ray.remote(num_cpus=1, max_retries=1)(alone)

    def submit(_function: Any, *arguments: Any) -> Any:
        return task.remote(*arguments)

    try:
        yield submit, ray.get
    except ray.exceptions.RayTaskError as error:
        raise (error.cause if isinstance(error.cause, ValueError) else error) from None
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
        raise _died("Ray worker") from None
    finally:
        if begun:
            ray.shutdown()


def _died(who: str) -> ValueError:
    return ValueError(f"a {who} died, most likely for want of memory: use fewer --workers or a smaller --chunk")
