"""What must be the same in a file into which new notes were put; for tests of documents."""

from fractions import Fraction

import numpy as np

from anyfill.music.files import Music, read
from anyfill.music.markup import members_of
from anyfill.music.midi_document import walk
from anyfill.music.musicxml_places import as_utf8, locate
from anyfill.music.piece import Piece
from anyfill.music.request import Request, whole_notes
from anyfill.music.saving import change_of
from benchmarks.music_files import answered


def filled(music: Music, seed: int, share: float = 0.3) -> Piece | None:
    """The piece with random notes in random bars of random voices; None where every note there is locked."""
    rng, piece = np.random.default_rng(seed), read(music)
    chorale = piece.chorale
    wanted = np.zeros(chorale.pitch.shape, dtype=bool)
    for bar in chorale.bars:
        edges = [max(chorale.pickup + (n - 1) * chorale.bar, 0) for n in (bar, bar + 1)]
        for voice in np.flatnonzero(piece.present.any(1)):
            wanted[voice, edges[0] : edges[1]] = rng.random() < share
    asked = whole_notes(piece, wanted)
    if not asked.any():
        return None
    return answered(Request(piece, piece.present & ~asked, asked), rng)


def sounding(line: tuple) -> list[tuple[Fraction, Fraction, int]]:
    return sorted((note.start, note.length, note.pitch) for note in line if note.pitch is not None)


def require_same_xml(before: bytes, after: bytes, piece: Piece) -> int:
    """Fail unless all measures in which nothing was written, and all that is no measure, are the same bytes.

    Returns how many measures are.
    """
    before, after = (as_utf8(members_of(one, "it")[1] if one[:2] == b"PK" else one) for one in (before, after))
    old, new = locate(before), locate(after)
    starts = piece.source.document.starts
    change = change_of(piece)
    same = 0
    assert len(old.parts) == len(new.parts)
    for number, (own, other) in enumerate(zip(old.measures, new.measures)):
        assert len(own) == len(other)
        streams = [one for one in change.rewrites if one.stream[0] == number]
        removed = {
            place for one in change.rewrites for note in one.removed if note.origin.stream[0] == number
            for place, _ in note.origin.places
        }  # fmt: skip
        for place, (mine, theirs) in enumerate(zip(own, other)):
            start, end = starts[place], starts[place + 1]
            written = any(a < end and b > start for one in streams for a, b in one.spans) or place in removed
            first, second = before[slice(*mine.span)], after[slice(*theirs.span)]
            if not written:
                assert first == second
                same += 1
            else:  # all that is no note is there still, in its order
                texts = [before[slice(*span)] for span in mine.items]
                kept = [text for text in texts if not text.startswith((b"<note", b"<backup", b"<forward"))]
                at = 0
                for text in kept:
                    at = second.index(text, at) + len(text)
    assert outside(before, old) == outside(after, new)
    return same


def outside(data: bytes, places: object) -> list[bytes]:
    """What is no measure: everything before, between and behind them."""
    spans = [measure.span for part in places.measures for measure in part]
    edges = [0, *(edge for span in spans for edge in span), len(data)]
    return [data[a:b] for a, b in zip(edges[::2], edges[1::2])]


def midi_events(data: bytes) -> list[list[tuple[int, bytes]]]:
    """(tick, event) of every track."""
    tracks, place = [], 8 + int.from_bytes(data[4:8], "big")
    while place + 8 <= len(data):
        length = int.from_bytes(data[place + 4 : place + 8], "big")
        if data[place : place + 4] == b"MTrk":
            tracks.append([*walk(data[place + 8 : place + 8 + length])])
        place += 8 + length
    return tracks


def require_same_midi(before: bytes, after: bytes, piece: Piece) -> None:
    """Fail unless all events but notes that were removed or added are the same, at the same ticks, in their order."""
    change = change_of(piece)
    division = int.from_bytes(before[12:14], "big")
    scale = int.from_bytes(after[12:14], "big") // division
    old, new = midi_events(before), midi_events(after)
    assert len(new) == len(old) + len(change.above) + len(change.below)
    for number, (own, other) in enumerate(zip(old, new)):
        removed = {
            place for one in change.rewrites for note in one.removed if note.origin.stream[0] == number
            for pair in note.origin.places for place in pair
        }  # fmt: skip
        kept = [(tick * scale, event) for place, (tick, event) in enumerate(own) if place not in removed and event]
        added = [
            (round(time * division * scale), one.stream[1], note.pitch)
            for one in change.rewrites if one.stream[0] == number
            for note in one.notes for time in (note.start, note.end)
        ]  # fmt: skip
        rest = [one for one in other if one[1]]
        for tick, channel, pitch in added:
            found = next(
                n for n, (at, event) in enumerate(rest)
                if at == tick and 0x80 <= event[0] < 0xA0 and event[0] & 15 == channel and event[1] == pitch
                and (at, event) not in kept
            )  # fmt: skip
            del rest[found]
        assert rest == kept


__all__ = ["answered", "filled", "midi_events", "require_same_midi", "require_same_xml", "sounding"]
