"""Real values that lie on a grid, offset + step Z: whole numbers, prices, anything that was rounded.

The model is a mixture of Gaussians for a hidden Y, and X is the grid value nearest to Y:

    P(X = v) = P(v - step/2 < Y <= v + step/2),

so log-probabilities are of *masses*: they sum to one over the grid, no component earns more than log 1 by standing on a
value, and log P(X = v) - log step tends to Y's log-density at v as the step falls to 0. The cells are measured in
``anyfill.likelihoods.cells``.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.likelihoods.cells import cell_entropy, cell_log_mass, cell_mean, cell_mode, cell_quantile, mode_cost
from anyfill.likelihoods.continuous import GaussianMixtureMarginals
from anyfill.likelihoods.mixture import entropy_cost, in_chunks, mixture_cdf, standard_quantile
from anyfill.likelihoods.numerics import Source, require_level, require_temperature, where_finite

_ROUNDING = 32  # units of the parameters' precision by which a sum of weights may miss a level and still reach it


@dataclass(frozen=True, slots=True, eq=False)
class GridMixtureMarginals:
    """A mixture for each variable, rounded to its grid.

    Attributes:
        mixture: Y, (B, N).
        step: width of a cell, float64, broadcasts to (B, N).
        offset: any one value of the grid, float64, broadcasts to (B, N).
    """

    mixture: GaussianMixtureMarginals
    step: Tensor
    offset: Tensor

    @property
    def _cells(self) -> tuple[Tensor, Tensor, Tensor]:
        """The mixture in units of cells, float64: there the grid is the whole numbers."""
        y, step, offset = self.mixture, self.step.unsqueeze(-1), self.offset.unsqueeze(-1)
        return y.log_weights.double(), (y.centers.double() - offset) / step, y.scales.double() / step

    @property
    def _dtype(self) -> torch.dtype:
        return self.mixture.centers.dtype

    def _cell_of(self, x: Tensor) -> Tensor:
        return (x.double() - self.offset) / self.step

    def _value_of(self, cell: Tensor) -> Tensor:
        return (self.offset + self.step * cell).to(self._dtype)

    def log_prob(self, x: Tensor) -> Tensor:
        """log P(x - step/2 < Y <= x + step/2), (B, N): the log-mass of x for x on the grid."""
        cell = self._cell_of(torch.where(x.isfinite(), x, 0.0))
        return where_finite(x, cell_log_mass(*self._cells, cell).to(self._dtype))

    def cdf(self, x: Tensor) -> Tensor:
        """P(X <= x), (B, N), for x on the grid (between grid values: P(Y <= x + step/2), which joins them smoothly)."""
        return mixture_cdf(*self._cells, self._cell_of(x) + 0.5).to(self._dtype)

    @torch.no_grad()
    def sample(self, *, generator: Source, temperature: float = 1.0) -> Tensor:
        """One draw per variable, (B, N), on the grid: Y at that temperature, rounded. T = 0 is the mode."""
        require_temperature(temperature)
        if temperature == 0.0:
            return self.mode()
        drawn = GaussianMixtureMarginals(*self._cells).sample(generator=generator, temperature=temperature)
        return self._value_of(drawn.round())

    @torch.no_grad()
    def mode(self) -> Tensor:
        """The grid value of most mass, (B, N)."""
        cells = self._cells
        return self._value_of(in_chunks(cell_mode, cells, mode_cost(cells[0].shape[-1])))

    def mean(self) -> Tensor:
        """E[X], (B, N): what the masses average to, at most step/2 from the mean of Y, and equal to it for wide Y."""
        cells = self._cells
        return self._value_of(in_chunks(cell_mean, cells, 8 * cells[0].shape[-1]))

    @torch.no_grad()
    def quantile(self, q: float) -> Tensor:
        """The smallest grid value v with P(X <= v) >= q, (B, N); -inf at q = 0 and inf at q = 1.

        A mass that misses q by no more than rounding (32 units of the parameters' precision, relative to the smaller of
        q and 1 - q) counts as reaching it, as for codes: the median of two equal spikes is the lower on every device.
        """
        require_level(q)
        if q in (0.0, 1.0):
            return torch.full_like(self.mixture.centers[..., 0], standard_quantile(q))
        slack = _ROUNDING * torch.finfo(self._dtype).eps

        def at_q(log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
            return cell_quantile(log_weights, means, scales, q, slack)

        cells = self._cells
        return self._value_of(in_chunks(at_q, cells, 4 * cells[0].shape[-1]))

    def entropy(self) -> Tensor:
        """-sum_v P(v) log P(v) in nats, (B, N): absolute error below 2e-6 before rounding."""
        cells = self._cells
        return in_chunks(cell_entropy, cells, 2 * entropy_cost(cells[0].shape[-1])).to(self._dtype)

    def pooled(self, log_weights: Tensor) -> "GridMixtureMarginals":
        """The mixture of members (M, B, N) on the same grid, with log-weights (M, B, N)."""
        return GridMixtureMarginals(self.mixture.pooled(log_weights), self.step, self.offset)
