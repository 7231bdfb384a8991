"""Joint Gaussians, networks that start from them, and trees, as one network: a pool with weights for every column.

    p(x_j | known) = sum_q W_q(j, how much is known) p_q(x_j | known)

Each p_q is a distribution of x_j given the known values, so the pool is one too, and chains of it are exact. The
weights of a column depend on how much of a row is known (``SHARES``): with little, joints and trees err otherwise than
with all.

Candidates q, in this order: a network for each joint (the mean of its members), the joints themselves (or the
marginals, where there is none), the trees around a mean, the trees by cells.

Means have weights of their own. What makes cells most probable is not what errs least, so ``for_means`` is the same
network with the weights of a stack of means (``stacking``).
"""

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from anyfill.checks import refuse
from anyfill.networks.network import Unspecified
from anyfill.tables.residual_network import GaussianResidualEnsemble
from anyfill.tables.trees import GROUPS, NOTHING, AnyOrderTrees, ColumnTrees, tree_values, without_second

SHARES = 3
"""Up to a third, up to two thirds, and more of the other columns known: each has its own weights."""


def known_share(known: Tensor) -> Tensor:
    """int64 (B,): which of the ``SHARES`` is known of each row (B, N); the column that is asked is not counted."""
    others = max(known.shape[1] - 1, 1)
    return (known.sum(1) * SHARES // others).clamp(max=SHARES - 1)


@dataclass(init=False, eq=False, repr=False)
class Blend(nn.Module, Unspecified):
    """(B, N, outputs) from N variables, for ``Pooled(Mixed(...), members, True)``.

    Attributes:
        base: joints and networks.
        trees: the trees of all columns.
    """

    base: GaussianResidualEnsemble
    trees: AnyOrderTrees

    def __init__(self, base: GaussianResidualEnsemble, trees: AnyOrderTrees) -> None:
        super().__init__()
        if base.sizes != trees.sizes or base.member_outputs != trees.outputs:
            raise refuse("trees", expected=f"those of columns {base.sizes}", got=f"of columns {trees.sizes}")
        self.base, self.trees = base, trees
        shape = (SHARES, base.variables, self.candidates)
        self.register_buffer("weights", torch.zeros(shape))
        self.register_buffer("mean_weights", torch.zeros(shape))
        self._weights = "weights"
        self._columns: dict[str, dict[int, ColumnTrees]] = {}

    @property
    def variables(self) -> int:
        """N."""
        return self.base.variables

    @property
    def candidates(self) -> int:
        """Q."""
        groups = len(self.base.joints)
        return (groups if self.base.members else 0) + groups + 2

    @property
    def members(self) -> int:
        """C: how many answers are pooled."""
        return self.base.members + len(self.base.joints) + 1 + GROUPS

    @property
    def outputs(self) -> int:
        """C (P + 1): all parameters, then the log-weights."""
        return self.members * (self.base.member_outputs + 1)

    @property
    def context_width(self) -> int:
        """0: none is taken."""
        return 0

    def set_weights(self, weights: Tensor, mean_weights: Tensor) -> None:
        """Take these weights (SHARES, N, Q), of distributions and of means."""
        for name, part in (("weights", weights), ("mean_weights", mean_weights)):
            self.get_buffer(name).copy_(part.log().clamp(min=NOTHING))
        self._columns = {}

    def for_means(self) -> "Blend":
        """The same, with the weights of means."""
        other = copy.copy(self)
        other._weights = "mean_weights"
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_columns": {}}

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, outputs): every variable given the known ones (B, N); 0 for the known ones."""
        row, variable = (~known).nonzero().unbind(1)
        answer = x.new_zeros(*x.shape, self.outputs, dtype=torch.float32)
        if len(row):
            answer[row, variable] = self.at(x, known, row, variable)
        return answer

    def at(self, x: Tensor, known: Tensor, row: Tensor, variable: Tensor) -> Tensor:
        """(H, outputs): what ``forward`` says of the variables ``variable`` (H,) of the rows ``row`` (H,) alone."""
        base = self.base
        starts, answers = base.answers_at(x, known, row, variable)  # (M [+ J], H, P)
        if base.members and not base.has_joints:
            alone = base.at_start(starts, row, variable)
            answers = torch.cat([answers, alone])
        center, scale = starts[-1].numbers(base.expansion.place, (row, variable))  # trees begin at the last joint
        chances = starts[-1].log_chances
        chances = center.new_zeros(len(row), base.member_outputs) if chances is None else chances
        params, inner = self._trees(x, known, row, variable, center[:, 0], scale[:, 0], chances)
        weights = self._log_weights(known, row, variable, inner)
        return torch.cat([answers.movedim(0, 1).flatten(1), params.flatten(1), weights], 1)

    def _trees(
        self,
        x: Tensor,
        known: Tensor,
        row: Tensor,
        variable: Tensor,
        center: Tensor,
        scale: Tensor,
        chances: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """The trees' answers (H, 1 + GROUPS, P) and the log-weights (H, 1 + GROUPS) among those by cells."""
        values = tree_values(x, known, self.base.cycles)[row.cpu().numpy()]
        parts = (part.double().cpu().numpy() for part in (center, scale, chances))
        said = self.trees.answer(values, variable.cpu().numpy(), *parts, columns=self._used())
        return said[0].to(x.device), said[1].to(x.device)

    def _log_weights(self, known: Tensor, row: Tensor, variable: Tensor, inner: Tensor) -> Tensor:
        """(H, C): of every member."""
        base, groups = self.base, len(self.base.joints)
        own = self.get_buffer(self._weights)[known_share(known)[row], variable]  # (H, Q)
        nets = own[:, : groups if base.members else 0]
        if base.members:
            nets = (nets - math.log(base.each)).repeat_interleave(base.each, 1)
        rest = own[:, groups if base.members else 0 :]
        cells = (rest[:, -1:] + inner[:, 1:]).clamp(min=2 * NOTHING)
        return torch.cat([nets, rest[:, :-1], cells], 1)

    def _used(self) -> dict[int, ColumnTrees]:
        """The trees that weigh anything."""
        found = self._columns.get(self._weights)
        if found is None:
            most = self.get_buffer(self._weights).amax(0)[:, -2:].cpu().numpy()
            found = {j: one for j, one in self.trees.columns.items() if (most[j] > NOTHING).any()}
            found = {j: one if most[j, 1] > NOTHING else without_second(one) for j, one in found.items()}
            self._columns[self._weights] = found
        return found
