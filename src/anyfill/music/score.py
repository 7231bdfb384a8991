"""Notes as music has them: when they begin, how long they last, and what they are called.

A ``Score`` keeps exact times (fractions of a quarter note), spelled names where the source has them, and where bars
begin: what a grid of sixteenths would lose. Readers make it, writers and graders read it, and
``anyfill.music.chorale`` turns it into the grid that models see.
"""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Note:
    """A note or a rest, ties merged.

    Attributes:
        start, length: in quarter notes from the beginning of the score.
        pitch: MIDI number (60 = middle C); None = a rest.
        name: spelled without the octave, as "C", "F#", "B-" (minus = flat); None where the source does not say.
        octave: of the spelled name (C4 = 60, but B#3 = 60 too); None where there is no name.
    """

    start: Fraction
    length: Fraction
    pitch: int | None
    name: str | None = None
    octave: int | None = None

    @property
    def end(self) -> Fraction:
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class Score:
    """Voices, highest first, each of notes in order of time.

    Attributes:
        voices: the notes of each voice; what no note covers is silence.
        bars: where bars begin, in quarters, in order; the first is 0 (a pickup is a short first bar).
        names: of the voices.
        tempo: quarter notes a minute.
        title: what the piece is called; "" = nobody says.
    """

    voices: tuple[tuple[Note, ...], ...]
    bars: tuple[Fraction, ...] = (Fraction(0),)
    names: tuple[str, ...] = ()
    tempo: float = 80.0
    title: str = ""

    @property
    def length(self) -> Fraction:
        """In quarters, to the end of the last note."""
        return max((note.end for voice in self.voices for note in voice), default=Fraction(0))
