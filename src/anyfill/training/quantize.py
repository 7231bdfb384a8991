"""Weights in 8 bits, a scale for each row: a quarter of the size, at a loss that is stated where it is used.

A matrix W (rows, columns) is kept as whole numbers q from -127 to 127 and one scale per row,

    s_i = max_j |W_ij| / 127,      q_ij = round(W_ij / s_i),      W'_ij = s_i q_ij,

so |W_ij - W'_ij| <= s_i / 2. Tensors of more dimensions are read as rows of all but the first; vectors (norms, biases)
and whatever is not floating point stay as they are. What is loaded is W', bit for bit as ``dequantized`` gives it: a
model of 8 bits answers exactly as the one with these 32-bit weights.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from anyfill.checks import refuse

SCALE = "#scale"
"""The name of a matrix's scales is that of the matrix with this behind it."""
_TOP = 127


def quantized(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every floating-point matrix as int8 and its scales, float32 (rows,); ValueError if one is not finite."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or tensor.dim() < 2:
            found[name] = tensor
            continue
        rows = tensor.detach().float().flatten(1)
        if not bool(rows.isfinite().all()):
            raise refuse(f"weights {name}", expected="finite numbers", got="others")
        scale = rows.abs().amax(1) / _TOP
        safe = torch.where(scale > 0, scale, torch.ones_like(scale))
        found[name] = (rows / safe.unsqueeze(1)).round().to(torch.int8).view(tensor.shape)
        found[name + SCALE] = scale
    return found


def dequantized(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The matrices in float32 again; tensors without scales as they are."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.endswith(SCALE):
            continue
        scale = tensors.get(name + SCALE)
        if scale is not None:
            found[name] = tensor.float() * scale.float().view(-1, *[1] * (tensor.dim() - 1))
        else:
            found[name] = tensor
    return found
