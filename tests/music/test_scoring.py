"""Scores are exact log-probabilities, note by note, in one window or in several."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.music.chorale import HIGHEST, LOWEST, REST, Chorale
from anyfill.music.model import one_pass_chorale_model
from anyfill.music.piece import Piece
from anyfill.music.scoring import score_piece
from anyfill.music.windows import resized
from anyfill.questions import Factorization, Question


def tiny() -> Model:
    """An untrained model whose answers are nonetheless not all alike."""
    model = one_pass_chorale_model(128, width=16, depth=1, heads=2, dropout=0.0)
    torch.nn.init.normal_(model.network.head.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    model.factorizations = frozenset((Factorization.DIRECT, Factorization.INPAINTING, Factorization.DIFFERENCE))
    return model.eval()


MODEL = tiny()


def random_piece(rng: np.random.Generator, steps: int, bar: int = 16) -> Chorale:
    pitch = rng.integers(LOWEST, HIGHEST + 1, (4, steps)).astype(np.int16)
    held = rng.random((4, steps)) < 0.6
    for step in range(1, steps):
        pitch[:, step] = np.where(held[:, step], pitch[:, step - 1], pitch[:, step])
    pitch[rng.random((4, steps)) < 0.05] = REST
    return Chorale(pitch, rng.random((4, steps)) < 0.2, bar, int(rng.integers(0, bar)) % steps, tempo=97.0)


@pytest.mark.parametrize(("steps", "pickup"), [(50, 0), (128, 0), (61, 4)])
def test_the_score_of_a_piece_in_one_window_is_its_exact_log_probability(steps: int, pickup: int) -> None:
    chorale = replace(random_piece(np.random.default_rng(steps), steps), pickup=pickup)
    present = np.ones((4, steps), dtype=bool)
    scored = score_piece(MODEL, Piece(chorale, present))
    before = -pickup % 16
    asked = torch.cat([torch.zeros(4 * before, dtype=torch.bool), torch.ones(4 * steps, dtype=torch.bool)]).unsqueeze(0)
    x = torch.cat([torch.zeros(4 * before, dtype=torch.int64), chorale.codes()]).unsqueeze(0)
    model = resized(MODEL, before + steps)
    direct = log_prob(model, x, Question(torch.zeros_like(asked), asked))
    assert scored.kind == direct.kind == "exact"
    assert scored.total == pytest.approx(float(direct.value), rel=1e-5)
    assert sum(note.nats for note in scored.notes()) == pytest.approx(-scored.total)
    summary = scored.summary(3)
    assert sum(summary["surprise_of_bar"].values()) == pytest.approx(-scored.total)
    assert sum(summary["surprise_of_voice"].values()) == pytest.approx(-scored.total)
    assert len(summary["most_surprising"]) == 3


def test_the_score_of_a_long_piece_is_the_sum_of_its_windows() -> None:
    chorale = replace(random_piece(np.random.default_rng(3), 192), pickup=0)
    scored = score_piece(MODEL, Piece(chorale, np.ones((4, 192), dtype=bool)))
    assert scored.windows == 2
    x = chorale.codes().unsqueeze(0)
    first = torch.ones(1, 512, dtype=torch.bool)
    then = torch.arange(512).unsqueeze(0) >= 256
    total = log_prob(MODEL, x[:, :512], Question(~first, first)).value
    total = total + log_prob(MODEL, x[:, 256:], Question(~then, then)).value
    assert scored.total == pytest.approx(float(total), rel=1e-5)


def test_absent_voices_are_neither_seen_nor_scored() -> None:
    chorale = random_piece(np.random.default_rng(4), 20)
    present = np.ones((4, 20), dtype=bool)
    present[2] = False
    scored = score_piece(MODEL, Piece(chorale, present))
    pitch = chorale.pitch.copy()
    pitch[2] = 55
    other = score_piece(MODEL, Piece(Chorale(pitch, chorale.onset, chorale.bar, chorale.pickup), present))
    assert scored.total == other.total
    assert (scored.log_prob[2] == 0).all()
    assert scored.cells == 60
