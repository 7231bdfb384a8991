"""How far a piece's histogram lies from the chorales': the least mass · distance that turns one into the other (W1).

    W1 = integral of |F - G|, F and G the two cumulative shares

Lengths lie where they are. Kinds (of chord, of interval …) have no places, so they get ranks: 0 for the one that is
most frequent in the chorales, then down; kinds the chorales never have come behind, the piece's rarest first.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise


def rank_distance(own: Mapping[str, float], reference: Mapping[str, float]) -> float:
    """W1 over ranks of the histogram ``own``, from ``reference`` in falling order; neither need sum to 1."""
    unseen = sorted(mass for kind, mass in own.items() if kind not in reference)
    mine = [own.get(kind, 0.0) for kind in reference] + unseen
    theirs = [*reference.values(), *([0.0] * len(unseen))]
    total, all_of_it = sum(mine), sum(theirs)
    return sum(abs(f / total - g / all_of_it) for f, g in zip(accumulate(mine), accumulate(theirs)))


def length_distance(own: Mapping[int, float], reference: Mapping[int, float]) -> float:
    """W1 of two histograms over numbers; an empty ``own`` has all its mass at 0."""
    mine: Mapping[int, float] = own or {0: 1.0}
    places: Sequence[int] = sorted({*mine, *reference})
    total, all_of_it = sum(mine.values()), sum(reference.values())
    f = g = work = 0.0
    for place, following in pairwise(places):
        f += mine.get(place, 0.0)
        g += reference.get(place, 0.0)
        work += abs(f / total - g / all_of_it) * (following - place)
    return work
