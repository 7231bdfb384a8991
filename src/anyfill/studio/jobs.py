"""Long work: one pool of threads, fair between tabs, watched while it goes on, cancelled at any step.

A job is a function that is run in a thread of the pool. What it does reports its progress as on the command line
(``anyfill.interface.progress``): at every step of a sampling loop or of training the job is told how far it is, and
there it looks whether it has been cancelled; so it does at each pass of a network and in the inner loops of work
without steps (``check_cancelled``). What it finds on its way it sends out with ``Job.send``.

Everything that happens is an event with a number, kept with the job: a page that is reloaded reads them again from the
first one on, and misses nothing. One that is reloaded before it was answered cannot know whether its job was begun: it
has chosen the key itself and asks again with it, and work is begun once for each key (``Pool.submit``). A job that
nobody watches for ``GRACE`` seconds is cancelled: its tab was closed.

Tabs take turns: of the tabs with work waiting, that whose turn was longest ago is next. ``QUEUE`` jobs may wait; then
there is no room (HTTP 429), and the page comes again. Short questions (``Pool.ask``) have a thread of their own,
so that they never wait for long work.
"""

import asyncio
import logging
import os
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from anyfill.interface.progress import reported_to

Answer = TypeVar("Answer")
State = Literal["waiting", "running", "done", "failed", "cancelled"]
QUEUE = 8
"""Jobs that may wait, and short questions likewise."""
GRACE = 12.0
"""Seconds that a job goes on with nobody watching."""
EXPIRE = 900.0
"""Seconds that the result of a job is kept."""
TELL_EVERY = 0.1
"""Seconds between two events that only say how far it is."""
_log = logging.getLogger(__name__)


class CancelledError(Exception):
    """Ends the work of a job that is not wanted any more."""


class NoRoomError(Exception):
    """As many jobs are waiting as may wait."""


@dataclass(eq=False, slots=True)
class Job:
    """A piece of work and everything that has happened with it.

    Attributes:
        work: what is done; its result is JSON.
        key: by which it is asked for; nobody can guess it.
        state: how it stands.
        events: (name, data) in order; the last one is "done", "failed" or "cancelled".
        watchers: how many listen.
        touched: when somebody last listened or asked (``time.monotonic``).
    """

    work: "Callable[[Job], dict[str, Any]]"
    key: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    state: State = "waiting"
    events: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    watchers: int = 0
    touched: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _bells: "set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]" = field(
        default_factory=set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]
    )
    _told: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen any more."""
        return self.state in ("done", "failed", "cancelled")

    def send(self, event: str, data: Any) -> None:
        """Tell everybody who listens, unless the job is over; raises ``CancelledError`` where it is cancelled."""
        with self._lock:
            if self.state == "cancelled":
                raise CancelledError
            if self.is_over:
                return
            self.events.append((event, data))
        self._ring()

    def tell(self, what: str, share: float, words: str) -> None:
        """How far it is: for ``reported_to``. Looks for cancel each time, and tells people now and then."""
        self.check()
        now = time.monotonic()
        if now - self._told >= TELL_EVERY or share >= 1:
            self._told = now
            self.send("progress", {"what": what, "share": round(share, 4), "words": words})

    def check(self) -> None:
        """``CancelledError`` if it is cancelled: for work between two steps."""
        if self.state == "cancelled":
            raise CancelledError

    def finish(self, state: State, data: Any = None) -> None:
        """Come to an end; the first end is the one that counts."""
        with self._lock:
            if self.is_over:
                return
            self.state = state
            self.events.append((state, data))
        self._ring()

    def cancel(self) -> None:
        """Nobody wants it any more: that is said at once; the work ends at its next step."""
        self.finish("cancelled", {})

    def result(self) -> Any:
        """What came of it; None as long as nothing did."""
        return self.events[-1][1] if self.state == "done" else None

    async def next_event(self, seen: int, timeout: float) -> bool:
        """Wait until there are more than ``seen`` events; False if that takes too long."""
        bell = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            if len(self.events) > seen:
                return True
            self._bells.add(bell)
        try:
            await asyncio.wait_for(bell[1].wait(), timeout)
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._bells.discard(bell)
        return True

    def _ring(self) -> None:
        with self._lock:
            bells = list(self._bells)
        for loop, bell in bells:
            with suppress(RuntimeError):  # a loop that has ended meanwhile
                loop.call_soon_threadsafe(bell.set)


class Line:
    """Work that waits, by tab; the tab whose turn was longest ago is next."""

    def __init__(self, room: int = QUEUE) -> None:
        self.room = room
        self._tabs: OrderedDict[str, deque[Any]] = OrderedDict()
        self._change = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        return sum(map(len, self._tabs.values()))

    def put(self, tab: str, item: Any, *, idle: int = 0) -> None:
        """Take a place; ``NoRoomError`` if there is none, where ``idle`` more could begin at once."""
        with self._change:
            if len(self) >= self.room + idle:
                raise NoRoomError
            self._tabs.setdefault(tab, deque()).append(item)
            self._change.notify()

    def take(self) -> Any:
        """The next one, when there is one; None when the line is closed."""
        with self._change:
            while not self._tabs and not self._closed:
                self._change.wait()
            if self._closed:
                return None
            tab, items = next(iter(self._tabs.items()))
            item = items.popleft()
            del self._tabs[tab]
            if items:
                self._tabs[tab] = items  # at the end: its turn was just now
            return item

    def close(self) -> None:
        """Nothing more is done."""
        with self._change:
            self._closed = True
            self._change.notify_all()


class Pool:
    """The threads that work, and the jobs that are known."""

    def __init__(self, workers: int | None = None) -> None:
        self.jobs: dict[str, Job] = {}
        self._long, self._short = Line(), Line(4 * QUEUE)
        self._busy, self._lock = 0, threading.Lock()
        self.workers = max(2, min(4, os.cpu_count() or 1)) if workers is None else workers
        for number in range(self.workers):
            threading.Thread(target=self._work, daemon=True, name=f"studio-job-{number}").start()
        threading.Thread(target=self._answer, daemon=True, name="studio-short").start()

    def submit(self, tab: str, work: Callable[[Job], dict[str, Any]], *, key: str | None = None) -> Job:
        """A new job, or that of this key where it was begun before; ``NoRoomError`` if too many are waiting."""
        job = Job(work) if key is None else Job(work, key)
        with self._lock:
            if (known := self.jobs.get(job.key)) is not None:
                known.touched = time.monotonic()
                return known
            self._long.put(tab, job, idle=self.workers - self._busy)
            self.jobs[job.key] = job
        return job

    async def ask(self, tab: str, question: Callable[[], Answer]) -> Answer:
        """The answer to a short question."""
        future: Future[Answer] = Future()
        self._short.put(tab, (question, future))
        return await asyncio.wrap_future(future)

    @property
    def is_idle(self) -> bool:
        """Whether no job runs, nor waits."""
        return not self._busy and not len(self._long)

    def sweep(self) -> None:
        """Cancel jobs that nobody watches, forget results that nobody fetched; to be called now and then."""
        now = time.monotonic()
        for job in list(self.jobs.values()):
            idle = now - job.touched
            if job.watchers == 0 and idle > GRACE:
                job.cancel()
            if job.is_over and job.watchers == 0 and idle > EXPIRE:
                self.jobs.pop(job.key, None)

    def close(self) -> None:
        """End: what runs is cancelled, what waits is not begun."""
        for job in list(self.jobs.values()):
            job.cancel()
        self._long.close()
        self._short.close()

    def _work(self) -> None:
        _one_thread()
        while (job := self._long.take()) is not None:
            with self._lock:
                self._busy += 1
            try:
                _run(job)
            finally:
                with self._lock:
                    self._busy -= 1

    def _answer(self) -> None:
        _one_thread()
        while (one := self._short.take()) is not None:
            question, future = one
            if not future.set_running_or_notify_cancel():
                continue  # whoever asked has gone
            try:
                with reported_to(_ignore):
                    future.set_result(question())
            except BaseException as error:
                future.set_exception(error)


def _ignore(what: str, share: float, words: str) -> None:
    """Of short questions nobody is told how far they are."""


def _one_thread() -> None:
    """Compute with one thread for each job: then answers are those of the command line, and jobs share the cores."""
    import torch  # here, in a thread of the pool: pages are served meanwhile

    torch.set_num_threads(1)


def _run(job: Job) -> None:
    """Do the work of a job, whatever becomes of it."""
    with job._lock:  # pyright: ignore[reportPrivateUsage]
        if job.is_over:
            return
        job.state = "running"
    try:
        with reported_to(job.tell, check=job.check):
            job.finish("done", job.work(job))
    except CancelledError:
        job.cancel()
    except (ValueError, OSError) as error:
        job.finish("failed", {"detail": " ".join(str(error).split())})
    except MemoryError:
        job.finish("failed", {"detail": "not enough memory for this"})
    except Exception as error:
        _log.exception("a job failed")
        job.finish("failed", {"detail": f"a mistake in anyfill, {type(error).__name__}: {error}"})
