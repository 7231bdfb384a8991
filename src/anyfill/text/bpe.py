"""Byte-pair encoding (Sennrich et al., 2016) over the bytes of UTF-8: pieces with case, marks and digits, none unknown.

A text is first cut into *chunks*, each of which is encoded by itself:

    word     letters with apostrophes between them, and the one space before them      " don't"
    digit    one digit and the one space before it                                     " 1" "9"
    marks    a run of anything else that is no white space, and the one space before   ",", " (", "…"
    white    any other white space, character by character                             "\\n"

A space stands only at the beginning of a chunk, so wherever a word begins or ends, a piece does: a blank between spaces
or marks is a whole number of pieces, and what stands around it has the codes that it would have without the blank.

Codes 0 … 255 are the bytes. Code 256 + k is the k-th merge: wherever its two codes meet inside a chunk they become one,
merges in their order. Learning takes, again and again, the pair that is most common in the chunks counted by how often
they occur (of equally common ones that of the smallest codes), until there are enough codes or no pair occurs twice.
Any text has codes, and ``decode(encode(text)) == text``. That is not to know it: a script of which not one letter is a
piece was not, or hardly ever, in what the pieces were learnt from (``scripts_of``).
"""

import heapq
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.text.vocabulary import Utf8, Vocabulary, codes_of

BYTES = 256
MAX_CHUNK = 64
"""Bytes of the longest chunk that is merged as one; longer ones are cut, so that encoding stays fast."""
MAX_DISTINCT = 1_000_000
"""Distinct chunks that are counted; above, those seen once are dropped."""
_CHUNK = re.compile(r" ?[^\W\d_]+(?:['’][^\W\d_]+)*| ?\d| ?(?:[^\w\s]|_)+|\s")
_KEPT = 2**17


@dataclass(frozen=True, slots=True)
class Bpe(Vocabulary):
    """Codes for pieces of text made of bytes.

    Attributes:
        merges: for each code from 256 on the two codes that it is made of.
    """

    merges: tuple[tuple[int, int], ...]
    _pieces: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    _encoder: "_Encoder" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        merges = tuple((int(left), int(right)) for left, right in self.merges)  # lists, as JSON has them, will do
        object.__setattr__(self, "merges", merges)
        for number, pair in enumerate(merges):
            if not all(0 <= code < BYTES + number for code in pair):
                raise refuse(f"merge {number}", expected=f"two codes from 0 to {BYTES + number - 1}", got=pair)
        if len(set(merges)) != len(merges):
            raise refuse("merges", expected="each pair once", got="one twice")
        # Both by the merges, but not looked up by all of them whenever a word is read.
        object.__setattr__(self, "_pieces", pieces_of(merges))
        object.__setattr__(self, "_encoder", _encoder(merges))

    @property
    def size(self) -> int:
        """The number of codes."""
        return BYTES + len(self.merges)

    @property
    def units(self) -> str:
        """Pieces."""
        return "pieces"

    def encode(self, text: str) -> Tensor:
        """int64 (L,): the codes of each chunk, one after the other; ValueError if UTF-8 cannot write the text."""
        try:
            codes = [code for chunk in chunks_of(text) for code in self._encoder.chunk(chunk)]
        except UnicodeEncodeError:
            Utf8().encode(text)  # which says where
            raise
        return torch.tensor(codes, dtype=torch.int64)

    def decode(self, codes: Tensor) -> str:
        """The text of codes (L,); what is no UTF-8 (a model may draw such) is shown as U+FFFD."""
        return b"".join(self._pieces[code] for code in codes_of(codes, self.size).tolist()).decode(errors="replace")

    def cut(self, text: str) -> int:
        """Before the last space or behind the last end of a line: a chunk begins there, whatever follows."""
        place = max(text.rfind(" "), text.rfind("\n") + 1)
        return max(place, 0)

    def spell(self, text: str, codes: Tensor) -> tuple[list[str], list[int]]:
        """A character stands at the piece that has its first byte."""
        sizes = np.fromiter((len(one.encode()) for one in text), dtype=np.int64, count=len(text))
        starts = np.cumsum(sizes) - sizes
        ends = np.cumsum([len(self._pieces[code]) for code in codes.tolist()], dtype=np.int64)
        stops = np.searchsorted(starts, ends).tolist()
        begins = [0, *stops[:-1]]
        return [text[start:stop] for start, stop in zip(begins, stops)], begins[: len(stops)]

    def to_json(self) -> dict[str, Any]:
        """Kind and merges."""
        return {"kind": "bpe", "merges": [list(pair) for pair in self.merges]}


def chunks_of(text: str) -> list[str]:
    """The chunks of a text, which are together the text; see the top of this file."""
    return _CHUNK.findall(text)


@lru_cache(maxsize=8)
def pieces_of(merges: tuple[tuple[int, int], ...]) -> tuple[bytes, ...]:
    """The bytes of each code."""
    table = [bytes([byte]) for byte in range(BYTES)]
    for left, right in merges:
        table.append(table[left] + table[right])
    return tuple(table)


@lru_cache(maxsize=8)
def scripts_of(merges: tuple[tuple[int, int], ...]) -> frozenset[str]:
    """The scripts that letters in the pieces are of, by the first word of their names in Unicode: LATIN, GREEK …"""
    letters = {one for piece in pieces_of(merges) for one in piece.decode(errors="ignore") if one.isalpha()}
    return frozenset(map(script_of, letters))


def script_of(letter: str) -> str:
    """The first word of its name."""
    return unicodedata.name(letter, "UNKNOWN").split()[0]


class _Encoder:
    """Encodes chunks, and remembers what it encoded."""

    def __init__(self, merges: tuple[tuple[int, int], ...]) -> None:
        self._pairs = merges
        self._code = {pair: BYTES + number for number, pair in enumerate(merges)}
        self._known: dict[str, tuple[int, ...]] = {}

    def chunk(self, text: str) -> tuple[int, ...]:
        """The codes of one chunk."""
        found = self._known.get(text)
        if found is None:
            content = text.encode()
            parts = (content[start : start + MAX_CHUNK] for start in range(0, len(content), MAX_CHUNK))
            found = tuple(code for part in parts for code in self._merged(list(part)))
            if len(self._known) < _KEPT:
                self._known[text] = found
        return found

    def _merged(self, codes: list[int]) -> list[int]:
        none = len(self._code) + BYTES
        while len(codes) > 1:
            best = min((self._code.get(pair, none) for pair in pairwise(codes)), default=none)
            if best == none:
                break
            codes = _joined(codes, self._pairs[best - BYTES], best)
        return codes


@lru_cache(maxsize=8)
def _encoder(merges: tuple[tuple[int, int], ...]) -> _Encoder:
    return _Encoder(merges)


def _joined(codes: list[int], due: tuple[int, int], code: int) -> list[int]:
    """The codes with every due pair, from the left, as one code."""
    found: list[int] = []
    place = 0
    while place < len(codes):
        if codes[place] == due[0] and place + 1 < len(codes) and codes[place + 1] == due[1]:
            found.append(code)
            place += 2
        else:
            found.append(codes[place])
            place += 1
    return found


def train_bpe(texts: Iterable[str], size: int) -> Bpe:
    """A vocabulary of at most ``size`` codes for these texts (parts of one text), fewer if nothing is left to merge."""
    require_count("size", size, minimum=BYTES)
    counts = Counter[str]()
    waiting = ""
    cut = Bpe(()).cut
    for text in texts:
        waiting += text
        place = cut(waiting)
        counts.update(chunks_of(waiting[:place]))
        waiting = waiting[place:]
        if len(counts) > MAX_DISTINCT:
            counts = Counter({chunk: count for chunk, count in counts.items() if count > 1})
    counts.update(chunks_of(waiting))
    if not counts:
        raise refuse("text", expected="at least one character", got="none")
    words = [list(chunk.encode()[:MAX_CHUNK]) for chunk in counts]
    return Bpe(tuple(_learn(words, list(counts.values()), size - BYTES)))


def _learn(words: list[list[int]], times: list[int], merges: int) -> list[tuple[int, int]]:
    """The most common pairs, one after the other; counts are kept up to date, a heap has the most common one.

    An entry of the heap whose count is out of date is dropped when it comes up; a count that changes makes a new entry.
    """
    counts: dict[tuple[int, int], int] = defaultdict(int)
    where: dict[tuple[int, int], set[int]] = defaultdict(set)
    for number, word in enumerate(words):
        for pair in pairwise(word):
            counts[pair] += times[number]
            where[pair].add(number)
    heap = [(-count, pair) for pair, count in counts.items()]
    heapq.heapify(heap)
    found: list[tuple[int, int]] = []
    while heap and len(found) < merges:
        count, best = heapq.heappop(heap)
        if -count != counts.get(best, 0):
            continue
        if -count < 2:
            break
        code = BYTES + len(found)
        found.append(best)
        changed = set[tuple[int, int]]()
        for number in where.pop(best):
            word, weight = words[number], times[number]
            for pair in pairwise(word):
                counts[pair] -= weight
                changed.add(pair)
            words[number] = word = _joined(word, best, code)
            for pair in pairwise(word):
                counts[pair] += weight
                where[pair].add(number)
                changed.add(pair)
        counts.pop(best, None)
        for pair in changed - {best}:
            if counts[pair] > 0:
                heapq.heappush(heap, (-counts[pair], pair))
            else:
                del counts[pair]
    return found
