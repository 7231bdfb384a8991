"""How many passes a network makes for an answer, counted in the thread that works on it.

Networks are asked in several ways (a call, a chain, cells, a cache that is opened and extended). Each call from outside
is one pass; a way that goes through another is counted once. Before each pass a job looks whether it is still wanted.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from anyfill.interface.progress import check_cancelled

if TYPE_CHECKING:
    from torch import nn

_WAYS = ("forward", "chain", "chain_at", "at", "open", "extend", "foresee", "advance", "peek")
_own = threading.local()
_counted: set[type] = set()


@contextmanager
def counting() -> Generator[Callable[[], int]]:
    """Inside, in this thread: passes are counted; what it gives says how many there were so far."""
    before = getattr(_own, "count", None)
    _own.count = 0
    try:
        yield lambda: _own.count or 0
    finally:
        _own.count = before


def count_passes(network: "nn.Module") -> None:
    """Make all networks of this kind count how often they are asked, from now on."""
    kind = type(network)
    if kind in _counted:
        return
    _counted.add(kind)
    for way in _WAYS:
        if callable(asked := getattr(kind, way, None)):
            setattr(kind, way, _counting(asked))


def _counting(way: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(way)
    def ask(*arguments: Any, **options: Any) -> Any:
        count = getattr(_own, "count", None)
        if count is None or getattr(_own, "inside", False):
            return way(*arguments, **options)
        check_cancelled()
        _own.count, _own.inside = count + 1, True
        try:
            return way(*arguments, **options)
        finally:
            _own.inside = False

    return ask
