"""Where text comes from: files in UTF-8, plain or gzip, however large, read in blocks; stdin; an argument.

Broken UTF-8 is refused with its place. Ends of lines are left as they are; a byte order mark at the beginning of a file
is not text and is left out.

Tokens of a text stream by, and memory does not grow with it. Text for a model of text8's 27 symbols is folded on the
way (``as_text8``), block by block, with the same result as at once: where two spaces meet between blocks, one is left
out, and so are those at the two ends. Letters and numerals of which folding would leave nothing are refused. Offsets
count characters of the text as the model sees it. For a model of lines each line is a text of its own: blank ones are
left out, what ends a line is no text, and the vocabulary's end code, if it has one, stands for it. A token that writes
nothing of its own (the second byte of a character) stands for "".
"""

import codecs
import gzip
import sys
import tempfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.interface.options import refuse_file_name
from anyfill.text.encoding import require_letters
from anyfill.text.folding import as_text8
from anyfill.text.vocabulary import Characters, Vocabulary, is_folded

BLOCK = 2**22
"""Bytes read at a time."""
_SPOOL = 2**20
MAX_LINE = 2**24
"""Characters of the longest line that is taken for one."""
_LONGEST_NAME = 256
_BLOCK = 2**16
"""Bytes of text that is scored, read at a time."""


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

    @property
    def share(self) -> float:
        """Of all files, read so far."""
        return self.read / max(self.total, 1)

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


def read_text(text: str | None, file: Path | None, *, returns: bool = False) -> str:
    """The text of an argument, of stdin (``-``) or of a file; one end of a line at the very end is left out.

    ``returns`` keeps the return of a last line that ends in CRLF, as other lines of the text have it.

    Raises:
        ValueError: there is none or more than one of them, or it is not UTF-8.
    """
    if (text is None) == (file is None):
        raise refuse("text", expected="TEXT or --file, one of them", got="none" if text is None else "both")
    if file is None and text != "-":
        refuse_file_name(text or "")
        return require_text(text or "", "text")
    with opened("-") if file is None else nullcontext(Source(str(file), file)) as source:
        content = "".join(block.text for block in source.blocks(BLOCK))
    content = content.removesuffix("\n")
    return content if returns else content.removesuffix("\r")


def require_text(text: str, what: str) -> str:
    """The text of an argument; ValueError if the bytes it was made of are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        got = f"byte 0x{ord(text[error.start]) & 0xFF:02x} at character {error.start + 1}"
        raise refuse(what, expected="text in UTF-8", got=got) from None
    return text


class Stretch(NamedTuple):
    """Some tokens of a text.

    Attributes:
        codes: int64 (L,).
        texts: L, the characters that each token stands for.
        offsets: L, where they begin in the text.
        is_new: a text begins here, of which nothing comes before.
        characters, words, unknown: how many there are of each.
        share: of the whole work that is done when these are.
    """

    codes: Tensor
    texts: list[str]
    offsets: list[int]
    is_new: bool
    characters: int
    words: int
    unknown: int
    share: float


def stretches(source: Source, vocabulary: Vocabulary, *, lines: bool = False, block: int = _BLOCK) -> Iterator[Stretch]:
    """The tokens of a text, a stretch at a time; ValueError if it has none, or a character without a code."""
    plain, end, words, tokens = vocabulary.plain, vocabulary.end, 0, 0
    for part in (_lines if lines else _text)(source, vocabulary, block):
        try:
            codes = plain.encode(part.text).long()
        except ValueError as error:
            where = f"{source.name}, offset {part.offset + first_unknown(plain, part.text):,}"
            raise ValueError(f"{where}: {str(error).removeprefix('text: ')}") from None
        texts, offsets = plain.spell(part.text, codes)
        unknown = 0 if plain.unknown_code is None else int((codes == plain.unknown_code).sum())
        if isinstance(plain, Characters) and plain.unknown:
            unknown -= part.text.count(plain.unknown)  # it may stand for itself
        if lines and end is not None:
            codes, texts, offsets = torch.cat([codes, torch.tensor([end])]), [*texts, "\n"], [*offsets, len(part.text)]
        words, tokens = words + part.words, tokens + len(codes)
        characters = len(part.text) + (lines and end is not None)
        offsets = [part.offset + place for place in offsets]
        yield Stretch(codes, texts, offsets, part.is_new, characters, part.words, unknown, part.share)
    if not tokens or (is_folded(vocabulary) and not words):
        expected = "text with letters from a to z" if is_folded(vocabulary) else "text"
        raise refuse(source.name, expected=expected, got="none")


class _Part(NamedTuple):
    """Text to be encoded by itself, its words (one that goes on counts once), and as in ``Stretch``."""

    text: str
    offset: int
    is_new: bool
    words: int
    share: float


def _text(source: Source, vocabulary: Vocabulary, block: int) -> Iterator[_Part]:
    waiting, offset, is_new, in_word, space, read = "", 0, True, False, "", 0
    for part in source.blocks(block):
        text = part.text
        require_letters(vocabulary, text, source.name, offset=read)
        read += len(text)
        if is_folded(vocabulary):
            text = space + as_text8(text)
            text = text.lstrip() if is_new and not waiting else f" {text[2:]}" if text.startswith("  ") else text
            space = " " if text.endswith(" ") else ""  # it stays only if more text comes
            text = text.removesuffix(" ")
        text = waiting + text
        place = len(text) if part.is_last else vocabulary.cut(text)
        text, waiting = text[:place], text[place:]
        if text:
            words = len(text.split()) - (in_word and not text[0].isspace())
            in_word = not text[-1].isspace()
            yield _Part(text, offset, is_new, words, part.share)
            offset, is_new = offset + len(text), False


def _lines(source: Source, vocabulary: Vocabulary, block: int) -> Iterator[_Part]:
    waiting, offset = "", 0
    for part in source.blocks(block):
        *whole, waiting = (waiting + part.text).split("\n")
        if part.is_last:
            whole.append(waiting)
        elif len(waiting) > MAX_LINE:
            got = f"a longer one at character {offset:,}"
            raise refuse(source.name, expected=f"lines of at most {MAX_LINE:,} characters", got=got)
        for line in whole:
            text = line.removesuffix("\r")
            require_letters(vocabulary, text, source.name, offset=offset)
            if is_folded(vocabulary):
                text = as_text8(text).strip()
            if text.strip():
                yield _Part(text, offset, True, len(text.split()), part.share)
            offset += (len(text) if is_folded(vocabulary) else len(line)) + 1


def first_unknown(vocabulary: Vocabulary, text: str) -> int:
    """The place of the first character that cannot be encoded, by bisection."""
    good, bad = 0, len(text)  # text[:good] can be encoded, text[:bad] cannot
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            vocabulary.encode(text[:middle])
            good = middle
        except ValueError:
            bad = middle
    return good
