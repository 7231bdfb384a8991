"""The one-pass loss over patches, whose pixels are answered in any order in a share of the rows.

The order w reads a patch row by row, so its last pixel is asked given its first three, always, unless single pixels are
cut out. Asked alone it is then hardly ever: what the network says of it by itself, which maps of uncertainty show, is
far off and goes by its place in the patch. So a share of the rows answer the pixels of each patch in a random order of
their own, patch after patch as w has them: any pixel comes first as often as any other. Blocks stay what they are, and
a pass costs what it did, as a patch is one visit in any order of its pixels (``networks.one_pass_groups``).
"""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Generator, Tensor

from anyfill.checks import require_probability
from anyfill.networks.one_pass_visits import group_layout
from anyfill.objectives import OnePassLoss


@dataclass(frozen=True, slots=True)
class PatchLoss(OnePassLoss):
    """``OnePassLoss`` where some rows answer the pixels of each patch in a random order.

    Attributes:
        shape: (H, W), or (H, W, C) with channels that are members of a patch like its pixels.
        patch: height and width of a patch.
        mixed_share: of the rows whose patches are answered so.
    """

    shape: tuple[int, ...] = (1, 1)
    patch: tuple[int, int] = (1, 1)
    mixed_share: float = 0.0

    def __post_init__(self) -> None:
        OnePassLoss.__post_init__(self)
        require_probability("mixed_share", self.mixed_share)

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        """int64 (B, N): as ``OnePassLoss`` has it, with the ranks of each patch's pixels exchanged within a block."""
        rank = OnePassLoss.sample_rank(self, batch, generator=generator)
        layout = _layout(self.shape, self.patch, rank.device)
        if not self.mixed_share or layout.shape[1] == 1:
            return rank
        device, variables = rank.device, rank.shape[1]
        mixed = torch.rand(batch, 1, 1, generator=generator, device=device) < self.mixed_share
        own = rank[:, layout]  # (B, G, M)
        key = torch.rand(own.shape, generator=generator, device=device, dtype=torch.float64).argsort(2)
        key = torch.where(mixed, key, own % variables) + own.div(variables, rounding_mode="floor") * variables
        own = own.sort(2).values.gather(2, key.argsort(dim=2, stable=True).argsort(dim=2))
        return torch.empty_like(rank).scatter_(1, layout.flatten().expand(batch, -1), own.flatten(1))


@cache
def _layout(shape: tuple[int, ...], patch: tuple[int, int], device: torch.device) -> Tensor:
    """int64 (G, M): the pixels of each patch; made once, for every step reads it."""
    return group_layout(shape, patch).to(device)
