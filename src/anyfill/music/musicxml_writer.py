"""Scores as MusicXML: one part for each voice, with measures, ties, clefs, a key signature and accidentals.

A note is written in as many tied pieces as it needs: cut at bar lines, then, where no single symbol has its length,
first to the next beat and on with the longest symbols that fit. Lengths that no symbol has (tuplets) are written with
their exact duration and no symbol. Names are those of the score, or follow from the key signature. The same score gives
the same bytes.
"""

import io
import zipfile
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from anyfill.checks import require_positive
from anyfill.music.keys import KeySignature, parse_name, with_octave
from anyfill.music.score import Note, Score, signature
from anyfill.music.voices import mean_pitch

_DOCTYPE = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<!DOCTYPE score-partwise PUBLIC "-//Recordare//DTD MusicXML 4.0 Partwise//EN" '
    b'"http://www.musicxml.org/dtds/partwise.dtd">\n'
)
_CONTAINER = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<container><rootfiles><rootfile full-path="score.musicxml"/></rootfiles></container>\n'
)
_TYPES = ("breve", "whole", "half", "quarter", "eighth", "16th", "32nd", "64th")
_SYMBOLS: dict[Fraction, tuple[str, int]] = {
    base * factor: (name, dots)
    for name, base in zip(_TYPES, (Fraction(8) / 2**n for n in range(len(_TYPES))))
    for dots, factor in enumerate((Fraction(1), Fraction(3, 2)))
}
_LENGTHS = sorted(_SYMBOLS, reverse=True)
_ACCIDENTALS = {-2: "flat-flat", -1: "flat", 0: "natural", 1: "sharp", 2: "double-sharp"}
_TREBLE, _TENOR, _BASS = ("G", 2, 0), ("G", 2, -1), ("F", 4, 0)


def write_musicxml(score: Score, *, zipped: bool = False) -> bytes:
    """A ``score-partwise`` of MusicXML 4.0.

    Args:
        score: what to write.
        zipped: as .mxl has it.
    """
    require_positive("tempo", score.tempo)
    root = Element("score-partwise", version="4.0")
    if score.title:
        _add(SubElement(root, "work"), work_title=_plain(score.title))
    listed = SubElement(root, "part-list")
    sheet = _Sheet.of(score)
    for number, voice in enumerate(score.voices):
        name = score.names[number] if number < len(score.names) else f"voice {number + 1}"
        key = f"P{number + 1}"
        part = _add(SubElement(listed, "score-part", id=key), part_name=_plain(name).capitalize())
        _add(SubElement(part, "score-instrument", id=f"{key}-I1"), instrument_name="Piano")
        _add(SubElement(part, "midi-instrument", id=f"{key}-I1"), midi_channel=number % 9 + 1, midi_program=1)
        part = SubElement(root, "part", id=key)
        for measure in range(len(sheet.bars)):
            sheet.write(part, voice, number, measure)
    indent(root, " ")
    content = _DOCTYPE + tostring(root, encoding="utf-8") + b"\n"
    return _zip(content) if zipped else content


@dataclass(frozen=True, slots=True)
class _Sheet:
    """What all measures of a score share."""

    score: Score
    bars: tuple[Fraction, ...]
    ends: tuple[Fraction, ...]
    times: tuple[Fraction, ...]
    pickup: bool
    divisions: int
    key: KeySignature

    @classmethod
    def of(cls, score: Score) -> "_Sheet":
        bars, lengths = zip(*score.measures())
        times = list(lengths)
        pickup = times[0] < score.bar_length
        if pickup:  # its time signature is that of the bars behind it; the measure is marked as implicit instead
            times[0] = times[1]
        parts = [time.denominator for voice in score.voices for note in voice for time in (note.start, note.end)]
        return cls(
            score,
            bars,
            (*bars[1:], score.length),
            tuple(times),
            pickup,
            lcm(4, *parts, *(b.denominator for b in bars)),
            KeySignature.of(score),
        )

    def write(self, part: Element, voice: tuple[Note, ...], number: int, measure: int) -> None:
        """Add one measure of one voice."""
        start, end = self.bars[measure], self.ends[measure]
        item = SubElement(part, "measure", number=str(measure + (not self.pickup)))
        if measure == 0 and self.pickup:
            item.set("implicit", "yes")
        self._attributes(item, number, measure)
        if measure == 0 and number == 0:
            direction = SubElement(item, "direction", placement="above")
            metronome = SubElement(SubElement(direction, "direction-type"), "metronome")
            tempo = f"{self.score.tempo:.10g}"
            _add(metronome, beat_unit="quarter", per_minute=tempo)
            SubElement(direction, "sound", tempo=tempo)
        altered: dict[tuple[str, int], int] = {}
        now = start
        for note in voice[bisect_right(voice, start, key=lambda note: note.end) :]:
            if note.start >= end:
                break
            self._rest(item, now, max(note.start, start), start)
            first, last = max(note.start, start), min(note.end, end)
            if note.pitch is None:
                self._rest(item, first, last, start)
            else:
                pieces = _pieces(first, last, start)
                for n, (at, length) in enumerate(pieces):
                    self._note(item, note, at, length, n < len(pieces) - 1 or note.end > end, altered)
            now = last
        self._rest(item, now, end, start)

    def _attributes(self, item: Element, number: int, measure: int) -> None:
        if measure and self.times[measure] == self.times[measure - 1]:
            return
        attributes = SubElement(item, "attributes")
        if measure == 0:
            mode = "minor" if self.key.minor else "major"
            _add(attributes, divisions=self.divisions)
            _add(SubElement(attributes, "key"), fifths=self.key.fifths, mode=mode)
        beats, unit = signature(self.times[measure])
        _add(SubElement(attributes, "time"), beats=beats, beat_type=unit)
        if measure == 0:
            sign, line, octaves = _clef(self.score.voices, number)
            _add(SubElement(attributes, "clef"), sign=sign, line=line, clef_octave_change=octaves or None)

    def _rest(self, item: Element, start: Fraction, end: Fraction, bar: Fraction) -> None:
        for _, length in _pieces(start, end, bar) if end > start else ():
            note = SubElement(item, "note")
            SubElement(note, "rest")
            self._length(note, length)

    def _note(
        self, item: Element, source: Note, at: Fraction, length: Fraction, on: bool, altered: dict[tuple[str, int], int]
    ) -> None:
        note = SubElement(item, "note")
        letter, alteration, octave = self._name(source)
        _add(SubElement(note, "pitch"), step=letter, alter=alteration or None, octave=octave)
        ties = [kind for kind, there in (("stop", at > source.start), ("start", on)) if there]
        accidental = None
        if at == source.start and altered.get((letter, octave), self.key.alteration(letter)) != alteration:
            altered[letter, octave] = alteration
            accidental = _ACCIDENTALS.get(alteration)
        self._length(note, length, ties, accidental)
        if ties:
            notations = SubElement(note, "notations")
            for kind in ties:
                SubElement(notations, "tied", type=kind)

    def _name(self, note: Note) -> tuple[str, int, int]:
        pitch = note.pitch or 0
        if note.name is None:
            return self.key.spell(pitch)
        letter, alteration = parse_name(note.name)
        return with_octave(letter, alteration, pitch)

    def _length(self, note: Element, length: Fraction, ties: Sequence[str] = (), accidental: str | None = None) -> None:
        """Duration, ties, voice, symbol and accidental, in the order that MusicXML wants."""
        _add(note, duration=int(length * self.divisions))
        for kind in ties:
            SubElement(note, "tie", type=kind)
        name, dots = _SYMBOLS.get(length, (None, 0))
        _add(note, voice=1, type=name)
        for _ in range(dots):
            SubElement(note, "dot")
        _add(note, accidental=accidental)


def _add(parent: Element, **texts: object) -> Element:
    """The element with one more child for each text that is not None, in their order; _ in a name stands for -."""
    for name, text in texts.items():
        if text is not None:
            SubElement(parent, name.replace("_", "-")).text = str(text)
    return parent


def _pieces(start: Fraction, end: Fraction, bar: Fraction) -> list[tuple[Fraction, Fraction]]:
    """(start, length) of the symbols that make up a stretch of one measure, which begins at ``bar``."""
    if end - start in _SYMBOLS or 16 % (end - start).denominator:
        return [(start, end - start)]
    beat = bar + ((start - bar) // 1 + 1)
    if (start - bar).denominator != 1 and beat < end and beat - start in _SYMBOLS:
        return [(start, beat - start), *_pieces(beat, end, bar)]
    pieces: list[tuple[Fraction, Fraction]] = []
    while start < end:
        length = next(length for length in _LENGTHS if length <= end - start)
        pieces.append((start, length))
        start += length
    return pieces


def _clef(voices: tuple[tuple[Note, ...], ...], number: int) -> tuple[str, int, int]:
    """Sign, line and octaves: those of a choir for four voices, else after the voice's mean pitch."""
    if len(voices) == 4:
        return (_TREBLE, _TREBLE, _TENOR, _BASS)[number]
    mean = mean_pitch(voices[number])
    return _TREBLE if mean >= 60 or mean == 0 else _BASS


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())


def _zip(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (("META-INF/container.xml", _CONTAINER), ("score.musicxml", content)):
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # dated 1980: the same bytes every time
    return file.getvalue()
