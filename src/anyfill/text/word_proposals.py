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
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import step_factorization
from anyfill.samplers import beam_search
from anyfill.text.blanks import BlankWindow, is_one_word
from anyfill.text.candidates import MAX_LISTED
from anyfill.text.patterns import fitting
from anyfill.text.vocabularies import Words
from anyfill.text.vocabulary import Vocabulary


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
    plain = vocabulary.plain
    texts = [plain.decode(torch.tensor([code])) for code in range(plain.size)] + [""] * (vocabulary.size - plain.size)
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


class Spelt(NamedTuple):
    """A pattern that a word must fit, what its first code brings along, and the texts of all codes (V,)."""

    pattern: str
    lead: str
    texts: tuple[str, ...]

    def allowed(self, ways: Tensor, codes: WordCodes) -> Tensor:
        """bool (B, V): what each of the ways (B, L) may go on with."""
        if not self.pattern:
            return (codes.first if ways.shape[1] == 0 else codes.inside).expand(len(ways), -1)
        may = torch.zeros(len(ways), len(codes.first), dtype=torch.bool)
        for row, way in enumerate(ways.tolist()):
            if not way and self.lead:
                size = len(self.lead)
                behind = tuple(text[size:] if text.startswith(self.lead) else "" for text in self.texts)
                may[row, list(fitting(behind, self.pattern, 0))] = True
                may[row] |= torch.tensor([text == self.lead for text in self.texts])
            else:
                may[row, list(fitting(self.texts, self.pattern, self._written(way)))] = True
        return may

    def _written(self, way: list[int]) -> int:
        return sum(len(self.texts[code]) for code in way) - (len(self.lead) if way else 0)

    def ended(self, ways: Tensor) -> Tensor:
        """bool (B,): which of the ways (B, L) may be whole words."""
        if not self.pattern:
            return torch.ones(len(ways), dtype=torch.bool)
        return torch.tensor([self._written(way) == len(self.pattern) for way in ways.tolist()])


@lru_cache(maxsize=4)
def texts_of(vocabulary: Vocabulary) -> tuple[str, ...]:
    """What each code stands for by itself, "" where that is no text."""
    plain = vocabulary.plain
    texts = [plain.decode(torch.tensor([code])) for code in range(plain.size)]
    return tuple("" if "\ufffd" in text else text for text in texts) + ("",) * (vocabulary.size - plain.size)


def from_the_left(model: Model, window: BlankWindow, codes: WordCodes, spelt: Spelt, breadth: Breadth) -> list[Tensor]:
    """The codes of words that are likely from what stands before, likeliest first.

    A beginning that is less likely than all words that are kept so far cannot become one of them, and goes no further.
    """
    network, before, variables = model.network, window.given[0], model.variables
    start, longest, shortest = len(before), window.blanks[0].maximum, window.blanks[0].minimum
    if not isinstance(network, Windowed):
        return []
    x = torch.zeros(1, variables, dtype=torch.int64)
    x[0, :start] = before
    asked = (torch.arange(variables) < start + longest + 1).unsqueeze(0)
    ended: list[tuple[float, Tensor]] = []
    with model.evaluating():
        params, cache = network.open(x, chain_rank(model.order, Question(torch.zeros_like(asked), asked)))
        if start:
            ahead, cache = network.advance(x[:, :start], cache)
            params = ahead[:, -1]
        ways, score = torch.zeros(1, 0, dtype=torch.int64), torch.zeros(1, dtype=torch.float64)
        for step in range(longest + 1):
            if start + step >= variables:  # nothing can stand behind: the word may end here
                ended += [one for one, may in zip(zip(score.tolist(), ways), spelt.ended(ways).tolist()) if may]
                break
            log_probs = code_log_probs(model, params, start + step)
            if step >= shortest:
                closing = torch.where(codes.behind, log_probs, -torch.inf).logsumexp(1)
                may_end = spelt.ended(ways).tolist()
                ended += [one for one, may in zip(zip((score + closing).tolist(), ways), may_end) if may]
                ended = sorted(ended, key=lambda one: -one[0])[: breadth.left]
            if step == longest:
                break
            allowed = spelt.allowed(ways, codes)
            total = (score.unsqueeze(1) + torch.where(allowed, log_probs, -torch.inf)).flatten()
            least = ended[-1][0] if len(ended) == breadth.left else -math.inf
            count = min(breadth.width, int((total > least).sum()))
            if not count:
                break
            score, best = total.topk(count)
            parent, code = best.div(allowed.shape[1], rounding_mode="floor"), best % allowed.shape[1]
            ways = torch.cat([ways[parent], code.unsqueeze(1)], 1)
            params, cache = network.extend(code, network.select(cache, parent))
    return [way for _, way in sorted(ended, key=lambda one: -one[0])[: breadth.left]]


def from_both_sides(model: Model, window: BlankWindow, codes: WordCodes, spelt: Spelt) -> Iterator[Tensor]:
    """The codes of words that are likely given what stands on both sides, for each length."""
    lengths, variables = window.blanks[0], model.variables
    longest = max(lengths.minimum, min(lengths.maximum, MAX_BOTH))
    rows = [window.row((size,), variables) for size in range(lengths.minimum, longest + 1)]
    question = Question(torch.stack([row.given for row in rows]), torch.stack([row.asked for row in rows]))
    if step_factorization(model.factorizations, question, model.order, order=model.order) is None:
        return
    allowed = codes.inside.expand(variables, -1).clone()
    first = rows[0].places[0].start
    allowed[first] = codes.first
    alone = allowed
    if spelt.pattern:  # of words of one code those that are as long as they must be
        alone = allowed.clone()
        long = [len(text) == len(spelt.lead) + len(spelt.pattern) for text in spelt.texts]
        alone[first] &= torch.tensor(long)
    x = torch.stack([row.x for row in rows])
    one, others = (0, 1, ALL_BOTH, ALL_BOTH, alone), (1, len(rows), WIDTH_BOTH, KEPT_BOTH, allowed)
    for start, stop, width, keep, may in (one, others):
        some = slice(start, stop)
        if start == stop or not bool(may[first].any()):
            continue
        asked = Question(question.given[some], question.asked[some])
        for row, ways in zip(rows[some], beam_search(model, x[some], asked, width=width, allowed=may)):
            for way in ways[:keep]:
                yield way[row.places[0]]


def code_log_probs(model: Model, params: Tensor, place: int) -> Tensor:
    """float64 (B, V) from parameters (B, P) of the variable at ``place``."""
    at = torch.full((len(params), 1), place)
    return _finite(marginals_at(model.likelihood, params.unsqueeze(1), at)).log_probs[:, 0].double()


def _finite(marginals: object) -> FiniteMarginals:
    if not isinstance(marginals, FiniteMarginals):
        raise refuse("word search", expected="values that can be listed", got=type(marginals).__name__)
    return marginals
