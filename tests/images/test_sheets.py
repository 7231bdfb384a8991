"""Sheets show what was given and drawn; what is drawn on top hides none of it."""

import numpy as np
import pytest

from anyfill.images.erasing import region
from anyfill.images.picture import Picture
from anyfill.images.sheets import ACCENT, HATCH, sheet_of


def test_a_line_runs_around_a_hole_but_not_over_single_pixels_of_a_large_picture() -> None:
    hole, scattered = (np.zeros((200, 300), dtype=bool) for _ in range(2))
    hole[20:60, 30:90] = True
    scattered[::20, ::20] = True
    lines: list[int] = []
    for erased in (hole, scattered):
        given = Picture(np.zeros((200, 300, 1), dtype=np.uint8), erased, "x")
        drawn = Picture(np.full((200, 300, 1), 90, dtype=np.uint8), None, "x")
        sheet = sheet_of(given, [drawn], np.zeros((200, 300))).pixels
        lines.append(int((sheet == ACCENT).all(2).sum()))
    assert lines[0] >= 2 * 2 * (40 + 60)  # around the hole, in what was given and in what was drawn
    assert lines[1] == 0


@pytest.mark.parametrize(
    ("words", "is_lined"),
    [("8,4,12,12", True), ("3,3 20,25 / 4", True), ("30%", False), ("80%", False), ("3,3 20,25 / 1", False)],
)
def test_on_what_is_drawn_no_line_runs_around_thin_or_tiny_parts(words, is_lined, generator) -> None:
    erased, pixels = region(words, 28, 28, generator=generator), np.zeros((28, 28, 1), dtype=np.uint8)
    sheet = sheet_of(Picture(pixels, erased), [Picture(pixels)], np.zeros((28, 28))).pixels
    given, drawn, _ = np.array_split((sheet == ACCENT).all(2), 3, axis=1)
    assert given.any()  # where it hides nothing
    assert drawn.any() == is_lined


def test_at_the_rim_of_a_picture_tiny_parts_have_no_line_either(generator) -> None:
    erased, pixels = np.zeros((28, 28), dtype=bool), np.zeros((28, 28, 1), dtype=np.uint8)
    erased[:2, :3], erased[20:22, 10:13], erased[10, :] = True, True, True
    sheet = sheet_of(Picture(pixels, erased), [Picture(pixels)], np.zeros((28, 28))).pixels
    assert not (np.array_split(sheet, 3, axis=1)[1] == ACCENT).all(2).any()


@pytest.mark.parametrize("places", [(300, 500, 6, 4), (0, 795, 5, 5), (390, 590, 80, 90)])
def test_of_a_large_picture_with_a_small_hole_the_part_around_it_is_shown(places) -> None:
    """What is drawn takes a ninth of the part at least, or lies among 48 pixels."""
    left, top, across, down = places
    erased = np.zeros((800, 1200), dtype=bool)
    erased[top : top + down, left : left + across] = True
    given = Picture(np.zeros((800, 1200, 1), dtype=np.uint8), erased, "x")
    drawn = Picture(np.where(erased, 90, 0).astype(np.uint8)[..., None], None, "x")
    sheet = sheet_of(given, [drawn], np.where(erased, 1.0, 0.0)).pixels
    _, middle, _ = np.array_split((sheet == 90).all(2), 3, axis=1)
    cell = sheet.shape[0] - 2 * 14 - 24
    assert middle.sum() > 0.5 * cell**2 * min(1.0, across / 48) * min(1.0, down / 48) / 9


def test_of_large_or_distant_holes_the_whole_picture_is_shown() -> None:
    erased = np.zeros((200, 300), dtype=bool)
    erased[:3, :3], erased[190:, 290:] = True, True
    given = Picture(np.full((200, 300, 1), 7, dtype=np.uint8), erased, "x")
    sheet = sheet_of(given, [], np.zeros((200, 300))).pixels
    assert (sheet == 7).all(2).sum() > 0.9 * 200 * 300


def test_sheets_have_a_cell_for_each_and_hatch_what_is_missing(black_and_white, tmp_path) -> None:
    pixels = np.zeros((8, 8, 1), dtype=np.uint8)
    fills = black_and_white.fill(pixels, "right", n=12, seed=1)
    assert fills.sheet().width > 10 * 96
    assert fills.sheet().height > 2 * 140
    paths = fills.save(tmp_path / "out", "x")
    assert [path.name for path in paths] == [*(f"x-{k}.png" for k in range(1, 13)), "x-sheet.png"]
    assert all(path.is_file() for path in paths)
    black_and_white.score(pixels).save(tmp_path / "heat.png")
    assert (tmp_path / "heat.png").is_file()


def test_what_was_scored_is_shown_and_only_what_is_missing_is_hatched(black_and_white) -> None:
    pixels = np.full((8, 8, 1), 90, dtype=np.uint8)
    sheet = black_and_white.score(pixels, "bottom", invert=False).sheet().pixels
    assert (sheet == HATCH[0]).all(2).sum() == 0
    assert (sheet == 90).all(2).sum() > 0.9 * 140**2
    clear = Picture(pixels, np.arange(8)[:, None].repeat(8, 1) >= 6)
    assert (black_and_white.score(clear, invert=False).sheet().pixels == HATCH[0]).all(2).any()


def test_what_is_certain_is_dark_on_a_sheet() -> None:
    given = Picture(np.zeros((8, 8, 1), dtype=np.uint8), np.ones((8, 8), dtype=bool))
    sure, unsure = (sheet_of(given, [given], np.full((8, 8), bits)).pixels[60, -60] for bits in (7e-5, 0.5))
    assert sure.max() < 10
    assert unsure.min() > 100
