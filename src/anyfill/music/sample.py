"""Drawing answers to a ``Request``: several side by side, and those that are wanted kept.

Values are drawn from the most probable ones that hold ``nucleus`` of the mass, and a pitch that would make parallel
fifths or octaves is left out (``NoParallels``), both unless the options say otherwise: then what is drawn is graded
like Bach's. Alternatives are rows of one batch. The same request and options give the same answers.

A model without onsets holds every note until its pitch changes. So that no voice drones under a tune that is struck
again, long notes that it wrote are struck again by a plain rule (``strikes``) unless ``held`` says otherwise.

A *variation* (``Request.vary``) is SUNMASK's chain, begun with the piece itself (``varying``).

Each answer is kept only once, and only if the request wants it; what is not wanted is drawn again, a limited number of
times, and a ``Tally`` says how often. A piece is *still* where some voice changes its pitch less often than there are
bars, or where the grade is infinite (a voice of one note): of 413 windows of eight bars of Bach 9 are, so the rule
costs little and spares a frozen piece now and then.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.interface.options import chosen_seed
from anyfill.interface.threads import threads
from anyfill.model import Model
from anyfill.music.chorale import CODES, ONSET_CODES, REST, Chorale, pitches_of, plain
from anyfill.music.endings import Triad
from anyfill.music.grades import grade_score
from anyfill.music.piece import Piece
from anyfill.music.request import Request
from anyfill.music.score import VOICES
from anyfill.music.strikes import beat_of, strike_again
from anyfill.music.varying import variations
from anyfill.music.windows import has_onsets
from anyfill.questions.question import Question
from anyfill.samplers import CachedChain, Draw, Veto, best_of, trace
from anyfill.samplers.policy import State

AT_ONCE = 32
"""Pieces drawn side by side."""
SPARE, ROUNDS = 4, 8
"""Where only some of the pieces are wanted: so many times as many side by side, and at most so many times in a row."""
TRIES = 4
"""How many times in a row pieces are drawn that shall end in their key."""
_FIFTH, _OCTAVE = 7, 0

Progress = Callable[[Iterable[tuple[list[Chorale], float]], str], Iterable[list[Chorale]]]
"""Passes results on while it shows the share of the work that is done, as ``interface.progress.metered``."""


class Options(TypedDict, total=False):
    """``SamplingOptions`` but for the seed, for verbs that pass them on."""

    n: int
    best: int
    temperature: float
    nucleus: float
    parallels: bool
    as_drawn: bool
    held: bool


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How many pieces are drawn, and how.

    Attributes:
        n: how many.
        seed: of everything random; a new one by default.
        best: draw this many times as many, and keep the best by the grade (key-aware).
        temperature: below 1 is safer, above 1 is bolder.
        nucleus: the mass of the most probable pitches that are drawn from; 1 = all.
        parallels: allow parallel fifths and octaves.
        as_drawn: keep pieces that are still, those that do not end, and those that are like another one.
        held: leave the notes of a model without onsets as long as it holds them.
    """

    n: int = 4
    seed: int = field(default_factory=lambda: chosen_seed(None))
    best: int = 1
    temperature: float = 1.0
    nucleus: float = 0.99
    parallels: bool = False
    as_drawn: bool = False
    held: bool = False

    def __post_init__(self) -> None:
        require_count("number of alternatives", self.n)
        require_count("best", self.best)
        _ = self.draw  # refuses what cannot be

    @property
    def draw(self) -> Draw:
        return Draw(temperature=self.temperature, nucleus=None if self.nucleus == 1 else self.nucleus)

    def policy(self, onsets: bool = False) -> CachedChain:
        """How cells are drawn; with onsets a note can only go on from its own pitch."""
        rules: list[Veto] = [*([] if self.parallels else [NoParallels(ONSET_CODES if onsets else CODES)])]
        if onsets:
            rules.append(GoesOn())
        veto = rules[0] if len(rules) == 1 else AllOf(tuple(rules)) if rules else None
        return CachedChain(veto=veto, read_once=True)

    @property
    def generator(self) -> Generator:
        """A new one, of the seed."""
        return torch.Generator().manual_seed(self.seed)


@dataclass(frozen=True, slots=True)
class NoParallels:
    """Forbids a pitch that would move in parallel fifths or octaves with a voice that is known (``samplers.Veto``).

    The one rule of four-part writing that a model of chorales breaks more than Bach. Two voices that both move from one
    step to the next, and whose distance is a perfect fifth (an octave or unison) before and after, octaves apart or
    not, are parallel. Models trained on some hundred chorales write one or two such errors in eight bars, real chorales
    hardly any; in everything else that the grade measures they are near Bach.

    Both neighbours in time are looked at, so that it holds as well where a hole is filled between known notes.

    Attributes:
        codes: of the model, with onsets or without.
    """

    codes: int = CODES

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        batch, voices, x = len(x), len(VOICES), plain(x)
        row = torch.arange(batch, device=x.device)
        step, voice = variable // voices, variable % voices
        grid, seen = x.reshape(batch, -1, voices), known.reshape(batch, -1, voices)
        last = grid.shape[1] - 1
        now, now_seen = grid[row, step], seen[row, step]  # (B, 4)
        code = plain(torch.arange(self.codes, device=x.device))
        answer = torch.zeros(batch, self.codes, dtype=torch.bool, device=x.device)
        for side in (-1, 1):
            beside = (step + side).clamp(0, last)
            then, then_seen = grid[row, beside], seen[row, beside]
            mine = then[row, voice].unsqueeze(1)
            sounds = (mine > 0) & then_seen[row, voice].unsqueeze(1) & (beside != step).unsqueeze(1)
            moves = sounds & now_seen & then_seen & (now > 0) & (then > 0) & (now != then)  # (B, 4); not voice itself,
            moves &= torch.arange(voices, device=x.device) != voice.unsqueeze(1)
            before = (then - mine).abs() % 12
            perfect = moves & ((before == _FIFTH) | (before == _OCTAVE))
            after = (now.unsqueeze(2) - code).abs() % 12  # (B, 4, K)
            parallel = perfect.unsqueeze(2) & (after == before.unsqueeze(2))
            answer |= parallel.any(1) & (code != mine) & (code > 0)
        return answer


@dataclass(frozen=True, slots=True)
class GoesOn:
    """Forbids, with onsets, that a note goes on from another pitch, from silence, or from before the beginning."""

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        row, before = torch.arange(len(x), device=x.device), variable - len(VOICES)
        there = before.clamp(min=0)
        last, seen = plain(x)[row, there], known[row, there] & (before >= 0)
        code = torch.arange(ONSET_CODES, device=x.device)
        other = plain(code) != last.unsqueeze(1)
        return (code >= CODES) & ((seen.unsqueeze(1) & other) | (before < 0).unsqueeze(1))


@dataclass(frozen=True, slots=True)
class AllOf:
    """What any of several rules forbids."""

    rules: tuple[Veto, ...]

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        return torch.stack([rule.forbidden(x, known, variable) for rule in self.rules]).any(0)


def alternatives(
    model: Model, request: Request, count: int, options: SamplingOptions, *, generator: Generator
) -> Iterator[tuple[list[Chorale], float]]:
    """Draw ``count`` answers: nothing yet and the share that is done, again and again, and at last the answers."""
    onsets = has_onsets(model)
    x, context = request.codes(onsets=onsets).repeat(count, 1), request.context(model)
    told = None if context is None else context.expand(count, -1, -1)
    total, done = max(int(request.asked.sum()), 1), 0
    known: Tensor | None = None
    final = request.last_chord(model)
    if final is not None and request.ending is not None:
        seen, cells, one, known = final
        rule = CachedChain(veto=Triad(request.ending, ONSET_CODES if onsets else CODES), min_mass=0.0, read_once=True)
        state = _last(seen, x, cells, one, rule, told, options, generator)
        x = _held(torch.where(one.asked, state.x, x[:, cells]), x, known, onsets)
        done += int(one.asked.sum())
    for seen, cells, one in request.passes(model, known=known):
        part = None if told is None else told[:, cells]
        question = Question(one.given.repeat(count, 1), one.asked.repeat(count, 1))
        if request.amount is not None:
            states = variations(
                seen, x[:, cells], question, request.amount, onsets=onsets, draw=options.draw, context=part,
                policy=replace(options.policy(onsets), read_once=False), generator=generator,
            )  # fmt: skip
        else:
            states = trace(
                seen, x[:, cells], question, policy=options.policy(onsets), draw=options.draw, context=part,
                generator=generator,
            )  # fmt: skip
        state = next(states)
        for state in states:
            yield [], min((done + state.step) / total, 1.0) * 0.999  # not quite: the answers are still to come
        x[:, cells] = torch.where(question.asked, state.x, x[:, cells])
        done += int(one.asked.sum())
    skip, chorale = len(VOICES) * request.before, request.piece.chorale
    if request.amount is not None:
        yield [_varied(chorale, row[skip:], request.asked, onsets) for row in x], 1.0
        return
    written = torch.from_numpy(request.asked.T.reshape(-1))
    made = [chorale.with_codes(row[skip:], written, onsets=onsets) for row in x]
    if not onsets and not options.held:
        made = [strike_again(one, request.asked, beat=beat_of(request.piece)) for one in made]
    yield made, 1.0


def _last(
    model: Model, x: Tensor, cells: slice, one: Question, policy: CachedChain, told: Tensor | None,
    options: SamplingOptions, generator: Generator,
) -> State:  # fmt: skip
    """The state after all steps of one pass."""
    count = len(x)
    question = Question(one.given.repeat(count, 1), one.asked.repeat(count, 1))
    part = None if told is None else told[:, cells]
    states = trace(
        model, x[:, cells], question, policy=policy, draw=options.draw, context=part, generator=generator
    )  # fmt: skip
    return deque(states, maxlen=1).pop()


def _held(drawn: Tensor, x: Tensor, held: Tensor, onsets: bool) -> Tensor:
    """x (B, N) with the last chord of drawn (B, C), whose last four cells it is, in the cells ``held`` (N,)."""
    x = x.clone()
    voices = len(VOICES)
    chord = plain(drawn[:, -voices:])
    for voice in range(voices):
        places = [int(place) for place in held.nonzero().flatten().tolist() if place % voices == voice]
        for n, place in enumerate(places):
            x[:, place] = chord[:, voice] + (CODES - 1) * (onsets and n > 0)
    return x


def _varied(chorale: Chorale, codes: Tensor, asked: NDArray[np.bool_], onsets: bool) -> Chorale:
    """The piece with the pitches of a variation; where the pitch stays, notes begin as they did."""
    pitch = np.where(asked, pitches_of(codes), chorale.pitch).astype(np.int16)
    same = pitch == chorale.pitch
    onset = np.where(same, chorale.onset, False)
    if onsets:
        begins = (codes.cpu().numpy().reshape(-1, len(VOICES)).T < CODES) & (pitch != REST)
        onset |= ~same & begins
    return replace(chorale, pitch=pitch, onset=onset)


@dataclass(slots=True)
class Tally:
    """What became of the pieces that were drawn.

    Attributes:
        drawn: how many were looked at.
        kept: how many of them were wanted.
        same: how many were dropped because they are like one before.
        still: how many were dropped because they hardly move.
        kept_still: how many of these were taken after all, for want of others.
        unended: how many were dropped because they do not end as wanted.
        kept_unended: how many of these were taken after all.
    """

    drawn: int = 0
    kept: int = 0
    same: int = 0
    still: int = 0
    kept_still: int = 0
    unended: int = 0
    kept_unended: int = 0

    def lines(self, options: SamplingOptions) -> list[str]:
        """What to say of it."""
        said: list[str] = []
        if self.still:
            after = f", {self.kept_still} of them kept for want of others" if self.kept_still else ""
            said.append(f"drawn again: {self.still} that hardly moved{after} (--as-drawn keeps all)")
        if self.unended:
            after = f", {self.kept_unended} of them kept for want of others" if self.kept_unended else ""
            said.append(f"drawn again: {self.unended} that did not end in their key{after} (--ending open keeps all)")
        needed = options.n * options.best
        if self.same:
            short = f", only {self.kept} distinct of {needed} found" if self.kept < needed else ""
            said.append(f"drawn again: {self.same} like another one{short}")
        if options.best > 1:
            count = min(options.n, self.kept)
            said.append(f"kept the best {count} of {self.kept} by the grade (protocol key-aware)")
        return said


@dataclass(slots=True)
class Search:
    """Draws until enough pieces are found that are wanted.

    Attributes:
        model: of chorales.
        request: what is given and asked, and which answers are wanted.
        options: how many, and how.
        progress: shows how far the work is; None = nothing does.
        tally: what happened so far.
    """

    model: Model
    request: Request
    options: SamplingOptions = field(default_factory=SamplingOptions)
    progress: Progress | None = None
    tally: Tally = field(default_factory=Tally)

    def pieces(self) -> Iterator[Piece]:
        """The pieces as the user gets them (see ``chorales``)."""
        for number, chorale in enumerate(self.chorales(), 1):
            yield self.request.piece_of(chorale, number, self.options.seed)

    def chorales(self) -> Iterator[Chorale]:
        """Each as soon as it is certain; best first, and all at the end, if the best were asked for.

        Fewer than wanted come only where the model's answers are so often the same that no more were found. ValueError
        where the request has a wish that is too seldom met.
        """
        found = self._wanted()
        yield from found if self.options.best == 1 else best_of(found, grade_of, self.options.n)

    def _wanted(self) -> Iterator[Chorale]:
        request, options, tally = self.request, self.options, self.tally
        generator = options.generator
        needed, seen, still = options.n * options.best, set[bytes](), list[Chorale]()
        unended = list[Chorale]()
        again = request.fits is not None or (request.prefers is not None and not options.as_drawn)
        for number in range(-(-needed // AT_ONCE) * ROUNDS):
            size = min((needed - tally.kept) * (SPARE if again else 1), AT_ONCE)
            before = len(seen)
            for piece in self._batch(size, generator, request.what if number == 0 else f"{request.what} (more)"):
                if tally.kept == needed:
                    break
                tally.drawn += 1
                content = piece.pitch.tobytes()
                if content in seen and not options.as_drawn:
                    tally.same += 1
                    continue
                seen.add(content)
                if request.fits is not None and not request.fits(piece):
                    continue
                if request.prefers is not None and not options.as_drawn and not request.prefers(piece):
                    tally.unended += 1
                    unended.append(piece)
                    continue
                if request.moving and not options.as_drawn and is_still(piece):
                    tally.still += 1
                    still.append(piece)
                    continue
                tally.kept += 1
                yield piece
            if tally.kept == needed:
                return
            again = again or tally.same + tally.still > 0
            if len(seen) == before:  # nothing new: there is nothing more to be found
                break
            if request.fits is None and number + 1 >= TRIES and tally.unended:  # an ending is a wish, not a condition
                break
        tally.kept_still = max(0, min(options.n - tally.kept, len(still)))
        tally.kept += tally.kept_still
        tally.kept_unended = max(0, min(options.n - tally.kept, len(unended)))
        tally.kept += tally.kept_unended
        if request.fits is not None and tally.kept < options.n:
            raise refuse("pieces that fit", expected=str(options.n), got=f"{tally.kept} of {tally.drawn} drawn")
        yield from still[: tally.kept_still]
        yield from unended[: tally.kept_unended]

    def _batch(self, size: int, generator: Generator, what: str) -> list[Chorale]:
        # One token at a time is too little work for two threads, and where a machine is busy the second only waits.
        with threads(1):
            work = alternatives(self.model, self.request, size, self.options, generator=generator)
            shown = (found for found, _ in work) if self.progress is None else self.progress(work, what)
            return [chorale for found in shown for chorale in found]


def is_still(chorale: Chorale) -> bool:
    """Whether some voice changes its pitch less often than there are bars, or the grade is infinite."""
    changes = np.count_nonzero(np.diff(chorale.pitch, axis=1), axis=1)
    return int(changes.min()) < len(chorale.bars) or not isfinite(grade_of(chorale))


def grade_of(chorale: Chorale) -> float:
    """The key-aware grade; lower is more like Bach."""
    return grade_score(chorale.score(), protocol="key-aware").overall
