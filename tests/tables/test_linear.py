"""Means drawn towards a plain joint Gaussian of own units."""

import numpy as np
import pandas as pd
import pytest
import torch

from anyfill import TableModel
from anyfill.likelihoods import Mixed, Pooled, SpikedMixture
from anyfill.rows import Rows
from anyfill.tables.cross_fit import Unseen
from anyfill.tables.frames import Frame
from anyfill.tables.gaussian_em import gaussian_em_model
from anyfill.tables.linear import MAX_WEIGHT, PRIOR_CELLS, Linear, _weights, fit_linear, straightened
from anyfill.tables.table import Table


@pytest.fixture(scope="module")
def data():
    """b = 3 a + noise, a is lognormal: straight in own units, bent in the logarithms that the table keeps."""
    rng = np.random.default_rng(0)
    a = np.exp(rng.normal(size=300))
    frame = pd.DataFrame({"a": a, "b": 3 * a + 0.3 * rng.random(300), "c": np.where(a > 1, "x", "y")})
    table = Table.of(Frame.of(frame))
    assert [table.number(j).warp for j in (0, 1)] == ["log", "log"]
    return frame, table, table.encode(Frame.of(frame))


def straight(table, rows, weight):
    location, scale = np.zeros(3), np.ones(3)
    for j in (0, 1):
        own = table.number(j).decode(rows.x[:, j].double().numpy(), rounded=False)
        location[j], scale[j] = own.mean(), own.std()
    plain = straightened(table, rows.x, rows.present, location, scale)
    return Linear(gaussian_em_model(Rows(plain, rows.present), table.sizes), location, scale, np.array(weight))


def test_with_all_the_weight_a_mean_is_the_regression_in_own_units(data):
    frame, table, rows = data
    linear = straight(table, rows, [0.0, 1.0, 0.0])
    known = torch.ones_like(rows.present)
    known[:, 1] = False
    z = linear.blend(table, rows.x, known, ~known, torch.zeros_like(rows.x))[:, 1]
    found = table.number(1).decode(z.double().numpy(), rounded=False)
    design = np.column_stack([np.ones(300), frame["a"], frame["c"] == "x"])
    line = design @ np.linalg.lstsq(design, frame["b"], rcond=None)[0]
    # EM has a ridge of D^2 / rows = 0.05 rows
    np.testing.assert_allclose(found, np.clip(line, table.number(1).low, None), atol=0.02 * frame["b"].std())


def test_half_the_weight_is_half_way_in_own_units_and_no_weight_changes_nothing(data):
    _, table, rows = data
    known = torch.zeros_like(rows.present)
    means = torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
    ends = [straight(table, rows, [w, 0.0, 0.0]).blend(table, rows.x, known, ~known, means) for w in (0.5, 1.0)]
    own = [table.number(0).decode(z[:, 0].double().numpy(), rounded=False) for z in (means, *ends)]
    np.testing.assert_allclose(own[1], (own[0] + own[2]) / 2, rtol=1e-5)
    assert all(torch.equal(end[:, 1:], means[:, 1:]) for end in ends)


def test_it_comes_back_from_text_to_the_last_bit(data):
    _, table, rows = data
    linear = straight(table, rows, [0.3, 0.6, 0.0])
    again = Linear.from_json(table, linear.to_json())
    known = torch.rand(300, 3, generator=torch.Generator().manual_seed(1)) < 0.5
    means = torch.zeros(300, 3)
    assert torch.equal(
        *(one.blend(table, rows.x, known, ~known & (rows.x == rows.x), means) for one in (linear, again))
    )


def test_the_weight_is_the_least_squares_one_drawn_towards_that_of_all_columns():
    rng = np.random.default_rng(3)
    own, other = rng.normal(size=(2, 4000))
    variable = np.repeat([0, 2], 2000)
    truth = own + np.where(variable == 0, 0.5, 0.1) * (other - own) + 0.1 * rng.normal(size=4000)
    found = _weights(own, other, truth, variable, [0, 2], 3)
    assert found[1] == 0.0
    apart, error = other - own, truth - own
    common = (apart * error).sum() / (apart**2).sum()
    for j in (0, 2):
        cells = variable == j
        alone = (apart * error)[cells].sum() / (apart**2)[cells].sum()
        assert found[j] == pytest.approx((2000 * alone + PRIOR_CELLS * common) / (2000 + PRIOR_CELLS))
    assert _weights(own, own, truth, variable, [0, 2], 3).tolist() == [0.0, 0.0, 0.0]
    assert (_weights(own, other, other, variable, [0, 2], 3)[[0, 2]] == MAX_WEIGHT).all()


def test_where_a_model_knows_nothing_the_line_gets_the_most_and_a_wide_or_small_table_gets_none(data):
    _, table, rows = data
    folds = torch.randint(6, rows.x.shape, generator=torch.Generator().manual_seed(0))
    fold = torch.arange(3).repeat_interleave(300)
    x, held = rows.x.repeat(3, 1), folds.repeat(3, 1) == fold.unsqueeze(1)
    row, variable = (held & torch.tensor([True, True, False])).nonzero().unbind(1)
    likelihood = Pooled(Mixed((SpikedMixture(1),) * 3), 1, weighted=True)
    params = torch.zeros(len(row), likelihood.width)
    unseen = Unseen(folds, x, ~held, fold, row, variable, params, likelihood)
    linear = fit_linear(table, rows, unseen)
    assert linear is not None
    assert linear.weight[:2].min() > 0.6
    assert linear.weight[2] == 0.0
    few = unseen._replace(row=row[:100], variable=variable[:100], params=params[:100])
    assert fit_linear(table, rows, few) is None


@pytest.mark.slow
def test_a_table_of_straight_relations_and_skewed_columns_is_filled_better_with_it():
    rng = np.random.default_rng(1)
    base = np.exp(rng.normal(size=(250, 2)))
    whole = pd.DataFrame(base @ rng.random((2, 6)) + 0.05 * rng.random((250, 6)), columns=list("abcdef"))
    holes = rng.random(whole.shape) < 0.3
    model = TableModel(random_state=0, steps=100).fit(whole.mask(holes))
    assert model.linear_ is not None
    with_line, holed = model.transform(whole.mask(holes)), whole.mask(holes)
    model.linear_ = None
    errors = [
        float((((one - whole) / whole.std()) ** 2).to_numpy()[holes].mean())
        for one in (with_line, model.transform(holed))
    ]
    assert errors[0] < errors[1]
