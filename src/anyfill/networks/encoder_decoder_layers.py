"""The layers of encoder-decoders.

Blocks are pre-norm (RMS), without biases, ReLU, plain dot products: parts that CTranslate2 has, too.

    encoder   h + attention(h),  h + feed(h)
    decoder   h + attention(h),  h + positional(h),  h + cross(h, memory),  h + feed(h)

Positional attention (Gu et al. 2018) stands between self- and cross-attention: queries and keys are the places alone,
values the words. It looks at where, never at what.
"""

import math
from typing import Final, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

EPS: Final = 1e-6


class Attention(nn.Module):
    """Multi-head attention with a norm in front of its queries; (B, L, width) in and out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm: nn.Module = nn.RMSNorm(width, EPS)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        for matrix in (self.query, self.key, self.value, self.out):
            nn.init.xavier_uniform_(matrix.weight)
        self.joint: nn.Module | None = None  # queries, keys and values as one product, where weights are frozen

    def split(self, h: Tensor) -> Tensor:
        """(B, L, width) -> (B, H, L, D)."""
        return h.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def stored(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, L, D) of what is attended to, normed already."""
        return self.split(self.key(h)), self.split(self.value(h))

    def projected(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (B, H, L, D) of what attends to itself, normed already."""
        if self.joint is not None:
            query, key, value = self.joint(h).chunk(3, -1)
            return self.split(query), self.split(key), self.split(value)
        return self.split(self.query(h)), *self.stored(h)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None, causal: bool = False) -> Tensor:
        """(B, L, width) from queries (B, H, L, D)."""
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=visible, is_causal=causal)
        return self.out(seen.transpose(1, 2).flatten(2))

    def forward(self, h: Tensor, visible: Tensor | None = None, causal: bool = False) -> Tensor:
        """Self-attention."""
        return self.attend(*self.projected(self.norm(h)), visible, causal)

    def across(self, h: Tensor, key: Tensor, value: Tensor, visible: Tensor | None) -> Tensor:
        """Attention of h to what was stored."""
        return self.attend(self.split(self.query(self.norm(h))), key, value, visible)

    def weights(self, h: Tensor, key: Tensor, visible: Tensor | None) -> Tensor:
        """(B, H, L, S): how much each place of h attends to each key."""
        query = self.split(self.query(self.norm(h)))
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        return (scores if visible is None else scores.masked_fill(~visible, -torch.inf)).softmax(-1)


class FeedForward(nn.Module):
    """h -> down relu(up norm(h))."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.norm: nn.Module = nn.RMSNorm(width, EPS)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)
        for matrix in (self.up, self.down):
            nn.init.xavier_uniform_(matrix.weight)

    def forward(self, h: Tensor) -> Tensor:
        return self.down(functional.relu(self.up(self.norm(h)), inplace=True))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.feed = FeedForward(width, inner)
        self.drop = nn.Dropout(dropout)

    def forward(self, h: Tensor, visible: Tensor | None) -> Tensor:
        h = h + self.drop(self.attention(h, visible))
        return h + self.drop(self.feed(h))


class Where(Protocol):
    """Positional attention that was worked out before."""

    def __call__(self, length: int, alive: Tensor | None) -> Tensor:
        """(B or 1, H, L, L): how much each of the first L places attends to each, where ``alive`` (B, 1, 1, L)."""
        ...


class DecoderLayer(nn.Module):
    """Self-attention, positional attention where it is wanted, cross-attention, feed-forward."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float, positional: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.positional = Attention(width, heads) if positional else None
        self.cross = Attention(width, heads)
        self.feed = FeedForward(width, inner)
        self.drop = nn.Dropout(dropout)
        self.where: Where | None = None  # what positional attention says, where weights are frozen

    def forward(
        self,
        h: Tensor,
        places: Tensor,
        alive: Tensor | None,
        memory: tuple[Tensor, Tensor, Tensor | None],
        causal: bool = False,
        stored: Tensor | None = None,
    ) -> Tensor:
        """h (B, L, width) at places (1, L, width); ``alive`` bool (B, 1, 1, L) or None; memory: keys, values, seen.

        With ``stored`` (B, K, width) that is attended to in place of h, where ``alive`` (B, 1, L, K) says so.
        """
        if stored is None:
            h = h + self.drop(self.attention(h, alive, causal))
        else:
            h = h + self.drop(self.attention.across(h, *self.attention.stored(stored), alive))
        return self.finish(self.placed(h, places, alive), memory)

    def placed(self, h: Tensor, places: Tensor, alive: Tensor | None) -> Tensor:
        """After positional attention."""
        by = self.positional
        if by is None:
            return h
        value = by.split(by.value(by.norm(h)))
        if self.where is not None:
            return h + by.out((self.where(h.shape[1], alive) @ value).transpose(1, 2).flatten(2))
        query, key = self.placed_queries(by, places)
        shape = (len(h), *query.shape[1:])
        return h + by.attend(query.expand(shape), key.expand(shape), value, alive)

    @staticmethod
    def placed_queries(by: Attention, places: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys (1, H, L, D) of places (1, L, width)."""
        where = functional.rms_norm(places, (places.shape[-1],), eps=EPS)
        return by.split(by.query(where)), by.split(by.key(where))

    def finish(self, h: Tensor, memory: tuple[Tensor, Tensor, Tensor | None]) -> Tensor:
        """After cross-attention and feed-forward."""
        h = h + self.drop(self.cross.across(h, *memory))
        return h + self.drop(self.feed(h))
