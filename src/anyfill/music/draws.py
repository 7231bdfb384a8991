"""Several answers to one question about a piece, drawn side by side.

A piece with a pickup begins late in its first bar: the steps before it are neither told nor asked. Alternatives are
rows of one batch. The same question, seed and number of alternatives give the same answers.

Values are drawn from the most probable ones that hold ``nucleus`` of the mass, and a pitch that would make parallel
fifths or octaves is left out (``NoParallels``), both unless told otherwise: then what is drawn is graded like Bach's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from anyfill.checks import require_count
from anyfill.model import Model
from anyfill.music.chorale import VOICES, Chorale
from anyfill.music.recipe import resized
from anyfill.music.voice_leading import NoParallels
from anyfill.music.windows import Window, windows
from anyfill.questions.question import Question
from anyfill.samplers import CachedChain, Draw, watch


@dataclass(frozen=True, slots=True)
class Manner:
    """How notes are drawn.

    Attributes:
        temperature: below 1 is safer, above 1 is bolder.
        nucleus: the mass of the most probable pitches that are drawn from; 1 = all.
        parallels: allow parallel fifths and octaves.
    """

    temperature: float = 1.0
    nucleus: float = 0.95
    parallels: bool = False

    @property
    def draw(self) -> Draw:
        return Draw(temperature=self.temperature, nucleus=None if self.nucleus == 1 else self.nucleus)

    @property
    def policy(self) -> CachedChain:
        return CachedChain(veto=None if self.parallels else NoParallels())


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question about a piece.

    Attributes:
        chorale: the piece; what stands in cells that are not given means nothing.
        given: bool (4, T), told to the model and never changed.
        asked: bool (4, T), to be written; cells that are neither are not looked at.
    """

    chorale: Chorale
    given: NDArray[np.bool_]
    asked: NDArray[np.bool_]

    @property
    def before(self) -> int:
        """Steps of the first bar that are not in the piece."""
        return -self.chorale.pickup % self.chorale.bar

    def on_bars(self, cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool (4, before + T): the cells with the missing beginning of the first bar, False there."""
        return np.pad(cells, ((0, 0), (self.before, 0)))

    def codes(self) -> Tensor:
        """int64 (4 (before + T),), zero before the beginning."""
        return torch.nn.functional.pad(self.chorale.codes(), (len(VOICES) * self.before, 0))

    def windows(self) -> list[Window]:
        """That answer it."""
        return list(windows(self.on_bars(self.asked), self.on_bars(self.given)))


def alternatives(
    model: Model, question: Asked, count: int, *, manner: Manner | None = None, generator: Generator
) -> Iterator[tuple[list[Chorale], float]]:
    """Draw ``count`` answers: nothing yet and the share that is done, again and again, and at last the answers."""
    require_count("number of alternatives", count)
    manner = Manner() if manner is None else manner
    x = question.codes().repeat(count, 1)
    asked, known = flat(question.on_bars(question.asked)), flat(question.on_bars(question.given))
    total, done = max(int(asked.sum()), 1), 0
    for window in question.windows():
        cells = slice(len(VOICES) * window.start, len(VOICES) * window.stop)
        wanted = in_window(window, asked)[cells].repeat(count, 1)
        local = Question(known[cells].repeat(count, 1) & ~wanted, wanted)
        states = watch(
            resized(model, window.stop - window.start),
            x[:, cells],
            local,
            policy=manner.policy,
            draw=manner.draw,
            generator=generator,
        )
        state = next(states)
        for state in states:
            yield [], (done + state.step) / total * 0.999  # not quite: the answers are still to come
        x[:, cells] = torch.where(wanted, state.x, x[:, cells])
        known = known | in_window(window, asked)
        done += int(wanted[0].sum())
    skip, written = len(VOICES) * question.before, flat(question.asked)
    yield [question.chorale.with_codes(row[skip:], written) for row in x], 1.0


def in_window(window: Window, asked: Tensor) -> Tensor:
    """bool (N,): what the window answers of asked (N,)."""
    step = torch.arange(len(asked)) // len(VOICES)
    return asked & (step >= window.first) & (step < window.until)


def flat(cells: NDArray[np.bool_]) -> Tensor:
    """bool (4 T,) in the order of the model's variables, from cells (4, T)."""
    return torch.from_numpy(np.ascontiguousarray(cells.T).reshape(-1))
