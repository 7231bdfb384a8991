"""Windows cover what is asked, once, from left to right; a resized model is the same model."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.music.chorale import BAR, CODES
from anyfill.music.model import one_pass_chorale_model
from anyfill.music.windows import AHEAD, BACK, WINDOW, Window, resized, windows


@settings(max_examples=200)
@given(st.integers(1, 700), st.integers(0, 2**32 - 1))
def test_every_asked_step_is_answered_by_exactly_one_window_that_sees_it(steps: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    asked = rng.random((4, steps)) < rng.choice([0.002, 0.1, 1.0])
    given = ~asked & (rng.random((4, steps)) < rng.choice([0.0, 0.5, 1.0]))
    answered = np.zeros(steps, dtype=int)
    found = list(windows(asked, given))
    for window in found:
        assert window.start % BAR == 0
        assert 0 <= window.start <= window.first < window.until <= window.stop <= steps
        assert window.stop - window.start <= WINDOW
        assert window.first - window.start >= min(BACK, window.first // BAR * BAR)
        # What ends within a piece either saw two more bars, or there was nothing to see.
        assert window.until in (window.stop, window.stop - AHEAD)
        if window.until == window.stop < steps:
            assert not given[:, window.stop - AHEAD : window.stop].any()
        answered[window.first : window.until] += 1
    assert (answered <= 1).all()
    assert (answered[asked.any(0)] == 1).all()
    assert [window.first for window in found] == sorted(window.first for window in found)


def test_eight_bars_are_one_window_whatever_is_asked() -> None:
    everything = np.ones((4, WINDOW), dtype=bool)
    assert list(windows(everything, ~everything)) == [Window(0, WINDOW, 0, WINDOW)]


def test_a_long_piece_goes_on_four_bars_at_a_time_given_the_four_before() -> None:
    everything = np.ones((4, 16 * BAR), dtype=bool)
    found = list(windows(everything, ~everything))
    assert found[1:] == [Window(first - BACK, first + BACK, first, first + BACK) for first in (128, 192)]


def test_a_tune_is_seen_two_bars_ahead() -> None:
    given = np.zeros((4, 16 * BAR), dtype=bool)
    given[0] = True
    found = list(windows(~given, given))
    assert found[:2] == [Window(0, 128, 0, 96), Window(32, 160, 96, 128)]
    assert found[-1].until == 256


def test_a_resized_model_answers_as_before_and_shares_its_weights() -> None:
    model = one_pass_chorale_model(8, width=16, depth=1, heads=2, dropout=0.0).eval()
    generator = torch.Generator().manual_seed(0)
    torch.nn.init.normal_(model.network.head.weight, generator=generator)
    x = torch.randint(CODES, (3, 64), generator=generator)
    longer = resized(model, 16)
    rank = torch.arange(64).expand(3, -1)
    with torch.no_grad():
        short = model.chain(x[:, :32], rank[:, :32]).log_prob(x[:, :32])
        long = longer.chain(x, rank).log_prob(x)[:, :32]
    torch.testing.assert_close(short, long)
    own = dict(model.named_parameters())
    assert all(own[name].data_ptr() == weights.data_ptr() for name, weights in longer.named_parameters())
