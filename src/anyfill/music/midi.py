"""Standard MIDI Files as scores: mido decodes messages, this module walks the bytes and says what they mean.

    file    = "MThd" 6 format tracks division, then chunks "MTrk" length events
    event   = ticks since the last one (7 bits a byte, the highest bit says "more follows"), then
              status and data; a status that repeats may be left out ("running status"), FF begins a meta event

The walk is our own because mido's reader refuses what many files have: chunks of other kinds between tracks, a running
status behind a system exclusive event, meta events of an odd length. Here all of these are read past.

Formats 0 and 1 are read, in ticks of a quarter note, whatever the tempo. A part is what one track has on one channel.
What a note-off ends is the oldest note of its pitch and channel that still sounds, so a note struck again before it
ends is two notes. MIDI knows no pickups; the usual way to write one is a time signature of its length before the real
one, and so it is read. MIDI cannot say either that silence follows the last note: a marker "end" says so here.
Percussion (channel 10) is left out. Where no tempo is stated it is 120 quarters a minute, as the standard has it.

A score keeps its file (``MidiDocument``), by which it is written again with other notes and is otherwise the same.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from mido import Message
from mido.midifiles.meta import build_meta_message

from anyfill.checks import refuse
from anyfill.music.midi_document import DRUMS, MidiDocument, content_of, walk
from anyfill.music.score import COMMON, MAX_NOTES, MAX_QUARTERS, Note, Origin, Score, Signs, require_length
from anyfill.music.voices import ParsedScore, Part, assemble, times, without_overlaps

MAX_BYTES = 4 * 2**20
"""Room for ten times the notes that are allowed."""
_OVERLAP = Fraction(1, 8)
"""Quarters: notes of one part that overlap by less were played so, not meant so."""
_MAX_UNIT = 64
_Heard = tuple[int, int, int, Origin]
_NAME, _MARKER, _TEMPO, _TIME, _KEY = 0x03, 0x06, 0x51, 0x58, 0x59
STANDARD_TEMPO = 120.0
"""Quarters a minute where a file does not say."""


def read_midi(data: bytes, source: str = "MIDI file") -> ParsedScore:
    """The score in a MIDI file; ValueError, in a sentence that begins with ``source``, if there is none."""
    file = _Contents(*_tracks(data, source), source)
    parts = file.parts
    end = max((note.end for part in parts for note in part.notes), default=Fraction(0))
    require_length(source, end)
    stated = Fraction(file.end or 0, file.division)
    if parts and end < stated <= MAX_QUARTERS:
        last = max(note.end for note in parts[0].notes)
        parts[0] = Part(parts[0].name, (*parts[0].notes, Note(last, stated - last, None)))
        end = stated
    bars, bar, metres = file.bars(end)
    document = MidiDocument(data)
    about = Score((), bars, (), STANDARD_TEMPO, file.title, bar, file.signs(), document)
    return assemble(parts, about, source, metres=metres, remarks=file.remarks())


def _tracks(data: bytes, source: str) -> tuple[int, list[bytes]]:
    """Ticks in a quarter note, and the events of every track."""
    if len(data) > MAX_BYTES:
        expected = f"at most {MAX_BYTES // 2**20} MiB (and {MAX_NOTES:,} notes)"
        raise refuse(source, expected=expected, got=f"{len(data) / 2**20:.1f} MiB")
    if len(data) < 14:
        raise refuse(source, expected="a MIDI header of 14 bytes", got=f"{len(data)} bytes: the file is cut off")
    name, size, form, count, division = struct.unpack(">4sIHHh", data[:14])
    if name != b"MThd" or size < 6:
        raise refuse(source, expected="a MIDI header (MThd and 6 bytes at least)", got=repr(data[:8]))
    if form > 1:
        raise refuse(source, expected="MIDI format 0 or 1", got=f"format {form}")
    if division <= 0:
        got = "frames a second" if division else "0 ticks"
        raise refuse(source, expected="ticks of a quarter note as the unit of time", got=got)
    tracks, place = list[bytes](), 8 + size
    while len(tracks) < count:
        kind, length = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "big")
        place += 8 + length
        if place > len(data):
            got = f"{len(tracks)}: the file is cut off"
            raise refuse(source, expected=f"{count} whole tracks, as its header says", got=got)
        if kind == b"MTrk":
            tracks.append(data[place - length : place])
    return division, tracks


def _message(event: bytes) -> Any:
    """The event as mido has it, if it is one that is looked at; None otherwise."""
    if event[:1] != b"\xff":
        return Message.from_bytes(event) if 0x80 <= event[0] < 0xA0 else None
    kind, content = event[1], content_of(event)
    if kind in (_NAME, _MARKER) or (kind == _TEMPO and len(content) == 3):
        return build_meta_message(kind, content)
    return None


class _Contents:
    """What the tracks of a file say.

    Attributes:
        division: ticks in a quarter note.
        parts: with a note at least, without percussion.
        tempos: (tick, microseconds a quarter note) of every tempo.
        metres: quarters from the beginning -> quarters in a bar, of every time signature.
        times, keys: quarters from the beginning -> (beats, unit), (sharps, minor) of every signature.
        title: the name of the first track, if that has no notes.
        end: the tick of a marker "end"; None where there is none.
        notes, drums, empty, unended: how many notes there are, and how many of them are of percussion, have no length,
            or were still sounding at the end of their track.
    """

    def __init__(self, division: int, tracks: Iterable[bytes], source: str) -> None:
        self.division = division
        self.parts: list[Part] = []
        self.tempos: list[tuple[int, int]] = []
        self.metres: dict[Fraction, Fraction] = {}
        self.times: dict[Fraction, tuple[int, int]] = {}
        self.keys: dict[Fraction, tuple[int, bool]] = {}
        self.title, self.end = "", None
        self.notes = self.drums = self.empty = self.unended = 0
        for number, track in enumerate(tracks):
            name, channels = self._read(track, number, source)
            self.title = name if number == 0 and not channels else self.title
            self.drums += len(channels.pop(DRUMS, ()))
            for channel, found in sorted(channels.items()):
                called = name if len(channels) == 1 else f"{name} channel {channel + 1}".strip()
                notes = [
                    Note(self._quarters(start), self._quarters(end - start), pitch, origin=origin)
                    for start, end, pitch, origin in sorted(found, key=lambda note: (note[0], -note[2]))
                    if end > start
                ]
                self.empty += len(found) - len(notes)
                if notes:
                    label = f"track {number + 1}, channel {channel + 1}"
                    self.parts.append(Part(called, tuple(without_overlaps(notes, _OVERLAP)), label))

    def _quarters(self, ticks: int) -> Fraction:
        return Fraction(ticks, self.division)

    def _read(self, track: bytes, number: int, source: str) -> tuple[str, dict[int, list[_Heard]]]:
        """The name of a track, and (start, end, pitch, origin) in ticks of the notes of each of its channels."""
        name, tick = "", 0
        channels: defaultdict[int, list[_Heard]] = defaultdict(list)
        sounding: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)  # since when, oldest first
        ended: dict[tuple[int, int], tuple[int, int]] = {}  # where a note ended that did not sound

        def end(key: tuple[int, int], tick: int, place: int) -> None:
            start, on = sounding[key].pop(0)
            channels[key[0]].append((start, tick, key[1], Origin((number, key[0]), ((on, place),))))

        def drop_empty(key: tuple[int, int]) -> None:
            """End a note of no length whose end was written before its beginning, as music21 does with grace notes."""
            if sounding[key] and key in ended and ended[key][0] == sounding[key][0][0]:
                end(key, *ended[key])

        for place, (tick, content) in enumerate(walk(track, source)):
            event: Any = _message(content) if content else None
            match event and event.type:
                case "note_on" if event.velocity:
                    key = (event.channel, event.note)
                    drop_empty(key)
                    sounding[key].append((tick, place))
                    self.notes += 1
                    if self.notes > MAX_NOTES:
                        raise refuse(source, expected=f"at most {MAX_NOTES:,} notes", got="more")
                case "note_on" | "note_off":
                    key = (event.channel, event.note)
                    if sounding[key]:
                        end(key, tick, place)
                    else:
                        ended[key] = (tick, place)
                case "track_name":
                    name = name or _text(event.name)
                case "marker" if event.text == "end":
                    self.end = tick
                case "set_tempo" if event.tempo:
                    self.tempos.append((tick, event.tempo))
                case _ if content[:2] == bytes((0xFF, _TIME)) and len(content_of(content)) >= 2:
                    beats, unit = content_of(content)[0], 2 ** content_of(content)[1]  # the rest is often left out
                    if beats == 0 or unit > _MAX_UNIT:
                        raise refuse(source, expected="a time signature in halves to 64ths", got=f"{beats} over {unit}")
                    self.metres[self._quarters(tick)] = Fraction(4 * beats, unit)
                    self.times[self._quarters(tick)] = (beats, unit)
                case _ if content[:2] == bytes((0xFF, _KEY)) and len(content_of(content)) == 2:
                    sharps, minor = struct.unpack("bB", content_of(content))
                    if abs(sharps) <= 7 and minor <= 1:
                        self.keys[self._quarters(tick)] = (sharps, bool(minor))
                case _:
                    pass
        for key, starts in sounding.items():
            drop_empty(key)
            self.unended += len(starts)
            for _ in range(len(starts)):
                end(key, tick, -1)
        return name, {channel: notes for channel, notes in channels.items() if notes}

    def bars(self, end: Fraction) -> tuple[tuple[Fraction, ...], Fraction | None, list[Fraction]]:
        """Where bars begin; quarters in a bar, after the time signature that holds longest; all that hold anywhere."""
        starts = sorted(start for start in self.metres if start <= end)
        if not starts or starts[0] > 0:
            starts = [Fraction(0), *starts]
        lengths = [self.metres.get(start, COMMON) for start in starts]
        ends = [*starts[1:], max(end, starts[-1])]
        bars: list[Fraction] = []
        lasting = {length: Fraction(0) for length in lengths}
        for number, (start, length, stop) in enumerate(zip(starts, lengths, ends)):
            count = max(-(-(stop - start) // length), int(not bars))
            bars += [start + length * n for n in range(count)]
            pickup = number == 0 and len(starts) > 1 and stop - start <= length < lengths[1]
            lasting[length] += 0 if pickup else stop - start
        bar = max(lasting, key=lambda length: (lasting[length], length)) if self.metres else None
        return tuple(bars), bar, [length for length, time in lasting.items() if time]

    def signs(self) -> Signs:
        """Signatures and tempos."""
        tempos = sorted({self._quarters(tick): tempo for tick, tempo in self.tempos}.items())
        return Signs(
            tuple((start, *time) for start, time in sorted(self.times.items())),
            tuple((start, *key) for start, key in sorted(self.keys.items())),
            tuple((start, round(60e6 / tempo, 3)) for start, tempo in tempos),
        )

    def remarks(self) -> list[str]:
        """What was left out."""
        said = (
            (self.drums, "note", "notes", "of percussion (channel 10) left out"),
            (self.empty, "note", "notes", "without a length left out"),
            (self.unended, "note has", "notes have", "no end and last to the end of the track"),
        )
        return [f"{times(count, one, many)} {what}" for count, one, many, what in said if count]


def _text(latin: str) -> str:
    """A name as it was meant: mido reads every byte as a letter, most files are UTF-8."""
    try:
        text = latin.encode("latin-1").decode("utf-8")
    except UnicodeError:
        text = latin
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
