"""A parallel corpus as codes on the disk, mapped into memory; and its pairs as rows.

    FOLDER/about.json                     the languages, the vocabulary's fingerprint, counts
    FOLDER/{train,valid}-{source,target}.codes    all codes, one sentence after another (uint16 or uint32)
    FOLDER/{train,valid}-{source,target}.bounds   where each sentence begins, and behind the last (uint64)

The folder appears as a whole. Rows come in three layouts, by what a model reads:

    length   [n, words …]          and the source as context: PaDIR, CMLM, DisCo, SUNDAE
    end      [words …, END]        and the source as context: autoregression
    joined   [source …, END | words …, END], no context: the one-pass transformer, both sides in one row

Rows of the first two are cut behind the longest of a batch, sources too, up to a multiple of 8; ``square`` = both sides
alike, so that batches have few shapes where each must be captured (CUDA graphs). An epoch is read in
windows of ``_WINDOW`` batches: inside one, pairs are sorted by length and cut into batches, which come in random order.
So a batch has next to no padding, and which pairs meet still changes from epoch to epoch.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_member
from anyfill.disk import whole_folder
from anyfill.networks.encoder_decoder import END
from anyfill.rows import Rows
from anyfill.translation.cleaning import is_held_out
from anyfill.translation.reading import Pair
from anyfill.translation.vocabulary import Joint

Layout = Literal["length", "end", "joined"]
LAYOUTS: tuple[Layout, ...] = ("length", "end", "joined")
ABOUT = "about.json"
_PARTS, _SIDES = ("train", "valid"), ("source", "target")
CodedPair = tuple[str, Sequence[int], Sequence[int]]
"""(part, source, target)."""
_WINDOW = 50
_AT_ONCE = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """Sentences as codes: codes (L,), and bounds (M + 1,)."""

    codes: NDArray[Any]
    bounds: NDArray[Any]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Codes of each sentence."""
        return np.diff(self.bounds.astype(np.int64))

    def sizes(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes of some sentences (B,)."""
        return self.bounds[index + 1].astype(np.int64) - self.bounds[index].astype(np.int64)

    def padded(self, index: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """int64 (B, width): sentences, with 0 behind their end."""
        start, stop = self.bounds[index].astype(np.int64), self.bounds[index + 1].astype(np.int64)
        place = start[:, None] + np.arange(width)
        inside = place < stop[:, None]
        found = self.codes[np.where(inside, place, 0)] if len(self.codes) else np.zeros(place.shape, np.int64)
        return np.where(inside, found, 0).astype(np.int64)


def encode_pairs(
    pairs: Iterable[Pair],
    folder: Path,
    vocabulary: Joint,
    *,
    length: int,
    languages: tuple[str, str],
    valid_share: float,
    about: dict[str, Any] | None = None,
) -> Iterator[int]:
    """Write clean pairs as a corpus; yields how many were written, now and then. Pairs with a longer side are left out.

    Args:
        pairs: (source, target), plain and protected.
        folder: of the corpus to be; what it holds is replaced when this is whole.
        vocabulary: of both languages.
        length: the most codes of a side.
        languages: (source, target).
        valid_share: of the source sentences, held out.
        about: what else to note.
    """
    longer = 0

    def coded() -> Iterator[list[CodedPair]]:
        nonlocal longer
        for some in _in_blocks(pairs):
            sides = [vocabulary.encode_all([pair[side] for pair in some]) for side in (0, 1)]
            block: list[CodedPair] = []
            for (text, _), source, target in zip(some, *sides):
                if not source or not target or max(len(source), len(target)) > length:
                    longer += 1
                else:
                    block.append(("valid" if is_held_out(text, valid_share) else "train", source, target))
            yield block

    def noted() -> dict[str, Any]:
        return {"longer": longer, **(about or {})}

    yield from store_codes(coded(), folder, vocabulary, length=length, languages=languages, about=noted)


def store_codes(
    blocks: Iterable[Iterable[CodedPair]],
    folder: Path,
    vocabulary: Joint,
    *,
    length: int,
    languages: tuple[str, str],
    about: Callable[[], dict[str, Any]] = dict[str, Any],
) -> Iterator[int]:
    """Write pairs that are codes already, block by block; ``about`` is asked at the end. Else as ``encode_pairs``."""
    kind = np.dtype("<u2" if vocabulary.size <= 2**16 else "<u4")
    count = dict.fromkeys(_PARTS, 0)
    with whole_folder(folder) as fresh:
        with ExitStack() as stack:
            names = [(part, side) for part in _PARTS for side in _SIDES]
            codes = {name: stack.enter_context((fresh / f"{'-'.join(name)}.codes").open("wb")) for name in names}
            bounds = {name: stack.enter_context((fresh / f"{'-'.join(name)}.bounds").open("wb")) for name in names}
            ends = dict.fromkeys(names, 0)
            for file in bounds.values():
                file.write(np.zeros(1, "<u8").tobytes())
            for block in blocks:
                for part, source, target in block:
                    count[part] += 1
                    for side, written in zip(_SIDES, (source, target)):
                        name = (part, side)
                        codes[name].write(np.array(written, kind).tobytes())
                        ends[name] += len(written)
                        bounds[name].write(np.array([ends[name]], "<u8").tobytes())
                yield sum(count.values())
        if not count["train"]:
            raise refuse("corpus", expected=f"a pair to train on, of at most {length} pieces a side", got="none")
        note = {
            "languages": list(languages),
            "vocabulary": fingerprint(vocabulary),
            "bytes": kind.itemsize,
            "pairs": count,
            "longer": 0,
            **about(),
        }
        (fresh / ABOUT).write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")


def fingerprint(vocabulary: Joint) -> str:
    """A short stand-in for a vocabulary."""
    return hashlib.sha256(vocabulary.model).hexdigest()[:16]


def _in_blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    some: list[Pair] = []
    for pair in pairs:
        some.append(pair)
        if len(some) == _AT_ONCE:
            yield some
            some = []
    if some:
        yield some


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """An encoded corpus.

    Attributes:
        folder: where it lies.
        about: its notes.
    """

    folder: Path
    about: dict[str, Any]

    @classmethod
    def open(cls, folder: Path | str, vocabulary: Joint | None = None) -> "Corpus":
        """The corpus in a folder; ValueError if there is none, or one in other codes."""
        try:
            about = json.loads((Path(folder) / ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise refuse(f"{folder}", expected="an encoded corpus (about.json in it)", got="none") from None
        if vocabulary is not None and about["vocabulary"] != fingerprint(vocabulary):
            raise refuse(f"{folder}", expected="a corpus in the codes of this vocabulary", got="one in others")
        return cls(Path(folder), about)

    def side(self, part: str, side: str) -> Sentences:
        """One side of one part, mapped into memory."""
        kind = np.dtype("<u2" if self.about["bytes"] == 2 else "<u4")
        path = self.folder / f"{part}-{side}"
        return Sentences(
            _mapped(path.with_suffix(".codes"), kind), _mapped(path.with_suffix(".bounds"), np.dtype("<u8"))
        )

    def rows(
        self, part: str, layout: Layout, length: int, *, reverse: bool = False, square: bool = False
    ) -> "PairRows":
        """The pairs of a part as rows; ``reverse`` = from target to source."""
        sides = [self.side(part, side) for side in (_SIDES[::-1] if reverse else _SIDES)]
        return PairRows(sides[0], sides[1], length, layout, square)


def _mapped(path: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    return np.memmap(path, kind, "r") if path.stat().st_size else np.zeros(0, kind)


@dataclass(frozen=True, slots=True, eq=False)
class PairRows:
    """Pairs as rows; a RowSource that reads only those it is asked for.

    Attributes:
        source, target: sentences, as many of one as of the other.
        length: N, the most codes of a side.
        layout: see above.
        square: both sides of a batch are cut alike.
    """

    source: Sentences
    target: Sentences
    length: int
    layout: Layout
    square: bool = False

    def __post_init__(self) -> None:
        require_member("layout", self.layout, LAYOUTS)
        if len(self.source) != len(self.target):
            raise refuse("targets", expected=f"{len(self.source):,}, one for each source", got=len(self.target))

    def __len__(self) -> int:
        return len(self.source)

    @property
    def variables(self) -> int:
        """N + 1, of both sides where they are joined."""
        return 2 * (self.length + 1) if self.layout == "joined" else self.length + 1

    def take(self, index: Tensor) -> Rows:
        """The pairs with these numbers (B,), cut behind the longest of them where the layout allows it."""
        return self._take(index, 8)

    def whole(self, index: Tensor) -> Rows:
        """The pairs with these numbers (B,), uncut."""
        return self._take(index, 0)

    def arranged(self, permutation: Tensor, batch: int) -> Tensor:
        """The permutation with pairs of like length together, ``batch`` at a time."""
        length = torch.from_numpy(self.target.lengths * 1024 + self.source.lengths)
        out: list[Tensor] = []
        for window in permutation.split(_WINDOW * batch):
            by_length = length[window].argsort(stable=True)
            whole = len(window) // batch * batch
            batches = by_length[:whole].view(-1, batch)
            # In an order that is random because the window's was: by where the first pair of a batch stood in it.
            shuffled = batches[batches[:, 0].argsort()] if len(batches) else batches
            out.append(window[torch.cat([shuffled.flatten(), by_length[whole:]])])
        return torch.cat(out)

    def _take(self, index: Tensor, multiple: int) -> Rows:
        number = index.cpu().numpy()
        if self.layout == "joined":
            sides = [self._ended(side, number, self.length + 1) for side in (self.source, self.target)]
            return Rows(torch.cat([x for x, _ in sides], 1), torch.cat([there for _, there in sides], 1))
        width, wide = self.length, self.length
        if multiple:
            width = self._cut(self.target, number, multiple)
            wide = self._cut(self.source, number, multiple)
            width, wide = (max(width, wide),) * 2 if self.square else (width, wide)
        context = torch.from_numpy(self.source.padded(number, wide))
        if self.layout == "end":
            x, present = self._ended(self.target, number, width + 1)
            return Rows(x, present, context)
        words = torch.from_numpy(self.target.padded(number, width))
        count = torch.from_numpy(self.target.sizes(number)).unsqueeze(1)
        return Rows(torch.cat([count, words], 1), torch.arange(width + 1) <= count, context)

    def _cut(self, side: Sentences, number: NDArray[np.int64], multiple: int) -> int:
        longest = int(side.sizes(number).max()) if len(number) else 1
        return min(-(-longest // multiple) * multiple, self.length)

    def _ended(self, side: Sentences, number: NDArray[np.int64], width: int) -> tuple[Tensor, Tensor]:
        x = torch.from_numpy(side.padded(number, width))
        count = torch.from_numpy(side.sizes(number)).unsqueeze(1)
        return x.scatter(1, count, END), torch.arange(width) <= count


def rows_of(sources: list[list[int]], targets: list[list[int]], length: int, layout: Layout) -> PairRows:
    """Pairs that are codes already, in memory."""

    def side(lists: list[list[int]]) -> Sentences:
        bounds = np.cumsum([0, *map(len, lists)]).astype(np.uint64)
        return Sentences(np.array([code for one in lists for code in one], np.int64), bounds)

    return PairRows(side(sources), side(targets), length, layout)
