"""The one-pass transformer over GROUPS of variables: one token for each pixel of an RGB image, or for each patch.

A row is an image (H, W) or (H, W, C), flattened as it lies in memory: variable (y W + x) C + c. A group is a patch of
ph x pw pixels with all their channels, M = ph pw C members, and stands at one place of the grid (H / ph, W / pw):

    OnePassGroups(Discrete(256), (32, 32, 3), outputs)                 a token per pixel, members = R, G, B
    OnePassGroups(Discrete(2), (28, 28), outputs, patch=(2, 2))        a token per 2 x 2 patch, members = its 4 pixels

Questions, ranks and log-probabilities stay about the N = H W C scalars, so any part of a group may be given, asked or
ignored; there are M times fewer tokens. What makes that exact is where values enter. Read by rank, the asked variables
fall into *visits*: runs of variables of one group. With g groups of which something is given and visits v(0), v(1) …

    token t < g:  (what is given of group t, at t, aimed at t)                these see one another: read both ways
    token g:      (start, aimed at v(0))
    token g+1+i:  (all that is known of v(i) after its visit, at v(i), aimed at v(i+1))         these are causal

where a group's value is the sum of one vector per member, taken from a table that has an *unknown* code beside the
levels. The members of one visit share a token, hence a hidden state h; each is told apart by its head, which is fed
what is known of its group when it is its turn, given or answered (teacher-forced, so all of them at once):

    params(j) = head( MLP( h_visit(j) + member(j) + sum_{k in group(j)} e_k(x_k if rank_k < rank_j else unknown) ) )

so params(j) depends on exactly the values that rank before j: chain() is one pass, and an answer inside a visit costs
the cached sampler a head, not a pass. Orders that go group by group (``questions.Scan(..., patch=, channels=)``, or
``Increasing`` for RGB) need one visit per group; in any other order a group is visited several times, at the price of
more tokens and of nothing else.

Ties: an asked variable that must not see others of its rank gets a copy of the last token read before them, aimed at
its group (members of a group that tie share it). Where the values before it end in the middle of a visit, the copy
carries the part of it that ranks before. Values are integer codes; given ones are always read both ways, so roles
matter (see ``networks.one_pass``), parameters of given variables are zero, and what is ignored is left out.

A model, and how it is trained (``conditioned_share`` above 0, because given values are read both ways):

    order = Scan(28, 28, patch=(2, 2))
    model = Model(OnePassGroups(Discrete(2), (28, 28), 1, patch=(2, 2)), Bernoulli(), order=order)
    fit(model, rows, OnePassLoss(UniformSplits(784), order, conditioned_share=0.8), options)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_counts, require_member
from anyfill.networks.embed import Discrete
from anyfill.networks.one_pass import AimedDecoder, join
from anyfill.networks.one_pass_visits import GroupCache, MemberEmbedding, Visits, group_layout
from anyfill.networks.sight import prefix_mask, prefix_sight
from anyfill.networks.transformer import Turn, require_grid
from anyfill.rank import asked_in


@dataclass(eq=False, repr=False)
class OnePassGroups(AimedDecoder):
    """(B, N, outputs): a chain of conditionals over an image in one pass, a token per group; satisfies ``Cached``.

    Attributes:
        kind: Discrete levels.
        shape: (H, W) or (H, W, C).
        patch: height and width of a group, in pixels; they divide H and W.

    Options of ``GridTransformer``: ``periods`` and rotary positions are those of the grid of groups, whose head width
    (width / heads) must be a multiple of 4.
    """

    patch: tuple[int, int] = (1, 1)

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
        self.value = MemberEmbedding(self.kind.size, members, self.width)
        self.start = nn.Parameter(nn.init.normal_(torch.empty(self.width), std=0.5))
        self._make_places()
        self._make_trunk()
        self.told_head = MemberEmbedding(self.kind.size, members, self.width)
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
        mates, when = self.get_buffer("members")[self.get_buffer("group_of")[variable]], rank[row, variable]
        row_of = row.unsqueeze(1)  # (H, 1): of the mates (H, M)
        params = self._read_off(h[row, slot[row, variable]], x[row_of, mates], rank[row_of, mates], when, variable)
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

    def open(self, x: Tensor, rank: Tensor, context: Tensor | None = None) -> tuple[Tensor, GroupCache]:
        """Read the given block: parameters (B, P) of each row's first asked variable, and the cache."""
        visits = self._visits(rank)
        length = (int(visits.told.max()) if len(x) else 0) + 1
        room = (int((visits.told + visits.count).max()) if len(x) else 0) + 2
        h, query_turn, key_turn = self._tokens(x, visits, length, context)
        keys: list[Tensor] = []
        values: list[Tensor] = []
        visible = prefix_mask(visits.told, length).unsqueeze(1)
        for block in self._blocks():
            query, key, value = block.project(h, query_turn, key_turn)
            keys.append(functional.pad(key, (0, 0, 0, room - length)))
            values.append(functional.pad(value, (0, 0, 0, room - length)))
            h = block.finish(h, functional.scaled_dot_product_attention(query, key, value, attn_mask=visible))
        h = h.gather(1, visits.told.unsqueeze(-1).expand(-1, -1, self.width)).squeeze(1)
        first = visits.begin.squeeze(1).clamp(max=self.variables - 1)
        side = context if self.context_width else None
        cache = GroupCache(visits, first, torch.where(rank < 0, x, torch.zeros_like(x)), h, keys, values, side)
        return self._current(cache), cache

    def extend(self, value: Tensor, cache: GroupCache) -> tuple[Tensor, GroupCache]:
        """Take in each row's answer (B,): parameters (B, P) of its next variable. Writes into the cache.

        An answer inside a visit costs a head; a pass over one token is made when a row's visit ends.
        """
        visits, last = cache.visits, self.variables - 1
        own = visits.order.gather(1, cache.place.unsqueeze(1))
        x = cache.x.scatter(1, own, value.unsqueeze(1).to(cache.x.dtype))
        place = (cache.place + 1).clamp(max=last)
        following = visits.order.gather(1, place.unsqueeze(1))
        number, nexts = visits.number.gather(1, own), visits.number.gather(1, following)
        moves = (nexts > number) & asked_in(visits.rank.gather(1, following))
        h = torch.where(moves, self._step(x, own, following, moves, cache), cache.h) if bool(moves.any()) else cache.h
        cache = replace(cache, place=place, x=x, h=h)
        return self._current(cache), cache

    def select(self, cache: GroupCache, rows: Tensor, *, room: int | None = None) -> GroupCache:
        """The cache of some rows (R,) alone, copied; with ``room``, for so many tokens from now on."""
        return cache.rows(rows, room)

    def foresee(self, cache: GroupCache, variable: Tensor) -> Tensor:
        """(B, K, P): the variables (B, K), each given the given block alone: copies of the start, aimed at groups."""
        visits, group = cache.visits, self.get_buffer("group_of")[variable]
        wanted = torch.zeros_like(visits.given, dtype=torch.bool).scatter(1, group, True)  # (B, G): one copy for each
        count, length = int(wanted.sum(1).max()), int(visits.told.max())
        aim = wanted.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :count]
        start = self.start.expand(*aim.shape, -1)
        h, query_turn, key_turn = self._embed(start, torch.full_like(aim, self.groups), aim, cache.context)
        told = torch.arange(length, device=aim.device) < visits.told  # (B, L): what each copy sees beside itself
        alone = torch.eye(count, dtype=torch.bool, device=aim.device).expand(len(aim), -1, -1)
        visible = torch.cat([told.unsqueeze(1).expand(-1, count, -1), alone], 2).unsqueeze(1)
        for block, keys, stored in zip(self._blocks(), cache.keys, cache.values):
            query, key, new = block.project(h, query_turn, key_turn)
            key, new = torch.cat([keys[:, :, :length], key], 2), torch.cat([stored[:, :, :length], new], 2)
            h = block.finish(h, functional.scaled_dot_product_attention(query, key, new, attn_mask=visible))
        slot = torch.zeros_like(visits.given).scatter(1, aim, torch.arange(count, device=aim.device).expand_as(aim))
        h = h.gather(1, slot.gather(1, group).unsqueeze(-1).expand(-1, -1, self.width))
        values, ranks = self._mates(group, cache.x, visits.rank)
        return self._read_off(h, values, ranks, torch.zeros_like(variable), variable)

    def _step(self, x: Tensor, own: Tensor, following: Tensor, moves: Tensor, cache: GroupCache) -> Tensor:
        """(B, width): the token of the visit that ended with the variable ``own`` (B, 1), aimed at ``following``."""
        visits, group_of = cache.visits, self.get_buffer("group_of")
        value = self._known_of(x, visits.turn, group_of[own], visits.turn.gather(1, own))
        h, query_turn, key_turn = self._embed(value, group_of[own], group_of[following], cache.context)
        room = cache.keys[0].shape[2]
        slot = torch.where(moves, visits.told + 1 + visits.number.gather(1, own), room - 1)
        reach = torch.arange(room, device=x.device)
        visible = (reach < slot.unsqueeze(2)) | (reach == slot.unsqueeze(2))
        for block, keys, stored in zip(self._blocks(), cache.keys, cache.values):
            query, key, new = block.project(h, query_turn, key_turn)
            at = slot[:, None, :, None].expand_as(key)
            keys.scatter_(2, at, key.to(keys.dtype))
            stored.scatter_(2, at, new.to(stored.dtype))
            attended = functional.scaled_dot_product_attention(query, keys, stored, attn_mask=visible.unsqueeze(1))
            h = block.finish(h, attended)
        return h.squeeze(1)

    def _current(self, cache: GroupCache) -> Tensor:
        """(B, P): the parameters of the variable each row answers next."""
        variable = cache.visits.order.gather(1, cache.place.unsqueeze(1))
        return self._answers(cache.h.unsqueeze(1), cache.x, cache.visits.rank, variable)[:, 0]

    def _visits(self, rank: Tensor) -> Visits:
        return Visits.of(rank, self.get_buffer("group_of"), self.get_buffer("members"))

    def _ties(self, visits: Visits) -> bool:
        when = visits.rank.gather(1, visits.order)
        return bool(((when[:, 1:] == when[:, :-1]) & asked_in(when[:, 1:])).any())

    def _mates(self, group: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
        """(B, L, M) each: what parts (B, N) hold of the members of the groups (B, L)."""
        members = self.get_buffer("members")[group]
        return tuple(part.gather(1, members.flatten(1)).view(members.shape) for part in parts)

    def _known_of(self, x: Tensor, turn: Tensor, group: Tensor, until: Tensor) -> Tensor:
        """(B, L, width): what is known of the groups (B, L) of those whose turn comes up to ``until`` (B, L)."""
        values, when = self._mates(group, x, turn)
        return self.value(values, when <= until.unsqueeze(-1))

    def _answers(self, h: Tensor, x: Tensor, rank: Tensor, variable: Tensor) -> Tensor:
        """(B, L, P) of the variables (B, L), from the hidden states (B, L, width) that aim at their groups."""
        answer = _compiled_head() if self.compiled and self.training else OnePassGroups._answered
        return answer(self, h, x, rank, variable)

    def _answered(self, h: Tensor, x: Tensor, rank: Tensor, variable: Tensor) -> Tensor:
        values, when = self._mates(self.get_buffer("group_of")[variable], x, rank)
        return self._read_off(h, values, when, rank.gather(1, variable), variable)

    def _read_off(self, h: Tensor, values: Tensor, ranks: Tensor, rank: Tensor, variable: Tensor) -> Tensor:
        """(…, P) of variables (…) of a rank (…), from states (…, width), and values and ranks (…, M) of groups."""
        told = self.told_head(values, ranks < rank.unsqueeze(-1))
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


_MANY = 512
"""Groups from which on blocks are worth it: with fewer, attention is a small part, and lengths change."""


@cache
def _compiled_head() -> Callable[..., Tensor]:
    """A function, not the network's own: a copy of the network must not answer with the weights of another."""
    return torch.compile(OnePassGroups._answered)  # pyright: ignore[reportPrivateUsage]
