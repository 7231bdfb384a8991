"""What several networks of chorales know together: each asked in any key, some of them at a time.

The student of ``bach_distil`` learns from the mean law q = 1/M sum_m q_m of M teachers, each in all keys. The
cross-entropy that it minimises is linear in q:

    H(q, p) = 1/M sum_m H(q_m, p),

so in every step a few teachers drawn at random, and a key drawn for each row, have the right expectation. A step costs
so many passes, not M times the number of keys.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anyfill.music.chorale import CODES, HIGHEST, LOWEST, REST, Chorale
from anyfill.networks import Averaged
from anyfill.networks.averaged import mean_law
from anyfill.networks.embed import Kind
from anyfill.networks.network import Capabilities

KEYS = range(-6, 6)
UNLIKELY = -30.0


class SomeOf(Averaged):
    """``Averaged`` over ``at_once`` members, drawn anew in every pass from torch's own generator."""

    def __init__(self, members: Sequence[nn.Module], at_once: int) -> None:
        super().__init__(members)
        self.at_once = min(at_once, len(self.members))

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Tensor:
        """(B, N, K): logarithms of the mean law of those drawn."""
        some: list[Any] = [self.members[number] for number in torch.randperm(len(self.members))[: self.at_once]]
        return mean_law([member.chain(x, rank, context, strict=strict) for member in some])


class InKey(nn.Module, Capabilities):
    """A network of grid codes that sees all rows moved by ``shift`` semitones, its law moved back.

    The shift does not depend on the row, so that the law is an exact conditional as the network's own is.
    """

    def __init__(self, network: nn.Module, shift: int = 0) -> None:
        super().__init__()
        self.network: Any = network
        self.shift = shift

    @property
    def kind(self) -> Kind:
        """What a value is."""
        return self.network.kind

    @property
    def variables(self) -> int:
        """N."""
        return self.network.variables

    @property
    def outputs(self) -> int:
        """K."""
        return self.network.outputs

    def compile_parts(self) -> bool:
        """Those of the network."""
        return self.network.compile_parts()

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, K): every unknown variable given the known ones."""
        return self.chain(torch.where(known, x, 0), torch.where(known, -1, 0), context)

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Tensor:
        """(B, N, K): logarithms of the law, each variable given all before it."""
        shift = self.shifts(x)
        seen = torch.where(x > 0, (x + shift).clamp(1, CODES - 1), 0)
        law = self.network.chain(seen, rank, context, strict=strict).float().log_softmax(-1)
        return moved_back(law, shift)

    def shifts(self, x: Tensor) -> Tensor:
        """int64 (B, 1): semitones for each row."""
        return torch.full((len(x), 1), self.shift, dtype=torch.int64, device=x.device)


class InAnyKey(InKey):
    """The same in a random key, drawn anew for each row in every pass from torch's own generator.

    Rows are moved to where their mean pitch lies -6 to 5 semitones from ``center``, that of the training pieces: there
    it was trained. The shift knows the whole row, later cells too: a law to learn from, not one to score with.
    """

    def __init__(self, network: nn.Module, center: float) -> None:
        super().__init__(network)
        self.center = center

    def shifts(self, x: Tensor) -> Tensor:
        """int64 (B, 1): semitones for each row, within the range of the codes."""
        sounding = x > 0
        count = sounding.sum(1, keepdim=True).clamp(min=1)
        wanted = self.center + KEYS.start + torch.rand(len(x), 1, device=x.device) * len(KEYS)
        shift = (wanted - torch.where(sounding, x, 0).sum(1, keepdim=True) / count).round().long()
        low = torch.where(sounding, x, CODES).amin(1, keepdim=True)
        high = x.amax(1, keepdim=True)
        return torch.where(high > 0, torch.minimum(torch.maximum(shift, 1 - low), CODES - 1 - high), 0)


def moved_back(law: Tensor, shift: Tensor) -> Tensor:
    """(B, N, K): log p of codes from that of codes moved by ``shift`` (B, 1); what leaves the range is all but 0."""
    codes = torch.arange(law.shape[-1], device=law.device)
    source = torch.where(codes > 0, codes + shift, 0)
    inside = (codes == 0) | ((source > 0) & (source < law.shape[-1]))
    index = source.clamp(0, law.shape[-1] - 1).unsqueeze(1).expand_as(law)
    return torch.where(inside.unsqueeze(1), law.gather(-1, index), UNLIKELY)


def centered(pitch: NDArray[np.int16], center: float) -> Chorale:
    """A chorale (4, T) moved to where its mean pitch is nearest to the code ``center``, within the range of pitches.

    Teachers draw in all keys; moved by -6 to 5 semitones from there, some would leave those that pieces are in.
    """
    sounding = pitch[pitch != REST]
    if not len(sounding):
        return Chorale.of(pitch)
    shift = round(center + LOWEST - 1 - float(sounding.mean()))
    shift = min(max(shift, LOWEST - int(sounding.min())), HIGHEST - int(sounding.max()))
    return Chorale.of(pitch).transposed(shift)
