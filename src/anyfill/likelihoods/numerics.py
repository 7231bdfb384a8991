"""What every likelihood shares: argument checks, safe precision, and noise in float64.

Noise is drawn in float64 because float32 noise is too coarse: it never reaches far into the tails, which acts like a
temperature below 1. It is drawn on the generator's device and moved, so a CPU generator serves every device. Whoever
needs noise that belongs to each row alone passes a ``Noise`` in place of the generator (``anyfill.samplers.rowwise``).
"""

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse


class Noise(Protocol):
    """A source of noise other than a torch generator."""

    def uniform(self, shape: Sequence[int], device: torch.device) -> Tensor:
        """float64 noise in [0, 1) of a shape, on ``device``; each call gives new numbers."""
        ...


Source = Generator | Noise
"""Where noise comes from."""

VANISHED = 80.0
"""e^-80 is nothing beside 1, and still a normal number in float32."""


def require_temperature(value: float) -> None:
    """Refuse a temperature that is negative, infinite or NaN."""
    if isinstance(value, bool) or not 0.0 <= value < math.inf:
        raise refuse("temperature", expected="a finite number of at least 0 (0 = the mode)", got=repr(value))


def require_level(q: float) -> None:
    """Refuse a quantile level outside [0, 1]."""
    if isinstance(q, bool) or not 0.0 <= q <= 1.0:
        raise refuse("quantile level q", expected="a number from 0 to 1", got=repr(q))


def read_params(params: Tensor, width: int, name: str) -> Tensor:
    """The network output (..., P) in float32 or better; ValueError unless P is ``width``."""
    if params.dim() == 0 or params.shape[-1] != width:
        raise refuse(f"parameters of {name}", expected=f"a last dimension of {width}", got=tuple(params.shape))
    return params.to(torch.promote_types(params.dtype, torch.float32))


def where_finite(x: Tensor, value: Tensor) -> Tensor:
    """``value``, but NaN where x is NaN and -inf where x is infinite."""
    return torch.where(x.isfinite(), value, torch.where(x.isnan(), torch.nan, -torch.inf).to(value.dtype))


def log_sum(logs: Tensor) -> Tensor:
    """log sum_k exp(logs_k) over the last dimension, (..., K) -> (..., 1); one logs_k at least must be finite.

    ``torch.logsumexp``, but for terms below e^-80 of the largest, which count as that and pass no gradient: exp is many
    times slower where it underflows, and beside a spike most terms do.
    """
    top = logs.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(logs.dtype).min)
    return top + (logs - top).clamp(min=-VANISHED).exp().sum(-1, keepdim=True).log()


def log_mean(logs: Tensor, log_weights: Tensor) -> Tensor:
    """log sum_m w_m exp(logs_m) over the first dimension; -inf, without gradient, where every member says -inf."""
    logs = logs + log_weights
    never = torch.isneginf(logs).all(0)
    return torch.where(never, -torch.inf, torch.where(never, 0.0, logs).logsumexp(0))


def uniform(shape: Sequence[int], *, generator: Source, device: torch.device) -> Tensor:
    """float64 noise in [0, 1) of a shape, on ``device``."""
    if not isinstance(generator, Generator):
        return generator.uniform(shape, device)
    return torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64).to(device)


def normal(shape: Sequence[int], *, generator: Source, device: torch.device) -> Tensor:
    """float64 standard normal noise of a shape, on ``device``."""
    if not isinstance(generator, Generator):  # the middle of each of 2^53 equal parts of (0, 1), through the quantile
        return torch.special.ndtri((generator.uniform(shape, device) + 2.0**-54).clamp(max=1 - 2.0**-53))
    return torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float64).to(device)
