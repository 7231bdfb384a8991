"""Drawing answers to a ``Request``: several side by side, and those that are wanted kept.

Values are drawn from the most probable ones that hold ``nucleus`` of the mass, and a pitch that would make parallel
fifths or octaves is left out (``NoParallels``), both unless the options say otherwise: then what is drawn is graded
like Bach's. Alternatives are rows of one batch. The same request and options give the same answers.

Each answer is kept only once, and only if the request wants it; what is not wanted is drawn again, a limited number of
times, and a ``Tally`` says how often. A piece is *still* where some voice changes its pitch less often than there are
bars, or where the grade is infinite (a voice of one note): of 413 windows of eight bars of Bach 9 are, so the rule
costs little and spares a frozen piece now and then.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite

import numpy as np
import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.interface.options import chosen_seed
from anyfill.interface.threads import threads
from anyfill.model import Model
from anyfill.music.chorale import CODES, Chorale
from anyfill.music.grades import grade
from anyfill.music.quantise import Piece
from anyfill.music.recipe import resized
from anyfill.music.request import Request
from anyfill.music.score import VOICES
from anyfill.questions.question import Question
from anyfill.samplers import CachedChain, Draw, best_of, trace

AT_ONCE = 32
"""Pieces drawn side by side."""
SPARE, ROUNDS = 4, 8
"""Where only some of the pieces are wanted: so many times as many side by side, and at most so many times in a row."""
_FIFTH, _OCTAVE = 7, 0

Progress = Callable[[Iterable[tuple[list[Chorale], float]], str], Iterable[list[Chorale]]]
"""Passes results on while it shows the share of the work that is done, as ``interface.progress.metered``."""


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
        as_drawn: keep pieces that are still, and those that are like another one.
    """

    n: int = 4
    seed: int = field(default_factory=lambda: chosen_seed(None))
    best: int = 1
    temperature: float = 1.0
    nucleus: float = 0.95
    parallels: bool = False
    as_drawn: bool = False

    def __post_init__(self) -> None:
        require_count("number of alternatives", self.n)
        require_count("best", self.best)
        _ = self.draw  # refuses what cannot be

    @property
    def draw(self) -> Draw:
        return Draw(temperature=self.temperature, nucleus=None if self.nucleus == 1 else self.nucleus)

    @property
    def policy(self) -> CachedChain:
        return CachedChain(veto=None if self.parallels else NoParallels())

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
    """

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        batch, voices = len(x), len(VOICES)
        row = torch.arange(batch, device=x.device)
        step, voice = variable // voices, variable % voices
        grid, seen = x.reshape(batch, -1, voices), known.reshape(batch, -1, voices)
        last = grid.shape[1] - 1
        now, now_seen = grid[row, step], seen[row, step]  # (B, 4)
        code = torch.arange(CODES, device=x.device)
        answer = torch.zeros(batch, CODES, dtype=torch.bool, device=x.device)
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


def alternatives(
    model: Model, request: Request, count: int, options: SamplingOptions, *, generator: Generator
) -> Iterator[tuple[list[Chorale], float]]:
    """Draw ``count`` answers: nothing yet and the share that is done, again and again, and at last the answers."""
    x = request.codes().repeat(count, 1)
    asked, known = request.row(request.asked), request.row(request.given)
    total, done = max(int(asked.sum()), 1), 0
    for window in request.windows():
        cells, answered = window.cells, window.answers(asked)
        here = answered[cells].repeat(count, 1)
        states = trace(
            resized(model, window.stop - window.start),
            x[:, cells],
            Question(known[cells].repeat(count, 1) & ~here, here),
            policy=options.policy,
            draw=options.draw,
            generator=generator,
        )
        state = next(states)
        for state in states:
            yield [], (done + state.step) / total * 0.999  # not quite: the answers are still to come
        x[:, cells] = torch.where(here, state.x, x[:, cells])
        known = known | answered
        done += int(here[0].sum())
    skip, written = len(VOICES) * request.before, torch.from_numpy(request.asked.T.reshape(-1))
    yield [request.piece.chorale.with_codes(row[skip:], written) for row in x], 1.0


@dataclass(slots=True)
class Tally:
    """What became of the pieces that were drawn.

    Attributes:
        drawn: how many were looked at.
        kept: how many of them were wanted.
        same: how many were dropped because they are like one before.
        still: how many were dropped because they hardly move.
        kept_still: how many of these were taken after all, for want of others.
    """

    drawn: int = 0
    kept: int = 0
    same: int = 0
    still: int = 0
    kept_still: int = 0

    def lines(self, options: SamplingOptions) -> list[str]:
        """What to say of it."""
        said: list[str] = []
        if self.still:
            after = f", {self.kept_still} of them kept for want of others" if self.kept_still else ""
            said.append(f"drawn again: {self.still} that hardly moved{after} (--as-drawn keeps all)")
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
        again = request.fits is not None
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
        tally.kept_still = max(0, min(options.n - tally.kept, len(still)))
        tally.kept += tally.kept_still
        if request.fits is not None and tally.kept < options.n:
            raise refuse("pieces that fit", expected=str(options.n), got=f"{tally.kept} of {tally.drawn} drawn")
        yield from still[: tally.kept_still]

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
    return grade(chorale.score(), protocol="key-aware").overall
