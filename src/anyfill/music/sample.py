"""Drawing answers to a ``Request``, several side by side (``anyfill.music.search`` keeps those that are wanted).

Values are drawn from the most probable ones that hold ``nucleus`` of the mass, and a pitch that would make parallel
fifths or octaves is left out (``NoParallels``), both unless the options say otherwise: then what is drawn is graded
like Bach's. Alternatives are rows of one batch. The same request and options give the same answers.

A model without onsets holds every note until its pitch changes. So that no voice drones under a tune that is struck
again, long notes that it wrote are struck again by a plain rule (``strikes``) unless ``held`` says otherwise.

A *variation* (``Request.vary``) is SUNMASK's chain, begun with the piece itself (``varying``).
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from anyfill.checks import require_count
from anyfill.interface.options import chosen_seed
from anyfill.model import Model
from anyfill.music.chorale import CODES, ONSET_CODES, REST, Chorale, pitches_of, plain
from anyfill.music.endings import Triad
from anyfill.music.request import Request
from anyfill.music.score import VOICES
from anyfill.music.strikes import beat_of, strike_again
from anyfill.music.varying import variations
from anyfill.music.vetoes import AllOf, GoesOn, NoParallels
from anyfill.music.windows import has_onsets
from anyfill.questions.question import Question
from anyfill.samplers import CachedChain, Draw, Veto, trace
from anyfill.samplers.policy import State


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
        """How a value is drawn from its law."""
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
