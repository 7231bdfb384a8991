"""A picture: 8 bits a channel, grey or red-green-blue, and what of it is erased.

Files are read with Pillow. What cannot be kept as it is, is changed and said (``remarks``): 16 bits become 8, CMYK
becomes red-green-blue, a turned photograph is put upright, of an animation the first frame is taken. Pixels that are
more than half transparent are erased. A palette is read as its colours; three equal channels are one: a picture whose
given pixels have no colours is grey.
"""

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from anyfill.checks import counted, refuse
from anyfill.disk import write_bytes

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
"""(H, W, C), C = 1 or 3."""
Places = np.ndarray[Any, np.dtype[np.bool_]]
"""(H, W)."""
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
"""What is read, by Pillow's names."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".pgm", ".ppm")
MAX_PIXELS = 50_000_000
"""Of a file: what a large camera makes."""
_DAMAGED = (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError)
"""What Pillow's readers raise at bytes that are cut off or make no sense."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Picture:
    """Pixels and what of them is erased.

    Attributes:
        pixels: uint8 (H, W, C), 1 channel (grey) or 3 (red, green, blue).
        erased: bool (H, W), True = to be filled; None = nothing is.
        name: what to call it.
        remarks: what was changed when it was read.
    """

    pixels: Pixels
    erased: Places | None = None
    name: str = "picture"
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = self.pixels.shape
        if len(shape) != 3 or shape[2] not in (1, 3) or 0 in shape or self.pixels.dtype != np.uint8:
            expected = "uint8 pixels (height, width, 1 or 3)"
            raise refuse(self.name, expected=expected, got=f"{self.pixels.dtype} {shape}")
        if self.erased is not None and self.erased.shape != shape[:2]:
            raise refuse(f"what is erased of {self.name}", expected=f"{shape[:2]}", got=self.erased.shape)

    @property
    def height(self) -> int:
        """Rows of pixels."""
        return self.pixels.shape[0]

    @property
    def width(self) -> int:
        """Pixels of a row."""
        return self.pixels.shape[1]

    @property
    def channels(self) -> int:
        """1 = grey, 3 = red, green and blue."""
        return self.pixels.shape[2]

    @property
    def size(self) -> str:
        """Width and height, as people say them."""
        return f"{self.width}x{self.height}"

    @property
    def known(self) -> Places:
        """bool (H, W): what is not erased."""
        return np.ones(self.pixels.shape[:2], dtype=bool) if self.erased is None else ~self.erased

    def __repr__(self) -> str:
        holes = "" if self.erased is None else f", {int(self.erased.sum()):,} pixels erased"
        return f"<Picture {self.name}: {self.size}, {'grey' if self.channels == 1 else 'colour'}{holes}>"

    def image(self) -> Image.Image:
        """The same for Pillow; erased pixels are transparent."""
        shown = self.pixels
        if self.erased is not None:
            alpha = np.where(self.erased, 0, 255).astype(np.uint8)[..., None]
            shown = np.concatenate([shown, alpha], axis=2)
        return Image.fromarray(shown[..., 0] if shown.shape[2] == 1 else shown)

    def png(self) -> bytes:
        """As bytes of a PNG file."""
        buffer = io.BytesIO()
        self.image().save(buffer, format="PNG")
        return buffer.getvalue()

    _repr_png_ = png

    def save(self, path: str | Path) -> None:
        """Write a PNG file, which keeps every pixel as it is and erased ones transparent."""
        require_png(Path(path))
        write_bytes(self.png(), path)

    def grey(self) -> "Picture":
        """The same without colours (luma of ITU-R 601)."""
        if self.channels == 1:
            return self
        return replace(self, pixels=np.asarray(Image.fromarray(self.pixels).convert("L"))[..., None])

    def plain(self) -> "Picture":
        """The same; grey where what is given has no colours, since those under erased pixels are not to be seen."""
        alike = (self.pixels == self.pixels[..., :1]).all(axis=2)
        return self.grey() if (alike if self.erased is None else alike | self.erased).all() else self

    def with_channels(self, channels: int) -> "Picture":
        """The same with so many channels, which is said if colours are lost."""
        if channels == self.channels:
            return self
        if channels == 3:
            return replace(self, pixels=np.repeat(self.pixels, 3, axis=2))
        return replace(self.grey(), remarks=(*self.remarks, f"{self.name} has colours: read as grey"))


def require_png(path: Path) -> None:
    """ValueError unless a file that shall be written is a PNG file by its name."""
    if path.suffix.lower() != ".png":
        raise refuse(f"{path}", expected="a name that ends in .png", got=repr(path.suffix))


def read_picture(path: str | Path) -> Picture:
    """The picture in a file; ValueError in a sentence if there is none in it."""
    path = Path(path)
    if path.is_dir():
        raise refuse(f"{path}", expected="a picture", got="a folder")
    if path.stat().st_size == 0:
        raise refuse(f"{path}", expected="a picture", got="an empty file")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # large pictures are refused below, odd metadata does not matter
        try:
            with path.open("rb") as file, Image.open(file, formats=FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise _too_large(path, f"{image.width:,} x {image.height:,}")
                return _read(image, path.name)
        except Image.DecompressionBombError as error:  # Pillow says how many, and nothing else
            counted = re.search(r"\d+", str(error))
            raise _too_large(path, f"{int(counted[0]):,}" if counted else "more") from None
        except UnidentifiedImageError:
            expected = "a picture (PNG, JPEG, WebP, BMP, GIF, TIFF, PPM)"
            raise refuse(f"{path}", expected=expected, got="something else, or one that is cut off") from None
        except _DAMAGED as error:
            if isinstance(error, _RefusedError):
                raise ValueError(str(error)) from None
            reason = " ".join(str(error).split()) or type(error).__name__
            raise refuse(f"{path}", expected="a whole picture", got=f"a damaged one ({reason})") from None


class _RefusedError(ValueError):
    """Refused by us, not by a reader."""


def _too_large(path: Path, got: str) -> _RefusedError:
    return _RefusedError(str(refuse(f"{path}", expected=f"at most {MAX_PIXELS:,} pixels", got=got)))


def _read(image: Image.Image, name: str) -> Picture:
    remarks: list[str] = []
    deep = any("16" in str(tile[3]) for tile in getattr(image, "tile", ()))  # before pixels are read: then it is gone
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        remarks.append(f"{name} has {frames} frames: the first is read")
    upright = ImageOps.exif_transpose(image)
    if upright.size != image.size:
        remarks.append(f"{name} was taken with the camera turned: put upright")
    image = upright
    if image.mode == "F":
        raise _RefusedError(str(refuse(name, expected="a picture of whole numbers", got="one of fractions")))
    if image.mode.startswith("I"):
        levels = np.asarray(image).astype(np.int64)
        if levels.min() < 0 or levels.max() > 65535:  # cut off, all of it could be white
            got = f"some from {levels.min():,} to {levels.max():,}"
            raise _RefusedError(str(refuse(name, expected="levels from 0 to 65,535", got=got)))
        if image.mode != "I" or levels.max() > 255:
            remarks.append(f"{name} has 16 bits a pixel: read with 8")
            levels = (levels + 128) // 257
        return Picture(levels.astype(np.uint8)[..., None], None, name, tuple(remarks))
    if deep:
        remarks.append(f"{name} has 16 bits a channel: read with 8")
    if image.mode == "CMYK":
        remarks.append(f"{name} is CMYK: read as red, green and blue")
    if image.has_transparency_data:
        return _with_alpha(np.asarray(image.convert("RGBA")), name, remarks)
    pixels = np.asarray(image.convert("L") if image.mode in ("1", "L") else image.convert("RGB"))
    return Picture(pixels[..., None] if pixels.ndim == 2 else pixels, None, name, tuple(remarks)).plain()


def _with_alpha(layers: Pixels, name: str, remarks: Sequence[str] = ()) -> Picture:
    """The picture of red, green, blue and alpha (H, W, 4); as a picture has no alpha, what is lost of it is said."""
    alpha, said = layers[..., 3], list(remarks)
    if ((alpha > 0) & (alpha < 255)).any():
        less = int(((alpha >= 128) & (alpha < 255)).sum())
        rest = f", what is less so is read as opaque ({counted(less, 'pixel')})" if less else ""
        said.append(f"{name} is transparent in part: what is more than half transparent is erased{rest}")
    erased = alpha < 128 if alpha.min() < 128 else None
    return Picture(np.ascontiguousarray(layers[..., :3]), erased, name, tuple(said)).plain()


PictureLike = Picture | Image.Image | str | Path | Tensor | np.ndarray[Any, Any]
"""What verbs take for a picture."""


def as_picture(given: PictureLike, name: str = "picture") -> Picture:
    """A picture from what the user has: the name of a file, an image of Pillow, or numbers (H, W) or (H, W, C).

    Whole numbers are levels from 0 to 255, booleans black and white, fractions from 0 to 1; NaN, and what is masked in
    a masked array, is erased. Four channels are red, green, blue and alpha.
    """
    if isinstance(given, Picture):
        return given
    if isinstance(given, str | Path):
        return read_picture(given)
    if isinstance(given, Image.Image):
        return _read(given, name)
    values = numbers(given, name)
    masked: Places = np.ma.getmaskarray(given) if isinstance(given, np.ma.MaskedArray) else np.zeros(values.shape, bool)
    values, masked = (one[..., None] if one.ndim == 2 else one for one in (values, masked))
    if values.ndim != 3 or values.shape[2] not in (1, 3, 4) or 0 in values.shape:
        way = "permute" if isinstance(given, Tensor) else "transpose"
        in_front = values.ndim == 3 and values.shape[0] in (1, 3, 4)
        got = f"{values.shape}" + (f", with channels in front: {way}(1, 2, 0) puts them behind" if in_front else "")
        raise refuse(f"shape of {name}", expected="(height, width), or with 1, 3 or 4 channels behind", got=got)
    if masked.any():  # whatever stands there is not to be seen, nor to be refused
        values = np.where(masked, np.zeros((), values.dtype), values)
    if values.dtype == bool:
        values = values * np.uint8(255)
    elif np.issubdtype(values.dtype, np.floating):
        missing: Places = np.isnan(values)
        values, masked = np.where(missing, 0.0, values), masked | missing
        if values.min() < 0 or values.max() > 1:
            got = f"some from {values.min():g} to {values.max():g}"
            raise refuse(f"fractions of {name}", expected="numbers from 0 to 1 (NaN = erased)", got=got)
        values = np.rint(values * 255)
    elif not np.issubdtype(values.dtype, np.integer) or values.min() < 0 or values.max() > 255:
        raise refuse(f"levels of {name}", expected="whole numbers from 0 to 255", got=f"others ({values.dtype})")
    levels, erased = values.astype(np.uint8), np.asarray(masked.any(axis=2)) if masked.any() else None
    if levels.shape[2] != 4:
        return Picture(levels, erased, name)
    made = _with_alpha(levels, name)
    return made if erased is None else replace(made, erased=erased | ~made.known)


def numbers(given: object, name: str) -> np.ndarray[Any, Any]:
    """An array or tensor, or lists of lists, as an array; ValueError where its rows differ in length."""
    try:
        if not isinstance(given, Tensor):
            return np.asarray(given)
        held = given.detach().cpu()  # numpy knows half precision, but not every kind of it
        return (held.float() if held.is_floating_point() and held.itemsize < 4 else held).numpy()
    except ValueError:
        raise refuse(name, expected="rows of one length", got="rows of several") from None
