"""Bytes of MIDI files, written by hand after the specification."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.music.midi import MidiNote, meta, midi_bytes, parse_midi


def file(*tracks: bytes, form: int = 1, division: int = 96, count: int | None = None) -> bytes:
    head = b"MThd" + struct.pack(">IHHH", 6, form, len(tracks) if count is None else count, division)
    return head + b"".join(b"MTrk" + struct.pack(">I", len(track)) + track for track in tracks)


def notes(track: bytes) -> list[MidiNote]:
    return parse_midi(file(track)).tracks[0].notes


def test_running_status_and_a_note_on_without_velocity() -> None:
    found = notes(bytes.fromhex("00 90 3c 40  60 3c 00  00 3e 40  81 40 3e 00  00 ff 2f 00"))
    assert found == [MidiNote(0, 96, 60, 0), MidiNote(96, 288, 62, 0)]  # 81 40 is 192 ticks


def test_running_status_goes_on_behind_meta_and_sysex_events() -> None:
    assert notes(bytes.fromhex("00 91 3c 40  00 ff 01 01 61  00 f0 02 01 f7  60 3c 00")) == [MidiNote(0, 96, 60, 1)]


def test_what_ends_is_the_oldest_note_of_its_pitch() -> None:
    twice = notes(bytes.fromhex("00 90 3c 40  30 90 3c 40  30 80 3c 00  30 80 3c 00"))
    assert twice == [MidiNote(0, 96, 60, 0), MidiNote(48, 144, 60, 0)]


def test_a_note_that_ends_before_it_begins_has_no_length_and_takes_no_other_end() -> None:
    found = notes(bytes.fromhex("60 80 4b 00  00 90 4b 40  60 90 4b 40  60 80 4b 00"))
    assert found == [MidiNote(96, 96, 75, 0), MidiNote(192, 288, 75, 0)]


def test_a_note_without_end_lasts_to_the_end_of_its_track() -> None:
    parsed = parse_midi(file(bytes.fromhex("00 90 3c 40  60 ff 2f 00")))
    assert (parsed.tracks[0].notes, parsed.unended) == ([MidiNote(0, 96, 60, 0)], 1)


def test_tempo_signatures_and_names_are_read_and_the_rest_is_passed_over() -> None:
    track = (
        meta(0x03, "Flöte".encode("latin-1")),
        meta(0x51, b"\x07\xa1\x20"),
        meta(0x58, b"\x06\x03\x18\x08"),
        b"\xe0\x00\x40",
    )
    parsed = parse_midi(file(b"".join(b"\x00" + event for event in track)) + b"XFIH\x00\x00\x00\x01a")
    assert (parsed.tempo, parsed.signatures, parsed.tracks[0].name) == (500_000, [(0, 6, 8)], "Flöte")


@given(
    st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 127)), min_size=1, max_size=30, unique_by=lambda n: n[1])
)
def test_what_is_written_is_what_is_read(wanted: list[tuple[int, int]]) -> None:
    events = [
        event for start, p in wanted for event in ((start, bytes((0x92, p, 1))), (start + 7, bytes((0x82, p, 0))))
    ]
    found = parse_midi(midi_bytes(960, [[], events]))
    assert found.division == 960
    assert sorted(found.tracks[1].notes, key=lambda n: n.pitch) == [
        MidiNote(start, start + 7, pitch, 2) for start, pitch in sorted(wanted, key=lambda n: n[1])
    ]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"MThd", "cut off"),
        (file(b"", form=2), "format 2"),
        (file(b"", division=0xE728), "frames a second"),
        (file(b"", division=0), "0 ticks"),
        (file(b"", count=3), "expected 3 tracks, as its header says, got 1: the file is cut off"),
        (file(b"\x00\x3c\x40"), "with no status before it"),
        (file(b"\x00\x90\x3c"), "track 1: expected whole events"),
        (file(b"\x00\x90\x3c\xff"), "data bytes up to 127, got 255"),
        (file(b"\xff\xff\xff\xff\x00\x90\x3c\x40"), "numbers of four bytes at most"),
        (file(b"\x00\xff\x58\x02\x00\x02"), "time signature"),
        (file(b"\x00\xf4"), "status 0xf4"),
    ],
)
def test_what_breaks_the_specification_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"MIDI file.*expected") as caught:
        parse_midi(data)
    assert sentence in str(caught.value)
