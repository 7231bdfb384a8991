"""The key of a piece: whose profile its pitch classes resemble most.

    h[c]    quarter notes that pitch class c sounds in the piece
    r(k)    Pearson correlation of h, read from the tonic k, with a profile of twelve weights for the mode

The key is the best of 24; the profiles are Aarden's from the Essen folk songs. A tonic is spelled C C# D E- E F F# G G#
A B- B, and A- for G# major.

Equal correlations (a whole-tone scale, all twelve tones alike) go to major, then to the first tonic at or above the
last note of the lowest voice: a rule that transposition does not change.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.music.score import Score

Mode = Literal["major", "minor"]

_MAJOR = (
    *(17.7661, 0.145624, 14.9265, 0.160186, 19.8049, 11.3587),
    *(0.291248, 22.062, 0.145624, 8.15494, 0.232998, 4.95122),
)
_MINOR = (
    *(18.2648, 0.737619, 14.0499, 16.8599, 0.702494, 14.4362),
    *(0.702494, 18.6161, 4.56621, 1.93186, 7.37619, 1.75623),
)
_TONICS = ("C", "C#", "D", "E-", "E", "F", "F#", "G", "G#", "A", "B-", "B")
PLACES = (0, 7, 2, -3, 4, -1, 6, 1, 8, 3, -2, 5)
"""On the line of fifths, of the twelve pitch classes as music21 names them where nobody else does."""
_MODES: tuple[Mode, Mode] = ("major", "minor")
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Key:
    """A tonic and a mode.

    Attributes:
        tonic: spelled, as "B-".
        mode: "major" or "minor".
        place: of the tonic on the line of fifths (C 0, G 1, F -1).
    """

    tonic: str
    mode: Mode
    place: int

    def __str__(self) -> str:
        return f"{self.tonic} {self.mode}"


def find_key(score: Score) -> Key:
    """The key of a score; refused where nothing sounds."""
    lengths = [0.0] * 12
    for voice in score.voices:
        for note in voice:
            if note.pitch is not None:
                lengths[note.pitch % 12] += note.length.numerator / note.length.denominator
    last = next((n.pitch for voice in reversed(score.voices) for n in reversed(voice) if n.pitch is not None), None)
    if last is None:
        raise refuse("score", expected="a note at least", got="only silence")
    return key_of(np.asarray(lengths), last=last)


def key_of(lengths: NDArray[np.float64], *, last: int) -> Key:
    """The key of float64 (12,) lengths per pitch class; ``last`` is the pitch that decides between equals."""
    alike = lengths[_TURNS] @ _PROFILES  # (12 tonics, 2 modes), up to a factor the correlation
    best = alike.max() - _TIE * np.abs(lengths).sum()
    tonic, mode = min(
        ((int(tonic), int(mode)) for tonic, mode in np.argwhere(alike >= best)),
        key=lambda one: (one[1], (one[0] - last) % 12),
    )
    if mode == 0 and tonic == 8:
        return Key("A-", "major", -4)
    return Key(_TONICS[tonic], _MODES[mode], PLACES[tonic])


def _normalised(profile: tuple[float, ...]) -> NDArray[np.float64]:
    centred = np.asarray(profile) - np.mean(profile)
    return centred / np.linalg.norm(centred)


_PROFILES = np.stack([_normalised(_MAJOR), _normalised(_MINOR)], 1)
_TURNS = np.add.outer(np.arange(12), np.arange(12)) % 12
