"""How a model sees the user's picture: resized, in windows, inverted, in its own colours and levels; and says so.

A picture larger than the model's is seen through a window around each hole where that holds it. Where a hole is larger,
the picture is shrunk to fill that one (``anyfill.images.scales``), before the others are filled in windows.

Whatever is changed about a picture on the way stands in its remarks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anyfill.checks import refuse
from anyfill.images.about import About
from anyfill.images.holes import holes
from anyfill.images.picture import Picture, Places
from anyfill.images.reading import bytes_of, codes_of
from anyfill.images.resizing import resized, shrunk
from anyfill.images.scales import scale_for
from anyfill.images.windows import Window, windows, windows_on

_BY_FAR = 64
"""So many levels nearer to the inverse, and the border says that light is dark."""


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A picture, ready to be filled.

    Attributes:
        whole: as it will be returned, with what is erased of it.
        picture: what the model fills: the same, or all of it shrunk; what was changed stands in its remarks.
        plan: the windows through which that is filled.
        inverted: whether light is dark.
        apart: bool (H, W), of a shrunk picture: holes of the whole one that windows hold, which are filled at its own
            scale when the large ones are.
        apart_plan: the windows of those.
    """

    whole: Picture
    picture: Picture
    plan: tuple[Window, ...]
    inverted: bool
    apart: Places
    apart_plan: tuple[Window, ...] = ()

    @property
    def is_shrunk(self) -> bool:
        """Whether what is drawn has to be enlarged."""
        return self.picture.size != self.whole.size


@dataclass(frozen=True, slots=True)
class Eye:
    """What looks at pictures for a model.

    Attributes:
        about: what the model is of.
        name: what to call it.
    """

    about: About
    name: str

    @property
    def size(self) -> str:
        """Width and height of the model's pictures, in words."""
        return f"{self.about.width}x{self.about.height}"

    def prepared(self, whole: Picture, *, resize: bool | None, invert: bool | None) -> Ready:
        """The picture as it will be filled; something of it must be erased.

        Args:
            whole: the picture.
            resize: True = cropped and shrunk to the model's size; False = never, as many windows as it takes; None =
                a window around each hole, the picture shrunk for those that are larger.
            invert: read light as dark; None = if the border says so.
        """
        if whole.erased is None or not whole.erased.any():
            expected = "something erased (a mask that is white there, transparent pixels, or a part such as bottom)"
            raise refuse(f"{whole.name}", expected=expected, got="nothing erased")
        whole = (self.with_holes(whole) if resize else whole).plain()
        remarks = list(whole.remarks)
        if not whole.known.any() and whole.pixels.any():
            remarks.append(f"{whole.name} is erased as a whole: drawn from nothing")
        size = (self.about.height, self.about.width)
        found = holes(~whole.known, *size)
        small, apart = whole, np.zeros_like(found.large)
        if resize is None and found.large.any():
            small, apart = shrunk(whole, *scale_for(found)), found.erased & ~found.large
        plan = windows_on(found) if small is whole else windows(~small.known, *size)
        others = windows(apart, *size)
        if small is not whole:
            rest = f"; smaller holes in {_counted(others)}" if others else ""
            seen = (
                f"{small.size} in {_counted(plan)}" if small.height > size[0] or small.width > size[1] else small.size
            )
            how = f"filled at {seen}, what is drawn enlarged (--windows or resize=False keeps its scale){rest}"
            remarks.append(f"{whole.name} is {whole.size}, a hole too large for a window of {self.size}: {how}")
        elif whole.height > size[0] or whole.width > size[1]:
            many = _counted(plan, "overlapping " if found.large.any() else "")
            way = "--resize or resize=True shrinks it"
            remarks.append(f"{whole.name} is {whole.size}: filled in {many} of {self.size} ({way})")
        else:
            if whole.height < size[0] or whole.width < size[1]:
                remarks.append(self.lies_within(whole))
            if resize is False:
                remarks.append(f"{whole.name} fits in {self.size}: --windows or resize=False changes nothing")
        seen, inverted = self.seen(replace(small, remarks=tuple(remarks)), invert)
        return Ready(whole, seen, tuple(plan), inverted, apart, tuple(others))

    def seen(self, whole: Picture, invert: bool | None) -> tuple[Picture, bool]:
        """The picture with what the model does not see of it in the remarks, and whether it sees light as dark."""
        view = whole.with_channels(self.about.channels)
        remarks, levels = list(view.remarks), self.about.levels
        if view.channels > whole.channels and whole.known.any():
            remarks.append(f"{whole.name} is grey: {self.name} reads and draws colours")
        inverted = self._is_inverted(whole) if invert is None else invert
        if inverted and invert is None:
            remarks.append(f"{whole.name} is light where {self.name} is dark: read inverted")
        there = np.unique(view.pixels[whole.known])
        there = 255 - there if inverted else there
        if (bytes_of(codes_of(there, levels), levels) != there).any():
            how = "as black and white, from level 128 on" if levels == 2 else f"in {levels} levels"
            remarks.append(f"{whole.name} is read {how}")
        return replace(whole, remarks=tuple(remarks)), inverted

    def lies_within(self, picture: Picture) -> str:
        """What is said of a picture that is smaller than the model's."""
        return f"{picture.name} is {picture.size}: in the middle of {self.size}, what is around it left open"

    def resized(self, picture: Picture) -> Picture:
        """Cropped and resized to the size of the model's pictures."""
        remark = f"{picture.name} is {picture.size}: cropped and resized to {self.size}"
        small = resized(picture, (self.about.height, self.about.width))
        same = small.pixels.shape == picture.pixels.shape
        return picture if same else replace(small, remarks=(*picture.remarks, remark))

    def with_holes(self, picture: Picture) -> Picture:
        """The same of a picture with something erased; ValueError if all of that is cropped away."""
        small = self.resized(picture)
        if small.known.all() and not picture.known.all():
            expected = f"something erased in the middle, which is left of it as {self.size}"
            raise refuse(picture.name, expected=expected, got="what is erased cropped away")
        return small

    def _is_inverted(self, picture: Picture) -> bool:
        """Whether what is known along the edge is nearer to the inverse of what the model knows, by far."""
        edge = np.ones(picture.pixels.shape[:2], dtype=bool)
        edge[1:-1, 1:-1] = False
        known = edge & picture.known
        if not known.any():
            return False
        level = float(picture.pixels[known].mean())
        return abs(level - self.about.border) > abs(255 - level - self.about.border) + _BY_FAR


def _counted(plan: Sequence[Window], kind: str = "") -> str:
    return "one window" if len(plan) == 1 else f"{len(plan):,} {kind}windows"
