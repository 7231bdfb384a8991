"""Blanks in a text, filled in the likeliest ways that were found.

Blanks that one window of the model holds together are answered jointly (``anyfill.text.candidates``). In a
text longer than a row there are several groups of them (``anyfill.text.blanks``), answered one after another:
the ``n`` best ways so far are each gone on with, and are then ranked by

    p(answers | text)  ~  product over groups of p(answers of the group | its window, answers before),

each factor being a candidate's share among the candidates of its window. Where one window holds the whole text this is
the ranking by p(text). Blanks that are words are answered one after another, too (``anyfill.text.word_search``), and if
one window holds the whole text the best ways are then ranked by p(text).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.evaluation import shared_prefix_log_prob
from anyfill.text.blanks import Sheet, blank_groups, blank_window, sheet_of
from anyfill.text.candidates import Candidate, Tried, candidates
from anyfill.text.counting import CountedPlace, counted_log_prob
from anyfill.text.fills import Fill, Fills
from anyfill.text.folding import as_text8
from anyfill.text.model import TextModel
from anyfill.text.ngram import KneserNey
from anyfill.text.patterns import GAP
from anyfill.text.sampling import SamplingOptions
from anyfill.text.scoring import Seen, log_prob_of
from anyfill.text.template import Template
from anyfill.text.vocabulary import is_folded
from anyfill.text.word_proposals import NARROW
from anyfill.text.word_search import can_search_words, word_candidates
from anyfill.text.words import Words

_KEPT, _KEPT_SPELT = 4, 2
"""Ways to fill the blanks so far that are gone on with, where blanks are words, and where letters of all are known."""
_COMPARED = 64
"""Ways to fill all blanks, found one after another, that are compared as whole texts."""


@dataclass(frozen=True, slots=True, eq=False)
class _Partial:
    """Answers to the first blanks, their share, and their share by p(text) alone."""

    answers: tuple[str, ...] = ()
    codes: tuple[Tensor, ...] = ()
    log_share: float = 0.0
    log_posterior: float = 0.0

    def then(self, one: Candidate) -> "_Partial":
        """With the answers to the next group of blanks."""
        log_share = self.log_share + math.log(max(one.share, 1e-300))
        log_posterior = self.log_posterior + math.log(max(one.posterior, 1e-300))
        return _Partial((*self.answers, *one.answers), (*self.codes, *one.codes), log_share, log_posterior)


def fill_blanks(
    loaded: TextModel,
    template: Template,
    *,
    n: int = 5,
    draws: int | None = None,
    sampling: SamplingOptions,
    counts: KneserNey | None = None,
    weights: tuple[float, float] = (1.0, 0.0),
) -> Iterator[tuple[Fills | None, float]]:
    """Fill the blanks: nothing yet and the share of the work that is done, again and again, and at last the fills.

    Args:
        loaded: what answers.
        template: the text with its blanks.
        n: how many fills.
        draws: for each combination of lengths; None = as many as seem right.
        sampling: how to draw.
        counts: n-grams of words that propose words, too.
        weights: a and b: words are ranked by p(model)^a p(counts)^b.

    Raises:
        ValueError: the text has characters that the model does not know, a blank has no room in a row of the model, the
            model was not trained to answer this, or nothing that was drawn can be written.
    """
    require_count("--n", n)
    if draws is not None:
        require_count("--draws", draws)
    length = loaded.length
    sheet = sheet_of(template, loaded.vocabulary, lines=loaded.lines)
    size = sum(map(len, sheet.stretches)) + sum(blank.maximum for blank in template.blanks)
    if loaded.lines and size > length:
        expected = f"a line of at most {length} {sheet.vocabulary.units}, as the model was trained on"
        raise refuse("text", expected=expected, got=size)
    is_free = draws is None and sampling.is_usual
    words = searches_words(loaded, template, is_free=is_free)
    groups = blank_groups(sheet, length)
    if words:  # one after another
        groups = [range(blank, blank + 1) for group in groups for blank in group]
    known = all(blank.pattern.strip(GAP) for blank in template.blanks)
    generator = sampling.generator()
    best, found, most = [_Partial()], list[Candidate](), Tried(0, 0, 0)
    complete = len(groups) == 1  # of several groups only the best ways are gone on with
    for number, group in enumerate(groups):
        ways: list[_Partial] = []
        for turn, way in enumerate(best):
            window = blank_window(sheet, group, way.codes, length)
            if words and window.blanks[0].is_word:
                place = None if counts is None else _counted_place(counts, template, way.answers)
                how: dict[str, Any] = {"counted": place, "weights": weights, "n": n}
                if len(groups) > 1 and window.blanks[0].pattern.strip(GAP):  # its letters say most of it; others wait
                    by_text = replace(loaded, readings=(sum(loaded.readings), 0.0))
                    work = word_candidates(by_text, sheet, group.start, window, breadth=NARROW, **how)
                else:
                    work = word_candidates(loaded, sheet, group.start, window, **how)
            else:
                work = candidates(
                    loaded, sheet, group, window, draws=draws, n=n, sampling=sampling, generator=generator
                )
            for result, done in work:
                if result is None:
                    yield None, 0.999 * (number + (turn + done) / len(best)) / len(groups)
                    continue
                answers, tried = result
                found = answers if turn == 0 else found
                complete = complete and tried.is_complete
                most = max(most, tried, key=lambda one: one.combinations)
                ways += [way.then(one) for one in answers]
        kept = n if number + 1 == len(groups) or not words else min(n, _KEPT_SPELT if known else _KEPT)
        if words and len(groups) > 1 and number + 1 == len(groups) and size <= length:
            some = sorted(ways, key=lambda one: -one.log_share)[:_COMPARED]
            ways = _compared(loaded, sheet, some, counts, weights)
        best = sorted(ways, key=lambda one: -one.log_share)[:kept]
    seen: Seen = {}
    fills = tuple(_filled(loaded, sheet, way, seen) for way in best)
    notes = _notes(sheet)
    is_between = len(groups) == 1 and bool(template.stretches[-1])
    if words and (ranked := _ranking(loaded, weights, is_counted=counts is not None, is_between=is_between)):
        notes = (*notes, f"words are ranked by {ranked}; log2 p is that of the text")
    if words and not is_free:
        notes = (*notes, "words of which letters are known are searched for, not drawn, however one draws")
    covered = most.covered if len(groups) == 1 and not words else None
    effort = (len(found), len(groups), size <= length, complete, most, covered, notes)
    yield Fills(fills, template, n, sampling, loaded.name, *effort), 1.0


def searches_words(loaded: TextModel, template: Template, *, is_free: bool) -> bool:
    """Whether blanks that are words are searched for; drawn if that is asked for, unless letters of them are known."""
    # Whole spellings are compared, however one draws.
    wanted = is_free or any(blank.pattern for blank in template.blanks)
    return wanted and any(blank.is_word for blank in template.blanks) and can_search_words(loaded.model)


def _counted_place(counts: KneserNey, template: Template, answers: tuple[str, ...]) -> CountedPlace:
    """What counts say of the first blank that is not answered, of its sentence and up to the next blank."""
    before = replace(template, stretches=template.stretches[: len(answers) + 1]).filled(answers)
    is_last = len(answers) + 1 == len(template.blanks)
    return CountedPlace.of(counts, before, template.stretches[len(answers) + 1], is_last=is_last)


def _ranking(loaded: TextModel, weights: tuple[float, float], *, is_counted: bool, is_between: bool) -> str:
    """By what words are ranked, nothing if it is p(text); the direct answer counts for one between two texts."""
    (whole, direct), (own, counted) = loaded.readings, weights
    if not is_between:
        whole, direct = whole + direct, 0.0
    parts = (
        ("p(text)", own * whole),
        ("p(word | both sides)", own * direct),
        ("p(counts)", counted if is_counted else 0.0),
    )
    said = " ".join(f"{name}^{power:.3g}" for name, power in parts if power)
    return "" if said == "p(text)^1" else said


def _compared(
    loaded: TextModel, sheet: Sheet, ways: list[_Partial], counts: KneserNey | None, weights: tuple[float, float]
) -> list[_Partial]:
    """The ways with their shares by the probability of the whole text."""
    rows = [sheet.codes(way.codes, len(way.codes)) for way in ways]
    sizes = torch.tensor([len(row) for row in rows])
    x = torch.zeros(len(rows), loaded.length, dtype=torch.int64)
    for number, row in enumerate(rows):
        x[number, : len(row)] = row
    value = torch.cat([*shared_prefix_log_prob(loaded.model, x, sizes)])
    if loaded.lengths:
        value = value + torch.tensor([loaded.length_log_share(size) for size in sizes.tolist()], dtype=torch.float64)
    posterior = value.log_softmax(0).tolist()
    value = weights[0] * sum(loaded.readings) * value
    if counts is not None and weights[1]:
        counted = [counted_log_prob(counts, sheet.template.filled(way.answers)) for way in ways]
        value = value + weights[1] * torch.tensor(counted, dtype=torch.float64)
    parts = zip(ways, value.log_softmax(0).tolist(), posterior)
    return [replace(way, log_share=share, log_posterior=plain) for way, share, plain in parts]


def _filled(loaded: TextModel, sheet: Sheet, way: _Partial, seen: Seen) -> Fill:
    text = sheet.template.filled(way.answers)
    bits = log_prob_of(loaded, text, seen=seen) / math.log(2)
    return Fill(text, way.answers, bits, math.exp(way.log_share), math.exp(way.log_posterior))


def _notes(sheet: Sheet) -> tuple[str, ...]:
    """What folding changed of the given text, and which words or characters of it have no code."""
    given, plain = sheet.template.stretches, sheet.vocabulary.plain
    if is_folded(sheet.vocabulary):
        seen = "____".join(map(as_text8, given)).strip()
        return () if seen == "____".join(given).strip() else (f"the model reads {seen!r}",)
    if plain.unknown_code is None:
        return ()
    names = plain.split(" ".join(given)) if isinstance(plain, Words) else list("".join(given))
    unknown = [name for name in dict.fromkeys(names) if int(plain.encode(name)[0]) == plain.unknown_code]
    shown = ", ".join(map(repr, unknown[:8])) + (" …" if len(unknown) > 8 else "")
    return (f"unknown to the model, read as one symbol: {shown}",) if unknown else ()
