"""Words as codes: the most common ones have a code each, all others share code 0, the unknown.

A word is what stands between white space; with ``punctuation``, marks are words of their own and words with
apostrophes ("don't") are one. Decoding puts one space between words: what the white space was is not kept.

Counting the words of a corpus needs memory for each distinct one, of which there is no end. Above ``MAX_COUNTED`` the
rarest are forgotten until few enough are left (each time with all of the same count), so counts of rare words may come
out too low, by at most the largest count that was ever forgotten.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.text.vocabulary import codes_of, cut_at_space

UNKNOWN = "<unk>"
"""How the unknown word is written."""
MAX_COUNTED = 2_000_000
_MARKS = re.compile(rf"{UNKNOWN}|\w+(?:['’]\w+)*|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Words:
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
    def end(self) -> None:
        """There is none."""
        return

    def split(self, text: str) -> list[str]:
        """The words of a text."""
        return split_words(text, lower=self.lower, punctuation=self.punctuation)

    def encode(self, text: str) -> Tensor:
        """int64 (L,): the code of each word."""
        code = self._codes.get
        return torch.tensor([code(word, 0) for word in self.split(text)], dtype=torch.int64)

    def decode(self, codes: Tensor) -> str:
        """The words of codes (L,), with spaces between them."""
        written = (UNKNOWN, *self.words)
        return " ".join(written[code] for code in codes_of(codes, self.size).tolist())

    def cut(self, text: str) -> int:
        """Up to the last white space."""
        return cut_at_space(text)

    def to_json(self) -> dict[str, Any]:
        """Kind and fields."""
        return {"kind": "words", "words": list(self.words), "lower": self.lower, "punctuation": self.punctuation}


def split_words(text: str, *, lower: bool = False, punctuation: bool = False) -> list[str]:
    """The words of a text; see the top of this file."""
    text = text.lower() if lower else text
    return _MARKS.findall(text) if punctuation else text.split()


def common_words(texts: Iterable[str], size: int, *, lower: bool = False, punctuation: bool = False) -> Words:
    """The vocabulary of at most ``size`` codes for these texts (parts of one text: a word may go over the cut).

    Of equally common words those that were seen first are kept.
    """
    require_count("size", size, minimum=2)
    counts: Counter[str] = Counter()
    for text in _in_whole_words(texts):
        counts.update(split_words(text, lower=lower, punctuation=punctuation))
        least = 1
        while len(counts) > MAX_COUNTED:
            counts = Counter({word: count for word, count in counts.items() if count > least})
            least += 1
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
