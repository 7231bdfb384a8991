"""The corpus of ``anyfill text train``: read once for its vocabulary, encoded once, then cut into rows from the disk.

The tokens lie in FOLDER/corpus.tokens beside the model as long as its run may have to be resumed; a run that has ended
needs them no more. A corpus of lines has a row for each line: what stands behind a line is missing, hence never asked,
and longer lines are cut. Left-to-right models of lines have an end code, for they alone are asked where a line ends;
others are asked for as many places as a line has.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from anyfill.checks import refuse
from anyfill.interface.progress import metered
from anyfill.rows import Rows, RowSource
from anyfill.text.characters import Characters, characters_in
from anyfill.text.corpus_rows import Chunks, some_rows
from anyfill.text.pieces import train_pieces
from anyfill.text.sentences import Sentences
from anyfill.text.text_blocks import as_paths, text_blocks
from anyfill.text.token_encoding import encode_corpus, is_encoded
from anyfill.text.token_file import Tokens
from anyfill.text.utf8 import Utf8
from anyfill.text.vocabulary import Vocabulary
from anyfill.text.with_end import WithEnd
from anyfill.text.words import Words, common_words

TOKENS = "corpus.tokens"
_MAX = {"characters": 8192, "words": 8192, "pieces": 4096}
"""Codes of a vocabulary, where nothing is said; a corpus may well have fewer."""
_AT_ONCE, _LONG = 2**20, 2**16


def find_vocabulary(
    sources: Sequence[Path], units: str, size: int | None, *, lines: bool, end: bool, console: Console
) -> Vocabulary:
    """The vocabulary of these files, found in one pass; ValueError if they hold no text or broken UTF-8.

    Args:
        sources: text files.
        units: "characters", "bytes", "words" or "pieces".
        size: the most codes.
        lines: what ends a line is no text.
        end: with a code for the end of a line.
        console: where to show how far it is.
    """
    vocabulary: Vocabulary
    if units == "bytes":
        vocabulary = Utf8()
    else:
        most = _MAX[units] if size is None else size
        texts = _texts(sources, console)
        if units == "characters":
            vocabulary = characters_in(map(_unbroken, texts) if lines else texts, most=most)
        else:
            vocabulary = common_words(texts, most) if units == "words" else train_pieces(texts, most)
    return WithEnd(vocabulary) if end else vocabulary


def encode(sources: Sequence[Path], target: Path, vocabulary: Vocabulary, *, lines: bool, console: Console) -> None:
    """Encode these files into a token file, with progress, unless that was done before."""
    if not is_encoded(sources, target, vocabulary, lines=lines):
        reports = (
            (report.tokens, report.progress) for report in encode_corpus(sources, target, vocabulary, lines=lines)
        )
        for _ in metered(reports, "encoding", console=console):
            pass


def _texts(sources: Sequence[Path], console: Console) -> Generator[str]:
    """All text, block by block; ValueError at the end if there was none."""
    found = False
    blocks = ((block.text, block.read / max(block.total, 1)) for block in text_blocks(sources))
    for text in metered(blocks, "reading", console=console):
        found = found or bool(text.strip())
        yield text
    if not found:
        raise refuse(", ".join(map(str, sources)), expected="text", got="none")


def _unbroken(text: str) -> str:
    """The text of lines without what ends them."""
    return text.replace("\r\n", "").replace("\n", "")


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
        if self.train.bounds is not None:
            return Sentences(self.train, length)
        if len(self.train) < length:
            raise self._too_short(f"a row of {length} tokens", len(self.train), "are left to train on")
        return Chunks(self.train, length, stride=1)

    def validation(self, length: int, most: int) -> Rows | None:
        """At most so many rows of what is held out, evenly spaced; None if nothing is."""
        if self.valid is None:
            return None
        if self.valid.bounds is not None:
            return some_rows(Sentences(self.valid, length), most)
        if len(self.valid) < length:
            raise self._too_short(f"a row of {length} tokens", len(self.valid), "are held out")
        return some_rows(Chunks(self.valid, length), most)

    def _too_short(self, expected: str, got: int, why: str) -> ValueError:
        advice = "a smaller --length or another --valid-share, 0 to hold out nothing, would do"
        return refuse(
            ", ".join(self.names), expected=f"text for {expected} at least", got=f"{got:,} that {why}: {advice}"
        )


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
    for sizes in _sizes(tokens.bounds):
        found = np.bincount(np.minimum(sizes, _LONG))
        wide = np.zeros(max(len(total), len(found)), dtype=np.int64)
        wide[: len(total)] += total
        wide[: len(found)] += found
        total = wide
    return total


def _sizes(bounds: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(bounds) - 1, _AT_ONCE):
        yield np.diff(bounds[start : start + _AT_ONCE + 1].astype(np.int64))


def about_vocabulary(vocabulary: Vocabulary) -> str:
    """How many codes of which kind, in words: "65 different ones"."""
    inner = vocabulary.inner if isinstance(vocabulary, WithEnd) else vocabulary
    if isinstance(inner, Characters):
        return f"{inner.size:,} different ones" + (f", rarer ones as {inner.unknown!r}" if inner.unknown else "")
    if isinstance(inner, Words):
        return f"{inner.size - 1:,} different ones, any others as <unk>"
    return f"{inner.size:,} different ones"
