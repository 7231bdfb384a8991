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
the cached sampler a head, not a pass. With ``neighbours=r`` the head reads pixels around j as well, up to r away, if
they rank before j (``networks.neighbours``): that a pixel is like those beside it takes attention long to learn.

Orders that go group by group (``questions.Scan(..., patch=, channels=)``, or ``Increasing`` for RGB) need one visit per
group; in any other order a group is visited several times, at the price of more tokens and of nothing else.

Ties: an asked variable that must not see others of its rank gets a copy of the last token read before them, aimed at
its group (members of a group that tie share it). Where the values before it end in the middle of a visit, the copy
carries the part of it that ranks before. Values are integer codes; given ones are always read both ways, so roles
matter (see ``networks.one_pass``), parameters of given variables are zero, and what is ignored is left out.

A model, and how it is trained (``conditioned_share`` above 0, because given values are read both ways):

    order = Scan(28, 28, patch=(2, 2))
    model = Model(OnePassGroups(Discrete(2), (28, 28), 1, patch=(2, 2)), Bernoulli(), order=order)
    fit(model, rows, OnePassLoss(UniformSplits(784), order, conditioned_share=0.8), options)
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from anyfill.networks.group_chain import GroupChain
from anyfill.networks.one_pass_visits import GroupCache
from anyfill.networks.sight import prefix_mask
from anyfill.networks.transformer import Turn


@dataclass(eq=False, repr=False)
class OnePassGroups(GroupChain):
    """A chain of conditionals over an image in one pass, a token per group, that is also sampled from a cache.

    Satisfies ``Windowed``. Attributes are those of ``GroupChain``.
    """

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
        first = visits.begin.squeeze(1)
        side = context if self.context_width else None
        states = functional.pad(h.unsqueeze(1), (0, 0, 0, room - length))
        cache = GroupCache(visits, first, torch.where(rank < 0, x, torch.zeros_like(x)), states, keys, values, side)
        return self._answers_at(cache, cache.turns(1))[:, 0], cache

    def extend(self, value: Tensor, cache: GroupCache) -> tuple[Tensor, GroupCache]:
        """Take in each row's answer (B,): parameters (B, P) of its next variable. Writes into the cache."""
        params, cache = self.advance(value.unsqueeze(1), cache)
        return params[:, 0], cache

    def advance(self, values: Tensor, cache: GroupCache) -> tuple[Tensor, GroupCache]:
        """Take in each row's next W answers (B, W): parameters (B, W, P) of the variable behind each of them.

        An answer inside a visit costs a head; a pass over one token is made for each visit that ends.
        """
        taken = self._taken(values, cache)
        self._read_on(cache, taken)
        return self._answers_at(taken, cache.turns(values.shape[1], skip=1)), taken

    def peek(self, value: Tensor, cache: GroupCache, count: int) -> tuple[Tensor, GroupCache]:
        """Take in each row's answer (B,), as ``extend``: parameters (B, count, P) of its next variables given that."""
        taken = self._taken(value.unsqueeze(1), cache)
        self._read_on(cache, taken)
        rank, variable = taken.visits.rank, taken.visits.order.gather(1, taken.turns(count))
        states, (values, ranks) = self._aimed_ahead(taken, variable), self._read(taken.x, rank, variable)
        first = rank.gather(1, variable[:, :1]).expand_as(variable)  # none sees what ranks from there on
        return self._read_off(states, values, ranks, first, variable), taken

    def rewind(self, cache: GroupCache, steps: Tensor) -> GroupCache:
        """Take back each row's last answers, as many as ``steps`` (B,) says."""
        return replace(cache, place=cache.place - steps)

    def select(self, cache: GroupCache, rows: Tensor, *, room: int | None = None) -> GroupCache:
        """The cache of some rows (R,) alone, copied; with ``room``, for so many tokens from now on."""
        return cache.rows(rows, room)

    def foresee(self, cache: GroupCache, variable: Tensor) -> Tensor:
        """(B, K, P): the variables (B, K), each given the given block alone: copies of the start, aimed at groups."""
        visits, group = cache.visits, self.get_buffer("group_of")[variable]
        wanted = torch.zeros_like(visits.given, dtype=torch.bool).scatter(1, group, True)  # (B, G): one copy for each
        count = int(wanted.sum(1).max())
        aim = wanted.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :count]
        start = self.start.expand(*aim.shape, -1)
        h = self._alone(*self._embed(start, torch.full_like(aim, self.groups), aim, cache.context), visits.told, cache)
        slot = torch.zeros_like(visits.given).scatter(1, aim, torch.arange(count, device=aim.device).expand_as(aim))
        h = h.gather(1, slot.gather(1, group).unsqueeze(-1).expand(-1, -1, self.width))
        values, ranks = self._read(cache.x, visits.rank, variable)
        return self._read_off(h, values, ranks, torch.zeros_like(variable), variable)

    def _taken(self, values: Tensor, cache: GroupCache) -> GroupCache:
        """The cache with each row's next answers (B, W) in their places; not yet read."""
        count = values.shape[1]
        own = cache.visits.order.gather(1, cache.turns(count))
        return replace(cache, place=cache.place + count, x=cache.x.scatter(1, own, values.to(cache.x.dtype)))

    def _read_on(self, before: GroupCache, now: GroupCache) -> None:
        """Read the visits that have ended between the two, whose keys, values and states are one and the same."""
        visits, room = now.visits, now.keys[0].shape[2]
        first, current = self._visit(before), self._visit(now)
        count = int((current - first).max()) if len(first) else 0
        if not count:
            return
        number = first + torch.arange(count, device=first.device)  # of what has ended; the next begins behind it
        own, aim = (visits.group.gather(1, (number + ahead).clamp(max=visits.group.shape[1] - 1)) for ahead in (0, 1))
        until = visits.until.gather(1, number.clamp(max=visits.until.shape[1] - 1))
        slot = torch.where(number < current, visits.told + 1 + number, room - 1)
        visible = torch.arange(room, device=own.device) <= slot.unsqueeze(2)
        at = slot[:, None, :, None]
        h, query_turn, key_turn = self._embed(self._known_of(now.x, visits.turn, own, until), own, aim, now.context)
        for block, keys, stored in zip(self._blocks(), now.keys, now.values):
            query, key, new = block.project(h, query_turn, key_turn)
            keys.scatter_(2, at.expand_as(key), key.to(keys.dtype))
            stored.scatter_(2, at.expand_as(new), new.to(stored.dtype))
            attended = functional.scaled_dot_product_attention(query, keys, stored, attn_mask=visible.unsqueeze(1))
            h = block.finish(h, attended)
        now.states.scatter_(2, at.expand_as(h.unsqueeze(1)), h.unsqueeze(1).to(now.states.dtype))

    def _aimed_ahead(self, cache: GroupCache, variable: Tensor) -> Tensor:
        """(B, W, width): states that aim at the variables (B, W) to come, each given what was answered and no more.

        The visit that is reached has its state. Each behind it has a copy of the last token before, which carries what
        is answered of its visit; of the one before that, where both are of one group (``GroupChain``: ties).
        """
        visits, group_of, current = cache.visits, self.get_buffer("group_of"), self._visit(cache)
        beyond = (visits.number.gather(1, variable).clamp(min=0) - current).clamp(min=0)  # (B, W), 0 = going on
        states, count = cache.aimed_at(variable[:, :1]), int(beyond.max()) if len(beyond) else 0
        if count:
            ahead = (current + 1 + torch.arange(count, device=current.device)).clamp(max=visits.group.shape[1] - 1)
            aim, last = visits.group.gather(1, ahead), visits.order.gather(1, cache.turns(1, skip=-1))
            number = visits.number.gather(1, last) - (group_of[last] == aim).long()  # (B, C): the visit each carries
            carried = visits.group.gather(1, number.clamp(min=0))
            until = torch.minimum(visits.until.gather(1, number.clamp(min=0)), cache.place.unsqueeze(1) - 1)
            value, starts = self._known_of(cache.x, visits.turn, carried, until), number < 0
            value = torch.where(starts.unsqueeze(-1), self.start.to(value.dtype), value)
            tokens = self._embed(value, torch.where(starts, self.groups, carried), aim, cache.context)
            copies = self._alone(*tokens, visits.told + 1 + number, cache)
            states = torch.cat([states, copies.to(states.dtype)], 1)
        return states.gather(1, beyond.unsqueeze(-1).expand(-1, -1, self.width))

    def _alone(
        self, h: Tensor, query_turn: Turn | None, key_turn: Turn | None, seen: Tensor, cache: GroupCache
    ) -> Tensor:
        """(B, C, width): the blocks over tokens that see so many slots of the cache, ``seen`` (B, C), and themselves.

        Nothing is written; what tokens see may be said once for all of a row, (B, 1).
        """
        length, count = int(seen.max()), h.shape[1]
        told = (torch.arange(length, device=h.device) < seen.unsqueeze(2)).expand(-1, count, -1)
        own = torch.eye(count, dtype=torch.bool, device=h.device).expand(len(h), -1, -1)
        visible = torch.cat([told, own], 2).unsqueeze(1)
        for block, keys, stored in zip(self._blocks(), cache.keys, cache.values):
            query, key, new = block.project(h, query_turn, key_turn)
            key, new = torch.cat([keys[:, :, :length], key], 2), torch.cat([stored[:, :, :length], new], 2)
            h = block.finish(h, functional.scaled_dot_product_attention(query, key, new, attn_mask=visible))
        return h

    def _visit(self, cache: GroupCache) -> Tensor:
        """int64 (B, 1): the visit of the variable that each row answers next; that of its last, behind it."""
        return cache.visits.number.gather(1, cache.visits.order.gather(1, cache.turns(1))).clamp(min=0)

    def _answers_at(self, cache: GroupCache, turns: Tensor) -> Tensor:
        """(B, W, P): the parameters of the variables at these turns (B, W), all of whose visits have been reached."""
        variable = cache.visits.order.gather(1, turns)
        return self._answers(cache.aimed_at(variable), cache.x, cache.visits.rank, variable)
