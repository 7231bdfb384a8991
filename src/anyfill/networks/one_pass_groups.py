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
from anyfill.rank import asked_in


@dataclass(eq=False, repr=False)
class OnePassGroups(GroupChain):
    """A chain of conditionals over an image in one pass, a token per group, that is also sampled from a cache.

    Satisfies ``Cached``. Attributes are those of ``GroupChain``.
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
        values, ranks = self._read(cache.x, visits.rank, variable)
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
