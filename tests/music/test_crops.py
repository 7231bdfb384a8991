"""Chorales as rows: crops begin with a bar, transpositions keep the range, nothing that is not there is present."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.music.chorale import CODES, HIGHEST, LOWEST, REST, Chorale, pitches_of
from anyfill.music.crops import Crops, whole_windows
from anyfill.music.files import read_jsb

pitches = st.sampled_from([REST, LOWEST, 48, 60, 62, 67, HIGHEST])


@st.composite
def chorales(draw: st.DrawFn) -> Chorale:
    steps = draw(st.integers(1, 40))
    values = draw(st.lists(pitches, min_size=4 * steps, max_size=4 * steps))
    struck = draw(st.lists(st.booleans(), min_size=4 * steps, max_size=4 * steps))
    grid = np.array(values, dtype=np.int16).reshape(4, steps)
    return Chorale(grid, np.array(struck).reshape(4, steps), pickup=draw(st.integers(0, 15)))


@given(chorales())
def test_codes_and_pitches_undo_each_other(piece: Chorale) -> None:
    codes = piece.codes()
    assert int(codes.min()) >= 0
    assert int(codes.max()) < CODES
    assert np.array_equal(pitches_of(codes), piece.pitch)


@given(chorales())
def test_the_notes_of_a_score_cover_the_grid_and_repeat_where_an_onset_says_so(piece: Chorale) -> None:
    for voice, notes in enumerate(piece.score().voices):
        assert len(notes) == int(piece.onset[voice].sum())
        assert sum(note.length for note in notes) * 4 == piece.steps
        rebuilt = [REST if note.pitch is None else note.pitch for note in notes for _ in range(int(note.length * 4))]
        assert rebuilt == piece.pitch[voice].tolist()


@given(chorales(), st.integers(0, 2**31))
def test_cells_that_are_not_written_keep_pitch_and_onset(piece: Chorale, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    written = torch.rand(4 * piece.steps, generator=generator) < 0.5
    codes = torch.randint(CODES, (4 * piece.steps,), generator=generator)
    after = piece.with_codes(codes, written)
    fresh = written.numpy().reshape(-1, 4).T
    assert np.array_equal(after.pitch[~fresh], piece.pitch[~fresh])
    assert np.array_equal(after.pitch[fresh], pitches_of(codes)[fresh])
    assert bool((after.onset | ~piece.onset)[~fresh].all())


@given(chorales(), st.integers(16, 32))
def test_a_crop_holds_the_piece_at_its_place_in_the_bar_and_nothing_else(piece: Chorale, steps: int) -> None:
    crops = Crops([piece], steps=steps, stride=16, transpositions=(0,))
    rows = crops.rows()
    before = -piece.pickup % 16
    for number, (codes, present) in enumerate(zip(rows.x, rows.present)):
        for variable in range(4 * steps):
            step = 16 * number + variable // 4 - before
            inside = 0 <= step < piece.steps
            assert bool(present[variable]) == inside
            if inside:
                assert int(codes[variable]) == int(piece.codes()[4 * step + variable % 4])
    assert int(rows.present.sum()) > 0


def test_a_transposition_that_leaves_the_range_is_left_out() -> None:
    low = Chorale.of(np.full((4, 4), LOWEST + 1, dtype=np.int16))
    assert len(Crops([low], steps=4, stride=4, transpositions=(-2, -1, 0, 5))) == 3
    moved = Crops([low], steps=4, stride=4, transpositions=(5,)).take(torch.tensor([0]))
    assert moved.x.unique().tolist() == [7]


def test_a_jsb_file_is_read_and_a_bad_one_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "jsb.json"
    path.write_text(json.dumps({"train": [[[60, 55, 52, 48]] * 20], "valid": [[[60, 55]]]}))
    (piece,) = read_jsb(path, "train")
    assert (piece.steps, piece.pickup) == (20, 4)
    with pytest.raises(ValueError, match="valid 0: expected steps of four numbers"):
        read_jsb(path, "valid")
    with pytest.raises(ValueError, match='expected an object with the part "test"'):
        read_jsb(path, "test")
    with pytest.raises(ValueError, match="expected a readable file"):
        read_jsb(tmp_path / "none.json", "train")
    path.write_text("no json")
    with pytest.raises(ValueError, match="expected JSON"):
        read_jsb(path, "train")


def test_pitches_out_of_range_are_refused_with_their_place() -> None:
    grid = np.full((4, 8), 60, dtype=np.int16)
    grid[2, 5] = 20
    with pytest.raises(ValueError, match="pitch of the tenor at step 5: expected MIDI 30 to 86"):
        Chorale.of(grid)


def test_windows_end_strictly_before_the_piece_does_and_hold_no_rest() -> None:
    grid = np.tile(np.arange(60, 70, dtype=np.int16), (4, 2))  # 20 steps
    assert [window.pitch[0, 0] for window in whole_windows([Chorale.of(grid)], 10)] == [60]
    longer = np.concatenate([grid, grid[:, :1]], 1)
    assert len(whole_windows([Chorale.of(longer)], 10)) == 2
    longer[2, 15] = REST
    assert len(whole_windows([Chorale.of(longer)], 10)) == 1
