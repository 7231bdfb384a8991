"""Chorales through the studio: what is given never changes, answers are those of Python, files go in and out."""

import io
import wave
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from anyfill import music
from anyfill.music.score import Note, Score, Signs
from anyfill.music.writing import write_midi, write_score
from anyfill.studio.chorale_form import Region, WirePiece
from anyfill.studio.chorale_wire import cells_of_regions, piece_of, score_of, wire_of, words_of

PITCHES = [67, 69, 71, 72, 71, 69, 67, 67]
TUNE = {
    "voices": [[{"start": 4 * n, "length": 4, "pitch": pitch} for n, pitch in enumerate(PITCHES)], [], [], []],
    "steps": 32,
}


@pytest.fixture(scope="module")
def model():
    return music.load()


def drawn(visitor, body):
    """The alternatives that a job sends, and its result."""
    events = visitor.events(visitor.post("/api/chorale/draw", body).json()["job"])
    assert events[-1][0] == "done", events[-1]
    return [data for name, data in events if name == "piece"], events[-1][1]


@pytest.fixture(scope="module")
def harmonised(visitor):
    return drawn(visitor, {"verb": "harmonise", "piece": TUNE, "n": 2, "seed": 3})


def test_a_harmony_is_that_of_python_and_keeps_the_tune(harmonised, model):
    found, result = harmonised
    own = model.harmonise(score_of(WirePiece.model_validate(TUNE)), n=2, seed=3)
    assert [one["voices"] for one in found] == [wire_of(piece)["voices"] for piece in own]
    assert all(one["voices"][0] == TUNE["voices"][0] for one in found)
    assert result["how"]["cli"] == "anyfill music harmonise piece.musicxml -n 2 --seed 3"
    assert result["how"]["passes"] >= 32


def test_a_harmony_in_a_key_that_is_named_is_that_of_python(visitor, harmonised, model):
    body = {"verb": "harmonise", "piece": TUNE, "n": 2, "seed": 3, "key": "E minor"}
    found, result = drawn(visitor, body)
    own = model.harmonise(score_of(WirePiece.model_validate(TUNE)), n=2, seed=3, key="E minor")
    assert [one["voices"] for one in found] == [wire_of(piece)["voices"] for piece in own]
    assert found != harmonised[0]
    assert {one["voices"][3][-1]["pitch"] % 12 for one in found} == {4}  # the bass ends on E
    assert result["how"]["cli"] == "anyfill music harmonise piece.musicxml -n 2 --seed 3 --key 'E minor'"


def grid(piece):
    """int (4, T): the pitch of each cell, -1 for silence."""
    cells = np.full((4, piece["steps"]), -1)
    for voice, line in enumerate(piece["voices"]):
        for note in line:
            cells[voice, note["start"] : note["start"] + note["length"]] = note["pitch"]
    return cells


@pytest.mark.parametrize(
    ("region", "words"), [((1, 16, 32), 'ask="alto 2"'), ((2, 5, 21), 'ask="…"')], ids=["a bar", "some notes"]
)
def test_what_is_not_painted_away_never_changes(visitor, harmonised, region, words):
    voice, start, stop = region
    piece = harmonised[0][0]
    asked = [{"voice": voice, "start": start, "stop": stop}]
    found, result = drawn(visitor, {"verb": "rewrite", "piece": piece, "asked": asked, "n": 3, "seed": 1})
    kept = np.ones((4, 32), dtype=bool)
    kept[voice, start:stop] = False
    assert words in result["how"]["python"]
    for one in found:
        assert (grid(one) == grid(piece))[kept].all()
    assert any((grid(one) != grid(piece)).any() for one in found)


def test_rewriting_bars_is_fill_in_the_words_of_the_command(visitor, harmonised, model):
    piece = harmonised[0][0]
    asked = [{"voice": 3, "start": 0, "stop": 16}, {"voice": 1, "start": 0, "stop": 32}]
    found, _ = drawn(visitor, {"verb": "rewrite", "piece": piece, "asked": asked, "n": 2, "seed": 8})
    own = model.fill(score_of(WirePiece.model_validate(piece)), ask="alto 1-2, bass 1", n=2, seed=8)
    assert [one["voices"] for one in found] == [wire_of(one)["voices"] for one in own]


def test_a_continued_piece_begins_as_it_was(visitor, harmonised):
    piece = harmonised[0][0]
    found, _ = drawn(visitor, {"verb": "continue", "piece": piece, "bars": 1, "n": 1, "seed": 2})
    assert found[0]["steps"] == 48
    assert (grid(found[0])[:, :31] == grid(piece)[:, :31]).all()


def test_locked_notes_are_not_varied(visitor, harmonised):
    piece = harmonised[0][0]
    asked = [{"voice": voice, "start": 0, "stop": 32} for voice in (1, 2)]
    found, _ = drawn(visitor, {"verb": "vary", "piece": piece, "asked": asked, "amount": 0.9, "n": 1, "seed": 2})
    assert (grid(found[0])[[0, 3]] == grid(piece)[[0, 3]]).all()


def test_locks_smaller_than_a_bar_hold_when_the_rest_is_varied(visitor, harmonised):
    """Of alto and tenor the first bar but its last four steps is free: all else, and notes beyond it, stay."""
    piece = harmonised[0][0]
    asked = [{"voice": voice, "start": 0, "stop": 12} for voice in (1, 2)]
    found, result = drawn(visitor, {"verb": "vary", "piece": piece, "asked": asked, "amount": 1.0, "n": 2, "seed": 3})
    kept = np.ones((4, 32), dtype=bool)
    kept[1:3, :12] = False
    assert all((grid(one) == grid(piece))[kept].all() for one in found)
    assert "note by note" in result["how"]["asked"]


@pytest.mark.slow
def test_new_pieces_have_the_bars_and_the_key(visitor):
    found, result = drawn(visitor, {"verb": "generate", "bars": 1, "n": 1, "seed": 4})
    assert found[0]["steps"] == 16
    assert result["seed"] == 4


def test_surprise_is_that_of_python(visitor, harmonised, model):
    piece = harmonised[0][0]
    answer = visitor.post("/api/chorale/surprise", {"piece": piece}).json()
    assert answer["log_likelihood"] == pytest.approx(model.score(score_of(WirePiece.model_validate(piece))).total)
    assert sum(note["nats"] for note in answer["notes"]) == pytest.approx(-answer["log_likelihood"])
    assert answer["how"]["kind"] == "exact"


def test_words_and_regions_say_the_same(visitor):
    chorale = piece_of(WirePiece.model_validate(TUNE)).chorale
    regions = visitor.post("/api/chorale/regions", {"piece": TUNE, "ask": "alto 1-2, tenor 2"}).json()
    assert regions == [{"voice": 1, "start": 0, "stop": 32}, {"voice": 2, "start": 16, "stop": 32}]
    cells = cells_of_regions([Region(**one) for one in regions], 32)
    assert words_of(cells, chorale) == "alto 1-2, tenor 2"
    cells[0, 3] = True
    assert words_of(cells, chorale) is None
    refused = visitor.post("/api/chorale/regions", {"piece": TUNE, "ask": "kazoo 1"})
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith('"kazoo 1": expected a voice')  # a page has no option --ask


def export(visitor, piece, kind):
    answer = visitor.post("/api/chorale/export", {"piece": piece, "kind": kind})
    assert answer.status_code == 200, answer.text
    return answer.content


@pytest.mark.parametrize(("kind", "name"), [("midi", "x.mid"), ("musicxml", "x.musicxml")])
def test_what_is_exported_can_be_opened_again(visitor, studio, harmonised, kind, name):
    piece, before = harmonised[0][0], set(studio.folder.iterdir())
    content = export(visitor, piece, kind)
    found = visitor.client.post("/api/chorale/upload", files={"file": (name, content)}).json()
    assert (grid(found) == grid(piece)).all()
    assert set(studio.folder.iterdir()) == before


def jig(tempo=100, name="A jig", bars=2):
    """A tune in 6/8 and D minor, which a page cannot know but from its file."""
    tune = [Note(Fraction(n, 2), Fraction(1, 2), pitch) for n, pitch in enumerate([74, 76, 77, 79, 77, 76] * bars)]
    signs = Signs(times=((Fraction(0), 6, 8),), keys=((Fraction(0), -1, True),))
    starts = tuple(Fraction(3 * n) for n in range(bars))
    return Score((tuple(tune),), starts, tempo=float(tempo), title=name, bar=Fraction(3), signs=signs)


def opened(visitor, content, name="tune.mid"):
    return visitor.client.post("/api/chorale/upload", files={"file": (name, content)})


@pytest.mark.parametrize("kind", ["midi", "musicxml"])
def test_metre_and_key_of_a_file_are_told_and_kept(visitor, model, tmp_path, kind):
    """A jig in 6/8 used to be asked about, and exported, in 3/4, and its key to be guessed."""
    path = tmp_path / f"jig.{'mid' if kind == 'midi' else kind}"
    write_score(jig(), path)
    wire = opened(visitor, path.read_bytes(), path.name).json()
    found, _ = drawn(visitor, {"verb": "harmonise", "piece": wire, "n": 1, "seed": 4})
    (own,) = model.harmonise(path, n=1, seed=4)
    assert found[0]["voices"] == wire_of(own)["voices"]
    assert found[0]["key"] == "D minor"
    answer = visitor.post("/api/chorale/surprise", {"piece": wire}).json()
    assert answer["log_likelihood"] == pytest.approx(model.score(path).total, abs=1e-4)
    path.write_bytes(export(visitor, wire, kind))
    assert music.read(path).source.signs.times == ((0, 6, 8),)
    assert music.read(path).source.signs.keys == ((0, -1, True),)


def test_answers_are_those_of_the_command_line_for_the_file_that_is_exported(visitor, harmonised, model, tmp_path):
    piece = {**harmonised[0][0], "key": ""}
    (tmp_path / "piece.musicxml").write_bytes(export(visitor, piece, "musicxml"))
    answer = visitor.post("/api/chorale/surprise", {"piece": piece}).json()
    assert answer["log_likelihood"] == pytest.approx(model.score(tmp_path / "piece.musicxml").total, abs=1e-4)
    asked = [{"voice": 1, "start": 0, "stop": 16}]
    found, _ = drawn(visitor, {"verb": "rewrite", "piece": piece, "asked": asked, "n": 2, "seed": 5})
    own = model.fill(tmp_path / "piece.musicxml", ask="alto 1", n=2, seed=5)
    assert [one["voices"] for one in found] == [wire_of(one)["voices"] for one in own]


def test_what_is_opened_can_be_asked_about(visitor):
    """Files with a tempo or a title beyond what a page has used to open, and then nothing could be done with them."""
    answer = opened(visitor, write_midi(jig(tempo=400, name="x" * 300)))
    assert answer.status_code == 200
    assert "a tempo of 400 quarters a minute: taken as 300" in answer.json()["remarks"]
    assert visitor.post("/api/chorale/surprise", {"piece": answer.json()}).status_code == 200


def test_pieces_too_long_for_a_page_are_refused_when_they_are_opened_or_become_so(visitor):
    answer = opened(visitor, write_midi(jig(bars=171)), "long.mid")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("file long.mid: expected at most 2,048 sixteenths in the studio")
    piece = {**TUNE, "steps": 2048}
    events = visitor.events(visitor.post("/api/chorale/draw", {"verb": "continue", "piece": piece}).json()["job"])
    assert events[-1][0] == "failed"
    assert "at most 2,048 sixteenths" in events[-1][1]["detail"]
    wide = replace(jig(), bars=(Fraction(0),), bar=Fraction(20), signs=Signs(((Fraction(0), 20, 4),)))
    assert "at most 16 quarter notes" in opened(visitor, write_midi(wide)).json()["detail"]


def test_a_picture_is_a_picture(visitor, harmonised):
    assert export(visitor, harmonised[0][0], "png").startswith(b"\x89PNG")


def test_a_sound_is_as_long_as_the_piece(visitor):
    with wave.open(io.BytesIO(export(visitor, TUNE, "wav"))) as sound:
        seconds = sound.getnframes() / sound.getframerate()
    assert 32 * 15 / 80 <= seconds < 32 * 15 / 80 + 4


def test_the_score_is_engraved_with_its_fonts(visitor, harmonised):
    pytest.importorskip("verovio")
    pages = visitor.post("/api/chorale/notation", {"piece": harmonised[0][0]}).json()["pages"]
    assert len(pages) == 1
    assert pages[0].startswith("<svg")
    assert pages[0].count('class="note') >= 4 * 4
    assert "<symbol" in pages[0] or "<path" in pages[0]  # glyphs: without its fonts there are none


LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;">]><score-partwise>&c;</score-partwise>'
)
OUTSIDE = b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><score-partwise>&b;</score-partwise>'


@pytest.mark.parametrize("content", [LAUGHS, OUTSIDE, b"", b"<a", b"MThd", b"PK\x03\x04", b"<score-partwise/>"])
def test_hostile_and_broken_music_is_refused_in_a_sentence(visitor, studio, content):
    before = set(studio.folder.iterdir())
    answer = visitor.client.post("/api/chorale/upload", files={"file": ("x.musicxml", content)})
    assert answer.status_code == 422
    assert "root:" not in answer.text
    assert str(studio.folder) not in answer.text
    assert set(studio.folder.iterdir()) == before


@pytest.mark.parametrize(
    "change",
    [
        {"voices": [[{"start": 0, "length": 9, "pitch": 60}, {"start": 4, "length": 4, "pitch": 60}], [], [], []]},
        {"voices": [[{"start": 30, "length": 4, "pitch": 60}], [], [], []]},
        {"pickup": 20},
        {"voices": [[], [], [], []]},
    ],
)
def test_pieces_that_cannot_be_are_refused(visitor, change):
    assert visitor.post("/api/chorale/surprise", {"piece": {**TUNE, **change}}).status_code == 422
