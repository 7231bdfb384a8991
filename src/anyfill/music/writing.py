"""Scores into files: MIDI through mido, and MusicXML, each after what the file is called.

    .mid .midi             Standard MIDI File of format 1: tempo, time and key signatures, then one track for each voice
    .musicxml .xml .mxl    MusicXML, the last one zipped: one part for each voice, with measures, ties, clefs, a key
                           signature and accidentals

Signatures and tempos are those that the score states; where it states no key, the one that fits its notes best. A score
that was read from a file and has new notes is better put back into that file (``Piece.save``), which keeps all else.

The same score gives the same bytes. A file is written under another name and renamed at the very end, so whatever was
there stays if anything fails.
"""

import io
import zipfile
from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import mido

from anyfill.checks import refuse, require_positive
from anyfill.disk import write_bytes
from anyfill.music.chorale import Chorale
from anyfill.music.keys import KeySignature
from anyfill.music.midi_document import DRUMS, VELOCITY
from anyfill.music.notation import Pen, add
from anyfill.music.score import Note, Score
from anyfill.music.voices import mean_pitch

MusicFormat = Literal["midi", "musicxml", "mxl"]
SUFFIXES: dict[str, MusicFormat] = {
    **dict.fromkeys((".mid", ".midi"), "midi"),
    **dict.fromkeys((".musicxml", ".xml"), "musicxml"),
    ".mxl": "mxl",
}
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
        add(SubElement(root, "work"), work_title=_plain(score.title))
    listed = SubElement(root, "part-list")
    sheet = _Sheet(score)
    for number, voice in enumerate(score.voices):
        name = score.names[number] if number < len(score.names) else f"voice {number + 1}"
        key = f"P{number + 1}"
        part = add(SubElement(listed, "score-part", id=key), part_name=_plain(name).capitalize())
        add(SubElement(part, "score-instrument", id=f"{key}-I1"), instrument_name="Piano")
        add(SubElement(part, "midi-instrument", id=f"{key}-I1"), midi_channel=number % 9 + 1, midi_program=1)
        part = SubElement(root, "part", id=key)
        for measure in range(len(sheet.bars)):
            sheet.write(part, voice, number, measure)
    indent(root, " ")
    content = _DOCTYPE + tostring(root, encoding="utf-8") + b"\n"
    return zip_of(content) if zipped else content


class _Sheet:
    """What all measures of a score share."""

    def __init__(self, score: Score) -> None:
        self.score, self.keys = score, keys_of(score)
        self.bars, times = zip(*score.measures())
        self.ends = (*self.bars[1:], score.length)
        self.pickup = times[0] < score.bar_length  # its time signature is that of the bars behind it;
        lengths = (times[1], *times[1:]) if self.pickup and len(times) > 1 else times  # it is marked as implicit
        self.times = [stated_time(score, start, length) for start, length in zip(self.bars, lengths)]
        if self.pickup and len(times) > 1:
            self.times[0] = self.times[1]
        edges = [time for voice in score.voices for note in voice for time in (note.start, note.end)]
        self.divisions = lcm(4, *(time.denominator for time in (*edges, *self.bars)))

    def key_at(self, time: Fraction) -> KeySignature:
        """The signature that holds at a time."""
        return self.keys[bisect_right(self.keys, time, key=lambda one: one[0]) - 1][1]

    def write(self, part: Element, voice: tuple[Note, ...], number: int, measure: int) -> None:
        """Add one measure of one voice."""
        start, end = self.bars[measure], self.ends[measure]
        item = SubElement(part, "measure", number=str(measure + (not self.pickup)))
        if measure == 0 and self.pickup:
            item.set("implicit", "yes")
        self._attributes(item, number, measure)
        if number == 0:
            first = [(Fraction(0), self.score.tempo)] if not self.score.signs.tempos else []
            for at, tempo in (*first, *self.score.signs.tempos):
                if start <= at < end or (measure == 0 and at < start):
                    _tempo(item, tempo, int((at - start) * self.divisions))
        Pen(self.key_at(start), self.divisions).measure(item, voice, start, end, start)

    def _attributes(self, item: Element, number: int, measure: int) -> None:
        start, before = self.bars[measure], self.bars[measure - 1] if measure else None
        key = self.key_at(start)
        new_key = before is None or self.key_at(before) != key
        new_time = measure == 0 or self.times[measure] != self.times[measure - 1]
        if not (new_key or new_time):
            return
        attributes = SubElement(item, "attributes")
        if measure == 0:
            add(attributes, divisions=self.divisions)
        if new_key:
            add(SubElement(attributes, "key"), fifths=key.fifths, mode="minor" if key.minor else "major")
        if new_time:
            beats, unit = self.times[measure]
            add(SubElement(attributes, "time"), beats=beats, beat_type=unit)
        if measure == 0:
            sign, line, octaves = clef_of(self.score.voices, number)
            add(SubElement(attributes, "clef"), sign=sign, line=line, clef_octave_change=octaves or None)


def _tempo(item: Element, tempo: float, offset: int) -> None:
    direction = SubElement(item, "direction", placement="above")
    metronome = SubElement(SubElement(direction, "direction-type"), "metronome")
    add(metronome, beat_unit="quarter", per_minute=f"{tempo:.10g}")
    if offset > 0:
        add(direction, offset=offset)
    SubElement(direction, "sound", tempo=f"{tempo:.10g}")


def keys_of(score: Score) -> list[tuple[Fraction, KeySignature]]:
    """(start, signature) of the key signatures of a score: those it states, or else the one that fits it best."""
    found = [(start, KeySignature.stated(score, fifths, minor)) for start, fifths, minor in score.signs.keys]
    if not found:
        return [(Fraction(0), KeySignature.of(score))]
    return [(min(found[0][0], Fraction(0)), found[0][1]), *found[1:]]


def stated_time(score: Score, start: Fraction, length: Fraction) -> tuple[int, int]:
    """The time signature of a measure so long: the one that is stated there if it fits, else any that does."""
    stated = [(beats, unit) for at, beats, unit in score.signs.times if at <= start]
    later = [(beats, unit) for _, beats, unit in score.signs.times]
    for beats, unit in (*stated[::-1], *later):
        if Fraction(4 * beats, unit) == length:
            return beats, unit
    return signature(length)


def clef_of(voices: tuple[tuple[Note, ...], ...], number: int) -> tuple[str, int, int]:
    """Sign, line and octaves: those of a choir for four voices, else after the voice's mean pitch."""
    if len(voices) == 4:
        return (_TREBLE, _TREBLE, _TENOR, _BASS)[number]
    mean = mean_pitch(voices[number])
    return _TREBLE if mean >= 60 or mean == 0 else _BASS


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())


def zip_of(content: bytes) -> bytes:
    """A compressed score (.mxl): the container of one MusicXML document."""
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
    yield begin, mido.MetaMessage("track_name", name=score.title)
    for start, tempo in score.signs.tempos or ((begin, score.tempo),):
        yield start, mido.MetaMessage("set_tempo", tempo=min(max(round(60e6 / tempo), 1), 2**24 - 1))
    before: tuple[int, int] | None = None
    for start, length in score.measures():
        time = stated_time(score, start, length)
        if time != before:
            yield start, mido.MetaMessage("time_signature", numerator=time[0], denominator=time[1])
        before = time
    for start, key in keys_of(score):
        tonic = key.tonic.replace("-", "b") + ("m" if key.minor else "")
        yield start, mido.MetaMessage("key_signature", key=tonic)
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
