"""Chains of the one-pass transformer over groups of variables: all terms of a question in one pass.

What tokens, visits and heads are stands in ``networks.one_pass_groups``, which adds the sampler's cache.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_counts, require_member
from anyfill.networks.embed import Discrete
from anyfill.networks.neighbours import Neighbours, neighbourhood
from anyfill.networks.one_pass import AimedDecoder, join
from anyfill.networks.one_pass_visits import MemberEmbedding, Visits, group_layout
from anyfill.networks.sight import prefix_mask, prefix_sight
from anyfill.networks.transformer import Turn, require_grid
from anyfill.rank import asked_in


@dataclass(eq=False, repr=False)
class GroupChain(AimedDecoder):
    """(B, N, outputs): a chain of conditionals over an image in one pass, a token per group.

    Attributes:
        kind: Discrete levels.
        shape: (H, W) or (H, W, C).
        patch: height and width of a group, in pixels; they divide H and W.
        neighbours: how far, in pixels, heads look around a variable for values that are known; 0 = at its group alone.

    Options of ``GridTransformer``: ``periods`` and rotary positions are those of the grid of groups, whose head width
    (width / heads) must be a multiple of 4.
    """

    patch: tuple[int, int] = (1, 1)
    neighbours: int = 0

    def __post_init__(self) -> None:
        require_grid(self.shape)
        require_grid(self.patch)
        if len(self.shape) not in (2, 3) or len(self.patch) != 2:
            got = f"shape {self.shape}, patch {self.patch}"
            raise refuse("shape and patch", expected="(H, W) or (H, W, C), and (ph, pw)", got=got)
        if self.shape[0] % self.patch[0] or self.shape[1] % self.patch[1]:
            raise refuse("patch", expected=f"sides that divide those of {self.shape}", got=self.patch)
        if not isinstance(self.kind, Discrete):
            raise refuse("kind", expected="Discrete levels", got=repr(self.kind))
        require_counts(self, "heads")
        require_count("neighbours", self.neighbours, minimum=0)
        require_member("positions", self.positions, ("learned", "rotary"))
        self._begin()
        self.reserved: int | None = None  # the room of strict chains, where it was looked up before (``room``)
        layout = group_layout(self.shape, self.patch)
        members = layout.shape[1]
        self.register_buffer("members", layout, persistent=False)  # (G, M): the variables of each group
        place = torch.empty(self.variables, dtype=torch.int64).scatter(
            0, layout.flatten(), torch.arange(layout.numel())
        )
        self.register_buffer("group_of", place // members, persistent=False)
        self.register_buffer("member_of", place % members, persistent=False)
        around = neighbourhood(self.shape, self.neighbours)
        self.register_buffer("read_by", torch.cat([layout[place // members], around], 1), persistent=False)
        self.value = MemberEmbedding(self.kind.size, members, self.width)
        self.start = nn.Parameter(nn.init.normal_(torch.empty(self.width), std=0.5))
        self._make_places()
        self._make_trunk()
        self.told_head = MemberEmbedding(self.kind.size, members, self.width)
        if self.neighbours:
            self.near = Neighbours(self.kind.size, around.shape[1], (*self.shape, 1)[2], self.width)
        self.member = nn.Embedding(members, self.width)
        nn.init.normal_(self.member.weight, std=0.5)
        self.head_norm = nn.RMSNorm(self.width)
        self.head_up = nn.Linear(self.width, 2 * self.width, bias=False)
        self.head_down = nn.Linear(2 * self.width, self.width, bias=False)
        nn.init.normal_(self.head_up.weight, std=0.5 / math.sqrt(self.width))
        nn.init.normal_(self.head_down.weight, std=0.5 / math.sqrt(2 * self.width))

    @property
    def token_grid(self) -> tuple[int, ...]:
        return self.shape[0] // self.patch[0], self.shape[1] // self.patch[1]

    @property
    def groups(self) -> int:
        """G, the number of groups."""
        return math.prod(self.token_grid)

    @property
    def reads_both_ways(self) -> bool:
        return True

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Tensor:
        """(B, N, P): each variable given all that rank strictly before it; zero where given. See ``OnePass.chain``."""
        if not len(x):
            return self.start.new_zeros(0, self.variables, self.outputs)
        h, slot = self._states(x, rank, context, strict)
        h = h.gather(1, slot.unsqueeze(-1).expand(-1, -1, self.width))
        variable = torch.arange(self.variables, device=x.device).expand_as(rank)
        return torch.where((rank < 0).unsqueeze(-1), 0.0, self._answers(h, x, rank, variable))

    def chain_at(self, x: Tensor, rank: Tensor, row: Tensor, variable: Tensor, context: Tensor | None = None) -> Tensor:
        """(H, P): the same for the variables (H,) of the rows (H,) alone; see ``ChainsCells``."""
        if not len(row):
            return self.start.new_zeros(0, self.outputs)
        h, slot = self._states(x, rank, context, strict=False)
        read, when = self.get_buffer("read_by")[variable], rank[row, variable]
        row_of = row.unsqueeze(1)  # (H, 1): of what is read (H, R)
        params = self._read_off(h[row, slot[row, variable]], x[row_of, read], rank[row_of, read], when, variable)
        return torch.where((when < 0).unsqueeze(-1), 0.0, params)

    def _states(self, x: Tensor, rank: Tensor, context: Tensor | None, strict: bool) -> tuple[Tensor, Tensor]:
        """(B, L, width), int64 (B, N): the states of one pass, and which of them aims at each variable."""
        visits = self._visits(rank)
        if strict or not self._ties(visits):
            length = self._room(visits) if strict else max(int((visits.told + visits.count).max()), 1)
            tokens = self._tokens(x, visits, length, context)
            h = self._run(*tokens, self._sight(visits, length, strict))
            slot = visits.told + visits.number.clamp(min=0)
        else:
            h, slot = self._parallel(x, visits, context)
        return h, slot.clamp(max=h.shape[1] - 1)

    def room(self, rank: Tensor) -> int | None:
        """How many tokens a strict chain of these ranks (B, N) has room for; None = always the same."""
        return None if len(self.get_buffer("members")[0]) == 1 else self._room(self._visits(rank))

    def _room(self, visits: Visits) -> int:
        """Few different lengths, so that few are compiled; of eights, as fast kernels want them.

        The least is a visit for each group, which is all that there are where groups have one member: then nothing is
        looked up, and an accelerator need not wait.
        """
        if self.reserved is not None:
            return self.reserved
        least = 8 * -(-self.groups // 8)
        if len(self.get_buffer("members")[0]) == 1:
            return least
        longest, length = int((visits.told + visits.count).max()), least
        while length < longest:  # about 1, 1.5, 2 … times the groups
            length += 8 * -(-self.groups // 16)
        return length

    def _sight(self, visits: Visits, length: int, strict: bool) -> Any:
        """What the tokens see of one another, as ``attend`` takes it; None = what is before them."""
        if not strict and not bool(visits.told.any()):
            return None
        blocks = strict and self.in_blocks and self.groups >= _MANY
        return prefix_sight(visits.told, length, blocks=blocks)

    def _visits(self, rank: Tensor) -> Visits:
        return Visits.of(rank, self.get_buffer("group_of"), self.get_buffer("members"))

    def _ties(self, visits: Visits) -> bool:
        when = visits.rank.gather(1, visits.order)
        return bool(((when[:, 1:] == when[:, :-1]) & asked_in(when[:, 1:])).any())

    def _known_of(self, x: Tensor, turn: Tensor, group: Tensor, until: Tensor) -> Tensor:
        """(B, L, width): what is known of the groups (B, L) of those whose turn comes up to ``until`` (B, L)."""
        values, when = _held(self.get_buffer("members")[group], x, turn)
        return self.value(values, when <= until.unsqueeze(-1))

    def _answers(self, h: Tensor, x: Tensor, rank: Tensor, variable: Tensor) -> Tensor:
        """(B, L, P) of the variables (B, L), from the hidden states (B, L, width) that aim at their groups."""
        answer = _compiled_head() if self.compiled and self.training else GroupChain._answered
        return answer(self, h, x, rank, variable)

    def _answered(self, h: Tensor, x: Tensor, rank: Tensor, variable: Tensor) -> Tensor:
        values, when = self._read(x, rank, variable)
        return self._read_off(h, values, when, rank.gather(1, variable), variable)

    def _read(self, x: Tensor, rank: Tensor, variable: Tensor) -> tuple[Tensor, ...]:
        """(B, L, R) each: values and ranks of what heads of variables (B, L) read, in their groups and around them."""
        return _held(self.get_buffer("read_by")[variable], x, rank)

    def _read_off(self, h: Tensor, values: Tensor, ranks: Tensor, rank: Tensor, variable: Tensor) -> Tensor:
        """(…, P) of variables (…) of a rank (…), from states (…, width), and values and ranks (…, R) that are read."""
        known, members = ranks < rank.unsqueeze(-1), self.told_head.members
        told = self.told_head(values[..., :members], known[..., :members])
        if self.neighbours:
            told = told + self.near(values[..., members:], known[..., members:], variable)
        z = self.norm(h) + told + self.member(self.get_buffer("member_of")[variable])
        z = z + self.head_down(functional.relu(self.head_up(self.head_norm(z))).square())
        return self.head(z)

    def _tokens(
        self, x: Tensor, visits: Visits, length: int, context: Tensor | None
    ) -> tuple[Tensor, Turn | None, Turn | None]:
        """The tokens 0 … L-1 and their rotations."""
        step = torch.arange(length, device=x.device).expand(len(x), -1)
        visit = step - visits.told  # the visit that each aims at; below 0 what is given
        given = visits.given.gather(1, step.clamp(max=self.groups - 1))
        last = visits.group.shape[1] - 1
        aim = visits.group.gather(1, visit.clamp(0, last))
        read = (visit - 1).clamp(0, last)
        own = torch.where(visit < 0, given, visits.group.gather(1, read))
        until = torch.where(visit < 0, visits.begin - 1, visits.until.gather(1, read))
        begins = visit == 0
        value = self._known_of(x, visits.turn, own, until)
        value = torch.where(begins.unsqueeze(-1), self.start.to(value.dtype), value)
        return self._embed(value, torch.where(begins, self.groups, own), torch.where(visit < 0, given, aim), context)

    def _run(self, h: Tensor, query_turn: Turn | None, key_turn: Turn | None, visible: Any) -> Tensor:
        """(B, L, width): the blocks over tokens, each seeing those that are visible; None = those before it."""
        for block in self._blocks():
            h = block(h, query_turn, key_turn, visible, visible is None)
        return h

    def _parallel(self, x: Tensor, visits: Visits, context: Tensor | None) -> tuple[Tensor, Tensor]:
        """Hidden states (B, T, width) of the tokens read, then of aimed copies; and the state of each variable."""
        rank, group_of = visits.rank, self.get_buffer("group_of")
        asked = asked_in(rank)
        # Members of a group that tie share a copy: that of the first of them.
        mates = self.get_buffer("members")[group_of]  # (N, M)
        same = rank[:, mates] == rank.unsqueeze(-1)
        first = mates.expand_as(same).gather(2, same.to(torch.uint8).argmax(2, keepdim=True)).squeeze(2)
        chief = asked & (first == torch.arange(self.variables, device=x.device))
        wanted = chief.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, : int(chief.sum(1).max())]
        # The last visit before each: that of the last variable of a lower rank, unless it is of the same group.
        target, when = group_of[wanted], rank.gather(1, wanted)
        sorted_rank = rank.gather(1, visits.order).contiguous()
        before = torch.searchsorted(sorted_rank, when.contiguous())
        number = visits.number.gather(1, visits.order).gather(1, (before - 1).clamp(min=0))
        number = torch.where(before > visits.begin, number, -1)
        within = (number >= 0) & (visits.group.gather(1, number.clamp(min=0)) == target)
        number = number - within.long()
        at = number.clamp(min=0)
        own, until = visits.group.gather(1, at), torch.minimum(visits.until.gather(1, at), before - 1)
        value = self._known_of(x, visits.turn, own, until)
        starts = number < 0
        value = torch.where(starts.unsqueeze(-1), self.start.to(value.dtype), value)
        copies, copy_query, copy_key = self._embed(value, torch.where(starts, self.groups, own), target, context)
        seen = torch.where(
            asked.gather(1, wanted), visits.told + 1 + number, 0
        )  # how many tokens each copy sees before itself
        length = max(int(seen.max()), int(visits.told.max()), 1) if wanted.shape[1] else 1
        h, query_turn, key_turn = self._tokens(x, visits, length, context)
        count = copies.shape[1]
        step = torch.arange(length, device=x.device)
        alone = torch.eye(count, dtype=torch.bool, device=x.device).expand(len(x), -1, -1)
        visible = torch.cat(
            [
                functional.pad(prefix_mask(visits.told, length), (0, count)),
                torch.cat([step < seen.unsqueeze(2), alone], 2),
            ],
            1,
        ).unsqueeze(1)
        h = torch.cat([h, copies.to(h.dtype)], 1)
        h = self._run(h, join(query_turn, copy_query), join(key_turn, copy_key), visible)
        place = torch.zeros_like(rank).scatter(
            1, wanted, length + torch.arange(count, device=x.device).expand_as(wanted)
        )
        return h, place.gather(1, first)


def _held(index: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
    """(B, L, R) each: what parts (B, N) hold at an index (B, L, R)."""
    return tuple(part.gather(1, index.flatten(1)).view(index.shape) for part in parts)


_MANY = 512
"""Groups from which on blocks are worth it: with fewer, attention is a small part, and lengths change."""


@cache
def _compiled_head() -> Callable[..., Tensor]:
    """A function, not the network's own: a copy of the network must not answer with the weights of another."""
    return torch.compile(GroupChain._answered)  # pyright: ignore[reportPrivateUsage]
