"""The one-pass transformer: every term of log p(asked | given), and of log p(given), in ONE forward pass.

A causal decoder reads the variables in the order of their rank. Token t carries the value and the place of the
variable read last, v(t-1), and the place of the one it must predict, v(t):

    token 0: (start, v(0)),  token 1: (x_v(0), v(0), v(1)),  token 2: (x_v(1), v(1), v(2)) …

so hidden state t gives p(x_v(t) | x_v(0), …, x_v(t-1)) for all t at once. Queries are rotated by the place they must
predict and keys by the place they stand for, so attention sees how far each known value lies from the wanted one.
Nothing but ordinary causal attention is needed; training scores N terms per pass and sampling keeps a key-value cache.

Ties (several variables answered in parallel) need one more trick: a tied variable gets a copy of the last token read
before its group, aimed at it; the copy sees what that token saw and itself, and nobody sees the copy. With all unknown
variables tied this is ``__call__``: every unknown variable given the known ones, in one pass.

Given values may be read both ways (``given="full"``). With g of them, the tokens 0 … g-1 carry one given value each,
aim at its own place and see one another; then comes the start token, aimed at the first asked variable, and so on:

    token t < g: (x_v(t), v(t), v(t)),  token g: (start, v(g)),  token g+1: (x_v(g), v(g), v(g+1)) …
    token q sees token k  if  k <= q  or  k < g

so what the given block tells does not depend on who is asked. Terms of the given block would see themselves: they are
neither answered (their parameters are zero) nor trained (``objectives.Chain.told_share``). And roles matter: p(x_j |
known) is one distribution where a known value was given (rank < 0), another where it was answered before (rank >= 0). A
log-probability is exact for the question as it was posed; whoever asks for its terms one by one must leave each value
its role. Read causally, roles change nothing.

Several chains fit into one pass (``fresh``): one that begins anew has a start token and sees nothing before it.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_probability
from anyfill.networks.blocks import Block, Places, Rotary, Turn, on_another_grid, require_grid, require_periods
from anyfill.networks.embed import Kind, ValueEmbedding
from anyfill.networks.one_pass_cache import Cache, Window
from anyfill.rank import NEVER, asked_in


@dataclass(eq=False, repr=False)
class OnePassTransformer(nn.Module):
    """(B, N, outputs): a chain of conditionals over N variables laid out on a grid, in one pass.

    Attributes:
        kind: what a value is.
        shape: the grid; (N,) for a line, (height, width) for an image, (voices, time) for music.
        outputs: P, the likelihood's width.
        width, depth, heads: size of the trunk.
        positions: "learned" places only, or "rotary" as well.
        dropout: rate after attention and MLP.
        context_width: length of the context vector (B, C); 0 = none is taken.
        periods: None = each cell has learned vectors of its own; otherwise cells share them, see ``Places``, and with
            rotary positions the weights serve grids of any size (``resized``).
        given: "causal" = a given value sees the given ones before it; "full" = all of them, see above.
    """

    kind: Kind
    shape: tuple[int, ...]
    outputs: int
    width: int = 256
    depth: int = 4
    heads: int = 4
    positions: Literal["learned", "rotary"] = "rotary"
    dropout: float = 0.0
    context_width: int = 0
    periods: tuple[int, ...] | None = None
    given: Literal["causal", "full"] = "causal"

    def __post_init__(self) -> None:
        for name in ("outputs", "width", "depth", "heads"):
            require_count(name, getattr(self, name))
        require_probability("dropout", self.dropout)
        if self.positions not in ("learned", "rotary"):
            raise refuse("positions", expected="'learned' or 'rotary'", got=repr(self.positions))
        if self.given not in ("causal", "full"):
            raise refuse("given", expected="'causal' or 'full'", got=repr(self.given))
        require_grid(self.shape)
        require_periods(self.periods, self.shape)
        super().__init__()
        self.value = ValueEmbedding(self.kind, self.variables, self.width)
        self.start = nn.Parameter(nn.init.normal_(torch.empty(self.width), std=0.5))
        self.own = Places(self.shape, self.width, self.periods)  # the start token stands nowhere
        self.target = Places(self.shape, self.width, self.periods)
        if self.positions == "rotary":
            self.rotary = Rotary(self.shape, self.width // self.heads)
        if self.context_width:
            self.context = nn.Linear(self.context_width, self.width)
        self.blocks = nn.ModuleList(Block(self.width, self.heads, self.dropout) for _ in range(self.depth))
        self.norm = nn.RMSNorm(self.width)
        self.head = nn.Linear(self.width, self.outputs)
        nn.init.zeros_(self.head.weight)

    @property
    def variables(self) -> int:
        """N, the number of cells of the grid."""
        return math.prod(self.shape)

    def resized(self, shape: tuple[int, ...]) -> "OnePassTransformer":
        """The same weights, shared, on another grid; needs ``periods`` and rotary positions."""
        return on_another_grid(self, shape)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, P): every unknown variable given the known ones (B, N), in one pass."""
        return self.chain(x, torch.where(known, -1, 0), context)

    def chain(
        self,
        x: Tensor,
        rank: Tensor,
        context: Tensor | None = None,
        *,
        strict: bool = False,
        fresh: Tensor | None = None,
    ) -> Tensor:
        """(B, N, P): each variable given all that rank strictly before it; see ``OnePass.chain``.

        If given values are read both ways, parameters of given variables are zero: they would have seen the answer.
        ``fresh``, bool (B, N), taken if ``strict``: at these variables a new chain begins, which sees no earlier one.
        """
        order = rank.argsort(dim=1, stable=True)
        params = self._chain(x, rank, order, context, strict, fresh)
        return params if self.given == "causal" else torch.where((rank < 0).unsqueeze(-1), 0.0, params)

    def _chain(
        self, x: Tensor, rank: Tensor, order: Tensor, context: Tensor | None, strict: bool, fresh: Tensor | None
    ) -> Tensor:
        asked = asked_in(rank)
        # What nobody is asked after is not read, so that nothing (a NaN, say) can come of it. Masking attention would
        # not do: 0 · NaN = NaN.
        last = torch.where(asked, rank, 0).amax(1, keepdim=True)
        x = torch.where(rank < last, x, torch.zeros_like(x))
        if strict:
            # Whether any row is told something is not looked up: on an accelerator every step would wait for it.
            full = self.given == "full" or fresh is not None
            return _unsort(self._read(x, rank, order, self.variables, context, full, fresh), order)
        sorted_rank = rank.gather(1, order)
        tied = (sorted_rank[:, 1:] == sorted_rank[:, :-1]) & asked.gather(1, order)[:, 1:]
        if not bool(tied.any()):
            length = max(int((rank < NEVER).sum(1).max()), 1) if len(rank) else 1
            full = self.given == "full" and bool((rank < 0).any())
            return _unsort(self._read(x, rank, order, length, context, full), order)
        return self._parallel(x, rank, order, asked, context)

    def open(self, x: Tensor, rank: Tensor, context: Tensor | None = None) -> tuple[Tensor, Cache]:
        """Read the given block: parameters (B, P) of each row's first asked variable, and the cache."""
        order = rank.argsort(dim=1, stable=True)
        x = torch.where(rank < 0, x, torch.zeros_like(x))
        given = (rank < 0).sum(1)
        tokens = int(given.max()) + 1
        room = int((rank < NEVER).sum(1).max()) + 1
        h, query_turn, key_turn = self._tokens(x, rank, order, tokens, context)
        keys: list[Tensor] = []
        values: list[Tensor] = []
        tokens = h.shape[1]  # never more than N: with everything given there is nothing left to aim at
        full = self.given == "full" and tokens > 1
        visible = self._visible(rank, tokens).unsqueeze(1) if full else None
        for block in self._blocks():
            query, key, value = block.project(h, query_turn, key_turn)
            keys.append(functional.pad(key, (0, 0, 0, room - tokens)))
            values.append(functional.pad(value, (0, 0, 0, room - tokens)))
            attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=visible, is_causal=not full)
            h = block.finish(h, attended)
        row = torch.arange(len(x), device=x.device)
        place = given.clamp(max=tokens - 1)
        side = context if self.context_width else None
        return self.head(self.norm(h[row, place])), Cache(order, place, keys, values, side)

    def extend(self, value: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Take in each row's answer (B,): parameters (B, P) of its next variable. Writes into the cache."""
        row = torch.arange(len(value), device=value.device)
        room = cache.keys[0].shape[2]
        own = cache.order[row, cache.place.clamp(max=self.variables - 1)]
        place = (cache.place + 1).clamp(max=room - 1)  # rows that are done stay put; their output means nothing
        target = cache.order[row, place.clamp(max=self.variables - 1)]
        h, query_turn, key_turn = self._embed(
            self.value(value.unsqueeze(1), own.unsqueeze(1)), own.unsqueeze(1), target.unsqueeze(1), cache.context
        )
        reach = int(place.max()) + 1
        visible = (torch.arange(reach, device=value.device) <= place.unsqueeze(1))[:, None, None]
        for block, keys, values in zip(self._blocks(), cache.keys, cache.values):
            query, key, new = block.project(h, query_turn, key_turn)
            keys[row, :, place] = key[:, :, 0]
            values[row, :, place] = new[:, :, 0]
            attended = functional.scaled_dot_product_attention(
                query, keys[:, :, :reach], values[:, :, :reach], attn_mask=visible
            )
            h = block.finish(h, attended)
        return self.head(self.norm(h[:, 0])), Cache(cache.order, place, cache.keys, cache.values, cache.context)

    def advance(self, values: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Take in each row's next W answers (B, W): parameters (B, W, P) of the variable behind each of them."""
        return self._ahead(values, cache, Window.behind(cache, values.shape[1], copies=False), values.shape[1])

    def peek(self, value: Tensor, cache: Cache, count: int) -> tuple[Tensor, Cache]:
        """Take in each row's answer (B,), as ``extend``: parameters (B, count, P) of its next variables given that."""
        window = Window.behind(cache, count, copies=True)
        return self._ahead(value.unsqueeze(1).expand(-1, count), cache, window, 1)

    def rewind(self, cache: Cache, steps: Tensor) -> Cache:
        """Take back each row's last answers, as many as ``steps`` (B,) says."""
        return cache.at(cache.place - steps)

    def select(self, cache: Cache, rows: Tensor) -> Cache:
        """The cache of some rows (R,) alone, copied."""
        return cache.rows(rows)

    def _ahead(self, values: Tensor, cache: Cache, window: Window, read: int) -> tuple[Tensor, Cache]:
        """(B, W, P) from a window of values (B, W), written into the cache; ``read`` of them count as read."""
        h, query_turn, key_turn = self._embed(self.value(values, window.own), window.own, window.target, cache.context)
        for block, keys, stored in zip(self._blocks(), cache.keys, cache.values):
            query, key, new = block.project(h, query_turn, key_turn)
            attended = functional.scaled_dot_product_attention(
                query, window.write(keys, key), window.write(stored, new), attn_mask=window.visible
            )
            h = block.finish(h, attended)
        return self.head(self.norm(h)), cache.at(cache.place + read)

    def compile_parts(self) -> None:
        """Compile the repeated block: most of the speed of compiling everything, a fraction of the wait."""
        for block in self.blocks:
            block.compile()

    def _blocks(self) -> Any:
        return self.blocks

    def _embed(
        self, value: Tensor, own: Tensor, target: Tensor, context: Tensor | None
    ) -> tuple[Tensor, Turn | None, Turn | None]:
        """Tokens (B, L, width) and their rotations from value vectors and the places own, target (B, L)."""
        h = value + self.own(own) + self.target(target)
        if self.context_width and context is not None:
            h = h + self.context(context.to(h.dtype)).unsqueeze(1)
        if self.positions == "learned":
            return h, None, None
        return h, self.rotary(target), self.rotary(own)

    def _tokens(
        self, x: Tensor, rank: Tensor, order: Tensor, length: int, context: Tensor | None, fresh: Tensor | None = None
    ) -> tuple[Tensor, Turn | None, Turn | None]:
        """The tokens 0 … L-1 that aim at the first L variables of ``order``; L is cut down to N."""
        target = order[:, :length]
        read = target[:, :-1]
        start = self.start.expand(len(x), 1, -1)
        if self.given == "causal" and fresh is None:
            value = torch.cat([start, self.value(x.gather(1, read), read).to(start.dtype)], 1)
            return self._embed(value, functional.pad(read, (1, 0), value=self.variables), target, context)
        step, told = torch.arange(target.shape[1], device=x.device), self._told(rank)
        begins = step == told
        if fresh is not None:
            begins = begins | fresh.gather(1, target)
        own = torch.where(step < told, target, functional.pad(read, (1, 0)))
        value = torch.where(begins.unsqueeze(-1), start, self.value(x.gather(1, own), own).to(start.dtype))
        return self._embed(value, torch.where(begins, self.variables, own), target, context)

    def _read(
        self,
        x: Tensor,
        rank: Tensor,
        order: Tensor,
        length: int,
        context: Tensor | None,
        full: bool,
        fresh: Tensor | None = None,
    ) -> Tensor:
        """(B, L, P): one pass over the first L variables of ``order``; ``full`` = not everything is plainly causal."""
        h, query_turn, key_turn = self._tokens(x, rank, order, length, context, fresh)
        chains = None if fresh is None else fresh.gather(1, order[:, :length]).cumsum(1)
        visible = self._visible(rank, h.shape[1], chains).unsqueeze(1) if full else None
        for block in self.blocks:
            h = block(h, query_turn, key_turn, visible, not full)
        return self.head(self.norm(h))

    def _told(self, rank: Tensor) -> Tensor:
        """int64 (B, 1): how many values each row is told at once, to be read both ways."""
        return (rank < 0).sum(1, keepdim=True) * (self.given == "full")

    def _visible(self, rank: Tensor, length: int, chains: Tensor | None = None) -> Tensor:
        """bool (B, L, L): which of the tokens 0 … L-1 each of them sees; ``chains`` (B, L) numbers those apart."""
        step = torch.arange(length, device=rank.device)
        sees = (step.unsqueeze(1) >= step).expand(len(rank), -1, -1)
        if chains is not None:
            sees = sees & (chains.unsqueeze(2) == chains.unsqueeze(1))
        return sees if self.given == "causal" else sees | (step < self._told(rank).unsqueeze(2))

    def _parallel(self, x: Tensor, rank: Tensor, order: Tensor, asked: Tensor, context: Tensor | None) -> Tensor:
        """(B, N, P) with ties: the tokens read, then one aimed copy per asked variable."""
        batch = len(x)
        last = torch.where(asked, rank, -1).amax(1, keepdim=True)
        read = torch.maximum((rank < last).sum(1) + 1, (rank < 0).sum(1))
        length = min(int(read.max()), self.variables)
        h, query_turn, key_turn = self._tokens(x, rank, order, length, context)
        # For each asked variable (in order of index): how many variables rank before it = the token it copies.
        wanted = asked.long().argsort(dim=1, descending=True, stable=True)[:, : int(asked.sum(1).max())]
        before = (rank.gather(1, wanted).unsqueeze(2) > rank.unsqueeze(1)).sum(2).clamp(max=length - 1)
        carries = before > self._told(rank)  # else it is a copy of the start token
        own = torch.where(carries, order.gather(1, (before - 1).clamp(min=0)), self.variables)
        value = self.value(x.gather(1, own.clamp(max=self.variables - 1)), own.clamp(max=self.variables - 1))
        value = torch.where(carries.unsqueeze(-1), value, self.start.expand(batch, 1, -1).to(value.dtype))
        copies, copy_query, copy_key = self._embed(value, own, wanted, context)
        count = copies.shape[1]
        step = torch.arange(length, device=x.device)
        main = functional.pad(self._visible(rank, length), (0, count))
        copy = torch.cat(
            [before.unsqueeze(2) > step, torch.eye(count, dtype=torch.bool, device=x.device).expand(batch, -1, -1)], 2
        )
        visible = torch.cat([main, copy], 1).unsqueeze(1)
        h = torch.cat([h, copies.to(h.dtype)], 1)
        turns = (_join(query_turn, copy_query), _join(key_turn, copy_key))
        for block in self.blocks:
            h = block(h, *turns, visible)
        params = self.head(self.norm(h))
        out = _unsort(params[:, :length], order)
        # Rows with fewer asked variables than the longest list others too: leave those as they were.
        fresh = torch.where(
            asked.gather(1, wanted).unsqueeze(-1), params[:, length:], out.gather(1, _wide(wanted, out))
        )
        return out.scatter(1, _wide(wanted, out), fresh)


def _wide(index: Tensor, like: Tensor) -> Tensor:
    """index (B, L) repeated over the parameters of ``like`` (B, N, P)."""
    return index.unsqueeze(-1).expand(-1, -1, like.shape[-1])


def _unsort(params: Tensor, order: Tensor) -> Tensor:
    """(B, N, P): parameters of the first L variables of ``order``, put in their places (others: zero)."""
    batch, variables = order.shape
    out = params.new_zeros(batch, variables, params.shape[-1])
    return out.scatter(1, _wide(order[:, : params.shape[1]], out), params)


def _join(first: Turn | None, second: Turn | None) -> Turn | None:
    if first is None or second is None:
        return None
    return torch.cat([first[0], second[0]], 2), torch.cat([first[1], second[1]], 2)
