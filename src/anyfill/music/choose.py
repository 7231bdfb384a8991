"""Draw pieces, and keep those that are wanted: each only once, of a mode, with movement, and the best by the grade.

What is not wanted is drawn again, a limited number of times, and a ``Tally`` says how often. A piece is *still* where
some voice changes its pitch less often than there are bars, or where the grade is infinite (a voice of one note): of
413 windows of eight bars of Bach 9 are, so the rule costs little and spares a frozen piece now and then.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np
import torch

from anyfill.checks import refuse
from anyfill.interface.progress import metered
from anyfill.interface.threads import threads
from anyfill.model import Model
from anyfill.music.ask import bars_in
from anyfill.music.chorale import Chorale
from anyfill.music.draws import Asked, Manner, alternatives
from anyfill.music.grades import Key, find_key, grade
from anyfill.samplers import best_of

AT_ONCE = 32
"""Pieces drawn side by side."""
SPARE, ROUNDS = 4, 8
"""Where only some of the pieces are wanted: so many times as many side by side, and at most so many times in a row."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many pieces, and of which.

    Attributes:
        count: n.
        best: draw this many times as many, and keep the best by the grade (key-aware).
        manner: how notes are drawn.
        seed: of everything random.
        as_drawn: keep pieces that are still, and those that are like another one.
    """

    count: int = 4
    best: int = 1
    manner: Manner = field(default_factory=Manner)
    seed: int = 0
    as_drawn: bool = False


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

    def lines(self, wanted: Wanted) -> list[str]:
        """What to say of it."""
        said: list[str] = []
        if self.still:
            after = f", {self.kept_still} of them kept for want of others" if self.kept_still else ""
            said.append(f"drawn again: {self.still} that hardly moved{after} (--as-drawn keeps all)")
        needed = wanted.count * wanted.best
        if self.same:
            short = f", only {self.kept} distinct of {needed} found" if self.kept < needed else ""
            said.append(f"drawn again: {self.same} like another one{short}")
        if wanted.best > 1:
            count = min(wanted.count, self.kept)
            said.append(f"kept the best {count} of {self.kept} by the grade (protocol key-aware)")
        return said


def draw_pieces(
    model: Model,
    question: Asked,
    wanted: Wanted,
    *,
    fits: Callable[[Chorale], bool] | None = None,
    moving: bool = False,
    what: str,
    tally: Tally | None = None,
) -> Iterator[Chorale]:
    """The pieces, each as soon as it is certain; best first, and all at the end, if the best were asked for.

    Fewer than wanted come only where the model's answers are so often the same that no more were found.

    Args:
        model: of chorales.
        question: what is given and asked.
        wanted: how many, and how.
        fits: a piece for which this is not True is drawn again; ValueError if too few are found.
        moving: draw again where a piece is still, and take it only if nothing better is found.
        what: a few words that stand before the progress bar.
        tally: is filled with what happened.
    """
    found = _search(model, question, wanted, fits, moving, what, Tally() if tally is None else tally)
    yield from found if wanted.best == 1 else best_of(found, grade_of, wanted.count)


def is_still(chorale: Chorale) -> bool:
    """Whether some voice changes its pitch less often than there are bars, or the grade is infinite."""
    changes = np.count_nonzero(np.diff(chorale.pitch, axis=1), axis=1)
    return int(changes.min()) < len(bars_in(chorale)) or not isfinite(grade_of(chorale))


def grade_of(chorale: Chorale) -> float:
    """The key-aware grade; lower is more like Bach."""
    return grade(chorale.score(), protocol="key-aware").overall


def key_of(chorale: Chorale) -> Key | None:
    """The key it seems to be in; None where nothing sounds."""
    try:
        return find_key(chorale.score())
    except ValueError:
        return None


def _search(
    model: Model,
    question: Asked,
    wanted: Wanted,
    fits: Callable[[Chorale], bool] | None,
    moving: bool,
    what: str,
    tally: Tally,
) -> Iterator[Chorale]:
    generator = torch.Generator().manual_seed(wanted.seed)
    needed, seen, still = wanted.count * wanted.best, set[bytes](), list[Chorale]()
    again = fits is not None
    for number in range(-(-needed // AT_ONCE) * ROUNDS):
        size = min((needed - tally.kept) * (SPARE if again else 1), AT_ONCE)
        pieces = _batch(model, question, size, wanted.manner, generator, what if number == 0 else f"{what} (more)")
        before = len(seen)
        for piece in pieces:
            if tally.kept == needed:
                break
            tally.drawn += 1
            content = piece.pitch.tobytes()
            if content in seen and not wanted.as_drawn:
                tally.same += 1
                continue
            seen.add(content)
            if fits is not None and not fits(piece):
                continue
            if moving and not wanted.as_drawn and is_still(piece):
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
    tally.kept_still = max(0, min(wanted.count - tally.kept, len(still)))
    tally.kept += tally.kept_still
    if fits is not None and tally.kept < wanted.count:
        raise refuse("pieces that fit", expected=str(wanted.count), got=f"{tally.kept} of {tally.drawn} drawn")
    yield from still[: tally.kept_still]


def _batch(
    model: Model, question: Asked, size: int, manner: Manner, generator: torch.Generator, what: str
) -> Sequence[Chorale]:
    found: list[Chorale] = []
    # One token at a time is too little work for two threads, and where a machine is busy the second one only waits.
    with threads(1):
        for pieces in metered(alternatives(model, question, size, manner=manner, generator=generator), what):
            found += pieces
    return found
