"""The default for tables: members that start from joint Gaussians, judged and weighed by cells they have not seen.

    1  every present cell gets one of G folds at random; member m of each group leaves out fold m
    2  for each group of members a joint Gaussian, fitted once per fold without it
    3  all members learn together (``cross_fit``), a moving average of the weights is kept, and learning stops
       when the cells that were left out are no longer answered better
    4  for each variable a factor on its scales, and the weights of the groups and of the joints themselves in its pool,
       are those that make its left-out cells most probable
    5  the final answer starts every member from the joint of *all* cells

So intervals are as wide as errors on cells that a member has not seen. Three things are of all cells nevertheless: the
standardisation with its bins and spikes, the numbers of Gaussians and factors and that pull, and where EM begins for
the joints of several Gaussians (it then makes 12 steps without the fold).

**The joint Gaussians** that members start from: how many, of which shape, fitted without each fold.

One Gaussian always: by factors where these predict held-out features better or the table is wide; on narrow tables also
one or two mixtures of several Gaussians, drawn towards independence as far as that predicts held-out features better.
Held-out are 15 % of the known features, hidden at random, once or, where they are fewer than 4000, three times; a
choice (rank, numbers of components, shrink) is that whose

    error = sum over hidden (i, j) of min((f_ij - center_ij)^2, 25),    center = E[f_i | what is left of f_i,o]

is least. The bound keeps one wild value from choosing alone. By squared error: the centers are what a network starts
from; the shape around them it learns itself.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeVar

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.likelihoods import Categorical, Mixed, Pooled, SpikedMixture
from anyfill.likelihoods.marginals import Likelihood
from anyfill.model import Model
from anyfill.networks.embed import Cycle
from anyfill.questions.mixture import Mixture
from anyfill.questions.subsets import Bernoulli
from anyfill.rows import Rows
from anyfill.tables.cross_fit import CrossFitLoss, EnsembleTrainer, HeldOutLoss, Unseen, deal, unseen_cells, weigh
from anyfill.tables.gaussian_em import fit_factors, fit_joint
from anyfill.tables.gaussians import Expansion, Factors, Joint, condition
from anyfill.tables.residual_network import GaussianResidualEnsemble
from anyfill.training import FitOptions, StepReport, fit_steps

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
WIDE_RANK = 48
"""Factors of a table too wide for full covariances."""
_MAX_NUMBERS = 600_000
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
    used = _spaced(rows, min(_enough_rows(features), 1000))
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
    used = _spaced(Rows(rows.x, rows.present, folds), _enough_rows(features) if features <= MAX_FEATURES else 2000)
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
            every = fit_joint(x, whole, *own, generator=generator)
            start = every if components > 1 else None
            parts = [fit_joint(x, known, *own, start=start, steps=12, generator=generator) for known in seen]
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
        found = {count: _expected(features, left, count, rank, shrink, generator) for count in counts}
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
        first = int(torch.randint(2**31, (), generator=generator))  # the same first centers for all
        return lambda shrink: _expected(features, left, components, rank, shrink, torch.Generator().manual_seed(first))

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


def _expected(
    features: Tensor, known: Tensor, components: int, rank: int, shrink: float, generator: Generator
) -> Tensor:
    """(B, D): the features as a joint of so many components, quickly fitted, expects them."""
    joint = fit_joint(features, known, components, rank, shrink, steps=15, generator=generator)
    return condition(joint, features.double(), known).center


def _single(features: Tensor, known: Tensor, rank: int, generator: Generator) -> Tensor:
    """(B, D): the features as one Gaussian of so many factors (0 = of a full covariance) expects them."""
    joint = fit_factors(features, known, rank) if rank else fit_joint(features, known, 1, generator=generator)
    return condition(joint, features.double(), known).center


def _spaced(rows: Rows, maximum: int) -> Rows:
    """At most so many rows, evenly spaced."""
    count = min(len(rows), maximum)
    return rows.take(torch.arange(count) * len(rows) // max(count, 1))


def _enough_rows(features: int) -> int:
    """How many rows a joint of so many features needs: more would cost much and change little."""
    return max(min(3000, _MAX_NUMBERS // features**2), 10 * features)


FOLDS = 6


def deal_folds(rows: Rows, *, origin: Tensor | None = None, generator: Generator) -> Tensor:
    """(B, N): the fold of each cell. Copies of one row, those with the same ``origin`` (B,), are dealt alike: what is
    left out in one must not be told by another."""
    count = len(rows) if origin is None else int(origin.max()) + 1
    folds = torch.randint(FOLDS, (count, rows.variables), generator=generator)
    return folds if origin is None else folds[origin]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleOptions:
    """Settings of the default recipe; None = by the size of the table.

    Attributes:
        steps: the most optimizer steps.
        members: networks in the ensemble; as many more as spread evenly over the joints.
        joints: Gaussians in the joint of each group of members.
        width, depth, dropout, bins: of each network, see ``GaussianResidualEnsemble``.
        learning_rate, weight_decay, ema: of the optimizer and the moving average.
        patience: judgements in a row without a new best after which learning stops.
        judge_every: steps between judgements.
        rows_per_member: of a batch.
        seed: of everything random.
    """

    steps: int | None = None
    members: int | None = None
    joints: tuple[int, ...] | None = None
    width: int | None = None
    depth: int = 2
    dropout: float = 0.1
    bins: int = 12
    learning_rate: float = 3e-3
    weight_decay: float = 0.05
    ema: float = 0.98
    patience: int = 8
    judge_every: int = 50
    rows_per_member: int | None = None
    seed: int = 0

    def members_for(self, rows: Rows, groups: int) -> int:
        """The fewer cells, the more the members differ, and the more of them pay."""
        if self.members is not None:
            return -(-self.members // groups) * groups
        if len(rows) > MAX_ROWS:
            return 2
        return (12 if rows.x.numel() <= FEW_CELLS and groups > 1 else 6) // groups * groups

    def width_for(self, rows: int) -> int:
        """More rows hold more to be learnt."""
        return self.width or (64 if rows <= 5000 else 128 if rows <= 50_000 else 256)

    def fit_options(self, rows: int, members: int, device: str) -> FitOptions:
        """How the members learn, all together."""
        return FitOptions(
            steps=min(max(2 * rows, 600), 1800) if self.steps is None else self.steps,
            batch_size=members * (self.rows_per_member or (48 if rows <= 5000 else 64 if rows <= 50_000 else 256)),
            learning_rate=self.learning_rate,
            schedule="cosine",
            weight_decay=self.weight_decay,
            ema=self.ema,
            clip_norm=math.sqrt(members),
            validate_every=self.judge_every,
            patience=self.patience,
            report_every=10,
            seed=self.seed,
            device=device,  # pyright: ignore[reportArgumentType]
        )


FAST = EnsembleOptions(joints=(0,), members=1, width=64, depth=1, dropout=0.0, bins=0, rows_per_member=256)
"""One small network and no joint: worse answers than the default, many times as many of them in a second."""


def ensemble_steps(
    rows: Rows,
    likelihood: Mixed,
    options: EnsembleOptions | None = None,
    *,
    cycles: tuple[Cycle, ...] = (),
    device: str = "cpu",
    origin: Tensor | None = None,
) -> Iterator[StepReport | Unseen | Model]:
    """Train; reports on the way, what is said of cells that were left out (if there are joints), and last the model.

    Args:
        rows: the table; what is missing is neither given nor asked.
        likelihood: for each variable a ``SpikedMixture`` or a ``Categorical``.
        options: settings.
        cycles: of variables that go round.
        device: "cpu", "cuda" or "auto".
        origin: (B,), of which row each is a copy; by default no row is.
    """
    options = EnsembleOptions() if options is None else options
    generator = torch.Generator().manual_seed(options.seed)
    shape = _shape(rows, likelihood, options, cycles, generator)
    network = untrained(rows, likelihood, options, shape, cycles)
    held = tuple(range(network.each)) * len(network.joints)
    folds = deal_folds(rows, origin=origin, generator=generator)
    stacks = [network.joint(0)]
    if network.has_joints:
        starts = fit_starts(rows, folds, network.each, shape, network.expansion, generator=generator)
        for number, (every, _) in enumerate(starts):
            network.set_joint(number, every)
        stacks = [stack for _, stack in starts]
    trainer = EnsembleTrainer(network, stacks, torch.tensor(held))
    student, train = Model(trainer, likelihood), Rows(rows.x, rows.present, folds)
    judged = deal(train, network.members, 500, generator=generator)
    hidden = 1.0 - float(rows.present.float().mean())
    usual = Bernoulli(rows.variables, min(max(hidden, 0.15), 0.85))
    loss = CrossFitLoss(Mixture((usual, Bernoulli(rows.variables))), held)
    settings = options.fit_options(len(rows), network.members, device)
    judge = HeldOutLoss(rows.variables, held)
    yield from fit_steps(student, train, loss, settings, validation=judged, validation_objective=judge)
    network.cpu()
    weigh(trainer, likelihood, deal(train, network.members, 2000, generator=generator), held)
    if network.has_joints:
        yield unseen_cells(trainer, likelihood, folds, deal(train, network.members, 1000, generator=generator), held)
    pooled = Pooled(likelihood, network.candidates, weighted=True)
    yield Model(network, pooled, factorizations=student.factorizations).eval()


def _shape(
    rows: Rows, likelihood: Mixed, options: EnsembleOptions, cycles: tuple[Cycle, ...], generator: Generator
) -> Shape:
    """The joints that members will start from."""
    sizes = tuple(column.size if isinstance(column, Categorical) else 0 for column in likelihood.columns)
    return choose_shape(rows, sizes, cycles, generator=generator) if options.joints is None else Shape(options.joints)


def untrained(
    rows: Rows, likelihood: Mixed, options: EnsembleOptions, shape: Shape, cycles: tuple[Cycle, ...] = ()
) -> GaussianResidualEnsemble:
    """An untrained network for these rows, with joints of this shape that are not set yet."""
    columns = [_marginal(j, rows.x[rows.present[:, j], j], column) for j, column in enumerate(likelihood.columns)]
    sizes = tuple(column.size if isinstance(column, Categorical) else 0 for column in likelihood.columns)
    components = [column.components for column in likelihood.columns if isinstance(column, SpikedMixture)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        network = GaussianResidualEnsemble(
            sizes,
            *zip(*columns),
            components=components[-1] if components else 1,
            member_outputs=likelihood.width,
            joints=shape.joints,
            members=options.members_for(rows, len(shape.joints)),
            bins=options.bins,
            width=options.width_for(len(rows)),
            depth=options.depth,
            dropout=options.dropout,
            rank=shape.rank,
            cycles=cycles,
        )
    network.set_bins(rows.x, rows.present)
    return network


def _marginal(j: int, values: Tensor, column: Likelihood) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Of column j with these present values: its spikes, how often each spike or code is seen, its narrowest scale."""
    match column:
        case SpikedMixture():
            marks = torch.tensor(column.spikes, dtype=torch.float64)
            close = (values.double().unsqueeze(1) - marks).abs() <= max(6 * column.spike_scale, 1e-6)
            return column.spikes, tuple((close.double().sum(0) / max(len(values), 1)).tolist()), column.min_scale
        case Categorical(size):
            count = torch.bincount(values.long(), minlength=size).double() + 0.5
            return (), tuple((count / count.sum()).tolist()), 1.0
        case _:
            raise refuse(f"likelihood of variable {j}", expected="SpikedMixture or Categorical", got=repr(column))
