"""What people leave open in pictures, to train on: scattered patches and pixels, rectangles, halves, strokes.

Every batch asks questions of one kind, drawn by its weight:

    patches      given, asked and ignored patches of uniformly random numbers (``UniformSplits`` over groups)
    rectangles   a hole, a detail that wants its picture, a half (``Rectangles``)
    strokes      one to four strokes of a pen are asked, each a walk of four points, the rest given
    pixels       ``UniformSplits`` over all pixels

One kind a batch, because a network with a token per patch (``OnePassGroups``) reads a patch that is given in part
twice: scattered pixels cost twice the tokens of all others, and a batch costs what its longest row does. Channels of a
pixel go together. Together the kinds train p(asked | given) for every choice of pixels: ``pixels`` alone does.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import require_counts
from anyfill.questions import Factorization, Question, Rectangles, UniformSplits
from anyfill.questions.question import Family

KINDS = ("patches",) * 4 + ("rectangles",) * 6 + ("strokes",) * 4 + ("pixels",)
"""One of these, each as often as the others."""
_STROKES, _POINTS = 4, 4


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
        """Those of ``UniformSplits``, one of the parts."""
        return UniformSplits(self.variables).path_factorizations

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions of one kind, tensors (B, N)."""
        kind = KINDS[int(torch.randint(len(KINDS), (), generator=generator, device=generator.device))]
        if kind == "patches":
            down, across = -(-self.height // self.patch), -(-self.width // self.patch)
            drawn = UniformSplits(down * across).sample(batch, generator=generator)
            return Question(*(self._spread(part.view(batch, down, across)) for part in (drawn.given, drawn.asked)))
        if kind == "strokes":
            asked = strokes(batch, self.height, self.width, generator=generator)
            return Question(self._pixels(~asked), self._pixels(asked))
        if kind == "rectangles" and min(self.height, self.width) > 1:
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


def strokes(batch: int, height: int, width: int, *, generator: Generator) -> Tensor:
    """bool (B, H W): one to four strokes, each through four points of a walk, 1/14 to 1/5 of the side wide.

    A pixel belongs to a stroke if it lies within half its width of one of its segments.
    """

    def uniform(*shape: int) -> Tensor:
        return torch.rand(batch, *shape, generator=generator, device=generator.device)

    side = min(height, width)
    size = torch.tensor([height, width], device=generator.device)
    steps = (uniform(_STROKES, _POINTS, 2) - 0.5) * (2 * side / 3)
    start = uniform(_STROKES, 1, 2) * size
    points = torch.minimum((torch.cat([start, steps[:, :, 1:]], 2)).cumsum(2).clamp(min=0), size - 1.0)
    reach = (side / 14 + uniform(_STROKES) * (side / 5 - side / 14)).clamp(min=1.0) / 2
    real = torch.arange(_STROKES, device=generator.device) <= (uniform(1) * _STROKES).long()
    row = torch.arange(height, device=generator.device).repeat_interleave(width)
    column = torch.arange(width, device=generator.device).repeat(height)
    pixel = torch.stack([row, column], 1).float()  # (H W, 2)
    begin, along = points[:, :, :-1].unsqueeze(3), (points[:, :, 1:] - points[:, :, :-1]).unsqueeze(3)
    offset = pixel - begin  # (B, strokes, segments, H W, 2)
    part = ((offset * along).sum(-1) / along.square().sum(-1).clamp(min=1e-6)).clamp(0, 1)
    distance = (offset - part.unsqueeze(-1) * along).square().sum(-1).amin(2)
    hit = (distance <= reach.square().unsqueeze(2)) & real.unsqueeze(2)
    asked = hit.any(1)
    # One pixel at least: that where the first stroke begins.
    first = (points[:, 0, 0, 0].long() * width + points[:, 0, 0, 1].long()).unsqueeze(1)
    return asked.scatter(1, first, True)
