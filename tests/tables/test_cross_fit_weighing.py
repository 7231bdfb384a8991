"""Weights and factors of an ensemble by the cells that its members left out."""

import torch

from anyfill.likelihoods import Categorical, Mixed, SpikedMixture
from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.tables.cross_fit import SHARPENINGS, Unseen
from anyfill.tables.ensemble import EnsembleOptions, ensemble_steps

LIKELIHOOD = Mixed((SpikedMixture(2), SpikedMixture(2), Categorical(3)))
QUICK = EnsembleOptions(steps=20, members=4, width=8, bins=2, rows_per_member=16, judge_every=20)


def table() -> Rows:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(90, generator=generator)
    values = torch.stack([x, x + 0.2 * torch.randn(90, generator=generator), (x > 0).float() + (x > 1)], 1)
    return Rows.from_values(torch.where(torch.rand(values.shape, generator=generator) < 0.2, torch.nan, values))


def test_what_is_said_of_unseen_cells_is_said_of_present_cells_that_are_not_told_each_once() -> None:
    rows = table()
    *_, unseen, model = ensemble_steps(rows, LIKELIHOOD, QUICK)
    assert isinstance(unseen, Unseen)
    assert isinstance(model, Model)
    assert not unseen.given[unseen.row, unseen.variable].any()
    folds = unseen.fold.unique()
    held = torch.isin(unseen.folds, folds) & rows.present
    assert len(unseen.row) == int(held.sum())
    counts = torch.bincount(unseen.variable, minlength=3)
    assert counts.tolist() == held.sum(0).tolist()
    log_prob = unseen.likelihood.at(unseen.params.unsqueeze(1), unseen.variable.unsqueeze(1)).log_prob(
        unseen.x[unseen.row, unseen.variable].unsqueeze(1)
    )
    assert bool(log_prob.isfinite().all())


def test_the_factor_on_logits_scales_them_and_nothing_else() -> None:
    *_, model = ensemble_steps(table(), LIKELIHOOD, QUICK)
    assert isinstance(model, Model)
    network = model.network
    chosen = network.get_buffer("sharpen").exp()
    assert bool(torch.isclose(chosen, torch.tensor(SHARPENINGS)).any(1).all())
    x, known = torch.zeros(1, 3), torch.zeros(1, 3, dtype=torch.bool)
    pool, widen = network.get_buffer("pool").clone(), network.get_buffer("widen").exp().squeeze(1)
    answers = []
    for factor in (1.0, 2.0):
        network.set_weights(pool, widen, torch.full((3,), factor))
        with torch.no_grad():
            answers.append(network(x, known)[0, :, : LIKELIHOOD.width])  # of the first member
    plain, sharp = answers
    torch.testing.assert_close(sharp[2, :3], 2 * plain[2, :3])
    torch.testing.assert_close(sharp[:2, :2], 2 * plain[:2, :2])
    torch.testing.assert_close(sharp[:2, 2:6], plain[:2, 2:6])
