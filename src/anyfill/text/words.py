"""Words as codes: the most common ones have a code each, all others share code 0, the unknown.

A word is what stands between white space; with ``punctuation``, marks are words of their own and words with apostrophes
("don't") are one. Decoding puts one space between words: what the white space was is not kept. Counting the words of a
corpus needs memory for each distinct one, of which there is no end. Above ``MAX_COUNTED`` the rarest are dropped until
few enough are left (each time with all of the same count), so counts of rare words may come out too low, by at most the
largest count that was ever dropped.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.text.vocabulary import Vocabulary, codes_of

UNKNOWN = "<unk>"
"""How the unknown word is written."""
MAX_COUNTED = 2_000_000
MAX_UNSPACED = 2**20
"""Text without any white space is cut after so many characters."""
_MARKS = re.compile(rf"{UNKNOWN}|\w+(?:['’]\w+)*|[^\w\s]")
_CLOSES, _OPENS = re.compile(r" ([.,;:!?…)\]}%])(?!\S)"), re.compile(r"(?<!\S)([(\[{]) ")
"""A mark that belongs to the word before it, one that belongs to the word behind it."""


@dataclass(frozen=True, slots=True)
class Words(Vocabulary):
    """Code 0 for the unknown word, code k for the k-th word.

    Attributes:
        words: those with a code of their own, the most common first.
        lower: words are read in lower case.
        punctuation: marks are words of their own.
    """

    words: tuple[str, ...]
    lower: bool = False
    punctuation: bool = False
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))  # a list, as JSON gives it, will do
        codes = {word: code for code, word in enumerate(self.words, 1)}
        if len(codes) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise refuse("words", expected="each of them once", got=f"{twice!r} twice")
        odd = next((word for word in self.words if list(self.split(word)) != [word] or word == UNKNOWN), None)
        if odd is not None:
            raise refuse("words", expected=f"single words as they are read, {UNKNOWN} not among them", got=repr(odd))
        object.__setattr__(self, "_codes", codes)

    @property
    def size(self) -> int:
        """The number of codes, that of the unknown word included."""
        return len(self.words) + 1

    @property
    def units(self) -> str:
        """Words."""
        return "words"

    @property
    def unknown_code(self) -> int:
        """0."""
        return 0

    def spell(self, text: str, codes: Tensor) -> tuple[list[str], list[int]]:
        """As they are written; white space belongs to none of them."""
        seen = text.lower() if self.lower else text
        written = text if len(text) == len(seen) else seen  # a few capitals are longer in lower case
        texts: list[str] = []
        offsets: list[int] = []
        now = 0
        for word in self.split(text):
            start = seen.index(word, now)
            now = start + len(word)
            texts.append(written[start:now])
            offsets.append(start)
        return texts, offsets

    def split(self, text: str) -> list[str]:
        """The words of a text."""
        text = text.lower() if self.lower else text
        return _MARKS.findall(text) if self.punctuation else text.split()

    def encode(self, text: str) -> Tensor:
        """int64 (L,): the code of each word."""
        code = self._codes.get
        return torch.tensor([code(word, 0) for word in self.split(text)], dtype=torch.int64)

    def decode(self, codes: Tensor) -> str:
        """The words of codes (L,), with spaces between them."""
        written = (UNKNOWN, *self.words)
        return " ".join(written[code] for code in codes_of(codes, self.size).tolist())

    def written(self, codes: Tensor) -> str:
        """The words of codes (L,) as people write them: marks stand at the word that they belong to."""
        text = self.decode(codes)
        return _OPENS.sub(r"\1", _CLOSES.sub(r"\1", text)) if self.punctuation else text

    def cut(self, text: str) -> int:
        """Up to the last white space."""
        return cut_at_space(text)

    def to_json(self) -> dict[str, Any]:
        """Kind and fields."""
        return {"kind": "words", "words": list(self.words), "lower": self.lower, "punctuation": self.punctuation}


def common_words(texts: Iterable[str], size: int, *, lower: bool = False, punctuation: bool = False) -> Words:
    """The vocabulary of at most ``size`` codes for these texts (parts of one text: a word may go over the cut).

    Of equally common words those that were seen first are kept.
    """
    require_count("size", size, minimum=2)
    counts, reader = Counter[str](), Words((), lower, punctuation)
    for text in _in_whole_words(texts):
        counts.update(reader.split(text))
        rarest = 1
        while len(counts) > MAX_COUNTED:
            counts = Counter({word: count for word, count in counts.items() if count > rarest})
            rarest += 1
    counts.pop(UNKNOWN, None)
    if not counts:
        raise refuse("text", expected="at least one word", got="none")
    return Words(tuple(word for word, _ in counts.most_common(size - 1)), lower, punctuation)


def _in_whole_words(texts: Iterable[str]) -> Iterator[str]:
    waiting = ""
    for text in texts:
        waiting += text
        place = cut_at_space(waiting)
        yield waiting[:place]
        waiting = waiting[place:]
    yield waiting


def cut_at_space(text: str) -> int:
    """Where the last white space of ``text`` begins: words before it are whole. 0 if there is none, and it is short."""
    kept = len(text.rstrip())
    if kept == len(text):
        words = text.rsplit(maxsplit=1)
        kept = len(words[0]) if len(words) > 1 else 0
    return kept if kept or len(text) <= MAX_UNSPACED else len(text)
