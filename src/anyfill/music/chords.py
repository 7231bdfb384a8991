"""Feature 4: what kinds of chord sound.

A bar is cut wherever one of its notes or rests begins or ends; each slice with a note counts once, however long it
lasts. A note belongs to the bar it begins in: tied into the next, it is cut with its own bar's notes and is not heard
with the next bar's. (That is how the published grade slices, and the reference is sliced likewise.)

A slice's distinct pitches have a kind — major, half-diminished-seventh, suspended-fourth … — after music21's
chordSymbolFigureFromChord. It depends on the names above the bass, so a table has them all: written by
scripts/bach_reference.py, read from the reference file. Where two pitches share a letter (F and F#), music21 takes the
lower one for the letter, so there the order of the pitches is part of the entry.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping

from anyfill.music.spelling import Piece, Spelled

UNIDENTIFIABLE = "unidentifiable"
_Sound = tuple[int, int]


def chord_kinds(piece: Piece, table: Mapping[str, str]) -> Counter[str]:
    """Kind of chord -> slices that have it."""
    bars: list[list[Spelled]] = [[] for _ in piece.bars]
    for voice in piece.voices:
        for note in voice:
            bars[bisect_right(piece.bars, note.start) - 1].append(note)
    kinds: Counter[str] = Counter()
    seen: Counter[tuple[_Sound, ...]] = Counter()
    for notes in bars:
        cuts = sorted({time for note in notes for time in (note.start, note.end)})
        sounding = [(note.start, note.end, (note.pitch, note.place)) for note in notes if note.pitch is not None]
        for cut in cuts[:-1]:
            sounds = sorted({sound for start, end, sound in sounding if start <= cut < end})
            if sounds:
                seen[tuple(sounds)] += 1
    for sounds, times in seen.items():
        kinds[kind_of(sounds, table)] += times
    return kinds


def kind_of(sounds: tuple[_Sound, ...], table: Mapping[str, str]) -> str:
    """Kind of distinct (pitch, place on the line of fifths), lowest first."""
    if len(sounds) == 1:
        return "pedal"
    return table.get(entry([place for _, place in sounds]), UNIDENTIFIABLE)


def entry(places: list[int]) -> str:
    """What a chord of these places on the line of fifths, lowest first, is called in the table."""
    above = [place - places[0] for place in dict.fromkeys(places)][1:]
    if len({place % 7 for place in above}) == len(above):
        above.sort()
    return " ".join(map(str, above))
