"""Files and folders that appear as a whole: written under another name beside their place, then renamed into it."""

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
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
def naming_if_full(place: Path) -> Generator[None]:
    """An error of a full disk says which one it is: that of ``place``, which was written to."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) and error.filename is None:
            error.filename = str(place)
        raise


def resolved(path: str | Path) -> Path:
    """The place that a path leads to, through links; ValueError if these lead in a circle."""
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise refuse(f"{path}", expected="a file or a folder", got="links that lead in a circle") from None
    return Path(path).resolve()


def require_writable(folder: str | Path) -> None:
    """ValueError if no file can be made in a folder, which may still have to be made itself.

    It is tried: permissions say nothing of places such as /proc, and all is permitted to who administers a system.
    """
    target = resolved(folder)
    try:
        tempfile.TemporaryFile(dir=next(place for place in (target, *target.parents) if place.exists())).close()
    except OSError as error:
        got = f"one that cannot ({error.strerror or error})"
        raise refuse(f"{folder}", expected="a folder that can be written to", got=got) from None


@contextmanager
def _as_called(path: str | Path, target: Path) -> Generator[None]:
    """Errors of the system that come of writing name the path as the user called it, not what is made on the way."""
    try:
        yield
    except OSError as error:
        about, hidden = error.filename, str(target.with_name(f".{target.name}."))
        ours = about is None or str(about).startswith(hidden) or Path(str(about)) in target.parents
        if error.errno is None or not ours:
            raise
        raise OSError(error.errno, error.strerror, f"{path}") from error


@contextmanager
def whole_file(path: str | Path, *, sole_writer: bool = False) -> Generator[BinaryIO]:
    """A file to write into, which takes its name at the end, as a whole or not at all; folders on the way are made.

    With ``sole_writer`` (nobody else writes this file) what a killed process left half written is written over.
    """
    target = resolved(path)
    if target.is_dir():
        raise refuse(f"{path}", expected="the name of a file", got="a folder")
    partial = target.with_name(f".{target.name}{'' if sole_writer else '.' + secrets.token_hex(4)}.part")
    with _as_called(path, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, partial)
            os.replace(partial, target)
        except BaseException:
            with suppress(OSError):  # where it could not be made, it cannot be looked up either
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
    target = resolved(path)
    with _as_called(path, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        fresh, old = work / "new", work / "old"
        try:
            fresh.mkdir()
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
