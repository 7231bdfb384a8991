"""Text files read in blocks: UTF-8, plain or gzip, however large. Broken UTF-8 is refused with its place.

Ends of lines are left as they are; a byte order mark at the beginning of a file is not text and is left out.
"""

import codecs
import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from anyfill.checks import refuse, require_count

BLOCK = 2**22
"""Bytes read at a time."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A part of a text file.

    Attributes:
        text: whole characters.
        source: the file's name.
        stop: the byte behind it, counted in the file (unpacked, if it is packed).
        read: bytes read so far of all files, as they lie on the disk.
        total: bytes of all files, as they lie on the disk.
        is_last: the last one of its file.
    """

    text: str
    source: str
    stop: int
    read: int
    total: int
    is_last: bool

    def byte_of(self, rest: str) -> int:
        """Where ``rest``, a piece of text that ends with this block, begins in the file."""
        return self.stop - len(rest.encode(errors="surrogatepass"))


def text_blocks(paths: Path | str | Sequence[Path | str], *, size: int = BLOCK) -> Iterator[TextBlock]:
    """All text of these files, in order; at least one block for each.

    Raises:
        ValueError: a file cannot be read, or is not UTF-8; which byte is said.
    """
    require_count("size", size)
    files = as_paths(paths)
    try:
        sizes = [path.stat().st_size for path in files]
    except OSError as error:
        raise refuse(f"{error.filename}", expected="a text file", got=f"none ({error.strerror})") from None
    before = 0
    for path, bytes_on_disk in zip(files, sizes):
        try:
            yield from _blocks_of(path, size, before, sum(sizes))
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise refuse(str(path), expected="a text file that can be read", got=reason) from None
        before += bytes_on_disk


def as_paths(paths: Path | str | Sequence[Path | str]) -> tuple[Path, ...]:
    """One path or several; ValueError if there is none."""
    several = (paths,) if isinstance(paths, Path | str) else tuple(paths)
    if not several:
        raise refuse("text files", expected="at least one", got="none")
    return tuple(map(Path, several))


def _blocks_of(path: Path, size: int, before: int, total: int) -> Iterator[TextBlock]:
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    with path.open("rb") as raw:
        packed = path.suffix.lower() == ".gz"
        file = gzip.GzipFile(fileobj=raw) if packed else raw
        start, is_last = 0, False
        while not is_last:
            content = file.read(size)
            waiting = len(decoder.getstate()[0])
            is_last = not content
            try:
                text = decoder.decode(content, final=is_last)
            except UnicodeDecodeError as error:
                place = start - waiting + error.start
                got = f"byte 0x{error.object[error.start]:02x} at byte offset {place:,} ({error.reason})"
                raise refuse(str(path), expected="text in UTF-8", got=got) from None
            if start == 0:
                text = text.removeprefix("\ufeff")
            start += len(content)
            stop = start - len(decoder.getstate()[0])
            yield TextBlock(text, path.name, stop, before + raw.tell(), total, is_last)
