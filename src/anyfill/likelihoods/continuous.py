"""Real-valued variables: a Gaussian, or a mixture of K Gaussians.

A raw parameter a becomes a scale by

    s = min_scale + softplus(a + log(e - 1))

so a = 0 is about 1 (data are standardised), log s grows like a for small scales (steps are relative, as with
exp) and s like a for large ones (no explosion, unlike exp). ``min_scale`` bounds the density: without it a mixture
earns unbounded likelihood by standing on a repeated value.

    Gaussian         p(x) = N(x; m, s)                  entropy log s + log(2 pi e)/2
    GaussianMixture  p(x) = sum_k w_k N(x; m_k, s_k)    w = softmax(logits), m_k = parameter + normal quantile (k+1/2)/K

The fixed spread of the component means lets components part ways even under a network whose last layer starts at zero.

Temperature T draws a Gaussian with scale s sqrt(T), which is p^(1/T) renormalised. For a mixture p^(1/T) has no closed
form; T draws the component from w_k^(1/T) and then with scale s_k sqrt(T). As T falls to 0 that tends to the centre of
the *heaviest* component, while T = 0 itself is the mode, the point of highest density. NaN in x gives NaN there
(without gradient) and an infinite x gives -inf; the other variables are untouched.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from anyfill.checks import require_count, require_positive
from anyfill.likelihoods.discrete import sample_codes, tempered
from anyfill.likelihoods.marginals import (
    Likelihood,
    Source,
    log_mean,
    log_sum,
    normal,
    read_params,
    require_level,
    require_temperature,
    where_finite,
)
from anyfill.likelihoods.mixture import (
    LOG_SQRT_TWO_PI,
    component_log_probs,
    entropy_cost,
    in_chunks,
    mixture_cdf,
    mixture_entropy,
    mixture_mode,
    mixture_quantile,
    normal_cdf,
    standard_quantile,
)

_UNIT = math.log(math.e - 1)  # softplus(_UNIT) = 1


def scale_of(raw: Tensor, min_scale: float | Tensor) -> Tensor:
    """The scale a raw parameter stands for."""
    return min_scale + softplus(raw + _UNIT)


def raw_of(scale: Tensor, min_scale: float) -> Tensor:
    """The raw parameter of a scale; scales at or below ``min_scale`` are raised to it."""
    above = (scale - min_scale).clamp(min=1e-30)
    return above + torch.log(-torch.expm1(-above)) - _UNIT


def spread(components: int) -> tuple[float, ...]:
    """Where the means of K components stand before the network moves them."""
    return tuple(standard_quantile((k + 0.5) / components) for k in range(components))


@dataclass(frozen=True, slots=True, eq=False)
class GaussianMarginals:
    """N(center, scale) for each variable, both (B, N)."""

    center: Tensor
    scale: Tensor

    def log_prob(self, x: Tensor) -> Tensor:
        """log-density at x, (B, N)."""
        x = x.to(self.center.dtype)
        z = (torch.where(x.isfinite(), x, 0.0) - self.center) / self.scale
        return where_finite(x, -0.5 * z * z - self.scale.log() - LOG_SQRT_TWO_PI)

    def cdf(self, x: Tensor) -> Tensor:
        """P(X <= x), (B, N): uniform over the data if the model is calibrated."""
        return normal_cdf((x.to(self.center.dtype) - self.center) / self.scale)

    @torch.no_grad()
    def sample(self, *, generator: Source, temperature: float = 1.0) -> Tensor:
        """One draw per variable, (B, N), from N(center, scale sqrt(T))."""
        require_temperature(temperature)
        if temperature == 0.0:
            return self.mode()
        noise = normal(self.center.shape, generator=generator, device=self.center.device)
        return (self.center + math.sqrt(temperature) * self.scale * noise).to(self.center.dtype)

    def mode(self) -> Tensor:
        """(B, N)."""
        return self.center

    def mean(self) -> Tensor:
        """(B, N)."""
        return self.center

    def quantile(self, q: float) -> Tensor:
        """The point with P(X <= point) = q, (B, N)."""
        require_level(q)
        return self.center + self.scale * standard_quantile(q)

    def entropy(self) -> Tensor:
        """Differential entropy in nats, (B, N)."""
        return self.scale.log() + LOG_SQRT_TWO_PI + 0.5

    def pooled(self, log_weights: Tensor) -> "GaussianMixtureMarginals":
        """The mixture of members (M, B, N) with log-weights (M, B, N): one component each."""
        weights, centers, scales = (part.movedim(0, -1) for part in (log_weights, self.center, self.scale))
        return GaussianMixtureMarginals(weights, centers, scales)


@dataclass(frozen=True, slots=True, eq=False)
class GaussianMixtureMarginals:
    """A mixture for each variable: log-weights (normalised), centers and scales, all (B, N, K).

    The first ``shared`` components have a center and a scale that no parameter moves (spikes): members of a pool have
    them in common, so there they stay one component each.
    """

    log_weights: Tensor
    centers: Tensor
    scales: Tensor
    shared: int = 0

    @property
    def _mixture(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.log_weights, self.centers, self.scales

    def log_prob(self, x: Tensor) -> Tensor:
        """log-density at x, (B, N)."""
        x = x.to(self.centers.dtype)
        safe = torch.where(x.isfinite(), x, 0.0)
        return where_finite(x, log_sum(component_log_probs(*self._mixture, safe)).squeeze(-1))

    def cdf(self, x: Tensor) -> Tensor:
        """P(X <= x), (B, N): uniform over the data if the model is calibrated."""
        return mixture_cdf(*self._mixture, x.to(self.centers.dtype))

    @torch.no_grad()
    def sample(self, *, generator: Source, temperature: float = 1.0) -> Tensor:
        """One draw per variable, (B, N): a component from w^(1/T), then a normal with scale s sqrt(T)."""
        require_temperature(temperature)
        if temperature == 0.0:
            return self.mode()
        component = sample_codes(tempered(self.log_weights, temperature), generator=generator).unsqueeze(-1)
        center, scale = (part.gather(-1, component).squeeze(-1) for part in (self.centers, self.scales))
        noise = normal(center.shape, generator=generator, device=center.device)
        return (center + math.sqrt(temperature) * scale * noise).to(self.centers.dtype)

    @torch.no_grad()
    def mode(self) -> Tensor:
        """The point of highest density, (B, N)."""
        cost = self.centers.shape[-1] ** 2
        return in_chunks(mixture_mode, self._mixture, cost).to(self.centers.dtype)

    def mean(self) -> Tensor:
        """sum_k w_k m_k, (B, N)."""
        return (self.log_weights.exp() * self.centers).sum(-1)

    @torch.no_grad()
    def quantile(self, q: float) -> Tensor:
        """The point with P(X <= point) = q, (B, N)."""
        require_level(q)
        if q in (0.0, 1.0):
            return torch.full_like(self.centers[..., 0], standard_quantile(q))

        def at_q(log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
            return mixture_quantile(log_weights, means, scales, q)

        return in_chunks(at_q, self._mixture, self.centers.shape[-1]).to(self.centers.dtype)

    def entropy(self) -> Tensor:
        """Differential entropy in nats, (B, N), by quadrature: absolute error below 2e-6 before rounding."""
        cost = entropy_cost(self.centers.shape[-1])
        return in_chunks(mixture_entropy, self._mixture, cost).to(self.centers.dtype)

    def pooled(self, log_weights: Tensor) -> "GaussianMixtureMarginals":
        """The mixture of members (M, B, N) with log-weights (M, B, N): M times the components that are not shared."""
        same = self.shared

        def own(part: Tensor) -> Tensor:
            return part[..., same:].movedim(0, -2).flatten(-2)

        member = log_weights.unsqueeze(-1)
        return GaussianMixtureMarginals(
            torch.cat([log_mean(self.log_weights[..., :same], member), own(self.log_weights + member)], -1),
            torch.cat([self.centers[0, ..., :same], own(self.centers)], -1),
            torch.cat([self.scales[0, ..., :same], own(self.scales)], -1),
            same,
        )


@dataclass(frozen=True, slots=True)
class Gaussian(Likelihood):
    """Real values; two parameters, the mean and the raw scale."""

    min_scale: float = 1e-4

    def __post_init__(self) -> None:
        require_positive("Gaussian min_scale", self.min_scale)

    @property
    def width(self) -> int:
        return 2

    def __call__(self, params: Tensor) -> GaussianMarginals:
        """(B, N, 2) -> distributions."""
        center, raw = read_params(params, 2, "Gaussian").unbind(-1)
        return GaussianMarginals(center, scale_of(raw, self.min_scale))

    def params(self, mean: Tensor, scale: Tensor) -> Tensor:
        """The parameters (B, N, 2) that stand for a mean and a scale (B, N): the inverse of the call."""
        return torch.stack([mean, raw_of(scale, self.min_scale)], -1)


@dataclass(frozen=True, slots=True)
class UnitGaussian(Likelihood):
    """Real values; one parameter, the mean, with scale 1: minus its nats is half a squared error and a constant."""

    @property
    def width(self) -> int:
        return 1

    def __call__(self, params: Tensor) -> GaussianMarginals:
        """(B, N, 1) -> distributions."""
        center = read_params(params, 1, "UnitGaussian").squeeze(-1)
        return GaussianMarginals(center, torch.ones_like(center))


@dataclass(frozen=True, slots=True)
class GaussianMixture(Likelihood):
    """Real values; 3K parameters: K logits, K means (before the fixed spread), K raw scales.

    The floor of the scales is higher than a single Gaussian's: a spare component is free to stand on a repeated value.
    """

    components: int
    min_scale: float = 1e-3

    def __post_init__(self) -> None:
        require_count("GaussianMixture components", self.components)
        require_positive("GaussianMixture min_scale", self.min_scale)

    @property
    def width(self) -> int:
        return 3 * self.components

    def _spread(self, like: Tensor) -> Tensor:
        return like.new_tensor(spread(self.components))

    def __call__(self, params: Tensor) -> GaussianMixtureMarginals:
        """(B, N, 3K) -> distributions."""
        params = read_params(params, self.width, f"GaussianMixture({self.components})")
        logits, centers, raw = params.chunk(3, -1)
        return GaussianMixtureMarginals(
            logits.log_softmax(-1), centers + self._spread(params), scale_of(raw, self.min_scale)
        )

    def params(self, log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
        """The parameters (B, N, 3K) of log-weights, means and scales (B, N, K): the inverse of the call."""
        return torch.cat([log_weights, means - self._spread(means), raw_of(scales, self.min_scale)], -1)
