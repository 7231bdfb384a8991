"""An ensemble while it learns: its members apart, each with rows of its own."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anyfill.checks import refuse
from anyfill.networks.network import Unspecified
from anyfill.tables.factors import Factors
from anyfill.tables.joint import Joint
from anyfill.tables.residual_ensemble import GaussianResidualEnsemble
from anyfill.tables.residual_head import Start


class EnsembleTrainer(nn.Module, Unspecified):
    """A ``GaussianResidualEnsemble`` while it learns: each row is answered by one member, (B, N, P), as if there were
    no other.

    Rows are dealt to the members in equal consecutive parts, so B must be a multiple of M. ``joints`` may hold a stack
    of joints for each group, and ``which`` (M,) says from which of its stack each member starts: so a member need not
    have seen, not even through its joint, the cells it is later judged by. The context is what the objective needs.
    """

    def __init__(self, network: GaussianResidualEnsemble, joints: Sequence[Joint | Factors], which: Tensor) -> None:
        super().__init__()
        self.network = network
        self.joints = tuple(joints)
        self.which = which

    @property
    def variables(self) -> int:
        return self.network.variables

    @property
    def outputs(self) -> int:
        return self.network.member_outputs

    @property
    def context_width(self) -> int:
        """N: the fold of each cell."""
        return self.network.variables

    def begin(self, x: Tensor, known: Tensor) -> tuple[list[Start], list[Tensor]]:
        """For each group where its rows start, and what their members have learned beyond it (b, N, P)."""
        net = self.network
        if len(x) % net.members:
            raise refuse("rows of a batch", expected=f"a multiple of the {net.members} members", got=len(x))
        x = torch.where(known, x, torch.zeros_like(x))
        rows = len(x) // len(net.joints)
        member = self.which.to(x.device).repeat_interleave(len(x) // net.members)
        told: list[Tensor] = []
        starts: list[Start] = []
        for group, joint in enumerate(self.joints):
            part = slice(group * rows, (group + 1) * rows)
            own = joint.take(member[part]) if net.has_joints else joint
            starts.append(net.start(x[part], known[part], own))
            told.append(net.told(x[part], known[part], starts[-1]))
        learned = net.learned(torch.cat(told).unflatten(0, (net.members, -1))).flatten(0, 1)
        return starts, list(learned.split(rows))

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, P): each row by its own member."""
        return torch.cat([self.network.read(start, part) for start, part in zip(*self.begin(x, known))])
