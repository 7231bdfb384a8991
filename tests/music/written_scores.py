"""Pieces for tests: written out, or generated."""

from fractions import Fraction

from hypothesis import strategies as st

from anyfill.music.score import Note, Score

_NATURAL = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}


def note(text: str, start: Fraction) -> Note:
    """From ``start``: "F#4/2" is a half note, "F#4/1/2" an eighth, "r/1" a quarter rest."""
    name, _, length = text.partition("/")
    if name == "r":
        return Note(start, Fraction(length), None)
    letter, octave = name[:-1], int(name[-1])
    pitch = 12 * (octave + 1) + _NATURAL[letter[0]] + letter.count("#") - letter.count("-")
    return Note(start, Fraction(length), pitch, letter, octave)


def voice(text: str) -> tuple[Note, ...]:
    notes: list[Note] = []
    for one in text.split():
        notes.append(note(one, notes[-1].end if notes else Fraction(0)))
    return tuple(notes)


def score(*voices: str, bar: str = "4") -> Score:
    parts = tuple(map(voice, voices))
    whole = Score(parts)
    count = max(1, int(-(-whole.length // Fraction(bar))))
    return Score(parts, tuple(i * Fraction(bar) for i in range(count)))


def transposed(piece: Score, semitones: int) -> Score:
    """So much higher, without names."""
    voices = tuple(
        tuple(Note(n.start, n.length, None if n.pitch is None else n.pitch + semitones) for n in voice)
        for voice in piece.voices
    )
    return Score(voices, piece.bars)


@st.composite
def pieces(draw: st.DrawFn, tones: int = 12) -> Score:
    """Four voices of up to a dozen notes or rests, lengths in sixteenths, bars of a whole note."""
    drawn = st.tuples(st.integers(0, tones - 1), st.integers(0, 2), st.sampled_from((1, 2, 4, 6)), st.integers(0, 9))
    voices: list[tuple[Note, ...]] = []
    for base in (60, 55, 48, 40):
        notes: list[Note] = []
        for tone, octave, length, rest in draw(st.lists(drawn, min_size=3, max_size=12)):
            start = notes[-1].end if notes else Fraction(0)
            notes.append(Note(start, Fraction(length, 4), None if rest == 0 else base + 12 * (octave - 1) + tone))
        notes.append(Note(notes[-1].end, Fraction(1), base))
        voices.append(tuple(notes))
    whole = Score(tuple(voices))
    return Score(whole.voices, tuple(Fraction(4 * i) for i in range(int(whole.length // 4) + 1)))
