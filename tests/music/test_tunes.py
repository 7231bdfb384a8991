"""Which part is the tune: said, found, or asked for with a list; and what becomes of the others."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from midi_bytes import meta, midi_bytes

from anyfill.music.files import read, read_music
from anyfill.music.request import Request
from anyfill.music.saving import score_bytes
from anyfill.music.score import Note
from anyfill.music.voices import top_line
from benchmarks.music_files import answered

F = Fraction


def orchestra(*names: str) -> bytes:
    """Tracks of chords under a melody, with drums: what real MIDI files are."""
    tracks = [[(0, meta(0x58, b"\x03\x02\x18\x08")), (0, meta(0x59, b"\x02\x00"))]]
    for number, name in enumerate(names):
        channel = 9 if name == "Drums" else number
        events = [(0, meta(3, name.encode()))]
        chord = (0,) if name in ("Melody", "Flute") else (0, 4, 7)
        for beat in range(12):
            for tone in chord:
                pitch = 74 - 12 * number + tone + beat % 3
                events += [(96 * beat, bytes((0x90 | channel, pitch, 70)))]
                events += [(96 * beat + 96, bytes((0x80 | channel, pitch, 0)))]
        tracks.append(sorted(events, key=lambda one: (one[0], one[1][0])))
    return midi_bytes(96, tracks)


@pytest.fixture
def file(tmp_path: Path):
    def make(*names: str) -> Path:
        path = tmp_path / "song.mid"
        path.write_bytes(orchestra(*names))
        return path

    return make


def test_a_file_of_many_voices_is_harmonised_by_the_part_that_is_called_a_melody(file) -> None:
    request = Request.harmonise(file("Melody", "Piano", "Strings", "Drums"))
    assert any("of percussion (channel 10) left out" in one for one in request.piece.remarks)
    assert any("track 2, channel 1 'Melody' is the tune" in one for one in request.piece.remarks)
    assert len(request.piece.lines[0]) == 12


@pytest.mark.parametrize("tune", ["track 3", "channel 2", "Flute", "flu"])
def test_track_channel_and_name_choose_the_same_part(file, tune: str) -> None:
    path = file("Piano", "Flute", "Strings")
    chosen = Request.harmonise(path, choose=tune).piece.lines[0]
    assert chosen == read_music(path).parts[1].notes


def test_what_is_unclear_is_asked_with_a_list_of_what_is_there(file) -> None:
    path = file("Piano", "Harp", "Strings")
    with pytest.raises(ValueError, match="expected --tune, which says what the tune is") as error:
        Request.harmonise(path)
    said = str(error.value)
    assert "3 parts: track 2, channel 1 'Piano' (36 notes, up to 3 at once); track 3, channel 2 'Harp'" in said
    assert "\n" not in said
    with pytest.raises(ValueError, match=r'--tune "oboe": expected top, or one part .*, got no \'oboe\' in 3 parts'):
        Request.harmonise(path, choose="oboe")
    with pytest.raises(ValueError, match="2 parts that 'r' may mean"):
        Request.harmonise(path, choose="r")


def test_the_top_is_the_highest_note_at_any_time(file) -> None:
    request = Request.harmonise(file("Piano", "Harp", "Strings"), choose="top")
    assert [note.pitch for note in request.piece.lines[0]] == [74 + 7 + beat % 3 for beat in range(12)]


def test_a_top_line_goes_on_until_a_higher_note_begins_and_has_one_note_at_a_time() -> None:
    notes = [Note(F(0), F(4), 60), Note(F(1), F(1), 55), Note(F(2), F(2), 67), Note(F(4), F(1), 50)]
    assert [(n.start, n.length, n.pitch) for n in top_line(notes)] == [(0, 2, 60), (2, 2, 67), (4, 1, 50)]
    assert [n.pitch for n in top_line(notes, lowest=True)] == [60, 55, 67, 50]


def test_other_parts_are_dropped_or_kept(file) -> None:
    path = file("Piano", "Flute", "Strings", "Drums")
    for others, voices in (("drop", 4), ("keep", 4 + 3 + 3)):
        piece = answered(Request.harmonise(path, choose="Flute", others=others), np.random.default_rng(0))
        out = path.with_name("out.mid")
        out.write_bytes(score_bytes(piece, "midi"))
        back = read_music(out)
        assert len(back.score.voices) == voices
        assert back.score.signs == read_music(path).score.signs
        assert ("percussion" in " ".join(back.remarks)) == (others == "keep")


def test_the_key_of_the_file_is_believed_shared_and_overridden(file) -> None:
    path = file("Melody")
    for key, wanted in ((None, "D major"), ("B minor", "B minor")):
        request = Request.harmonise(path, key=key)
        for seed in (0, 1):
            piece = answered(request, np.random.default_rng(seed))
            assert str(piece.key) == wanted
            for kind in ("mid", "musicxml"):
                out = path.with_name(f"out.{kind}")
                piece.save(out)
                assert str(read(out).key) == wanted


@pytest.mark.parametrize("time", [(6, 8), (2, 2), (12, 8), (3, 4), (9, 8)])
def test_the_metre_is_kept_in_every_format(tmp_path: Path, time: tuple[int, int]) -> None:
    beats, unit = time
    bar = 96 * 4 * beats // unit
    signature = meta(0x58, bytes((beats, unit.bit_length() - 1, 24, 8)))
    notes = [(n * bar + at, bytes((0x90 + at // 1 * 0 if on else 0x80, 70, 64))) for n in range(3)
             for at, on in ((0, True), (bar, False))]  # fmt: skip
    (tmp_path / "a.mid").write_bytes(midi_bytes(96, [[(0, signature)], sorted(notes)]))
    piece = answered(Request.harmonise(tmp_path / "a.mid"), np.random.default_rng(0))
    for kind in ("mid", "musicxml", "mxl"):
        piece.save(tmp_path / f"out.{kind}")
        assert read_music(tmp_path / f"out.{kind}").score.signs.times == ((F(0), *time),)


def test_a_tune_in_triplets_and_one_wider_than_the_model_stay_as_they_are(tmp_path: Path) -> None:
    events = []
    for n in range(12):
        pitch = 30 + 7 * n if n < 11 else 100
        events += [(32 * n, bytes((0x90, pitch, 64))), (32 * n + 32, bytes((0x80, pitch, 0)))]
    (tmp_path / "a.mid").write_bytes(midi_bytes(96, [[], sorted(events, key=lambda one: (one[0], one[1][0]))]))
    request = Request.harmonise(tmp_path / "a.mid")
    piece = answered(request, np.random.default_rng(0))
    tune = read_music(tmp_path / "a.mid").score.voices[0]
    assert [(n.start, n.length, n.pitch) for n in piece.score.voices[0]] == [(n.start, n.length, n.pitch) for n in tune]
    assert any("off the grid of sixteenths" in one for one in request.piece.remarks)
    assert any("beyond the codes of the model" in one for one in request.piece.remarks)
