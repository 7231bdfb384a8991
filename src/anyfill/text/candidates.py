"""What might stand in the blanks of one window: all of it or joint draws, for every combination of lengths, ranked.

A text is a piece of a long stream of which some codes were covered up: how many, l, has nothing to do with what they
say, and any of the lengths that are tried is as good as another. With s the text before the blank, t the text behind it
and b the l codes of the blank,

    p(l, b | s, t)  =  p(l) p(s b t) / sum over l', b' of p(l') p(s b' t)   is proportional to   p(s b t),

where p(s b t) is the probability that the stream, from where s begins, goes on with the codes of s, b and t. So
p(s b t) compares answers of different lengths as they are: no penalty or bonus for length is called for, and none is
used (a longer b costs more codes, and pays by making t likelier). With several blanks read s, t as all that is given
and b as all that is asked. Only t tells lengths apart; where it is empty the shortest b, which has the fewest rivals,
always leads: therefore the edges of a text are closed (see ``anyfill.text.blanks``). Lines are no pieces of
a stream: in a model of lines without an end code p(l) is the share of lines that are so long altogether, counted with
one added.

Where codes^l is small every b is listed, the shortest lengths first, up to ``MAX_LISTED`` rows in all: then nothing is
missed, and if all lengths are listed the shares are p(l, b | s, t) itself. Of other lengths b is drawn from
p(b | s, t, l), all blanks jointly, by whichever sampler, and looked for by ``beam_search`` (how often
that finds more is in docs/text.md); if it has few codes it is looked for in another way, which also says how much was
missed (``anyfill.text.short_blanks``). Each distinct b has the *exact* log p(s b t). Draws and p(s b t) need not agree,
if the network's conditionals do not fit together: draws only propose, the ranking is by p(s b t). Codes that cannot be
written are dropped (a space that the user wrote before a blank is kept, ``anyfill.text.leads``); cuts of the same text
into pieces are summed.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import shared_prefix_log_prob
from anyfill.model import Model
from anyfill.networks.network import Cached
from anyfill.questions.question import Question
from anyfill.samplers import CachedChain, beam_search, can_search, watch
from anyfill.text.blanks import BlankRow, BlankWindow, Sheet
from anyfill.text.leads import Leads
from anyfill.text.listing import MAX_LISTED, MAX_LISTED_STEPWISE, every_fill, listed_sizes, read_behind
from anyfill.text.model import ROWS, TextModel
from anyfill.text.sampling import SamplingOptions
from anyfill.text.short_blanks import is_short, short_posterior
from anyfill.text.template import Lengths

MAX_COMBINATIONS = 64
"""Combinations of lengths that are tried; of more, so many are drawn."""
ALL_DRAWS, MIN_DRAWS = 256, 8
"""Draws for all combinations together, and at least for each, where nobody says how many."""
MAX_DRAWN = 2**13
"""Codes of all those draws together: of long blanks fewer are drawn. From some 16 pieces on a beam finds likelier ones
than 256 draws have, of 32 by tens of bits; so many draws of hundreds of codes take minutes and are never shown."""
BEAMS, ALL_KEPT, MIN_KEPT = 32, 96, 4
"""Beginnings of a beam that go on; answers that are kept, all combinations of lengths together, and of each."""
_DRAWING = 0.5
"""The part of the work that drawing is, with the beam; the rest is scoring."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One way to fill the blanks of a window.

    Attributes:
        answers: the text of each blank.
        codes: the codes of each blank.
        log_prob: log p of the window with them, in nats.
        share: its part of the probability of all candidates of this window, by which they are ranked.
        posterior: its part of them by ``log_prob`` alone.
    """

    answers: tuple[str, ...]
    codes: tuple[Tensor, ...]
    log_prob: float
    share: float
    posterior: float


@dataclass(frozen=True, slots=True)
class Tried:
    """What was done in a window.

    Attributes:
        combinations: how many combinations of lengths there are.
        tried: how many of them were tried.
        draws: how many draws for each that was drawn.
        listed: of how many all fills were compared instead.
        covered: which part of the probability of all fills those that were compared have, estimated; None = not known.
    """

    combinations: int
    tried: int
    draws: int
    listed: int = 0
    covered: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all fills there are were compared."""
        return self.listed == self.combinations


def combinations(
    blanks: Sequence[Lengths], *, maximum: int = MAX_COMBINATIONS, generator: torch.Generator
) -> tuple[list[tuple[int, ...]], int]:
    """Lengths for every blank, in all ways or ``maximum`` of them drawn, shortest first; and how many there are."""
    total = math.prod(blank.maximum - blank.minimum + 1 for blank in blanks)
    if total <= maximum:
        found = set(itertools.product(*(range(blank.minimum, blank.maximum + 1) for blank in blanks)))
    else:
        found = set[tuple[int, ...]]()
        while len(found) < maximum:
            sizes = (torch.randint(blank.minimum, blank.maximum + 1, (), generator=generator) for blank in blanks)
            found.add(tuple(int(size) for size in sizes))
    return sorted(found, key=lambda sizes: (sum(sizes), sizes)), total


def candidates(
    loaded: TextModel,
    sheet: Sheet,
    group: range,
    window: BlankWindow,
    *,
    draws: int | None = None,
    n: int = 1,
    sampling: SamplingOptions,
    generator: torch.Generator,
) -> Iterator[tuple[tuple[list[Candidate], Tried] | None, float]]:
    """The distinct candidates for a group of blanks, best first: nothing yet and the share that is done, then those.

    Args:
        loaded: what answers.
        sheet: the text that the window is of.
        group: the blanks of the sheet that the window has.
        window: what is given around them.
        draws: for each combination of lengths; None = ``ALL_DRAWS`` together, but of at most ``MAX_DRAWN`` codes and at
            least ``MIN_DRAWS`` each, and none where all fills can be listed. If it is stated, draws are all that is
            compared.
        n: so many are compared at least, if they are found.
        sampling: how to draw.
        generator: the source of all randomness.
    """
    model, codes = loaded.model, sheet.vocabulary.size
    sizes, total = combinations(window.blanks, generator=generator)
    asked = _Asked.of(sheet, group, [window.row(one, model.variables) for one in sizes])
    if model.corruption.shows_unknown:
        expected = "a model with an exact likelihood to rank answers by"
        raise refuse("filling", expected=expected, got="one that is shown noise (recipes sunmask and sundae)")
    expected = "a model that can be asked given what stands behind a blank (recipe one_pass_spans)"
    sampling.require_supported(model, asked.question, "filling", expected)
    is_free = draws is None and sampling.is_usual  # whoever says how to draw wants draws
    max_listed = (MAX_LISTED if model.is_one_pass else MAX_LISTED_STEPWISE) if is_free else 0
    listed = listed_sizes(sizes, [read_behind(row) for row in asked.rows], codes, max_listed)
    few = is_free and is_short(model, asked.rows[listed:])
    if draws is None:
        draws = _usual_draws([sum(one) for one in sizes[listed:]]) if listed < len(sizes) and not few else 0
    found, others = _Found(sheet, group), torch.arange(listed, len(sizes))
    for row in asked.rows[:listed]:
        for way in every_fill(row, codes):
            found.add(way, row)
    rest = list[float]()
    for number, row in enumerate(asked.rows[listed:] if few else []):
        said = short_posterior(model, sheet, group, row, rows=len(others), whole=max(16, n), generator=generator)
        x = row.x.repeat(len(said.answers), 1)
        x[:, row.asked] = said.answers
        for way, value in zip(x, said.log_prob.tolist()):
            found.add(way, row, value)
        rest.append(said.log_rest + _length_log_share(loaded, window, row.given | row.asked))
        yield None, _DRAWING * (number + 1) / len(others)
    for done in _draw(model, asked, others.repeat_interleave(draws), found, sampling, generator):
        yield None, 0.8 * _DRAWING * done
    if is_free and len(others) and not few and can_search(model):
        for _ in _search(model, asked, others, found):
            yield None, _DRAWING
    if not found.ways:
        expected = f"a draw that can be written as text ({sampling.more} may find one)"
        raise refuse("answers", expected=expected, got=f"none of {draws * len(others)}")
    distinct, begun = found.rows(), _DRAWING if len(others) else 0.0
    values = torch.tensor([one.value for one in distinct], dtype=torch.float64)
    unread = values.isnan().nonzero().flatten()
    if len(unread):
        rows = [distinct[number] for number in unread.tolist()]
        present, done = torch.stack([one.present for one in rows]).sum(1), 0
        for part in shared_prefix_log_prob(model, torch.stack([one.x for one in rows]), present):
            values[unread[done : done + len(part)]] = part
            done += len(part)
            yield None, begun + (1 - begun) * done / len(rows)
    shares = [_length_log_share(loaded, window, one.present) for one in distinct]
    values = values + torch.tensor(shares, dtype=torch.float64)
    covered = float(torch.cat([values, torch.tensor(rest).double()]).softmax(0)[: len(values)].sum()) if few else None
    yield (found.ranked(values), Tried(total, len(sizes), draws, listed, covered)), 1.0


def _usual_draws(sizes: list[int]) -> int:
    """How many draws for each combination of lengths, of so many codes, where nobody says."""
    return max(MIN_DRAWS, min(ALL_DRAWS // len(sizes), MAX_DRAWN // sum(sizes)))


def _length_log_share(loaded: TextModel, window: BlankWindow, present: Tensor) -> float:
    """What the length of a line of codes ``present`` bool (N,) adds to log p, if lengths have a say."""
    return loaded.length_log_share(int(present.sum())) if window.whole and loaded.lengths else 0.0


class _Asked(NamedTuple):
    """A window with blanks of K combinations of sizes: K rows, x int64 (K, N), K questions, and where a space leads."""

    rows: list[BlankRow]
    x: Tensor
    question: Question
    leads: Leads | None

    @classmethod
    def of(cls, sheet: Sheet, group: range, rows: list[BlankRow]) -> "_Asked":
        """All of it, from the rows."""
        question = Question(torch.stack([row.given for row in rows]), torch.stack([row.asked for row in rows]))
        return cls(rows, torch.stack([row.x for row in rows]), question, Leads.of(sheet, group, rows))

    def some(self, index: Tensor) -> tuple[Tensor, Question]:
        """The values and questions of some rows."""
        return self.x[index], Question(self.question.given[index], self.question.asked[index])


def _draw(
    model: Model, asked: _Asked, which: Tensor, found: "_Found", sampling: SamplingOptions, generator: torch.Generator
) -> Iterator[float]:
    """Draw an answer to each question of ``which`` (any,); yields the share that is done."""
    is_cached = sampling.sampler == "exact" and isinstance(model.network, Cached)
    portions = which.split(ROWS) if len(which) else ()
    for number, part in enumerate(portions):
        x, question = asked.some(part)
        steps = int(question.asked.sum(1).max())
        leads = None if asked.leads is None else asked.leads.rows(part)
        cached = CachedChain(veto=leads, min_mass=0.0, read_once=True)
        policy = cached if is_cached else sampling.policy(model, steps)
        states = watch(model, x, question, policy=policy, draw=sampling.draw, generator=generator)
        state = next(states)
        for state in states:
            yield (number + min(state.step / steps, 1.0)) / len(portions)
        for row, way in zip(part.tolist(), state.x):
            found.add(way, asked.rows[row])


def _search(model: Model, asked: _Asked, which: Tensor, found: "_Found") -> Iterator[None]:
    """The likeliest answers that a beam finds to each question of ``which`` (any,)."""
    width = min(BEAMS, max(MIN_KEPT, 4 * ALL_KEPT // len(which)))
    keep = min(width, max(MIN_KEPT, ALL_KEPT // len(which)))
    for part in which.split(ROWS // width):
        allowed = None if asked.leads is None else asked.leads.rows(part).allowed
        for row, likely in zip(part.tolist(), beam_search(model, *asked.some(part), width=width, allowed=allowed)):
            for way in likely[:keep]:
                found.add(way, asked.rows[row])
            yield


class _Way(NamedTuple):
    """A row that was found: x int64 (N,), present bool (N,), the codes of each blank; log p of it, nan = not read."""

    x: Tensor
    present: Tensor
    codes: tuple[Tensor, ...]
    value: float


@dataclass(frozen=True, slots=True)
class _Found:
    """What has been drawn so far: for each text its rows, each once, in the order in which they came."""

    sheet: Sheet
    group: range
    ways: dict[str, tuple[tuple[str, ...], dict[tuple[int, ...], _Way]]] = field(default_factory=dict)

    def add(self, x: Tensor, row: BlankRow, value: float = math.nan) -> None:
        """Take in a way (N,) to fill this row, and its log p, if that has been read; if it can be written."""
        codes = tuple(x[place] for place in row.places)
        written = [self.sheet.answer(blank, one) for blank, one in zip(self.group, codes)]
        answers = [answer for answer in written if answer is not None]
        if len(answers) < len(written):
            return
        between = self.sheet.template.stretches[self.group.start + 1 : self.group.stop]
        text = "".join(itertools.chain.from_iterable(itertools.zip_longest(answers, between, fillvalue="")))
        present = row.given | row.asked
        _, rows = self.ways.setdefault(text, (tuple(answers), {}))
        rows.setdefault(tuple(x[present].tolist()), _Way(x, present, codes, value))

    def rows(self) -> list[_Way]:
        """All rows, text by text."""
        return [row for _, rows in self.ways.values() for row in rows.values()]

    def ranked(self, values: Tensor) -> list[Candidate]:
        """One candidate for each text, best first, from the log-probabilities (rows,) of all rows."""
        parts = values.split([len(rows) for _, rows in self.ways.values()])
        totals = torch.stack([part.logsumexp(0) for part in parts])
        shares = totals.softmax(0).tolist()
        made: list[Candidate] = []
        for part, total, share, (answers, rows) in zip(parts, totals.tolist(), shares, self.ways.values()):
            likeliest = list(rows.values())[int(part.argmax())]
            made.append(Candidate(answers, likeliest.codes, total, share, share))
        return sorted(made, key=lambda one: -one.log_prob)
