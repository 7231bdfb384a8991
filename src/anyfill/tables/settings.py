"""What the settings of a ``TableModel`` may be, and what they come to: a seed, a device."""

from numbers import Integral
from typing import Any

import torch
from sklearn.utils import check_random_state

from anyfill.checks import refuse, require_count
from anyfill.tables.calibrated import FEWEST
from anyfill.tables.recipes import NAMES

CHOICES = {
    "recipe": NAMES,
    "statistic": ("mean", "median", "mode"),
    "unknown": ("error", "missing"),
    "device": ("cpu", "cuda", "auto"),
}


def require_settings(settings: dict[str, Any]) -> None:
    """ValueError unless all that is chosen can be had."""
    for name, allowed in CHOICES.items():
        if settings[name] not in allowed:
            raise refuse(name, expected=f"one of {', '.join(allowed)}", got=repr(settings[name]))
    if settings["steps"] is not None:
        require_count("steps", settings["steps"])
    require_count("reference_rows", settings["reference_rows"], minimum=0)


def require_enough_reference(rows: int) -> None:
    """ValueError if a model that is to be fitted would keep rows, but too few to be of use."""
    if 0 < rows < FEWEST:
        raise refuse("reference_rows", expected=f"0, or at least {FEWEST}: fewer rows calibrate nothing", got=rows)


def require_level(level: float) -> None:
    """ValueError unless this is a level of intervals."""
    if isinstance(level, bool) or not 0.0 < level < 1.0:
        raise refuse("level", expected="a number between 0 and 1", got=repr(level))


def seed_of(seed: int | None, random_state: Any) -> int:
    """The seed itself, or one from what scikit-learn calls a random state."""
    if seed is None:
        return int(check_random_state(random_state).randint(2**31 - 1))
    if isinstance(seed, bool) or not isinstance(seed, Integral):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("seed", expected="a whole number", got=repr(seed))
    return int(seed)


def device_of(name: str) -> torch.device:
    """Where a model goes."""
    return torch.device("cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu")
