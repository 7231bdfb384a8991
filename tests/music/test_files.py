"""Files keep what the grid holds, and bad ones are refused in one sentence, soon; names of the corpus."""

import io
import json
import os
import struct
import sys
import time
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from midi_bytes import meta, midi_bytes

from anyfill.disk import write_bytes
from anyfill.music.chorale import HIGHEST, LOWEST, REST, VOICES, Chorale
from anyfill.music.files import (
    jsb_name,
    read_chorale,
    read_corpus,
    read_music,
    read_piece,
)
from anyfill.music.midi import read_midi
from anyfill.music.musicxml import read_musicxml
from anyfill.music.piece import Piece
from anyfill.music.quantising import quantise
from anyfill.music.score import Note, Score
from anyfill.music.writing import music_format, write_midi, write_musicxml, write_score

SUFFIXES = (".mid", ".musicxml", ".mxl")


@st.composite
def chorales(draw: st.DrawFn) -> Chorale:
    """Any grid: repeated notes, rests, absent voices, pickups, 4/4, 3/4 and odd bars; a silence begins only once."""
    bar = draw(st.sampled_from((16, 16, 12, 8, 14, 5)))
    steps = draw(st.integers(1, 70))
    pickup = draw(st.integers(0, min(bar, steps) - 1))
    pitch = np.full((4, steps), REST, dtype=np.int16)
    onset = np.zeros((4, steps), dtype=np.bool_)
    for voice in range(4):
        at = 0
        while at < steps:
            length = draw(st.integers(1, 24))
            number = draw(st.one_of(st.just(REST), st.integers(LOWEST, HIGHEST), st.sampled_from((60, 60, 64))))
            pitch[voice, at : at + length] = number
            onset[voice, at] = number != REST
            at += length
    if (pitch == REST).all():
        pitch[0, 0] = 60
    return Chorale(
        pitch, onset, bar, pickup, draw(st.sampled_from((40.0, 80.0, 92.5, 240.0))), draw(st.sampled_from(("", "Été")))
    )


def same(left: Chorale, right: Chorale) -> None:
    assert np.array_equal(left.pitch, right.pitch)
    assert np.array_equal(left.onset, right.onset)
    assert (left.bar, left.pickup, left.title) == (right.bar, right.pickup, right.title)
    assert left.tempo == pytest.approx(right.tempo, abs=1e-3)


def there_and_back(chorale: Chorale, kind: str) -> Piece:
    score = chorale.score()
    if kind == "midi":
        return quantise(read_midi(write_midi(score)))
    return quantise(read_musicxml(write_musicxml(score, zipped=kind == "mxl")))


@settings(max_examples=60, deadline=None)
@given(chorales(), st.sampled_from(("midi", "musicxml", "mxl")))
def test_a_grid_comes_back_from_every_format_as_it_was(chorale: Chorale, kind: str) -> None:
    piece = there_and_back(chorale, kind)
    same(chorale, piece.chorale)
    sounding = (chorale.pitch != REST).any(axis=1)
    assert np.array_equal(piece.present, np.repeat(sounding[:, None], chorale.steps, axis=1))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_music_gives_the_same_file_and_leaves_nothing_else(tmp_path: Path, suffix: str) -> None:
    chorale = small()
    for name in ("one", "two"):
        write_score(chorale, tmp_path / "made" / f"{name}{suffix}")
    one, two = ((tmp_path / "made" / f"{name}{suffix}").read_bytes() for name in ("one", "two"))
    assert one == two
    assert sorted(file.name for file in (tmp_path / "made").iterdir()) == [f"one{suffix}", f"two{suffix}"]
    same(read_chorale(tmp_path / "made" / f"one{suffix}"), chorale)


def test_content_decides_what_a_file_is_and_not_its_name(tmp_path: Path) -> None:
    write_score(small(), tmp_path / "a.mid")
    (tmp_path / "a.mid").rename(tmp_path / "a.musicxml")
    same(read_chorale(tmp_path / "a.musicxml"), small())
    write_score(small(), tmp_path / "b.musicxml")
    (tmp_path / "b.musicxml").rename(tmp_path / "noted")
    same(read_chorale(tmp_path / "noted"), small())


def test_a_score_keeps_its_names_through_musicxml(tmp_path: Path) -> None:
    write_score(small(), tmp_path / "a.musicxml")
    score = read_music(tmp_path / "a.musicxml").score
    write_score(score, tmp_path / "b.musicxml")
    assert read_music(tmp_path / "b.musicxml").score == score
    assert score.names == tuple(name.capitalize() for name in VOICES)
    assert {note.name for note in score.voices[0]} == {"F#", "G"}  # the key has one sharp


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.mid"
    write_bytes(b"old", target)
    with pytest.raises(TypeError):
        write_bytes("no bytes", target)  # type: ignore[arg-type]
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(ValueError, match=r"ends in one of .mid .midi .musicxml .xml .mxl"):
        music_format("a.wav")
    with pytest.raises(ValueError, match="got a folder"):
        write_score(small(), _folder(tmp_path / "folder.mid"))


def test_a_tune_is_a_soprano_whose_other_voices_are_absent(tmp_path: Path) -> None:
    (tmp_path / "tune.mid").write_bytes(tune(range(60, 68)))
    piece = read_piece(tmp_path / "tune.mid")
    assert piece.present.tolist() == [[True] * 32, [False] * 32, [False] * 32, [False] * 32]
    assert piece.chorale.pitch[0, ::4].tolist() == list(range(60, 68))
    assert (piece.chorale.pitch[1:] == REST).all()
    assert any("the other voices are absent" in remark for remark in piece.remarks)


def _text_as_midi() -> bytes:
    return b"Dear reader, this is a letter and no music at all.\n"


def _five_voices() -> bytes:
    return midi_bytes(480, [[(0, bytes((0x90, 60 + n, 80))), (480, bytes((0x80, 60 + n, 0)))] for n in range(5)])


def _many_notes(count: int = 10**6) -> bytes:
    body = bytes((0, 0x90, 60, 80, 120, 60, 0)) + bytes((0, 60, 80, 120, 60, 0)) * (count - 1) + b"\x00\xff\x2f\x00"
    return b"MThd" + struct.pack(">IHHH", 6, 0, 1, 480) + b"MTrk" + struct.pack(">I", len(body)) + body


def _drums() -> bytes:
    return midi_bytes(480, [[(480 * n, bytes((0x99, 38, 80))) for n in range(9)]])


def _bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "META-INF/container.xml", "<container><rootfiles><rootfile full-path='a.xml'/></rootfiles></container>"
        )
        with archive.open("a.xml", "w") as member:
            for _ in range(100):
                member.write(bytes(2**20))
    return file.getvalue()


def _entities() -> bytes:
    lines = "".join(f'<!ENTITY a{n} "&a{n - 1};&a{n - 1};">' for n in range(1, 40))
    return f'<!DOCTYPE score-partwise [<!ENTITY a0 "la">{lines}]><score-partwise>&a39;</score-partwise>'.encode()


BAD = {
    "truncated.mid": (lambda: tune(range(60, 90))[:-40], "cut off"),
    "letter.mid": (_text_as_midi, "expected a MIDI file, got something that begins with 'Dear reader"),
    "empty_track.mid": (lambda: midi_bytes(480, [[], []]), "expected notes, got none"),
    "many.mid": (_many_notes, "expected at most 4 MiB"),
    "some_more.mid": (lambda: _many_notes(21_000), "expected at most 20,000 notes"),
    "drums.mid": (_drums, "expected notes, got 9 notes of percussion"),
    "empty.mid": (lambda: b"", "expected music, got an empty file"),
    "bomb.mxl": (_bomb, "at most 32 MiB unpacked"),
    "entities.musicxml": (_entities, "XML without entities of its own"),
    "half.musicxml": (lambda: write_musicxml(small().score())[:2000], "expected XML"),
    "page.xml": (lambda: b"<html><body>music</body></html>", "got the root html"),
    "low.mid": (lambda: tune([20, 60]), "MIDI pitches from 30 to 86, got 20"),
    "long.mid": (lambda: midi_bytes(1, [[(0, b"\x90\x3c\x50"), (2**27, b"\x80\x3c\x00")]]), "10,000 quarter notes"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_sentence_within_seconds(tmp_path: Path, name: str) -> None:
    make, sentence = BAD[name]
    (tmp_path / name).write_bytes(make())
    began = time.monotonic()
    with pytest.raises(ValueError, match="expected") as caught:
        read_piece(tmp_path / name)
    assert time.monotonic() - began < 5
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(f"file {tmp_path / name}")
    assert "\n" not in str(caught.value)


def test_of_five_voices_the_outer_ones_are_read_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "five.mid").write_bytes(_five_voices())
    piece = read_piece(tmp_path / "five.mid")
    assert piece.chorale.pitch[:, 0].tolist() == [64, REST, REST, 60]
    assert piece.remarks[0] == "5 voices, up to 5 at once: the outer ones are read, as soprano and bass"


@pytest.mark.parametrize("power", [7, 29, 58, 255])
def test_a_time_signature_of_any_unit_is_read_or_refused_in_a_sentence(power: int) -> None:
    content = bytearray(write_midi(small().score()))
    place = content.index(b"\xff\x58\x04")
    content[place + 4] = power
    assert "expected a time signature in halves to 64ths, got 1 over" in (refusal("midi", bytes(content)) or "")
    content[place + 4] = 3
    assert refusal("midi", bytes(content)) is None


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(("midi", "musicxml", "mxl")), st.data())
def test_damage_anywhere_is_read_or_refused_and_nothing_else(kind: str, data: st.DataObject) -> None:
    score = small().score()
    content = bytearray(write_midi(score) if kind == "midi" else write_musicxml(score, zipped=kind == "mxl"))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(1, len(content)))] if data.draw(st.booleans()) else content
    assert "expected" in (refusal(kind, bytes(content)) or "expected")


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_piece(tmp_path / "none.mid")


def corpus_files() -> list[Path]:
    """Files of the folder ANYFILL_MUSIC, or else of music21's chorales, where that is installed."""
    folder = os.environ.get("ANYFILL_MUSIC")
    if folder:
        return sorted(file for file in Path(folder).iterdir() if file.suffix in (".mid", ".xml", ".musicxml", ".mxl"))
    corpus = pytest.importorskip("music21.corpus", reason="music21 is not installed and ANYFILL_MUSIC names no folder")
    found = (Path(str(file)) for file in corpus.getComposer("bach"))
    return sorted(file for file in found if file.suffix in (".xml", ".mxl"))


@pytest.mark.slow
def test_chorales_of_a_folder_or_of_music21_come_back_from_every_format() -> None:
    """NAME.json beside the music, [start, length, pitch, name] of each note by voice, is what another reader found."""
    read = 0
    for file in corpus_files():
        try:
            found = read_music(file)
            piece = quantise(found)
        except ValueError as error:
            if any(reason in str(error) for reason in ("voices", "at once", "sixteenths", "MIDI pitches from")):
                continue
            raise
        read += 1
        expected = file.with_name(file.name.removesuffix(file.suffix) + ".json")
        if expected.exists():
            names = file.suffix != ".mid"
            want = [
                [(Fraction(a), Fraction(b), c, d if names else None) for a, b, c, d in voice]
                for voice in json.loads(expected.read_text())
            ]
            have = [
                [(note.start, note.length, note.pitch, note.name) for note in voice if note.pitch is not None]
                for voice in found.score.voices
            ]
            assert have == want, file
        for kind in ("midi", "musicxml"):
            same(piece.chorale, there_and_back(piece.chorale, kind).chorale)
    assert read > 0


def refusal(kind: str, content: bytes) -> str | None:
    """What is said of a file; None if it can be read."""
    try:
        quantise((read_midi if kind == "midi" else read_musicxml)(content))
    except ValueError as error:
        return str(error)
    return None


def small() -> Chorale:
    """Two bars and a pickup in 3/4, with a repeated note and a note over the bar line."""
    rows = [
        "66 66 66 66 67 67 67 67 67 67 67 67 66 66 66 66 67 67 67 67 67 67 67 67 67 67 67 67",
        "62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62 62",
        "57 57 57 57 59 59 59 59 57 57 55 55 57 57 57 57 59 59 59 59 59 59 59 59 59 59 59 59",
        "50 50 50 50 43 43 43 43 -1 -1 -1 -1 50 50 50 50 43 43 43 43 43 43 43 43 43 43 43 43",
    ]
    pitch = np.array([row.split() for row in rows], dtype=np.int16)
    onset = np.zeros(pitch.shape, dtype=np.bool_)
    onset[0, [8, 20]] = True
    onset[1, [3, 12]] = True
    return Chorale(pitch, onset, 12, 4, 72.0, "Small")


def tune(pitches: object) -> bytes:
    """A MIDI file of quarter notes."""
    events = [(0, meta(0x03, b"Flute"))]
    for n, pitch in enumerate(pitches):  # type: ignore[arg-type]
        events += [(480 * n, bytes((0x90, pitch, 80))), (480 * (n + 1), bytes((0x90, pitch, 0)))]
    return midi_bytes(480, [events])


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_piece_of_a_jsb_file_is_read_by_its_part_and_number(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pieces = [rng.integers(40, 80, (steps, 4)).tolist() for steps in (32, 20)]
    file = tmp_path / "jsb.json"
    file.write_text(json.dumps({"train": [], "valid": pieces}))
    piece = read_piece(f"{file}:valid:1")
    assert piece.chorale.pitch.T.tolist() == pieces[1]
    assert (piece.chorale.bar, piece.chorale.pickup, piece.chorale.title) == (16, 4, "valid 1")
    assert piece.present.all()
    assert piece.remarks == ()
    assert jsb_name(f"{file}:valid:1") == "jsb-valid-1"
    assert jsb_name(file) is None
    for name, words in (
        (f"{file}:valid:2", "expected a number from 0 to 1, got 2"),
        (f"{file}:valid:-1", "a part and a number from 0, as in .*jsb.json:valid:3, got 'valid', '-1'"),
        (f"{file}::1", "a part and a number from 0"),
        (f"{file}:train:0", "expected a part with pieces, got 0"),
        (f"{file}:test:0", 'with the part "test", got .*train.*valid'),
        (f"{tmp_path}/no.json:valid:0", "no.json: expected a readable file"),
        (str(file), "one piece of it, as in .*jsb.json:valid:3, got the whole file"),
    ):
        with pytest.raises(ValueError, match=words):
            read_music(name)


SCORE = Score(((Note(Fraction(0), Fraction(1), 60, "C", 4),),), names=("Flute",), tempo=66.0, bar=Fraction(4))


def test_without_music21_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "music21", None)
    monkeypatch.setitem(sys.modules, "music21.corpus", None)
    with pytest.raises(ValueError, match=r"piece bwv66.6: expected a file, or .* music21 installed .* got neither"):
        read_music("bwv66.6")


def test_a_piece_is_read_from_the_package_s_file_or_from_what_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get_work(name: str) -> Path:
        if name not in ("one", "two"):
            raise LookupError("Could not find\na work")
        return tmp_path / ("one.musicxml" if name == "one" else "two.krn")

    def write(kind: str, fp: Path) -> Path:
        fp.write_bytes(write_musicxml(SCORE))
        return fp

    (tmp_path / "one.musicxml").write_bytes(write_musicxml(SCORE))
    fake = SimpleNamespace(getWork=get_work, parse=lambda _: SimpleNamespace(write=write))
    monkeypatch.setitem(sys.modules, "music21", SimpleNamespace(corpus=fake))
    monkeypatch.setitem(sys.modules, "music21.corpus", fake)
    assert read_corpus("one").score == read_corpus("two").score
    assert replace(read_corpus("one").score, signs=SCORE.signs) == SCORE  # what is written states its signs
    with pytest.raises(ValueError, match="piece three: expected a name of music21's corpus, got Could not find a work"):
        read_corpus("three")
    with pytest.raises(ValueError, match="a name of music21's corpus"):
        read_corpus("../../etc/passwd")
