"""A corpus of text files: its vocabulary, found in one pass; its tokens, encoded once; its end, held out.

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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from anyfill.checks import refuse
from anyfill.interface.output import unwritable
from anyfill.interface.progress import metered
from anyfill.rows import Rows, RowSource
from anyfill.text.bpe import train_bpe
from anyfill.text.reading import BLOCK, MAX_LINE, TextBlock, as_paths, first_unknown, text_blocks
from anyfill.text.token_file import Tokens, TokenWriter, open_tokens
from anyfill.text.tokens import Chunks, Sentences, some_rows
from anyfill.text.vocabulary import Utf8, Vocabulary, WithEnd, characters_in
from anyfill.text.words import common_words

if TYPE_CHECKING:
    from anyfill.text.settings import Settings

Sources = Path | str | Sequence[Path | str]
"""One text file, or several."""
_MAX_CODES = {"characters": 8192, "words": 8192, "pieces": 4096}
"""Codes of a vocabulary, where nothing is said; a corpus may well have fewer."""
_MAX_LENGTH = 2**16
"""Lines that are longer count as so long."""


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
    sources: Sources, target: Path | str, vocabulary: Vocabulary, *, lines: bool = False, block: int = BLOCK
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
    try:
        with TokenWriter(target, vocabulary, lines=lines, made_from=origin) as writer:
            for piece in _pieces(text_blocks(paths, size=block), vocabulary, lines):
                _write(writer, piece, vocabulary, lines)
                last = piece.block.stop
                yield EncodingReport(piece.block.read, piece.block.total, writer.count, time.monotonic() - started)
            if not writer.count:
                names = ", ".join(map(str, paths))
                raise refuse(names, expected="text", got=f"none up to the end at byte offset {last:,}")
            writer.finish()
    except OSError as error:
        raise unwritable(target, error) from None


def encode(sources: Sources, target: Path | str, vocabulary: Vocabulary, *, lines: bool = False) -> Tokens:
    """Encode to the end, and open what came of it; see ``encode_corpus``."""
    for _ in encode_corpus(sources, target, vocabulary, lines=lines):
        pass
    return open_tokens(target, vocabulary)


def is_encoded(sources: Sources, target: Path | str, vocabulary: Vocabulary, *, lines: bool = False) -> bool:
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


def _encode(vocabulary: Vocabulary, text: str, start: int, piece: _Piece) -> NDArray[Any]:
    """The codes (L,) of the text at ``start`` of the piece; ValueError with the place of what has none."""
    try:
        return vocabulary.encode(text).numpy()
    except ValueError as error:
        place = piece.byte_of(start + first_unknown(vocabulary, text))
        raise ValueError(f"{piece.block.source}, byte offset {place:,}: {error}") from None


def find_vocabulary(sources: Sequence[Path], settings: "Settings", console: Console) -> Vocabulary:
    """The vocabulary of these files, found in one pass; ValueError if they hold no text or broken UTF-8.

    Args:
        sources: text files.
        settings: units, the most codes, and whether what ends a line is no text; lines that are read from left to right
            have a code for their end.
        console: where to show how far it is.
    """
    texts, units, lines = _texts(sources, console), settings.units or "characters", settings.lines
    max_size = settings.vocabulary_size or _MAX_CODES.get(units, 256)
    match units:
        case "bytes":
            vocabulary = Utf8()
        case "characters":
            unbroken = (text.replace("\r\n", "").replace("\n", "") for text in texts)  # what ends lines is no text
            vocabulary = characters_in(unbroken if lines else texts, max_size=max_size)
        case "words":
            vocabulary = common_words(texts, max_size, punctuation=True)
        case _:
            vocabulary = train_bpe(texts, max_size)
    return WithEnd(vocabulary) if lines and settings.recipe == "left_to_right" else vocabulary


def _texts(sources: Sequence[Path], console: Console) -> Generator[str]:
    """All text, block by block; ValueError at the end if there was none."""
    found = False
    blocks = ((block.text, block.share) for block in text_blocks(sources))
    for text in metered(blocks, "reading", console=console):
        found = found or bool(text.strip())
        yield text
    if not found:
        raise refuse(", ".join(map(str, sources)), expected="text", got="none")


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """An encoded corpus, its end held out.

    Attributes:
        names: of the files.
        train: what is trained on.
        valid: what is held out; None = nothing is.
        line_lengths: int64, how many lines that are trained on have 0, 1, 2 … tokens; None = it has no lines.
    """

    names: tuple[str, ...]
    train: Tokens
    valid: Tokens | None
    line_lengths: NDArray[np.int64] | None

    @property
    def tokens(self) -> int:
        """All of them."""
        return len(self.train) + self.held_out

    @property
    def held_out(self) -> int:
        """Tokens that are held out."""
        return 0 if self.valid is None else len(self.valid)

    def row_tokens(self, length: int) -> int:
        """Tokens that are trained on, of rows of this length."""
        return len(self.train) if self.line_lengths is None else int(self.counts(length) @ np.arange(length + 1))

    def mean_length(self, length: int) -> float:
        """Tokens of a row."""
        return float(length) if self.line_lengths is None else self.row_tokens(length) / int(self.line_lengths.sum())

    def counts(self, length: int) -> NDArray[np.int64]:
        """int64 (N + 1,): how many rows have 0 … N tokens, when longer lines are cut."""
        if self.line_lengths is None:
            raise refuse("corpus", expected="lines", got="one text")
        kept = np.zeros(length + 1, dtype=np.int64)
        np.add.at(kept, np.minimum(np.arange(len(self.line_lengths)), length), self.line_lengths)
        return kept

    def rows(self, length: int) -> RowSource:
        """What is trained on: windows at every place, or the lines."""
        return self._source(self.train, length, 1, "are left to train on")

    def validation(self, length: int, max_rows: int) -> Rows | None:
        """At most so many rows of what is held out, evenly spaced; None if nothing is."""
        source = None if self.valid is None else self._source(self.valid, length, length, "are held out")
        return None if source is None else some_rows(source, max_rows)

    def _source(self, tokens: Tokens, length: int, stride: int, which: str) -> RowSource:
        if tokens.bounds is not None:
            return Sentences(tokens, length)
        if len(tokens) < length:
            advice = "a smaller --length or another --valid-share, 0 to hold out nothing, would do"
            got = f"{len(tokens):,} that {which}: {advice}"
            raise refuse(", ".join(self.names), expected=f"text for a row of {length} tokens at least", got=got)
        return Chunks(tokens, length, stride)


def open_corpus(sources: Sequence[Path], tokens: Tokens, valid_share: float) -> Corpus:
    """The corpus with its last share held out; a share of 0 holds out nothing."""
    names = tuple(path.name for path in as_paths(sources))
    count = len(tokens) if tokens.lines is None else tokens.lines
    if valid_share and round(valid_share * count) < 1:
        what = "tokens" if tokens.lines is None else "lines"
        expected = f"enough text to hold out {100 * valid_share:g} % of it (--valid-share 0 holds out nothing)"
        raise refuse(", ".join(names), expected=expected, got=f"{count:,} {what}")
    train, valid = tokens.split((valid_share,)) if valid_share else (tokens, None)
    return Corpus(names, train, valid, _line_lengths(train))


def _line_lengths(tokens: Tokens) -> NDArray[np.int64] | None:
    if tokens.bounds is None:
        return None
    total = np.zeros(1, dtype=np.int64)
    for sizes in tokens.line_lengths():
        found = np.bincount(np.minimum(sizes, _MAX_LENGTH), minlength=len(total))
        found[: len(total)] += total
        total = found
    return total
