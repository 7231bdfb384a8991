"""Figures 3 to 5: what is fixed stays, what is told is told, and the statistics see what they should."""

import numpy as np
import pytest
import torch

from anyfill.music.chorale import CODES
from anyfill.recipes import sunmask
from experiments.sunmask import fig3


def test_the_tune_fills_eight_bars_and_masks_split_every_cell_once() -> None:
    assert sum(length for _, length in fig3.TUNE) == fig3.STEPS
    assert (fig3.tune().pitch[0] > 0).all()
    for setting in fig3.SETTINGS:
        assert (torch.stack(fig3.masks(setting)).sum(0) == 1).all()
    assert int(fig3.masks("B")[1].sum()) == fig3.STEPS // 2


def test_chains_keep_given_and_held_notes_and_rewrite_the_others() -> None:
    model = sunmask.model(CODES, (16, 4), width=4, repeats=1)
    found = fig3.chains(model, 7, rounds=6, device="cpu")
    soprano = fig3.tune(16).pitch[0]
    assert [len(found[one]) for one in "ABC"] == [3, 2, 2]
    assert all((found[one][:, 0] == soprano).all() for one in "AB")
    assert (found["C"][:, 0, :8] == soprano[:8]).all()
    assert (found["C"][:, 0, 8:] != soprano[8:]).any()
    told, over_time = fig3.settled(found)
    assert over_time["settled, trusted"][-1] in (1.0, None)
    assert len(over_time["round"]) == len(found["values"])
    assert told["rows"] >= 1


def test_a_tune_fits_the_chords_it_was_counted_with() -> None:
    """A world in which the soprano always doubles the bass: doubling fits, everything else does not."""
    random = np.random.default_rng(0)
    lower = random.integers(48, 60, (3, 400)).astype(np.int16)
    piece = np.concatenate([lower[2:] + 12, lower]).astype(np.int16)
    fit = fig3.Fit([piece])
    own = fit(piece, slice(None))
    moved = [fit(piece, slice(None), up=up) for up in range(1, 12)]
    assert own < 0.9 < 2.0 < min(moved)
    assert fit(piece, slice(None), up=12) == pytest.approx(own)


def test_an_interval_of_a_mean_holds_it() -> None:
    random = np.random.default_rng(0)
    one, other = random.normal(1.0, 1.0, 100), np.append(random.normal(0.0, 1.0, 100), np.nan)
    found = fig3.interval(one, other)
    assert found["low"] < 1.0 < found["high"]
    assert found["low"] < found["value"] < found["high"]
