"""Filling a picture: the holes of the user's picture as questions of the model, and its answers as pictures.

What is given is never changed: filled pixels are laid into the picture as it came, in its own colours. Alternatives are
drawn side by side, and so are windows that see nothing of one another's holes. ``frames`` yields every step of the one
sampling loop (``anyfill.samplers.trace``), so that whoever wants can watch the pictures come to be.

The uncertainty of an erased pixel is the entropy, in bits, of its own distribution given what was known when its window
was opened (mean over the alternatives). Where one window is enough, that is H(pixel | given), each pixel asked alone:
what the network says then and how often many draws are white there need not agree, since nothing makes its answers to
different questions consistent, and single pixels are the least of what it is trained on. Of a coloured pixel it is
the entropy of its first channel: models of colours are trained on whole pixels, so what a channel is without those
before it they do not know.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from anyfill.conditional import Conditional
from anyfill.images.picture import Picture, Pixels, Places
from anyfill.images.reading import bytes_of, codes_of
from anyfill.images.sheets import sheet_of
from anyfill.images.windows import Window, rounds
from anyfill.model import Model
from anyfill.networks.network import Foresees
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import completed
from anyfill.samplers import CachedChain, Draw, Sampler, trace
from anyfill.samplers.cached import Opened

Bits = np.ndarray[Any, np.dtype[np.float64]]
"""(H, W)."""
AT_ONCE = 32
"""Alternatives that are drawn side by side."""
VALUES_AT_ONCE = AT_ONCE * 28 * 28
"""Values of rows that are drawn side by side, alternatives times windows: what is kept of them grows with it."""
_STEP = 20
"""Drawing a value takes about as long as reading so many."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frame:
    """How far the alternatives have come; pictures are put together when they are looked at.

    Attributes:
        filling: the work.
        share: of the work, how much is done, 0 to 1.
        codes: uint8 (n, H, W, c) before these windows; never written to.
        before: bool (H, W): what was known before them.
        windows: where the model is at work; none before the first.
        x, drawn: (windows, n, N), bool (windows, N): their variables, and which of them are drawn by now.
    """

    filling: "Filling"
    share: float
    codes: Tensor
    before: Places
    windows: Sequence[Window] = ()
    x: Tensor | None = None
    drawn: Tensor | None = None

    @property
    def pixels(self) -> Pixels:
        """uint8 (n, H, W, C); what is not known yet stands as it was erased."""
        return self.filling.shown(self.after())

    @property
    def known(self) -> Places:
        """bool (H, W): given or drawn by now."""
        known = self.before.copy()
        if self.drawn is not None:
            size = (known.shape[0], known.shape[1])
            for window, drawn in zip(self.windows, self.drawn.unflatten(1, self.filling.shape).all(3).numpy()):
                known[window.inside(size)] |= drawn[window.own(size)]
        return known

    def after(self) -> Tensor:
        """The codes with what is drawn in the windows."""
        if self.x is None or self.drawn is None:
            return self.codes
        codes, size = self.codes.clone(), (self.codes.shape[1], self.codes.shape[2])
        shape = self.filling.shape
        for window, x, drawn in zip(self.windows, self.x.unflatten(2, shape), self.drawn.unflatten(1, shape)):
            rows, own = window.inside(size), window.own(size)
            there = codes[:, rows[0], rows[1]]
            there.copy_(torch.where(drawn[own], x[:, own[0], own[1]].to(torch.uint8), there))
        return codes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fills(Sequence[Picture]):
    """A picture filled in several ways; a sequence of them.

    Attributes:
        given: the picture with what is erased of it.
        pictures: the ways it was filled.
        uncertainty: bits (H, W) of each erased pixel, 0 where it is given; see the module's text.
        seed: with which they can be drawn again.
        remarks: what was changed on the way.
    """

    given: Picture
    pictures: tuple[Picture, ...]
    uncertainty: Bits
    seed: int
    remarks: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Picture: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Picture, ...]: ...
    def __getitem__(self, index: int | slice) -> Picture | tuple[Picture, ...]:
        return self.pictures[index]

    def __len__(self) -> int:
        return len(self.pictures)

    def __repr__(self) -> str:
        return f"<{len(self)} fills of {self.given!r}, seed {self.seed}>"

    def sheet(self) -> Picture:
        """One picture of all: what was given, what was drawn, and the uncertainty of each pixel."""
        return sheet_of(self.given, self.pictures, self.uncertainty)

    def _repr_png_(self) -> bytes:
        return self.sheet().png()

    def save(self, folder: str | Path, name: str | None = None) -> list[Path]:
        """Write FOLDER/NAME-1.png … and NAME-sheet.png; the names of the files."""
        folder, stem = Path(folder), name or Path(self.given.name).stem
        paths = [folder / f"{stem}-{number}.png" for number in range(1, len(self) + 1)] + [folder / f"{stem}-sheet.png"]
        for path, picture in zip(paths, (*self.pictures, self.sheet())):
            picture.save(path)
        return paths


def approximates(sampler: Sampler, model: Model) -> bool:
    """Whether a sampler is not after the model's law anyway: it answers in groups, or in an order that it finds."""
    order = sampler.along(model.order).order
    return order is None or (sampler.parallel and order == model.order)


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """The work of filling one picture.

    Attributes:
        model: of height x width x channels variables, row by row, channels fastest.
        shape: (height, width, channels) that the model sees.
        levels: of a channel.
        picture: what shall be filled; its channels are the model's, or three where it has colours of its own.
        plan: the windows, in their order.
        inverted: the model sees light as dark.
        n: alternatives.
        draw, sampler: how.
        seed: of everything random.
        generator: goes on from where it is; None = a new one of the seed.
        begun: uint8 (n, H, W, C): alternatives that differ already in what is given; None = all begin as the picture.
    """

    model: Model
    shape: tuple[int, int, int]
    levels: int
    picture: Picture
    plan: Sequence[Window]
    inverted: bool = False
    n: int = 1
    draw: Draw | None = None
    sampler: Sampler | None = None
    seed: int = 0
    generator: torch.Generator | None = None
    begun: Pixels | None = None

    def frames(self, uncertainty: Bits | None = None) -> Iterator[Frame]:
        """Fill, a step at a time; an array (H, W) of zeros is filled with the uncertainty on the way."""
        picture = self.picture
        size = (picture.height, picture.width)
        seen = self._given(self.shape[2])
        codes = codes_of(255 - seen if self.inverted else seen, self.levels).to(torch.uint8).expand(self.n, -1, -1, -1)
        batches = self._batches()
        known, done, total = picture.known, 0, sum(work for _, work in batches)
        source = torch.Generator().manual_seed(self.seed) if self.generator is None else self.generator
        frame = Frame(self, 0.0 if picture.erased is not None else 1.0, codes, known)
        yield frame
        options: dict[str, Any] = {"draw": self.draw, "generator": source}
        if self.sampler is not None and approximates(self.sampler, self.model):
            options["allow_untrained"] = True  # of colours too
        for windows, work in batches:
            parts = [(window.inside(size), window.own(size)) for window in windows]
            given, asked = (np.zeros((len(windows), *self.shape[:2]), dtype=bool) for _ in range(2))
            x = torch.zeros(len(windows), self.n, *self.shape, dtype=torch.int64)
            for one, (rows, own) in enumerate(parts):
                given[one][own], asked[one][own] = known[rows], ~known[rows]
                x[one, :, own[0], own[1]] = codes[:, rows[0], rows[1]].long()
            question = Question(self._variables(given), self._variables(asked))
            x = x.flatten(2).flatten(0, 1)
            exact = self.sampler is None
            opened = self._opened(x, question) if exact or uncertainty is not None else None
            sampler = CachedChain(opened=opened) if exact and opened is not None else self.sampler
            if uncertainty is not None:
                for (rows, own), bits in zip(parts, self._entropy(x, question, opened)):
                    uncertainty[rows] = np.where(known[rows], uncertainty[rows], bits[own])
            wanted = question.asked[:: self.n]
            asked_here = max(1, int(wanted.sum()))
            for state in trace(self.model, x, question, sampler, **options):
                drawn = state.known[:: self.n] & wanted
                now = state.x.unflatten(0, (len(windows), self.n))
                share = (done + work * int(drawn.sum()) / asked_here) / total
                frame = Frame(self, share, codes, known, windows, now, drawn)
                yield frame
            codes, known, done = frame.after(), known.copy(), done + work
            for rows, _ in parts:
                known[rows] = True

    def _batches(self) -> list[tuple[list[Window], int]]:
        """The windows that are filled at once, with the work that they are; an approximation goes one by one."""
        values = math.prod(self.shape)
        count = 1 if self.sampler is not None else max(1, VALUES_AT_ONCE // (self.n * values))
        found: list[tuple[list[Window], int]] = []
        for number, some in enumerate(rounds(self.plan, ~self.picture.known)):
            read = 1 if number == 0 and self.begun is None else self.n  # before anything is drawn, all begin alike
            for begin in range(0, len(some), count):
                part = some[begin : begin + count]
                work = sum(read * values + _STEP * self.n * self.shape[2] * asked for _, asked in part)
                found.append(([window for window, _ in part], work))
        return found

    def fills(self, frames: Iterator[Frame], uncertainty: Bits) -> Fills:
        """All frames at once, and what came of them."""
        last = deque(frames, maxlen=1).pop()
        stem, suffix = Path(self.picture.name).stem, Path(self.picture.name).suffix
        codes, pictures = last.after(), list[Picture]()
        for number in range(1, self.n + 1):  # one at a time: of a large picture each step on the way is as large again
            (pixels,) = self.shown(codes[number - 1 : number], number - 1)
            pictures.append(Picture(pixels, None, f"{stem}-{number}{suffix}"))
        return Fills(self.picture, tuple(pictures), uncertainty, self.seed, self.picture.remarks)

    def _variables(self, places: Places) -> Tensor:
        """bool (windows n, N): the variables of these places (windows, h, w), for each alternative."""
        flat = torch.from_numpy(places).flatten(1).repeat_interleave(self.shape[2], 1)
        return flat.repeat_interleave(self.n, 0)

    def _opened(self, x: Tensor, question: Question) -> Opened | None:
        """What is given, read once to be asked about and drawn from; None where the network cannot."""
        model, network = self.model, self.model.network
        if model.order.random or not isinstance(network, Foresees):
            return None
        if self.sampler is None:
            question = completed(model.factorizations, question, model.order, order=model.order)
        with model.evaluating():
            return Opened.once(network, x, chain_rank(model.order, question))

    def _entropy(self, x: Tensor, question: Question, opened: Opened | None) -> Bits:
        """bits (windows, h, w): mean over the alternatives."""
        asked = question.asked & (torch.arange(x.shape[1]) % self.shape[2] == 0)
        row, variable = asked.nonzero(as_tuple=True)
        conditional = Conditional.on(self.model, x, question.given)
        nats = torch.zeros(x.shape, dtype=torch.float64)
        nats[row, variable] = conditional.marginals(cells=(row, variable), opened=opened).entropy().double().squeeze(1)
        return nats.unflatten(0, (-1, self.n)).mean(1).unflatten(1, self.shape).sum(3).numpy() / math.log(2)

    def shown(self, codes: Tensor, first: int = 0) -> Pixels:
        """uint8 (k, H, W, C): the picture as it came, with what is drawn laid in, of the alternatives from first on."""
        drawn = bytes_of(codes, self.levels)
        drawn = 255 - drawn if self.inverted else drawn
        channels = max(self.picture.channels, drawn.shape[3])
        drawn = np.repeat(drawn, channels, axis=3) if drawn.shape[3] < channels else drawn
        given = self._given(channels, slice(first, first + len(codes)))
        return np.where(self.picture.known[None, ..., None], given, drawn)

    def _given(self, channels: int, which: slice = slice(None)) -> Pixels:
        """uint8 (k or 1, H, W, channels): what these alternatives begin with."""
        begun = self.picture.pixels[None] if self.begun is None else self.begun[which]
        return np.stack([Picture(one).with_channels(channels).pixels for one in begun])
