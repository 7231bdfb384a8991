"""One-pass networks asked side by side, their laws averaged: an ensemble that is itself a network.

With p_m(x_j | before) the law of member m, each of codes,

    p(x_j | before) = 1/M sum_m p_m(x_j | before)      parameters: its logarithm, so that softmax gives p back.

By concavity of the logarithm -log p(x_j | before) is at most the members' mean; how much less is what they disagree by.
The average is taken term by term: p(x) is a chain of averaged conditionals, not an average of joints. It costs M
passes; ``FollowingLoss`` teaches its law to one network.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from anyfill.checks import refuse
from anyfill.networks.embed import Discrete, Kind
from anyfill.networks.network import Branching, Capabilities, Network, OnePass


@dataclass(init=False, eq=False, repr=False)
class Averaged(nn.Module, Capabilities):
    """(B, N, K): logarithms of the members' mean law.

    Attributes:
        members: one-pass networks of the same codes and variables.
    """

    members: tuple[nn.Module, ...]

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()  # by hand: a module can hold no other before it is initialised
        self.members = tuple(members)
        if not self.members:
            raise refuse("members", expected="one network at least", got="none")
        for member in self.members:
            if not isinstance(member, Network) or not isinstance(member, OnePass):
                raise refuse("members", expected="one-pass networks", got=type(member).__name__)
            if not isinstance(member.kind, Discrete) or member.outputs != member.kind.size:
                raise refuse("members", expected="networks of codes, one logit for each", got=repr(member.kind))
            if (member.variables, member.kind) != (self.variables, self.kind):
                expected = f"all of {self.variables} variables, {self.kind}, as the first"
                raise refuse("members", expected=expected, got=f"{member.variables}, {member.kind}")
            if member.roles_matter != self.roles_matter or member.context_width != self.context_width:
                raise refuse("members", expected="all reading given values and context alike", got="others")
        self.each = nn.ModuleList(self.members)

    @property
    def _first(self) -> Network:
        return cast(Network, self.members[0])

    @property
    def kind(self) -> Kind:
        """What a value is."""
        return self._first.kind

    @property
    def variables(self) -> int:
        """N."""
        return self._first.variables

    @property
    def outputs(self) -> Any:
        """K."""
        return self._first.outputs

    @property
    def context_width(self) -> Any:
        """Length of the context vectors."""
        return self._first.context_width

    @property
    def reads_both_ways(self) -> bool:
        return self._first.reads_both_ways

    @property
    def reads_blanks(self) -> bool:
        return self._first.reads_blanks

    def compile_parts(self) -> bool:
        """Compile the parts of each member that has such."""
        compiled = [cast(Network, member).compile_parts() for member in self.members]
        return all(compiled)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, K): every unknown variable given the known ones (B, N)."""
        return self._mean(lambda member: member(x, known, context))

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Tensor:
        """(B, N, K): each variable given all that rank strictly before it; see ``OnePass.chain``."""
        return self._mean(lambda member: member.chain(x, rank, context, strict=strict))

    def open(self, x: Tensor, rank: Tensor, context: Tensor | None = None) -> tuple[Tensor, Any]:
        """Read the given block: parameters (B, K) of each row's first asked variable, and all caches."""
        for member in self.members:
            if not isinstance(member, Branching):
                raise refuse("members", expected="networks with a cache", got=type(member).__name__)
        opened = [cast(Branching, member).open(x, rank, context) for member in self.members]
        return mean_law([params for params, _ in opened]), tuple(cache for _, cache in opened)

    def extend(self, value: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Take in each row's answer (B,): parameters (B, K) of its next variable."""
        each = [cast(Branching, member).extend(value, own) for member, own in zip(self.members, cache)]
        return mean_law([params for params, _ in each]), tuple(own for _, own in each)

    def select(self, cache: Any, rows: Tensor, *, room: int | None = None) -> Any:
        """The caches of some rows (R,) alone."""
        return tuple(cast(Branching, member).select(own, rows, room=room) for member, own in zip(self.members, cache))

    def _mean(self, asked: Callable[[Any], Tensor]) -> Tensor:
        return mean_law([asked(member) for member in self.members])


def mean_law(logits: Sequence[Tensor]) -> Tensor:
    """(..., K): the logarithm of the mean of the laws that logits (..., K) stand for, in 32 bits at least."""
    wide = [one.to(torch.promote_types(one.dtype, torch.float32)).log_softmax(-1) for one in logits]
    return torch.stack(wide).logsumexp(0) - math.log(len(wide))
