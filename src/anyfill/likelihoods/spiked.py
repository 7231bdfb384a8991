"""Numbers of a table, in standardised units: a mixture of Gaussians, and spikes at values that repeat.

    p(z) = sum_a w_a N(z; spike_a, spike_scale) + sum_k w_k N(z; m_k, s_k),      w = softmax over all A + K logits

A column of rainfall is 0 on most days, a survey is full of round numbers: a spike stands on each such value from the
start, and the network only has to say how much it weighs. With ``step = 0`` that is a density (of a spike, too: narrow,
so its height says little, but its mass is w_a). With ``step > 0`` the values lie on the grid offset + step Z and the
mixture is rounded to it (``anyfill.likelihoods.grid``): log-probabilities are of masses.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count, require_positive
from anyfill.likelihoods.circle import CircleMarginals
from anyfill.likelihoods.continuous import GaussianMixtureMarginals, raw_of, scale_of, spread
from anyfill.likelihoods.grid import GridMixtureMarginals
from anyfill.likelihoods.marginals import Likelihood, log_sum, read_params


@dataclass(frozen=True, slots=True)
class SpikedMixture(Likelihood):
    """Real values; A + 3K parameters: A logits of spikes, K logits, K means (before the fixed spread), K raw scales.

    Args:
        components: K, at least 1.
        spikes: where values repeat, in the units of z.
        spike_scale: how narrow a spike is.
        step: 0 = a density; above 0 = masses of the cells of the grid offset + step Z.
        offset: any one value of the grid.
        min_scale: the floor of the K scales. Without it a component earns any density by standing on a repeated value.
        period: above 0: values lie on a circle of this length (``anyfill.likelihoods.circle``).
    """

    components: int
    spikes: tuple[float, ...] = ()
    spike_scale: float = 1e-3
    step: float = 0.0
    offset: float = 0.0
    min_scale: float = 1e-2
    period: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "spikes", tuple(self.spikes))
        require_count("SpikedMixture components", self.components)
        require_positive("SpikedMixture spike_scale", self.spike_scale)
        require_positive("SpikedMixture min_scale", self.min_scale)
        if isinstance(self.step, bool) or not 0.0 <= self.step < math.inf:
            raise refuse("SpikedMixture step", expected="0 (a density) or the width of a cell", got=repr(self.step))
        if isinstance(self.period, bool) or not 0.0 <= self.period < math.inf:
            raise refuse("SpikedMixture period", expected="0 (a line) or the length of a circle", got=repr(self.period))
        for name, value in (("offset", self.offset), *(("spikes", spike) for spike in self.spikes)):
            if isinstance(value, bool) or not math.isfinite(value):
                raise refuse(f"SpikedMixture {name}", expected="finite numbers", got=repr(value))

    @property
    def width(self) -> int:
        return len(self.spikes) + 3 * self.components

    def __call__(self, params: Tensor) -> GaussianMixtureMarginals | GridMixtureMarginals | CircleMarginals:
        """(B, N, A + 3K) -> distributions, on the grid if there is one, on the circle if there is one."""
        params = read_params(params, self.width, f"SpikedMixture({self.components}) with {len(self.spikes)} spikes")
        flat = read_spiked(params, *_of_one(self, params.device))
        return CircleMarginals(flat, self.period) if self.period else flat

    def params(self, log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
        """The parameters (B, N, A + 3K) of log-weights (B, N, A + K), spikes first, and means and scales (B, N, K)."""
        before = means - means.new_tensor(spread(self.components))
        return torch.cat([log_weights, before, raw_of(scales, self.min_scale)], -1)


def read_spiked(
    params: Tensor,
    live: Tensor,
    spikes: Tensor,
    spike_scale: Tensor,
    start: Tensor,
    min_scale: Tensor,
    step: Tensor | None = None,
    offset: Tensor | None = None,
) -> GaussianMixtureMarginals | GridMixtureMarginals:
    """Parameters (..., A + 3K) as distributions; the rest is what ``stack_spiked`` makes, one entry per column or one.

    A spike that is not ``live`` has weight zero and its logit is not read.
    """
    count, components, dtype = spikes.shape[-1], start.shape[-1], params.dtype
    logits, means, raw = params.split([count + components, components, components], -1)
    if count:
        logits = torch.cat([torch.where(live, logits[..., :count], -torch.inf), logits[..., count:]], -1)
    shape = (*params.shape[:-1], count)
    fixed = (part.to(dtype).expand(shape) for part in (spikes, spike_scale.unsqueeze(-1)))
    own = (means + start.to(dtype), scale_of(raw, min_scale.unsqueeze(-1).to(dtype)))
    centers, scales = (torch.cat(pair, -1) for pair in zip(fixed, own))
    mixture = GaussianMixtureMarginals(logits - log_sum(logits), centers, scales, count)
    return mixture if step is None or offset is None else GridMixtureMarginals(mixture, step, offset)


def stack_spiked(columns: Sequence[SpikedMixture], device: torch.device) -> tuple[Tensor, tuple[Tensor, ...]]:
    """n columns with equal K, all or none with a grid, as one: which of its parameters each reads, and the rest.

    Returns:
        index int64 (n, A + 3K), where A is the most spikes that a column has, and the arguments of ``read_spiked``
        after the first, each with n entries.
    """
    most = max(len(column.spikes) for column in columns)
    spare = [most - len(column.spikes) for column in columns]
    index = [[*range(len(c.spikes)), *[0] * pad, *range(len(c.spikes), c.width)] for c, pad in zip(columns, spare)]
    live = [[True] * len(column.spikes) + [False] * pad for column, pad in zip(columns, spare)]
    spikes = [[*column.spikes, *[0.0] * pad] for column, pad in zip(columns, spare)]
    numbers = (
        spikes,
        [column.spike_scale for column in columns],
        [spread(column.components) for column in columns],
        [column.min_scale for column in columns],
        *(([c.step for c in columns], [c.offset for c in columns]) if columns[0].step else ()),
    )
    with torch.inference_mode(False):  # made while a model is only asked, it must still serve when one is trained
        settings = (torch.tensor(part, dtype=torch.float64, device=device) for part in numbers)
        return torch.tensor(index, device=device), (torch.tensor(live, dtype=torch.bool, device=device), *settings)


@lru_cache(maxsize=256)
def _of_one(column: SpikedMixture, device: torch.device) -> tuple[Tensor, ...]:
    """The settings of one column, kept on the device."""
    return tuple(part[0] for part in stack_spiked((column,), device)[1])
