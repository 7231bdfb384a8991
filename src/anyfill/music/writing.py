"""Scores into files: MIDI through mido, and MusicXML, each after what the file is called.

    .mid .midi             Standard MIDI File of format 1: tempo, time and key signatures, then one track for each voice
    .musicxml .xml .mxl    MusicXML, the last one zipped: one part for each voice, with measures, ties, clefs, a key
                           signature and accidentals

In MusicXML a note is written in as many tied pieces as it needs: cut at bar lines, then, where no single symbol has its
length, first to the next beat and on with the longest symbols that fit. Lengths that no symbol has (tuplets) are
written with their exact duration and no symbol. Names are those of the score, or follow from the key signature.

The same score gives the same bytes. A file is written under another name and renamed at the very end, so whatever was
there stays if anything fails.
"""

import io
import zipfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import mido

from anyfill.checks import refuse, require_positive
from anyfill.disk import write_bytes
from anyfill.music.chorale import Chorale
from anyfill.music.keys import KeySignature, parse_name, with_octave
from anyfill.music.score import Note, Score, mean_pitch

MusicFormat = Literal["midi", "musicxml", "mxl"]
SUFFIXES: dict[str, MusicFormat] = {
    **dict.fromkeys((".mid", ".midi"), "midi"),
    **dict.fromkeys((".musicxml", ".xml"), "musicxml"),
    ".mxl": "mxl",
}
VELOCITY = 80
DRUMS = 9
"""The channel of percussion, "10" where they are counted from 1."""
_TICKS = 480
_MAX_TICKS = 0x7FFF
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


def music_format(path: str | Path) -> MusicFormat:
    """The format that the end of a file's name stands for; ValueError if it stands for none."""
    name = Path(path).name
    for suffix, kind in SUFFIXES.items():
        if name.lower().endswith(suffix):
            return kind
    raise refuse(f"file {path}", expected=f"a name that ends in one of {' '.join(SUFFIXES)}", got=name)


def write_score(music: Score | Chorale, path: str | Path) -> None:
    """Write a file of the format that its name says; the same music gives the same bytes."""
    kind = music_format(path)
    score = music.score() if isinstance(music, Chorale) else music
    write_bytes(write_midi(score) if kind == "midi" else write_musicxml(score, zipped=kind == "mxl"), path)


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
    sheet = _Sheet(score)
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


class _Sheet:
    """What all measures of a score share."""

    def __init__(self, score: Score) -> None:
        self.score, self.key = score, KeySignature.of(score)
        self.bars, times = zip(*score.measures())
        self.ends = (*self.bars[1:], score.length)
        self.pickup = times[0] < score.bar_length  # its time signature is that of the bars behind it;
        self.times = (times[1], *times[1:]) if self.pickup else times  # the measure is marked as implicit instead
        edges = [time for voice in score.voices for note in voice for time in (note.start, note.end)]
        self.divisions = lcm(4, *(time.denominator for time in (*edges, *self.bars)))

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
            _add(attributes, divisions=self.divisions)
            mode = "minor" if self.key.minor else "major"
            _add(SubElement(attributes, "key"), fifths=self.key.fifths, mode=mode)
        beats, unit = signature(self.times[measure])
        _add(SubElement(attributes, "time"), beats=beats, beat_type=unit)
        if measure == 0:
            sign, line, octaves = _clef(self.score.voices, number)
            _add(SubElement(attributes, "clef"), sign=sign, line=line, clef_octave_change=octaves or None)

    def _rest(self, item: Element, start: Fraction, end: Fraction, bar: Fraction) -> None:
        for _, length in _pieces(start, end, bar):
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
        return self.key.spell(pitch) if note.name is None else with_octave(*parse_name(note.name), pitch)

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
    if end <= start:
        return []
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


def write_midi(score: Score) -> bytes:
    """A MIDI file of format 1: a track of tempo, time and key signatures, then one track for each voice, on piano.

    Times that no tick can express are rounded to ticks.
    """
    require_positive("tempo", score.tempo)
    edges = [time for voice in score.voices for note in voice for time in (note.start, note.length)]
    exact = lcm(*(time.denominator for time in (*edges, *(start for start, _ in score.measures()))))
    division = exact * -(-_TICKS // exact) if exact <= _MAX_TICKS // 2 else _TICKS
    file = mido.MidiFile(type=1, ticks_per_beat=division, charset="utf-8")
    for events in (_conductor(score), *(_line(score, number) for number in range(len(score.voices)))):
        track, now = file.add_track(), 0
        for time, event in sorted(events, key=lambda event: event[0]):  # those of one time stay in their order
            tick = round(time * division)
            track.append(event.copy(time=tick - now))
            now = tick
    written = io.BytesIO()
    file.save(file=written)
    return written.getvalue()


def _conductor(score: Score) -> Iterator[tuple[Fraction, Any]]:
    begin = Fraction(0)
    tempo = min(max(round(60e6 / score.tempo), 1), 2**24 - 1)
    yield begin, mido.MetaMessage("track_name", name=score.title)
    yield begin, mido.MetaMessage("set_tempo", tempo=tempo)
    before: Fraction | None = None
    for start, length in score.measures():
        if length != before:
            beats, unit = signature(length)
            yield start, mido.MetaMessage("time_signature", numerator=beats, denominator=unit)
        before = length
    key = KeySignature.of(score)
    yield begin, mido.MetaMessage("key_signature", key=key.tonic.replace("-", "b") + ("m" if key.minor else ""))
    if score.length > max((note.end for note in score.sounding()), default=score.length):
        yield score.length, mido.MetaMessage("marker", text="end")


def _line(score: Score, number: int) -> Iterator[tuple[Fraction, Any]]:
    """The events of one voice."""
    channel = number % DRUMS
    name = score.names[number].capitalize() if number < len(score.names) else f"Voice {number + 1}"
    yield Fraction(0), mido.MetaMessage("track_name", name=name)
    yield Fraction(0), mido.Message("program_change", channel=channel, program=0)
    for note in score.voices[number]:  # in order of time, so a note ends before the next one of its tick begins
        if note.pitch is not None:
            yield note.start, mido.Message("note_on", channel=channel, note=note.pitch, velocity=VELOCITY)
            yield note.end, mido.Message("note_off", channel=channel, note=note.pitch, velocity=64)


def signature(bar: Fraction) -> tuple[int, int]:
    """The time signature of a bar of so many quarters: (3, 4) for 3, (7, 16) for 7/4."""
    for unit in (4, 8, 16, 32, 64):
        beats = bar * unit / 4
        if beats.denominator == 1 and 0 < beats <= 255:
            return int(beats), unit
    raise refuse("length of a bar", expected="a time signature in quarters to 64ths", got=f"{bar} quarters")
