"""MAC on images: masks of single sub-pixels, by the paper's loss and by its code's."""

import pytest
import torch

from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.questions import Question, Spaced
from anyfill.recipes import mac
from anyfill.rows import Rows

SHAPE, LEVELS, N = (2, 2, 3), 4, 12


@pytest.fixture
def model() -> Model:
    """Random weights everywhere, so that every input matters."""
    made = mac.image_model(SHAPE, LEVELS, order=Spaced(5), width=16, blocks=1)
    torch.manual_seed(1)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made.eval()


def test_masks_differ_from_channel_to_channel_and_one_channel_is_heard(model, generator) -> None:
    rank = mac.objective(N, Spaced(5)).sample_rank(400, generator=generator)
    known = (rank < 0).view(400, 4, 3)
    assert 0.2 < float((known.any(2) & ~known.all(2)).float().mean()) < 0.9  # pixels known in part
    x = torch.randint(LEVELS, (1, N), generator=generator)
    green = torch.zeros(1, N, dtype=torch.bool).index_fill(1, torch.tensor([4]), True)
    other = x.index_fill(1, torch.tensor([4]), int(x[0, 4] + 1) % LEVELS)
    with torch.no_grad():
        moved = (model.params(x, green) - model.params(other, green)).abs().amax(-1)[0]
    assert bool((moved[[3, 5]] > 1e-4).all())  # red and blue of its own pixel


def test_the_papers_loss_is_the_next_sub_pixel_and_the_codes_the_mean_of_all_unknown(model, generator) -> None:
    rows = Rows.from_values(torch.randint(LEVELS, (64, N), generator=generator))
    for objective, count in ((mac.objective(N, Spaced(5)), 1), (mac.objective_rest(N, Spaced(5)), None)):
        rank = objective.sample_rank(64, generator=generator)
        nats = -model.marginals(rows.x, rank < 0).log_prob(rows.x)
        asked = rank == 0
        assert bool((asked.sum(1) == (count or (rank >= 0).sum(1))).all())
        expected = torch.where(asked, nats, 0.0).sum(1) / asked.sum(1)
        torch.testing.assert_close(objective.loss(model, rows, rank), expected)
    # What comes next on an edge is what follows all of it in w: its terms, one after another, are the exact chain.
    model.factorizations = mac.objective(N, Spaced(5)).factorizations
    everything = Question.of(N, batch=2)
    found = log_prob(model, rows.x[:2], everything)
    known, total = torch.zeros(2, N, dtype=torch.bool), torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for j in Spaced(5).priority(1, N)[0].argsort().tolist():
            total += model.marginals(rows.x[:2], known).log_prob(rows.x[:2])[:, j].double()
            known[:, j] = True
    assert found.kind == "exact"
    torch.testing.assert_close(found.value, total, atol=1e-5, rtol=0)
