"""Keys: names of notes on the line of fifths, the signature of a piece, the key it is in, and keys by name.

    … E- B- F C G D A E B F# C# G# …
      -3 -2 -1 0 1 2 3 4 5  6  7  8

Seven places up is a sharp; the letter is the place modulo 7 and the pitch class is 7 · place modulo 12.

**Signature**, to write notes that have no names. The key of f sharps (flats if negative) has the places f - 1 … f + 5.
The signature is that which holds the most of the sounding time, the fewest accidentals of those that hold as much. A
pitch is then the one of the twelve places f - 3 … f + 8 (f - 2 … f + 9 in minor, whose raised degrees are sharps) that
sounds like it. Minor is what ends on its tonic in the lowest voice.

**Key**, to grade and to transpose: whose profile the pitch classes of a piece resemble most.

    h[c]    quarter notes that pitch class c sounds in the piece
    r(k)    Pearson correlation of h, read from the tonic k, with a profile of twelve weights for the mode

The key is the best of 24; the profiles are Aarden's from the Essen folk songs. A tonic is spelled C C# D E- E F F# G G#
A B- B, and A- for G# major. Equal correlations (a whole-tone scale, all twelve tones alike) go to major, then to the
first tonic at or above the last note of the lowest voice: a rule that transposition does not change.
"""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.music.score import Score

Mode = Literal["major", "minor"]

LETTERS = "FCGDAEB"
"""On the line of fifths from F = -1."""
PLACES = (0, 7, 2, -3, 4, -1, 6, 1, 8, 3, -2, 5)
"""On the line of fifths, of the twelve pitch classes as music21 names them where nobody else does."""
_NATURAL = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_KEY_NAME = re.compile(r"([A-Ga-g])\s*(#|♯|b|♭|-|sharp|flat)?\s*(major|minor|maj|min|m)?", re.IGNORECASE)
_ALTERED = {"#": 1, "♯": 1, "sharp": 1, "b": -1, "♭": -1, "-": -1, "flat": -1}
_MAJOR = (
    *(17.7661, 0.145624, 14.9265, 0.160186, 19.8049, 11.3587),
    *(0.291248, 22.062, 0.145624, 8.15494, 0.232998, 4.95122),
)
_MINOR = (
    *(18.2648, 0.737619, 14.0499, 16.8599, 0.702494, 14.4362),
    *(0.702494, 18.6161, 4.56621, 1.93186, 7.37619, 1.75623),
)
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

    @property
    def pitch_class(self) -> int:
        """Of the tonic, 0 = C."""
        return 7 * self.place % 12

    def __str__(self) -> str:
        return f"{self.tonic} {self.mode}"


def parse_key(text: str) -> Key:
    """From "D minor", "B flat major", "F#m"; major where nothing is said."""
    match = _KEY_NAME.fullmatch(text.strip())
    if match is None:
        raise refuse("--key", expected='a key, as "D minor" or "B flat major"', got=repr(text))
    letter, alteration = match[1].upper(), _ALTERED[match[2].lower()] if match[2] else 0
    minor = (match[3] or "major").lower() in ("minor", "min", "m")
    return Key(named(letter, alteration), "minor" if minor else "major", place_at(letter, alteration))


def find_key(score: Score) -> Key:
    """The key of a score; refused where nothing sounds."""
    last = score.last_pitch
    if last is None:
        raise refuse("score", expected="a note at least", got="only silence")
    return key_of(_lengths(score), last=last)


def key_of(lengths: NDArray[np.float64], *, last: int) -> Key:
    """The key of float64 (12,) lengths per pitch class; ``last`` is the pitch that decides between equals."""
    alike = lengths[_TURNS] @ _PROFILES  # (12 tonics, 2 modes), up to a factor the correlation
    best = alike.max() - _TIE * np.abs(lengths).sum()
    tonic, mode = min(
        ((int(tonic), int(mode)) for tonic, mode in np.argwhere(alike >= best)),
        key=lambda one: (one[1], (one[0] - last) % 12),
    )
    place = -4 if (tonic, mode) == (8, 0) else PLACES[tonic]
    return Key(name_at(place), "minor" if mode else "major", place)


def _normalised(profile: tuple[float, ...]) -> NDArray[np.float64]:
    centred = np.asarray(profile) - np.mean(profile)
    return centred / np.linalg.norm(centred)


_PROFILES = np.stack([_normalised(_MAJOR), _normalised(_MINOR)], 1)
_TURNS = np.add.outer(np.arange(12), np.arange(12)) % 12


@dataclass(frozen=True, slots=True)
class KeySignature:
    """Of a whole piece.

    Attributes:
        fifths: sharps if positive, flats if negative.
        minor: whether its mode is minor.
    """

    fifths: int
    minor: bool = False

    @classmethod
    def of(cls, score: Score) -> "KeySignature":
        """The one that fits the notes of a score best."""
        lengths = _lengths(score)
        fifths = max(
            range(-5, 7), key=lambda f: (round(sum(lengths[7 * (f + k) % 12] for k in range(-1, 6)), 6), -abs(f))
        )
        last = score.last_pitch
        return cls(fifths, last is not None and last % 12 == 7 * (fifths + 3) % 12)

    @classmethod
    def stated(cls, score: Score, fifths: int, minor: bool | None) -> "KeySignature":
        """The one of so many sharps; where its mode is not said, minor is what ends on the minor tonic."""
        if minor is None:
            last = score.last_pitch
            minor = last is not None and last % 12 == 7 * (fifths + 3) % 12
        return cls(fifths, minor)

    @classmethod
    def in_key(cls, key: Key) -> "KeySignature":
        """That of a key; one of more than seven accidentals is written as the other key that sounds like it."""
        fifths = key.place - 3 * (key.mode == "minor")
        return cls(fifths if abs(fifths) <= 7 else fifths - 12 * (1 if fifths > 0 else -1), key.mode == "minor")

    @property
    def key(self) -> Key:
        """The key it is of."""
        return Key(self.tonic, "minor" if self.minor else "major", self.fifths + 3 * self.minor)

    @property
    def tonic(self) -> str:
        """Its name, as "B-"."""
        return name_at(self.fifths + 3 * self.minor)

    def spell(self, pitch: int) -> tuple[str, int, int]:
        """Letter, alteration in semitones and octave of a MIDI number: (F, 1, 4) for 66 in D major."""
        first = self.fifths - (2 if self.minor else 3)
        place = first + (7 * pitch - first) % 12  # 7 is its own inverse modulo 12
        return with_octave(LETTERS[(place + 1) % 7], (place + 1) // 7, pitch)

    def alteration(self, letter: str) -> int:
        """What the signature does to a letter: 1 for F in G major."""
        return (self.fifths - place_at(letter, 0) + 5) // 7


def with_octave(letter: str, alteration: int, pitch: int) -> tuple[str, int, int]:
    """The same name with the octave in which it sounds as ``pitch``: B# of 60 is in octave 3."""
    return letter, alteration, (pitch - alteration - _NATURAL[letter]) // 12 - 1


def sounding(letter: str, alteration: int, octave: int) -> int:
    """The MIDI number of a name."""
    return 12 * (octave + 1) + _NATURAL[letter] + alteration


def named(letter: str, alteration: int) -> str:
    """As scores have it: "F#", "B-"."""
    return letter + ("#" * alteration if alteration > 0 else "-" * -alteration)


def parse_name(name: str) -> tuple[str, int]:
    """Letter and alteration of "F#" or "B-"."""
    return name[0], name.count("#") - name.count("-")


def name_at(place: int) -> str:
    """The name at a place on the line of fifths: "F#" at 6."""
    return named(LETTERS[(place + 1) % 7], (place + 1) // 7)


def place_at(letter: str, alteration: int) -> int:
    """The place of a name on the line of fifths: 6 for F, 1."""
    return LETTERS.index(letter) - 1 + 7 * alteration


def _lengths(score: Score) -> NDArray[np.float64]:
    """float64 (12,): quarters that each pitch class sounds."""
    lengths = [0.0] * 12
    for note in score.sounding():
        lengths[(note.pitch or 0) % 12] += float(note.length)
    return np.asarray(lengths)
