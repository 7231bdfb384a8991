"""Pictures of chorales: colours where notes are, hollow where a model wrote, refusals."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from anyfill.music.chorale import REST, Chorale
from anyfill.music.piano_roll import COLOURS, Panel, draw_piano_roll


def piece() -> Chorale:
    pitch = np.repeat(np.array([[72], [67], [60], [48]], dtype=np.int16), 20, axis=1)
    pitch[3, 8:12] = REST
    return Chorale.of(pitch, pickup=4)


def inked(path: Path, voice: int) -> int:
    """How many pixels have the colour of a voice."""
    pixels = imread(path)[..., :3]
    return int((np.abs(pixels - np.array(to_rgb(COLOURS[voice]))).max(axis=-1) < 0.02).sum())


def test_every_voice_has_its_colour_and_the_same_piece_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        draw_piano_roll(piece(), tmp_path / name, title="A piece")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert all(inked(tmp_path / "a.png", voice) > 500 for voice in range(4))


def test_written_notes_are_hollow_and_absent_ones_are_not_there(tmp_path: Path) -> None:
    cells = np.ones((4, 20), dtype=np.bool_)
    cells[1] = False
    draw_piano_roll(Panel(piece()), tmp_path / "full.png")
    draw_piano_roll(Panel(piece(), locked=cells), tmp_path / "hollow.png")
    draw_piano_roll(Panel(piece(), present=cells), tmp_path / "absent.png")
    full, hollow, absent = (inked(tmp_path / f"{name}.png", 1) for name in ("full", "hollow", "absent"))
    assert full > hollow > absent
    panels = [Panel(piece(), "before", present=cells), Panel(piece(), "after", locked=cells)]
    draw_piano_roll(panels, tmp_path / "both.png")
    assert imread(tmp_path / "both.png").shape[0] > imread(tmp_path / "full.png").shape[0]


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends in \.png"):
        draw_piano_roll(piece(), tmp_path / "a.jpg")
    with pytest.raises(ValueError, match="panels"):
        draw_piano_roll([], tmp_path / "a.png")
    with pytest.raises(ValueError, match="shape of locked"):
        Panel(piece(), locked=np.ones((4, 3), dtype=np.bool_))
    with pytest.raises(ValueError, match="at most 2,048 steps"):
        draw_piano_roll(Chorale.of(np.full((4, 3000), 60, dtype=np.int16)), tmp_path / "a.png")
    silent = Chorale.of(np.full((4, 16), REST, dtype=np.int16))
    draw_piano_roll(silent, tmp_path / "silent.png")
