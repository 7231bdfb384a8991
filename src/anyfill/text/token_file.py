"""A corpus as codes in one file that is mapped into memory: only what is read takes memory, and that can be given back.

    bytes 0 … 63     "anyfill" and the version; bytes per code, number of codes, number of lines + 1 (0 = no lines),
                     bytes of the description (five little-endian uint64); the vocabulary's fingerprint (16 letters)
    codes            uint8, uint16 or uint32, as many bytes as the vocabulary needs; then zeros up to a multiple of 8
    lines            uint64: where each line begins, and behind the last one
    description      JSON: the vocabulary, and the text files that the codes were made from

The file is written under another name and renamed when it is whole and on the disk: it is there or it is not.
"""

import json
import mmap
import os
import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.disk import sync_folder
from anyfill.text.vocabularies import vocabulary_from_json
from anyfill.text.vocabulary import Vocabulary, fingerprint, require_fingerprint

try:
    import fcntl
except ModuleNotFoundError:  # not on Windows: there, two programs must not write the same file
    fcntl = None

MAGIC = b"anyfill1"
_HEAD = struct.Struct("<8s4Q16s8x")
_ALIGN = 8
_LINES_AT_ONCE = 2**20
_TYPES = {1: np.dtype("u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4")}


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Codes of a corpus, or of a part of it.

    Attributes:
        codes: unsigned (L,); mapped from a file, or in memory. Lines share the codes of the whole corpus.
        bounds: unsigned (M + 1,): where each of M lines begins, and behind the last; None = it has no lines.
        vocabulary: what the codes mean.
        made_from: their origin, as ``TokenWriter`` was given it.
    """

    codes: NDArray[Any]
    bounds: NDArray[Any] | None
    vocabulary: Vocabulary
    made_from: Mapping[str, Any]

    def __len__(self) -> int:
        """The number of codes of this part."""
        return len(self.text)

    @property
    def text(self) -> NDArray[Any]:
        """(L,): the codes of this part, all lines one after another."""
        return self.codes if self.bounds is None else self.codes[int(self.bounds[0]) : int(self.bounds[-1])]

    @property
    def lines(self) -> int | None:
        """M, the number of lines; None if there are none."""
        return None if self.bounds is None else len(self.bounds) - 1

    def line_lengths(self) -> Iterator[NDArray[np.int64]]:
        """The number of codes of each line, a million lines at a time."""
        bounds = np.zeros(1, dtype=np.uint64) if self.bounds is None else self.bounds
        for start in range(0, len(bounds) - 1, _LINES_AT_ONCE):
            yield np.diff(bounds[start : start + _LINES_AT_ONCE + 1].astype(np.int64))

    def split(self, shares: Sequence[float]) -> tuple["Tokens", ...]:
        """What is left, and then one part for each share, in the order of the text: shares are cut from its end.

        ``split((0.05, 0.05))`` is text8's training, validation and test part. With lines, shares are of the lines.
        """
        if self.bounds is None:
            return tuple(replace(self, codes=self.codes[part]) for part in cut_from_end(len(self.codes), shares))
        parts = cut_from_end(len(self.bounds) - 1, shares)
        return tuple(replace(self, bounds=self.bounds[part.start : part.stop + 1]) for part in parts)


def cut_from_end(count: int, shares: Sequence[float]) -> tuple[slice, ...]:
    """Slices of ``count`` things: those left over, then each share of them, the last one at the very end.

    A share is rounded to the nearest number of things; ValueError if a part would be empty.
    """
    if not all(0 < share < 1 for share in shares) or sum(shares) >= 1:
        raise refuse("shares", expected="numbers above 0 that sum to less than 1", got=list(shares))
    sizes = [round(share * count) for share in shares]
    sizes.insert(0, count - sum(sizes))
    if min(sizes) < 1:
        raise refuse("shares", expected=f"at least one of {count} tokens or lines in each part", got=list(shares))
    stops = np.cumsum(sizes).tolist()
    return tuple(slice(stop - size, stop) for size, stop in zip(sizes, stops))


def open_tokens(path: Path | str, vocabulary: Vocabulary | None = None) -> Tokens:
    """The corpus in a token file, mapped into memory.

    Args:
        path: a file that ``TokenWriter`` (``encode_corpus``) wrote.
        vocabulary: what the codes must mean, that of a model, say; ValueError if they mean something else.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size or head[: len(MAGIC)] != MAGIC:
                raise refuse(str(path), expected="a token file of this anyfill", got="something else")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise refuse(str(path), expected="a token file", got=f"none ({error.strerror})") from None
    _, width, count, bounds, about, mark = _HEAD.unpack(head)
    end = _aligned(_HEAD.size + width * count) + 8 * bounds
    if width not in _TYPES or not count or end + about != size:
        raise refuse(str(path), expected=f"{end + about:,} bytes, as its head says", got=f"{size:,}: it is damaged")
    if hasattr(mapped, "madvise"):  # rows are read here and there: what lies next to them would be read in vain
        mapped.madvise(mmap.MADV_RANDOM)
    try:
        description = json.loads(mapped[end : end + about])
        found, made_from = vocabulary_from_json(description["vocabulary"]), description["made_from"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        got = "something else: it is damaged"
        raise refuse(str(path), expected="its vocabulary behind the tokens", got=got) from None
    require_fingerprint(str(path), mark.decode("ascii", "replace"), vocabulary or found)
    codes = np.frombuffer(mapped, _TYPES[width], count, _HEAD.size)
    lines = np.frombuffer(mapped, "<u8", bounds, end - 8 * bounds) if bounds else None
    return Tokens(codes, lines, found, made_from)


class TokenWriter:
    """Writes a token file: ``add`` codes, ``add_line`` where lines are kept, then ``finish``; all or nothing.

    A context: leaving it without ``finish`` (an error, Ctrl-C) removes what was written so far. What a killed program
    leaves behind has another name, counts for nothing, and is overwritten by the next one.

    Args:
        path: the file to be.
        vocabulary: what the codes mean.
        lines: keep where lines begin.
        made_from: anything about their origin, as JSON.
    """

    def __init__(
        self, path: Path | str, vocabulary: Vocabulary, *, lines: bool = False, made_from: Mapping[str, Any]
    ) -> None:
        self.path = Path(path)
        self.count = 0
        self._vocabulary = vocabulary
        self._made_from = dict(made_from)
        self._type = _TYPES[1 if vocabulary.size <= 2**8 else 2 if vocabulary.size <= 2**16 else 4]
        self._lines = lines
        self._is_finished = False
        self._part = self.path.with_name(f".{self.path.name}.part")
        self._bounds_part = self.path.with_name(f".{self.path.name}.lines.part")

    def __enter__(self) -> "TokenWriter":
        self._file = _claimed(self._part)
        self._bounds = self._bounds_part.open("w+b") if self._lines else None
        self._file.write(bytes(_HEAD.size))
        return self

    def __exit__(self, *_: object) -> None:
        if self._bounds is not None:
            self._bounds.close()
            self._bounds_part.unlink(missing_ok=True)
        if fcntl is None:
            self._file.close()
        if not self._is_finished:
            self._part.unlink(missing_ok=True)  # before closing: closing lets another program claim it
        self._file.close()

    def add(self, codes: NDArray[Any]) -> None:
        """More codes (L,), each from 0 to the vocabulary's size - 1."""
        self._file.write(codes.astype(self._type).data)
        self.count += len(codes)

    def add_line(self, codes: NDArray[Any]) -> None:
        """A line of codes (L,); an empty one is none."""
        if self._bounds is None:
            raise refuse("add_line", expected="a writer with lines=True", got="one without")
        if len(codes):
            self._bounds.write(struct.pack("<Q", self.count))
            self.add(codes)

    def finish(self) -> None:
        """Make it the file. Everything is on the disk when this returns."""
        if not self.count:
            raise refuse(str(self.path), expected="at least one token", got="none")
        about = json.dumps({"vocabulary": self._vocabulary.to_json(), "made_from": self._made_from}).encode()
        self._file.write(bytes(_aligned(self._file.tell()) - self._file.tell()))
        bounds = 0
        if self._bounds is not None:
            self._bounds.write(struct.pack("<Q", self.count))
            bounds = self._bounds.tell() // 8
            self._bounds.seek(0)
            shutil.copyfileobj(self._bounds, self._file)
        self._file.write(about)
        mark = fingerprint(self._vocabulary).encode("ascii")
        self._file.seek(0)
        self._file.write(_HEAD.pack(MAGIC, self._type.itemsize, self.count, bounds, len(about), mark))
        self._file.flush()
        os.fsync(self._file.fileno())
        if fcntl is None:
            self._file.close()
        os.replace(self._part, self.path)
        self._is_finished = True
        sync_folder(self.path.parent)


def _aligned(place: int) -> int:
    return -(-place // _ALIGN) * _ALIGN


def _claimed(path: Path) -> BinaryIO:
    """The file, empty and open for this program alone; ValueError if another one is writing it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    file = os.fdopen(descriptor, "r+b")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another program may have finished it since it was opened: then this is its file, under its last name.
            is_ours = os.path.samestat(os.fstat(descriptor), os.stat(path))
        except OSError:
            is_ours = False
        if not is_ours:
            file.close()
            raise refuse(str(path), expected="no other program that writes it", got="one that does")
    file.truncate(0)
    return file
