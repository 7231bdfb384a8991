"""Where text comes from: files in UTF-8, plain or gzip, however large, read in blocks; stdin; an argument.

Broken UTF-8 is refused with its place. Ends of lines are left as they are; a byte order mark at the beginning of a file
is not text and is left out.
"""

import codecs
import gzip
import sys
import tempfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from anyfill.checks import refuse, require_count

BLOCK = 2**22
"""Bytes read at a time."""
_SPOOL = 2**20


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


@dataclass(frozen=True, slots=True)
class Source:
    """A text to be read.

    Attributes:
        name: what the user calls it.
        path: where it lies; None = it is in memory.
        text: the text, if it is in memory.
    """

    name: str
    path: Path | None = None
    text: str = ""

    @property
    def size(self) -> int:
        """Bytes, as it lies on the disk; 0 of what cannot be read, which is said when it is read."""
        try:
            return len(self.text.encode()) if self.path is None else self.path.stat().st_size
        except OSError:
            return 0

    def blocks(self, size: int) -> Iterator[TextBlock]:
        """Its text, block by block of ``size`` bytes; ValueError if it is not UTF-8 or cannot be read."""
        if self.path is None:
            yield TextBlock(require_text(self.text, self.name), self.name, self.size, self.size, self.size, True)
            return
        try:
            yield from text_blocks(self.path, size=size)
        except ValueError as error:
            raise ValueError(str(error).replace(str(self.path), self.name)) from None


@contextmanager
def opened(file: str) -> Generator[Source]:
    """A file by its name; ``-`` is stdin, which is put into a file first."""
    if file != "-":
        yield Source(file, Path(file))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as spool:
            while content := sys.stdin.buffer.read(_SPOOL):
                spool.write(content)
        yield Source("stdin", path)


def read_text(text: str | None, file: Path | None) -> str:
    """The text of an argument, of stdin (``-``) or of a file; one end of a line at the very end is left out.

    Raises:
        ValueError: there is none or more than one of them, or it is not UTF-8.
    """
    if (text is None) == (file is None):
        expected = "TEXT or --file, one of them"
        raise refuse("text", expected=expected, got="none" if text is None else "both")
    if file is not None:
        return _less_newline("".join(block.text for block in text_blocks(file)))
    if text == "-":
        content = sys.stdin.buffer.read()
        try:
            return _less_newline(content.decode().removeprefix("\ufeff"))
        except UnicodeDecodeError as error:
            got = f"byte 0x{content[error.start]:02x} at byte offset {error.start:,} ({error.reason})"
            raise refuse("stdin", expected="text in UTF-8", got=got) from None
    return require_text(text or "", "text")


def require_text(text: str, what: str) -> str:
    """The text of an argument; ValueError if the bytes it was made of are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) & 0xFF
        got = f"byte 0x{byte:02x} at character {error.start + 1}"
        raise refuse(what, expected="text in UTF-8", got=got) from None
    return text


def _less_newline(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")
