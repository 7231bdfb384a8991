"""The default for tables: joint Gaussians, trees and networks, blended for every column by cells none of them has seen.

    1  every present cell gets one of ``FOLDS`` folds; the first G of them are left out in turn
    2  joint Gaussians, fitted without each of these folds and with all cells (``ensemble``)
    3  trees of every column, grown without each of these folds from where the joint without it stands (``growing``)
    4  networks that start from the joints, one without each fold (``cross_fit``), where the effort allows for them
    5  weights of all of these for every column, by questions about the left-out cells (``stacking``)
    6  the final answer starts from the joints of all cells (``blend``)

**Effort** says how long this may take. In CPU seconds, about: low a third of medium, high four times as much.

    low      trees and joints, two folds
    medium   three folds, fewer where there are many cells, and networks of tables up to ``Effort.network_cells`` cells
    high     as many folds as there are, and networks as long as they learn

**Large tables.** Trees and joints learn from a sample of the rows, evenly spaced (``Effort.rows``), and are judged by
others; networks, where there are any, from all.
"""

import time
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from anyfill.likelihoods import Mixed, Pooled, SpikedMixture
from anyfill.model import Model
from anyfill.networks.embed import Cycle
from anyfill.questions.question import Factorization
from anyfill.rows import Rows
from anyfill.tables.asked import Asked, Fold
from anyfill.tables.blend import Blend
from anyfill.tables.boosting import trees_of
from anyfill.tables.copies import Copier
from anyfill.tables.cross_fit import EnsembleTrainer, Unseen, weigh
from anyfill.tables.effort import Effort
from anyfill.tables.ensemble import EnsembleOptions, deal_folds, untrained
from anyfill.tables.gaussians import Expansion, Factors, Joint
from anyfill.tables.growing import Column, Grower
from anyfill.tables.prepared import Prepared, PreparedLoss, prepared_cells
from anyfill.tables.residual_network import GaussianResidualEnsemble
from anyfill.tables.stacking import Judged, density_weights, judge, mean_weights
from anyfill.tables.starts import Shape, choose_shape, fit_starts
from anyfill.tables.table import Category, Table
from anyfill.tables.time_left import Clock, Work
from anyfill.tables.trees import AnyOrderTrees, pack, without_second
from anyfill.training import StepReport, fit_steps

_JUDGED = 700  # rows of each fold, at most, that say when members stop learning, and how they are weighed


def blend_steps(
    rows: Rows,
    likelihood: Mixed,
    table: Table,
    effort: Effort,
    *,
    seed: int,
    steps: int | None = None,
    device: str = "cpu",
    shape: Shape | None = None,
    cycles: tuple[Cycle, ...] = (),
    origin: Tensor | None = None,
) -> Iterator[StepReport | Unseen | Model]:
    """Fit; reports on the way, what is said of cells that were left out, and last the model.

    Args:
        rows: the table; what is missing is neither given nor asked.
        likelihood: for each variable a ``SpikedMixture`` or a ``Categorical``.
        table: the columns.
        effort: how much work.
        seed: of everything random.
        steps: the most optimizer steps of networks, and the most trees of a model; by default the effort's.
        device: where networks are trained.
        shape: the joints; by default those that predict best.
        cycles: of variables that go round.
        origin: (B,), of which row each is a copy; by default no row is.
    """
    generator = torch.Generator().manual_seed(seed)
    count = effort.folds_for(rows.x.numel())
    has_networks = effort.steps > 0 and rows.x.numel() <= effort.network_cells
    kept = torch.arange(min(len(rows), effort.rows)) * max(len(rows), 1) // max(min(len(rows), effort.rows), 1)
    used = rows if len(rows) <= effort.rows else rows.take(kept)
    sizes = _sizes(likelihood)
    work = Work(
        rows=len(used),
        sizes=sizes,
        features=Expansion(sizes, cycles).features,
        present=float(rows.present.float().mean()) if rows.x.numel() else 0.0,
        folds=count,
        copies=effort.copies_for(len(used), rows.variables),
        members=2 * count if has_networks else 0,
        steps=min(effort.steps_for(rows.variables), steps or effort.steps),
        simple=not effort.joints,
        chosen=shape is not None,
        jointless=shape is not None and shape.joints == (0,),
    )
    clock = Clock(work)
    yield clock.report()
    if shape is None:
        shape = choose_shape(rows, sizes, cycles, simple=not effort.joints, generator=generator)
        clock.know(work._replace(members=count * len(shape.joints) if has_networks else 0, chosen=True))
        yield clock.report()
    options = EnsembleOptions(
        seed=seed,
        members=count * len(shape.joints) if has_networks else 0,
        joints=shape.joints,
        steps=work.steps,
        patience=effort.patience,
    )
    network = untrained(rows, likelihood, options, shape, cycles)
    folds = deal_folds(used, origin=origin if origin is None else origin[kept], generator=generator)
    stacks: list[Joint | Factors] = [network.joint(0)]
    if network.has_joints:
        starts = fit_starts(used, folds, count, shape, network.expansion, generator=generator)
        for number, (every, _) in enumerate(starts):
            network.set_joint(number, every)
        stacks = [stack for _, stack in starts]
    clock.over("starts")
    yield clock.report()
    rounds = min(effort.rounds, steps or effort.rounds)
    copier = Copier(network, stacks[-1], used, folds, generator)
    parts = copier.parts(count, effort)
    training = _Training(network, stacks, parts, likelihood, options, copier, device) if has_networks else None
    columns: dict[int, Column] = {}
    most = 1
    clock.trees_begin(0.0 if training is None else training.seconds())
    for j, column in enumerate(likelihood.columns):
        answered = any(function.target == table.names[j] for function in table.functions)
        grower = Grower(j, column, likelihood.width, parts, _nominal(table), rounds, seed, answered)
        found = grower.grow()
        if found is not None:
            columns[j] = found
            most = max(most, trees_of(found.trees.mean) // count)
        yield clock.report(most, j + 1)
    if training is not None:
        yield from map(clock.passed, training.steps())
    judged = judge(network, stacks, [part.kept for part in parts], columns)
    model, unseen = _blended(network, columns, likelihood, table, judged, parts, folds)
    if unseen is not None and used is rows:
        yield unseen
    yield model


def _sizes(likelihood: Mixed) -> tuple[int, ...]:
    return tuple(0 if isinstance(column, SpikedMixture) else column.width for column in likelihood.columns)


def _nominal(table: Table) -> list[int]:
    """Columns of codes whose order says nothing: trees split the others by it."""
    return [j for j, column in enumerate(table.columns) if isinstance(column, Category) and not column.ordered]


class _Training:
    """The training of the members, each without its fold, by the questions that trees were asked."""

    def __init__(
        self,
        network: GaussianResidualEnsemble,
        stacks: list[Joint | Factors],
        parts: list[Fold],
        likelihood: Mixed,
        options: EnsembleOptions,
        copier: Copier,
        device: str,
    ) -> None:
        held = torch.arange(network.each).repeat(len(network.joints))
        self.network, self.likelihood = network, likelihood
        self.student = Model(EnsembleTrainer(network, stacks, held), likelihood)
        self.settings = options.fit_options(len(copier.rows), network.members, device)
        read = self.settings.steps * self.settings.batch_size // network.members  # by each member
        more = copier.more(len(parts), len(parts[0].train.row), read)
        copies = Prepared.of(network, stacks, [[part.train, *own] for part, own in zip(parts, more)])
        # The first questions about a fold are given all other cells.
        most = min(len(parts[0].kept.row) // _kinds(parts[0].kept), _JUDGED)
        self.kept = Prepared.of(network, stacks, [[part.kept] for part in parts], most)
        self.loss, self.train = PreparedLoss(copies), copies.rows(network.members)

    def seconds(self) -> float:
        """About how long the steps will take, by three that leave nothing behind."""
        generator = torch.Generator().manual_seed(0)
        some = torch.randint(len(self.train), (self.settings.batch_size,), generator=generator)
        batch, taken = self.train.take(some), 0.0
        with torch.random.fork_rng(devices=[]):
            for number in range(4):
                begun = time.monotonic()
                self.loss(self.student, batch, generator=generator).mean().backward()
                taken += time.monotonic() - begun if number else 0.0  # the first makes what later ones find ready
        self.student.zero_grad(set_to_none=True)
        return self.settings.steps * taken / 3

    def steps(self) -> Iterator[StepReport]:
        """Train, and set the factors on the members' scales."""
        judge, each = PreparedLoss(self.kept, summed=True), self.settings.batch_size // self.network.members
        judged = self.kept.rows(self.network.members, each)
        own = self.student, self.train, self.loss, self.settings
        yield from fit_steps(*own, validation=judged, validation_objective=judge)
        self.network.cpu()
        weigh(self.network, self.likelihood, prepared_cells(self.network, self.kept))


def _blended(
    network: GaussianResidualEnsemble,
    columns: dict[int, Column],
    likelihood: Mixed,
    table: Table,
    judged: Judged,
    parts: list[Fold],
    folds: Tensor,
) -> tuple[Model, Unseen | None]:
    """The blend of all candidates, and what it says of the cells that were judged given all others."""
    sizes = network.sizes
    weights = density_weights(judged.log_probs(likelihood), judged, sizes)
    means, truth = _own_units(judged, judged.means(likelihood, table), table)
    stacked = mean_weights(means, truth, judged, sizes)
    coded = torch.tensor([size > 0 for size in sizes])
    stacked = torch.where(coded[:, None], weights, stacked)
    used = torch.maximum(weights, stacked).amax(0)
    kept = {
        j: column.trees if bool(used[j, -1] > 0) else without_second(column.trees)
        for j, column in columns.items()
        if bool((used[j, -2:] > 0).any())
    }
    spikes = tuple(len(some) for some in network.spikes)
    components = [column.components for column in likelihood.columns if isinstance(column, SpikedMixture)]
    trees = AnyOrderTrees(
        sizes, spikes, network.min_scales, components[-1] if components else 1, likelihood.width, pack(kept)
    )
    blend = Blend(network, trees)
    blend.set_weights(weights, stacked)
    pooled = Pooled(likelihood, blend.members, weighted=True)
    model = Model(blend, pooled, factorizations=[Factorization.ANY_ORDER]).eval()
    return model, _unseen(judged, stacked, likelihood, parts, folds) if network.has_joints else None


def _own_units(judged: Judged, means: Tensor, table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Means (Q, H) and values (H,) in own units over the column's deviation; 0 for codes."""
    out, truth = np.zeros(means.shape), np.zeros(means.shape[1])
    variable = judged.variable.numpy()
    for j in range(len(table.columns)):
        number, own = table.number(j), np.flatnonzero(variable == j)
        if number is None or not len(own):
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            values = number.decode(judged.x[own].double().numpy(), rounded=False)
            deviation = float(np.std(values)) or 1.0
            said = number.decode(means[:, own].double().numpy().ravel(), rounded=False).reshape(len(means), -1)
            out[:, own], truth[own] = said / deviation, values / deviation
    return out, truth


def _unseen(judged: Judged, weights: Tensor, likelihood: Mixed, parts: list[Fold], folds: Tensor) -> Unseen:
    """The cells that were judged given all others, with the parameters of a pool weighted as means are."""
    kept = [part.kept for part in parts]
    first = torch.cat([torch.arange(len(one.row)) < len(one.row) // _kinds(one) for one in kept])
    new = first.cumsum(0) - 1
    chosen = first[judged.place]
    own = weights[judged.share, judged.variable][chosen].log().clamp(min=-80.0)
    inner = judged.inner[chosen]
    log_weights = torch.cat([own[:, :-1], own[:, -1:] + inner], 1).float()
    params = torch.cat([judged.params[chosen].flatten(1), log_weights], 1)
    x = torch.cat([torch.from_numpy(one.truth).float() for one in kept])[first]
    given = torch.cat([torch.from_numpy(one.known) for one in kept])[first]
    fold = torch.cat([torch.full((len(one.row),), number) for number, one in enumerate(kept)])[first]
    members = judged.params.shape[1]
    pooled = Pooled(likelihood, members, weighted=True)
    return Unseen(folds, x, given, fold, new[judged.place[chosen]], judged.variable[chosen], params, pooled)


def _kinds(asked: Asked) -> int:
    """How many questions there are of each row."""
    return max(1, int((asked.row == asked.row[0]).sum())) if len(asked.row) else 1
