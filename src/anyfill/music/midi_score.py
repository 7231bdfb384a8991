"""Between MIDI files and scores: ticks are fractions of a quarter note, whatever the tempo.

A part is what one track has on one channel. MIDI knows no pickups; the usual way to write one is a time signature of
its length before the real one, and so it is read. MIDI cannot say either that silence follows the last note: a marker
"end" says so here. Percussion (channel 10) is left out.
"""

from fractions import Fraction
from math import lcm

from anyfill.checks import refuse, require_positive
from anyfill.music.key_signature import KeySignature
from anyfill.music.metre import COMMON, about_metres, bar_of, bars_of, lengths_of, signature
from anyfill.music.midi import DRUMS, MidiFile, MidiNote, meta, midi_bytes, parse_midi
from anyfill.music.parts import MAX_QUARTERS, Factorization, Frame, Part, about_tempos, assemble, times
from anyfill.music.score import Note, Score
from anyfill.music.voices import without_overlaps

OVERLAP = Fraction(1, 8)
"""Quarters: notes of one part that overlap by less were played so, not meant so."""
VELOCITY = 80
_TICKS = 480
_MAX_TICKS = 0x7FFF


def read_midi(data: bytes, source: str = "MIDI file") -> Factorization:
    """The score in a MIDI file; ValueError, in a sentence that begins with ``source``, if there is none."""
    file = parse_midi(data, source)
    parts, remarks = _parts(file)
    if file.unended:
        remarks.append(times(file.unended, "note has", "notes have") + " no end and last to the end of the track")
    end = max((note.end for part in parts for note in part.notes), default=Fraction(0))
    if end > MAX_QUARTERS:
        raise refuse(source, expected=f"at most {MAX_QUARTERS:,} quarter notes", got=f"{float(end):,.0f}")
    stated = Fraction(file.end or 0, file.division)
    if parts and end < stated <= MAX_QUARTERS:
        last = max(note.end for note in parts[0].notes)
        parts[0] = Part(parts[0].name, (*parts[0].notes, Note(last, stated - last, None)))
        end = stated
    bars, bar, metres = _bars(file, end)
    tempo = round(60e6 / file.tempo, 3) if file.tempo else 80.0  # stored in whole microseconds
    remarks += about_metres(metres, bar)
    remarks += about_tempos([round(60e6 / one, 3) for _, one in sorted(file.tempos, key=lambda tempo: tempo[0])])
    first = file.tracks[0] if file.tracks else None
    title = first.name if first is not None and not first.notes else ""
    return assemble(parts, Frame(bars, bar, tempo, title), source, remarks)


def write_midi(score: Score, bar: Fraction | None = None) -> bytes:
    """A MIDI file of format 1: a track of tempo, time and key signatures, then one track for each voice, on piano.

    Args:
        score: what to write; times that no tick can express are rounded to ticks.
        bar: quarters in a bar; after the score's bars by default.
    """
    require_positive("tempo", score.tempo)
    bar = bar or bar_of(score)
    bars = bars_of(score, bar)
    notes = [note for voice in score.voices for note in voice]
    exact = lcm(
        *(time.denominator for note in notes for time in (note.start, note.length)), *(b.denominator for b in bars)
    )
    division = exact * -(-_TICKS // exact) if exact <= _MAX_TICKS // 2 else _TICKS
    conductor: list[tuple[int, bytes]] = [
        (0, meta(0x03, score.title.encode())),
        (0, meta(0x51, min(max(round(60e6 / score.tempo), 1), 2**24 - 1).to_bytes(3, "big"))),
    ]
    before: Fraction | None = None
    for start, length in zip(bars, lengths_of(bars, bar, score.length)):
        if length != before:
            beats, unit = signature(length)
            conductor.append((round(start * division), meta(0x58, bytes((beats, unit.bit_length() - 1, 24, 8)))))
        before = length
    key = KeySignature.of(score)
    conductor.append((0, meta(0x59, bytes((key.fifths % 256, int(key.minor))))))
    if any(note.pitch is not None for note in notes):
        last = max(note.end for note in notes if note.pitch is not None)
        if score.length > last:
            conductor.append((round(score.length * division), meta(0x06, b"end")))
    tracks = [conductor]
    for number, voice in enumerate(score.voices):
        channel = number % DRUMS
        name = score.names[number].capitalize() if number < len(score.names) else f"Voice {number + 1}"
        events: list[tuple[int, bytes]] = [(0, meta(0x03, name.encode())), (0, bytes((0xC0 | channel, 0)))]
        for note in voice:  # in order of time, so a note ends before the next one of its tick begins
            if note.pitch is not None:
                events.append((round(note.start * division), bytes((0x90 | channel, note.pitch, VELOCITY))))
                events.append((round(note.end * division), bytes((0x80 | channel, note.pitch, 64))))
        tracks.append(events)
    return midi_bytes(division, tracks)


def _parts(file: MidiFile) -> tuple[list[Part], list[str]]:
    """The parts without percussion, and what was left out."""
    parts: list[Part] = []
    drums = empty = 0
    for track in file.tracks:
        channels: dict[int, list[MidiNote]] = {}
        for note in track.notes:
            channels.setdefault(note.channel, []).append(note)
        drums += len(channels.pop(DRUMS, ()))
        for channel, found in sorted(channels.items()):
            notes = [
                Note(Fraction(note.start, file.division), Fraction(note.end - note.start, file.division), note.pitch)
                for note in found
                if note.end > note.start
            ]
            empty += len(found) - len(notes)
            name = track.name if len(channels) == 1 else f"{track.name} channel {channel + 1}".strip()
            if notes:
                parts.append(Part(name, tuple(without_overlaps(notes, OVERLAP))))
    remarks: list[str] = []
    if drums:
        remarks.append(times(drums, "note", "notes") + " of percussion (channel 10) left out")
    if empty:
        remarks.append(times(empty, "note", "notes") + " without a length left out")
    return parts, remarks


def _bars(file: MidiFile, end: Fraction) -> tuple[tuple[Fraction, ...], Fraction | None, list[Fraction]]:
    """Where bars begin; quarters in a bar, after the time signature that holds longest; and all that hold anywhere."""
    found: dict[Fraction, Fraction] = {}
    for tick, beats, unit in sorted(file.signatures):
        found[Fraction(tick, file.division)] = Fraction(4 * beats, unit)
    starts = sorted(start for start in found if start <= end)
    if not starts or starts[0] > 0:
        starts = [Fraction(0), *starts]
    lengths = [found.get(start, COMMON) for start in starts]
    ends = [*starts[1:], max(end, starts[-1])]
    bars: list[Fraction] = []
    for start, length, stop in zip(starts, lengths, ends):
        count = max(-(-(stop - start) // length), int(not bars))
        bars += [start + length * n for n in range(count)]
    lasting = {length: Fraction(0) for length in lengths}
    for number, (start, length, stop) in enumerate(zip(starts, lengths, ends)):
        pickup = number == 0 and len(starts) > 1 and stop - start <= length < lengths[1]
        lasting[length] += 0 if pickup else stop - start
    bar = max(lasting, key=lambda length: (lasting[length], length)) if found else None
    return tuple(bars), bar, [length for length, time in lasting.items() if time]
