import math
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from anyfill import TableModel
from anyfill.tables.answers import open_cells
from anyfill.tables.cells import mean_of_part, own_mean, read_cells
from anyfill.tables.numbers import Number


def means(model, table, x, known, asked):
    return read_cells(model, table, x, known, asked, mean_of_part, is_mean=True)[0]


@pytest.mark.parametrize("warp", ["log", "asinh"])
def test_the_mean_of_a_warped_column_is_that_of_its_draws(warp):
    number = Number("x", 0.3, 0.8, warp, center=-0.5, spread=2.0, low=-0.2 if warp == "log" else -6.0, high=9.0)
    log_weights = torch.tensor([0.3, 0.6, 0.1]).log()
    centers, scales = torch.tensor([-1.0, 0.5, 4.0]), torch.tensor([0.5, 1.0, 2.0])
    rng = np.random.default_rng(0)
    which = rng.choice(3, 400_000, p=[0.3, 0.6, 0.1])
    z = centers.numpy()[which] + scales.numpy()[which] * rng.normal(size=400_000)
    drawn = number.decode(z, rounded=False)
    found = float(own_mean(number, log_weights, centers, scales))
    assert abs(found - drawn.mean()) < 4 * drawn.std() / math.sqrt(400_000)
    assert abs(float(number.decode(np.array(float((log_weights.exp() * centers).sum()))) - found)) > 0.1, "not g(E z)"


def test_the_mean_of_a_warped_column_stays_finite_and_within_bounds_far_out():
    number = Number("x", 0.0, 1.0, "log", low=0.0, high=100.0)
    centers = torch.tensor([[-800.0], [0.0], [800.0], [3.0]], dtype=torch.float64)
    scales = torch.tensor([[1.0], [500.0], [1.0], [1e-6]], dtype=torch.float64)
    found = own_mean(number, torch.zeros(4, 1, dtype=torch.float64), centers, scales)
    assert found.tolist() == pytest.approx([0.0, 50.0, 100.0, math.exp(3)], rel=2e-2)


def people(rows):
    """Numbers with and without a warp and with a spike, whole numbers, categories of two sizes; a fifth is missing."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(rows, 2))
    frame = pd.DataFrame(
        {
            "plain": z[:, 0] + 0.3 * rng.normal(size=rows),
            "log": 5.0 + np.exp(2 * z[:, 0] + 0.3 * rng.normal(size=rows)),
            "spike": np.where(z[:, 1] > 0, 0.0, z[:, 1]),
            "count": rng.poisson(np.exp(1 + z[:, 1] / 2)).astype(float),
            "kind": np.array(["a", "b", "c"])[(z[:, 0] > 0).astype(int) + (z[:, 1] > 1)],
            "flag": np.array(["no", "yes"])[(z[:, 1] > 0).astype(int)],
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.2)


@pytest.fixture(scope="module", params=["auto", "fast", "gaussian", "mlp-ardm", "one-pass", "vae"])
def fitted(request):
    frame = people(160)
    return TableModel(recipe=request.param, steps=None if request.param == "gaussian" else 20, random_state=0).fit(
        frame
    ), frame


def asked_of(model, frame):
    x, known = model._filler.given(model._rows(frame)[1])
    return x, known, open_cells(model.table_, known)


def test_means_are_those_of_the_marginals_and_categories_their_modes(fitted):
    model, frame = fitted
    x, known, asked = asked_of(model, frame)
    found = means(model.model_, model.table_, x, known, asked)
    marginals = model.marginals(frame)
    mean, mode = marginals.mean(), marginals.mode()
    rows = 0
    for j, column in enumerate(model.table_.columns):
        number = model.table_.number(j)
        if number is not None and number.warp != "none":
            continue
        here = asked[:, j]
        rows += int(here.sum())
        wanted = (mode if column.size else mean)[here, j].float()
        torch.testing.assert_close(found[here, j], wanted, atol=2e-5, rtol=2e-5)
    assert rows > 50
    assert bool((found[~asked] == 0).all())


def test_means_of_warped_columns_are_averages_in_own_units(fitted):
    model, frame = fitted
    warped = [j for j in range(6) if (number := model.table_.number(j)) is not None and number.warp != "none"]
    assert warped
    x, known, asked = asked_of(model, frame)
    rows = asked[:, warped[0]].nonzero()[:3, 0]
    found = means(model.model_, model.table_, x[rows], known[rows], asked[rows])[:, warped[0]]
    marginals = model.marginals(frame.iloc[rows.tolist()])
    levels = [(i + 0.5) / 1000 for i in range(1000)]  # the logarithm has a long tail
    z = torch.stack([marginals.quantile(level)[:, warped[0]] for level in levels])
    number = model.table_.number(warped[0])
    own = number.decode(z.double().numpy(), rounded=False).mean(0)
    spread = number.decode(z.double().numpy(), rounded=False).std(0)
    difference = number.decode(found.double().numpy(), rounded=False) - own
    assert (np.abs(difference) < 0.1 * spread + 1e-3 * np.abs(own)).all()


@pytest.mark.parametrize("recipe", ["auto", "fast"])
def test_a_mean_is_bit_for_bit_alike_in_any_company(recipe):
    frame = people(300)
    model = TableModel(recipe=recipe, steps=20, random_state=0).fit(frame)
    x, known, asked = asked_of(model, frame)
    whole = means(model.model_, model.table_, x, known, asked)
    for rows in ([7], [299, 0, 5], list(range(299, -1, -1)), list(range(40, 173))):
        found = means(model.model_, model.table_, x[rows], known[rows], asked[rows])
        assert torch.equal(found, whole[rows])
        # Fewer cells asked, so other neighbours for those that are left.
        fewer = asked[rows] & (torch.rand(len(rows), 6, generator=torch.Generator().manual_seed(0)) < 0.7)
        found = means(model.model_, model.table_, x[rows], known[rows], fewer)
        assert torch.equal(found[fewer], whole[rows][fewer])


def test_a_bound_where_the_logarithm_ends_makes_no_warning():
    number = Number("x", 0.0, 1.0, "log", center=5.0, spread=2.0, low=5.0, high=math.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = own_mean(number, torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1, 1))
    assert float(found) == pytest.approx(5.0 + 2.0 * math.exp(0.5), rel=1e-6)
