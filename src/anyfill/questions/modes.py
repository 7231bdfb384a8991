"""SFARM's seven modes on an image, and what is asked about images: pixels whole, strokes.

**Modes** (SFARM 3.5, eq. 2, 8 to 12). A row is in one of the modes, all equally likely. A mode has a region that is
activated first, in a random order, and its complement second; a question is a uniform step of that:

    random                                      the region is everything: ARDM's step
    left to right, right to left,               the named side first, up to a border
    top to bottom, bottom to top
    interior, exterior                          a rectangle first, or all around it

A direction is no raster scan: it is one side first, random inside. The paper gives neither borders nor sizes.
``borders="fixed"`` is its plain reading: halves, and the middle half of either side. ``borders="random"`` draws the
border of every row: a cut uniform among all, a rectangle as ``Rectangles`` draws it; the halves are among them.

Given its region A the law is that of ``Staged``: a uniform pixel of all S is asked for certain, which decides the
stage, and a uniform share of the others of that stage. So P(known, asked) = 1 / [S C(|stage|, |asked|)].

**PerPixel** asks whole pixels of an image with C channels: SFARM's z is a mask of pixels, and so are rectangles and
strokes. ``PixelOrder`` follows an order of pixels, their channels in order.

**Strokes** are what a brush leaves: a few random walks of the length of a side at most, with a round tip 2 to 6 pixels
wide, are asked given the rest.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal, get_args

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_member
from anyfill.questions.families import below, enumerate_questions, merged, only, uniforms
from anyfill.questions.mixture import Staged, directions, patches
from anyfill.questions.question import Factorization, Family, Order, Question, Questions, Weighted
from anyfill.questions.regions import axis_spans

Mode = Literal["random", "left to right", "right to left", "top to bottom", "bottom to top", "interior", "exterior"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""The seven, in the order in which they are numbered."""


@dataclass(frozen=True, slots=True)
class Modes(Family):
    """A uniform step of a mode that is drawn for each row.

    Attributes:
        height, width: of the image, 2 at least; N = H W pixels.
        borders: "fixed" halves and middles, or "random" ones.
        modes: which of the seven are used.
    """

    height: int
    width: int
    borders: Literal["fixed", "random"] = "fixed"
    modes: tuple[Mode, ...] = MODES

    def __post_init__(self) -> None:
        require_count("Modes height", self.height, minimum=2)
        require_count("Modes width", self.width, minimum=2)
        require_member("borders", self.borders, ("fixed", "random"))
        if not self.modes or len(set(self.modes)) < len(self.modes):
            raise refuse("modes", expected="some of the seven, each once", got=self.modes)
        for mode in self.modes:
            require_member("mode", mode, MODES)

    @property
    def variables(self) -> int:
        return self.height * self.width

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """The random mode trains every variable given every subset; the others make no chain but their own."""
        return frozenset({Factorization.ANY_ORDER}) if "random" in self.modes else frozenset()

    def sample(self, batch: int, *, generator: Generator) -> Question:
        return self.draw(batch, generator=generator)[0]

    def draw(self, batch: int, *, generator: Generator) -> tuple[Question, Tensor]:
        """``batch`` questions, tensors (B, H W), and the number of each row's mode, int64 (B,)."""
        number = below(len(self.modes), batch, generator)
        region = self._regions(batch, generator).gather(1, number.unsqueeze(2).expand(-1, -1, self.variables))[:, 0]
        certain = only(below(self.variables, batch, generator), self.variables)
        second = ~(certain & region).any(1, keepdim=True)
        stage = region != second
        rate = uniforms(batch, 1, generator)
        asked = stage & ((uniforms(batch, self.variables, generator) < rate) | certain)
        return Question((stage & ~asked) | (second & region), asked), number.squeeze(1)

    def _regions(self, batch: int, generator: Generator) -> Tensor:
        """bool (B, M, H W): the first region of every mode, for every row."""
        device = generator.device
        if self.borders == "fixed":
            return _fixed_regions(self, device).expand(batch, -1, -1)
        rows = torch.arange(self.height, device=device).repeat_interleave(self.width)
        columns = torch.arange(self.width, device=device).repeat(self.height)
        left = columns < below(self.width - 1, batch, generator) + 1
        top = rows < below(self.height - 1, batch, generator) + 1
        inner = torch.ones_like(left)
        for place, side in ((rows, self.height), (columns, self.width)):
            begin, end = axis_spans(side, device)
            which = below(len(begin), batch, generator)
            inner = inner & (place >= begin[which]) & (place < end[which])
        every = torch.ones_like(left)
        found = dict(zip(MODES, (every, left, ~left, top, ~top, inner, ~inner)))
        return torch.stack([found[mode] for mode in self.modes], 1)

    def regions_of(self, mode: Mode) -> list[tuple[tuple[bool, ...], Fraction]]:
        """Every region that a mode may begin with, and its probability."""
        shape, size = (self.height, self.width), self.variables
        if mode == "random":
            return [((True,) * size, Fraction(1))]
        if self.borders == "fixed":
            halves = dict(zip(MODES[1:], (*directions(shape), *patches(shape))))
            return [(halves[mode], Fraction(1))]
        cells = [(row, column) for row in range(self.height) for column in range(self.width)]
        across = [[column < cut for _, column in cells] for cut in range(1, self.width)]
        down = [[row < cut for row, _ in cells] for cut in range(1, self.height)]
        inner = [
            [top <= row < bottom and left <= column < right for row, column in cells]
            for top, bottom in zip(*(part.tolist() for part in axis_spans(self.height)))
            for left, right in zip(*(part.tolist() for part in axis_spans(self.width)))
        ]
        found = {"left to right": across, "top to bottom": down, "interior": inner}
        opposite = {"right to left": across, "bottom to top": down, "exterior": inner}
        chosen = found[mode] if mode in found else [[not one for one in region] for region in opposite[mode]]
        return [(tuple(region), Fraction(1, len(chosen))) for region in chosen]

    def support(self) -> list[Weighted]:
        """Every question of every mode and border, once."""
        return merged(
            question._replace(probability=question.probability * share / len(self.modes))
            for mode in self.modes
            for region, share in self.regions_of(mode)
            for question in Staged(region).support()
        )


@cache
def _fixed_regions(family: Modes, device: torch.device) -> Tensor:
    """bool (M, H W): the first region of every mode, of fixed borders; listed once, for every step draws from it."""
    return torch.tensor([family.regions_of(mode)[0][0] for mode in family.modes], device=device)


@dataclass(frozen=True, slots=True)
class PerPixel(Family):
    """Questions about pixels, asked of all their channels at once.

    Attributes:
        questions: about H W pixels.
        channels: C; N = H W C, the channels of a pixel side by side.

    With several channels nothing is promised: a channel given part of its own pixel is never trained.
    """

    questions: Questions
    channels: int

    def __post_init__(self) -> None:
        require_count("channels", self.channels)

    @property
    def variables(self) -> int:
        return self.questions.variables * self.channels

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return self.questions.factorizations if self.channels == 1 else frozenset()

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        return self.questions.path_factorizations if self.channels == 1 else frozenset()

    def sample(self, batch: int, *, generator: Generator) -> Question:
        return self.spread(self.questions.sample(batch, generator=generator))

    def spread(self, question: Question) -> Question:
        """A question about pixels, (B, H W), as one about their channels, (B, H W C)."""
        given, asked = (part.repeat_interleave(self.channels, 1) for part in (question.given, question.asked))
        return Question(given, asked)

    def support(self) -> list[Weighted]:
        """Those of the pixels."""

        def spread(pixels: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(pixel * self.channels + channel for pixel in pixels for channel in range(self.channels))

        return [
            Weighted(spread(one.given), spread(one.asked), one.probability)
            for one in enumerate_questions(self.questions)
        ]


@dataclass(frozen=True, slots=True)
class PixelOrder(Order):
    """Pixel by pixel in an order of pixels, the channels of each in order.

    Attributes:
        order: of the H W pixels.
        channels: C.
    """

    order: Order
    channels: int

    def __post_init__(self) -> None:
        require_count("channels", self.channels)

    @property
    def random(self) -> bool:
        return self.order.random

    @property
    def element(self) -> int:
        """A pixel's channels."""
        return self.channels

    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64: the place of the pixel, then the channel."""
        if variables % self.channels:
            raise refuse("variables", expected=f"a multiple of {self.channels} channels", got=variables)
        pixels = self.order.priority(batch, variables // self.channels, generator=generator)
        place = (pixels[:1] if pixels.stride(0) == 0 else pixels).argsort(1).argsort(1)
        key = place.repeat_interleave(self.channels, 1) * self.channels
        channel = torch.arange(self.channels, device=key.device).repeat(variables // self.channels)
        return (key + channel).expand(batch, variables)


@dataclass(frozen=True, slots=True)
class Strokes(Family):
    """Random walks with a round tip are asked, the rest is given.

    Attributes:
        height, width: of the image.
        most: walks at most; a uniform number from 1.
        thinnest, thickest: diameter of the tip, in pixels; uniform in between.
    """

    height: int
    width: int
    most: int = 3
    thinnest: float = 2.0
    thickest: float = 6.0

    def __post_init__(self) -> None:
        for name in ("height", "width", "most"):
            require_count(f"Strokes {name}", getattr(self, name))
        if not 1.5 <= self.thinnest <= self.thickest < math.inf:
            got = f"{self.thinnest} to {self.thickest}"
            raise refuse("diameters of Strokes", expected="numbers from 1.5 up, the thinner first", got=got)

    @property
    def variables(self) -> int:
        return self.height * self.width

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions, tensors (B, H W)."""
        device, steps = generator.device, max(self.height, self.width)
        walks = batch * self.most

        def numbers(count: int) -> Tensor:
            return torch.rand(walks, count, generator=generator, device=device)

        bend = torch.randn(walks, steps, generator=generator, device=device) * 0.5
        angle = 2 * math.pi * numbers(1) + bend.cumsum(1)
        length = 1 + (numbers(1) * steps).floor()
        radius = (self.thinnest + numbers(1) * (self.thickest - self.thinnest)) / 2
        # Steps of one pixel; a walk that has ended stays where it is.
        moving = torch.arange(steps, device=device) < length
        moving[:, 0] = False
        y = numbers(1) * (self.height - 1) + torch.where(moving, angle.sin(), 0.0).cumsum(1)
        x = numbers(1) * (self.width - 1) + torch.where(moving, angle.cos(), 0.0).cumsum(1)
        rows = torch.arange(self.height, device=device)
        columns = torch.arange(self.width, device=device)
        near = torch.zeros(walks, self.height, self.width, dtype=torch.bool, device=device)
        for step in range(steps):  # one place of all walks at a time: walks x steps x pixels would be much
            up = (rows - y[:, step, None]).square().unsqueeze(2)
            along = (columns - x[:, step, None]).square().unsqueeze(1)
            near |= up + along <= radius.square().unsqueeze(2)
        count = 1 + (torch.rand(batch, 1, generator=generator, device=device) * self.most).floor()
        used = (torch.arange(self.most, device=device) < count)[:, :, None]
        asked = (near.view(batch, self.most, -1) & used).any(1)
        return Question(~asked, asked)
