"""A model of pictures and what can be asked of it: one of those that ship with anyfill, or a folder of the user's own.

Its variables are the channels of the pixels, row by row from the top left, a pixel's channels together. What the model
is of, it notes: size, channels, levels, how black and white was made, and how light the border of its pictures is.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.evaluation import LogProb, log_prob
from anyfill.evaluation.chain import terms
from anyfill.images.erasing import Erasing, erased_in
from anyfill.images.filling import Bits, Filling, Fills, Frame
from anyfill.images.picture import Picture, PictureLike, as_picture
from anyfill.images.reading import codes_of, resized
from anyfill.images.sheets import heat_sheet
from anyfill.images.windows import windows
from anyfill.interface.options import chosen_seed
from anyfill.interface.progress import metered
from anyfill.interface.threads import free_threads, threads
from anyfill.model import Model
from anyfill.questions.question import Question, chain_rank
from anyfill.samplers import Draw, Follow, Sampler, Speculative
from anyfill.training import load_model, load_notes

SHIPPED = {"digits": "models/digits", "fashion": "models/fashion"}
"""Where the package keeps its own models."""
SAMPLERS = ("exact", "speculative")
AT_ONCE = 32
"""Alternatives that are drawn side by side."""
NOTES = "images"


@dataclass(frozen=True, slots=True)
class About:
    """What a model is of; kept in its notes.

    Attributes:
        height, width, channels: of its pictures.
        levels: of a channel, 2 to 256.
        binary: how two levels were made of 256: "threshold", "dynamic" or "static".
        border: mean level, 0 to 255, along the edge of the pictures it was trained on.
    """

    height: int
    width: int
    channels: int
    levels: int
    binary: str | None = None
    border: float = 128.0

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels

    @property
    def dimensions(self) -> int:
        """N."""
        return self.height * self.width * self.channels

    def __str__(self) -> str:
        colours = "grey" if self.channels == 1 else "colour"
        depth = f"black and white ({self.binary})" if self.levels == 2 else f"{colours}, {self.levels} levels"
        return f"{self.width}x{self.height}, {depth}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Score:
    """How likely a picture is, or a part of it given the rest.

    Attributes:
        picture: as the model saw it; what is erased of it was asked, or everything where nothing is.
        nats: - log p, natural logarithms.
        asked: how many numbers that is of (pixels times channels).
        kind: "exact", "bound" or "estimate".
        surprise: bits (H, W) of each asked pixel, given all that came before it in the model's order; they sum to the
            score of an exact one.
        remarks: what was changed on the way.
    """

    picture: Picture
    nats: float
    asked: int
    kind: str
    surprise: Bits
    remarks: tuple[str, ...] = ()

    @property
    def bits_per_dimension(self) -> float:
        """nats / (asked numbers · ln 2)."""
        return self.nats / self.asked / math.log(2) if self.asked else 0.0

    def __repr__(self) -> str:
        return f"<Score of {self.picture.name}: {self.describe()}>"

    def describe(self) -> str:
        """In words."""
        return f"{self.nats:.2f} nats, {self.bits_per_dimension:.4f} bits per dimension of {self.asked:,} ({self.kind})"

    def sheet(self) -> Picture:
        """The picture beside the heat map of its surprise."""
        return heat_sheet(self.picture, self.surprise)

    def save(self, path: str | Path) -> None:
        """Write the sheet as a PNG file."""
        self.sheet().save(path)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ImageModel:
    """A trained model of pictures.

    Pictures are names of files, images of Pillow, arrays or tensors (``as_picture``), of any size. What is erased is a
    bool array (H, W), the name of a mask file, or words such as "bottom" or "8,4,12,12" (``anyfill.images.erasing``);
    transparent pixels and NaN are erased by themselves.

    Attributes:
        model: p(asked | given) over the channels of the pixels; 32-bit weights, in evaluation mode.
        about: what it is of.
        name: what to call it.
    """

    model: Model
    about: About
    name: str

    def __repr__(self) -> str:
        weights = sum(parameter.numel() for parameter in self.model.parameters())
        return f"ImageModel({self.name}: {self.about}, {weights:,} weights)"

    def fill(
        self,
        picture: PictureLike,
        erased: Erasing | None = None,
        *,
        n: int = 4,
        seed: int | None = None,
        temperature: float = 1.0,
        sampler: str | Sampler = "exact",
        steps: int | None = None,
        resize: bool = False,
        invert: bool | None = None,
        progress: bool = False,
    ) -> Fills:
        """Fill what is erased of a picture, in several ways; what is given is never changed.

        Args:
            picture: what to fill. Larger than the model's pictures it is filled in windows around the hole.
            erased: what to fill; None = what is transparent or NaN.
            n: how many alternatives.
            seed: of everything random; None = a new one, which the result has.
            temperature: below 1 is safer, above 1 bolder.
            sampler: "exact", one by one; "speculative", the same law in fewer passes where the network can; or one of
                ``anyfill.samplers``.
            steps: so many groups of pixels, those of a group drawn each by itself (ARDM's S'): a trade of quality
                for passes, not the model's law; None = as ``sampler`` says.
            resize: crop and shrink the picture to the model's size first.
            invert: read light as dark, and turn what is drawn back; None = if the border says so.
            progress: show on stderr how far it is.
        """
        require_count("n", n, maximum=1000)
        seed = chosen_seed(seed)
        ready, inverted = self.prepared(picture, erased, seed=seed, resize=resize, invert=invert)
        uncertainty = np.zeros(ready.pixels.shape[:2])
        parts: list[Fills] = []
        draw = Draw(temperature=temperature)
        for begin in range(0, n, AT_ONCE):
            count = min(AT_ONCE, n - begin)
            work = Filling(
                self.model,
                self.about.shape,
                self.about.levels,
                ready,
                inverted,
                count,
                draw,
                self._sampler(sampler, steps),
                seed + begin,
            )
            frames = work.frames(uncertainty if begin == 0 else None)
            with threads(free_threads()), self.model.evaluating():  # looked through once, not at every step
                watched = metered(((frame, frame.share) for frame in frames), "filling") if progress else frames
                parts.append(work.fills(watched, uncertainty))
        pictures = tuple(one for part in parts for one in part)
        return replace(parts[0], pictures=pictures, seed=seed)

    def trace(
        self,
        picture: PictureLike,
        erased: Erasing | None = None,
        *,
        n: int = 4,
        seed: int = 0,
        temperature: float = 1.0,
        sampler: str | Sampler = "exact",
        steps: int | None = None,
        resize: bool = False,
        invert: bool | None = None,
    ) -> Iterator[Frame]:
        """The steps of ``fill``, of at most 32 alternatives: each has the pictures so far, and what is known."""
        require_count("n", n, maximum=AT_ONCE)
        ready, inverted = self.prepared(picture, erased, seed=seed, resize=resize, invert=invert)
        draw, how = Draw(temperature=temperature), self._sampler(sampler, steps)
        about = self.about
        return Filling(self.model, about.shape, about.levels, ready, inverted, n, draw, how, seed).frames()

    def sample(
        self,
        n: int = 1,
        *,
        seed: int | None = None,
        temperature: float = 1.0,
        sampler: str | Sampler = "exact",
        steps: int | None = None,
        progress: bool = False,
    ) -> list[Picture]:
        """New pictures, drawn from nothing; options as in ``fill``."""
        seed = chosen_seed(seed)
        about = self.about
        blank = Picture(
            np.zeros(about.shape, dtype=np.uint8), np.ones(about.shape[:2], dtype=bool), f"{self.name}-{seed}.png"
        )
        options: dict[str, Any] = {"temperature": temperature, "sampler": sampler, "steps": steps, "progress": progress}
        return [*self.fill(blank, n=n, seed=seed, invert=False, **options)]

    def score(
        self, picture: PictureLike, erased: Erasing | None = None, *, invert: bool | None = None, seed: int = 0
    ) -> Score:
        """How likely a picture is, or, where something is said to be erased, that part given the rest.

        Args:
            picture: larger than the model's pictures it is cropped and shrunk; of a smaller one what lies around it is
                left open. What is transparent in it is neither asked nor given.
            erased: the part to be scored given the rest; None = everything from nothing.
            invert: as in ``fill``.
            seed: of erased places that are drawn at random.
        """
        whole = as_picture(picture)
        if whole.height > self.about.height or whole.width > self.about.width:
            whole = self._resized(whole)
        there = whole.known
        source = torch.Generator().manual_seed(seed)
        asked = there
        if erased is not None:
            asked = there & ~erased_in(replace(whole, erased=None), erased, generator=source).known
        if not asked.any():
            raise refuse(f"{whole.name}", expected="a pixel at least to be scored", got="none")
        whole, inverted = self._seen(whole, invert)
        window, *_ = windows(np.ones_like(there), self.about.height, self.about.width)
        inside, own = window.inside(there.shape), window.own(there.shape)
        x = torch.zeros(1, *self.about.shape, dtype=torch.int64)
        seen = whole.with_channels(self.about.channels).pixels
        x[0, own[0], own[1]] = codes_of(255 - seen if inverted else seen, self.about.levels)[inside]
        question = Question(*(self._variables(places[inside], own) for places in (there & ~asked, asked)))
        with threads(free_threads()):
            found = log_prob(self.model, x.flatten(1), question)
            bits = self._surprise(x.flatten(1), question, found)
        surprise = np.zeros(there.shape)
        surprise[inside] = bits.reshape(self.about.shape).sum(2).numpy()[own]
        shown = whole if erased is None else replace(whole, erased=~there | asked)
        count = int(question.asked.sum())
        return Score(shown, -float(found.value[0]), count, found.kind, surprise, whole.remarks)

    def surprise(self, picture: PictureLike, *, invert: bool | None = None) -> Bits:
        """float64 (H, W): bits of each pixel given those before it, exact, in one pass; see ``Score.surprise``."""
        return self.score(picture, invert=invert).surprise

    def prepared(
        self,
        picture: PictureLike,
        erased: Erasing | None = None,
        *,
        seed: int = 0,
        resize: bool = False,
        invert: bool | None = None,
    ) -> tuple[Picture, bool]:
        """The picture as it will be filled, with what is changed about it in its remarks, and whether light is dark."""
        source = torch.Generator().manual_seed(seed)
        whole = erased_in(as_picture(picture), erased, generator=source)
        if whole.erased is None or not whole.erased.any():
            expected = "something erased (a mask, transparent pixels, or --erase)"
            raise refuse(f"{whole.name}", expected=expected, got="nothing erased")
        if resize:
            whole = self._resized(whole)
        remarks = list(whole.remarks)
        size = f"{self.about.width}x{self.about.height}"
        if whole.erased is not None and whole.erased.all() and whole.pixels.any():
            remarks.append(f"{whole.name} is erased as a whole: drawn from nothing")
        if whole.height < self.about.height or whole.width < self.about.width:
            remarks.append(f"{whole.name} is {whole.size}: in the middle of {size}, what is around it left open")
        if whole.height > self.about.height or whole.width > self.about.width:
            count = len(windows(~whole.known, self.about.height, self.about.width))
            many = "one window" if count == 1 else f"{count} overlapping windows"
            remarks.append(f"{whole.name} is {whole.size}: filled in {many} of {size} (--resize shrinks it instead)")
        return self._seen(replace(whole, remarks=tuple(remarks)), invert)

    def _seen(self, whole: Picture, invert: bool | None) -> tuple[Picture, bool]:
        """The picture with what the model does not see of it in the remarks, and whether it sees light as dark."""
        remarks = list(whole.with_channels(self.about.channels).remarks)
        inverted = self._is_inverted(whole) if invert is None else invert
        if inverted and invert is None:
            remarks.append(f"{whole.name} is light where {self.name} is dark: read inverted, and turned back")
        levels = np.unique(whole.pixels[whole.known])
        if self.about.levels == 2 and not set(levels.tolist()) <= {0, 255}:
            remarks.append(f"{whole.name} is read as black and white, from level 128 on")
        return replace(whole, remarks=tuple(remarks)), inverted

    def _is_inverted(self, picture: Picture) -> bool:
        """Whether what is known along the edge is nearer to the inverse of what the model knows, by far."""
        edge = np.ones(picture.pixels.shape[:2], dtype=bool)
        edge[1:-1, 1:-1] = False
        known = edge & picture.known
        if not known.any():
            return False
        level = float(picture.pixels[known].mean())
        return abs(level - self.about.border) > abs(255 - level - self.about.border) + 64

    def _resized(self, picture: Picture) -> Picture:
        size = f"{self.about.width}x{self.about.height}"
        remark = f"{picture.name} is {picture.size}: cropped and resized to {size}"
        small = resized(picture, (self.about.height, self.about.width))
        same = small.pixels.shape == picture.pixels.shape
        return picture if same else replace(small, remarks=(*picture.remarks, remark))

    def _variables(self, places: np.ndarray[Any, np.dtype[np.bool_]], own: tuple[slice, slice]) -> Tensor:
        """bool (1, N): the variables of these places inside the window."""
        full = np.zeros(self.about.shape[:2], dtype=bool)
        full[own] = places
        return torch.from_numpy(full).flatten().repeat_interleave(self.about.channels).unsqueeze(0)

    def _surprise(self, x: Tensor, question: Question, found: LogProb) -> Tensor:
        """float64 (N,): bits of each asked variable, in the model's order."""
        rank = chain_rank(self.model.order, question)
        return -terms(self.model, x, rank)[0] / math.log(2)

    def _sampler(self, sampler: str | Sampler, steps: int | None) -> Sampler | None:
        if steps is not None:
            require_count("--steps", steps)
            if sampler != "exact":
                raise refuse("--steps", expected="no --sampler beside it", got=repr(sampler))
            return Follow(groups=steps)
        if not isinstance(sampler, str):
            return sampler
        if sampler not in SAMPLERS:
            raise refuse("--sampler", expected=" or ".join(SAMPLERS), got=repr(sampler))
        return Speculative() if sampler == "speculative" else None


def load(model: str | Path = "digits") -> ImageModel:
    """A model of pictures, ready to be asked.

    Args:
        model: "digits" (28x28, black and white) or "fashion" (28x28, grey), which ship with anyfill; or a folder made
            by ``anyfill image train``.
    """
    if str(model) not in SHIPPED:
        return _load(Path(model), str(model))
    with resources.as_file(resources.files("anyfill").joinpath(SHIPPED[str(model)])) as shipped:
        if not (shipped / "config.json").is_file():
            raise refuse("--model", expected="the folder of a model (this anyfill comes without it)", got=str(model))
        return _load(shipped, str(model))


def _load(folder: Path, name: str) -> ImageModel:
    if not folder.exists():
        raise refuse("--model", expected=f"{', '.join(SHIPPED)}, or the folder of a model", got=name)
    noted: Any = load_notes(folder).get(NOTES)
    if not isinstance(noted, Mapping) or "height" not in noted:
        raise refuse(name, expected="a model of pictures (anyfill image train)", got="a model of something else")
    about = About(**{key: noted[key] for key in ("height", "width", "channels", "levels", "binary", "border")})
    model = load_model(folder).float()
    if model.variables != about.dimensions:
        raise refuse(name, expected=f"a model of {about.dimensions} variables", got=model.variables)
    if not model.factorizations:
        raise refuse(name, expected="a trained model", got="one that was never trained")
    return ImageModel(model, about, name)
