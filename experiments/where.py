"""What every experiment needs and no application: where data lie, options as JSON takes them, and turns to train."""

import fcntl
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def data_folder() -> Path:
    """ANYFILL_DATA, or the folder beside the repository."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("ANYFILL_DATA", default))


def shown(arguments: Mapping[str, object]) -> dict[str, Any]:
    """Arguments as JSON takes them; of a path from the root only its name."""

    def plain(value: object) -> str:
        return value.name if isinstance(value, Path) and value.is_absolute() else str(value)

    return json.loads(json.dumps(dict(arguments), default=plain))


@contextmanager
def turn() -> Generator[None]:
    """Alone among all who have ANYFILL_TURN, the name of a file; without it at once.

    Seconds of training are to be compared, so nobody else may train meanwhile.
    """
    name = os.environ.get("ANYFILL_TURN")
    if name is None:
        yield
        return
    with open(name, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
