"""The folder of a session: all that a studio writes is written in it, and it goes when the studio goes.

A studio that is killed cannot remove its folder; the next one does. Whose studio still lives is told by a lock on a
file in the folder (``flock``): the system lets go of it when its process ends, however it ends. A number of a process
would not do, as numbers are given again. A folder without its lock is let be while it is younger than ``YOUNG``: it is
just being made. So is what belongs to somebody else, what is a link, and everything where there are no such locks.
"""

import os
import secrets
import shutil
import stat
import tempfile
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PREFIX = "anyfill-studio-"
LOCK = "lock"
TRIES = 20
"""How often a folder is removed in which something is being written meanwhile."""
YOUNG = 60.0
"""Seconds in which a folder may still be without its lock."""


class Session:
    """A folder of one's own.

    Attributes:
        folder: where it is.
    """

    def __init__(self) -> None:
        sweep(Path(tempfile.gettempdir()))
        while True:
            self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            try:
                self._held = _locked(self.folder / LOCK, os.O_CREAT)
                self.folder.lstat()
                break
            except (BlockingIOError, FileNotFoundError):
                continue  # somebody swept it away before it had its lock

    def new_file(self, suffix: str) -> Path:
        """The name of a file that is not there yet; nobody else has a say in it."""
        return self.folder / f"{secrets.token_hex(8)}{suffix}"

    def close(self) -> None:
        """Remove it with all that is in it, though work may still write there; a second time does nothing."""
        for _ in range(TRIES):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                break
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


def sweep(place: Path) -> list[Path]:
    """Remove the folders in ``place`` that studios of ours have left behind; which these were."""
    if fcntl is None:
        return []
    return [folder for folder in sorted(place.glob(f"{PREFIX}*")) if _is_ours(folder) and _removed(folder)]


def _is_ours(folder: Path) -> bool:
    try:
        about = folder.lstat()  # a link is not followed
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()


def _removed(folder: Path) -> bool:
    """Remove it if nobody holds its lock; two that sweep at once do not both do so."""
    held = -1
    try:
        held = _locked(folder / LOCK)
    except FileNotFoundError:
        if not folder.exists() or time.time() - folder.lstat().st_mtime < YOUNG:
            return False
    except OSError:
        return False  # it lives, or is none of ours
    shutil.rmtree(folder, ignore_errors=True)
    if held >= 0:
        os.close(held)
    return True


def _locked(path: Path, flags: int = 0) -> int:
    """An open file that nobody else holds; ``BlockingIOError`` if somebody does."""
    held = os.open(path, flags | os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0), 0o600)
    if fcntl is not None:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            raise
    return held
