"""How an answer came about: what was given and asked, what kind of number it is, and how to get it elsewhere."""

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from shlex import quote
from typing import Any, Literal

from pydantic import BaseModel

from anyfill.studio.passes import counting

Kind = Literal["exact", "bound", "estimate"]


class How(BaseModel):
    """How an answer came about.

    Attributes:
        given, asked: the question, in words.
        kind: what its numbers are.
        why: why they are that.
        passes: of the network.
        seconds: of work.
        python, cli: lines that give the same answer.
    """

    given: str
    asked: str
    kind: Kind
    why: str
    passes: int
    seconds: float
    python: str
    cli: str


class Spent:
    """What an answer costs, while it is made and afterwards."""

    def __init__(self, passes: Callable[[], int]) -> None:
        self._passes, self._begun = passes, time.perf_counter()

    def how(self, **about: Any) -> dict[str, Any]:
        """The account of an answer that is there now."""
        seconds = time.perf_counter() - self._begun
        return How(passes=self._passes(), seconds=round(seconds, 3), **about).model_dump()


@contextmanager
def spending() -> Generator[Spent]:
    """Inside, in this thread: passes and seconds are counted."""
    with counting() as passes:
        yield Spent(passes)


def arguments(pairs: Iterable[tuple[str, Any, Any]]) -> str:
    """ ", name=value" for each (name, value, default) that is not its default."""
    return "".join(f", {name}={value!r}" for name, value, default in pairs if value != default)


def options(pairs: Iterable[tuple[str, Any, Any]]) -> str:
    """ " --name value" for each (name, value, default) that is not its default; " --name" alone where it is True."""
    said = ((name.replace("_", "-"), value) for name, value, default in pairs if value != default)
    return "".join(f" --{name}" if value is True else f" --{name} {quote(str(value))}" for name, value in said)
