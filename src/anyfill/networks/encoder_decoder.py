"""Encoder and decoder: the source is read once, and every pass over the target reuses what was read.

A row is the target; the context is the source, codes (B, S) with 0 behind its end. One table of vectors E serves both
languages, the input and the output (logits h · E): codes 0, 1, 2 are kept for BLANK, START and END.

The length is variable 0 of the row, and the words are variables 1 … N:

    p(n, words | source) = p(n | source) · p(words | n, source)

p(n | source) is read off the START token in front of the source: its encoding times a table of lengths 1 … N (PaDIR's
[LENGTH] token, which the words never attend to). Whatever is known of the words does not enter, so variable 0 is
answered in every pass, known or not. Where n is known, places behind it are not there: nobody attends to them.

Positions are learnt vectors, one table for both sides; the layers are those of ``encoder_decoder_layers``.

    67 M   d 512, 6 + 6 layers, 32,128 codes: one tied table, positional attention in the decoder, 256 places, 128
           lengths; the paper's number, which no other reading of its settings gives
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_counts, require_probability
from anyfill.networks.embed import Discrete
from anyfill.networks.encoder_decoder_layers import EPS, DecoderLayer, EncoderLayer
from anyfill.networks.network import Capabilities

BLANK: Final = 0
START: Final = 1
END: Final = 2


@dataclass(frozen=True, slots=True)
class Memory:
    """A source that was read.

    Attributes:
        keys, values: for each layer of the decoder (B, H, S, D), what cross-attention meets.
        visible: bool (B, 1, 1, S), where the source is; None = everywhere.
        lengths: (B, N), logits of the lengths 1 … N; None = the network has none.
    """

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    visible: Tensor | None
    lengths: Tensor | None

    def rows(self, index: Tensor) -> "Memory":
        """Those of some rows (R,), in that order; a row may be taken several times."""
        return Memory(
            tuple(key[index] for key in self.keys),
            tuple(value[index] for value in self.values),
            None if self.visible is None else self.visible[index],
            None if self.lengths is None else self.lengths[index],
        )

    def __getitem__(self, index: Tensor) -> "Memory":
        return self.rows(index)


class Graphs(Protocol):
    """All layers as one graph, see ``networks.traced``."""

    def encode(self, h: Tensor) -> Tensor:
        """The encoder's layers, nothing padded."""
        ...

    def parallel(self, h: Tensor, where: list[Tensor], memory: Memory) -> Tensor:
        """Those of a parallel decoder, nothing padded."""
        ...

    def causal(
        self, h: Tensor, keys: list[Tensor], values: list[Tensor], slots: Tensor, reach: int, memory: Memory
    ) -> Tensor:
        """Those of a causal one, a word in each row; writes into the caches."""
        ...


@dataclass(eq=False, repr=False)
class SequenceToSequence(nn.Module, Capabilities):
    """What all encoder-decoders share: options, the encoder, the table of codes.

    Attributes:
        codes: V, of the vocabulary both languages share.
        length: N, the most words of a target.
        width, depth, heads: of the encoder.
        decoder_depth: layers of the decoder; None = as many.
        places: the longest source plus one.
        expansion: inner width of feed-forward layers, in widths.
        dropout: rate after every sub-layer and on embeddings.
    """

    codes: int
    length: int
    width: int = 256
    depth: int = 3
    heads: int = 4
    decoder_depth: int | None = None
    places: int = 256
    expansion: int = 4
    dropout: float = 0.1

    def _begin(self, *, positional: bool, lengths: bool, headed: bool = False) -> None:
        require_counts(self, "length", "width", "depth", "heads", "expansion")
        require_count("codes", self.codes, minimum=max(4, self.length + 1))
        require_count("places", self.places, minimum=self.length + 2)
        require_probability("dropout", self.dropout)
        if self.decoder_depth is not None:
            require_count("decoder_depth", self.decoder_depth)
        if self.width % self.heads:
            raise refuse("width", expected=f"a multiple of heads = {self.heads}", got=self.width)
        super().__init__()
        shape = (self.width, self.heads, self.expansion * self.width, self.dropout)
        self.table = nn.Embedding(self.codes, self.width)
        nn.init.normal_(self.table.weight, std=self.width**-0.5)
        self.position = nn.Embedding(self.places, self.width)
        nn.init.normal_(self.position.weight, std=1.0)
        self.encoder = nn.ModuleList(EncoderLayer(*shape) for _ in range(self.depth))
        self.encoder_norm: nn.Module = nn.RMSNorm(self.width, EPS)
        depth = self.depth if self.decoder_depth is None else self.decoder_depth
        self.decoder = nn.ModuleList(DecoderLayer(*shape, positional) for _ in range(depth))
        self.decoder_norm: nn.Module = nn.RMSNorm(self.width, EPS)
        self.projection: nn.Module | None = None  # an output apart from the table, where it was quantised
        self.recorded: Graphs | None = None  # all layers as one graph, where weights are frozen
        self.starts = lengths or headed  # START is read in front of the source
        self.lengths = nn.Linear(self.width, self.length, bias=False) if lengths else None
        if self.lengths is not None:
            nn.init.normal_(self.lengths.weight, std=self.width**-0.5)

    @property
    def kind(self) -> Discrete:
        """Codes."""
        return Discrete(self.codes)

    @property
    def outputs(self) -> int:
        """One logit for each code."""
        return self.codes

    @property
    def variables(self) -> int:
        """N + 1."""
        return self.length + 1

    @property
    def takes_beginnings(self) -> bool:
        """Rows may be cut behind their longest target."""
        return True

    def compile_parts(self) -> bool:
        """Compile the layers; batches differ in length, so shapes are dynamic."""
        for layer in (*self.encoder, *self.decoder):
            layer.compile(dynamic=True)
        return True

    def embed(self, codes: Tensor, first: int = 0) -> Tensor:
        """(B, L, width): codes (B, L) at the places from ``first`` on."""
        place = self.position.weight[first : first + codes.shape[1]]
        return self._drop(self.table(codes.long()) * math.sqrt(self.width) + place)

    def read_context(self, context: Tensor | Memory | None) -> Memory:
        """Encode sources (B, S): codes, with 0 behind the end. One that was read already stays as it is."""
        if isinstance(context, Memory):
            return context
        if context is None or context.dim() != 2:
            got = "none" if context is None else tuple(context.shape)
            raise refuse("context", expected="a source, codes (B, S)", got=got)
        if context.shape[1] >= self.places:
            raise refuse("source", expected=f"at most {self.places - 1} codes", got=context.shape[1])
        told = context != BLANK
        # On an accelerator nobody looks whether there is padding: that would make the host wait.
        padded = told.is_cuda or not bool(told.all())
        source = context
        if self.starts:
            source = functional.pad(context, (1, 0), value=START)
            told = functional.pad(told, (1, 0), value=True)
        visible = told[:, None, None] if padded else None
        h = self.embed(source)
        if self.recorded is not None and visible is None:
            h = self.recorded.encode(h)
        else:
            for layer in self.encoder:
                h = layer(h, visible)
        h = self.encoder_norm(h)
        lengths = None if self.lengths is None else self.lengths(h[:, 0])
        if self.starts:
            h = h[:, 1:]
            visible = None if visible is None else visible[..., 1:]
        stored = [layer.cross.stored(h) for layer in self._layers()]
        return Memory(tuple(key for key, _ in stored), tuple(value for _, value in stored), visible, lengths)

    def _layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def _drop(self, h: Tensor) -> Tensor:
        return functional.dropout(h, self.dropout, self.training)

    def _logits(self, h: Tensor) -> Tensor:
        """(B, L, V), from the decoder's last layer."""
        h = self.decoder_norm(h)
        return functional.linear(h, self.table.weight) if self.projection is None else self.projection(h)

    def _with_length(self, words: Tensor, memory: Memory) -> Tensor:
        """(B, L + 1, V): the parameters of the length in front of those of the words (B, L, V)."""
        if memory.lengths is None:
            raise refuse("network", expected="one with lengths", got=type(self).__name__)
        behind = self.codes - self.length - 1
        lengths = functional.pad(memory.lengths.to(words.dtype), (1, behind), value=-torch.inf)
        return torch.cat([lengths.unsqueeze(1), words], 1)


@dataclass(eq=False, repr=False)
class EncoderDecoder(SequenceToSequence):
    """(B, N + 1, V): the length and every word at once, given the source and the words that are known.

    Unknown words are read as BLANK; a corruption that shows noise in their place says that they are known.

    Attributes:
        positional: positional attention in the decoder.
    """

    positional: bool = True

    def __post_init__(self) -> None:
        self._begin(positional=self.positional, lengths=True)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | Memory | None = None) -> Tensor:
        memory = self.read_context(context)
        h, places, alive = self.begin_words(x, known)
        if self.recorded is not None and alive is None and memory.visible is None:
            h = self.recorded.parallel(h, self.placed_attention(h.shape[1]), memory)
        else:
            for number, layer in enumerate(self._layers()):
                h = layer(h, places, alive, (memory.keys[number], memory.values[number], memory.visible))
        return self._with_length(self._logits(h), memory)

    def placed_attention(self, length: int) -> list[Tensor]:
        """What positional attention, worked out before, says of the first places: for each layer; empty = nothing."""
        nothing = self.position.weight.new_empty(0)
        return [nothing if layer.where is None else layer.where(length, None) for layer in self._layers()]

    def begin_words(self, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """The words' vectors (B, L, width), their places (1, L, width), and which of them are there (B, 1, 1, L)."""
        words = torch.where(known[:, 1:], x[:, 1:], BLANK).long().clamp(0, self.codes - 1)
        alive = alive_places(x, known)
        here = None if not alive.is_cuda and bool(alive.all()) else alive[:, None, None]
        return self.embed(words), self.position.weight[: words.shape[1]].unsqueeze(0), here


def alive_places(x: Tensor, known: Tensor) -> Tensor:
    """bool (B, L): which places of rows x (B, L + 1) are in the target; all, where its length is not known."""
    most = x.shape[1] - 1
    length = torch.where(known[:, :1] & (x[:, :1] > 0), x[:, :1], most)
    return torch.arange(most, device=x.device) < length
