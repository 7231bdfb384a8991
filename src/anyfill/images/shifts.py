"""Told shifts and shears: pictures to train on at other places and slants, the network being told which.

Jun et al. (2020, Distribution Augmentation): a network that is told t learns p(t(x) | t) of changed pictures t(x)
beside p(x | nothing changed), shares what it learns between them, and learns no single picture by heart. Told
"nothing", it is a model of the pictures as they are; changed untold, they would cost it the mass of all changes.

A shift (dy, dx) moves all of a picture, at most ``reach`` pixels along each axis, and is cut to the picture's own blank
margin: nothing is lost, what wraps around is blank. As a rotation of rows and columns it is a bijection of all
pictures, so x -> p(shift(x) | told it) sums to one, too, whichever shift.

A shear (ky, kx), in tenths, comes before it. Row r moves right and then column c down, by whole pixels,

    row r by round(kx / 10 (r - (H - 1) / 2)),    column c by round(ky / 10 (c - (W - 1) / 2)),

halves to the even number. No two pixels are mixed, so pixels that were drawn independently (binarised ones) still are.
What leaves the frame is lost and what enters is blank: a shear is no bijection, and x -> p(shear(x) | told it) no law
of x. What is answered in the end is asked with (0, 0) told and nothing moved, which is the law of pictures as they are.
Where lines move *around* the edges instead, a shear is one more bijection, and x -> p(shear(x) | told it) does sum to
one; of pictures with a blank margin as wide as their lines move the two are the same.

The network is told each as a one-hot vector of 2 reach + 1, and where there are shears of 2 shears + 1, at the head of
the context:

    context = (dy == -reach, …, dy == reach, dx == -reach, …, dx == reach, ky == -shears, …, kx == shears)

Tossed anew. A binarised picture is coins: each pixel is 1 with a probability that its neighbours all but tell, whatever
the other coins are. Where soft targets say these probabilities q_i (``objectives.SoftTargetLoss``), some pixels of a
picture can be tossed again from them, one step of a chain that keeps the law of pictures as far as q is right:

    x_i' ~ q_i with probability u, else x_i,    u uniform on [0, tossed] for each picture.

So a picture never comes twice with the same coins, and they cannot be learnt by heart, neither to tell a picture by
them nor to answer them.

Nothing is drawn: row n stands for picture n mod R in the copy n div R, one copy for each change and as many more at
rest as its share wants, so an epoch has every picture in every way once, in the order that training draws. What is
tossed is the noise of row n (``samplers.rowwise``).
"""

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count, require_probability
from anyfill.objectives.soft_targets import require_targets
from anyfill.rows import Rows
from anyfill.samplers.rowwise import RowStreams

MAX_SHEARS = 10
"""Tenths: a slant of 45 degrees."""


def shifted(x: Tensor, by: Tensor, shape: tuple[int, ...]) -> Tensor:
    """(B, N): pictures x (B, N) of this shape, (H, W) or (H, W, C), moved by (B, 2) pixels down and right, around."""
    height, width, channels = (*shape, 1)[:3]
    row = (torch.arange(height, device=x.device) - by[:, :1]) % height
    column = (torch.arange(width, device=x.device) - by[:, 1:]) % width
    return _gathered(x, row.unsqueeze(2) * width + column.unsqueeze(1), channels)


def sheared(x: Tensor, by: Tensor, shape: tuple[int, ...], blank: int = 0, *, around: bool = False) -> Tensor:
    """(B, N): pictures x (B, N) of this shape, rows moved, then columns, by tenths (B, 2): columns down, rows right.

    What leaves the frame is lost and what enters is blank, or with ``around`` it enters at the other edge.
    """
    height, width, channels = (*shape, 1)[:3]
    rows, columns = (torch.arange(side, device=x.device) for side in (height, width))
    row = rows.view(1, -1, 1) - _moves(by[:, :1], width).unsqueeze(1)  # (B, H, W): whence each pixel comes
    inside = (row >= 0) & (row < height)
    row = row % height
    right = _moves(by[:, 1:], height).gather(1, row.flatten(1)).view_as(row)
    column = columns - right
    inside &= (column >= 0) & (column < width)
    moved = _gathered(x, row * width + column % width, channels)
    return moved if around else torch.where(inside.flatten(1).repeat_interleave(channels, 1), moved, blank)


def _moves(tenths: Tensor, side: int) -> Tensor:
    """int64 (B, side): by how much each line moves under a shear of so many tenths (B, 1)."""
    offset = 2 * torch.arange(side, device=tenths.device) - (side - 1)  # in halves, so that nothing is rounded before
    return (tenths * offset / 20.0).round().long()


def _gathered(x: Tensor, pixel: Tensor, channels: int) -> Tensor:
    """(B, N): the pixels (B, H, W) of pictures x (B, N), by their numbers, with all their channels."""
    values = pixel.flatten(1).unsqueeze(-1) * channels + torch.arange(channels, device=x.device)
    return x.gather(1, values.flatten(1))


def told_shift(by: Tensor, reach: int, shears: int = 0) -> Tensor:
    """float32 (B, C): what the network is told of shifts (B, 2), or with ``shears`` of shifts and shears (B, 4)."""
    if by.shape[1] != (4 if shears else 2):
        raise refuse("by", expected=f"{'shifts and shears (B, 4)' if shears else 'shifts (B, 2)'}", got=tuple(by.shape))
    parts = [by[:, :2].unsqueeze(-1) == _line(reach, by.device)]
    if shears:
        parts.append(by[:, 2:].unsqueeze(-1) == _line(shears, by.device))
    return torch.cat([part.flatten(1) for part in parts], 1).float()


def told_width(reach: int, shears: int = 0) -> int:
    """C, how long the context is that tells a shift, or with ``shears`` a shift and a shear."""
    return 2 * (2 * reach + 1) + (2 * (2 * shears + 1) if shears else 0)


def told_rest(reach: int, shears: int = 0) -> Tensor:
    """float32 (C,): that nothing is changed."""
    return told_shift(torch.zeros(1, 4 if shears else 2, dtype=torch.int64), reach, shears)[0]


def _line(reach: int, device: torch.device) -> Tensor:
    return torch.arange(-reach, reach + 1, device=device)


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
    """Pictures as rows, sheared and shifted and told so, a source to train on (``RowSource``).

    Args:
        rows: whole pictures of codes, without a context, on the device where they are to be changed.
        shape: (H, W) or (H, W, C).
        reach: the farthest shift along an axis, in pixels; 0 = none, with shears.
        shears: the steepest shear, in tenths; 0 = none, and nothing is told of it.
        still: about what share of the rows is not changed, besides those that cannot be.
        blank: the code of a blank pixel.
        targets: soft targets of the pictures (R, N), which move with them (``objectives.SoftTargetLoss``).
        tossed: up to what share of the pixels is tossed anew, from ``targets``; 0 = none.
    """

    def __init__(
        self,
        rows: Rows,
        shape: tuple[int, ...],
        reach: int = 2,
        *,
        shears: int = 0,
        still: float = 1 / 3,
        blank: int = 0,
        targets: Tensor | None = None,
        tossed: float = 0.0,
    ) -> None:
        height, width, channels = (*shape, 1)[:3]
        require_count("shears", shears, minimum=0, maximum=MAX_SHEARS)
        require_count("reach", reach, minimum=0 if shears else 1, maximum=min(height, width) - 1)
        if rows.variables != height * width * channels:
            raise refuse("rows", expected=f"{height * width * channels} variables, as {shape} has", got=rows.variables)
        if rows.context is not None or not bool(rows.present.all()):
            raise refuse("rows", expected="whole pictures without a context", got="others")
        require_probability("tossed", tossed)
        if tossed and targets is None:
            raise refuse("tossed", expected="0, as there are no targets to toss from", got=tossed)
        lines = [_line(reach, rows.x.device)] * 2 + [_line(shears, rows.x.device)] * (2 if shears else 0)
        changes = torch.cartesian_prod(*lines)
        places = len(changes)
        if not 1 / places <= still <= 1.0:
            raise refuse("still", expected=f"a share from 1/{places}, one change of all, to 1", got=still)
        self.rows, self.shape, self.reach, self.shears = rows, shape, reach, shears
        self.still, self.blank, self.tossed = still, blank, tossed
        self.targets = None if targets is None else require_targets(targets, rows.x)
        resting = changes.new_zeros(1 if still == 1.0 else round((still * places - 1) / (1 - still)), changes.shape[1])
        self._copies = resting if still == 1.0 else torch.cat([changes, resting])

    def __len__(self) -> int:
        """Pictures times copies."""
        return len(self.rows) * len(self._copies)

    @property
    def variables(self) -> int:
        """N, all channels of all pixels."""
        return self.rows.variables

    @property
    def context_width(self) -> int:
        """What a network needs to be told a change; targets come behind that."""
        return told_width(self.reach, self.shears)

    def shifts(self, index: Tensor) -> Tensor:
        """int64 (B, 2): how far down and right the rows of these numbers (B,) are."""
        return self._changed(index)[1][:, :2]

    def take(self, index: Tensor) -> Rows:
        """The rows of these numbers, with what is told of them."""
        x, by = self._changed(index)
        x, told = shifted(x, by[:, :2], self.shape), told_shift(by, self.reach, self.shears)
        if self.targets is not None:
            target = self._sheared(self.targets[index % len(self.rows)], by)
            told = torch.cat([told, shifted(target, by[:, :2], self.shape).to(told.dtype)], 1)
        return Rows(x, torch.ones_like(x, dtype=torch.bool), told)

    def _changed(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """(B, N), int64 (B, 2 or 4): pictures with their shears, not yet shifted; and what is done to them in all."""
        by = self._copies[index // len(self.rows)]
        x = self._sheared(self._pictures(index), by)
        up, down = margins(x, self.shape, self.blank)  # of the picture as it lies now
        return x, torch.cat([torch.minimum(torch.maximum(by[:, :2], -up), down), by[:, 2:]], 1)

    def _pictures(self, index: Tensor) -> Tensor:
        """(B, N): pictures in their places, some of their pixels tossed anew."""
        x = self.rows.x[index % len(self.rows)]
        if not self.tossed or self.targets is None:
            return x
        keys = index.to(x.device)  # training may number rows on another device
        noise = RowStreams(keys).uniform((len(keys), 2 * self.variables + 1), x.device)
        again, coin, share = noise.split([self.variables, self.variables, 1], 1)
        one = (coin < self.targets[index % len(self.rows)]).to(x.dtype)
        return torch.where(again < self.tossed * share, one, x)

    def _sheared(self, x: Tensor, by: Tensor) -> Tensor:
        """(B, N): pictures, or targets, with the shears of all that is done to them (B, 2 or 4)."""
        return sheared(x, by[:, 2:], self.shape, self.blank) if self.shears else x


def at_rest(rows: Rows, reach: int, shears: int = 0) -> Rows:
    """The same pictures, told that nothing of them is changed: what to validate on."""
    told = told_rest(reach, shears).to(rows.x.device)
    return Rows(rows.x, rows.present, told.repeat(len(rows), 1))
