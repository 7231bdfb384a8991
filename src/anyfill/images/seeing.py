"""How a model sees the user's picture: resized, in windows, inverted, in its own colours and levels; and says so.

A picture larger than the model's is seen through one window around the hole where that holds it, else shrunk as a whole
(``anyfill.images.scales``).

Whatever is changed about a picture on the way stands in its remarks.
"""

from dataclasses import dataclass, replace

import numpy as np

from anyfill.checks import refuse
from anyfill.images.about import About
from anyfill.images.picture import Picture
from anyfill.images.reading import resized
from anyfill.images.scales import shrunk
from anyfill.images.windows import windows

_BY_FAR = 64
"""So many levels nearer to the inverse, and the border says that light is dark."""


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

    def prepared(self, whole: Picture, *, resize: bool | None, invert: bool | None) -> tuple[Picture, bool]:
        """The picture as it will be filled, and whether light is dark; something of it must be erased.

        Args:
            whole: the picture.
            resize: True = cropped and shrunk to the model's size; False = never, as many windows as it takes; None =
                one window around the hole, or the whole picture shrunk.
            invert: read light as dark; None = if the border says so.
        """
        if whole.erased is None or not whole.erased.any():
            expected = "something erased (a mask, transparent pixels, or --erase)"
            raise refuse(f"{whole.name}", expected=expected, got="nothing erased")
        if resize:
            whole = self.resized(whole)
        remarks = list(whole.remarks)
        if whole.erased is not None and whole.erased.all() and whole.pixels.any():
            remarks.append(f"{whole.name} is erased as a whole: drawn from nothing")
        if whole.height > self.about.height or whole.width > self.about.width:
            count = len(windows(~whole.known, self.about.height, self.about.width))
            if count > 1 and resize is None:
                small = shrunk(whole, self.about.height, self.about.width)
                how = f"filled at {small.size}, what is drawn enlarged (--windows keeps its scale)"
                remarks.append(f"{whole.name} is {whole.size}, its hole larger than {self.size}: {how}")
                whole = small
            else:
                many = "one window" if count == 1 else f"{count} overlapping windows"
                remarks.append(f"{whole.name} is {whole.size}: filled in {many} of {self.size} (--resize shrinks it)")
        elif whole.height < self.about.height or whole.width < self.about.width:
            remarks.append(self.lies_within(whole))
        return self.seen(replace(whole, remarks=tuple(remarks)), invert)

    def seen(self, whole: Picture, invert: bool | None) -> tuple[Picture, bool]:
        """The picture with what the model does not see of it in the remarks, and whether it sees light as dark."""
        remarks = list(whole.with_channels(self.about.channels).remarks)
        inverted = self._is_inverted(whole) if invert is None else invert
        if inverted and invert is None:
            remarks.append(f"{whole.name} is light where {self.name} is dark: read inverted, and turned back")
        levels = np.unique(whole.pixels[whole.known])
        if self.about.levels == 2 and not set(levels.tolist()) <= {0, 255}:
            remarks.append(f"{whole.name} is read as black and white, from level 128 on")
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

    def _is_inverted(self, picture: Picture) -> bool:
        """Whether what is known along the edge is nearer to the inverse of what the model knows, by far."""
        edge = np.ones(picture.pixels.shape[:2], dtype=bool)
        edge[1:-1, 1:-1] = False
        known = edge & picture.known
        if not known.any():
            return False
        level = float(picture.pixels[known].mean())
        return abs(level - self.about.border) > abs(255 - level - self.about.border) + _BY_FAR
