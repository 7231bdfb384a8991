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
neither answered (their parameters are zero) nor trained (``OnePassLoss.conditioned_share``). And roles matter:
p(x_j | known) is one distribution where a known value was given (rank < 0), another where it was answered before
(rank >= 0). A log-probability is exact for the question as it was posed; whoever asks for its terms one by one must
leave each value its role (``roles_matter``). Read causally, without blanks, roles change nothing.

Ignored variables are left out, or read as blanks (``ignored="blank"``): where nothing is given, an ignored variable j
has a token too, with a learned vector in place of its value, right before the first asked variable that lies behind it:

    asked 1, 4, 5 of 0 … 6:   (start, 0), (blank, 0, 1), (x_1, 1, 2), (blank, 2, 3), (blank, 3, 4), (x_4, 4, 5)

A masked network has room at every hole to think of what may stand there, and what it thinks helps with the next value;
so has this one, in the same single pass. Blanks carry no value, so log p(subset) stays exact. The token before a blank
predicts its variable from what was read so far: a term to train on (``OnePassLoss``), and how ties are answered
here."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_probability
from anyfill.networks.embed import ValueEmbedding
from anyfill.networks.one_pass_tokens import Answers, Cache, Plan, Window, unsort
from anyfill.networks.sight import prefix_mask, prefix_sight
from anyfill.networks.transformer import GridTransformer, Places, Turn


class AimedDecoder(GridTransformer):
    """What one-pass transformers share: tokens that stand somewhere and aim somewhere."""

    def _make_places(self) -> None:
        self.own = Places(self.token_grid, self.width, self.periods)  # the start token stands nowhere
        self.target = Places(self.token_grid, self.width, self.periods)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, P): every unknown variable given the known ones (B, N), in one pass."""
        return self.chain(x, torch.where(known, -1, 0), context)

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Tensor:
        """(B, N, P): each variable given all that rank strictly before it; see ``OnePass.chain``."""
        raise refuse("network", expected="one with a chain of its own", got=type(self).__name__)

    def _blocks(self) -> Any:
        return self.blocks

    def settled(self, context: Tensor) -> Self:
        """The network that is always told this context (C,), for good: it takes none, and no weight is shared.

        A context adds one vector to every token, and so does the place that a token aims at: there it goes.
        """
        if not self.context_width or context.shape != (self.context_width,):
            expected = f"({self.context_width},), as the network takes" if self.context_width else "a network with one"
            raise refuse("shape of the context to settle", expected=expected, got=tuple(context.shape))
        with torch.random.fork_rng(devices=[]):  # what it is born with is thrown away
            other = replace(self, context_width=0)
        with torch.no_grad():
            told = self.context(context.to(self.context.weight))
            weights = {name: value.clone() for name, value in self.state_dict().items()}
            weights["target.tables.0.weight"] += told
        other.load_state_dict({name: value for name, value in weights.items() if not name.startswith("context.")})
        return other.to(self.context.weight).train(self.training)

    def _embed(
        self, value: Tensor, own: Tensor, target: Tensor, context: Tensor | None
    ) -> tuple[Tensor, Turn | None, Turn | None]:
        """Tokens (B, L, width) and their rotations from value vectors and the places own, target (B, L)."""
        h = self._in_context(value + self.own(own) + self.target(target), context, target)
        if self.positions == "learned":
            return h, None, None
        return h, self.rotary(target), self.rotary(own)


@dataclass(eq=False, repr=False)
class OnePassTransformer(AimedDecoder):
    """(B, N, outputs): a chain of conditionals over N variables in one pass; see ``GridTransformer`` for other options.

    Attributes:
        given: "causal" = a given value sees the given ones before it; "full" = all of them, see above.
        ignored: "left out" = no token speaks of them; "blank" = they are read as blanks where nothing is given.
        value_dropout: share of the values read that are hidden while training (word dropout): little data is learnt by
            heart from exact contexts, of which then hardly one comes twice.
    """

    given: Literal["causal", "full"] = "causal"
    ignored: Literal["left out", "blank"] = "left out"
    value_dropout: float = 0.0

    def __post_init__(self) -> None:
        require_probability("value_dropout", self.value_dropout)
        self._begin(positions=("learned", "rotary"), given=("causal", "full"), ignored=("left out", "blank"))
        self.value = ValueEmbedding(self.kind, self.variables, self.width)
        self.start = nn.Parameter(nn.init.normal_(torch.empty(self.width), std=0.5))
        if self.ignored == "blank":
            self.blank = nn.Parameter(nn.init.normal_(torch.empty(self.width), std=0.5))
        self._make_places()
        self._make_trunk()

    @property
    def reads_both_ways(self) -> bool:
        return self.given == "full"

    @property
    def reads_blanks(self) -> bool:
        return self.ignored == "blank"

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Tensor:
        """(B, N, P): each variable given all that rank strictly before it; see ``OnePass.chain``.

        If given values are read both ways, parameters of given variables are zero: they would have seen the answer. If
        ignored variables are read as blanks, ``strict`` gives their parameters too, from what is read before them.
        """
        plan = Plan.of(rank, blanks=self.ignored == "blank", strict=strict)
        if strict:
            # Whether any row is told something is not looked up: on an accelerator every step would wait for it.
            # Put in order before the head: its parameters, one for each code, may be many times wider.
            h = self._hidden(plan.legible(x, strict), plan, self.variables, context, self.given == "full")
            params = self._params(unsort(h, plan))
        else:
            params = self._answers(x, plan, context).everywhere(self._params)
        return params if self.given == "causal" else torch.where((rank < 0).unsqueeze(-1), 0.0, params)

    def chain_at(self, x: Tensor, rank: Tensor, row: Tensor, variable: Tensor, context: Tensor | None = None) -> Tensor:
        """(H, P): the same for the variables (H,) of the rows (H,) alone; see ``ChainsCells``."""
        plan = Plan.of(rank, blanks=self.ignored == "blank")
        params = self._answers(x, plan, context).at(row, variable, self._params)
        return params if self.given == "causal" else torch.where((rank[row, variable] < 0).unsqueeze(-1), 0.0, params)

    def _answers(self, x: Tensor, plan: Plan, context: Tensor | None) -> Answers:
        """The states of one pass over what the plan reads, however it is tied."""
        x = plan.legible(x)
        if plan.ties():
            return self._parallel(x, plan, context)
        full = self.given == "full" and bool(plan.given.any())
        length = plan.length()
        return Answers.in_turn(self._hidden(x, plan, length, context, full), plan, length)

    def _params(self, h: Tensor) -> Tensor:
        """(…, P) from states (…, width)."""
        return self.head(self.norm(h))

    def open(self, x: Tensor, rank: Tensor, context: Tensor | None = None) -> tuple[Tensor, Cache]:
        """Read the given block: parameters (B, P) of each row's first asked variable, and the cache."""
        plan = Plan.of(rank, blanks=self.ignored == "blank", strict=True)
        x = torch.where(plan.given, x, torch.zeros_like(x))
        ready = plan.before_the_first()
        room = plan.length() + 1
        h, query_turn, key_turn = self._tokens(x, plan, int(ready.max()) + 1, context)
        keys: list[Tensor] = []
        values: list[Tensor] = []
        tokens = h.shape[1]  # never more than N: with everything given there is nothing left to aim at
        full = self.given == "full" and tokens > 1
        visible = self._visible(plan, tokens).unsqueeze(1) if full else None
        for block in self._blocks():
            query, key, value = block.project(h, query_turn, key_turn)
            keys.append(functional.pad(key, (0, 0, 0, room - tokens)))
            values.append(functional.pad(value, (0, 0, 0, room - tokens)))
            attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=visible, is_causal=not full)
            h = block.finish(h, attended)
        row = torch.arange(len(x), device=x.device)
        place = ready.clamp(max=tokens - 1)
        side = context if self.context_width else None
        return self._params(h[row, place]), Cache(plan.order, place, keys, values, side, plan.blanks_behind())

    def extend(self, value: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Take in each row's answer (B,): parameters (B, P) of its next variable. Writes into the cache."""
        if cache.blanks is not None:
            return self._past_blanks(value, cache, cache.blanks)
        params, cache = self.advance(value.unsqueeze(1), cache)
        return params[:, 0], cache

    def advance(self, values: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Take in each row's next W answers (B, W): parameters (B, W, P) of the variable behind each of them."""
        _require_no_blanks(cache)
        return self._ahead(values, cache, Window.behind(cache, values.shape[1], copies=False), values.shape[1])

    def peek(self, value: Tensor, cache: Cache, count: int) -> tuple[Tensor, Cache]:
        """Take in each row's answer (B,), as ``extend``: parameters (B, count, P) of its next variables given that."""
        _require_no_blanks(cache)
        window = Window.behind(cache, count, copies=True)
        return self._ahead(value.unsqueeze(1).expand(-1, count), cache, window, 1)

    def rewind(self, cache: Cache, steps: Tensor) -> Cache:
        """Take back each row's last answers, as many as ``steps`` (B,) says."""
        _require_no_blanks(cache)
        return cache.at(cache.place - steps)

    def select(self, cache: Cache, rows: Tensor, *, room: int | None = None) -> Cache:
        """The cache of some rows (R,) alone, copied; with ``room``, for so many tokens from now on."""
        return cache.rows(rows, room)

    def _past_blanks(self, value: Tensor, cache: Cache, blanks: Tensor) -> tuple[Tensor, Cache]:
        """``extend`` where blanks follow an answer: they are read with it."""
        behind = blanks.gather(1, cache.place.clamp(max=self.variables - 1).unsqueeze(1))
        count = int(behind.max()) + 1
        blank = (torch.arange(count, device=value.device) > 0).expand(len(value), -1)
        window = Window.behind(cache, count, copies=False)
        params, cache = self._ahead(value.unsqueeze(1).expand(-1, count), cache, window, behind[:, 0] + 1, blank)
        return params.gather(1, behind.unsqueeze(-1).expand(-1, -1, params.shape[-1]))[:, 0], cache

    def _ahead(
        self, values: Tensor, cache: Cache, window: Window, read: int | Tensor, blank: Tensor | None = None
    ) -> tuple[Tensor, Cache]:
        """(B, W, P) from a window of values (B, W), written into the cache; ``read`` of them count as read."""
        value = self._valued(values, window.own, blank)
        h, query_turn, key_turn = self._embed(value, window.own, window.target, cache.context)
        for block, keys, stored in zip(self._blocks(), cache.keys, cache.values):
            query, key, new = block.project(h, query_turn, key_turn)
            attended = functional.scaled_dot_product_attention(
                query, window.write(keys, key), window.write(stored, new), attn_mask=window.visible
            )
            h = block.finish(h, attended)
        return self._params(h), cache.at(cache.place + read)

    def _valued(self, x: Tensor, own: Tensor, blank: Tensor | None) -> Tensor:
        """(B, L, width): vectors of the values x (B, L) of the variables ``own``, or of a blank."""
        value = self.value(x, own)
        if self.value_dropout and self.training:
            hidden = torch.rand(own.shape, device=value.device) < self.value_dropout
            value = torch.where(hidden.unsqueeze(-1), 0.0, value)
        return value if blank is None else torch.where(blank.unsqueeze(-1), self.blank.to(value.dtype), value)

    def _tokens(
        self, x: Tensor, plan: Plan, length: int, context: Tensor | None
    ) -> tuple[Tensor, Turn | None, Turn | None]:
        """The tokens 0 … L-1 that aim at the first L variables read; L is cut down to N."""
        target = plan.order[:, :length]
        read = target[:, :-1]
        start = self.start.expand(len(x), 1, -1)
        if self.given == "causal":
            value = self._valued(x.gather(1, read), read, plan.blank_at(read)).to(start.dtype)
            own = functional.pad(read, (1, 0), value=self.variables)
            return self._embed(torch.cat([start, value], 1), own, target, context)
        step, told = torch.arange(target.shape[1], device=x.device), self._told(plan)
        begins = step == told
        own = torch.where(step < told, target, functional.pad(read, (1, 0)))
        value = self._valued(x.gather(1, own), own, plan.blank_at(own)).to(start.dtype)
        value = torch.where(begins.unsqueeze(-1), start, value)
        return self._embed(value, torch.where(begins, self.variables, own), target, context)

    def _hidden(self, x: Tensor, plan: Plan, length: int, context: Tensor | None, full: bool) -> Tensor:
        """(B, L, width): one pass over the first L variables read; ``full`` = not everything is plainly causal."""
        h, query_turn, key_turn = self._tokens(x, plan, length, context)
        blocks = self.in_blocks and self.training
        visible = prefix_sight(self._told(plan), h.shape[1], blocks=blocks) if full else None
        for block in self.blocks:
            h = block(h, query_turn, key_turn, visible, not full)
        return h

    def _told(self, plan: Plan) -> Tensor:
        """int64 (B, 1): how many values each row is told at once, to be read both ways."""
        return plan.given.sum(1, keepdim=True) * (self.given == "full")

    def _visible(self, plan: Plan, length: int) -> Tensor:
        """bool (B, L, L): which of the tokens 0 … L-1 each of them sees."""
        return prefix_mask(self._told(plan), length)

    def _parallel(self, x: Tensor, plan: Plan, context: Tensor | None) -> Answers:
        """With ties: the tokens read, then one aimed copy per asked variable."""
        when, order, asked = plan.when, plan.order, plan.asked
        last = torch.where(asked, when, -1).amax(1, keepdim=True)
        read = torch.maximum((when < last).sum(1) + 1, plan.given.sum(1))
        length = min(int(read.max()), self.variables)
        h, query_turn, key_turn = self._tokens(x, plan, length, context)
        # For each asked variable (in order of index): how many variables are read before it = the token it copies.
        wanted = asked.long().argsort(dim=1, descending=True, stable=True)[:, : int(asked.sum(1).max())]
        before = (when.gather(1, wanted).unsqueeze(2) > when.unsqueeze(1)).sum(2).clamp(max=length - 1)
        carries = before > self._told(plan)  # else it is a copy of the start token
        own = torch.where(carries, order.gather(1, (before - 1).clamp(min=0)), self.variables)
        there = own.clamp(max=self.variables - 1)
        value = self._valued(x.gather(1, there), there, plan.blank_at(there))
        value = torch.where(carries.unsqueeze(-1), value, self.start.expand(len(x), 1, -1).to(value.dtype))
        copies, copy_query, copy_key = self._embed(value, own, wanted, context)
        count = copies.shape[1]
        step = torch.arange(length, device=x.device)
        main = functional.pad(self._visible(plan, length), (0, count))
        copy = torch.cat(
            [before.unsqueeze(2) > step, torch.eye(count, dtype=torch.bool, device=x.device).expand(len(x), -1, -1)], 2
        )
        visible = torch.cat([main, copy], 1).unsqueeze(1)
        h = torch.cat([h, copies.to(h.dtype)], 1)
        turns = (join(query_turn, copy_query), join(key_turn, copy_key))
        for block in self.blocks:
            h = block(h, *turns, visible)
        # Rows with fewer asked variables than the longest list others too: these are answered by the tokens read.
        token = Answers.in_turn(h, plan, length).token
        copied = asked.gather(1, wanted) & plan.in_copies()
        copy_of = length + torch.arange(count, device=x.device)
        return Answers(h, token.scatter(1, wanted, torch.where(copied, copy_of, token.gather(1, wanted))))


def _require_no_blanks(cache: Cache) -> None:
    if cache.blanks is not None:
        expected = "a network that leaves out what is ignored, or nothing ignored before what is asked"
        raise refuse("answers read several at a time, or taken back", expected=expected, got="blanks between them")


def join(first: Turn | None, second: Turn | None) -> Turn | None:
    """The rotations of tokens and of those behind them; None = there are none."""
    if first is None or second is None:
        return None
    return torch.cat([first[0], second[0]], 2), torch.cat([first[1], second[1]], 2)
