"""Draw pieces, and keep those that are wanted: of a mode, and the best by the grade."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from anyfill.checks import refuse
from anyfill.data.chorale import Chorale
from anyfill.evaluation.grades import Key, find_key, grade
from anyfill.model import Model
from anyfill.samplers.best_of import best_of
from anyfill.surfaces.meter import metered
from anyfill.surfaces.music.draws import Asked, Manner, alternatives
from anyfill.surfaces.threads import threads

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
    """

    count: int = 4
    best: int = 1
    manner: Manner = field(default_factory=Manner)
    seed: int = 0


def draw_pieces(
    model: Model, question: Asked, wanted: Wanted, *, fits: Callable[[Chorale], bool] | None = None, what: str
) -> list[Chorale]:
    """The pieces, best first if the best were asked for.

    Args:
        model: of chorales.
        question: what is given and asked.
        wanted: how many, and how.
        fits: a piece for which this is not True is drawn again.
        what: a few words that stand before the progress bar.
    """
    generator = torch.Generator().manual_seed(wanted.seed)
    needed, found, drawn = wanted.count * wanted.best, list[Chorale](), 0
    size = min(needed if fits is None else SPARE * needed, AT_ONCE)
    rounds = -(-needed // size) * (1 if fits is None else ROUNDS)
    # One token at a time is too little work for two threads, and where a machine is busy the second one only waits.
    with threads(1):
        for number in range(rounds):
            work = alternatives(model, question, size, manner=wanted.manner, generator=generator)
            for pieces in metered(work, what if number == 0 else f"{what} (more)"):
                found += [piece for piece in pieces if fits is None or fits(piece)]
            drawn += size
            if len(found) >= needed:
                break
    if len(found) < wanted.count:
        raise refuse("pieces that fit", expected=str(wanted.count), got=f"{len(found)} of {drawn} that were drawn")
    found = found[:needed]
    return found if wanted.best == 1 else best_of(found, grade_of, wanted.count)


def grade_of(chorale: Chorale) -> float:
    """The key-aware grade; lower is more like Bach."""
    return grade(chorale.score(), protocol="key-aware").overall


def key_of(chorale: Chorale) -> Key | None:
    """The key it seems to be in; None where nothing sounds."""
    try:
        return find_key(chorale.score())
    except ValueError:
        return None


def selection(wanted: Wanted) -> Sequence[str]:
    """What to say of the choice."""
    if wanted.best == 1:
        return ()
    return (f"kept the best {wanted.count} of {wanted.count * wanted.best} by the grade (protocol key-aware)",)
