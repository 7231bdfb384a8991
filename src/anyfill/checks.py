"""One way to refuse bad input: a sentence that names what, where, what was expected and what came instead.

Command lines import it before they know what they will need: nothing here loads torch.
"""

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

if TYPE_CHECKING:
    from torch import Tensor


MAX_SEED = 2**32 - 1
"""Torch's generators on a CPU look at 32 bits of a seed (5 and 2^32 + 5 draw the same), scikit-learn takes no more."""


def refuse(what: str, *, expected: str, got: object) -> ValueError:
    """The error every constructor and surface raises; the caller writes ``raise refuse(...)``."""
    return ValueError(f"{what}: expected {expected}, got {got}")


def counted(number: int, what: str, several: str = "") -> str:
    """The number of things in words: "1 line", "2 lines"; ``several`` = what more of them are called."""
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def refuse_given(why: str, options: Mapping[str, object]) -> None:
    """ValueError if an option was said (is neither None nor False) that would do nothing here, which ``why`` tells."""
    for option, value in options.items():
        if value is not None and value is not False:
            raise refuse(option, expected=f"none {why}", got="it" if value is True else value)


def require_package(module: str, needed_by: str, *, extra: str) -> Any:
    """A module of an extra, imported; ValueError with what to install if it is not there."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        expected = f'{module.partition(".")[0]} to be installed (pip install "anyfill[{extra}]")'
        raise refuse(needed_by, expected=expected, got="an installation without it") from None


def require_count(name: str, value: object, *, minimum: int = 1, maximum: int | None = None) -> None:
    """Refuse anything but a whole number from ``minimum`` up (to ``maximum``)."""
    fits = isinstance(value, int) and value >= minimum and (maximum is None or value <= maximum)
    if isinstance(value, bool) or not fits:
        expected = f"a whole number from {minimum} " + ("up" if maximum is None else f"to {maximum}")
        raise refuse(name, expected=expected, got=repr(value))


def require_seed(name: str, value: object) -> int:
    """The seed; anything but a whole number (numpy's too) for which generators have draws of its own is refused."""
    whole = value
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        with suppress(TypeError):  # arrays have the method, too
            whole = value.__index__()
    require_count(name, whole, minimum=0, maximum=MAX_SEED)
    return cast(int, whole)


def require_counts(part: object, *names: str, minimum: int = 1) -> None:
    """Refuse a part unless these of its attributes are whole numbers from ``minimum`` up."""
    for name in names:
        require_count(name, getattr(part, name), minimum=minimum)


def require_positive(name: str, value: int | float) -> None:
    """Refuse a number that is not above zero (booleans and NaN are not numbers here)."""
    if isinstance(value, bool) or not value > 0:
        raise refuse(name, expected="a number above 0", got=repr(value))


def require_probability(name: str, value: float) -> None:
    """Refuse a number outside [0, 1]."""
    if isinstance(value, bool) or not 0.0 <= value <= 1.0:
        raise refuse(name, expected="a number from 0 to 1", got=repr(value))


def require_member(name: str, value: object, allowed: Collection[object]) -> None:
    """Refuse anything but one of these."""
    if value not in allowed:
        *others, last = map(repr, allowed)
        raise refuse(name, expected=f"{', '.join(others)} or {last}" if others else last, got=repr(value))


def require_shape(name: str, tensor: "Tensor", shape: Sequence[int | None]) -> None:
    """Refuse a tensor whose shape differs from ``shape``; ``None`` stands for any length."""
    fits = tensor.dim() == len(shape) and all(want is None or want == have for want, have in zip(shape, tensor.shape))
    if not fits:
        wanted = "(" + ", ".join("any" if want is None else str(want) for want in shape) + ")"
        raise refuse(f"shape of {name}", expected=wanted, got=tuple(tensor.shape))


def refuse_cells(bad: "Tensor", x: "Tensor", expected: str | Callable[[int], str], *, what: str = "value") -> None:
    """Refuse rows x (B, N) with a bad cell (bool (B, N)), naming the first; ``expected`` may depend on its variable."""
    if bool(bad.any()):
        row, variable = (int(i) for i in bad.nonzero()[0])
        wanted = expected if isinstance(expected, str) else expected(variable)
        raise refuse(f"{what} at row {row}, variable {variable}", expected=wanted, got=x[row, variable].item())


def require_bool(name: str, tensor: "Tensor") -> None:
    """Refuse a tensor that is not boolean: a 0/1 mask of unknown polarity is how mistakes begin."""
    if str(tensor.dtype) != "torch.bool":
        raise refuse(f"dtype of {name}", expected="torch.bool (True = known)", got=tensor.dtype)


def require_keywords(options: Mapping[str, object], kind: type) -> None:
    """TypeError, as Python's own, if ``**options`` has a name that a TypedDict has not, or lacks one it needs.

    A type checker says so before; at run time a misspelt option would be passed over in silence.
    """
    names = kind.__annotations__  # of a TypedDict: those of its bases, too
    for name in sorted(options.keys() - names.keys()):
        raise TypeError(f"got an unexpected keyword argument {name!r}; expected {', '.join(names)}")
    for name in sorted(getattr(kind, "__required_keys__", frozenset[str]()) - options.keys()):
        raise TypeError(f"missing a required keyword argument: {name!r}")
