"""Standard MIDI Files as bytes: chunks, events, and the notes between on and off.

    file    = "MThd" 6 format tracks division, then chunks "MTrk" length events
    event   = ticks since the last one (7 bits a byte, the highest bit says "more follows"), then
              status and data; a status that repeats may be left out ("running status"), FF begins a meta event

Formats 0 and 1 are read, in ticks of a quarter note. What a note of some pitch and channel ends is the oldest of them
that still sounds, so a note struck again before it ends is two notes. Whatever is no MIDI file, or ends too early, is
refused in one sentence; nothing here loops without moving on in the bytes.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from anyfill.checks import refuse
from anyfill.music.parts import MAX_NOTES

MAX_BYTES = 4 * 2**20
"""Room for ten times the notes that are allowed."""
DRUMS = 9
"""The channel of percussion, "10" where they are counted from 1."""
_DATA_BYTES = {0x80: 2, 0x90: 2, 0xA0: 2, 0xB0: 2, 0xC0: 1, 0xD0: 1, 0xE0: 2}
_NAME, _MARKER, _END, _TEMPO, _TIME = 0x03, 0x06, 0x2F, 0x51, 0x58


@dataclass(frozen=True, slots=True)
class MidiNote:
    """A note in ticks; ``channel`` from 0."""

    start: int
    end: int
    pitch: int
    channel: int


@dataclass(slots=True)
class MidiTrack:
    """The notes of a track in the order of their beginnings, its name and its last tick."""

    name: str = ""
    notes: list[MidiNote] = field(default_factory=list[MidiNote])
    end: int = 0


@dataclass(slots=True)
class MidiFile:
    """What is in a file.

    Attributes:
        division: ticks in a quarter note.
        tracks: all of them, those without notes too.
        tempos: (tick, microseconds a quarter note) of every tempo.
        signatures: (tick, beats, unit) of every time signature, as (0, 3, 4).
        end: the tick of a marker "end"; None where there is none.
        unended: how many notes were still sounding at the end of their track.
    """

    division: int
    tracks: list[MidiTrack] = field(default_factory=list[MidiTrack])
    tempos: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    signatures: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    end: int | None = None
    unended: int = 0

    @property
    def tempo(self) -> int | None:
        """The first, in microseconds a quarter note; None where the file has none."""
        return min(self.tempos, key=lambda tempo: tempo[0])[1] if self.tempos else None


def parse_midi(data: bytes, source: str = "MIDI file") -> MidiFile:
    """The notes of a file; ValueError, in a sentence that begins with ``source``, if it is not one that can be read."""
    if len(data) > MAX_BYTES:
        expected = f"at most {MAX_BYTES // 2**20} MiB (and {MAX_NOTES:,} notes)"
        raise refuse(source, expected=expected, got=f"{len(data) / 2**20:.1f} MiB")
    if data[:4] != b"MThd":
        raise refuse(source, expected="a MIDI file (it begins with MThd)", got=repr(data[:16]))
    if len(data) < 14:
        raise refuse(source, expected="a MIDI header of 14 bytes", got=f"{len(data)} bytes: the file is cut off")
    size, form, count, division = struct.unpack(">IHHH", data[4:14])
    if size < 6:
        raise refuse(source, expected="a MIDI header of 6 bytes at least", got=f"one of {size}")
    if form > 1:
        raise refuse(source, expected="MIDI format 0 or 1", got=f"format {form}")
    if division == 0 or division & 0x8000:
        got = "frames a second" if division else "0 ticks"
        raise refuse(source, expected="ticks of a quarter note as the unit of time", got=got)
    file = MidiFile(division)
    place = 8 + size
    while len(file.tracks) < count:
        if place + 8 > len(data):
            got = f"{len(file.tracks)}: the file is cut off"
            raise refuse(source, expected=f"{count} tracks, as its header says", got=got)
        kind, length = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "big")
        place += 8
        if place + length > len(data):
            missing = place + length - len(data)
            raise refuse(
                source, expected="whole tracks", got=f"one with {missing:,} bytes missing: the file is cut off"
            )
        if kind == b"MTrk":
            _Track(file, data[place : place + length], f"{source}, track {len(file.tracks) + 1}").read()
        place += length
    if sum(len(track.notes) for track in file.tracks) > MAX_NOTES:
        raise refuse(source, expected=f"at most {MAX_NOTES:,} notes", got="more")
    return file


class _Track:
    """Goes through the events of one track."""

    def __init__(self, file: MidiFile, data: bytes, source: str) -> None:
        self._file, self._data, self._source = file, data, source
        self._place = self._tick = 0
        self._track = MidiTrack()
        self._open: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._orphan: dict[tuple[int, int], int] = {}
        self._count = 0

    def read(self) -> None:
        data, status = self._data, 0
        while self._place < len(data):
            self._tick += self._number()
            first = self._byte()
            if first >= 0x80:
                if first < 0xF0:
                    status = first
            elif status:
                self._place -= 1
            else:
                raise refuse(self._source, expected="an event", got=f"byte {first:#04x} with no status before it")
            if first == 0xFF:
                if self._meta(self._byte(), self._take(self._number())):
                    break
            elif first in (0xF0, 0xF7):
                self._take(self._number())
            elif first > 0xF0:
                raise refuse(self._source, expected="an event of a file", got=f"status {first:#04x}")
            else:
                self._channel(status)
        self._close()

    def _byte(self) -> int:
        if self._place >= len(self._data):
            raise refuse(self._source, expected="whole events", got="one that is cut off")
        self._place += 1
        return self._data[self._place - 1]

    def _take(self, count: int) -> bytes:
        taken = self._data[self._place : self._place + count]
        if len(taken) < count:
            raise refuse(self._source, expected="whole events", got=f"one with {count - len(taken):,} bytes missing")
        self._place += count
        return taken

    def _number(self) -> int:
        value = 0
        for _ in range(4):
            byte = self._byte()
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value
        raise refuse(self._source, expected="numbers of four bytes at most", got="a longer one")

    def _channel(self, status: int) -> None:
        kind, channel = status & 0xF0, status & 0x0F
        values = self._take(_DATA_BYTES[kind])
        if max(values) > 0x7F:
            raise refuse(self._source, expected="data bytes up to 127", got=max(values))
        if kind not in (0x80, 0x90):
            return
        key = (channel, values[0])
        if kind == 0x90 and values[1]:
            self._count += 1
            if self._count > MAX_NOTES:
                raise refuse(self._source, expected=f"at most {MAX_NOTES:,} notes", got="more")
            self._drop_empty(key)
            self._open[key].append(self._tick)
        elif self._open[key]:
            self._track.notes.append(MidiNote(self._open[key].pop(0), self._tick, values[0], channel))
        else:
            self._orphan[key] = self._tick

    def _drop_empty(self, key: tuple[int, int]) -> None:
        """End a note of no length whose end was written before its beginning, as music21 does with grace notes."""
        if self._open[key] and self._orphan.get(key) == self._open[key][0]:
            start = self._open[key].pop(0)
            self._track.notes.append(MidiNote(start, start, key[1], key[0]))

    def _meta(self, kind: int, content: bytes) -> bool:
        """Whether the track ends here."""
        if kind == _NAME and not self._track.name:
            self._track.name = _text(content)
        elif kind == _MARKER and content == b"end":
            self._file.end = self._tick
        elif kind == _TEMPO and len(content) == 3 and any(content):
            self._file.tempos.append((self._tick, int.from_bytes(content, "big")))
        elif kind == _TIME and len(content) >= 2:
            if content[0] == 0 or content[1] > 6:
                got = f"{content[0]} over 2^{content[1]}"
                raise refuse(self._source, expected="a time signature in halves to 64ths", got=got)
            self._file.signatures.append((self._tick, content[0], 2 ** content[1]))
        return kind == _END

    def _close(self) -> None:
        track = self._track
        track.end = self._tick
        for (channel, pitch), starts in self._open.items():
            self._drop_empty((channel, pitch))
            self._file.unended += len(starts)
            track.notes += [MidiNote(start, self._tick, pitch, channel) for start in starts]
        track.notes.sort(key=lambda note: (note.start, -note.pitch))
        self._file.tracks.append(track)


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def midi_bytes(division: int, tracks: Iterable[Iterable[tuple[int, bytes]]]) -> bytes:
    """A file of format 1 with these tracks of (tick, event); events of one tick stay in the order they have."""
    chunks: list[bytes] = []
    for events in tracks:
        body, now = bytearray(), 0
        for tick, event in sorted(events, key=lambda event: event[0]):
            body += _variable(tick - now) + event
            now = tick
        body += b"\x00\xff\x2f\x00"
        chunks.append(b"MTrk" + struct.pack(">I", len(body)) + bytes(body))
    return b"MThd" + struct.pack(">IHHH", 6, 1, len(chunks), division) + b"".join(chunks)


def meta(kind: int, content: bytes) -> bytes:
    """A meta event: 0x03 name, 0x06 marker, 0x51 tempo, 0x58 time signature, 0x59 key signature."""
    return bytes((0xFF, kind)) + _variable(len(content)) + content


def _variable(number: int) -> bytes:
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F | 0x80)
    return bytes(reversed(groups))
