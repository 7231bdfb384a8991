"""Ticks and bars of MIDI files as exact times."""

from fractions import Fraction

import pytest

from anyfill.music.midi import meta, midi_bytes, parse_midi
from anyfill.music.midi_score import VELOCITY, read_midi, write_midi
from anyfill.music.score import Note, Score

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
    assert (read.score.bars, read.bar) == ((F(0), F(1), F(4)), F(3))


def test_a_file_without_time_signature_has_bars_of_four_and_says_nothing_of_them() -> None:
    read = read_midi(midi_bytes(96, [[(0, on(60)), (96 * 7, off(60))]]))
    assert (read.score.bars, read.bar) == ((F(0), F(4)), None)


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
    parsed = parse_midi(data)
    assert [track.name for track in parsed.tracks] == ["Title", "Soprano", "Alto", "Tenor", "Bass"]
    assert [(n.start, n.end, n.channel) for n in parsed.tracks[2].notes] == [(0, 480, 1), (480, 960, 1)]
    assert (parsed.tempo, parsed.signatures) == (625_000, [(0, 4, 4)])
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
    assert read.remarks == (
        "the tempo changes 2 times: the first one, 100 quarter notes a minute, is kept for the whole piece",
    )
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
