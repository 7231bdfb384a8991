"""MIDI files, written by hand after the specification: ticks and bars as exact times, and bytes that stay the same."""

import io
from fractions import Fraction

import mido
import pytest
from hypothesis import given
from hypothesis import strategies as st
from midi_bytes import file, meta, midi_bytes

from anyfill.music.midi import MAX_BYTES, read_midi
from anyfill.music.midi_document import VELOCITY
from anyfill.music.score import Note, Score
from anyfill.music.writing import write_midi

F = Fraction


def notes(track: bytes) -> list[tuple[int, int, int]]:
    """(start, end, pitch) in ticks of the notes of a file with one part."""
    (voice,) = read_midi(file(track)).score.voices
    return [(int(note.start * 96), int(note.end * 96), note.pitch or 0) for note in voice]


def test_running_status_and_a_note_on_without_velocity() -> None:
    found = notes(bytes.fromhex("00 90 3c 40  60 3c 00  00 3e 40  81 40 3e 00  00 ff 2f 00"))
    assert found == [(0, 96, 60), (96, 288, 62)]  # 81 40 is 192 ticks


@pytest.mark.parametrize("between", ["ff 01 01 61", "f0 02 01 f7", "f7 01 01", "f0 02 01 f7 00 f0 02 01 f7"])
def test_running_status_goes_on_behind_meta_and_system_exclusive_events(between: str) -> None:
    assert notes(bytes.fromhex(f"00 91 3c 40  00 {between}  60 3c 00")) == [(0, 96, 60)]


@pytest.mark.parametrize(
    "event",
    [
        meta(0x59, b"\x09\x00"),  # nine sharps
        meta(0x59, b"\x00\x02"),
        meta(0x59, b""),
        meta(0x51, b"\x07"),
        meta(0x51, bytes(3)),
        meta(0x58, b"\x04"),
        meta(0x54, b""),
        meta(0x20, b""),
        meta(0x60, b"what nobody knows"),
    ],
)
def test_meta_events_that_say_nothing_are_read_past_and_their_time_counts(event: bytes) -> None:
    read = read_midi(file(b"\x60" + event + bytes.fromhex("00 90 3c 40  60 80 3c 00")))
    assert [(note.start, note.end) for note in read.score.sounding()] == [(F(1), F(2))]
    assert (read.score.tempo, read.score.bar) == (120.0, None)


def test_a_time_signature_may_lack_its_last_two_numbers() -> None:
    assert read_midi(file(bytes.fromhex("00 ff 58 02 03 02  00 90 3c 40  60 80 3c 00"))).score.bar == F(3)


def test_chunks_of_other_kinds_are_read_past_wherever_they_stand() -> None:
    tracks = [bytes.fromhex(f"00 90 {pitch} 40  60 80 {pitch} 00") for pitch in ("48", "3c")]
    head, first, second = file(*tracks)[:14], file(tracks[0])[14:], file(tracks[1])[14:]
    odd = b"XFIH\x00\x00\x00\x01a"
    read = read_midi(head + odd + first + odd + second + odd)
    assert [[note.pitch for note in voice] for voice in read.score.voices] == [[72], [60]]


def test_a_file_may_have_four_mebibytes() -> None:
    bends = bytes.fromhex("00 e0 00 40") + bytes.fromhex("00 00 40") * (2**20)
    data = file(bends + bytes.fromhex("00 90 3c 40  60 80 3c 00"))
    assert 3 * 2**20 < len(data) < MAX_BYTES
    assert [note.pitch for note in read_midi(data).score.sounding()] == [60]
    with pytest.raises(ValueError, match="at most 4 MiB"):
        read_midi(data + bytes(2**20))


def test_more_notes_than_allowed_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="MIDI file: expected at most 20,000 notes, got more"):
        read_midi(file(bytes.fromhex("00 90 3c 40") + bytes.fromhex("00 3c 40") * 2**20))


def test_what_ends_is_the_oldest_note_of_its_pitch() -> None:
    twice = read_midi(file(bytes.fromhex("00 90 3c 40  30 90 3c 40  30 80 3c 00  30 80 3c 00"))).score
    assert sorted((note.start, note.end) for note in twice.sounding()) == [(F(0), F(1)), (F(1, 2), F(3, 2))]


def test_a_note_that_ends_before_it_begins_has_no_length_and_takes_no_other_end() -> None:
    track = bytes.fromhex("60 80 4b 00  00 90 4b 40  60 90 4b 40  60 80 4b 00")
    assert notes(track) == [(192, 288, 75)]
    assert read_midi(file(track)).remarks == ("1 note without a length left out",)


def test_a_note_without_end_lasts_to_the_end_of_its_track() -> None:
    track = bytes.fromhex("00 90 3c 40  60 ff 2f 00")
    assert notes(track) == [(0, 96, 60)]
    assert read_midi(file(track)).remarks == ("1 note has no end and last to the end of the track",)


def test_tempo_signatures_and_names_are_read_and_the_rest_is_passed_over() -> None:
    track = (
        meta(0x03, "Flöte".encode("latin-1")),
        meta(0x51, b"\x07\xa1\x20"),
        meta(0x58, b"\x06\x03\x18\x08"),
        b"\xe0\x00\x40",
        b"\x90\x3c\x40",
    )
    body = b"".join(b"\x00" + event for event in track) + b"\x60\x80\x3c\x00"
    read = read_midi(file(body) + b"XFIH\x00\x00\x00\x01a")
    assert (read.score.tempo, read.score.bar, read.score.names) == (120.0, F(3), ("Flöte",))


@given(
    st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 127)), min_size=1, max_size=4, unique_by=lambda n: n[1])
)
def test_what_is_written_by_hand_is_what_is_read(wanted: list[tuple[int, int]]) -> None:
    events = [
        event for start, p in wanted for event in ((start, bytes((0x92, p, 1))), (start + 200, bytes((0x82, p, 0))))
    ]
    found = [*read_midi(midi_bytes(960, [[], events])).score.sounding()]
    assert {(note.pitch, note.start) for note in found} == {(pitch, F(start, 960)) for start, pitch in wanted}
    begins = sorted(start for start, _ in wanted)
    for note in found:  # cut only where another note begins shortly before the end
        assert note.length == F(200, 960) or int(note.end * 960) in begins


def test_bytes_are_those_of_the_specification() -> None:
    tune = (Note(F(0), F(1), 62), Note(F(1), F(1), 62), Note(F(3), F(1), 66))
    score = Score((tune, (Note(F(0), F(4), 38),)), (F(0), F(1)), ("soprano", "bass"), 96.0, "Été")
    conductor = [
        (0, meta(0x03, "Été".encode())),
        (0, meta(0x51, (625_000).to_bytes(3, "big"))),
        (0, meta(0x58, b"\x01\x02\x18\x08")),
        (480, meta(0x58, b"\x03\x02\x18\x08")),
        (0, meta(0x59, b"\x01\x00")),
    ]
    ends = [(0, 480, 62), (480, 960, 62), (1440, 1920, 66)]
    voices = [(0, "Soprano", ends), (1, "Bass", [(0, 1920, 38)])]
    tracks = [
        [
            (0, meta(0x03, name.encode())),
            (0, bytes((0xC0 | channel, 0))),
            *(
                event
                for start, end, pitch in found
                for event in (
                    (start, bytes((0x90 | channel, pitch, VELOCITY))),
                    (end, bytes((0x80 | channel, pitch, 64))),
                )
            ),
        ]
        for channel, name, found in voices
    ]
    assert write_midi(score) == midi_bytes(480, [conductor, *tracks])


@pytest.mark.parametrize("fifths", range(-5, 7))
@pytest.mark.parametrize("minor", [False, True])
def test_every_key_signature_can_be_written(fifths: int, minor: bool) -> None:
    tonic = 7 * (fifths + 3 * minor) % 12
    steps = (0, 2, 3, 5, 7, 8, 10, 12) if minor else (0, 2, 4, 5, 7, 9, 11, 12)
    scale = tuple(Note(F(n), F(1), 48 + tonic + step) for n, step in enumerate((*steps, 0)))
    assert meta(0x59, bytes((fifths % 256, minor))) in write_midi(Score((scale,)))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"MThd", "cut off"),
        (file(b"", form=2), "format 2"),
        (file(b"", division=0xE728), "frames a second"),
        (file(b"", division=0), "0 ticks"),
        (file(b"", count=3), "expected 3 whole tracks, as its header says, got 1: the file is cut off"),
        (file(b"\x00\x3c\x40"), "expected an event of a file, got byte 0x3c with no status before it"),
        (file(b"\x00\x90\x3c"), "expected whole events, got one that is cut off"),
        (file(b"\x00\xff\x01\x05a"), "expected whole events, got one that is cut off"),
        (file(b"\x00\x90\x3c\xff"), "data bytes up to 127, got 255"),
        (file(b"\xff\xff\xff\xff\x00\x90\x3c\x40"), "numbers of four bytes at most"),
        (file(b"\x00\xff\x58\x04\x00\x02\x18\x08"), "time signature"),
        (file(b"\x00\xf4"), "status 0xf4"),
    ],
)
def test_what_breaks_the_specification_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"MIDI file.*expected") as caught:
        read_midi(data)
    assert sentence in str(caught.value)


F = Fraction


def on(pitch: int, channel: int = 0) -> bytes:
    return bytes((0x90 | channel, pitch, 80))


def off(pitch: int, channel: int = 0) -> bytes:
    return bytes((0x80 | channel, pitch, 0))


@pytest.mark.parametrize("tempo", [30.0, 120.0, 300.0])
def test_times_are_beats_whatever_the_tempo(tempo: float) -> None:
    score = Score(((Note(F(1, 2), F(3, 2), 60), Note(F(2), F(1, 3), 62)),), tempo=tempo, names=("Flute",))
    read = read_midi(write_midi(score)).score
    assert (read.voices, read.tempo) == (score.voices, tempo)


def test_a_short_time_signature_before_the_real_one_is_a_pickup() -> None:
    conductor = [(0, meta(0x58, b"\x01\x02\x18\x08")), (96, meta(0x58, b"\x03\x02\x18\x08"))]
    read = read_midi(midi_bytes(96, [conductor, [(0, on(60)), (96 * 7, off(60))]]))
    assert (read.score.bars, read.score.bar) == ((F(0), F(1), F(4)), F(3))


def test_a_file_without_time_signature_has_bars_of_four_and_says_nothing_of_them() -> None:
    read = read_midi(midi_bytes(96, [[(0, on(60)), (96 * 7, off(60))]]))
    assert (read.score.bars, read.score.bar) == ((F(0), F(4)), None)


def test_channels_of_one_track_are_parts_and_the_tenth_is_left_out() -> None:
    track = [(0, on(50, 1)), (0, on(70, 0)), (0, on(38, 9)), (96, off(50, 1)), (96, off(70, 0)), (96, off(38, 9))]
    read = read_midi(midi_bytes(96, [track]))
    assert [[note.pitch for note in voice] for voice in read.score.voices] == [[70], [50]]
    assert read.remarks == ("1 note of percussion (channel 10) left out",)


def test_notes_that_overlap_a_little_are_one_voice() -> None:
    track = [(0, on(60)), (93, on(62)), (99, off(60)), (192, off(62))]
    (voice,) = read_midi(midi_bytes(96, [track])).score.voices
    assert [(note.start, note.end) for note in voice] == [(F(0), F(93, 96)), (F(93, 96), F(2))]


def test_a_file_has_four_piano_tracks_with_names_and_strikes_repeated_notes_again() -> None:
    note = (Note(F(0), F(1), 60), Note(F(1), F(1), 60))
    data = write_midi(Score((note,) * 4, (F(0),), ("soprano", "alto", "tenor", "bass"), 96.0, "Title"))
    parsed = mido.MidiFile(file=io.BytesIO(data))
    assert [track.name for track in parsed.tracks] == ["Title", "Soprano", "Alto", "Tenor", "Bass"]
    assert [(e.type, e.time, e.channel) for e in parsed.tracks[2] if e.type.startswith("note")] == [
        ("note_on", 0, 1),
        ("note_off", 480, 1),
        ("note_on", 0, 1),
        ("note_off", 480, 1),
    ]
    first = {event.type: event for event in parsed.tracks[0]}
    assert first["set_tempo"].tempo == 625_000
    assert (first["time_signature"].numerator, first["time_signature"].denominator) == (4, 4)
    assert data.count(bytes((0xC2, 0))) == 1
    assert data.count(bytes((0x90, 60, VELOCITY))) == 2


def test_a_tempo_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="tempo"):
        write_midi(Score(((Note(F(0), F(1), 60),),), tempo=0.0))


def test_the_first_tempo_in_time_is_kept_and_changes_are_said() -> None:
    def tempo(bpm: int) -> bytes:
        return meta(0x51, (60_000_000 // bpm).to_bytes(3, "big"))

    notes = [(0, on(60)), (96 * 8, off(60))]
    late, early = [(96, tempo(60)), (192, tempo(60)), (288, tempo(100))], [(0, tempo(100))]
    read = read_midi(midi_bytes(96, [late, early, notes]))
    assert read.score.tempo == 100.0
    assert read.score.signs.tempos == ((F(0), 100.0), (F(1), 60.0), (F(2), 60.0), (F(3), 100.0))
    assert read.remarks == ()
    assert read_midi(midi_bytes(96, [early, early, notes])).remarks == ()


def test_a_change_of_metre_is_said_and_a_pickup_is_none() -> None:
    def four(tick: int) -> tuple[int, bytes]:
        return tick, meta(0x58, b"\x04\x02\x18\x08")

    def three(tick: int) -> tuple[int, bytes]:
        return tick, meta(0x58, b"\x03\x02\x18\x08")

    notes = [(0, on(60)), (96 * 27, off(60))]
    changing = read_midi(midi_bytes(96, [[four(0), three(96 * 20), four(96 * 23)], notes]))
    assert changing.remarks == (
        "the metre changes (bars of 4 and 3 quarter notes): bar lines are put 4 quarter notes apart throughout, "
        "and bars are counted by them",
    )
    assert read_midi(midi_bytes(96, [[three(0), four(96 * 3)], notes])).remarks == ()
    assert read_midi(midi_bytes(96, [[four(0), four(96 * 8)], notes])).remarks == ()
