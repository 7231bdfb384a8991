"""Files and folders that appear as a whole: written under another name beside their place, then renamed into it."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from anyfill.checks import refuse


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` survive a power cut, where the system has a way to."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def whole_file(path: str | Path, *, sole_writer: bool = False) -> Generator[BinaryIO]:
    """A file to write into, which takes its name at the end, as a whole or not at all; folders on the way are made.

    With ``sole_writer`` (nobody else writes this file) what a killed process left half written is written over.
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise refuse(f"{path}", expected="the name of a file", got="a folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}{'' if sole_writer else '.' + secrets.token_hex(4)}.part")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def write_bytes(data: bytes, path: str | Path, *, sole_writer: bool = False) -> None:
    """Make a file of these bytes, see ``whole_file``."""
    with whole_file(path, sole_writer=sole_writer) as file:
        file.write(data)


@contextmanager
def whole_folder(path: str | Path) -> Generator[Path]:
    """An empty folder to write into, which takes its name at the end, instead of what had it, whole or not at all."""
    target = Path(path).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    fresh, old = work / "new", work / "old"
    fresh.mkdir()
    try:
        yield fresh
        if target.exists():
            os.replace(target, old)
        try:
            os.replace(fresh, target)
        except BaseException:
            if old.exists():
                os.replace(old, target)
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
