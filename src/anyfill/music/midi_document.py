"""A MIDI file that is written again with other notes: events that are not touched stay as they are, and so do chunks.

A track in which nothing changes keeps its bytes. One in which notes go or come keeps all its other events at their
ticks, in their order (running status is written out, since the event it leant on may be gone). New parts are tracks of
their own behind the others, with the program of the tune on channels that nobody uses; a file of format 0 becomes one
of format 1 by that. Times that no tick can express are rounded to ticks.

What a note-off ends is the oldest note of its pitch and channel. Where several voices share a channel, a new note that
lies inside one of its own pitch would so take over its end, or give it its own. It goes to a track of its own, too.
"""

import io
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from mido.messages.specs import SPEC_BY_STATUS

from anyfill.checks import refuse
from anyfill.music.score import Change, Note

VELOCITY = 80
DRUMS = 9
"""The channel of percussion, "10" where they are counted from 1."""
_NAME, _MARKER, _END, _TEMPO, _TIME, _KEY = 0x03, 0x06, 0x2F, 0x51, 0x58, 0x59
_OF_ALL = (_MARKER, 0x07, _TEMPO, 0x54, _TIME, _KEY)
"""Meta events that speak of the whole piece, in whatever track they stand."""
Event = tuple[int, bytes]


def walk(track: bytes, source: str = "MIDI file") -> Iterator[tuple[int, bytes]]:
    """(tick, event) of everything in a track, each event with its status; at last (tick, b"") where it ends."""
    stream, tick, status = io.BytesIO(track), 0, 0

    def take(count: int) -> bytes:
        taken = stream.read(count)
        if len(taken) < count:
            raise refuse(source, expected="whole events", got="one that is cut off")
        return taken

    def number() -> int:
        value = 0
        for _ in range(4):
            (byte,) = take(1)
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value
        raise refuse(source, expected="numbers of four bytes at most", got="a longer one")

    while stream.tell() < len(track):
        tick += number()
        begin = stream.tell()
        (first,) = take(1)
        if first == 0xFF:
            (kind,) = take(1)
            take(number())
            if kind == _END:
                break
            yield tick, track[begin : stream.tell()]
        elif first in (0xF0, 0xF7):
            take(number())
            yield tick, track[begin : stream.tell()]
        else:
            status = first if first >= 0x80 else status
            if not 0x80 <= status < 0xF0:
                got = f"status {status:#04x}" if status else f"byte {first:#04x} with no status before it"
                raise refuse(source, expected="an event of a file", got=got)
            stream.seek(-(first < 0x80), io.SEEK_CUR)
            values = take(SPEC_BY_STATUS[status]["length"] - 1)
            if max(values) > 0x7F:
                raise refuse(source, expected="data bytes up to 127", got=max(values))
            yield tick, bytes((status, *values))
    yield tick, b""


def content_of(event: bytes) -> bytes:
    """What a meta event says, without kind and length."""
    place = 2
    while event[place] >= 0x80:
        place += 1
    return event[place + 1 :]


@dataclass(frozen=True, slots=True)
class MidiDocument:
    """A file of format 0 or 1, as it was read."""

    data: bytes

    @property
    def kind(self) -> str:
        return "midi"

    def rewritten(self, change: Change) -> bytes:
        """The file with a change made to it."""
        size = int.from_bytes(self.data[4:8], "big")
        form, count, division = struct.unpack(">HHh", self.data[8:14])
        chunks = [*self._chunks(8 + size)]
        numbers = [place for place, (kind, _) in enumerate(chunks) if kind == b"MTrk"][:count]
        tracks = [[*walk(chunks[place][1])] for place in numbers]
        scale = self._scale(division, change)
        removed: defaultdict[int, set[int]] = defaultdict(set)
        added: defaultdict[int, list[Event]] = defaultdict(list)
        for rewrite in change.rewrites:
            track, channel = (int(str(one)) for one in rewrite.stream)
            for note in rewrite.removed:
                if note.origin is not None:
                    removed[int(str(note.origin.stream[0]))] |= {place for pair in note.origin.places for place in pair}
        tune = None if change.beside is None else int(str(change.beside[1]))
        new = [(name, tune, notes) for name, notes in (*change.above, *change.below)]
        sounds: dict[tuple[int, int], _Sounds] = {}
        for rewrite in change.rewrites:
            track, channel = (int(str(one)) for one in rewrite.stream)
            if (track, channel) not in sounds:
                stay = [event for place, event in enumerate(tracks[track]) if place not in removed[track]]
                sounds[track, channel] = _Sounds(stay, channel, scale)
            here, apart = sounds[track, channel].joined(rewrite.notes, division * scale)
            added[track] += _events_of(here, channel, division * scale)
            new += [(_name_of(tracks[track]), channel, apart)] if apart else []
        channels = _free_channels(tracks, change, len(new))
        written: list[bytes | None] = []
        for number, events in enumerate(tracks):
            kept = _kept(events, number, removed[number], change)
            if kept is None:
                written.append(None)
            elif len(kept) == len(events) and not added[number] and scale == 1 and change.key is None:
                written.append(chunks[numbers[number]][1])
            else:
                scaled = [(tick * scale, event) for tick, event in kept]
                ends = _missing_ends(scaled) if added[number] else []
                written.append(encode(_with_key(scaled, change.key, number), [*ends, *added[number]]))
        fresh = [
            encode(_head(name, channel, _program(tracks, like)), _events_of(notes, channel, division * scale))
            for (name, like, notes), channel in zip(new, channels)
        ]
        total = sum(track is not None for track in written) + len(fresh)
        head = struct.pack(">HHh", 1 if total > 1 else form, total, division * scale)
        out = [self.data[:8], head, self.data[14 : 8 + size]]
        last = numbers[-1] if numbers else -1
        for place, (kind, content) in enumerate(chunks):
            own = written[numbers.index(place)] if place in numbers else content
            if own is not None:
                out.append(kind + len(own).to_bytes(4, "big") + own)
            if place == last:
                out += [b"MTrk" + len(one).to_bytes(4, "big") + one for one in fresh]
        return b"".join(out)

    def _chunks(self, place: int) -> Iterator[tuple[bytes, bytes]]:
        while place + 8 <= len(self.data):
            length = int.from_bytes(self.data[place + 4 : place + 8], "big")
            yield self.data[place : place + 4], self.data[place + 8 : place + 8 + length]
            place += 8 + length

    def _scale(self, division: int, change: Change) -> int:
        """By how much finer ticks must be for the new notes; 1 where they need not, or cannot."""
        new = [*change.above, *change.below, *(("", rewrite.notes) for rewrite in change.rewrites)]
        times = [time for _, notes in new for note in notes for time in (note.start, note.end)]
        exact = lcm(1, *((time * division).denominator for time in times))
        return exact if exact * division <= 0x7FFF else 1


def encode(events: Iterable[Event], added: Iterable[Event] = ()) -> bytes:
    """A track of events in order of time, the last of which is (tick, b""), and others between them."""
    own, out, now = [*events], bytearray(), 0
    end = own[-1][0] if own else 0
    # At one tick: what ends, then what was there, then what begins.
    merged = [(tick, 1, event) for tick, event in own if event]
    merged += [(tick, 0 if event[0] < 0x90 else 2, event) for tick, event in added]
    for tick, _, event in sorted(merged, key=lambda one: one[:2]):
        out += _number(tick - now) + event
        now = tick
    return bytes(out + _number(max(end - now, 0)) + bytes((0xFF, _END, 0)))


def _number(value: int) -> bytes:
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(value & 0x7F | 0x80)
    return bytes(reversed(digits))


def _events_of(notes: Sequence[Note], channel: int, division: int) -> list[Event]:
    found: list[Event] = []
    for note in notes:
        if note.pitch is not None:
            found.append((_tick(note.start, division), bytes((0x90 | channel, note.pitch, VELOCITY))))
            found.append((_tick(note.end, division), bytes((0x80 | channel, note.pitch, 64))))
    return found


def _tick(time: Fraction, division: int) -> int:
    return round(time * division)


def _kept(events: list[Event], number: int, removed: set[int], change: Change) -> list[Event] | None:
    """The events of a track that stay; None if the track goes."""
    stay = [event for place, event in enumerate(events) if place not in removed]
    if not change.alone:
        return stay
    track, channel = (None, None) if change.beside is None else (int(str(one)) for one in change.beside)
    mine = track == number

    def own(event: bytes) -> bool:
        return not event or event[0] >= 0xF0 or (mine and event[0] & 0x0F == channel)

    if not mine and number and not any(event[:1] == b"\xff" and event[1] in _OF_ALL for _, event in events):
        return None
    return [(tick, event) for tick, event in stay if own(event)]


def _with_key(events: list[Event], key: tuple[int, bool] | None, number: int) -> list[Event]:
    """With one signature, at the beginning of the first track, in place of all others."""
    if key is None:
        return events
    others = [(tick, event) for tick, event in events if event[:2] != bytes((0xFF, _KEY))]
    meta = bytes((0xFF, _KEY, 2)) + struct.pack("bB", *key)
    return [(0, meta), *others] if number == 0 else others


def _head(name: str, channel: int, program: int) -> list[Event]:
    called = name.encode("utf-8")
    label = bytes((0xFF, _NAME)) + _number(len(called)) + called
    return [(0, label), (0, bytes((0xC0 | channel, program))), (0, b"")]


class _Sounds:
    """When each pitch of a channel of a track sounds, in ticks of the new file."""

    def __init__(self, events: Iterable[Event], channel: int, scale: int) -> None:
        self._of: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        since: defaultdict[int, list[int]] = defaultdict(list)
        last = 0
        for tick, event in events:
            last = tick * scale
            if not event or event[0] & 0xE0 != 0x80 or event[0] & 0x0F != channel:
                continue
            if event[0] >= 0x90 and event[2]:
                since[event[1]].append(tick * scale)
            elif since[event[1]]:
                self._of[event[1]].append((since[event[1]].pop(0), tick * scale))
        for pitch, starts in since.items():
            self._of[pitch] += [(start, last) for start in starts]  # as ``_missing_ends`` has it

    def joined(self, notes: Sequence[Note], division: int) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
        """The notes that can sound here, which now do, and those of which one lies inside the other of its pitch."""
        here, apart = list[Note](), list[Note]()
        for note in notes:
            if note.pitch is None:
                continue
            start, end = _tick(note.start, division), _tick(note.end, division)
            others = [(a, b) for a, b in self._of[note.pitch] if a < end and b > start]
            if any(b > end if a <= start else end > b for a, b in others):
                apart.append(note)
            else:
                here.append(note)
                self._of[note.pitch].append((start, end))
        return tuple(here), tuple(apart)


def _missing_ends(events: Sequence[Event]) -> list[Event]:
    """Ends of the notes that have none and last to the end of their track, which may be later in the new file."""
    open_: Counter[tuple[int, int]] = Counter()
    for _, event in events:
        if event and event[0] & 0xE0 == 0x80:
            key = (event[0] & 0x0F, event[1])
            if event[0] >= 0x90 and event[2]:
                open_[key] += 1
            elif open_[key]:
                open_[key] -= 1
    return [(events[-1][0], bytes((0x80 | channel, pitch, 64))) for channel, pitch in open_.elements()]


def _name_of(track: Iterable[Event]) -> str:
    named = (event for _, event in track if event[:2] == bytes((0xFF, _NAME)))
    return next((content_of(event).decode("utf-8", "replace") for event in named), "")


def _program(tracks: Sequence[Sequence[Event]], channel: int | None) -> int:
    """The first program of a channel; that of a piano where there is none."""
    status = None if channel is None else 0xC0 | channel
    return next((event[1] for track in tracks for _, event in track if event and event[0] == status), 0)


def _free_channels(tracks: Sequence[Sequence[Event]], change: Change, count: int) -> list[int]:
    """Channels for so many new tracks: such as nobody uses, as far as there are any, then that of the tune."""
    used = {event[0] & 0x0F for track in tracks for _, event in track if event and event[0] < 0xF0}
    spare = 0 if change.beside is None else int(str(change.beside[1]))
    used = {spare} & used if change.alone else used
    free = [channel for channel in range(16) if channel not in used and channel != DRUMS]
    return (free + [spare] * count)[:count]
