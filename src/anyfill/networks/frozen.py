"""What never changes while weights do not, worked out before: encoder-decoders that only translate, for speed.

    queries, keys and values    one product instead of three
    positional attention        the same in every pass: its scores, and for a row without padding its softmax
    norms                       RMS norm is g sqrt(d) h / sqrt(|h|^2 + d eps): g sqrt(d) goes into the matrix behind it,
                                and what is left are three operations instead of nine

Answers are the same up to rounding.
"""

import math

import torch
from torch import Tensor, nn

from anyfill.networks.decoders import DisentangledDecoder
from anyfill.networks.encoder_decoder import SequenceToSequence
from anyfill.networks.encoder_decoder_layers import EPS, Attention, DecoderLayer, EncoderLayer


class UnitNorm(nn.Module):
    """h / sqrt(|h|^2 + d eps), (..., d) in and out: an RMS norm without its weights and sqrt(d)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.floor: Tensor
        self.register_buffer("floor", torch.tensor(math.sqrt(width * EPS)), persistent=False)

    def forward(self, h: Tensor) -> Tensor:
        return h / torch.hypot(torch.linalg.vector_norm(h, dim=-1, keepdim=True), self.floor)


class Placed:
    """Positional attention from scores (1, H, N, N); the last length's softmax is kept, as one sentence has it."""

    def __init__(self, scores: Tensor) -> None:
        self.scores = scores
        self._last: tuple[int, Tensor] | None = None

    def __call__(self, length: int, alive: Tensor | None) -> Tensor:
        """See ``encoder_decoder.Where``."""
        if alive is not None:
            return self.scores[..., :length, :length].masked_fill(~alive, -torch.inf).softmax(-1)
        if self._last is None or self._last[0] != length:
            self._last = (length, self.scores[..., :length, :length].softmax(-1))
        return self._last[1]


@torch.no_grad()
def freeze(network: SequenceToSequence) -> None:
    """Work out in place what can be, before weights are rounded; the network is then no longer to be trained."""
    places = network.position.weight[: network.length].unsqueeze(0)
    for layer in (*network.encoder, *network.decoder):
        if not isinstance(layer, EncoderLayer | DecoderLayer):
            continue
        own = layer.attention
        # DisCo's keys and values are of the words as they came in, with a norm of their own.
        apart = isinstance(layer, DecoderLayer) and isinstance(network, DisentangledDecoder)
        own.norm = _folded(own.norm, own.query) if apart else _folded(own.norm, own.query, own.key, own.value)
        own.joint = _stacked(own)
        layer.feed.norm = _folded(layer.feed.norm, layer.feed.up)
        if isinstance(layer, DecoderLayer):
            layer.cross.norm = _folded(layer.cross.norm, layer.cross.query)
            if layer.positional is not None:
                query, key = layer.placed_queries(layer.positional, places)
                layer.where = Placed(query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]))
                layer.positional.norm = _folded(layer.positional.norm, layer.positional.value)
    crossing = [layer.cross for layer in network.decoder if isinstance(layer, DecoderLayer)]
    stored = [matrix for cross in crossing for matrix in (cross.key, cross.value)]
    lengths = [] if network.lengths is None else [network.lengths]
    network.encoder_norm = _folded(network.encoder_norm, *stored, *lengths)
    if isinstance(network.projection, nn.Linear):  # an output of its own; the table is the input's, too
        network.decoder_norm = _folded(network.decoder_norm, network.projection)


def _folded(norm: nn.Module, *behind: nn.Linear) -> nn.Module:
    """What is left of a norm after its weights went into the matrices behind it."""
    if not isinstance(norm, nn.RMSNorm):
        return norm
    width = len(norm.weight)
    for matrix in behind:
        matrix.weight.mul_(norm.weight * math.sqrt(width))
    return UnitNorm(width)


def _stacked(attention: Attention) -> nn.Linear:
    """Queries, keys and values as one product."""
    parts = [part.weight.detach() for part in (attention.query, attention.key, attention.value)]
    width = parts[0].shape[1]
    joint = nn.Linear(width, 3 * width, bias=False)
    joint.weight = nn.Parameter(torch.cat(parts))
    return joint
