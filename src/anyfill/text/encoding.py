"""A corpus of text files encoded into a token file: once, block by block, with reports to watch.

    for report in encode_corpus("corpus.txt", "corpus.tokens", vocabulary): ...
    tokens = open_tokens("corpus.tokens", vocabulary)

Memory does not grow with the corpus. A run that is cut short leaves nothing under the file's name and begins anew. If
the file is there already, with the same vocabulary and from the same files (names, sizes, times of change), nothing is
done.

With ``lines``, each line is a text of its own: what ends it is dropped, blank lines are left out, and the
vocabulary's end code, if it has one, stands behind each. Without, all of the text is one line of tokens.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.interface.output import unwritable
from anyfill.text.reading import BLOCK, TextBlock, as_paths, text_blocks
from anyfill.text.token_file import Tokens, TokenWriter, open_tokens
from anyfill.text.vocabulary import Vocabulary

MAX_LINE = 2**24
"""Characters of the longest line that is taken for one."""


@dataclass(frozen=True, slots=True)
class EncodingReport:
    """How far the encoding is.

    Attributes:
        read: bytes of text files read, as they lie on the disk.
        total: bytes of all of them.
        tokens: written so far.
        seconds: since the beginning.
    """

    read: int
    total: int
    tokens: int
    seconds: float

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        return self.read / self.total if self.total else 1.0


def encode_corpus(
    sources: Path | str | Sequence[Path | str],
    target: Path | str,
    vocabulary: Vocabulary,
    *,
    lines: bool = False,
    block: int = BLOCK,
) -> Generator[EncodingReport]:
    """Encode text files into one token file; a report for each block that was read.

    Args:
        sources: text in UTF-8, plain or .gz; several are read one after another.
        target: the token file to be; its folder must exist. Another file there is replaced when this one is whole.
        vocabulary: what gives the codes.
        lines: each line is a text of its own.
        block: bytes read at a time; the tokens do not depend on it.

    Raises:
        ValueError: broken UTF-8, a character that the vocabulary does not know, no text at all, or a file that cannot
            be read or written; nothing is left behind.
    """
    paths, target = as_paths(sources), Path(target)
    started = time.monotonic()
    origin = _origin(paths, lines)
    if target.exists() and any(path.samefile(target) for path in paths):
        raise refuse("target", expected="another file than the text", got=str(target))
    if is_encoded(paths, target, vocabulary, lines=lines):
        total = sum(path.stat().st_size for path in paths)
        yield EncodingReport(total, total, len(open_tokens(target).codes), time.monotonic() - started)
        return
    last = 0
    with TokenWriter(target, vocabulary, lines=lines, made_from=origin) as writer:
        for piece in _pieces(text_blocks(paths, size=block), vocabulary, lines):
            _write(writer, piece, vocabulary, lines)
            last = piece.block.stop
            yield EncodingReport(piece.block.read, piece.block.total, writer.count, time.monotonic() - started)
        if not writer.count:
            names = ", ".join(map(str, paths))
            raise refuse(names, expected="text", got=f"none up to the end at byte offset {last:,}")
        try:
            writer.finish()
        except OSError as error:
            raise unwritable(target, error) from None


def encode(
    sources: Path | str | Sequence[Path | str], target: Path | str, vocabulary: Vocabulary, *, lines: bool = False
) -> Tokens:
    """Encode to the end, and open what came of it; see ``encode_corpus``."""
    for _ in encode_corpus(sources, target, vocabulary, lines=lines):
        pass
    return open_tokens(target, vocabulary)


def is_encoded(
    sources: Path | str | Sequence[Path | str], target: Path | str, vocabulary: Vocabulary, *, lines: bool = False
) -> bool:
    """True if ``target`` holds these files in these codes: same names, sizes and times of change."""
    if not Path(target).is_file():
        return False
    try:
        return dict(open_tokens(target, vocabulary).made_from) == _origin(as_paths(sources), lines)
    except ValueError:
        return False


def _origin(paths: Sequence[Path], lines: bool) -> dict[str, Any]:
    try:
        stats = [path.stat() for path in paths]
    except OSError as error:
        raise refuse(f"{error.filename}", expected="a text file", got=f"none ({error.strerror})") from None
    files = [[path.name, stat.st_size, stat.st_mtime_ns] for path, stat in zip(paths, stats)]
    return {"files": files, "lines": lines}


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text that can be encoded whatever follows, and what waits for more; together they end with ``block``."""

    text: str
    waiting: str
    block: TextBlock

    def byte_of(self, place: int) -> int:
        """Where the character at ``place`` of the text begins in the file."""
        return self.block.byte_of(self.text[place:] + self.waiting)


def _pieces(blocks: Iterator[TextBlock], vocabulary: Vocabulary, lines: bool) -> Iterator[_Piece]:
    waiting = ""
    for block in blocks:
        text = waiting + block.text
        place = len(text)
        if not block.is_last:
            place = text.rfind("\n") + 1 if lines else vocabulary.cut(text)
        piece = _Piece(text[:place], text[place:], block)
        if lines and len(piece.waiting) > MAX_LINE:
            where = f"{block.source}, from byte offset {piece.byte_of(place):,}"
            raise refuse(where, expected=f"a line of at most {MAX_LINE:,} characters", got="a longer one")
        waiting = piece.waiting
        yield piece


def _write(writer: TokenWriter, piece: _Piece, vocabulary: Vocabulary, lines: bool) -> None:
    """Encode and write one piece."""
    try:
        if not lines:
            writer.add(_encode(vocabulary, piece.text, 0, piece))
            return
        start = 0
        for line in piece.text.split("\n"):
            if line.strip():
                codes = _encode(vocabulary, line.removesuffix("\r"), start, piece)
                if len(codes) and vocabulary.end is not None:
                    codes = np.append(codes.astype(np.int64), vocabulary.end)
                writer.add_line(codes)
            start += len(line) + 1
    except OSError as error:
        raise unwritable(writer.path, error) from None


def _encode(vocabulary: Vocabulary, text: str, start: int, piece: _Piece) -> NDArray[Any]:
    """The codes (L,) of the text at ``start`` of the piece; ValueError with the place of what has none."""
    try:
        return vocabulary.encode(text).numpy()
    except ValueError as error:
        place = piece.byte_of(start + _first_unknown(vocabulary, text))
        raise ValueError(f"{piece.block.source}, byte offset {place:,}: {error}") from None


def _first_unknown(vocabulary: Vocabulary, text: str) -> int:
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
