"""Searching for the answers that are wanted: what is not is drawn again, a limited number of times.

Each answer is kept only once, and only if the request wants it; a ``Tally`` says how often another one was drawn. A
piece is *still* where some voice changes its pitch less often than there are bars, or where the grade is infinite (a
voice of one note): of 413 windows of eight bars of Bach 9 are, so the rule costs little and spares a frozen piece now
and then.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite

import numpy as np
from torch import Generator

from anyfill.checks import refuse
from anyfill.interface.threads import threads
from anyfill.model import Model
from anyfill.music.chorale import Chorale
from anyfill.music.grades import grade_score
from anyfill.music.piece import Piece
from anyfill.music.request import Request
from anyfill.music.sample import SamplingOptions, alternatives
from anyfill.samplers import best_of

AT_ONCE = 32
"""Pieces drawn side by side."""
SPARE, ROUNDS = 4, 8
"""Where only some of the pieces are wanted: so many times as many side by side, and at most so many times in a row."""
TRIES = 4
"""How many times in a row pieces are drawn that shall end in their key."""

Progress = Callable[[Iterable[tuple[list[Chorale], float]], str], Iterable[list[Chorale]]]
"""Passes results on while it shows the share of the work that is done, as ``interface.progress.metered``."""


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
