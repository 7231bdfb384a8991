"""Words of which some letters are known, for models of pieces: ``l_st`` is a word of four letters, ``19__`` a number.

A pattern is written with a ``_`` for each open character. An open character is a digit where all that is written of
the pattern are digits, else a letter. It says how a word is spelt, and a word of pieces can be of any number of them:
so the blank is the whole word, letters that are given included, and of 1 to as many pieces as it has characters. What
is compared are *spellings*: where there are few (``spellings``), all of them, so that nothing is missed; else what a
search finds that only takes pieces that go on with the pattern (``Letters.fitting``).
"""

import itertools
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GAP = "_"
_BEFORE = re.compile(r"(?:[^\W_]+['’])*[^\W_]*$")
_BEHIND = re.compile(r"^[^\W_]*(?:['’][^\W_]+)*")


def letters_before(text: str) -> str:
    """The letters and digits that a text ends with, apostrophes between them included."""
    found = _BEFORE.search(text)
    return found[0] if found else ""


def letters_behind(text: str) -> str:
    """Those that it begins with."""
    found = _BEHIND.search(text)
    return found[0] if found else ""


def are_digits(pattern: str) -> bool:
    """Whether the open characters of a pattern are digits."""
    written = pattern.replace(GAP, "")
    return bool(written) and written.isdigit()


def fits(word: str, pattern: str, start: int = 0) -> bool:
    """Whether a word is spelt as the pattern from ``start`` on says, up to the end of the word."""
    wanted = pattern[start : start + len(word)]
    is_open = str.isdigit if are_digits(pattern) else str.isalpha
    same = (is_open(one) if other == GAP else one == other for one, other in zip(word, wanted))
    return len(wanted) == len(word) and all(same)


def spellings(pattern: str, most: int) -> list[str] | None:
    """Everything of the alphabet a to z, or of ten digits, that fits, in its order; None if that is more than ``most``.

    An open first letter may be a capital; where all letters that are written are capitals, so are the others.
    """
    written = [one for one in pattern if one.isalpha()]
    small = string.ascii_uppercase if written and all(map(str.isupper, written)) else string.ascii_lowercase
    ways: list[str] = []
    for place, one in enumerate(pattern):
        first = string.ascii_letters if place == 0 and small == string.ascii_lowercase else small
        ways.append(one if one != GAP else string.digits if are_digits(pattern) else first)
    count = 1
    for way in ways:
        count *= len(way)
    return ["".join(way) for way in itertools.product(*ways)] if count <= most else None


@dataclass(frozen=True, slots=True, eq=False)
class Letters:
    """Many texts character by character, so that ``fits`` can be asked of all of them at once.

    Attributes:
        characters: int32 (K, L), the code points of K texts; 0 behind the end of each.
        letters, digits: bool (K, L), which of them are some.
        sizes: int64 (K,).
    """

    characters: NDArray[np.int32]
    letters: NDArray[np.bool_]
    digits: NDArray[np.bool_]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Letters":
        """Those of K texts."""
        sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        characters = np.zeros((len(texts), int(sizes.max(initial=0))), dtype=np.int32)
        points = np.frombuffer("".join(texts).encode("utf-32-le", errors="surrogatepass"), dtype=np.int32)
        characters[np.arange(characters.shape[1]) < sizes[:, None]] = points
        each, number = np.unique(characters, return_inverse=True)
        kinds = [(one.isalpha(), one.isdigit()) for one in map(chr, each.tolist())]
        kind = np.asarray(kinds, dtype=bool).reshape(-1, 2)[number.reshape(characters.shape)]
        return cls(characters, kind[..., 0], kind[..., 1], sizes)

    def fitting(self, pattern: str, start: int = 0) -> NDArray[np.bool_]:
        """bool (K,): which texts go on with the pattern at ``start``, one character at least."""
        is_open = self.digits if are_digits(pattern) else self.letters
        may = (self.sizes > 0) & (self.sizes <= len(pattern) - start)
        for place, wanted in enumerate(pattern[start : start + self.characters.shape[1]]):
            own = is_open[:, place] if wanted == GAP else self.characters[:, place] == ord(wanted)
            may &= own | (self.sizes <= place)
        return may
