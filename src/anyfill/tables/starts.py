"""The joint Gaussians that members start from: how many, of which shape, fitted without each fold.

One Gaussian always: by factors where these predict held-out features better or the table is wide; on narrow tables also
one or two mixtures of several Gaussians, drawn towards independence as far as that predicts held-out features better.
Held-out are 15 % of the known features, hidden at random, once or, where they are fewer than 4000, three times; a
choice (rank, numbers of components, shrink) is that whose

    error = sum over hidden (i, j) of min((f_ij - center_ij)^2, 25),    center = E[f_i | what is left of f_i,o]

is least. The bound keeps one wild value from choosing alone. By squared error: the centers are what a network starts
from; the shape around them it learns itself.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Generator, Tensor

from anyfill.networks.embed import Cycle
from anyfill.rows import Rows
from anyfill.tables.conditioning import condition_each
from anyfill.tables.factor_analysis import fit_factors
from anyfill.tables.gaussian_mixture import fit_joint
from anyfill.tables.gaussians import Expansion, Factors, Joint, condition

MAX_FEATURES = 64
"""The most features for which joint Gaussians with full covariances are worth their cubic cost."""
MAX_FACTORED = 600
"""The most features for which a joint Gaussian by factors is worth its cost."""
MAX_ROWS = 20_000
"""The most rows of a table that needs joints: networks learn more from more."""
FEW_CELLS = 6000
"""Up to so many cells more members, from more kinds of joints, pay."""
SHRINKS = (0.0, 0.05, 0.12, 0.25)
"""Shares of independence to choose from."""
RANKS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Numbers of factors to choose from."""
WIDE_RANK = 32
"""Factors of a table too wide for full covariances."""
_MAX_NUMBERS = 600_000
_STEPS, _ON = 20, 10  # of EM for all cells, and for those without a fold
_QUICK = 15  # steps of EM where a shape is only chosen
_FEW = 5  # and of those that go on from another
_FACTORED = 15  # and of factors
_Choice = TypeVar("_Choice")


class Shape(NamedTuple):
    """What joints there are.

    Attributes:
        joints: for each the number of its Gaussians; (0,) = no joint.
        rank: the first is one Gaussian by so many factors; 0 = with a full covariance.
        shrink: how far those of several Gaussians are drawn towards independence.
    """

    joints: tuple[int, ...]
    rank: int = 0
    shrink: float = 0.0


def choose_shape(
    rows: Rows, sizes: Sequence[int], cycles: Sequence[Cycle] = (), *, simple: bool = False, generator: Generator
) -> Shape:
    """The joints for a table: one and, if it is narrow, as many Gaussians as predict held-out cells best.

    ``simple``: one alone.
    """
    expansion = Expansion(sizes, cycles)
    features = expansion.features
    if features > MAX_FACTORED or len(rows) > MAX_ROWS:
        return Shape((0,))
    if features > MAX_FEATURES:
        return Shape((1,), min(WIDE_RANK, len(rows) // 4))
    used = _spaced(rows, min(enough_rows(features), 1000))
    x, known = expansion.expand(used.x).double(), expansion.spread(used.present)
    rank = choose_rank(x, known, [rank for rank in RANKS if rank < features], generator=generator)
    maximum = min(len(rows) // 30, max(2, 150 // features))
    counts = [count for count in (2, 3, 5, 9) if count <= maximum]
    if not counts or simple:
        return Shape((1,), rank)
    kinds = 2 if rows.x.numel() <= FEW_CELLS else 1
    own = torch.Generator().manual_seed(generator.initial_seed())
    shrink = choose_shrink(x, known, min(3, counts[-1]), rank, generator=own)
    return Shape((1, *choose_components(x, known, counts, kinds, rank, shrink, generator=generator)), rank, shrink)


def fit_starts(
    rows: Rows, folds: Tensor, count: int, shape: Shape, expansion: Expansion, *, generator: Generator
) -> list[tuple[Joint | Factors, Joint | Factors]]:
    """For each joint of a shape that of all cells (float64), and a stack of those without each of the first folds.

    Args:
        rows: the table.
        folds: (B, N), the fold of each cell.
        count: how many folds are left out, each in turn.
        shape: the joints.
        expansion: the features of a row.
        generator: of the first centers.
    """
    features = expansion.features
    used = _spaced(Rows(rows.x, rows.present, folds), enough_rows(features) if features <= MAX_FEATURES else 2000)
    folds = folds if used.context is None else used.context
    x, whole = expansion.expand(used.x).double(), expansion.spread(used.present)
    seen = [expansion.spread(used.present & (folds != fold)) for fold in range(count)]
    fitted: list[tuple[Joint | Factors, Joint | Factors]] = []
    for number, components in enumerate(shape.joints):
        if shape.rank and number == 0:
            every = fit_factors(x, whole, shape.rank)
            parts = [fit_factors(x, known, shape.rank) for known in seen]
        else:
            own = components, shape.rank, shape.shrink if components > 1 else 0.0
            every = fit_joint(x, whole, *own, steps=_STEPS, generator=generator)
            start = every if components > 1 else None
            parts = [fit_joint(x, known, *own, start=start, steps=_ON, generator=generator) for known in seen]
        fitted.append((every, type(every)(*(torch.stack(part).float() for part in zip(*parts)))))
    return fitted


def choose_components(
    features: Tensor,
    known: Tensor,
    counts: Sequence[int],
    maximum: int = 1,
    rank: int = 0,
    shrink: float = 0.0,
    *,
    generator: Generator,
) -> tuple[int, ...]:
    """Which numbers of Gaussians go best together: one Gaussian and these, averaged, predict held-out features best.

    Args:
        features: (B, D).
        known: bool (B, D).
        counts: the numbers to choose from.
        maximum: how many to choose.
        rank: see ``fit_joint``; of the one Gaussian too.
        shrink: see ``fit_joint``; not of the one Gaussian.
        generator: of the held-out features and the first centers.
    """
    if len(counts) <= maximum:
        return tuple(counts)

    def centers(left: Tensor) -> Callable[[tuple[int, ...]], Tensor]:
        one = _single(features, left, rank, generator)
        first = fit_joint(features, left, 1, 0, shrink, steps=_QUICK, generator=generator)
        own: dict[str, Any] = {"first": first, "steps": _QUICK, "generator": generator}
        fitted = {count: fit_joint(features, left, count, rank, shrink, **own) for count in counts}
        found = {count: _expected(joint, features, left) for count, joint in fitted.items()}
        return lambda some: (one + sum(found[count] for count in some)) / (1 + maximum)

    return _best(list(combinations(counts, maximum)), features, known, centers, generator)


def choose_rank(features: Tensor, known: Tensor, ranks: Sequence[int], *, generator: Generator) -> int:
    """Which of some numbers of factors predicts held-out features best; 0 if a full covariance does."""

    def centers(left: Tensor) -> Callable[[int], Tensor]:
        return lambda rank: _single(features, left, rank, generator)

    return _best((0, *ranks), features, known, centers, generator)


def choose_shrink(features: Tensor, known: Tensor, components: int, rank: int = 0, *, generator: Generator) -> float:
    """Which of ``SHRINKS`` lets a joint of so many components predict held-out features best."""

    def centers(left: Tensor) -> Callable[[float], Tensor]:
        plain = fit_joint(features, left, components, rank, steps=_QUICK, generator=generator)

        def center(shrink: float) -> Tensor:  # all go on from the same
            own: dict[str, Any] = {"start": plain, "steps": _FEW, "generator": generator}
            joint = fit_joint(features, left, components, rank, shrink, **own) if shrink else plain
            return _expected(joint, features, left)

        return center

    return _best(SHRINKS, features, known, centers, generator)


def _best(
    choices: Sequence[_Choice],
    features: Tensor,
    known: Tensor,
    centers: Callable[[Tensor], Callable[[_Choice], Tensor]],
    generator: Generator,
) -> _Choice:
    """The choice that predicts held-out features best, the first of equals.

    ``centers(left)`` is called once for what is left, bool (B, D), and its answer for each choice: (B, D).
    """
    errors = dict.fromkeys(choices, 0.0)
    for _ in range(3 if int(known.sum()) < 4000 else 1):
        hidden = known & (torch.rand(known.shape, generator=generator).to(known.device) < 0.15)
        center_of = centers(known & ~hidden)
        for choice in errors:
            errors[choice] += float((features - center_of(choice))[hidden].square().clamp(max=25.0).sum())
    return min(errors, key=lambda choice: errors[choice])


def _expected(joint: Joint, features: Tensor, known: Tensor) -> Tensor:
    """(B, D): the features as a joint expects them."""
    return condition_each(joint, features.double(), known).center


def _single(features: Tensor, known: Tensor, rank: int, generator: Generator) -> Tensor:
    """(B, D): the features as one Gaussian of so many factors (0 = of a full covariance) expects them."""
    if rank:
        factors = fit_factors(features, known, rank, steps=_FACTORED)
        return condition(factors, features.double(), known).center
    return _expected(fit_joint(features, known, 1, generator=generator), features, known)


def _spaced(rows: Rows, maximum: int) -> Rows:
    """At most so many rows, evenly spaced."""
    count = min(len(rows), maximum)
    return rows.take(torch.arange(count) * len(rows) // max(count, 1))


def enough_rows(features: int) -> int:
    """How many rows a joint of so many features needs: more would cost much and change little."""
    return max(min(3000, _MAX_NUMBERS // features**2), 10 * features)
