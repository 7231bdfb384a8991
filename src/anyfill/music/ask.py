"""Which cells of a piece are meant: ``alto 3-6, tenor 5``.

Voices by name or first letter, several joined by +, or all; then bars, counted from 1 (a pickup is bar 0), single or as
a range; no bars at all stand for the whole piece. After a comma a voice may be left out: the one before is meant.
"""

import re

import numpy as np
from numpy.typing import NDArray

from anyfill.music.chorale import VOICES, Chorale
from anyfill.music.voices import voice_called

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_EVERYBODY = ("all", "satb")


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


def bars_in(chorale: Chorale) -> range:
    """The numbers of its bars; 0 is a pickup."""
    whole = -(-(chorale.steps - chorale.pickup) // chorale.bar)
    return range(0 if chorale.pickup else 1, whole + 1)


def bar_and_beat(step: int, chorale: Chorale) -> tuple[int, float]:
    """Where a step lies: the number of its bar, and its beat in quarters from 1 (a pickup ends with its bar's end)."""
    place = step - chorale.pickup + chorale.bar
    return place // chorale.bar, 1 + place % chorale.bar / 4


def _voices(word: str) -> list[int] | None:
    """The voices that a word names, or None."""
    if word.casefold() in _EVERYBODY:
        return list(range(len(VOICES)))
    found = [voice_called(one) for one in word.split("+")]
    return None if None in found else [voice for voice in found if voice is not None]


def _steps(word: str, chorale: Chorale, text: str) -> tuple[int, int]:
    """First step, and that behind the last, of a bar or a range of bars."""
    match, bars = _RANGE.fullmatch(word), bars_in(chorale)
    if match is None:
        raise _refused(chorale, text, f"{word!r}")
    first, last = int(match[1]), int(match[2] or match[1])
    if first > last or first not in bars or last not in bars:
        raise _refused(chorale, text, f"bar{'s' if first != last else ''} {word}")
    edge = [chorale.pickup + (bar - 1) * chorale.bar for bar in (first, last + 1)]
    return max(edge[0], 0), min(edge[1], chorale.steps)


def _refused(chorale: Chorale, text: str, got: str) -> ValueError:
    bars = bars_in(chorale)
    there = f"bar {bars[0]}" if len(bars) == 1 else f"bars {bars[0]} to {bars[-1]}"
    pickup = " (0 is the pickup)" if chorale.pickup else ""
    return ValueError(
        f'--ask "{text.strip()}": expected voices ({", ".join(VOICES)}, their first letters, or all) with {there}'
        f'{pickup}, as in "alto {bars[-1]}, tenor {bars[0]}-{bars[-1]}", got {got}'
    )
