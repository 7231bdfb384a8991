"""Standard MIDI Files and scores: mido knows the bytes, this module what they mean.

Ticks are fractions of a quarter note, whatever the tempo. A part is what one track has on one channel. What a note-off
ends is the oldest note of its pitch and channel that still sounds, so a note struck again before it ends is two notes.
MIDI knows no pickups; the usual way to write one is a time signature of its length before the real one, and so it is
read. MIDI cannot say either that silence follows the last note: a marker "end" says so here. Percussion (channel 10) is
left out.

Formats 0 and 1 are read, in ticks of a quarter note; whatever mido raises about a broken file becomes one sentence.
"""

import io
from collections import defaultdict
from collections.abc import Iterable, Iterator
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
    file = _Contents(_parse(data, source), source)
    parts = file.parts
    end = max((note.end for part in parts for note in part.notes), default=Fraction(0))
    require_length(source, end)
    stated = Fraction(file.end or 0, file.division)
    if parts and end < stated <= MAX_QUARTERS:
        last = max(note.end for note in parts[0].notes)
        parts[0] = Part(parts[0].name, (*parts[0].notes, Note(last, stated - last, None)))
        end = stated
    bars, bar, metres = file.bars(end)
    tempos = [round(60e6 / tempo, 3) for _, tempo in sorted(file.tempos, key=lambda tempo: tempo[0])]
    about = Score((), bars, title=file.title, bar=bar)
    return assemble(parts, about, source, metres=metres, tempos=tempos, remarks=file.remarks())


def _parse(data: bytes, source: str) -> Any:
    """mido's file of tracks of events; it raises many things where one is broken."""
    if len(data) > MAX_BYTES:
        expected = f"at most {MAX_BYTES // 2**20} MiB (and {MAX_NOTES:,} notes)"
        raise refuse(source, expected=expected, got=f"{len(data) / 2**20:.1f} MiB")
    try:
        file = mido.MidiFile(file=io.BytesIO(data))
    except EOFError:
        raise refuse(source, expected="a whole MIDI file", got="one that is cut off") from None
    except IndexError:
        raise refuse(source, expected="whole MIDI events", got="one that is too short") from None
    except Exception as error:  # OSError, ValueError, KeySignatureError … : one sentence whatever it is
        raise refuse(source, expected="a MIDI file", got=" ".join(str(error).split())) from None
    if file.type not in (0, 1):
        raise refuse(source, expected="MIDI format 0 or 1", got=f"format {file.type}")
    if file.ticks_per_beat <= 0:
        got = "frames a second" if file.ticks_per_beat else "0 ticks"
        raise refuse(source, expected="ticks of a quarter note as the unit of time", got=got)
    for event in (event for track in file.tracks for event in track):
        if event.time > _MAX_TIME:
            raise refuse(source, expected="times of four bytes at most", got="a longer one")
        if event.type == "sysex" and not event.data:  # mido takes running status behind one for an empty one
            raise refuse(source, expected="a status behind a system exclusive event", got="none")
    return file


class _Contents:
    """What the tracks of a file say.

    Attributes:
        division: ticks in a quarter note.
        parts: with a note at least, without percussion.
        tempos: (tick, microseconds a quarter note) of every tempo.
        metres: quarters from the beginning -> quarters in a bar, of every time signature.
        title: the name of the first track, if that has no notes.
        end: the tick of a marker "end"; None where there is none.
        notes, drums, empty, unended: how many notes there are, and how many of them are of percussion, have no length,
            or were still sounding at the end of their track.
    """

    def __init__(self, file: Any, source: str) -> None:
        self.division: int = file.ticks_per_beat
        self.parts: list[Part] = []
        self.tempos: list[tuple[int, int]] = []
        self.metres: dict[Fraction, Fraction] = {}
        self.title, self.end = "", None
        self.notes = self.drums = self.empty = self.unended = 0
        for number, track in enumerate(file.tracks):
            name, channels = self._read(track, source)
            self.title = name if number == 0 and not channels else self.title
            self.notes += sum(map(len, channels.values()))
            if self.notes > MAX_NOTES:
                raise refuse(source, expected=f"at most {MAX_NOTES:,} notes", got="more")
            self.drums += len(channels.pop(_DRUMS, ()))
            for channel, found in sorted(channels.items()):
                called = name if len(channels) == 1 else f"{name} channel {channel + 1}".strip()
                notes = [
                    Note(self._quarters(start), self._quarters(end - start), pitch)
                    for start, end, pitch in sorted(found, key=lambda note: (note[0], -note[2]))
                    if end > start
                ]
                self.empty += len(found) - len(notes)
                if notes:
                    self.parts.append(Part(called, tuple(without_overlaps(notes, _OVERLAP))))

    def _quarters(self, ticks: int) -> Fraction:
        return Fraction(ticks, self.division)

    def _read(self, track: Iterable[Any], source: str) -> tuple[str, dict[int, list[tuple[int, int, int]]]]:
        """The name of a track, and (start, end, pitch) in ticks of the notes of each of its channels."""
        name, tick = "", 0
        played: list[tuple[int, Any]] = []
        for event in track:
            tick += event.time
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
                    beats, unit = event.numerator, event.denominator
                    if beats == 0 or unit > _MAX_UNIT:
                        raise refuse(source, expected="a time signature in halves to 64ths", got=f"{beats} over {unit}")
                    self.metres[self._quarters(tick)] = Fraction(4 * beats, unit)
                case _:
                    pass
        return name, self._notes(played, tick)

    def _notes(self, played: Iterable[tuple[int, Any]], last: int) -> dict[int, list[tuple[int, int, int]]]:
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

    def remarks(self) -> list[str]:
        """What was left out."""
        said = (
            (self.drums, times(self.drums, "note", "notes") + " of percussion (channel 10) left out"),
            (self.empty, times(self.empty, "note", "notes") + " without a length left out"),
            (self.unended, times(self.unended, "note has", "notes have") + " no end and last to the end of the track"),
        )
        return [remark for count, remark in said if count]


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
    channel = number % _DRUMS
    name = score.names[number].capitalize() if number < len(score.names) else f"Voice {number + 1}"
    yield Fraction(0), mido.MetaMessage("track_name", name=name)
    yield Fraction(0), mido.Message("program_change", channel=channel, program=0)
    for note in score.voices[number]:  # in order of time, so a note ends before the next one of its tick begins
        if note.pitch is not None:
            yield note.start, mido.Message("note_on", channel=channel, note=note.pitch, velocity=VELOCITY)
            yield note.end, mido.Message("note_off", channel=channel, note=note.pitch, velocity=64)


def _text(latin: str) -> str:
    """A name as it was meant: mido reads every byte as a letter, most files are UTF-8."""
    try:
        text = latin.encode("latin-1").decode("utf-8")
    except UnicodeError:
        text = latin
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
