"""Told shifts: pictures to train on at every place that their blank margin allows, the network being told which.

Jun et al. (2020, Distribution Augmentation): a network that is told t learns p(t(x) | t) of changed pictures t(x)
beside p(x | nothing changed), shares what it learns between them, and learns no single picture by heart. Told
"nothing", it is a model of the pictures as they are; shifted untold, they would cost it the mass of all shifts.

A shift (dy, dx) moves all of a picture, at most ``reach`` pixels along each axis, and is cut to the picture's own blank
margin: nothing is lost, what wraps around is blank. As a rotation of rows and columns it is a bijection of all
pictures, so x -> p(shift(x) | told it) sums to one, too, whichever shift.

The network is told each axis as a one-hot vector of 2 reach + 1, at the head of the context:

    context = (dy == -reach, …, dy == reach, dx == -reach, …, dx == reach)

Nothing is drawn: row n stands for picture n mod R in the copy n div R, one copy for each shift and as many more at rest
as its share wants, so an epoch has every picture at every place once, in the order that training draws.
"""

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.rows import Rows


def shifted(x: Tensor, by: Tensor, shape: tuple[int, ...]) -> Tensor:
    """(B, N): pictures x (B, N) of this shape, (H, W) or (H, W, C), moved by (B, 2) pixels down and right, around."""
    height, width, channels = (*shape, 1)[:3]
    row = (torch.arange(height, device=x.device) - by[:, :1]) % height
    column = (torch.arange(width, device=x.device) - by[:, 1:]) % width
    pixel = (row.unsqueeze(2) * width + column.unsqueeze(1)).flatten(1)
    values = pixel.unsqueeze(-1) * channels + torch.arange(channels, device=x.device)
    return x.gather(1, values.flatten(1))


def told_shift(by: Tensor, reach: int) -> Tensor:
    """float32 (B, 2 (2 reach + 1)): what the network is told of shifts (B, 2)."""
    each = torch.arange(-reach, reach + 1, device=by.device)
    return (by.unsqueeze(-1) == each).flatten(1).float()


def told_width(reach: int) -> int:
    """How long the context is that tells a shift."""
    return 2 * (2 * reach + 1)


def margins(x: Tensor, shape: tuple[int, ...], blank: int = 0) -> tuple[Tensor, Tensor]:
    """int64 (B, 2) each: how far pictures (B, N) can move up and left, and down and right; a blank one anywhere."""
    height, width, channels = (*shape, 1)[:3]
    ink = (x != blank).view(-1, height, width, channels).any(3)
    before: list[Tensor] = []
    after: list[Tensor] = []
    for axis, side in ((2, height), (1, width)):
        line = ink.any(axis)
        place = torch.arange(side, device=x.device)
        before.append(torch.where(line, place, side).amin(1))
        after.append(side - 1 - torch.where(line, place, -1).amax(1))
    return torch.stack(before, 1), torch.stack(after, 1)


class ShiftedRows:
    """Pictures as rows, shifted and told so, a source to train on (``RowSource``).

    Args:
        rows: whole pictures of codes, without a context, on the device where they are to be shifted.
        shape: (H, W) or (H, W, C).
        reach: the farthest shift along an axis, in pixels.
        still: about what share of the rows is not shifted, besides those that cannot be.
        blank: the code of a blank pixel.
    """

    def __init__(
        self, rows: Rows, shape: tuple[int, ...], reach: int = 2, *, still: float = 1 / 3, blank: int = 0
    ) -> None:
        height, width, channels = (*shape, 1)[:3]
        require_count("reach", reach, maximum=min(height, width) - 1)
        if rows.variables != height * width * channels:
            raise refuse("rows", expected=f"{height * width * channels} variables, as {shape} has", got=rows.variables)
        if rows.context is not None or not bool(rows.present.all()):
            raise refuse("rows", expected="whole pictures without a context", got="others")
        places = (2 * reach + 1) ** 2
        if not 1 / places <= still <= 1.0:
            raise refuse("still", expected=f"a share from 1/{places}, one shift of all, to 1", got=still)
        self.rows, self.shape, self.reach, self.still = rows, shape, reach, still
        line = torch.arange(-reach, reach + 1, device=rows.x.device)
        shifts = torch.cartesian_prod(line, line)
        resting = shifts.new_zeros(1 if still == 1.0 else round((still * places - 1) / (1 - still)), 2)
        self._copies = resting if still == 1.0 else torch.cat([shifts, resting])
        self._up, self._down = margins(rows.x, shape, blank)

    def __len__(self) -> int:
        """Pictures times copies."""
        return len(self.rows) * len(self._copies)

    @property
    def variables(self) -> int:
        """N, all channels of all pixels."""
        return self.rows.variables

    @property
    def context_width(self) -> int:
        """What a network needs to be told a shift."""
        return told_width(self.reach)

    def shifts(self, index: Tensor) -> Tensor:
        """int64 (B, 2): how far down and right the rows of these numbers (B,) are."""
        picture = index % len(self.rows)
        wanted = self._copies[index // len(self.rows)]
        return torch.minimum(torch.maximum(wanted, -self._up[picture]), self._down[picture])

    def take(self, index: Tensor) -> Rows:
        """The rows of these numbers, with what is told of them."""
        by = self.shifts(index)
        x = shifted(self.rows.x[index % len(self.rows)], by, self.shape)
        return Rows(x, torch.ones_like(x, dtype=torch.bool), told_shift(by, self.reach))


def at_rest(rows: Rows, reach: int) -> Rows:
    """The same pictures, told that they are not shifted: what to validate on."""
    by = torch.zeros(len(rows), 2, dtype=torch.int64, device=rows.x.device)
    return Rows(rows.x, rows.present, told_shift(by, reach))
