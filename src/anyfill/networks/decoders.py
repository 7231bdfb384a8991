"""Decoders that answer a whole chain in one pass: from left to right, and in any order at all.

``CausalDecoder``: plain autoregression. The row is the words and END behind them; the token before a word predicts it,

    p(words | source) = prod_t p(w_t | w_1 … w_{t-1}, source),

with a cache of what was read. It is trained and asked from left to right only (``Factorization.PREFIX``).

``DisentangledDecoder`` (DisCo, Kasai et al. 2020): every place has its own set of words that it sees. The query of a
place starts from the place alone and is updated layer by layer; keys and values are the words as they came in, token
and place, in every layer. So no word can leak through a third one, and one pass answers

    p(w_i | {w_j : rank j < rank i}, n, source)   for every i,

a chain in any order. The length is variable 0 (see ``networks.encoder_decoder``); words behind it are not there. One
vector, that of START, is visible to everybody: whoever sees no word sees it (DisCo's END plays this part).
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from anyfill.networks.encoder_decoder import BLANK, START, Memory, SequenceToSequence, alive_places
from anyfill.networks.one_pass_tokens import Cache, Window
from anyfill.rank import NEVER, asked_in


@dataclass(frozen=True, slots=True)
class DecoderCache:
    """What a causal decoder has read: of the target, and the source."""

    words: Cache
    memory: Memory


@dataclass(eq=False, repr=False)
class CausalDecoder(SequenceToSequence):
    """(B, N + 1, V): every word given those before it, in one pass; END counts as a word.

    Attributes:
        headed: START is read in front of the source, as by networks with a length: those read a source alike when they
            begin from this one's weights.
    """

    headed: bool = False

    def __post_init__(self) -> None:
        self._begin(positional=False, lengths=False, headed=self.headed)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | Memory | None = None) -> Tensor:
        """What comes next, given a known beginning; other places mean nothing."""
        return self.chain(torch.where(known, x, BLANK), torch.where(known, -1, 0), context)

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | Memory | None = None, *, strict: bool = False) -> Tensor:
        """(B, L, V): each of the first L variables given all before it; the rank must be that order."""
        return self._logits(self._states(x, rank, context))

    def chain_at(
        self, x: Tensor, rank: Tensor, row: Tensor, variable: Tensor, context: Tensor | Memory | None = None
    ) -> Tensor:
        """(H, V): the same for the variables (H,) of the rows (H,) alone; see ``ChainsCells``."""
        return self._logits(self._states(x, rank, context)[row, variable])

    def _states(self, x: Tensor, rank: Tensor, context: Tensor | Memory | None) -> Tensor:
        """(B, L, width): what each variable's logits are made of."""
        return self._through(self._tokens(x, rank), self.read_context(context))[0]

    def open(self, x: Tensor, rank: Tensor, context: Tensor | Memory | None = None) -> tuple[Tensor, DecoderCache]:
        """Read the beginning that is given: logits (B, V) of each row's next word, and the cache."""
        memory = self.read_context(context)
        place = (rank < 0).sum(1).clamp(max=x.shape[1] - 1)
        tokens = self._tokens(x, rank)[:, : int(place.max()) + 1]
        h, keys, values = self._through(tokens, memory)
        room = x.shape[1] + 1 - tokens.shape[1]
        order = torch.arange(x.shape[1], device=x.device).expand(len(x), -1)
        words = Cache(
            order,
            place,
            [functional.pad(key, (0, 0, 0, room)) for key in keys],
            [functional.pad(value, (0, 0, 0, room)) for value in values],
            None,
        )
        return self._logits(h[torch.arange(len(x), device=x.device), place]), DecoderCache(words, memory)

    def extend(self, value: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        """Take in each row's next word (B,): logits (B, V) of the one behind it. Writes into the cache."""
        params, cache = self.advance(value.unsqueeze(1), cache)
        return params[:, 0], cache

    def advance(self, values: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        """Take in each row's next W words (B, W): logits (B, W, V) of the word behind each of them."""
        words, memory = cache.words, cache.memory
        window = Window.behind(words, values.shape[1], copies=False)
        place = self.position(window.slots[:, 0, :, 0].clamp(max=self.length))
        h = self._drop(self.table(values.long()) * self.width**0.5 + place)
        count = words.place + values.shape[1]
        if self.recorded is not None and window.visible is None and memory.visible is None:
            h = self.recorded.causal(h, words.keys, words.values, window.slots, window.reach, memory)
            return self._logits(h), replace(cache, words=words.at(count))
        for number, layer in enumerate(self._layers()):
            own = layer.attention
            normed = own.norm(h)
            query, key, value = own.projected(normed)
            seen = window.write(words.keys[number], key), window.write(words.values[number], value)
            h = h + own.attend(query, *seen, window.visible)
            h = layer.finish(h, (memory.keys[number], memory.values[number], memory.visible))
        return self._logits(h), replace(cache, words=words.at(count))

    def select(self, cache: DecoderCache, rows: Tensor, *, room: int | None = None) -> DecoderCache:
        """The cache of some rows (R,) alone, copied; with ``room``, for so many tokens from now on."""
        return DecoderCache(cache.words.rows(rows, room), cache.memory.rows(rows))

    def _tokens(self, x: Tensor, rank: Tensor) -> Tensor:
        """int64 (B, L): START, and all words but the last."""
        words = torch.where(rank < NEVER, x, BLANK).long().clamp(0, self.codes - 1)
        return functional.pad(words[:, :-1], (1, 0), value=START)

    def _through(self, tokens: Tensor, memory: Memory) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """(B, L, width) behind the last layer, and each layer's keys and values."""
        h, keys, values = self.embed(tokens), list[Tensor](), list[Tensor]()
        for number, layer in enumerate(self._layers()):
            if not self.training:
                key, value = layer.attention.stored(layer.attention.norm(h))
                keys.append(key)
                values.append(value)
            read = (memory.keys[number], memory.values[number], memory.visible)
            h = layer(h, h, None, read, tokens.shape[1] > 1)
        return h, keys, values


@dataclass(eq=False, repr=False)
class DisentangledDecoder(SequenceToSequence):
    """(B, N + 1, V): the length, and every word given those that rank before it, in one pass."""

    def __post_init__(self) -> None:
        self._begin(positional=False, lengths=True)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | Memory | None = None) -> Tensor:
        """Every unknown word given the known ones (B, N + 1)."""
        return self.chain(torch.where(known, x, BLANK), torch.where(known, -1, 0), context)

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | Memory | None = None, *, strict: bool = False) -> Tensor:
        """(B, L + 1, V): each word given all that rank before it, ties not among them. A length that does not rank
        before every asked word is not looked at."""
        memory = self.read_context(context)
        order, asked = rank[:, 1:], asked_in(rank[:, 1:])
        told = (rank[:, :1] < torch.where(asked, order, NEVER).amin(1, keepdim=True)) & (rank[:, :1] < NEVER)
        alive = alive_places(x, told)
        # Given words are read one after another: by rank, then by index.
        given = torch.where(order < 0, order, 0).argsort(dim=1, stable=True).argsort(1) - order.shape[1]
        when = torch.where(order < 0, given, order)
        sees = (when.unsqueeze(1) < when.unsqueeze(2)) & (alive & (order < NEVER)).unsqueeze(1)
        visible = functional.pad(sees, (1, 0), value=True).unsqueeze(1)  # (B, 1, L, 1 + L): START first
        words = torch.where(order < NEVER, x[:, 1:], BLANK).long().clamp(0, self.codes - 1)
        start = words.new_full((len(words), 1), START)
        stored = torch.cat([self.embed(start), self.embed(words)], 1)
        stored = functional.rms_norm(stored, (self.width,), eps=1e-6)
        h = self._drop(self.position.weight[: words.shape[1]].unsqueeze(0).expand(len(words), -1, -1))
        for number, layer in enumerate(self._layers()):
            read = (memory.keys[number], memory.values[number], memory.visible)
            h = layer(h, h, visible, read, stored=stored)
        return self._with_length(self._logits(h), memory)
