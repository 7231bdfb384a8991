"""The default for tables: members that start from joint Gaussians, judged and weighed by cells they have not seen.

    1  every present cell gets one of G folds at random; member m of each group leaves out fold m
    2  for each group of members a joint, fitted once per fold without it: one Gaussian, by factors where these predict
       held-out cells better or the table is wide; on narrow tables also one or two mixtures of several Gaussians, drawn
       towards independence as far as that predicts held-out cells better
    3  all members learn together (``objectives.held_out``), a moving average of the weights is kept, and learning stops
       when the cells that were left out are no longer answered better
    4  for each variable a factor on its scales, and the weights of the groups and of the joints themselves in its pool,
       are those that make its left-out cells most probable
    5  the final answer starts every member from the joint of *all* cells

So intervals are as wide as errors on cells that a member has not seen. Three things are of all cells nevertheless: the
standardisation with its bins and spikes, the numbers of Gaussians and factors and that pull, and where EM begins for
the joints of several Gaussians (it then makes 12 steps without the fold).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.likelihoods import Categorical, Mixed, Pooled, SpikedMixture
from anyfill.model import Model
from anyfill.questions.mixture import Mixture
from anyfill.questions.subsets import Bernoulli
from anyfill.rows import Rows
from anyfill.tables.apart import EnsembleTrainer
from anyfill.tables.expansion import Expansion
from anyfill.tables.factors import Factors
from anyfill.tables.factors_em import fit_factors
from anyfill.tables.held_out import CrossFitLoss, HeldOutLoss
from anyfill.tables.joint import Joint
from anyfill.tables.joint_em import choose_components, choose_rank, choose_shrink, enough_rows, fit_joint
from anyfill.tables.residual_ensemble import GaussianResidualEnsemble
from anyfill.tables.weighing import Unseen, unseen_cells, weigh
from anyfill.training import FitOptions, StepReport, fit_steps

FOLDS = 6
FEW_CELLS = 6000
"""Up to so many cells more members, from more kinds of joints, pay."""
MAX_FEATURES = 64
"""The most features for which joint Gaussians with full covariances are worth their cubic cost."""
MAX_FACTORED = 600
"""The most features for which a joint Gaussian by factors is worth its cost."""
RANKS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Numbers of factors to choose from."""
WIDE_RANK = 48
"""Factors of a table too wide for full covariances."""


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


FAST = EnsembleOptions(joints=(0,), members=1, width=64, depth=1, dropout=0.0, bins=0, rows_per_member=256)
"""One small network and no joint: worse answers than the default, many times as many of them in a second."""


def ensemble_steps(
    rows: Rows, likelihood: Mixed, options: EnsembleOptions | None = None, *, device: str = "cpu"
) -> Iterator[StepReport | Unseen | Model]:
    """Train; reports on the way, what is said of cells that were left out (if there are joints), and last the model.

    Args:
        rows: the table; what is missing is never told and never asked.
        likelihood: for each variable a ``SpikedMixture`` or a ``Categorical``.
        options: settings.
        device: "cpu", "cuda" or "auto".
    """
    options = EnsembleOptions() if options is None else options
    generator = torch.Generator().manual_seed(options.seed)
    network, shrink = _network(rows, likelihood, options, generator)
    held = tuple(range(network.members // len(network.joints))) * len(network.joints)
    folds = torch.randint(FOLDS, rows.x.shape, generator=generator)
    stacks = _joints(network, rows, folds, shrink, generator)
    view = EnsembleTrainer(network, stacks, torch.tensor(held))
    student = Model(view, likelihood)
    taught = Rows(rows.x, rows.present, folds)
    judged = _dealt(taught, network.members, 500, generator)
    batch = network.members * _rows_per_member(options, len(rows))
    settings = FitOptions(
        steps=_steps(options, rows),
        batch_size=batch,
        learning_rate=options.learning_rate,
        schedule="cosine",
        weight_decay=options.weight_decay,
        ema=options.ema,
        clip_norm=math.sqrt(network.members),
        validate_every=options.judge_every,
        patience=options.patience,
        report_every=10,
        seed=options.seed,
        device=device,  # pyright: ignore[reportArgumentType]
    )
    hidden = 1.0 - float(rows.present.float().mean())
    usual = Bernoulli(rows.variables, min(max(hidden, 0.15), 0.85))
    questions = Mixture((usual, Bernoulli(rows.variables)))
    judge = HeldOutLoss(rows.variables, held)
    yield from fit_steps(
        student, taught, CrossFitLoss(questions, held), settings, validation=judged, validation_objective=judge
    )
    network.cpu()
    weigh(view, likelihood, _dealt(taught, network.members, 2000, generator), held)
    if network.has_joints:
        yield unseen_cells(view, likelihood, folds, _dealt(taught, network.members, 1000, generator), held)
    pooled = Pooled(likelihood, network.candidates, weighted=True)
    yield Model(network, pooled, factorizations=student.factorizations).eval()


def _network(
    rows: Rows, likelihood: Mixed, options: EnsembleOptions, generator: Generator
) -> tuple[GaussianResidualEnsemble, float]:
    """An untrained network for these rows, and how far its mixtures are drawn towards independence."""
    sizes = [column.size if isinstance(column, Categorical) else 0 for column in likelihood.columns]
    spikes: list[tuple[float, ...]] = []
    shares: list[tuple[float, ...]] = []
    floors: list[float] = []
    components = 1
    for j, column in enumerate(likelihood.columns):
        values = rows.x[rows.present[:, j], j]
        if isinstance(column, SpikedMixture):
            marks = torch.tensor(column.spikes, dtype=torch.float64)
            spikes.append(column.spikes)
            close = (values.double().unsqueeze(1) - marks).abs() <= max(6 * column.spike_scale, 1e-6)
            shares.append(tuple((close.double().sum(0) / max(len(values), 1)).tolist()))
            floors.append(column.min_scale)
            components = column.components
        elif isinstance(column, Categorical):
            count = torch.bincount(values.long(), minlength=column.size).double() + 0.5
            spikes.append(())
            shares.append(tuple((count / count.sum()).tolist()))
            floors.append(1.0)
        else:
            raise refuse(f"likelihood of variable {j}", expected="SpikedMixture or Categorical", got=repr(column))
    found = _joint_counts(rows, sizes, generator) if options.joints is None else (options.joints, 0, 0.0)
    joints, rank, shrink = found
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        network = GaussianResidualEnsemble(
            tuple(sizes),
            tuple(spikes),
            tuple(shares),
            tuple(floors),
            components,
            likelihood.width,
            joints,
            _members(options, rows, len(joints)),
            options.bins,
            _width(options, len(rows)),
            options.depth,
            options.dropout,
            rank,
        )
    network.set_bins(rows.x, rows.present)
    return network, shrink


def _joint_counts(rows: Rows, sizes: list[int], generator: Generator) -> tuple[tuple[int, ...], int, float]:
    """The numbers of Gaussians: one and, if the table is narrow, as many as predict held-out cells best; the rank of
    the one; how far the others are drawn towards independence."""
    expansion = Expansion(sizes)
    features = expansion.features
    if features > MAX_FACTORED or len(rows) > 20_000:
        return (0,), 0, 0.0
    if features > MAX_FEATURES:
        return (1,), min(WIDE_RANK, len(rows) // 4), 0.0
    used = _spaced(rows, min(enough_rows(features), 1000))
    x, told = expansion.expand(used.x).double(), expansion.spread(used.present)
    rank = choose_rank(x, told, [rank for rank in RANKS if rank < features], generator=generator)
    most = min(len(rows) // 30, max(2, 150 // features))
    counts = [count for count in (2, 3, 5, 9) if count <= most]
    if not counts:
        return (1,), rank, 0.0
    kinds = 2 if rows.x.numel() <= FEW_CELLS else 1
    own = torch.Generator().manual_seed(generator.initial_seed())
    shrink = choose_shrink(x, told, min(3, counts[-1]), rank, generator=own)
    return (1, *choose_components(x, told, counts, kinds, rank, shrink, generator=generator)), rank, shrink


def _spaced(rows: Rows, most: int) -> Rows:
    """At most so many rows, evenly spaced."""
    count = min(len(rows), most)
    return rows.take(torch.arange(count) * len(rows) // max(count, 1))


def _members(options: EnsembleOptions, rows: Rows, groups: int) -> int:
    """The fewer cells, the more the members differ, and the more of them pay."""
    if options.members is not None:
        return -(-options.members // groups) * groups
    if len(rows) > 20_000:
        return 2
    return (12 if rows.x.numel() <= FEW_CELLS and groups > 1 else 6) // groups * groups


def _width(options: EnsembleOptions, rows: int) -> int:
    if options.width is not None:
        return options.width
    return 64 if rows <= 5000 else 128 if rows <= 50_000 else 256


def _rows_per_member(options: EnsembleOptions, rows: int) -> int:
    if options.rows_per_member is not None:
        return options.rows_per_member
    return 48 if rows <= 5000 else 64 if rows <= 50_000 else 256


def _steps(options: EnsembleOptions, rows: Rows) -> int:
    return min(max(2 * len(rows), 600), 1800) if options.steps is None else options.steps


def _joints(
    network: GaussianResidualEnsemble, rows: Rows, folds: Tensor, shrink: float, generator: Generator
) -> list[Joint | Factors]:
    """For each group the joints without each fold, stacked; the network keeps the joint of all cells."""
    expansion: Expansion = network.expansion
    features = expansion.features
    used = _spaced(Rows(rows.x, rows.present, folds), enough_rows(features) if features <= MAX_FEATURES else 2000)
    x, present, folds = expansion.expand(used.x).double(), used.present, folds if used.context is None else used.context
    seen = [expansion.spread(present & (folds != fold)) for fold in range(network.members // len(network.joints))]
    whole = expansion.spread(present)
    stacks: list[Joint | Factors] = []
    for number, components in enumerate(network.joints):
        if components == 0:
            stacks.append(network.joint(number))
        elif network.rank and number == 0:
            every = fit_factors(x, whole, network.rank)
            network.set_joint(number, every)
            parts = [fit_factors(x, known, network.rank) for known in seen]
            stacks.append(Factors(*(torch.stack(part).float() for part in zip(*parts))))
        else:
            shape = components, network.rank, shrink if components > 1 else 0.0
            every = fit_joint(x, whole, *shape, generator=generator)
            network.set_joint(number, every)
            start = every if components > 1 else None
            parts = [fit_joint(x, one, *shape, start=start, steps=12, generator=generator) for one in seen]
            stacks.append(Joint(*(torch.stack(part).float() for part in zip(*parts))))
    return stacks


def _dealt(rows: Rows, members: int, most: int, generator: Generator) -> Rows:
    """Rows repeated so that each of them is met by every member: M copies of each block, padded with empty rows."""
    chosen = rows
    if len(rows) > most:
        chosen = rows.take(torch.randperm(len(rows), generator=generator)[:most])
    block = 64
    pieces: list[Rows] = []
    for i in range(0, len(chosen), block):
        index = torch.arange(i, min(i + block, len(chosen)))
        piece = chosen.take(index)
        context = piece.context if piece.context is not None else torch.zeros_like(piece.x)
        missing = block - len(index)
        pad = torch.nn.functional.pad
        pieces += [
            Rows(
                pad(piece.x, (0, 0, 0, missing)),
                pad(piece.present, (0, 0, 0, missing)),
                pad(context, (0, 0, 0, missing)),
            )
        ] * members
    return Rows(
        torch.cat([one.x for one in pieces]),
        torch.cat([one.present for one in pieces]),
        torch.cat([one.context for one in pieces if one.context is not None]),
    )
