"""A model of pictures and what can be asked of it: one of those that ship with anyfill, or a folder of the user's own.

Its variables are the channels of the pixels, row by row from the top left, a pixel's channels together. What the model
is of, it notes: size, channels, levels, how black and white was made, and how light the border of its pictures is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.checks import refuse, require_count, require_seed
from anyfill.images.about import NOTES, About
from anyfill.images.erasing import Erasing, erased_in
from anyfill.images.filling import AT_ONCE, Bits, Filling, Fills, Frame
from anyfill.images.picture import Picture, PictureLike, as_picture
from anyfill.images.scales import enlarged, smaller_holes, with_smaller_holes
from anyfill.images.scoring import Score, scored
from anyfill.images.seeing import Eye, Ready
from anyfill.interface.options import chosen_seed
from anyfill.interface.progress import metered
from anyfill.interface.threads import free_threads, threads
from anyfill.model import Model
from anyfill.samplers import Confidence, Draw, EntropyBounded, Follow, Sampler, Speculative
from anyfill.training import load_model, load_notes

SHIPPED = {"digits": "models/digits", "fashion": "models/fashion"}
"""Where the package keeps its own models."""
SAMPLERS = ("exact", "speculative", "confidence", "entropy-bounded")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ImageModel:
    """A trained model of pictures.

    Pictures are names of files, images of Pillow, arrays or tensors (``as_picture``), of any size. What is erased is a
    bool array (H, W), the name of a mask file, words such as "bottom" or "8,4,12,12", or a rectangle as four numbers
    (``anyfill.images.erasing``); transparent pixels and NaN are erased by themselves.

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
        resize: bool | None = None,
        invert: bool | None = None,
        progress: bool = False,
    ) -> Fills:
        """Fill what is erased of a picture, in several ways; what is given is never changed.

        Args:
            picture: what to fill, of any size; see ``resize``.
            erased: what to fill; None = what is transparent or NaN.
            n: how many alternatives.
            seed: of everything random; None = a new one, which the result has.
            temperature: below 1 is safer, above 1 bolder.
            sampler: "exact", one by one; "speculative", the same law in fewer passes where the network can;
                "confidence", the surest first in so many ``steps``, and "entropy-bounded", as many at once as are
                nearly independent, which are approximations; or one of ``anyfill.samplers``.
            steps: of "confidence"; with "exact" so many groups of pixels, those of a group drawn each by itself
                (ARDM's S'): a trade of quality for passes, not the model's law; None = as ``sampler`` says.
            resize: how a picture that is larger than the model's is filled. True: cropped and shrunk to that size, and
                returned so. False: at its own scale, in as many overlapping windows as it takes. None: in a window
                around each hole; for a hole that none holds (more than three quarters of it), the picture is shrunk,
                what is drawn enlarged and laid in.
            invert: read light as dark, and turn what is drawn back; None = if the border says so.
            progress: show on stderr how far it is.
        """
        seed = chosen_seed(seed)
        options: dict[str, Any] = {"temperature": temperature, "sampler": sampler, "steps": steps, "progress": progress}
        return self.fill_prepared(
            self.prepared(picture, erased, seed=seed, resize=resize, invert=invert), n, seed, **options
        )

    def fill_prepared(
        self,
        ready: Ready,
        n: int,
        seed: int,
        *,
        temperature: float = 1.0,
        sampler: str | Sampler = "exact",
        steps: int | None = None,
        progress: bool = False,
    ) -> Fills:
        """``fill`` of what ``prepared`` returned: for whoever wants to see its remarks before anything is drawn."""
        require_count("n", n, maximum=1000)
        draw, how = _draw(temperature), self._sampler(sampler, steps, ready)
        source = torch.Generator().manual_seed(seed)

        def filled(work: Filling, words: str, *, look: bool) -> Fills:
            """All windows of a picture; how uncertain pixels are only if it is looked at."""
            bits = np.zeros(work.picture.pixels.shape[:2])
            frames = work.frames(bits if look else None)
            watched = metered(((frame, frame.share) for frame in frames), words) if progress else frames
            return work.fills(watched, bits)

        parts: list[Fills] = []
        # The model is looked through once, not at every step; nothing is kept for gradients, as only pixels leave.
        with threads(free_threads()), torch.inference_mode(), self.model.evaluating():
            for begin in range(0, n, AT_ONCE):  # of one generator, so that no two seeds share draws
                work = self._filling(ready, min(AT_ONCE, n - begin), draw, how, seed, source)
                part = filled(work, "filling" if ready.whole.known.any() else "drawing", look=begin == 0)
                if ready.is_shrunk:
                    part = enlarged(part, ready.whole, levels=self.about.levels, channels=self.about.channels)
                if ready.apart_plan:
                    work = smaller_holes(work, part, ready.apart, ready.apart_plan)
                    part = with_smaller_holes(part, filled(work, "filling smaller holes", look=begin == 0), ready.apart)
                parts.append(part)
        name = Path(ready.whole.name)
        pictures = (one for part in parts for one in part)
        named = (replace(one, name=f"{name.stem}-{number}{name.suffix}") for number, one in enumerate(pictures, 1))
        return replace(parts[0], pictures=tuple(named))

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
        resize: bool | None = None,
        invert: bool | None = None,
    ) -> Iterator[Frame]:
        """The steps of ``fill``, of at most 32 alternatives: each has the pictures so far, and what is known.

        A picture that is shrunk to be filled is seen as small as the model sees it, and smaller holes of it with the
        large ones.
        """
        require_count("n", n, maximum=AT_ONCE)
        ready = self.prepared(picture, erased, seed=seed, resize=resize, invert=invert)
        return self._filling(ready, n, _draw(temperature), self._sampler(sampler, steps, ready), seed).frames()

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
        source = torch.Generator().manual_seed(require_seed("seed", seed))
        return scored(self.model, Eye(self.about, self.name), whole, erased, invert=invert, generator=source)

    def surprise(self, picture: PictureLike, *, invert: bool | None = None) -> Bits:
        """float64 (H, W): bits of each pixel given those before it, exact, in one pass; see ``Score.surprise``."""
        return self.score(picture, invert=invert).surprise

    def prepared(
        self,
        picture: PictureLike,
        erased: Erasing | None = None,
        *,
        seed: int = 0,
        resize: bool | None = None,
        invert: bool | None = None,
    ) -> Ready:
        """The picture as it will be filled, with what is changed about it in its remarks; options as in ``fill``."""
        source = torch.Generator().manual_seed(require_seed("seed", seed))
        whole = erased_in(as_picture(picture), erased, generator=source)
        return Eye(self.about, self.name).prepared(whole, resize=resize, invert=invert)

    def _filling(
        self, ready: Ready, n: int, draw: Draw, how: Sampler | None, seed: int, source: torch.Generator | None = None
    ) -> Filling:
        what = (self.model, self.about.shape, self.about.levels, ready.picture, ready.plan, ready.inverted)
        return Filling(*what, n, draw, how, seed, source)

    def _sampler(self, sampler: str | Sampler, steps: int | None, ready: Ready) -> Sampler | None:
        require_sampler(sampler, steps)
        if steps is not None:
            most = min(self.about.dimensions, int((~ready.picture.known).sum()) * self.about.channels)
            if steps >= most:  # one by one, which is the law itself, and has a faster way
                return None
            return Follow(groups=steps) if sampler == "exact" else Confidence(steps)
        if not isinstance(sampler, str):
            return sampler
        return {"speculative": Speculative(), "entropy-bounded": EntropyBounded()}.get(sampler)


def require_sampler(sampler: str | Sampler, steps: int | None) -> None:
    """ValueError unless this is a sampler with the steps that it has to have, or may."""
    # Whoever calls may not check types.
    if sampler not in SAMPLERS if isinstance(sampler, str) else not isinstance(sampler, Sampler):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("sampler", expected=f"{' or '.join(SAMPLERS)}, or one of anyfill.samplers", got=repr(sampler))
    if steps is not None:
        require_count("steps", steps)
        if sampler not in ("exact", "confidence"):
            raise refuse("steps", expected="the sampler exact, which they divide, or confidence", got=repr(sampler))
    elif sampler == "confidence":
        raise refuse("sampler confidence", expected="steps beside it", got="none")


def _draw(temperature: float) -> Draw:
    try:
        return Draw(temperature=temperature)
    except TypeError:  # what cannot be compared with a number
        raise refuse("temperature", expected="a number of at least 0", got=repr(temperature)) from None


def load(model: str | Path = "digits") -> ImageModel:
    """A model of pictures, ready to be asked.

    Args:
        model: "digits" (28x28, black and white) or "fashion" (28x28, grey), which ship with anyfill; or a folder made
            by ``anyfill image train``: a ``Path``, or any other text, such as "./digits".
    """
    # Whoever calls may not check types. A Path is always a folder: as a text, that of ./digits is "digits".
    if not isinstance(model, str | Path) or model == "":  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("model", expected=f"{', '.join(SHIPPED)}, or the folder of a model", got=repr(model))
    if isinstance(model, Path) or model not in SHIPPED:
        return _load(Path(model), str(model))
    with resources.as_file(resources.files("anyfill").joinpath(SHIPPED[model])) as shipped:
        if not (shipped / "config.json").is_file():
            raise refuse("model", expected="the folder of a model (this anyfill comes without it)", got=model)
        return _load(shipped, model)


def _load(folder: Path, name: str) -> ImageModel:
    if not folder.exists():
        raise refuse("model", expected=f"{', '.join(SHIPPED)}, or the folder of a model", got=name)
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
