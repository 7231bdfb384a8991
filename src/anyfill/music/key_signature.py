"""A key signature for notes that have none, and names for their pitches.

On the line of fifths … B- F C G D A E B F# … the key of f sharps (flats if negative) has the places f - 1 … f + 5.
The signature is that which holds the most of the sounding time, the fewest accidentals of those that hold as much. A
pitch is then the one of the twelve places f - 3 … f + 8 (f - 2 … f + 9 in minor, whose raised degrees are sharps) that
sounds like it. Minor is what ends on its tonic in the lowest voice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from anyfill.music.score import Note, Score

_LETTERS = "FCGDAEB"
_NATURAL = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}


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
        weight = [0.0] * 12
        for voice in score.voices:
            for note in voice:
                if note.pitch is not None:
                    weight[note.pitch % 12] += float(note.length)
        fifths = max(
            range(-5, 7), key=lambda f: (round(sum(weight[7 * (f + k) % 12] for k in range(-1, 6)), 6), -abs(f))
        )
        last = _last(score.voices)
        return cls(fifths, last is not None and last % 12 == 7 * (fifths + 3) % 12)

    def spell(self, pitch: int) -> tuple[str, int, int]:
        """Letter, alteration in semitones and octave of a MIDI number: (F, 1, 4) for 66 in D major."""
        first = self.fifths - (2 if self.minor else 3)
        place = next(place for place in range(first, first + 12) if 7 * place % 12 == pitch % 12)
        return with_octave(_LETTERS[(place + 1) % 7], (place + 1) // 7, pitch)

    def alteration(self, letter: str) -> int:
        """What the signature does to a letter: 1 for F in G major."""
        place = _LETTERS.index(letter) - 1
        return (self.fifths - place + 5) // 7


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


def _last(voices: Sequence[Sequence[Note]]) -> int | None:
    """The last pitch of the lowest voice that has any."""
    for voice in reversed(voices):
        for note in reversed(voice):
            if note.pitch is not None:
                return note.pitch
    return None
