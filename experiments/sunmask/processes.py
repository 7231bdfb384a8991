"""Processes of a sitting: workers at the other end of two pipes, and those that only fill the compiler's caches."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from experiments.sunmask.plans import GROUPS
from experiments.sunmask.worker import ANSWER

GONE = ("no answer in time", "the process has ended")
"""What is said of a process that says nothing more."""


class Process:
    """A worker at the other end of two pipes."""

    def __init__(self, group: str, arguments: list[str], log: Path, threads: int) -> None:
        command = [sys.executable, "-m", "experiments.sunmask.worker", *arguments, "--warm", GROUPS[group]]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(threads))
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log.open("w"), text=True
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            if line.startswith(ANSWER):  # whatever else a library prints is not for us
                self._lines.put(line.removeprefix(ANSWER))
        self._lines.put("")

    def ask(self, task: dict[str, Any]) -> None:
        """Hand over a task."""
        if self._process.stdin is not None:
            with suppress(OSError):  # it has ended: ``answer`` will say so
                self._process.stdin.write(json.dumps(task) + "\n")
                self._process.stdin.flush()

    @property
    def has_answered(self) -> bool:
        """True if ``answer`` need not wait."""
        return not self._lines.empty()

    def answer(self, seconds: float) -> dict[str, Any]:
        """What it says, or an error when it has ended or the seconds are over."""
        try:
            line = self._lines.get(timeout=min(max(0.1, seconds), 1e6))
        except queue.Empty:
            return {"error": GONE[0]}
        return json.loads(line) if line else {"error": GONE[1]}

    @property
    def is_alive(self) -> bool:
        """False once it has ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


Lane = list[tuple[str, str]]
"""Processes and kinds of calls, compiled one after another."""


def compiled(
    lanes: Sequence[Lane], options: list[str], out: Path, threads: int, until: float, told: Callable[..., None]
) -> list[threading.Thread]:
    """Fill the caches, all lanes side by side; a thread for each."""

    def work(parts: Lane) -> None:
        for group, kind in parts:
            process = Process(group, [*options, "--kind", kind], out / f"compile_{group}_{kind}.log", threads)
            told(compiled=group, kind=kind, **process.answer(until - time.time()))
            process.end()

    lines = [threading.Thread(target=work, args=(parts,), daemon=True) for parts in lanes]
    for one in lines:
        one.start()
    return lines
