"""The guard of everything a command writes: what stands at a place is never lost by accident.

A folder of results appears as a whole: it is made beside its place under another name, then renamed into it. Whatever
goes wrong on the way, what stood there before still stands there. A folder is only ever replaced if every single thing
in it came from an earlier run of the same command, a file only by ``--force``.
"""

import json
import math
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import typer

from anyfill.checks import refuse
from anyfill.disk import require_writable, resolved, whole_folder

RESULTS = "results.json"
READING = "reading.json"
"""How the files of a table model are to be read, in its folder."""


@contextmanager
def replacing(folder: Path, made_by: str) -> Generator[Path]:
    """Give an empty folder to write in; on leaving without an exception it becomes ``folder``.

    Args:
        folder: where the results shall be; new, empty, or from an earlier run of the same command.
        made_by: what ``write_results`` notes, by which an earlier run is recognised.
    """
    target = resolved(folder)
    _refuse_place(target, folder, made_by)
    with whole_folder(target) as fresh:
        yield fresh
        _refuse_place(target, folder, made_by)  # somebody may have put something there in the meantime


def write_results(folder: Path, made_by: str, results: Mapping[str, Any]) -> None:
    """Write ``results.json``: the results, which command made them, and the names of all files beside it."""
    files = sorted([path.name for path in folder.iterdir()] + [RESULTS])
    document = {"made_by": made_by, "files": files, **results}
    (folder / RESULTS).write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _refuse_place(target: Path, said: Path, made_by: str) -> None:
    """ValueError unless ``target`` may be made or replaced."""
    if target.exists() and not target.is_dir():
        raise ValueError(f"{said} is a file, but the output is a folder: choose another name")
    here = Path.cwd()
    if target == here or target in here.parents or os.path.ismount(target):
        raise ValueError(f"{said} is a folder in use and cannot be replaced: choose a new folder inside it")
    if target.is_dir() and not _replaceable(target, made_by):
        raise ValueError(f"{said} holds other things than an earlier {made_by}: choose a new or empty folder")


def _replaceable(folder: Path, made_by: str) -> bool:
    """True if the folder is empty, or everything in it was written by an earlier run."""
    there = {path.name for path in folder.iterdir()}
    if not there:
        return True
    try:
        document = json.loads((folder / RESULTS).read_bytes())
    except (OSError, ValueError):
        return False
    if not isinstance(document, dict):
        return False
    known = cast("dict[str, Any]", document)
    files: object = known.get("files")
    return known.get("made_by") == made_by and isinstance(files, list) and all(name in files for name in there)


def jsonable(value: Any) -> Any:
    """The same with None for every number that JSON cannot write."""
    if isinstance(value, dict):
        return {name: jsonable(one) for name, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [jsonable(one) for one in cast("list[Any]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(value: Any, *, ascii: bool = True) -> str:
    """The value as a JSON document, null for every number that JSON cannot write."""
    return json.dumps(jsonable(value), indent=2, allow_nan=False, ensure_ascii=ascii)


def say_remarks(remarks: Iterable[str]) -> None:
    """Say on stderr what a reader should know, line by line."""
    for remark in remarks:
        typer.echo(f"note: {remark}", err=True)


def require_new(path: Path, *, force: bool, way: str = "another name leaves it alone") -> None:
    """ValueError if something is in the way of a new file; folders on the way to it may still have to be made."""
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        shown = next((folder for folder in path.parents if folder.exists()), above)
        raise refuse(f"{path}", expected="a name in a folder", got=f"one in the file {shown}")
    if not os.access(above, os.W_OK):
        raise refuse(f"{path}", expected="a folder that can be written to", got=f"{above}, which cannot")
    if path.is_dir():
        raise refuse(f"{path}", expected="the name of a file", got="a folder")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already: --force replaces it, {way}")


def unwritable(path: Path, error: OSError) -> ValueError:
    """What to raise where a file cannot be written."""
    return refuse(f"{path}", expected="a file that can be written", got=error.strerror or str(error))


def require_place(folder: Path) -> None:
    """ValueError unless a model can and may be saved here: in nothing, an empty folder, or a model of ours."""
    if folder.exists() and not folder.is_dir():
        raise refuse(f"{folder}", expected="a folder for the model", got="a file")
    if folder.is_dir() and any(folder.iterdir()) and not _is_model(folder):
        raise refuse(f"{folder}", expected="a new or empty folder, or one with a model", got="one with other things")
    here, target = Path.cwd(), resolved(folder)
    if target == here or target in here.parents:
        raise refuse(f"{folder}", expected="a folder of its own for the model", got="a folder in use")
    require_writable(folder)


def _is_model(folder: Path) -> bool:
    """True if everything in a folder was written with a model."""
    from anyfill.training.checkpoint import is_model  # imported when a model is to be saved: --help waits for no torch

    extra = {path.name for path in folder.iterdir()} - {"config.json", READING}
    return is_model(folder) and all(name.endswith((".safetensors", ".part")) for name in extra)
