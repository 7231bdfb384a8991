"""Standard input and output where a file is wanted: ``-``.

A table is read more than once (to look at it, to train, to fill), so what comes from standard input is kept in a file
until the work is done; its format is found out from its first bytes. What goes to standard output is written to a file
first as well: it comes as a whole or not at all, and nothing but the table is ever written there.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from anyfill.checks import refuse
from anyfill.disk import naming_if_full

STANDARD = Path("-")
_MAGIC = (
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"\x1f\x8b", ".csv.gz"),
    (b"BZh", ".csv.bz2"),
    (b"\xfd7zXZ\x00", ".csv.xz"),
)


def is_standard_input(path: Path) -> bool:
    """Whether a path leads to the very file that standard input comes from."""
    try:
        own = os.fstat(0)
        return stat.S_ISREG(own.st_mode) and os.path.samestat(own, path.stat())
    except OSError:  # closed, or nothing is there
        return False


@contextmanager
def standard_input(path: Path) -> Generator[Path]:
    """The file itself; for ``-`` one that holds what comes from standard input, for as long as the block lasts."""
    if path != STANDARD:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="anyfill-") as folder:
        held = Path(folder) / "stdin"
        with naming_if_full(held), held.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        if not held.stat().st_size:
            raise refuse("standard input", expected="a table", got="nothing")
        yield held.rename(held.with_name(f"stdin{_suffix(held)}"))


@contextmanager
def standard_output(path: Path, like: Path) -> Generator[Path]:
    """The file itself; for ``-`` one, named as ``like`` ends, whose content goes to standard output after the block."""
    if path != STANDARD:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="anyfill-") as folder:
        made = Path(folder) / f"stdout{''.join(like.suffixes[-2:]) or '.csv'}"
        yield made
        with made.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()


def _suffix(held: Path) -> str:
    """The end of a name that says the format of a file with this beginning."""
    with held.open("rb") as file:
        first = file.read(256)
    known = next((suffix for magic, suffix in _MAGIC if first.startswith(magic)), None)
    return known or (".jsonl" if first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else ".csv")
