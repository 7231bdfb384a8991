"""The default for tables: members that start from joint Gaussians, judged and weighed by cells they have not seen.

    1  every present cell gets one of G folds at random; member m of each group leaves out fold m
    2  for each group of members a mixture of joint Gaussians (one Gaussian; several), fitted once per fold without it
    3  all members learn together (``objectives.held_out``), a moving average of the weights is kept, and learning stops
       when the cells that were left out are no longer answered better
    4  for each variable a factor on its scales, and the weights of the groups and of the joints themselves in its pool,
       are those that make its left-out cells most probable
    5  the final answer starts every member from the joint of *all* cells

So intervals are as wide as errors on cells that a member has not seen. Three things are of all cells nevertheless: the
standardisation with its bins and spikes, the number of Gaussians, and where EM begins for the joints of several
Gaussians (it then makes 12 steps without the fold).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.data.rows import Rows
from anyfill.likelihoods import Categorical, Mixed, Pooled, SpikedMixture
from anyfill.model import Model
from anyfill.networks.apart import Apart
from anyfill.networks.expansion import Expansion
from anyfill.networks.guided import GuidedMLP
from anyfill.networks.joint import Joint
from anyfill.objectives.held_out import Judged, Taught
from anyfill.questions.bernoulli import Bernoulli
from anyfill.questions.mixture import Mixture
from anyfill.recipes.joint_em import choose_components, enough_rows, fit_joint
from anyfill.recipes.weighing import weigh
from anyfill.training import FitOptions, StepReport, fit_steps

FOLDS = 6
MOST_FEATURES = 64
"""The most features for which joint Gaussians are worth their cubic cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedOptions:
    """Settings of the default recipe; None = by the size of the table.

    Attributes:
        steps: the most optimiser steps.
        members: networks in the ensemble.
        joints: Gaussians in the joint of each group of members.
        width, depth, dropout, bins: of each network, see ``GuidedMLP``.
        learning_rate, weight_decay, ema: of the optimiser and the moving average.
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


FAST = GuidedOptions(joints=(0,), members=1, width=64, depth=1, dropout=0.0, bins=0, rows_per_member=256)
"""One small network and no joint: worse answers than the default, many times as many of them in a second."""


def guided_steps(
    rows: Rows, likelihood: Mixed, options: GuidedOptions | None = None, *, device: str = "cpu"
) -> Iterator[StepReport | Model]:
    """Train; reports on the way, and last the model.

    Args:
        rows: the table; what is missing is never told and never asked.
        likelihood: for each variable a ``SpikedMixture`` or a ``Categorical``.
        options: settings.
        device: "cpu", "cuda" or "auto".
    """
    options = GuidedOptions() if options is None else options
    generator = torch.Generator().manual_seed(options.seed)
    network = _network(rows, likelihood, options, generator)
    held = tuple(range(network.members // len(network.joints))) * len(network.joints)
    folds = torch.randint(FOLDS, rows.x.shape, generator=generator)
    stacks = _joints(network, rows, folds, generator)
    view = Apart(network, stacks, torch.tensor(held))
    student = Model(view, likelihood)
    taught = Rows(rows.x, rows.present, folds)
    judged = _dealt(taught, network.members, FOLDS, generator)
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
    judge = Judged(rows.variables, held)
    yield from fit_steps(
        student, taught, Taught(questions, held), settings, validation=judged, validation_objective=judge
    )
    network.cpu()
    weigh(view, likelihood, judged, held)
    pooled = Pooled(likelihood, network.candidates, weighted=True)
    yield Model(network, pooled, readings=student.readings).eval()


def _network(rows: Rows, likelihood: Mixed, options: GuidedOptions, generator: Generator) -> GuidedMLP:
    """An untrained network for these rows."""
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
    joints = _joint_counts(rows, sizes, generator) if options.joints is None else options.joints
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        network = GuidedMLP(
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
        )
    network.set_bins(rows.x, rows.present)
    return network


def _joint_counts(rows: Rows, sizes: list[int], generator: Generator) -> tuple[int, ...]:
    """One Gaussian for half of the members; for the others as many as predict held-out cells best."""
    features = sum(size or 1 for size in sizes)
    if features > MOST_FEATURES or len(rows) > 20_000:
        return (0,)
    most = min(round(len(rows) / 50), max(2, 150 // features))
    counts = [count for count in (2, 3, 5, 9) if count <= most]
    if not counts:
        return (1,)
    used = _spaced(rows, min(enough_rows(features), 1000))
    expansion = Expansion(sizes)
    told = expansion.spread(used.present)
    return (1, choose_components(expansion.expand(used.x).double(), told, counts, generator=generator))


def _spaced(rows: Rows, most: int) -> Rows:
    """At most so many rows, evenly spaced."""
    count = min(len(rows), most)
    return rows.take(torch.arange(count) * len(rows) // max(count, 1))


def _members(options: GuidedOptions, rows: Rows, groups: int) -> int:
    """The fewer cells, the more the members differ, and the more of them pay."""
    if options.members is not None:
        return options.members
    if len(rows) > 20_000:
        return 2
    return (FOLDS if rows.x.numel() <= 6000 else FOLDS // 2) * groups


def _width(options: GuidedOptions, rows: int) -> int:
    if options.width is not None:
        return options.width
    return 64 if rows <= 5000 else 128 if rows <= 50_000 else 256


def _rows_per_member(options: GuidedOptions, rows: int) -> int:
    if options.rows_per_member is not None:
        return options.rows_per_member
    return 48 if rows <= 5000 else 64 if rows <= 50_000 else 256


def _steps(options: GuidedOptions, rows: Rows) -> int:
    return min(max(2 * len(rows), 600), 1800) if options.steps is None else options.steps


def _joints(network: GuidedMLP, rows: Rows, folds: Tensor, generator: Generator) -> list[Joint]:
    """For each group the joints without each fold, stacked; the network keeps the joint of all cells."""
    used = _spaced(Rows(rows.x, rows.present, folds), enough_rows(network.expansion.features))
    x, present, folds = used.x, used.present, folds if used.context is None else used.context
    expansion: Expansion = network.expansion
    features = expansion.expand(x).double()
    stacks: list[Joint] = []
    for number, components in enumerate(network.joints):
        if components == 0:
            stacks.append(network.joint(number))
            continue
        whole = fit_joint(features, expansion.spread(present), components, generator=generator)
        network.set_joint(number, whole)
        parts = [
            fit_joint(
                features,
                expansion.spread(present & (folds != fold)),
                components,
                start=whole if components > 1 else None,
                steps=12,
                generator=generator,
            )
            for fold in range(network.members // len(network.joints))
        ]
        stacks.append(Joint(*(torch.stack(part).float() for part in zip(*parts))))
    return stacks


def _dealt(rows: Rows, members: int, most: int, generator: Generator) -> Rows:
    """Rows repeated so that each of them is met by every member: M copies of each block, padded with empty rows."""
    chosen = rows
    if len(rows) > 2000:
        chosen = rows.take(torch.randperm(len(rows), generator=generator)[:2000])
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
