"""What people leave open in pictures, to train on: scattered patches and pixels, rectangles, halves, strokes.

Every batch asks questions of one kind, drawn by its weight:

    patches      given, asked and ignored patches of uniformly random numbers (``UniformSplits`` over groups)
    rectangles   a hole, a detail that wants its picture, a half (``Rectangles``)
    strokes      one to four strokes of a pen are asked, the rest given (``Strokes``)
    pixels       ``UniformSplits`` over all pixels

One kind a batch, because a network with a token per patch (``OnePassGroups``) reads a patch that is given in part
twice: scattered pixels cost twice the tokens of all others, and a batch costs what its longest row does. Channels of a
pixel go together. Together the kinds train p(asked | given) for every choice of pixels: ``pixels`` alone does. Of
colours no more than whole pixels is promised: a channel given part of its own pixel is never asked.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import require_counts
from anyfill.questions import Factorization, Question, Rectangles, Strokes, UniformSplits
from anyfill.questions.question import Family

KINDS = ("patches",) * 4 + ("rectangles",) * 6 + ("strokes",) * 4 + ("pixels",)
"""One of these, each as often as the others."""


@dataclass(frozen=True, slots=True)
class PictureQuestions(Family):
    """Questions about pictures of height x width pixels.

    Attributes:
        height, width, channels: of a picture; variables lie row by row, a pixel's channels together.
        patch: side of the patches.
    """

    height: int
    width: int
    channels: int = 1
    patch: int = 2

    def __post_init__(self) -> None:
        require_counts(self, "height", "width", "channels", "patch")

    @property
    def variables(self) -> int:
        return self.height * self.width * self.channels

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """Those of ``UniformSplits``, one of the parts; of several channels, questions of whole pixels."""
        if self.channels > 1:
            return frozenset({Factorization.WHOLE})
        return UniformSplits(self.variables).path_factorizations

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions of one kind, tensors (B, N)."""
        kind = KINDS[int(torch.randint(len(KINDS), (), generator=generator, device=generator.device))]
        if kind == "patches":
            down, across = -(-self.height // self.patch), -(-self.width // self.patch)
            drawn = UniformSplits(down * across).sample(batch, generator=generator)
            return Question(*(self._spread(part.view(batch, down, across)) for part in (drawn.given, drawn.asked)))
        if kind == "strokes":
            drawn = strokes_of(self.height, self.width).sample(batch, generator=generator)
        elif kind == "rectangles" and min(self.height, self.width) > 1:
            drawn = Rectangles(self.height, self.width).sample(batch, generator=generator)
        else:
            drawn = UniformSplits(self.height * self.width).sample(batch, generator=generator)
        return Question(self._pixels(drawn.given), self._pixels(drawn.asked))

    def _spread(self, patches: Tensor) -> Tensor:
        """bool (B, N) from patches (B, h, w)."""
        full = patches.repeat_interleave(self.patch, 1).repeat_interleave(self.patch, 2)
        return self._pixels(full[:, : self.height, : self.width].flatten(1))

    def _pixels(self, pixels: Tensor) -> Tensor:
        """bool (B, N) from pixels (B, H W)."""
        return pixels.flatten(1).repeat_interleave(self.channels, 1)


def strokes_of(height: int, width: int) -> Strokes:
    """One to four strokes of a pen, 1/14 to 1/5 of the shorter side wide."""
    side = min(height, width)
    tip = max(1.5, side / 14)
    return Strokes(height, width, most=4, thinnest=tip, thickest=max(tip, side / 5))
