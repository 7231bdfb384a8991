"""What every likelihood shares: argument checks, safe precision, and noise in float64.

Noise is drawn in float64 because float32 noise is too coarse: it never reaches far into the tails, which acts like a
temperature below 1. It is drawn on the generator's device and moved, so a CPU generator serves every device.
"""

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse


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


def uniform(shape: Sequence[int], *, generator: Generator, device: torch.device) -> Tensor:
    """float64 noise in [0, 1) of a shape, on ``device``."""
    return torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64).to(device)


def normal(shape: Sequence[int], *, generator: Generator, device: torch.device) -> Tensor:
    """float64 standard normal noise of a shape, on ``device``."""
    return torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float64).to(device)
