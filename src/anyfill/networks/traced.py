"""All layers of a frozen encoder-decoder as one graph each: what Python spends between short products is not spent.

A sentence of 30 words through 6 layers is some 400 operations of tens of microseconds, and a third of the time of a
pass is Python's. ``trace_layers`` records the layers once (``torch.jit.trace``), and the network replays the recording:

    encoder    h -> h
    parallel   h, each layer's positional attention, each layer's memory -> h            (``EncoderDecoder``)
    causal     h, caches, where to write, how far to look, each layer's memory -> h      (``CausalDecoder``, one word)

Where a row is padded, or rows are not equally far, layers run one by one as ever. Answers are the same to the last bit:
the same operations run in the same order. What was recorded keeps its weights: only frozen networks are traced.

``torch.jit`` is deprecated, but as of torch 2.13 nothing takes its place here. ``torch.export`` refuses the int8
matrices of ``translation.latency``, and what it makes of fp32 ones (as of ``make_fx``) is called from Python, operation
by operation: no quicker than the layers themselves. ``torch.compile`` needs a C++ compiler where it runs, and
time to start with.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from anyfill.networks.decoders import CausalDecoder
from anyfill.networks.encoder_decoder import EncoderDecoder, Memory, SequenceToSequence
from anyfill.networks.encoder_decoder_layers import DecoderLayer


class _Encoder(nn.Module):
    def __init__(self, network: SequenceToSequence) -> None:
        super().__init__()
        self.layers = network.encoder

    def forward(self, h: Tensor) -> Tensor:
        for layer in self.layers:
            h = layer(h, None)
        return h


class _Parallel(nn.Module):
    def __init__(self, network: SequenceToSequence) -> None:
        super().__init__()
        self.layers = network.decoder

    def forward(self, h: Tensor, where: list[Tensor], keys: list[Tensor], values: list[Tensor]) -> Tensor:
        for number, layer in enumerate(_decoder_layers(self.layers)):
            h = h + layer.attention(h)
            by = layer.positional
            if by is not None:
                mixed = where[number] @ by.split(by.value(by.norm(h)))
                h = h + by.out(mixed.transpose(1, 2).flatten(2))
            h = layer.finish(h, (keys[number], values[number], None))
        return h


class _Causal(nn.Module):
    def __init__(self, network: SequenceToSequence) -> None:
        super().__init__()
        self.layers = network.decoder

    def forward(
        self,
        h: Tensor,
        caches: list[Tensor],
        slots: Tensor,
        reach: Tensor,
        keys: list[Tensor],
        values: list[Tensor],
    ) -> Tensor:
        far = reach.shape[0]  # a recording keeps numbers as they were, but not shapes
        for number, layer in enumerate(_decoder_layers(self.layers)):
            own = layer.attention
            query, key, value = own.projected(own.norm(h))
            seen = [caches[2 * number], caches[2 * number + 1]]
            for into, new in zip(seen, (key, value)):
                into.scatter_(2, slots.expand_as(new), new)
            h = h + own.attend(query, seen[0][:, :, :far], seen[1][:, :, :far], None)
            h = layer.finish(h, (keys[number], values[number], None))
        return h


def _decoder_layers(layers: nn.ModuleList) -> list[DecoderLayer]:
    return [layer for layer in layers if isinstance(layer, DecoderLayer)]


class Recorded:
    """Graphs of a network's layers; ``network.recorded`` is one where there are any."""

    def __init__(self, encoder: Callable[..., Tensor], decoder: Callable[..., Tensor]) -> None:
        self.encode = encoder
        self.decoder = decoder

    def parallel(self, h: Tensor, where: list[Tensor], memory: Memory) -> Tensor:
        """All layers of a parallel decoder, nothing padded."""
        return self.decoder(h, where, list(memory.keys), list(memory.values))

    def causal(
        self, h: Tensor, keys: list[Tensor], values: list[Tensor], slots: Tensor, reach: int, memory: Memory
    ) -> Tensor:
        """All layers of a causal one, a word in each row; writes into the caches."""
        caches = [one for pair in zip(keys, values) for one in pair]
        return self.decoder(h, caches, slots, torch.empty(reach), list(memory.keys), list(memory.values))


@torch.no_grad()
def trace_layers(network: SequenceToSequence) -> None:
    """Record the layers of a frozen network, in evaluation mode, on a CPU; other kinds of decoders stay as they are."""
    if network.training or not isinstance(network, EncoderDecoder | CausalDecoder):
        return
    source = torch.full((1, 5), 3)
    memory = network.read_context(source)
    words = torch.full((1, 4), 3)
    args: tuple[Any, ...]
    if isinstance(network, EncoderDecoder):
        module: nn.Module = _Parallel(network)
        args = (network.embed(words), network.placed_attention(4), list(memory.keys), list(memory.values))
    else:
        module = _Causal(network)
        shape = (1, network.heads, 8, network.width // network.heads)
        caches = [torch.zeros(shape) for _ in range(2 * len(network.decoder))]
        slots = torch.full((1, 1, 1, 1), 2)
        args = (network.embed(words[:, :1]), caches, slots, torch.empty(3), list(memory.keys), list(memory.values))
    network.recorded = Recorded(_graph(_Encoder(network), (network.embed(source),)), _graph(module, args))


def _graph(module: nn.Module, arguments: tuple[Any, ...]) -> Any:
    jit: Any = torch.jit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jit.TracerWarning)  # that shapes may be kept: they are not, as tests see
        warnings.simplefilter("ignore", DeprecationWarning)  # see above
        return jit.freeze(jit.trace(module.eval(), arguments, check_trace=False))
