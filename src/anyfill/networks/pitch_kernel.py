"""Kernels as tall as the range of pitches, multiplied out cheaply.

A kernel (S, R) over (time, pitch) has a weight for every offset in time and every interval:

    out[o, t, p] = sum_{c, s, r}  w[o, c, s, r] · x[c, t + s, p + r - (R - 1) // 2],       0 outside the image

With R as large as the P pitches a convolution spends P R products on every pair of channels and offset. Along pitch the
sum is a correlation, which the discrete Fourier transform of length L turns into products,

    X(f) = sum_p x[p] e^{-2πi f p / L},     G(f) = sum_r w[r] e^{2πi f (r - (R - 1) // 2) / L},     Y(f) = X(f) G(f)

and which is exact, not circular, once L >= P + R // 2: what wraps round meets zeros. Values are real, so half of the
frequencies tell the others: with L odd the (L + 1) / 2 first. Per pair of channels and offset that leaves 2 L real
products instead of P R (P = R = 58: 174 instead of 3,364), all of them in matrix products:

    x (P, rows, C)  --transform (2F, P)-->  X (F; rows, S 2C)  --G (F; S 2C, 2O)-->  Y  --back (P, 2F)-->  (P, rows, O)

Rows are pairs of example and time; pitch lies outermost in memory, so that every step is one product of large matrices.
(One matrix over all pairs of pitches, as many products as sliding but in large matrices, was slower on an H200: 17
steps of training a second against 27, 104 ms a round of sampling 200 rows against 84, width 16.)
"""

import math
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.networks.unet_parts import Kernel, Sides

Product = Literal["fourier", "slide"]


class Transform(nn.Module):
    """The transform of ``pitches`` places along pitch, and of kernels of ``reach`` intervals; one serves all kernels.

    Attributes:
        there: (P, 2F), real parts, then imaginary ones.
        back: (P, 2F), likewise.
        response: (R', 2F), of kernels, R' = R rounded up to a multiple of 8, whose last rows are 0.
    """

    there: Tensor
    back: Tensor
    response: Tensor

    def __init__(self, pitches: int, reach: int) -> None:
        super().__init__()
        length = pitches + reach // 2
        length += 1 - length % 2
        frequency = 2 * math.pi / length * torch.arange((length + 1) // 2, dtype=torch.float64)
        angle = torch.arange(pitches, dtype=torch.float64).outer(frequency)
        twice = torch.full((len(frequency),), 2.0 / length, dtype=torch.float64)
        twice[0] = 1.0 / length
        interval = (torch.arange(reach, dtype=torch.float64) - (reach - 1) // 2).outer(frequency)
        response = functional.pad(torch.cat([interval.cos(), interval.sin()], 1), (0, 0, 0, -reach % 8))
        self.register_buffer("there", torch.cat([angle.cos(), -angle.sin()], 1).float(), persistent=False)
        self.register_buffer(
            "back", torch.cat([twice * angle.cos(), -twice * angle.sin()], 1).float(), persistent=False
        )
        self.register_buffer("response", response.float(), persistent=False)


class PitchKernel(Kernel):
    """``Kernel`` over (time, pitch), the same function and weights, by transforms along pitch.

    Args:
        channels, out, sides, zero: as for ``Kernel``.
        transform: of the image's pitches and this reach.
        product: "fourier", or "slide", a plain convolution.
    """

    def __init__(
        self,
        channels: int,
        out: int,
        sides: Sides,
        *,
        transform: Transform,
        zero: bool = False,
        product: Product = "fourier",
    ) -> None:
        super().__init__(channels, out, sides, zero=zero)
        self.transform, self.product = transform, product

    def forward(self, h: Tensor) -> Tensor:
        if self.product == "slide":
            return super().forward(h)
        x = functional.pad(h.permute(3, 0, 2, 1), (0, 0, *self.pad[2:]))  # (P, B, T + S - 1, C)
        weight, bias = self.inner.weight, cast(Tensor, self.inner.bias)
        found = by_fourier(x, weight, self.transform)
        return (found + bias.to(found.dtype)).permute(1, 3, 2, 0)


class Point(nn.Conv2d):
    """A 1x1 kernel as a product over channels, whatever the layout."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__(channels, out, 1)

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input.permute(3, 0, 2, 1), self.weight.flatten(1), self.bias).permute(1, 3, 2, 0)


def by_fourier(x: Tensor, weight: Tensor, transform: Transform) -> Tensor:
    """(P, B, T, out) from x (P, B, T + S - 1, C) and a kernel (out, C, S, R); see above."""
    pitches, rows, span, channels = x.shape
    out, _, sides, reach = weight.shape
    half = transform.there.shape[1] // 2
    steps = span - sides + 1
    spectrum = transform.there.T @ x.flatten(1)  # (2F, B (T + S - 1) C)
    parts = spectrum.unflatten(0, (2, half)).unflatten(2, (rows, span, channels))
    shifted = torch.stack([parts[:, :, :, s : s + steps] for s in range(sides)], 0)  # (S, 2, F, B, T, C)
    shifted = shifted.permute(2, 3, 4, 0, 1, 5).reshape(half, rows * steps, sides * 2 * channels)
    kernel = functional.pad(weight, (0, len(transform.response) - reach))
    answers = (transform.response.T @ kernel.flatten(0, 2).T).view(2, half, out, channels, sides)
    real, imaginary = answers.unbind(0)
    # [X_re X_im] -> [Y_re Y_im]: rows (S, 2, C), columns (2, O)
    mixing = torch.stack([torch.stack([real, imaginary], 1), torch.stack([-imaginary, real], 1)], 1)
    mixing = mixing.permute(0, 5, 1, 4, 2, 3).reshape(half, sides * 2 * channels, 2 * out)
    answer = torch.bmm(shifted, mixing)  # (F, B T, 2 O)
    answer = answer.unflatten(2, (2, out)).permute(2, 0, 1, 3).reshape(2 * half, rows * steps * out)
    return (transform.back @ answer).view(pitches, rows, steps, out)
