"""Words for a blank: proposed by beams from the left and with both sides, and by counts; ranked by the whole text.

A word may be of any length from 1 to L codes. All lengths are looked for at once, what stands before is read once:

    left      from p(word | before), code by code: after each code the likeliest beginnings of words go on,
              and each of them with p(the word ends here) is a proposal of its own, whatever its length
    both      from p(word | before, behind, length), all lengths in one batch (models that answer given both sides)
    counts    words that an n-gram model finds likely between their neighbours (``anyfill.text.ngram``), if there is one

Proposals only say what is compared. The ranking is by p(before, word, behind), read with a cache of what they share.
Where nothing stands behind, by p(before, word, the word ends), that is

    log p(before, word) + log sum over codes c that cannot go on with a word of p(c | before, word).

A model may answer a blank better directly, given both sides, than by p(text), if it was trained for blanks (how much
better, docs/results/cloze.md). ``TextModel.readings`` (a, d) then ranks by

    p(before, word, behind)^a  p(word | before, behind, its number of codes)^d,

which is p(text) alone where they are (1, 0). Numbers of codes are compared by the first factor.

A word is letters and digits, with apostrophes or hyphens between them (``is_one_word``). Where some of its letters are
known (``anyfill.text.patterns``) the search from the left takes only codes that go on with the pattern; and if few
spellings fit, all of them are compared, and nothing can be missed. How wide the search is, and how many are few, says a
``Breadth``: ``WIDE``, or ``NARROW`` for one of several blanks of which letters are known.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import shared_prefix_log_prob
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import step_factorization
from anyfill.samplers import beam_search, can_search
from anyfill.text.blanks import BlankWindow, Sheet, is_one_word
from anyfill.text.candidates import MAX_LISTED, Candidate, Tried
from anyfill.text.model import TextModel
from anyfill.text.patterns import GAP, fitting, spellings
from anyfill.text.vocabularies import Words, encode_text
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
WIDTH_BOTH, KEPT_BOTH, ALL_BOTH, MAX_BOTH = 6, 3, 32, 6
"""With both sides: beginnings that go on and proposals, for each length from two codes up; of one code, or where there
is one length; the longest word that is looked for so."""
_ROWS = 128


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


def can_search_words(model: Model) -> bool:
    """Whether the network reads from left to right with a cache that can be copied."""
    nothing = torch.zeros(1, model.variables, dtype=torch.bool)
    reads = step_factorization(model.factorizations, Question(nothing, ~nothing), model.order, order=model.order)
    return can_search(model) and model.order == Increasing() and reads is not None


def word_candidates(
    loaded: TextModel,
    sheet: Sheet,
    blank: int,
    window: BlankWindow,
    *,
    proposed: Iterable[str] = (),
    breadth: Breadth = WIDE,
) -> Iterator[tuple[tuple[list[Candidate], Tried] | None, float]]:
    """Words for one blank, best first: nothing yet and the share that is done, then those.

    Args:
        loaded: what answers; ``can_search_words`` of its model.
        sheet: the text that the window is of.
        blank: its number there.
        window: what is given around it.
        proposed: words that are compared, too.
        breadth: how much is compared.
    """
    model, lengths, lead = loaded.model, window.blanks[0], sheet.leads[blank]
    codes = word_codes(sheet.vocabulary, lead)
    before, behind = window.given
    is_closed = bool(len(behind)) or (loaded.lines and bool(loaded.lengths))
    found: dict[str, Tensor] = {}
    listed = spellings(lengths.pattern, breadth.listed) if lengths.pattern else None

    def add(way: Tensor) -> None:
        answer = sheet.answer(blank, way)
        if answer is not None and answer not in found:
            canonical = sheet.vocabulary.encode(lead + answer).long()
            if lengths.minimum <= len(canonical) <= lengths.maximum:
                found[answer] = canonical

    if listed is None:
        texts = _texts_of(sheet.vocabulary) if lengths.pattern else ()
        spelt = _Spelt(lengths.pattern, lead, texts)
        for way in _from_the_left(model, before, codes, window, spelt, breadth):
            add(way)
        yield None, 0.3
        if not lengths.pattern.strip(GAP):  # which knows nothing of letters: hardly one of its words would fit
            for way in _from_both_sides(model, window, codes, spelt):
                add(way)
        yield None, 0.5
    for word in proposed if listed is None else listed:
        with suppress(ValueError):  # of characters that the model does not have
            add(encode_text(sheet.vocabulary, lead + word))
    if not found:
        raise refuse("answers", expected="a word that can be written there", got="none")
    answers = list(found)
    sizes = torch.tensor([len(before) + len(found[answer]) + len(behind) for answer in answers])
    x = torch.zeros(len(answers), model.variables, dtype=torch.int64)
    for row, answer in enumerate(answers):
        x[row, : int(sizes[row])] = torch.cat([before, found[answer], behind])
    value = _side_by_side(model, x, sizes, None if is_closed else codes.behind)
    yield None, 0.9
    if window.whole and loaded.lengths:
        shares = [loaded.length_log_share(size) for size in sizes.tolist()]
        value = value + torch.tensor(shares, dtype=torch.float64)
    whole, direct = loaded.readings
    if direct and len(behind):
        value = whole * value + direct * direct_log_probs(model, window, [found[answer] for answer in answers])
    share = value.softmax(0).tolist()
    ranked = [Candidate((one,), (found[one],), nats, part) for one, nats, part in zip(answers, value.tolist(), share)]
    several = lengths.maximum - lengths.minimum + 1
    tried = Tried(several, several, 0, 0 if listed is None else several)
    yield (sorted(ranked, key=lambda one: -one.log_prob), tried), 1.0


def direct_log_probs(model: Model, window: BlankWindow, words: list[Tensor]) -> Tensor:
    """float64 (K,): log p of each of K words given both sides and its number of codes, these read once for each."""
    network = model.network
    if not isinstance(network, Windowed):
        raise refuse("word search", expected="a network with a cache", got=type(network).__name__)
    value = torch.zeros(len(words), dtype=torch.float64)
    for size in {len(word) for word in words}:
        some = [number for number, word in enumerate(words) if len(word) == size]
        codes = torch.stack([words[number] for number in some])
        row = window.row((size,), model.variables)
        question = Question(row.given.unsqueeze(0), row.asked.unsqueeze(0))
        with model.evaluating():
            first, cache = network.open(row.x.unsqueeze(0), chain_rank(model.order, question))
            params = first.expand(len(some), -1)
            cache = network.select(cache, torch.zeros(len(some), dtype=torch.int64))
            for step in range(size):
                place = torch.full((len(some), 1), row.places[0].start + step)
                log_probs = _finite(marginals_at(model.likelihood, params.unsqueeze(1), place)).log_probs[:, 0]
                value[some] += log_probs.double().gather(1, codes[:, step : step + 1]).squeeze(1)
                if step + 1 < size:
                    params, cache = network.extend(codes[:, step], cache)
    return value


def _side_by_side(model: Model, x: Tensor, sizes: Tensor, ends: Tensor | None) -> Tensor:
    """float64: log p of rows, and of a code of ``ends`` behind each; those of one length are read side by side."""
    order = sizes.argsort(stable=True)
    value = torch.cat([*shared_prefix_log_prob(model, x[order], sizes[order], ends=ends, rows_per_pass=_ROWS)])
    return value[order.argsort()]


def _finite(marginals: object) -> FiniteMarginals:
    if not isinstance(marginals, FiniteMarginals):
        raise refuse("word search", expected="values that can be listed", got=type(marginals).__name__)
    return marginals


class _Spelt(NamedTuple):
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
def _texts_of(vocabulary: Vocabulary) -> tuple[str, ...]:
    """What each code stands for by itself, "" where that is no text."""
    plain = vocabulary.plain
    texts = [plain.decode(torch.tensor([code])) for code in range(plain.size)]
    return tuple("" if "\ufffd" in text else text for text in texts) + ("",) * (vocabulary.size - plain.size)


def _from_the_left(
    model: Model, before: Tensor, codes: WordCodes, window: BlankWindow, spelt: _Spelt, breadth: Breadth
) -> list[Tensor]:
    """The codes of words that are likely from what stands before, likeliest first."""
    network, start, variables = model.network, len(before), model.variables
    longest = window.blanks[0].maximum
    if not isinstance(network, Windowed):
        return []
    x = torch.zeros(1, variables, dtype=torch.int64)
    x[0, :start] = before
    asked = (torch.arange(variables) < start + longest + 1).unsqueeze(0)
    ended: list[tuple[float, Tensor]] = []
    shortest = window.blanks[0].minimum
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
            place = torch.full((len(ways), 1), start + step)
            log_probs = _finite(marginals_at(model.likelihood, params.unsqueeze(1), place)).log_probs[:, 0].double()
            if step >= shortest:
                closing = torch.where(codes.behind, log_probs, -torch.inf).logsumexp(1)
                may_end = spelt.ended(ways).tolist()
                ended += [one for one, may in zip(zip((score + closing).tolist(), ways), may_end) if may]
            if step == longest:
                break
            allowed = spelt.allowed(ways, codes)
            total = (score.unsqueeze(1) + torch.where(allowed, log_probs, -torch.inf)).flatten()
            count = min(breadth.width, int(total.isfinite().sum()))
            if not count:
                break
            score, best = total.topk(count)
            parent, code = best.div(allowed.shape[1], rounding_mode="floor"), best % allowed.shape[1]
            ways = torch.cat([ways[parent], code.unsqueeze(1)], 1)
            params, cache = network.extend(code, network.select(cache, parent))
    ended.sort(key=lambda one: -one[0])
    return [way for _, way in ended[: breadth.left]]


def _from_both_sides(model: Model, window: BlankWindow, codes: WordCodes, spelt: _Spelt) -> Iterator[Tensor]:
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
