"""Things that visitors have open, by keys that nobody can guess; those that were longest not looked at are closed."""

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fastapi import HTTPException

MAX_OPEN = 24
"""Things that are kept open."""


class Kept(Protocol):
    """What is kept: its key, when it was last looked at, and its files."""

    key: str
    seen: float

    def paths(self) -> Iterable[Path]:
        """Files that go with it."""
        ...


Thing = TypeVar("Thing", bound=Kept)


class Store:
    """Open things of one kind."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._open: dict[str, Any] = {}
        self._lock = threading.Lock()

    def add(self, thing: Thing) -> Thing:
        """Keep a thing; the one that was longest not looked at goes if there are too many."""
        with self._lock:
            self._open[thing.key] = thing
            while len(self._open) > MAX_OPEN:
                oldest = min(self._open.values(), key=lambda one: one.seen)
                del self._open[oldest.key]
                for path in oldest.paths():
                    path.unlink(missing_ok=True)
        return thing

    def get(self, key: str) -> Any:
        """The thing of this key; 404 if there is none."""
        found = self._open.get(key)
        if found is None:
            raise HTTPException(404, f"this {self.what} is not open any more: open it again")
        found.seen = time.monotonic()
        return found
