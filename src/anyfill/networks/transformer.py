"""Transformers: what all of them are made of, and the bidirectional one.

The parts are rotary positions on a grid, attention, one pre-norm block and a trunk of them.

Rotary positions on a grid of shape (S_1, …, S_d): each axis owns an equal share of the head's planes and rotates
them by its coordinate, so that a query at p and a key at q meet through p - q alone. Query and key may be rotated by
different positions (a one-pass network rotates queries by the position they must *predict*).

Block:  h + Attention(norm h),  h + MLP(norm h),  squared-ReLU, no biases; queries and keys are normalised so that
attention logits stay bounded, and output projections start at zero so that a fresh block is the identity.

``Transformer`` is bidirectional over all variables: the masked network of ARDM, MAC, SFARM, SUNMASK and their kin.

One token per variable: embedding of the shown value + a flag "known or not" + where it stands. Positions are
learned (any set of variables), relative (a learned bias per offset) or rotary, on a line or on a grid. The flag is an
embedding that is added, or "stretched" (SUNMASK section 2.2): the value's vector has length L = width / 2, and behind
it stands the flag, 0 or 1, L times, divided by sqrt(L).
"""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, Self, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_counts, require_member, require_probability
from anyfill.networks.embed import Kind, ValueEmbedding
from anyfill.networks.network import Capabilities
from anyfill.networks.sight import attend


def require_grid(shape: object) -> None:
    """Refuse anything but a tuple of side lengths."""
    if not isinstance(shape, tuple) or not shape or not all(isinstance(side, int) and side > 0 for side in shape):
        raise refuse("shape", expected="a tuple of side lengths above 0, such as (8,) or (8, 8)", got=repr(shape))


def grid_coordinates(shape: tuple[int, ...]) -> Tensor:
    """int64 (N + 1, d): the coordinates of each variable on the grid, row-major; the last row is "nowhere", all -1."""
    return torch.tensor([*product(*(range(side) for side in shape)), (-1,) * len(shape)])


def rotary_angles(shape: tuple[int, ...], head_width: int, base: float = 1000.0) -> Tensor:
    """(N + 1, head_width / 2): by how much each plane of a head turns at each variable of the grid."""
    axes = len(shape)
    if head_width % (2 * axes):
        raise refuse("head width (width / heads)", expected=f"a multiple of {2 * axes}", got=head_width)
    planes = head_width // (2 * axes)
    speed = base ** (-torch.arange(planes) / planes)
    return (grid_coordinates(shape).unsqueeze(-1) * speed).flatten(1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the planes of x (B, H, L, D) by angles whose cos, sin broadcast as (B, 1, L, D/2)."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1).to(x.dtype)


class Rotary(nn.Module):
    """Looks up (cos, sin), each (B, 1, L, D/2), for the variables ``index`` (B, L); index N is nowhere."""

    def __init__(self, shape: tuple[int, ...], head_width: int) -> None:
        super().__init__()
        angle = rotary_angles(shape, head_width)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, index: Tensor) -> tuple[Tensor, Tensor]:
        return self.get_buffer("cos")[index].unsqueeze(1), self.get_buffer("sin")[index].unsqueeze(1)


class Places(nn.Module):
    """Learned vectors (B, L, width) for the variables ``index`` (B, L); index N is nowhere.

    One vector for each cell of the grid, or with ``periods`` (one for each axis, such as (16, 4) for time x voice) the
    sum over axes of a vector for the coordinate modulo its period: then the weights do not depend on the grid's size.
    """

    def __init__(self, shape: tuple[int, ...], width: int, periods: tuple[int, ...] | None = None) -> None:
        super().__init__()
        self.each_its_own = periods is None
        sizes = (math.prod(shape),) if periods is None else periods
        self.tables = nn.ModuleList(nn.Embedding(size + 1, width) for size in sizes)  # the last entry: nowhere
        for table in self.tables:
            nn.init.normal_(cast(nn.Embedding, table).weight, std=0.1)
        coordinates = torch.arange(math.prod(shape) + 1).unsqueeze(1)
        if periods is not None:
            period = torch.tensor(periods)
            whole = grid_coordinates(shape)
            coordinates = torch.where(whole < 0, period, whole % period)
        self.register_buffer("coordinates", coordinates, persistent=False)

    def forward(self, index: Tensor) -> Tensor:
        if self.each_its_own:
            return self.tables[0](index)
        coordinates = self.get_buffer("coordinates")[index]
        return torch.stack([table(coordinates[..., axis]) for axis, table in enumerate(self.tables)]).sum(0)


def require_periods(periods: object, shape: tuple[int, ...]) -> None:
    """Refuse anything but None or one period for each axis."""
    if periods is None:
        return
    if not isinstance(periods, tuple) or not all(isinstance(one, int) and one > 0 for one in periods):
        raise refuse("periods", expected="None, or a tuple of numbers above 0", got=repr(periods))
    if len(periods) != len(shape):
        raise refuse("periods", expected=f"{len(shape)} of them, one for each axis", got=len(periods))


Turn = tuple[Tensor, Tensor]


class Block(nn.Module):
    """One pre-norm transformer block on (B, L, width)."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0, expansion: int = 4) -> None:
        super().__init__()
        require_count("heads", heads)
        if width % heads:
            raise refuse("width", expected=f"a multiple of heads = {heads}", got=width)
        self.heads = heads
        self.dropout = dropout
        self.attention_norm = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.mix = nn.Linear(width, width, bias=False)
        self.mlp_norm = nn.RMSNorm(width)
        self.up = nn.Linear(width, expansion * width, bias=False)
        self.down = nn.Linear(expansion * width, width, bias=False)
        for matrix in (self.qkv, self.up):
            nn.init.normal_(matrix.weight, std=0.5 / math.sqrt(width))
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(self.down.weight)

    def project(self, h: Tensor, query_turn: Turn | None, key_turn: Turn | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (B, H, L, D), of tokens h (B, L, width)."""
        batch, length, width = h.shape
        qkv = self.qkv(self.attention_norm(h)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        query = functional.rms_norm(query, (query.shape[-1],))
        key = functional.rms_norm(key, (key.shape[-1],))
        if query_turn is not None:
            query = rotate(query, *query_turn)
        if key_turn is not None:
            key = rotate(key, *key_turn)
        return query.to(value.dtype), key.to(value.dtype), value

    def finish(self, h: Tensor, attended: Tensor) -> Tensor:
        """Add what was attended (B, H, L, D) to h (B, L, width), then the MLP."""
        h = h + self._drop(self.mix(attended.transpose(1, 2).flatten(2)))
        return h + self._drop(self.down(functional.relu(self.up(self.mlp_norm(h))).square()))

    def forward(
        self,
        h: Tensor,
        query_turn: Turn | None = None,
        key_turn: Turn | None = None,
        visible: Any = None,
        causal: bool = False,
    ) -> Tensor:
        """h (B, L, width); ``visible`` and ``causal`` as for ``attend``."""
        query, key, value = self.project(h, query_turn, key_turn)
        return self.finish(h, attend(query, key, value, visible, causal))

    def _drop(self, h: Tensor) -> Tensor:
        return functional.dropout(h, self.dropout) if self.dropout and self.training else h


Net = TypeVar("Net", bound=nn.Module)


def with_shape(network: Net, shape: tuple[int, ...]) -> Net:
    """A network (a dataclass with a shape, none of whose weights depend on its sides) of another shape; shared."""
    own: Any = network
    if len(shape) != len(own.shape):
        raise refuse("shape", expected=f"{len(own.shape)} sides, as before", got=shape)
    with torch.random.fork_rng(devices=[]):  # what it is born with is thrown away
        other: Any = replace(own, shape=shape)
    other.load_state_dict(network.state_dict(), assign=True)
    return other.to(next(network.parameters()).device).train(network.training)


@dataclass(eq=False, repr=False)
class GridTransformer(nn.Module, Capabilities):
    """What transformers over N variables laid out on a grid have in common: their options and their trunk.

    Attributes:
        kind: what a value is.
        shape: the grid; (N,) for a line, (height, width) for an image, (voices, time) for music.
        outputs: P, the likelihood's width.
        width, depth, heads: size of the trunk.
        positions: "learned" places only, "rotary" as well, or "relative" ones (masked transformers only).
        dropout: rate after attention and MLP.
        context_width: length C of the context vectors, one for a row (B, C) or one for each of its variables
            (B, N, C); 0 = none is taken.
        periods: None = each cell has learned vectors of its own; otherwise cells share them, see ``Places``, and with
            rotary positions the weights serve grids of any size (``resized``).
    """

    kind: Kind
    shape: tuple[int, ...]
    outputs: int
    width: int = 256
    depth: int = 4
    heads: int = 4
    positions: Literal["learned", "relative", "rotary"] = "rotary"
    dropout: float = 0.0
    context_width: int = 0
    periods: tuple[int, ...] | None = None

    def _begin(self, **choices: tuple[str, ...]) -> None:
        """Begin the module; ValueError unless its options are legal, ``choices`` being what some of them may be."""
        require_counts(self, "outputs", "width", "depth", "heads")
        require_probability("dropout", self.dropout)
        for name, allowed in choices.items():
            require_member(name, getattr(self, name), allowed)
        require_grid(self.shape)
        require_periods(self.periods, self.token_grid)
        super().__init__()
        self.compiled = False  # whether parts were (``compile_parts``)
        self.prefers_blocks = True  # to look at tokens in blocks (``sight``), where that is compiled for an accelerator
        self.in_blocks = False  # whether it does

    def _make_trunk(self) -> None:
        """Rotations, blocks and head, behind whatever embeds the tokens."""
        if self.positions == "rotary":
            self.rotary = Rotary(self.token_grid, self.width // self.heads)
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

    @property
    def token_grid(self) -> tuple[int, ...]:
        """Where tokens stand: one for each variable, unless a network says otherwise."""
        return self.shape

    def resized(self, shape: tuple[int, ...]) -> Self:
        """The same weights, shared, on another grid; needs ``periods`` and rotary positions."""
        if self.periods is None or self.positions != "rotary":
            got = f"periods={self.periods}, positions={self.positions!r}"
            raise refuse("network to resize", expected="one with periods and rotary positions", got=got)
        return with_shape(self, shape)

    def compile_parts(self) -> bool:
        """Compile the repeated block: most of the speed of compiling everything, a fraction of the wait."""
        for block in self.blocks:
            block.compile()
        self.compiled = True
        self.in_blocks = self.prefers_blocks and self.head.weight.is_cuda
        return True

    def _in_context(self, h: Tensor, context: Tensor | None, index: Tensor) -> Tensor:
        """Tokens h (B, L, width) and the context vectors (B, C), or (B, N, C) of which ``index`` (B, L) are theirs."""
        if not self.context_width or context is None:
            return h
        if context.dim() == 2:
            return h + self.context(context.to(h.dtype)).unsqueeze(1)
        own = context.gather(1, index.expand(len(context), -1).unsqueeze(-1).expand(-1, -1, context.shape[-1]))
        return h + self.context(own.to(h.dtype))


@dataclass(eq=False, repr=False)
class Transformer(GridTransformer):
    """(B, N, outputs) from N variables laid out on a grid; see ``GridTransformer`` for the other options.

    Attributes:
        flag: how the network is told what is known: "added" or "stretched".
    """

    flag: Literal["added", "stretched"] = "added"

    def __post_init__(self) -> None:
        self._begin(positions=("learned", "relative", "rotary"), flag=("added", "stretched"))
        if self.flag == "stretched" and self.width % 2:
            raise refuse("width", expected="an even number for a stretched flag", got=self.width)
        if self.flag == "added":
            self.value = ValueEmbedding(self.kind, self.variables, self.width)
            self.known = nn.Embedding(2, self.width)
        else:
            self.value = ValueEmbedding(self.kind, self.variables, self.width // 2)
        # Learned places cost little and tell variables apart whatever else is used.
        self.place = Places(self.shape, self.width, self.periods)
        if self.positions == "relative":
            self.bias = nn.Parameter(torch.zeros(self.heads, math.prod(2 * side - 1 for side in self.shape)))
            self.register_buffer("offset", relative_offsets(self.shape), persistent=False)
        self._make_trunk()

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        h, turn, bias = self._enter(x, known, context)
        for block in self.blocks:
            h = block(h, turn, turn, bias)
        return self.head(self.norm(h))

    @torch.no_grad()
    def attention(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(depth, B, H, N, N): how much of each variable (last axis) every variable reads in each block; sums to 1."""
        read: list[Tensor] = []
        h, turn, bias = self._enter(x, known, context)
        for block in self.blocks:
            query, key, _ = cast(Block, block).project(h, turn, turn)
            logits = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
            read.append((logits if bias is None else logits + bias).softmax(-1))
            h = block(h, turn, turn, bias)
        return torch.stack(read)

    def _enter(self, x: Tensor, known: Tensor, context: Tensor | None) -> tuple[Tensor, Turn | None, Tensor | None]:
        """What the first block is given: tokens (B, N, width), their rotation, a bias of attention (H, N, N)."""
        index = torch.arange(self.variables, device=x.device).unsqueeze(0)
        h = self._told(self.value(x, index.expand_as(x)), known) + self.place(index)
        turn = self.rotary(index) if self.positions == "rotary" else None
        bias = self.bias[:, self.get_buffer("offset")].to(h.dtype) if self.positions == "relative" else None
        return self._in_context(h, context, index), turn, bias

    def _told(self, value: Tensor, known: Tensor) -> Tensor:
        """(B, N, width): the values' vectors and what is known (B, N)."""
        if self.flag == "added":
            return value + self.known(known.long())
        stretched = (known.to(value.dtype) / math.sqrt(value.shape[-1])).unsqueeze(-1).expand_as(value)
        return torch.cat([value, stretched], -1)


def relative_offsets(shape: tuple[int, ...]) -> Tensor:
    """int64 (N, N): the number of the offset p - q on the grid, one number per distinct offset."""
    coordinates = grid_coordinates(shape)[:-1]
    offset = coordinates.unsqueeze(1) - coordinates.unsqueeze(0) + torch.tensor(shape) - 1
    number = torch.zeros(offset.shape[:2], dtype=torch.int64)
    for axis, side in enumerate(shape):
        number = number * (2 * side - 1) + offset[..., axis]
    return number
