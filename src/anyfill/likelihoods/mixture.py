"""Numbers of a one-dimensional Gaussian mixture that have no closed form: mode, quantile, entropy.

Every function takes log-weights, means and scales (V, K) of V mixtures with K components, works in float64 without
host synchronisation, and returns (V,).

    mode      climb from every component mean by Newton steps on log p; where such a step would not go up, by mean shift
              x <- (sum r_k m_k/s_k^2) / (sum r_k/s_k^2), which never goes down (r_k: the share of component k at x).
              Of more than 32 components (a pool of networks) 32 climb, from the highest local tops of p at the means,
              and after three steps the best 8 of them.
    quantile  bisection between the smallest and the largest component quantile, then Newton steps inside the bracket.
    entropy   -∫ p log p by Gauss-Legendre between the sorted points m_k + s_k t. Each piece is short in the units of
              every component that matters there, so separated and nested scales cost no accuracy. Measured absolute
              error below 2e-6 for scales from e^-9 to e^9 (30 000 random mixtures of 1 to 10 components).
"""

import math
from collections.abc import Callable
from statistics import NormalDist

import torch
from torch import Tensor
from torch.nn import functional

from anyfill.likelihoods.marginals import VANISHED, log_sum

LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)

KNOTS = (-6.0, -4.5, -3.0, -1.5, 0.0, 1.5, 3.0, 4.5, 6.0)
# The five points and weights of Gauss-Legendre on [-1, 1].
_NEAR, _FAR = (math.sqrt(5 + sign * 2 * math.sqrt(10 / 7)) / 3 for sign in (-1, 1))
_NODES = (-_FAR, -_NEAR, 0.0, _NEAR, _FAR)
_HEAVY, _LIGHT = ((322 + sign * 13 * math.sqrt(70)) / 900 for sign in (1, -1))
_SHARES = (_LIGHT, _HEAVY, 128 / 225, _HEAVY, _LIGHT)

_STANDARD = NormalDist()
_CLIMBS = 10
_FEW = 32
_SCREENED = 3
_CLIMBERS = 8
_NEWTON = 6
_HALVINGS = 50
_CHUNK = 2**23  # float64 numbers held at once: 64 MiB


def component_log_probs(log_weights: Tensor, means: Tensor, scales: Tensor, x: Tensor) -> Tensor:
    """log w_k N(x; m_k, s_k), (..., K), at x (...)."""
    z = (x.unsqueeze(-1) - means) / scales
    return log_weights - scales.log() - LOG_SQRT_TWO_PI - 0.5 * z * z


def normal_cdf(z: Tensor) -> Tensor:
    """P(Z <= z) of a standard normal variable, accurate in the lower tail."""
    return 0.5 * torch.erfc(-z * math.sqrt(0.5))


def mixture_cdf(log_weights: Tensor, means: Tensor, scales: Tensor, x: Tensor) -> Tensor:
    """P(X <= x), (...)."""
    return (log_weights.exp() * normal_cdf((x.unsqueeze(-1) - means) / scales)).sum(-1)


def in_chunks(
    function: Callable[[Tensor, Tensor, Tensor], Tensor], mixture: tuple[Tensor, Tensor, Tensor], cost: int
) -> Tensor:
    """``function`` of mixtures (..., K) -> (...), a bounded number of them at a time; each needs ``cost`` numbers."""
    shape, components = mixture[0].shape[:-1], mixture[0].shape[-1]
    flat = [part.reshape(-1, components) for part in mixture]
    count, size = flat[0].shape[0], max(1, _CHUNK // cost)
    answers = [function(*(part[i : i + size].double() for part in flat)) for i in range(0, max(count, 1), size)]
    return torch.cat(answers).reshape(shape)


def beside(log_weights: Tensor, means: Tensor, scales: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each (V, K) as (V, 1, K): ready for several points of each mixture."""
    return log_weights.unsqueeze(-2), means.unsqueeze(-2), scales.unsqueeze(-2)


def starts(log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    """Where to climb from, (V, S): the means; of more than 32, the 32 densest, local tops of p at the means first."""
    if means.shape[-1] <= _FEW:
        return means
    x = means.sort(-1).values
    height = log_sum(component_log_probs(*beside(log_weights, means, scales), x)).squeeze(-1)
    walled = functional.pad(height, (1, 1), value=-math.inf)
    top = (height >= walled[..., :-2]) & (height >= walled[..., 2:])
    return x.gather(-1, torch.where(top, height, height - 1e9).topk(_FEW).indices)


def climb(log_weights: Tensor, means: Tensor, scales: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Tops of the density that starts x (V, S) lead to, and their log-densities, (V, S), or the best 8 of many."""
    mixture = beside(log_weights, means, scales)
    precision = scales.pow(-2).unsqueeze(-2)
    here = component_log_probs(*mixture, x)
    height = log_sum(here)
    for step in range(_CLIMBS):
        if step == _SCREENED and means.shape[-1] > _FEW:
            best = height.squeeze(-1).topk(_CLIMBERS).indices
            x, height = x.gather(-1, best), height.gather(-2, best.unsqueeze(-1))
            here = component_log_probs(*mixture, x)
        behind = (here - height).clamp(min=-VANISHED)
        share = torch.where(behind > -VANISHED, behind.exp(), 0.0)
        pull = (mixture[1] - x.unsqueeze(-1)) * precision
        slope = (share * pull).sum(-1)
        bend = (share * precision).sum(-1)
        curvature = (share * pull * pull).sum(-1) - bend - slope * slope
        newton = x - slope / curvature
        up = log_sum(component_log_probs(*mixture, newton)) > height
        x = torch.where(up.squeeze(-1) & (curvature < 0), newton, x + slope / bend)  # x + slope / bend: the mean shift
        here = component_log_probs(*mixture, x)
        height = log_sum(here)
    return x, height.squeeze(-1)


def mixture_mode(log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    """The point of highest density, (V,)."""
    tops, heights = climb(log_weights, means, scales, starts(log_weights, means, scales))
    return tops.gather(-1, heights.argmax(-1, keepdim=True)).squeeze(-1)


def mixture_quantile(log_weights: Tensor, means: Tensor, scales: Tensor, q: float) -> Tensor:
    """The point with P(X <= point) = q, (V,), for 0 < q < 1."""
    if q > 0.5:  # 1 - q is exact here, and the lower tail of the mirrored mixture keeps its digits
        return -mixture_quantile(log_weights, -means, scales, 1.0 - q)
    ends = means + scales * standard_quantile(q)
    low, high = ends.amin(-1), ends.amax(-1)
    x = (low + high) / 2
    for halving in range(_HALVINGS + _NEWTON):
        excess = mixture_cdf(log_weights, means, scales, x) - q
        low, high = torch.where(excess < 0, x, low), torch.where(excess < 0, high, x)
        middle = (low + high) / 2
        if halving < _HALVINGS:
            x = middle
        else:
            density = component_log_probs(log_weights, means, scales, x).logsumexp(-1).exp()
            step = x - excess / density
            x = torch.where((step >= low) & (step <= high), step, middle)  # also where the density vanished (NaN, inf)
    return x


def standard_quantile(q: float) -> float:
    """The q-quantile of the standard normal distribution (-inf at 0, inf at 1)."""
    return _STANDARD.inv_cdf(q) if 0.0 < q < 1.0 else math.copysign(math.inf, q - 0.5)


def mixture_entropy(log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    """Differential entropy in nats, (V,); differentiable in all three arguments."""
    with torch.no_grad():  # where we look is not part of the function
        knots = means.unsqueeze(-1) + scales.unsqueeze(-1) * means.new_tensor(KNOTS)
        knots = knots.flatten(-2).sort(-1).values
        half = knots.diff(dim=-1).unsqueeze(-1) / 2
        x = (knots[..., :-1].unsqueeze(-1) + half * (1 + means.new_tensor(_NODES))).flatten(-2)
        weight = (half * means.new_tensor(_SHARES)).flatten(-2)
    log_p = component_log_probs(*beside(log_weights, means, scales), x).logsumexp(-1)
    return -(weight * log_p.exp() * log_p).sum(-1)


def entropy_cost(components: int) -> int:
    """How many numbers ``mixture_entropy`` holds for one mixture."""
    return len(KNOTS) * len(_NODES) * components**2
