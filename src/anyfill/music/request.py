"""What is asked of a model: some cells of a piece, given others.

``--ask`` names cells, as in ``alto 3-6, tenor 5``: voices by name or first letter, several joined by +, or all; then
bars, counted from 1 (a pickup is bar 0), single or as a range; no bars at all stand for the whole piece. After a comma
a voice may be left out: the one before is meant.

**Windows.** The model was trained on 8 bars of 4/4 (128 steps) that begin with a bar. What fits into one window is
answered exactly as asked, from p(asked | given). A longer piece is answered from left to right. With a the bar of the
first step that is still asked, the next window

    begins     4 bars before a (as far as there are any; earlier, if fewer than 8 bars would be left to the end)
    is given   all that is known in it: given, or drawn by an earlier window
    answers    what is asked in it; less its last 2 bars where something is given there, so that what is written next to
               them has seen what comes (a tune, say)

So a piece that is written from nothing is p(bars 1-8), then p(4 bars | the 4 before) again and again, and its score is
the exact log-probability of being written in this way by the model's own law. A piece with a pickup begins late in its
first bar: the steps before it are neither given nor asked.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.music.chorale import BAR, REST, Chorale
from anyfill.music.files import Music, parse, read
from anyfill.music.keys import parse_key
from anyfill.music.quantise import Piece, key_or_none
from anyfill.music.range import shift_home, shift_to, tune_of
from anyfill.music.score import VOICES
from anyfill.music.voices import voice_called

WINDOW, BACK, AHEAD = 8 * BAR, 4 * BAR, 2 * BAR
MAX_BARS = 512
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_EVERYBODY = ("all", "satb")


@dataclass(frozen=True, slots=True)
class Window:
    """Steps ``start`` to ``stop`` are seen; those from ``first`` to ``until`` are answered, where they are asked."""

    start: int
    stop: int
    first: int
    until: int

    @property
    def cells(self) -> slice:
        """The variables of the model that are seen."""
        return slice(len(VOICES) * self.start, len(VOICES) * self.stop)

    def answers(self, asked: Tensor) -> Tensor:
        """bool (N,): what the window answers of asked (N,)."""
        step = torch.arange(len(asked)) // len(VOICES)
        return asked & (step >= self.first) & (step < self.until)


def windows(asked: NDArray[np.bool_], given: NDArray[np.bool_]) -> Iterator[Window]:
    """The windows, from left to right, that answer a question about T steps.

    Args:
        asked: bool (4, T), what is wanted; step 0 begins a bar.
        given: bool (4, T), what the model is given.
    """
    any_asked: NDArray[np.bool_] = np.logical_or.reduce(asked, axis=0)
    any_given: NDArray[np.bool_] = np.logical_or.reduce(given, axis=0)
    steps, done = asked.shape[1], 0
    while bool(any_asked[done:].any()):
        first = done + int(any_asked[done:].argmax())
        start = max(0, first // BAR * BAR - BACK)
        if steps - start < WINDOW:
            start = -(-max(0, steps - WINDOW) // BAR) * BAR
        stop = min(steps, start + WINDOW)
        comes = stop < steps and bool(any_given[stop - AHEAD : stop].any())
        done = stop - AHEAD if comes else stop
        yield Window(start, stop, first, done)


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A question about a piece, and which of its answers are wanted.

    Attributes:
        piece: what stands in cells that are not given means nothing.
        given: bool (4, T), given to the model and never changed.
        asked: bool (4, T), to be written; cells that are neither are not looked at.
        what: a word for what is being done.
        fits: an answer for which this is not True is drawn again.
        moving: draw again where an answer hardly moves.
        finish: makes a piece of an answer, its number and the seed.
    """

    piece: Piece
    given: NDArray[np.bool_]
    asked: NDArray[np.bool_]
    what: str = "filling"
    fits: Callable[[Chorale], bool] | None = None
    moving: bool = False
    finish: Callable[[Chorale, int, int], Piece] | None = None

    @classmethod
    def generate(cls, bars: int = 8, key: str | None = None) -> "Request":
        """A new chorale of so many bars of 4/4.

        A key is found after the fact: pieces are drawn until enough are in its mode, and transposed. Without one they
        are moved to the nearest common key (``range.COMMON_KEYS``).
        """
        require_count("--bars", bars, maximum=MAX_BARS)
        named = None if key is None else parse_key(key)
        blank = Chorale.of(np.full((len(VOICES), bars * BAR), REST, dtype=np.int16))
        everything = np.ones(blank.pitch.shape, dtype=np.bool_)

        def shift(chorale: Chorale) -> int | None:
            if key_or_none(chorale.score()) is None:
                return None
            return shift_home(chorale) if named is None else shift_to(chorale, named)

        def finish(chorale: Chorale, number: int, seed: int) -> Piece:
            title = f"Chorale {seed}-{number}"
            placed = replace(chorale.transposed(shift(chorale) or 0), title=title)
            about = f"{title}, {key_or_none(placed.score()) or 'silence'}"
            return Piece(placed, everything, title=about, seed=seed)

        def fits(chorale: Chorale) -> bool:
            return shift(chorale) is not None

        return cls(
            Piece(blank, ~everything),
            ~everything,
            everything,
            "writing",
            fits if named else None,
            moving=True,
            finish=finish,
        )

    @classmethod
    def harmonise(cls, tune: Music, voice: str = "soprano") -> "Request":
        """The three other voices of a tune, which is never changed."""
        if voice not in VOICES:
            raise refuse("voice", expected=" or ".join(VOICES), got=repr(voice))
        parsed, source = parse(tune)
        piece = tune_of(parsed, VOICES.index(voice), source=source)
        return cls(piece, piece.present, ~piece.present, "harmonising")

    @classmethod
    def fill(cls, music: Music, ask: str | None = None) -> "Request":
        """Some cells of a piece, all others locked; without ``ask`` the voices that the file does not have.

        A voice that the file does not have is never given: where it is not asked, it stays silent and is not looked at.
        """
        piece = read(music)
        asked = ~piece.present if ask is None else cells_of(ask, piece.chorale)
        if not asked.any():
            bars = piece.chorale.bars
            raise ValueError(
                "nothing to fill, for all four voices are in the file: --ask says what to write anew, as in "
                f'--ask "alto {bars[0]}-{bars[-1]}"'
            )
        return cls(piece, piece.present & ~asked, asked)

    def piece_of(self, answer: Chorale, number: int, seed: int) -> Piece:
        """The answer as the user gets it."""
        if self.finish is not None:
            return self.finish(answer, number, seed)
        name = answer.title or ("Harmonised" if self.what == "harmonising" else "Filled")
        title = f"{name}, seed {seed}, {number}"
        present = self.piece.present | self.asked
        return replace(
            self.piece, chorale=answer, present=present, written=self.asked, title=title, seed=seed, remarks=()
        )

    @property
    def before(self) -> int:
        """Steps of the first bar that are not in the piece."""
        return -self.piece.chorale.pickup % self.piece.chorale.bar

    def row(self, cells: NDArray[np.bool_]) -> Tensor:
        """bool (4 (before + T),) in the order of the model's variables, from cells (4, T); False before the piece."""
        return torch.from_numpy(np.pad(cells, ((0, 0), (self.before, 0))).T.reshape(-1))

    def codes(self) -> Tensor:
        """int64 (4 (before + T),), zero before the beginning."""
        return torch.nn.functional.pad(self.piece.chorale.codes(), (len(VOICES) * self.before, 0))

    def windows(self) -> list[Window]:
        """That answer it."""
        padded = (np.pad(cells, ((0, 0), (self.before, 0))) for cells in (self.asked, self.given))
        return list(windows(*padded))


def cells_of(text: str, chorale: Chorale) -> NDArray[np.bool_]:
    """bool (4, T): True in the cells that the text names; ValueError, which says what there is, if there are none."""
    cells = np.zeros(chorale.pitch.shape, dtype=np.bool_)
    voices: list[int] = []
    for item in re.split(r"[,;]", text):
        words = re.sub(r"\s*([-–+])\s*", r"\1", item.strip()).replace("–", "-").split()
        words = [word for word in words if word.casefold() not in ("bar", "bars")]
        if not words:
            raise _refused(chorale, text, "a comma with nothing beside it" if text.strip() else "nothing")
        named = [] if _RANGE.fullmatch(words[0]) else _voices(words.pop(0))
        if named is None or not (named or voices):
            raise _refused(chorale, text, f"{item.strip()!r}")
        voices = named or voices
        if not words:
            cells[voices] = True
        for word in words:
            start, stop = _steps(word, chorale, text)
            cells[voices, start:stop] = True
    return cells


def _voices(word: str) -> list[int] | None:
    """The voices that a word names, or None."""
    if word.casefold() in _EVERYBODY:
        return list(range(len(VOICES)))
    found = [voice_called(one) for one in word.split("+")]
    return None if None in found else [voice for voice in found if voice is not None]


def _steps(word: str, chorale: Chorale, text: str) -> tuple[int, int]:
    """First step, and that behind the last, of a bar or a range of bars."""
    match, bars = _RANGE.fullmatch(word), chorale.bars
    if match is None:
        raise _refused(chorale, text, f"{word!r}")
    first, last = int(match[1]), int(match[2] or match[1])
    if first > last or first not in bars or last not in bars:
        raise _refused(chorale, text, f"bar{'s' if first != last else ''} {word}")
    edge = [chorale.pickup + (bar - 1) * chorale.bar for bar in (first, last + 1)]
    return max(edge[0], 0), min(edge[1], chorale.steps)


def _refused(chorale: Chorale, text: str, got: str) -> ValueError:
    bars = chorale.bars
    there = f"bar {bars[0]}" if len(bars) == 1 else f"bars {bars[0]} to {bars[-1]}"
    pickup = " (0 is the pickup)" if chorale.pickup else ""
    return ValueError(
        f'--ask "{text.strip()}": expected voices ({", ".join(VOICES)}, their first letters, or all) with {there}'
        f'{pickup}, as in "alto {bars[-1]}, tenor {bars[0]}-{bars[-1]}", got {got}'
    )
