"""What to erase of a picture: rectangles, halves, strokes, scattered pixels, or where a second picture is white.

    8,4,12,12                left, top, width, height, in pixels
    left right top bottom    that half
    middle frame             the inner half of either side, or all but it
    30%                      so many pixels, scattered
    strokes                  a few strokes of a pen, at random
    3,3 20,25 8,30 / 4       a stroke through these points (left,top), 4 pixels wide

Several parts add up.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from anyfill.checks import refuse
from anyfill.images.picture import SUFFIXES, Picture, Places, as_picture, numbers

PARTS = ("left", "right", "top", "bottom", "middle", "frame", "strokes")
Rectangle = tuple[int, int, int, int]
"""Left, top, width, height."""
Erasing = str | Path | Picture | Image.Image | np.ndarray[Any, Any] | Tensor | Rectangle | Sequence[str | Rectangle]
"""What verbs take for what is erased."""
WHITE = 128
"""The least level of a mask that erases."""
_RECTANGLE = "a rectangle of four whole numbers (left, top, width, height)"
_HELP = f"LEFT,TOP,WIDTH,HEIGHT, {', '.join(PARTS)}, 30%, or a stroke as '3,3 20,25 / 4'"


def erased_in(picture: Picture, erased: Erasing | None, *, generator: torch.Generator) -> Picture:
    """The picture with this erased too, beside what is transparent in it.

    Args:
        picture: the picture.
        erased: words as in the module's text, one or several; a rectangle as (left, top, width, height); the name of a
            mask file, or a picture, white = erased; or bool (H, W), True = erased, or integers (H, W), 0 and 1 or 0
            and 255, 0 = given.
        generator: for scattered pixels and random strokes.
    """
    if erased is None:
        return picture
    if isinstance(erased, str) and erased.lower().endswith(SUFFIXES):
        erased = Path(erased)
    if isinstance(erased, Path | Picture | Image.Image):
        places, remarks = mask_of(erased, picture)
    else:
        places, remarks = _places(picture, erased, generator), ()
    return replace(picture, erased=~picture.known | places, remarks=(*picture.remarks, *remarks))


def _places(picture: Picture, erased: object, generator: torch.Generator) -> Places:
    height, width = picture.pixels.shape[:2]
    parts = _parts(erased)
    if parts is None:
        return _of_size(_truths(erased), picture, "what is erased")
    places = np.zeros((height, width), dtype=bool)
    for one in parts:
        places |= region(one, height, width, generator=generator)
    return places


def _truths(erased: object) -> Places:
    """bool, same shape: an array of truths, or of integers that can only be meant as such."""
    values = numbers(erased, "what is erased")
    if values.dtype == bool:
        return values
    expected, got = f"bool (H, W), True = erased; a mask; or {_HELP}", f"{values.dtype}"
    if values.dtype == object or values.ndim == 0:
        got = "something else"
    elif isinstance(erased, list | tuple):
        expected = f"{_RECTANGLE}, several of them, or rows of truths"
        got = f"{values.size:,} numbers" if values.size > 8 else repr(erased)
    elif np.issubdtype(values.dtype, np.integer):
        if ((values == 0) | (values == values.max(initial=0))).all() and values.max(initial=0) in (0, 1, 255):
            return values != 0
        got += ", other numbers than 0 and 1, or 0 and 255"
    raise refuse("what is erased", expected=expected, got=got)


def _parts(erased: object) -> list[str] | None:
    """What is said to be erased, in words, rectangles of four numbers too; None if it is said in another way."""
    if isinstance(erased, str):
        return [erased]
    if not isinstance(erased, list | tuple):
        return None
    several: Sequence[Any] = erased
    if _is_rectangle(several):
        return [",".join(map(str, several))]
    if all(isinstance(one, str) or _is_rectangle(one) for one in several):
        return [one if isinstance(one, str) else ",".join(map(str, one)) for one in several]
    if any(isinstance(one, str) for one in several):
        wrong = next(one for one in several if not isinstance(one, str) and not _is_rectangle(one))
        raise refuse("what is erased", expected=f"words, or {_RECTANGLE}", got=repr(wrong))
    return None


def _is_rectangle(one: object) -> bool:
    """Whether these are four whole numbers."""
    if not isinstance(one, list | tuple):
        return False
    sides: Sequence[Any] = one
    return len(sides) == 4 and all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in sides)


def mask_of(mask: Path | Picture | Image.Image, picture: Picture) -> tuple[Places, tuple[str, ...]]:
    """bool (H, W): where a mask is white, or transparent if it has such pixels; remarks if it has both."""
    read = as_picture(mask, "mask")
    if read.erased is not None:
        has_both = (read.grey().pixels[read.known] >= WHITE).any()
        said = f"{read.name}: its transparent pixels are erased, not its white ones"
        return _of_size(read.erased, picture, read.name), (said,) if has_both else ()
    levels = read.grey().pixels[..., 0]
    if 0 < levels.max() < WHITE:
        expected = f"white, level {WHITE} or above, where something shall be erased"
        raise refuse(read.name, expected=expected, got=f"nothing above level {levels.max()}")
    return _of_size(levels >= WHITE, picture, read.name), ()


def _of_size(places: Places, picture: Picture, name: str) -> Places:
    if places.shape != picture.pixels.shape[:2]:
        got = f"{places.shape[1]}x{places.shape[0]}" if places.ndim == 2 else f"{places.shape}"
        raise refuse(f"size of {name}", expected=f"{picture.size}, as {picture.name} has", got=got)
    return places


def region(words: str, height: int, width: int, *, generator: torch.Generator) -> Places:
    """bool (H, W): the part of a picture that these words name."""
    said = words.strip().lower()
    if not said:
        raise refuse("what is erased", expected=_HELP, got="nothing")
    places = np.zeros((height, width), dtype=bool)
    if said in PARTS:
        return _named(said, places, generator)
    if share := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", said):
        if not 0 < float(share[1]) <= 100:
            raise refuse(f"erase {words}", expected="a share above 0 and up to 100 %", got=share[1])
        chance = torch.rand(height, width, generator=generator, dtype=torch.float64).numpy()
        return chance < float(share[1]) / 100
    if found := re.fullmatch(r"(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)", said):
        left, top, across, down = map(int, found.groups())
        if not across or not down or left >= width or top >= height:
            raise refuse(f"erase {words}", expected=f"a rectangle inside {width}x{height} pixels", got="none of them")
        places[top : top + down, left : left + across] = True
        return places
    if found := re.fullmatch(r"((?:\d+\s*,\s*\d+\s*)+)/\s*(\d+)", said):
        if not int(found[2]):
            raise refuse(f"erase {words}", expected="a stroke that is a pixel wide or more", got="one of width 0")
        points = [(int(x), int(y)) for x, y in re.findall(r"(\d+)\s*,\s*(\d+)", found[1])]
        return stroke(points, int(found[2]), height, width)
    raise refuse(f"erase {words}", expected=_HELP, got=_near_miss(said))


def _near_miss(said: str) -> str:
    """What is amiss in words that name no part."""
    if re.fullmatch(r"\d*\.?\d+", said):
        return "a number: a share has % behind it"
    if re.fullmatch(r"[-\d,\s/]+", said) and "-" in said:
        return "numbers below 0"
    if said.endswith(SUFFIXES):
        return "the name of a file: --mask or a Path takes it"
    if re.fullmatch(r"(\d+[\s,]+){2}\d+|(\d+\s+){3}\d+", said):
        return "three numbers" if len(re.findall(r"\d+", said)) == 3 else "numbers without commas between them"
    if re.fullmatch(r"\d+\s*,\s*\d+(\s+\d+\s*,\s*\d+)*", said):
        return "points without the width of a stroke, such as / 4, behind them"
    if set(re.split(r"[\s,+]+", said)) <= set(PARTS):
        return "several parts in one: name each by itself"
    return "something else"


def _named(name: str, places: Places, generator: torch.Generator) -> Places:
    height, width = places.shape
    inner = slice(height // 4, height - height // 4), slice(width // 4, width - width // 4)
    if name == "strokes":
        return random_strokes(height, width, generator=generator)
    if name in ("middle", "frame"):
        places[inner] = True
        return places if name == "middle" else ~places
    halves = {"top": np.s_[: height // 2], "bottom": np.s_[height // 2 :]}
    sides = {"left": np.s_[:, : width // 2], "right": np.s_[:, width // 2 :]}
    places[(halves | sides)[name]] = True
    return places


def stroke(points: Sequence[tuple[int, int]], thickness: int, height: int, width: int) -> Places:
    """bool (H, W): a line through points (left, top), with round ends."""
    image = Image.new("1", (width, height))
    pen = ImageDraw.Draw(image)
    half = thickness / 2
    pen.line([*points], fill=1, width=thickness)
    for x, y in points:
        pen.ellipse((x - half + 0.5, y - half + 0.5, x + half - 0.5, y + half - 0.5), fill=1)
    return np.array(image, dtype=bool)


def random_strokes(height: int, width: int, *, generator: torch.Generator) -> Places:
    """bool (H, W): one to four strokes, each a walk of three to six points."""

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    places, side = np.zeros((height, width), dtype=bool), min(height, width)
    for _ in range(number(1, 4)):
        x, y = number(0, width - 1), number(0, height - 1)
        points = [(x, y)]
        for _ in range(number(2, 5)):
            reach = max(1, side // 3)
            x = min(max(x + number(-reach, reach), 0), width - 1)
            y = min(max(y + number(-reach, reach), 0), height - 1)
            points.append((x, y))
        places |= stroke(points, number(max(1, side // 14), max(2, side // 5)), height, width)
    return places
