"""Standard MIDI Files and scores: mido knows the bytes, this module what they mean.

Ticks are fractions of a quarter note, whatever the tempo. A part is what one track has on one channel. What a note-off
ends is the oldest note of its pitch and channel that still sounds, so a note struck again before it ends is two notes.
MIDI knows no pickups; the usual way to write one is a time signature of its length before the real one, and so it is
read. MIDI cannot say either that silence follows the last note: a marker "end" says so here. Percussion (channel 10) is
left out.

Formats 0 and 1 are read, in ticks of a quarter note. Chunks are cut out here and their events read by mido, a track at
a time: so an error names its track, and whatever mido raises about a broken one becomes one sentence.
"""

import io
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import Any

import mido

from anyfill.checks import refuse, require_positive
from anyfill.music.keys import KeySignature
from anyfill.music.score import (
    COMMON,
    MAX_NOTES,
    MAX_QUARTERS,
    Note,
    ParsedScore,
    Score,
    about_metres,
    about_tempos,
    bar_of,
    bars_of,
    lengths_of,
    require_length,
    signature,
    times,
)
from anyfill.music.voices import Part, assemble, without_overlaps

MAX_BYTES = 2**20
"""Room for three times the notes that are allowed; read in seconds."""
VELOCITY = 80
_DRUMS = 9
"""The channel of percussion, "10" where they are counted from 1."""
_OVERLAP = Fraction(1, 8)
"""Quarters: notes of one part that overlap by less were played so, not meant so."""
_TICKS = 480
_MAX_TICKS = 0x7FFF
_MAX_TIME = 0x0FFFFFFF
_MAX_UNIT = 64


def read_midi(data: bytes, source: str = "MIDI file") -> ParsedScore:
    """The score in a MIDI file; ValueError, in a sentence that begins with ``source``, if there is none."""
    division, tracks = _tracks(data, source)
    file = _Contents(division)
    for number, track in enumerate(tracks, 1):
        file.add(track, f"{source}, track {number}")
    parts = file.parts
    end = max((note.end for part in parts for note in part.notes), default=Fraction(0))
    require_length(source, end)
    stated = Fraction(file.end or 0, division)
    if parts and end < stated <= MAX_QUARTERS:
        last = max(note.end for note in parts[0].notes)
        parts[0] = Part(parts[0].name, (*parts[0].notes, Note(last, stated - last, None)))
        end = stated
    bars, bar, metres = file.bars(end)
    tempos = [round(60e6 / tempo, 3) for _, tempo in sorted(file.tempos, key=lambda tempo: tempo[0])]
    about = Score((), bars, tempo=tempos[0] if tempos else 80.0, title=file.title)
    remarks = [*file.remarks(), *about_metres(metres, bar), *about_tempos(tempos)]
    return assemble(parts, about, source, bar=bar, remarks=remarks)


def _tracks(data: bytes, source: str) -> tuple[int, list[Any]]:
    """Ticks in a quarter note, and mido's tracks of events."""
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
    tracks: list[Any] = []
    place = 8 + size
    while len(tracks) < count:
        if place + 8 > len(data):
            got = f"{len(tracks)}: the file is cut off"
            raise refuse(source, expected=f"{count} tracks, as its header says", got=got)
        kind, length = struct.unpack(">4sI", data[place : place + 8])
        behind = place + 8 + length
        if behind > len(data):
            got = f"one with {behind - len(data):,} bytes missing: the file is cut off"
            raise refuse(source, expected="whole tracks", got=got)
        if kind == b"MTrk":  # others are somebody's own
            tracks.append(_events(data[place:behind], f"{source}, track {len(tracks) + 1}"))
        place = behind
    return division, tracks


def _events(chunk: bytes, source: str) -> Any:
    """mido's events of one track; it raises many things where one is broken."""
    alone = b"MThd" + struct.pack(">IHHH", 6, 0, 1, _TICKS) + chunk
    try:
        (track,) = mido.MidiFile(file=io.BytesIO(alone)).tracks
    except EOFError:
        raise refuse(source, expected="whole events", got="one that is cut off") from None
    except IndexError:
        raise refuse(source, expected="whole events", got="one that is too short") from None
    except Exception as error:  # OSError, ValueError, KeySignatureError, … : one sentence whatever it is
        raise refuse(source, expected="events of a MIDI file", got=" ".join(str(error).split())) from None
    for event in track:
        if event.time > _MAX_TIME:
            raise refuse(source, expected="times of four bytes at most", got="a longer one")
        if event.type == "sysex" and not event.data:  # mido takes running status behind one for an empty one
            raise refuse(source, expected="a status behind a system exclusive event", got="none")
    return track


@dataclass(slots=True)
class _Contents:
    """What the tracks of a file say, in ticks.

    Attributes:
        division: ticks in a quarter note.
        parts: with a note at least, without percussion.
        tempos: (tick, microseconds a quarter note) of every tempo.
        signatures: (tick, beats, unit) of every time signature, as (0, 3, 4).
        title: the name of the first track, if that has no notes.
        end: the tick of a marker "end"; None where there is none.
        tracks, notes, drums, empty, unended: how many tracks and notes there are, and how many of the notes are of
            percussion, have no length, or were still sounding at the end of their track.
    """

    division: int
    parts: list[Part] = field(default_factory=list[Part])
    tempos: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    signatures: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    title: str = ""
    end: int | None = None
    tracks: int = 0
    notes: int = 0
    drums: int = 0
    empty: int = 0
    unended: int = 0

    def add(self, track: Iterable[Any], source: str) -> None:
        """Take in the events of one more track."""
        name, last = "", 0
        played: list[tuple[int, Any]] = []
        for tick, event in _timed(track):
            last = tick
            match event.type:
                case "end_of_track":
                    break
                case "note_on" | "note_off":
                    played.append((tick, event))
                case "track_name":
                    name = name or _text(event.name)
                case "marker" if event.text == "end":
                    self.end = tick
                case "set_tempo" if event.tempo:
                    self.tempos.append((tick, event.tempo))
                case "time_signature":
                    if event.numerator == 0 or event.denominator > _MAX_UNIT:
                        got = f"{event.numerator} over {event.denominator}"
                        raise refuse(source, expected="a time signature in halves to 64ths", got=got)
                    self.signatures.append((tick, event.numerator, event.denominator))
                case _:
                    pass
        channels = self._notes(played, last)
        self.notes += sum(map(len, channels.values()))
        if self.notes > MAX_NOTES:
            raise refuse(source, expected=f"at most {MAX_NOTES:,} notes", got="more")
        self.tracks += 1
        if self.tracks == 1 and not channels:
            self.title = name
        self.drums += len(channels.pop(_DRUMS, ()))
        for channel, found in sorted(channels.items()):
            notes = [
                Note(Fraction(start, self.division), Fraction(end - start, self.division), pitch)
                for start, end, pitch in sorted(found, key=lambda note: (note[0], -note[2]))
                if end > start
            ]
            self.empty += len(found) - len(notes)
            if notes:
                called = name if len(channels) == 1 else f"{name} channel {channel + 1}".strip()
                self.parts.append(Part(called, tuple(without_overlaps(notes, _OVERLAP))))

    def _notes(self, played: Iterable[tuple[int, Any]], last: int) -> dict[int, list[tuple[int, int, int]]]:
        """(start, end, pitch) of the notes of each channel of a track that ends at the tick ``last``."""
        channels: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
        sounding: defaultdict[tuple[int, int], list[int]] = defaultdict(list)  # since when, oldest first
        ended: dict[tuple[int, int], int] = {}  # where a note ended that did not sound

        def drop_empty(key: tuple[int, int]) -> None:
            """End a note of no length whose end was written before its beginning, as music21 does with grace notes."""
            if sounding[key] and ended.get(key) == sounding[key][0]:
                start = sounding[key].pop(0)
                channels[key[0]].append((start, start, key[1]))

        for tick, event in played:
            key = (event.channel, event.note)
            if event.type == "note_on" and event.velocity:
                drop_empty(key)
                sounding[key].append(tick)
            elif sounding[key]:
                channels[event.channel].append((sounding[key].pop(0), tick, event.note))
            else:
                ended[key] = tick
        for key, starts in sounding.items():
            drop_empty(key)
            self.unended += len(starts)
            channels[key[0]] += [(start, last, key[1]) for start in starts]
        return {channel: notes for channel, notes in channels.items() if notes}

    def bars(self, end: Fraction) -> tuple[tuple[Fraction, ...], Fraction | None, list[Fraction]]:
        """Where bars begin; quarters in a bar, after the time signature that holds longest; all that hold anywhere."""
        found = {Fraction(tick, self.division): Fraction(4 * n, unit) for tick, n, unit in sorted(self.signatures)}
        starts = sorted(start for start in found if start <= end)
        if not starts or starts[0] > 0:
            starts = [Fraction(0), *starts]
        lengths = [found.get(start, COMMON) for start in starts]
        ends = [*starts[1:], max(end, starts[-1])]
        bars: list[Fraction] = []
        lasting = {length: Fraction(0) for length in lengths}
        for number, (start, length, stop) in enumerate(zip(starts, lengths, ends)):
            count = max(-(-(stop - start) // length), int(not bars))
            bars += [start + length * n for n in range(count)]
            pickup = number == 0 and len(starts) > 1 and stop - start <= length < lengths[1]
            lasting[length] += 0 if pickup else stop - start
        bar = max(lasting, key=lambda length: (lasting[length], length)) if found else None
        return tuple(bars), bar, [length for length, time in lasting.items() if time]

    def remarks(self) -> list[str]:
        """What was left out."""
        said = (
            (self.drums, times(self.drums, "note", "notes") + " of percussion (channel 10) left out"),
            (self.empty, times(self.empty, "note", "notes") + " without a length left out"),
            (self.unended, times(self.unended, "note has", "notes have") + " no end and last to the end of the track"),
        )
        return [remark for count, remark in said if count]


def write_midi(score: Score, bar: Fraction | None = None) -> bytes:
    """A MIDI file of format 1: a track of tempo, time and key signatures, then one track for each voice, on piano.

    Args:
        score: what to write; times that no tick can express are rounded to ticks.
        bar: quarters in a bar; after the score's bars by default.
    """
    require_positive("tempo", score.tempo)
    bar = bar or bar_of(score)
    bars = bars_of(score, bar)
    edges = [time for voice in score.voices for note in voice for time in (note.start, note.length)]
    exact = lcm(*(time.denominator for time in (*edges, *bars)))
    division = exact * -(-_TICKS // exact) if exact <= _MAX_TICKS // 2 else _TICKS
    file = mido.MidiFile(type=1, ticks_per_beat=division, charset="utf-8")
    file.tracks = [_track(events) for events in (_conductor(score, bar, bars, division), *_lines(score, division))]
    written = io.BytesIO()
    file.save(file=written)
    return written.getvalue()


def _conductor(score: Score, bar: Fraction, bars: tuple[Fraction, ...], division: int) -> list[tuple[int, Any]]:
    tempo = min(max(round(60e6 / score.tempo), 1), 2**24 - 1)
    events = [
        (0, mido.MetaMessage("track_name", name=score.title)),
        (0, mido.MetaMessage("set_tempo", tempo=tempo)),
    ]
    before: Fraction | None = None
    for start, length in zip(bars, lengths_of(bars, bar, score.length)):
        if length != before:
            beats, unit = signature(length)
            event = mido.MetaMessage("time_signature", numerator=beats, denominator=unit)
            events.append((round(start * division), event))
        before = length
    key = KeySignature.of(score)
    name = key.tonic.replace("-", "b") + ("m" if key.minor else "")
    events.append((0, mido.MetaMessage("key_signature", key=name)))
    last = max((note.end for note in score.sounding()), default=score.length)
    if score.length > last:
        events.append((round(score.length * division), mido.MetaMessage("marker", text="end")))
    return events


def _lines(score: Score, division: int) -> Iterator[list[tuple[int, Any]]]:
    """The events of each voice."""
    for number, voice in enumerate(score.voices):
        channel = number % _DRUMS
        name = score.names[number].capitalize() if number < len(score.names) else f"Voice {number + 1}"
        events = [
            (0, mido.MetaMessage("track_name", name=name)),
            (0, mido.Message("program_change", channel=channel, program=0)),
        ]
        for note in voice:  # in order of time, so a note ends before the next one of its tick begins
            if note.pitch is not None:
                on = mido.Message("note_on", channel=channel, note=note.pitch, velocity=VELOCITY)
                off = mido.Message("note_off", channel=channel, note=note.pitch, velocity=64)
                events += [(round(note.start * division), on), (round(note.end * division), off)]
        yield events


def _track(events: Iterable[tuple[int, Any]]) -> Any:
    """mido's track, in which each event has the ticks since the one before; those of one tick stay in their order."""
    track, now = mido.MidiTrack(), 0
    for tick, event in sorted(events, key=lambda event: event[0]):
        track.append(event.copy(time=tick - now))
        now = tick
    return track


def _timed(track: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Events with their tick."""
    tick = 0
    for event in track:
        tick += event.time
        yield tick, event


def _text(latin: str) -> str:
    """A name as it was meant: mido reads every byte as a letter, most files are UTF-8."""
    try:
        text = latin.encode("latin-1").decode("utf-8")
    except UnicodeError:
        text = latin
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
