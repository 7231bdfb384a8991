"""Words for a blank: proposed by beams from the left and with both sides, and by counts; ranked by the whole text.

    model     beams from the left and with both sides (``anyfill.text.word_proposals``)
    counts    words that an n-gram model finds likely between their neighbours (``anyfill.text.ngram``), if there is one

Proposals only say what is compared. The ranking is by p(before, word, behind), read with a cache of what they share.
Where nothing stands behind, by p(before, word, the word ends), that is

    log p(before, word) + log sum over codes c that cannot go on with a word of p(c | before, word).

A model may answer a blank better directly, given both sides, than by p(text), if it was trained for blanks, and counts
know words that it does not (how much better, docs/results/cloze.md). ``TextModel.readings`` (a, d) and the weight k of
counts then rank by

    p(before, word, behind)^a  p(word | before, behind, its number of codes)^d  p(word between both sides, by counts)^k,

which is p(text) alone where they are (1, 0) and 0. Where nothing stands behind, a + d is the power of the first.
Numbers of codes are compared by the first factor and the last. Where all three have a say, p(text), which costs most,
is asked of the ``SHORTLIST`` words of greatest D + K alone, or of n, if more are wanted; D and K are the logarithms of
the other two. ``Candidate.posterior`` is the share by p(text) alone: what ``score`` makes of the same words.

Where some letters of a word are known (``anyfill.text.patterns``) and few spellings fit, all of them are compared, and
nothing can be missed.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import shared_prefix_log_prob
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question
from anyfill.questions.supported import step_factorization
from anyfill.samplers import can_search
from anyfill.text.blanks import BlankWindow, Sheet
from anyfill.text.candidates import Candidate, Tried
from anyfill.text.counting import CountedPlace
from anyfill.text.encoding import encode_text
from anyfill.text.model import TextModel
from anyfill.text.patterns import GAP, spellings
from anyfill.text.word_proposals import (
    WIDE,
    Breadth,
    Spelt,
    WordCodes,
    code_log_probs,
    from_both_sides,
    from_the_left,
    word_codes,
)
from anyfill.text.word_window import ReadWindow

SHORTLIST = 32
"""Words of which p(text) is asked where counts and the direct answer have been, too."""
_ROWS = 32
"""Texts that are read side by side, of about one length."""


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
    counted: CountedPlace | None = None,
    weights: tuple[float, float] = (1.0, 0.0),
    breadth: Breadth = WIDE,
    n: int = 1,
) -> Iterator[tuple[tuple[list[Candidate], Tried] | None, float]]:
    """Words for one blank, best first: nothing yet and the share that is done, then those.

    Args:
        loaded: what answers; ``can_search_words`` of its model.
        sheet: the text that the window is of.
        blank: its number there.
        window: what is given around it.
        counted: n-grams at that place, which propose words, too.
        weights: of the model's readings and of the n-grams.
        breadth: how much is looked for.
        n: so many are compared at least, if they are found.
    """
    lengths, read = window.blanks[0], ReadWindow(loaded.model, window)
    found: dict[str, Tensor] = {}
    listed = spellings(lengths.pattern, breadth.listed) if lengths.pattern else None
    for one, done in words_for(read, sheet, blank, breadth=breadth, counted=counted):
        if one is None:
            yield None, done
        else:
            found[one[0]] = one[1]
    if not found:
        raise refuse("answers", expected="a word that can be written there", got="none")
    answers = list(found)
    (whole, direct), (own, counting) = loaded.readings, weights
    behind = window.given[1]
    more = torch.zeros(len(answers), dtype=torch.float64)  # what is added to the first factor
    if counted is not None and counting:
        more = counting * torch.from_numpy(counted.log_probs(answers))
    if direct and len(behind):
        most = max(SHORTLIST, n)
        if counted is not None and counting and listed is None and len(answers) > most:
            said = direct_log_probs(read, list(found.values()), beside=more / counting, most=most)
            kept = (said + more / counting).topk(most).indices.sort().values
            said, more, answers = said[kept], more[kept], [answers[number] for number in kept.tolist()]
        else:
            said = direct_log_probs(read, list(found.values()))
        more = more + own * direct * said
    else:
        whole += direct
    yield None, 0.7
    codes = word_codes(sheet.vocabulary, sheet.leads[blank])
    joint = joint_log_probs(loaded, read, codes, [found[one] for one in answers])
    share, posterior = (own * whole * joint + more).softmax(0).tolist(), joint.softmax(0).tolist()
    parts = zip(answers, joint.tolist(), share, posterior)
    ranked = [Candidate((one,), (found[one],), nats, part, plain) for one, nats, part, plain in parts]
    several = lengths.maximum - lengths.minimum + 1
    tried = Tried(several, several, 0, 0 if listed is None else several)
    yield (sorted(ranked, key=lambda one: -one.share), tried), 1.0


def words_for(
    read: ReadWindow,
    sheet: Sheet,
    blank: int,
    *,
    breadth: Breadth = WIDE,
    counted: CountedPlace | None = None,
) -> Iterator[tuple[tuple[str, Tensor] | None, float]]:
    """Each word to compare, once, and its codes; now and then nothing, and the share of the work that is done."""
    lengths, lead = read.window.blanks[0], sheet.leads[blank]
    seen = set[str]()
    for way, done in _proposed(read, sheet, blank, breadth, counted):
        if way is None:
            yield None, done
            continue
        answer = sheet.answer(blank, way)
        if answer is not None and answer not in seen:
            seen.add(answer)
            canonical = sheet.vocabulary.encode(lead + answer).long()
            if lengths.minimum <= len(canonical) <= lengths.maximum:
                yield (answer, canonical), done


def _proposed(
    read: ReadWindow, sheet: Sheet, blank: int, breadth: Breadth, counted: CountedPlace | None
) -> Iterator[tuple[Tensor | None, float]]:
    """The codes of words to compare; now and then nothing, and the share of the work that is done."""
    pattern, lead = read.window.blanks[0].pattern, sheet.leads[blank]
    listed = spellings(pattern, breadth.listed) if pattern else None
    if listed is None:
        codes = word_codes(sheet.vocabulary, lead)
        spelt = Spelt.of(pattern, sheet.vocabulary, lead)
        yield from ((way, 0.0) for way in from_the_left(read, codes, spelt, breadth))
        yield None, 0.3
        if not pattern.strip(GAP):  # which knows nothing of letters: hardly one of its words would fit
            yield from ((way, 0.3) for way in from_both_sides(read, codes, spelt))
        yield None, 0.5
        listed = [] if counted is None else counted.likely(pattern)
    for word in listed:
        with suppress(ValueError):  # of characters that the model does not have
            yield encode_text(sheet.vocabulary, lead + word), 0.5


def joint_log_probs(loaded: TextModel, read: ReadWindow, codes: WordCodes, words: list[Tensor]) -> Tensor:
    """float64 (K,): log p of the window with each of K words, and that each ends where nothing stands behind."""
    model, window = loaded.model, read.window
    before, behind = window.given
    is_closed = bool(len(behind)) or (loaded.lines and bool(loaded.lengths))
    sizes = torch.tensor([len(before) + len(word) + len(behind) for word in words])
    x = torch.zeros(len(words), model.variables, dtype=torch.int64)
    for row, word in enumerate(words):
        x[row, : int(sizes[row])] = torch.cat([before, word, behind])
    value = _side_by_side(read, x, sizes, None if is_closed else codes.behind)
    if window.whole and loaded.lengths:
        shares = [loaded.length_log_share(size) for size in sizes.tolist()]
        value = value + torch.tensor(shares, dtype=torch.float64)
    return value


def direct_log_probs(
    read: ReadWindow, words: list[Tensor], *, beside: Tensor | None = None, most: int | None = None
) -> Tensor:
    """float64 (K,): log p of each of K words given both sides and its number of codes, these read once for each.

    Of a word whose first codes are so unlikely that, with ``beside`` (K,) added, it cannot be one of the ``most``
    greatest, no more is read: -inf. (No code has a probability above 1, so that what is read bounds the whole.)
    """
    model, network, start = read.model, read.network, len(read.window.given[0])
    size = torch.tensor([len(word) for word in words])
    codes = torch.zeros(len(words), int(size.max()), dtype=torch.int64)
    for row, word in enumerate(words):
        codes[row, : len(word)] = word
    value, done = torch.zeros(len(words), dtype=torch.float64), torch.zeros(len(words), dtype=torch.bool)

    def may_be_kept(some: Tensor) -> Tensor:
        if beside is None or most is None or int(done.sum()) < most:
            return torch.ones_like(some, dtype=torch.bool)
        total = value + beside
        return total[some] >= total[done].topk(most).values[-1]

    is_read = torch.tensor([read.is_read(one) for one in size.tolist()])
    with model.evaluating():
        for some in (is_read.nonzero().flatten(), (~is_read).nonzero().flatten()):
            alive = some[may_be_kept(some)]
            sizes, number = size[alive].unique(return_inverse=True)
            if not len(sizes):
                continue
            opened = read.both(sizes.tolist())
            log_probs = code_log_probs(model, opened.params, start)[number, codes[alive, 0]]
            cache, step = opened.cache, 0
            while True:
                value[alive] += log_probs.double()
                step += 1
                done[alive[size[alive] == step]] = True
                longer = ((size[alive] > step) & may_be_kept(alive)).nonzero().flatten()
                if not len(longer):
                    break
                alive = alive[longer]
                cache = network.select(cache, number[longer] if step == 1 else longer)
                params, cache = network.extend(codes[alive, step - 1], cache)
                log_probs = code_log_probs(model, params, start + step)
                log_probs = log_probs.gather(1, codes[alive, step : step + 1]).squeeze(1)
    return torch.where(done, value, -torch.inf)


def _side_by_side(read: ReadWindow, x: Tensor, sizes: Tensor, ends: Tensor | None) -> Tensor:
    """float64: log p of rows, and of a code of ``ends`` behind each; those of one length are read side by side."""
    order = sizes.argsort(stable=True)
    how: dict[str, Any] = {"ends": ends, "rows_per_pass": _ROWS}
    if isinstance(read.model.network, Windowed):
        how["beginning"] = read.before()
    value = torch.cat([*shared_prefix_log_prob(read.model, x[order], sizes[order], **how)])
    return value[order.argsort()]
