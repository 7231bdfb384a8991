"""A small file that says which columns of a user's trajectories are what: JSON, or YAML.

episode: run                     # the column that tells trajectories apart (CSV, Parquet)
length: length                   # the array of their lengths (npz); without it (..., T, D) is many of T steps
observation: [x, y, angle]       # names of columns; of an npz also name, name[3], name[0:9]
action: [left, right]
goal: [room]                     # words and whole numbers are codes, others plain numbers
next: [x, y]                     # foreseen one step later; left out = everything observed
missing: true                    # an empty cell or NaN is a sensor that was not read, not a mistake
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from anyfill.checks import refuse

_LISTS = ("observation", "action", "goal", "next")
_WORDS = ("episode", "length")


@dataclass(frozen=True, slots=True)
class Groups:
    """Names of columns by what they are; see above."""

    observation: tuple[str, ...]
    action: tuple[str, ...] = ()
    goal: tuple[str, ...] = ()
    next: tuple[str, ...] | None = None
    episode: str | None = None
    length: str | None = None
    missing: bool = False


def read_groups(source: "str | Path | Mapping[str, Any] | Groups") -> Groups:
    """Groups from a file or a mapping; ValueError names what is wrong with it."""
    if isinstance(source, Groups):
        return source
    name = "groups" if isinstance(source, Mapping) else str(source)
    said = source if isinstance(source, Mapping) else _document(Path(source))
    if not isinstance(said, Mapping):
        raise refuse(name, expected="names and lists of columns", got=type(said).__name__)
    said = cast("Mapping[str, Any]", said)
    for key in said:
        if key not in (*_LISTS, *_WORDS, "missing"):
            raise refuse(name, expected=", ".join((*_LISTS, *_WORDS, "missing")), got=repr(key))
    lists = {key: _names(name, key, said[key]) for key in _LISTS if key in said}
    if not lists.get("observation"):
        raise refuse(name, expected="a list of columns as observation", got="none")
    words = {key: str(said[key]) for key in _WORDS if said.get(key) is not None}
    missing: Any = said.get("missing", False)
    if not isinstance(missing, bool):
        raise refuse(f"missing in {name}", expected="true or false", got=repr(missing))
    options: dict[str, Any] = {**lists, **words, "missing": missing}
    return Groups(**options)


def _names(name: str, key: str, value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(one, str) for one in cast("list[object]", names)):
        raise refuse(f"{key} in {name}", expected="a list of names", got=repr(value)[:60])
    return tuple(cast("list[str]", names))


def _document(path: Path) -> object:
    text = path.read_text(encoding="utf-8")
    if path.suffix.lower() not in (".yaml", ".yml"):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise refuse(f"{path}", expected="JSON (or a file called .yaml)", got=f"{error}") from None
    try:
        import yaml
    except ModuleNotFoundError:
        expected = 'PyYAML (pip install "anyfill[policy]"), or the same as JSON'
        raise refuse(f"{path}", expected=expected, got="YAML") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise refuse(f"{path}", expected="YAML", got=" ".join(str(error).split())) from None


def part_of(word: str) -> tuple[str, slice | None]:
    """The name of an array, and which of its columns: ``pos``, ``pos[3]``, ``pos[0:9]``."""
    found = re.fullmatch(r"(.+?)\[(\d+)(?::(\d+))?\]", word.strip())
    if found is None:
        return word.strip(), None
    first = int(found[2])
    return found[1], slice(first, first + 1 if found[3] is None else int(found[3]))
