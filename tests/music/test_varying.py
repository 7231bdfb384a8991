"""Variations hide whole notes, and write whole notes anew."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill import music
from anyfill.music.chorale import LOWEST, Chorale
from anyfill.music.model import one_pass_chorale, one_pass_chorale_model
from anyfill.music.varying import whole_notes


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_notes_are_hidden_as_wholes_and_never_where_a_part_is_locked(seed: int, share: float, onsets: bool) -> None:
    rng = np.random.default_rng(seed)
    grid = Chorale(rng.integers(60, 63, (4, 24)).astype(np.int16), rng.random((4, 24)) < 0.3)
    grid = grid if onsets else Chorale.of(grid.pitch)
    asked = rng.random((4, 24)) < 0.9
    cells = whole_notes(
        grid.codes(onsets=onsets).unsqueeze(0), torch.from_numpy(asked.T.reshape(1, -1)), share, onsets,
        torch.Generator().manual_seed(seed),
    )  # fmt: skip
    hidden = cells.reshape(-1, 4).T.numpy()
    for voice in range(4):
        for start, end, _ in grid.notes(voice):
            free = asked[voice, start:end].all()
            assert hidden[voice, start:end].all() if share == 1.0 and free else True
            assert hidden[voice, start:end].all() or not hidden[voice, start:end].any()
            assert free or not hidden[voice, start:end].any()
    assert share > 0.0 or not hidden.any()


def test_a_variation_of_long_notes_does_not_fall_to_pieces() -> None:
    """By a model that knows one pitch: what is drawn anew has it, in notes as long as those they replace."""
    made = one_pass_chorale_model(128, width=16, depth=1, heads=2)
    with torch.no_grad():
        made.get_parameter("network.head.bias")[55 - LOWEST + 1] = 30.0
    made.factorizations = one_pass_chorale(128).factorizations
    model = music.ChoraleModel(made.eval())
    grid = np.repeat(np.array([[72, 71], [67, 67], [64, 62], [48, 43]], dtype=np.int16), 32, axis=1)
    for piece in model.vary(Chorale.of(grid), amount=0.5, n=3, seed=2, as_drawn=True):
        assert max(len(line) for line in piece.score.voices) <= 4
