"""Words that may stand in a blank: which a model finds likely from the left, and given both sides.

A word may be of any length from 1 to L codes. All lengths are looked for at once, what stands before is read once:

    left      from p(word | before), code by code: after each code the likeliest beginnings of words go on,
              and each of them with p(the word ends here) is a proposal of its own, whatever its length
    both      from p(word | before, behind, length), all lengths in one batch (models that answer given both sides)

A word is letters and digits, with apostrophes or hyphens between them (``is_one_word``). Where some of its letters are
known (``anyfill.text.patterns``) the search from the left takes only codes that go on with the pattern. How wide the
search is says a ``Breadth``: ``WIDE``, or ``NARROW`` for one of several blanks of which letters are known.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.supported import step_factorization
from anyfill.samplers import beam_search
from anyfill.text.blanks import is_one_word
from anyfill.text.encoding import texts_of
from anyfill.text.listing import MAX_LISTED
from anyfill.text.patterns import Letters
from anyfill.text.vocabulary import Vocabulary
from anyfill.text.word_window import ReadWindow
from anyfill.text.words import Words


class Breadth(NamedTuple):
    """How much is compared.

    Attributes:
        width: beginnings of words that go on, from the left.
        left: proposals from the left that are compared.
        listed: spellings of a pattern that are all compared.
    """

    width: int
    left: int
    listed: int


WIDE, NARROW = Breadth(48, 64, MAX_LISTED), Breadth(12, 16, 64)
WIDTH_BOTH, KEPT_BOTH, ALL_BOTH, MAX_BOTH = 6, 3, 32, 4
"""With both sides: beginnings that go on and proposals, for each length from two codes up; of one code, or where there
is one length; the longest word that is looked for so."""


class WordCodes(NamedTuple):
    """Which codes bool (V,) a word may begin and go on with, and which may stand behind it."""

    first: Tensor
    inside: Tensor
    behind: Tensor


@lru_cache(maxsize=16)
def word_codes(vocabulary: Vocabulary, lead: str) -> WordCodes:
    """The codes of words that stand behind ``lead``, a space that the first code brings along, or nothing."""
    plain, texts = vocabulary.plain, texts_of(vocabulary)
    if isinstance(plain, Words):
        first = [is_one_word(text) and code != plain.unknown_code for code, text in enumerate(texts)]
        return WordCodes(torch.tensor(first), torch.zeros(len(texts)).bool(), torch.ones(len(texts)).bool())
    unknown = plain.unknown_code
    inside = [bool(text) and all(map(_goes_on, text)) and code != unknown for code, text in enumerate(texts)]
    first = inside
    if lead:
        first = [text == lead or (text.startswith(lead) and all(map(_goes_on, text[1:]))) for text in texts]
    behind = [not text or not _goes_on(text[0]) for text in texts]
    return WordCodes(torch.tensor(first), torch.tensor(inside), torch.tensor(behind))


def _goes_on(character: str) -> bool:
    return character.isalnum() or character in "'’-\ufffd"  # the last: bytes of a character


class PieceLetters(NamedTuple):
    """How the codes (V,) of a vocabulary are spelt by themselves, and as the first of a word, behind what it leads."""

    inside: Letters
    first: Letters
    leads: Tensor
    """bool (V,): codes that are nothing but that."""


@lru_cache(maxsize=16)
def piece_letters(vocabulary: Vocabulary, lead: str) -> PieceLetters:
    """Those of a vocabulary, for words behind ``lead``, a space that the first code brings along, or nothing."""
    texts = ["" if "\ufffd" in text else text for text in texts_of(vocabulary)]
    behind = [text[len(lead) :] if text.startswith(lead) else "" for text in texts]
    is_lead = torch.tensor([bool(lead) and text == lead for text in texts])
    return PieceLetters(Letters.of(texts), Letters.of(behind), is_lead)


@dataclass(frozen=True, slots=True, eq=False)
class Spelt:
    """How a word must be spelt.

    Attributes:
        pattern: "" = as it likes.
        letters: of the codes that it is written in; nobody asks for them where there is no pattern.
    """

    pattern: str
    letters: PieceLetters | None = None
    _may: dict[int, Tensor] = field(default_factory=dict[int, Tensor], init=False, repr=False)

    @classmethod
    def of(cls, pattern: str, vocabulary: Vocabulary, lead: str) -> "Spelt":
        """As the pattern says, in the codes of a vocabulary."""
        return cls(pattern, piece_letters(vocabulary, lead) if pattern else None)

    def allowed(self, ways: Tensor, codes: WordCodes) -> Tensor:
        """bool (B, V): what each of the ways (B, L) may go on with."""
        if self.letters is None:
            return (codes.first if ways.shape[1] == 0 else codes.inside).expand(len(ways), -1)
        return torch.stack([self._goes_on(written, bool(ways.shape[1])) for written in self._written(ways).tolist()])

    def _goes_on(self, written: int, is_begun: bool) -> Tensor:
        """bool (V,): what goes on behind so many characters; -1 stands for the beginning of a word."""
        letters = self._letters()
        key = written if is_begun else -1
        if key not in self._may:
            fitting = (letters.inside if is_begun else letters.first).fitting(self.pattern, written)
            self._may[key] = torch.from_numpy(fitting) | (False if is_begun else letters.leads)
        return self._may[key]

    def alone(self) -> Tensor:
        """bool (V,): which codes have as many characters as the word must have."""
        return torch.from_numpy(self._letters().first.sizes == len(self.pattern))

    def ended(self, ways: Tensor) -> Tensor:
        """bool (B,): which of the ways (B, L) may be whole words."""
        if self.letters is None:
            return torch.ones(len(ways), dtype=torch.bool)
        return self._written(ways) == len(self.pattern)

    def _written(self, ways: Tensor) -> Tensor:
        """int64 (B,): how many characters of the word the ways (B, L) have written."""
        letters = self._letters()
        first, inside = torch.from_numpy(letters.first.sizes), torch.from_numpy(letters.inside.sizes)
        return first[ways[:, :1]].sum(1) + inside[ways[:, 1:]].sum(1)

    def _letters(self) -> PieceLetters:
        if self.letters is None:
            raise refuse("letters", expected="those of the codes", got="none")
        return self.letters


def from_the_left(read: ReadWindow, codes: WordCodes, spelt: Spelt, breadth: Breadth) -> list[Tensor]:
    """The codes of words that are likely from what stands before, likeliest first.

    A beginning that is less likely than all words that are kept so far cannot become one of them, and goes no further.
    """
    model, blank, variables = read.model, read.window.blanks[0], read.model.variables
    if not isinstance(model.network, Windowed):
        return []
    network, start, longest = read.network, len(read.window.given[0]), blank.maximum
    _, known, cache = read.before()
    params, room = known[:, -1], min(variables, start + longest + 1) + 1
    ended: list[tuple[float, Tensor]] = []
    ways, score = torch.zeros(1, 0, dtype=torch.int64), torch.zeros(1, dtype=torch.float64)
    with model.evaluating():
        for step in range(longest + 1):
            if start + step >= variables:  # nothing can stand behind: the word may end here
                whole = spelt.ended(ways)
                ended += zip(score[whole].tolist(), ways[whole])
                break
            log_probs = code_log_probs(model, params, start + step)
            if step >= blank.minimum:
                whole = spelt.ended(ways).nonzero().flatten()
                closing = torch.where(codes.behind, log_probs[whole], -torch.inf).double().logsumexp(1)
                ended += zip((score[whole] + closing).tolist(), ways[whole])
                ended = sorted(ended, key=lambda one: -one[0])[: breadth.left]
            if step == longest:
                break
            # The best of all are among the best of each beginning: only those are added up, in 64 bits.
            allowed = torch.where(spelt.allowed(ways, codes), log_probs, -torch.inf)
            each, code = allowed.topk(min(breadth.width, allowed.shape[1]), 1)
            total = (score.unsqueeze(1) + each.double()).flatten()
            least = ended[-1][0] if len(ended) == breadth.left else -math.inf
            count = min(breadth.width, int((total > least).sum()))
            if not count:
                break
            score, best = total.topk(count)
            parent, code = best.div(each.shape[1], rounding_mode="floor"), code.flatten()[best]
            ways = torch.cat([ways[parent], code.unsqueeze(1)], 1)
            params, cache = network.extend(code, network.select(cache, parent, room=room))
    return [way for _, way in sorted(ended, key=lambda one: -one[0])[: breadth.left]]


def from_both_sides(read: ReadWindow, codes: WordCodes, spelt: Spelt) -> Iterator[Tensor]:
    """The codes of words that are likely given what stands on both sides, for each length."""
    model, lengths, first = read.model, read.window.blanks[0], len(read.window.given[0])
    longest = max(lengths.minimum, min(lengths.maximum, MAX_BOTH))
    sizes = [*range(lengths.minimum, longest + 1)]
    question = read.question(sizes)
    if step_factorization(model.factorizations, question, model.order, order=model.order) is None:
        return
    allowed = codes.inside.expand(model.variables, -1).clone()
    allowed[first] = codes.first
    alone = allowed
    if spelt.pattern:  # of words of one code those that are as long as they must be
        alone = allowed.clone()
        alone[first] &= spelt.alone()
    read.both(sizes)  # together
    one, others = (sizes[:1], ALL_BOTH, ALL_BOTH, alone), (sizes[1:], WIDTH_BOTH, KEPT_BOTH, allowed)
    for some, width, keep, may in (one, others):
        if not some or not bool(may[first].any()):
            continue
        x, asked, *opened = read.both(some)
        found = beam_search(model, x, asked, width=width, allowed=may, opened=(opened[0], opened[1]))
        for size, ways in zip(some, found):
            for way in ways[:keep]:
                yield way[first : first + size]


def code_log_probs(model: Model, params: Tensor, place: int) -> Tensor:
    """(B, V): log p of every code, from parameters (B, P) of the variable at ``place``."""
    at = torch.full((len(params), 1), place)
    return _finite(marginals_at(model.likelihood, params.unsqueeze(1), at)).log_probs[:, 0]


def _finite(marginals: object) -> FiniteMarginals:
    if not isinstance(marginals, FiniteMarginals):
        raise refuse("word search", expected="values that can be listed", got=type(marginals).__name__)
    return marginals
