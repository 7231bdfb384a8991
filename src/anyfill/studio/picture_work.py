"""What is asked about pictures, by the verbs of ``anyfill.images``."""

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anyfill import images
from anyfill.images.filling import Frame
from anyfill.images.resizing import resized
from anyfill.interface.output import jsonable
from anyfill.interface.progress import metered
from anyfill.studio.how import arguments, options, spending
from anyfill.studio.models import Models
from anyfill.studio.picture_form import WirePicture, packed

if TYPE_CHECKING:
    from anyfill.studio.jobs import Job
    from anyfill.studio.picture_routes import FillPicture

SHOW_EVERY = 0.15
"""Seconds between two looks at alternatives that are being drawn."""
EXAMPLES = 8


def fills(models: Models, asked: "FillPicture", job: "Job") -> dict[str, Any]:
    """Fill what is erased in several ways; shows them as they are drawn."""
    entry, model = models.entry("images", asked.model), models.get("images", asked.model)
    picture, seed = asked.picture.picture(), asked.seed or 0
    draw = (("temperature", asked.temperature, 1.0), ("sampler", asked.sampler, "exact"), ("steps", asked.steps, None))
    how: dict[str, Any] = {name: value for name, value, _ in draw}
    with spending() as spent:
        bits, shown = np.zeros(picture.pixels.shape[:2]), 0.0
        last = next(model.trace(picture, n=asked.n, seed=seed, **how))
        frames = last.filling.frames(bits)  # the same ones, and on their way how uncertain each pixel is
        for last in metered(((frame, frame.share) for frame in frames), "filling"):
            if time.monotonic() - shown > SHOW_EVERY:
                shown = time.monotonic()
                job.send("frame", {"pictures": _packed(last), "known": packed(last.known.astype(np.uint8))})
        account = spent.how(
            given=f"{int(picture.known.sum()):,} pixels",
            asked=f"{int((~picture.known).sum()):,} erased pixels, jointly",
            kind="exact" if asked.steps is None else "estimate",
            why=_why(asked),
            python=f"images.load({entry.place!r}).fill('picture.png', 'mask.png', "
            f"n={asked.n}, seed={seed}{arguments(draw)})",
            cli=f"anyfill image fill picture.png --mask mask.png -n {asked.n} --seed {seed}"
            f"{options(draw)} --model {entry.place}",
        )
    result: dict[str, Any] = {"pictures": _packed(last), "channels": int(last.pixels.shape[3]), "seed": seed}
    whole = metered(((one, (n + 1) / asked.n) for n, one in enumerate(last.pixels)), "scoring")
    result["bits"] = [_bits(model.score(one, invert=last.filling.inverted)) for one in whole]
    return jsonable({**result, "uncertainty": _rounded(bits), "how": account})


def scored(models: Models, wire: WirePicture, key: str) -> dict[str, Any]:
    """Exact bits of what is seen, pixel by pixel."""
    entry, model = models.entry("images", key), models.get("images", key)
    with spending() as spent:
        found = model.score(wire.picture())
        how = spent.how(
            given="of each pixel all that come before it in the model's order",
            asked="every pixel that is not erased",
            kind=found.kind,
            why="the chain rule: surprises sum to -log2 p of the picture",
            python=f"images.load({entry.place!r}).score('picture.png')",
            cli=f"anyfill image score picture.png --model {entry.place}",
        )
    figures = {"bits": _bits(found), "bits_per_dimension": found.bits_per_dimension}
    return jsonable({**figures, "surprise": _rounded(found.surprise), "remarks": list(found.remarks), "how": how})


def opened(path: Path, name: str, width: int, height: int) -> dict[str, Any]:
    """The picture in a file, cropped and shrunk."""
    try:
        picture = images.read_picture(path)
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), name).replace(path.name, name)) from None
    small = resized(picture, (height, width))
    return {**_wire(small.pixels), "remarks": list(picture.remarks)}


def to_begin_with(models: Models, key: str) -> dict[str, Any]:
    """Pictures of the size of a model: digits where they suit it, else its own draws."""
    model = models.get("images", key)
    about = model.about
    if about.channels == 1 and about.levels == 2 and "digit" in model.name:
        from sklearn.datasets import load_digits
        from torch import from_numpy
        from torch.nn.functional import interpolate

        small: Any = load_digits()
        chosen = small.images[[10, 11, 12, 13, 14, 25, 16, 17][:EXAMPLES]]
        inner = (round(0.72 * about.height), round(0.72 * about.width))
        large = interpolate(from_numpy(chosen).float().unsqueeze(1), inner, mode="bicubic")[:, 0].numpy()
        found = np.zeros((len(large), about.height, about.width, 1), dtype=np.uint8)
        top, left = (about.height - inner[0]) // 2, (about.width - inner[1]) // 2
        found[:, top : top + inner[0], left : left + inner[1], 0] = np.where(large > 7, 255, 0)
        return {"pictures": [_wire(one) for one in found], "source": "scikit-learn's handwritten digits, enlarged"}
    drawn = model.sample(EXAMPLES, seed=0)
    return {"pictures": [_wire(one.pixels) for one in drawn], "source": "drawn by the model, seed 0"}


def _why(asked: "FillPicture") -> str:
    if asked.steps is not None:
        return f"{asked.steps} steps: pixels of a step are drawn each by itself, which is not the model's joint law"
    return f"draws from the model's {'own law' if asked.temperature == 1 else 'law, sharpened as you chose'}"


def _bits(found: images.Score) -> float:
    return found.nats / math.log(2)


def _wire(pixels: Any) -> dict[str, Any]:
    height, width, channels = pixels.shape
    return {"width": width, "height": height, "channels": channels, "pixels": packed(np.ascontiguousarray(pixels))}


def _packed(frame: Frame) -> list[str]:
    return [packed(np.ascontiguousarray(one)) for one in frame.pixels]


def _rounded(bits: Any) -> list[list[float]]:
    return [[round(float(one), 4) for one in row] for row in bits]
