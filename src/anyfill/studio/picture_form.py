"""Pictures as a page sends them: bytes of pixels, and which of them are erased."""

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from anyfill.checks import refuse

MAX_SIDE = 256
"""Pixels of a side."""
Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]


class WirePicture(BaseModel):
    """A picture: rows from the top, channels together, as base64; erased: a byte for each pixel, not 0 where it is."""

    width: Side
    height: Side
    channels: Literal[1, 3] = 1
    pixels: Annotated[str, Field(max_length=4 * MAX_SIDE * MAX_SIDE + 4)]
    erased: Annotated[str, Field(max_length=4 * MAX_SIDE * MAX_SIDE // 3 + 8)] = ""

    def picture(self) -> Any:
        """A ``Picture`` with what is erased of it; ValueError if bytes and sizes do not fit."""
        import numpy as np

        from anyfill.images.picture import Picture

        shape = (self.height, self.width)
        pixels = _bytes("pixels", self.pixels, self.width * self.height * self.channels)
        erased = np.zeros(shape, dtype=bool)
        if self.erased:
            erased = np.frombuffer(_bytes("erased", self.erased, self.width * self.height), np.uint8).reshape(shape) > 0
        return Picture(np.frombuffer(pixels, np.uint8).reshape(*shape, self.channels).copy(), erased, "picture.png")


def _bytes(name: str, text: str, size: int) -> bytes:
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise refuse(name, expected="base64", got="something else") from None
    if len(found) != size:
        raise refuse(name, expected=f"{size:,} bytes", got=f"{len(found):,}")
    return found


def packed(pixels: Any) -> str:
    """Bytes (any shape) as base64."""
    return base64.b64encode(pixels.tobytes()).decode("ascii")
