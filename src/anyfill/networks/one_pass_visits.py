"""Groups of variables read by a one-pass transformer: their values, the visits they get, what is kept of them.

See ``networks.one_pass_groups`` for what a visit is.
"""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.networks.one_pass_tokens import some_rows
from anyfill.rank import asked_in

_WAVES = 4
_FEW = 64
"""Vectors of codes that are summed as a product with zeros and ones."""


class MemberEmbedding(nn.Module):
    """(..., width): the sum over M members of a vector for the code of each, or for "unknown".

    Beside its table, a code with more than two levels enters as a number u in [-1, 1] and as waves of it, so that
    neighbouring levels are alike from the start.
    """

    def __init__(self, levels: int, members: int, width: int) -> None:
        super().__init__()
        self.levels, self.members = levels, members
        self.codes = nn.Parameter(torch.empty(members * (levels + 1), width))
        nn.init.normal_(self.codes, std=0.5 if levels <= 16 else 0.1)
        self.register_buffer("offset", torch.arange(members) * (levels + 1), persistent=False)
        if levels > 2:
            self.smooth = nn.Linear(members * (1 + 2 * _WAVES), width, bias=False)
            self.register_buffer("frequency", math.pi * 2.0 ** torch.arange(_WAVES), persistent=False)

    def _looked_up(self, code: Tensor) -> Tensor:
        """(..., width): the sum of the vectors of codes (..., M)."""
        index = code + self.get_buffer("offset")
        return functional.embedding_bag(index.flatten(0, -2), self.codes, mode="sum").unflatten(0, index.shape[:-1])

    def forward(self, x: Tensor, known: Tensor) -> Tensor:
        """From values and whether they are known, (..., M); unknown values are not read."""
        code = torch.where(known, x, torch.zeros_like(x)).long().clamp(0, self.levels - 1)
        shown = torch.where(known, code, self.levels)
        if len(self.codes) <= _FEW:  # a product: its gradient needs no sorting of equal codes
            each = shown.unsqueeze(-1) == torch.arange(self.levels + 1, device=x.device)
            summed = each.flatten(-2).to(self.codes.dtype) @ self.codes
        else:
            summed = self._looked_up(shown)
        if self.levels == 2:
            return summed
        u = (2.0 * code / max(self.levels - 1, 1) - 1.0).to(self.codes.dtype).unsqueeze(-1)
        angle = u * self.get_buffer("frequency")
        waves = torch.cat([u, angle.sin(), angle.cos()], -1)
        return summed + self.smooth(torch.where(known.unsqueeze(-1), waves, 0.0).flatten(-2))


@dataclass(frozen=True, slots=True)
class Visits:
    """How B rows are read, group by group; G groups, N variables.

    Attributes:
        rank: int64 (B, N).
        order: int64 (B, N), the variables by rank.
        told: int64 (B, 1), g, how many groups something is given of.
        given: int64 (B, G), the groups, those first.
        number: int64 (B, N), the visit of each asked variable; elsewhere one before the first, -1, or any.
        group: int64 (B, N + 1), the group of each visit.
        turn: int64 (B, N), where each variable stands in ``order``.
        until: int64 (B, N + 1), the turn of each visit's last variable.
        begin: int64 (B, 1), how many variables are given: the turn of the first asked one.
        count: int64 (B, 1), how many visits there are.
    """

    rank: Tensor
    order: Tensor
    told: Tensor
    given: Tensor
    number: Tensor
    group: Tensor
    turn: Tensor
    until: Tensor
    begin: Tensor
    count: Tensor

    @classmethod
    def of(cls, rank: Tensor, group_of: Tensor, members: Tensor) -> "Visits":
        """From a rank (B, N), the group of each variable (N,) and the variables of each group (G, M)."""
        batch, variables = rank.shape
        order = rank.argsort(dim=1, stable=True)
        when, where = rank.gather(1, order), group_of[order]
        asked = asked_in(when)
        before = functional.pad(torch.where(asked, where, -1)[:, :-1], (1, 0), value=-1)
        number = (asked & (where != before)).cumsum(1) - 1
        kept = torch.where(asked, number, variables)  # what is not asked goes to a column that is nobody's
        group = where.new_zeros(batch, variables + 1).scatter(1, kept, where)
        place = torch.arange(variables, device=rank.device).expand_as(rank)
        turn = torch.empty_like(order).scatter(1, order, place)
        until = order.new_full((batch, variables + 1), -1).scatter_reduce(1, kept, place, "amax")
        something = (rank < 0)[:, members].any(2)
        given = something.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        count = number.amax(1, keepdim=True) + 1
        number = torch.empty_like(number).scatter(1, order, number)
        told, begin = something.sum(1, keepdim=True), (rank < 0).sum(1, keepdim=True)
        return cls(rank, order, told, given, number, group, turn, until, begin, count)

    def rows(self, index: Tensor) -> "Visits":
        """How the rows ``index`` (R,) are read."""
        return Visits(*(getattr(self, part.name)[index] for part in fields(self)))


@dataclass(slots=True)
class GroupCache:
    """What has been read and answered so far.

    Attributes:
        visits: how rows are read.
        place: int64 (B,), where in ``visits.order`` the variable stands that is answered next.
        x: (B, N), values.
        states: (B, 1, L, width), the hidden state that aims at each visit, in the slot of its token.
        keys, values: per block (B, H, L, D); the last slot is nobody's.
        context: the context vectors, if any.
    """

    visits: Visits
    place: Tensor
    x: Tensor
    states: Tensor
    keys: list[Tensor]
    values: list[Tensor]
    context: Tensor | None

    def turns(self, count: int, skip: int = 0) -> Tensor:
        """int64 (B, count): where the next, but for ``skip``, stand in ``visits.order``, its end behind it."""
        step = torch.arange(skip, skip + count, device=self.place.device)
        return (self.place.unsqueeze(1) + step).clamp(max=self.visits.order.shape[1] - 1)

    def aimed_at(self, variable: Tensor) -> Tensor:
        """(B, L, width): the states that aim at the visits of variables (B, L), all of which have been reached."""
        slot = self.visits.told + self.visits.number.gather(1, variable).clamp(min=0)
        return self.states[:, 0].gather(1, slot.unsqueeze(-1).expand(-1, -1, self.states.shape[3]))

    def rows(self, index: Tensor, room: int | None = None) -> "GroupCache":
        """The cache of the rows ``index`` (R,) alone, copied; with ``room``, for so many tokens."""
        slots = None if room is None else room + 1
        keys, values = ([some_rows(one, index, slots) for one in kept] for kept in (self.keys, self.values))
        states, context = some_rows(self.states, index, slots), None if self.context is None else self.context[index]
        return GroupCache(self.visits.rows(index), self.place[index], self.x[index], states, keys, values, context)


def group_layout(shape: tuple[int, ...], patch: tuple[int, int]) -> Tensor:
    """int64 (G, M): the variables of each group of an image (H, W) or (H, W, C), groups and members row by row."""
    height, width, channels = (*shape, 1)[:3]
    index = torch.arange(height * width * channels)
    grid = index.view(height // patch[0], patch[0], width // patch[1], patch[1], channels)
    return grid.permute(0, 2, 1, 3, 4).reshape(-1, patch[0] * patch[1] * channels)
