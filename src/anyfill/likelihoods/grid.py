"""Real values that lie on a grid, offset + step Z: whole numbers, prices, anything that was rounded.

The model is a mixture of Gaussians for a hidden Y, and X is the grid value nearest to Y:

    P(X = v) = P(v - step/2 < Y <= v + step/2),

so log-probabilities are of *masses*: they sum to one over the grid, no component earns more than log 1 by standing on a
value, and log P(X = v) - log step tends to Y's log-density at v as the step falls to 0.

**Cells.** In units of its step any grid becomes the whole numbers, X = round(Y):

    P(X = i) = sum_k w_k [Phi((i + 1/2 - m_k) / s_k) - Phi((i - 1/2 - m_k) / s_k)]

Where nothing else is said a function of cells takes log-weights, means and scales (V, K) of V mixtures with K
components in float64, makes no host wait, and returns (V,).

    log mass  of [z - h, z + h] under a standard normal, z <= 0 by symmetry. With erfcx(t) = exp(t^2) erfc(t),

                  Phi(z + h) - Phi(z - h) = exp(-(z + h)^2/2) / 2 [erfcx((-z - h)/√2) - e^{-2|z|h} erfcx((-z + h)/√2)]

              where nothing under- or overflows however far out, and the ratios phi(z ± h) / mass that its slopes are
              made of come from the same bracket. A half-width h below 1e-5, where the bracket would cancel, counts as
              1e-5 and the mass is scaled down. The log mass and its slopes in z and log s are then within 1e-9,
              relative to themselves or to 1.
    mean      sum_k w_k E[round(Y_k)]. E[round(Y_k)] - m_k is a sum over the nearest edges for s_k < 1/2, and the
              Fourier series sum_n (-1)^n sin(2 pi n m_k) exp(-2 pi^2 n^2 s_k^2) / (pi n) beyond; both to 1e-16.
    mode      the cells around the tops of the mixture with scales sqrt(s^2 + 1/12) (what a cell's mass looks like as a
              function of its place) and around the means, compared by their true masses.
    entropy   -sum_i P_i log P_i, cells between the points m_k + s_k t rounded outwards to edges. A piece of at most 5
              cells is summed; one of n > 5 by the 5-point Gauss rule *of the sum* over n whole numbers (discrete
              Chebyshev polynomials: exact up to degree 9, and every cell itself at n = 5). Error as in ``mixture``.

Temperature T acts as in ``anyfill.likelihoods.continuous``: the component from w^(1/T), the value with scale s sqrt(T),
and then the grid.
"""

import math
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from anyfill.likelihoods.continuous import GaussianMixtureMarginals
from anyfill.likelihoods.marginals import (
    VANISHED,
    Source,
    require_level,
    require_temperature,
    where_finite,
)
from anyfill.likelihoods.mixture import (
    KNOTS,
    beside,
    climb,
    entropy_cost,
    in_chunks,
    mixture_cdf,
    mixture_quantile,
    standard_quantile,
    starts,
)

_ROUNDING = 32  # units of the parameters' precision by which a sum of weights may miss a level and still reach it
_NARROW = 1e-5  # half-width in scales
_BEYOND = 8.0  # an end further out on the other side holds back less than the precision of 1
_EDGES = 5  # from each side of the nearest cell; the next lies 10 scales away
_NEAR = (-1.0, 0.0, 1.0)
_ROOT_HALF = math.sqrt(0.5)


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


def log_cell(z: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log P(z - h < Z <= z + h) of a standard normal Z, elementwise, and its slopes in z and h; float64, h > 0."""
    away, half = z.abs(), h.clamp(min=_NARROW)
    decay = torch.exp(-2 * (away * half).clamp(max=VANISHED / 2))  # phi(far end) / phi(near end)
    near = (half - away).clamp(max=_BEYOND)
    bracket = torch.special.erfcx(-near * _ROOT_HALF) - decay * torch.special.erfcx((away + half) * _ROOT_HALF)
    value = (0.5 * (h / half) * bracket).log() - 0.5 * near * near
    ratio = math.sqrt(2 / math.pi) / bracket  # phi(near end) / mass
    return value, -z.sign() * ratio * (1 - decay), ratio * (1 + decay) * (half / h)


class _CellLogMass(torch.autograd.Function):
    """``cell_log_mass``, all four arguments (..., K), with slopes that are known better than autograd finds them."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> Tensor:
        log_weights, means, scales, x = args
        z, h = (x - means) / scales, 0.5 / scales
        log_mass, by_z, by_h = log_cell(z, h)
        joint = log_weights + log_mass
        top = joint.amax(-1, keepdim=True)
        share = (joint - top).clamp(min=-VANISHED).exp()
        total = share.sum(-1, keepdim=True)
        if any(ctx.needs_input_grad):
            share = share / total
            by_x = share * by_z / scales
            ctx.save_for_backward(share, -by_x, -by_x * z - share * by_h * h / scales, by_x)
        return (top + total.log()).squeeze(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        slopes = cast("tuple[Tensor, ...]", ctx.saved_tensors)
        return tuple(grad_outputs[0].unsqueeze(-1) * slope for slope in slopes)


def cell_log_mass(log_weights: Tensor, means: Tensor, scales: Tensor, x: Tensor) -> Tensor:
    """log P(x - 1/2 < Y <= x + 1/2), (...), of mixtures (..., K) at x (...), whole or not; differentiable once."""
    return cast(Tensor, _CellLogMass.apply(*torch.broadcast_tensors(log_weights, means, scales, x.unsqueeze(-1))))


def cell_mean(log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    """E[X], (V,)."""
    near = means.detach().round()
    off = means - near
    narrow = scales < 0.5
    tight, wide = torch.where(narrow, scales, 0.5), torch.where(narrow, 1.0, scales)
    steps = torch.zeros_like(means)
    for edge in range(_EDGES):
        above, below = ((edge + 0.5 - side) / tight * _ROOT_HALF for side in (off, -off))
        steps = steps + 0.5 * (torch.erfc(above) - torch.erfc(below))
    wave = torch.zeros_like(means)
    for n in (1, 2):
        damping = torch.exp(-2 * (math.pi * n * wide) ** 2)
        wave = wave + (-1) ** n / (math.pi * n) * torch.sin(2 * math.pi * n * off) * damping
    return (log_weights.exp() * torch.where(narrow, near + steps, means + wave)).sum(-1)


def cell_quantile(log_weights: Tensor, means: Tensor, scales: Tensor, q: float, slack: float) -> Tensor:
    """The smallest whole i with P(X <= i) >= q, (V,), for 0 < q < 1.

    ``slack`` is the relative precision of the weights: a mass that misses q by that share of q and 1 - q reaches it.
    """
    level = q - slack * min(q, 1.0 - q)
    i = (mixture_quantile(log_weights, means, scales, level) - 0.5).ceil()
    below, here = (mixture_cdf(log_weights, means, scales, i + side) for side in (-0.5, 0.5))
    return torch.where(below >= level, i - 1, torch.where(here < level, i + 1, i))


def cell_mode(log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    """The whole number of most mass, (V,)."""
    smooth = (log_weights, means, (scales * scales + 1 / 12).sqrt())
    begin = starts(*smooth)
    places = torch.cat([climb(*smooth, begin)[0], begin], -1)
    cells = (places.round().unsqueeze(-1) + means.new_tensor(_NEAR)).flatten(-2)
    mass = cell_log_mass(*beside(log_weights, means, scales), cells)
    return cells.gather(-1, mass.argmax(-1, keepdim=True)).squeeze(-1)


def mode_cost(components: int) -> int:
    """How many numbers ``cell_mode`` holds for one mixture."""
    return 2 * components * max(components, len(_NEAR) * min(components, 32))


def cell_entropy(log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    """-sum_i P_i log P_i in nats, (V,); differentiable in all three arguments."""
    with torch.no_grad():  # where we look is not part of the function
        steps = means.new_tensor(KNOTS)
        knots = means.unsqueeze(-1) + scales.unsqueeze(-1) * steps
        edges = torch.where(steps <= 0, (knots + 0.5).floor() - 0.5, (knots - 0.5).ceil() + 0.5)
        edges = edges.flatten(-2).sort(-1).values
        count = edges.diff(dim=-1)
        place, weight = _gauss_of_sum(count)
        x = ((edges[..., :-1] + edges[..., 1:]).unsqueeze(-1) / 2 + place).flatten(-2)
        weight = weight.flatten(-2)
    log_p = cell_log_mass(*beside(log_weights, means, scales), x)
    return -(weight * log_p.exp() * log_p).sum(-1)


def _gauss_of_sum(n: Tensor) -> tuple[Tensor, Tensor]:
    """Points and weights (..., 5) that sum a function over n (...) whole numbers in a row, counted from their middle.

    Exact for n <= 5; for more, the 5-point Gauss rule: the roots of x^5 - a x^3 + b x, where b_j = j^2 (n^2 - j^2) /
    (4 (4 j^2 - 1)) are the recurrence coefficients of the discrete Chebyshev polynomials, a = b_1 + … + b_4 and
    b = b_1 b_3 + b_1 b_4 + b_2 b_4; its weights match the sums of 1, x^2 and x^4.
    """
    many = n.clamp(min=5.0)
    square = many * many
    b1, b2, b3, b4 = (j * j * (square - j * j) / (4 * (4 * j * j - 1)) for j in range(1, 5))
    a, b = b1 + b2 + b3 + b4, b1 * b3 + b1 * b4 + b2 * b4
    root = (a * a - 4 * b).sqrt()
    near, far = 2 * b / (a + root), (a + root) / 2  # squares of the points
    second, fourth = many * (square - 1) / 12, many * (square - 1) * (3 * square - 7) / 240
    light = (fourth - near * second) / (2 * far * (far - near))
    heavy = (far * second - fourth) / (2 * near * (far - near))
    points = torch.stack([-far.sqrt(), -near.sqrt(), torch.zeros_like(n), near.sqrt(), far.sqrt()], -1)
    weights = torch.stack([light, heavy, many - 2 * (light + heavy), heavy, light], -1)
    one_by_one = torch.arange(5, dtype=n.dtype, device=n.device)
    few = n.unsqueeze(-1) <= 5
    points = torch.where(few, one_by_one - (n.unsqueeze(-1) - 1) / 2, points)
    return points, torch.where(few, (one_by_one < n.unsqueeze(-1)).to(n.dtype), weights)
