"""Weights of a blend: what makes left-out cells most probable, and what errs least."""

import numpy as np
import pytest
import torch

from anyfill.rows import Rows
from anyfill.tables.blend import SHARES, known_share
from anyfill.tables.growing import noise_shape
from anyfill.tables.stacking import Judged, density_weights, judged_questions, mean_weights
from anyfill.tables.trees import GROUPS


def judged(cells, *, has_trees=True, share=SHARES - 1):
    """Cells of one column, of one joint and the trees."""
    count = torch.zeros(cells, dtype=torch.long)
    return Judged(
        x=torch.zeros(cells),
        row=count,
        variable=count,
        share=count + share,
        fold=count,
        place=count,
        params=torch.zeros(cells, 2 + GROUPS, 3),
        inner=torch.zeros(cells, GROUPS),
        has_trees=torch.full((cells, 2), has_trees),
    )


def test_weights_of_distributions_tend_to_the_mixture_that_drew_the_cells():
    rng = np.random.default_rng(0)
    of_first = rng.random(4000) < 0.7
    x = np.where(of_first, rng.normal(size=4000), 3 + rng.normal(size=4000))
    logs = np.stack([-0.5 * x**2, -0.5 * (x - 3) ** 2, -0.5 * (x + 8) ** 2]) - 0.5 * np.log(2 * np.pi)
    weights = density_weights(torch.from_numpy(logs), judged(4000), [0])
    assert weights.shape == (SHARES, 1, 3)
    assert weights[-1, 0].tolist() == pytest.approx([0.7, 0.3, 0.0], abs=0.03)
    torch.testing.assert_close(weights.sum(2), torch.ones(SHARES, 1, dtype=torch.float64))


def test_weights_of_means_are_those_of_least_squares_on_the_simplex():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=5000)
    means = truth + rng.normal(size=(3, 5000)) * np.array([[0.5], [1.0], [2.0]])
    weights = mean_weights(means, truth, judged(5000), [0])[-1, 0].numpy()
    precision = np.array([4.0, 1.0, 0.25])
    np.testing.assert_allclose(weights, precision / precision.sum(), atol=0.05)


def test_trees_that_are_not_there_have_no_weight():
    logs = torch.zeros(3, 50, dtype=torch.float64)
    logs[1:] = -torch.inf
    for weights in (
        density_weights(logs, judged(50, has_trees=False), [0]),
        mean_weights(np.zeros((3, 50)), np.ones(50), judged(50, has_trees=False), [0]),
    ):
        assert weights[:, 0, 1:].abs().max() == 0.0
        assert weights[:, 0, 0].tolist() == [1.0] * SHARES


def test_a_share_that_was_never_asked_takes_the_weights_of_its_column():
    logs = torch.stack([torch.zeros(500), torch.full((500,), -3.0), torch.full((500,), -3.0)]).double()
    weights = density_weights(logs, judged(500, share=2), [0])
    assert weights[0, 0, 0] > 0.9


def test_how_much_is_known_counts_the_other_columns():
    known = torch.tensor([[False] * 4, [True, False, False, False], [True, True, False, False], [True] * 3 + [False]])
    assert known_share(known).tolist() == [0, 1, 2, 2]
    assert known_share(torch.zeros(2, 1, dtype=torch.bool)).tolist() == [0, 0]


def test_questions_ask_the_cells_of_their_fold_and_give_none_of_them():
    rows = Rows(torch.randn(30, 5), torch.rand(30, 5) < 0.8)
    folds = torch.randint(6, (30, 5), generator=torch.Generator().manual_seed(0))
    index, known, asked = judged_questions(rows, folds, 2, 3, 20, generator=torch.Generator().manual_seed(1))
    assert len(index) == 60
    assert not (known & (folds[index] == 2)).any()
    assert (asked == rows.present[index] & (folds[index] == 2)).all()
    assert (known[:20] == rows.present[index[:20]] & (folds[index[:20]] != 2)).all()
    assert (known <= rows.present[index]).all()


def test_the_shape_of_noise_has_its_variance_and_its_tails():
    rng = np.random.default_rng(2)
    narrow = rng.random(20_000) < 0.9
    z = np.where(narrow, 0.5, 3.0) * rng.normal(size=20_000)
    noise = noise_shape(z, 3)
    assert sum(weight for weight, _ in noise) == pytest.approx(1.0)
    assert sum(weight * scale**2 for weight, scale in noise) == pytest.approx((z**2).mean(), rel=0.03)
    assert max(scale for _, scale in noise) == pytest.approx(3.0, rel=0.15)
