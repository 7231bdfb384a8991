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
the joints of several Gaussians (it then makes 10 steps without the fold).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

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
from anyfill.tables.cross_fit import (
    CrossFitLoss,
    EnsembleTrainer,
    HeldOutLoss,
    Unseen,
    deal,
    judged_cells,
    unseen_cells,
    weigh,
)
from anyfill.tables.residual_network import GaussianResidualEnsemble
from anyfill.tables.starts import FEW_CELLS, MAX_ROWS, Shape, choose_shape, fit_starts
from anyfill.training import FitOptions, StepReport, fit_steps

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


SMALL = EnsembleOptions(joints=(0,), members=1, width=64, depth=1, dropout=0.0, bins=0, rows_per_member=256)
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
    cells = judged_cells(trainer, deal(train, network.members, 2000, generator=generator), held)
    weigh(network, likelihood, cells)
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
