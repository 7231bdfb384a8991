"""Notes as elements of MusicXML: symbols, ties, accidentals.

A note is written in as many tied pieces as it needs: cut at bar lines, then, where no single symbol has its length,
first to the next beat and on with the longest symbols that fit. Lengths that no symbol has (tuplets) are written with
their exact duration and no symbol. Names are those of the notes, or follow from the key signature.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from xml.etree.ElementTree import Element, SubElement

from anyfill.music.keys import KeySignature, parse_name, with_octave
from anyfill.music.score import Note

_TYPES = ("breve", "whole", "half", "quarter", "eighth", "16th", "32nd", "64th")
_SYMBOLS: dict[Fraction, tuple[str, int]] = {
    base * factor: (name, dots)
    for name, base in zip(_TYPES, (Fraction(8) / 2**n for n in range(len(_TYPES))))
    for dots, factor in enumerate((Fraction(1), Fraction(3, 2)))
}
_LENGTHS = sorted(_SYMBOLS, reverse=True)
_ACCIDENTALS = {-2: "flat-flat", -1: "flat", 0: "natural", 1: "sharp", 2: "double-sharp"}


@dataclass(slots=True)
class Pen:
    """Writes the notes of one voice of one measure.

    Attributes:
        key: by which notes without names are spelled, and which accidentals are needed.
        divisions: units of duration in a quarter.
        voice, staff: that the elements name; no staff = none is named.
        shift: semitones by which the part is written higher than it sounds.
        altered: accidentals so far in the measure, by letter and octave.
    """

    key: KeySignature
    divisions: int
    voice: str = "1"
    staff: str | None = None
    shift: int = 0
    altered: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])

    def measure(self, parent: Element, voice: Sequence[Note], start: Fraction, end: Fraction, bar: Fraction) -> None:
        """Add what a voice has from ``start`` to ``end`` of a measure that begins at ``bar``; gaps are rests."""
        now = start
        for note in voice[bisect_right(voice, start, key=lambda note: note.end) :]:
            if note.start >= end:
                break
            self.rest(parent, now, max(note.start, start), bar)
            first, last = max(note.start, start), min(note.end, end)
            if note.pitch is None:
                self.rest(parent, first, last, bar)
            else:
                pieces = symbols(first, last, bar)
                for n, (at, length) in enumerate(pieces):
                    self.note(parent, note, at, length, n < len(pieces) - 1 or note.end > end)
            now = last
        self.rest(parent, now, end, bar)

    def rest(self, parent: Element, start: Fraction, end: Fraction, bar: Fraction) -> None:
        """Add rests from ``start`` to ``end``."""
        for _, length in symbols(start, end, bar):
            note = SubElement(parent, "note")
            SubElement(note, "rest")
            self._length(note, length)

    def note(self, parent: Element, source: Note, at: Fraction, length: Fraction, goes_on: bool) -> None:
        """Add a piece of a note."""
        note = SubElement(parent, "note")
        letter, alteration, octave = self._name(source)
        add(SubElement(note, "pitch"), step=letter, alter=alteration or None, octave=octave)
        ties = [kind for kind, there in (("stop", at > source.start), ("start", goes_on)) if there]
        accidental = None
        if at == source.start and self.altered.get((letter, octave), self.key.alteration(letter)) != alteration:
            self.altered[letter, octave] = alteration
            accidental = _ACCIDENTALS.get(alteration)
        self._length(note, length, ties, accidental)
        if ties:
            notations = SubElement(note, "notations")
            for kind in ties:
                SubElement(notations, "tied", type=kind)

    def _name(self, note: Note) -> tuple[str, int, int]:
        pitch = (note.pitch or 0) + self.shift
        if note.name is None or self.shift:
            return self.key.spell(pitch)
        return with_octave(*parse_name(note.name), pitch)

    def _length(self, note: Element, length: Fraction, ties: Sequence[str] = (), accidental: str | None = None) -> None:
        """Duration, ties, voice, symbol, accidental and staff, in the order that MusicXML wants."""
        add(note, duration=int(length * self.divisions))
        for kind in ties:
            SubElement(note, "tie", type=kind)
        name, dots = _SYMBOLS.get(length, (None, 0))
        add(note, voice=self.voice, type=name)
        for _ in range(dots):
            SubElement(note, "dot")
        add(note, accidental=accidental, staff=self.staff)


def add(parent: Element, **texts: object) -> Element:
    """The element with one more child for each text that is not None, in their order; _ in a name stands for -."""
    for name, text in texts.items():
        if text is not None:
            SubElement(parent, name.replace("_", "-")).text = str(text)
    return parent


def symbols(start: Fraction, end: Fraction, bar: Fraction) -> list[tuple[Fraction, Fraction]]:
    """(start, length) of the symbols that make up a stretch of one measure, which begins at ``bar``."""
    if end <= start:
        return []
    if end - start in _SYMBOLS or 16 % (end - start).denominator:
        return [(start, end - start)]
    beat = bar + ((start - bar) // 1 + 1)
    if (start - bar).denominator != 1 and beat < end and beat - start in _SYMBOLS:
        return [(start, beat - start), *symbols(beat, end, bar)]
    pieces: list[tuple[Fraction, Fraction]] = []
    while start < end:
        length = next(length for length in _LENGTHS if length <= end - start)
        pieces.append((start, length))
        start += length
    return pieces
