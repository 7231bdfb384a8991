"""Blanks in a text, filled in the likeliest ways that were found.

Blanks that one window of the model holds together are answered jointly (``anyfill.text.candidates``). In a
text longer than a row there are several groups of them (``anyfill.text.windows``), answered one after another:
the ``count`` best ways so far are each gone on with, and are then ranked by

    p(answers | text)  ~  product over groups of p(answers of the group | its window, answers before),

each factor being a candidate's share among the candidates of its window. Where one window holds the whole text this is
the ranking by p(text).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.text.alphabet import Sheet, sheet_of, unit
from anyfill.text.blanks import Template
from anyfill.text.candidates import Tried, candidates
from anyfill.text.manner import Manner, generator_of
from anyfill.text.model import TextModel
from anyfill.text.windows import groups, text_log_prob, window_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted.

    Attributes:
        count: how many fills.
        draws: draws for each combination of lengths; None = as many as seem right.
        manner: how to draw.
        seed: of everything random.
    """

    count: int = 5
    draws: int | None = None
    manner: Manner = field(default_factory=Manner)
    seed: int = 0

    def __post_init__(self) -> None:
        require_count("--n", self.count)
        if self.draws is not None:
            require_count("--draws", self.draws)


@dataclass(frozen=True, slots=True)
class Filled:
    """A text with its blanks filled.

    Attributes:
        text: all of it, what was given exactly as it was.
        answers: what stands in each blank.
        log2_probability: of the text in the model's codes, with what it is told at the edges; in bits, below 0.
        share: its part of the probability of all fills that were compared.
    """

    text: str
    answers: tuple[str, ...]
    log2_probability: float
    share: float


@dataclass(frozen=True, slots=True)
class Filling:
    """All that was found.

    Attributes:
        fills: the best ones, best first.
        candidates: how many different ones there were (along the best way, where there are several groups).
        groups: how many groups of blanks were answered one after another.
        whole: one window held all of the text, so that the ranking is by ``log2_probability``.
        complete: all fills there are were compared, so that shares are probabilities given the text around.
        tried: what was tried for the group with the most combinations of lengths.
    """

    fills: tuple[Filled, ...]
    candidates: int
    groups: int
    whole: bool
    complete: bool
    tried: Tried


@dataclass(frozen=True, slots=True, eq=False)
class _Partial:
    """Answers to the first blanks, their share, and log p of the text if one window held all of it."""

    answers: tuple[str, ...] = ()
    codes: tuple[Tensor, ...] = ()
    log_share: float = 0.0
    log_prob: float | None = None


def fill(loaded: TextModel, template: Template, wanted: Wanted) -> Iterator[tuple[Filling | None, float]]:
    """Fill the blanks: nothing yet and the share of the work that is done, again and again, and at last the filling.

    Raises:
        ValueError: the text has characters that the model does not know, a blank has no room in a row of the model, the
            model was not trained to answer this, or nothing that was drawn can be written.
    """
    model, length = loaded.model, loaded.length
    sheet = sheet_of(template, loaded.vocabulary, lines=loaded.lines)
    if loaded.lines:
        _require_line(sheet, length)
    parts = groups(sheet, length)
    generator = generator_of(wanted.seed)
    best, found, most = [_Partial()], 0, Tried(0, 0, 0)
    complete = len(parts) == 1  # of several groups only the best ways are gone on with
    for number, group in enumerate(parts):
        ways: list[_Partial] = []
        for turn, way in enumerate(best):
            window = window_of(sheet, group, way.codes, length)
            work = candidates(
                model,
                sheet,
                group,
                window,
                draws=wanted.draws,
                manner=wanted.manner,
                lengths=loaded.lengths,
                generator=generator,
            )
            while True:
                try:
                    done = next(work)
                except StopIteration as stop:
                    answers, tried = stop.value
                    break
                yield None, 0.999 * (number + (turn + done) / len(best)) / len(parts)
            found = len(answers) if turn == 0 else found
            complete = complete and tried.is_complete
            most = max(most, tried, key=lambda one: one.combinations)
            for one in answers:
                log_share = way.log_share + math.log(max(one.share, 1e-300))
                whole = one.log_prob if window.whole and len(parts) == 1 else None
                ways.append(_Partial((*way.answers, *one.answers), (*way.codes, *one.codes), log_share, whole))
        best = sorted(ways, key=lambda one: -one.log_share)[: wanted.count]
    fills = tuple(_filled(loaded, sheet, way) for way in best)
    whole = all(way.log_prob is not None for way in best)
    yield Filling(fills, found, len(parts), whole, complete, most), 1.0


def _filled(loaded: TextModel, sheet: Sheet, way: _Partial) -> Filled:
    log_prob = way.log_prob
    if log_prob is None:
        known = [piece for pair in zip(sheet.stretches, way.codes) for piece in pair]
        log_prob = text_log_prob(loaded.model, torch.cat([*known, sheet.stretches[-1]]))
    share = math.exp(way.log_share)
    return Filled(sheet.template.filled(way.answers), way.answers, log_prob / math.log(2), share)


def _require_line(sheet: Sheet, length: int) -> None:
    """ValueError if a line has no room in a row."""
    size = sum(map(len, sheet.stretches)) + sum(blank.most for blank in sheet.template.blanks)
    if size > length:
        units = unit(sheet.vocabulary)
        raise refuse("text", expected=f"a line of at most {length} {units}, as the model was trained on", got=size)
