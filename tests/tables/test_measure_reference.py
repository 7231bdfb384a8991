"""Which rows a model keeps, and who chooses with them."""

import torch

from anyfill.rows import Rows
from anyfill.tables.calibrated import Calibrated
from anyfill.tables.choosers import Informed
from anyfill.tables.measure import calibrated_chooser, curve_chooser, kept_rows
from anyfill.tables.quantiles import Quantiles


def rows(holes):
    x = torch.arange(len(holes) * 3.0).view(-1, 3)
    present = torch.ones_like(x, dtype=torch.bool)
    for i, count in enumerate(holes):
        present[i, :count] = False
    return Rows(x, present)


def test_rows_with_the_fewest_holes_are_kept_and_chance_decides_among_equals():
    data = rows([0, 1, 2] * 20)
    kept = kept_rows(data, 30, seed=0)
    assert (~kept.present).sum(1).sort().values.tolist() == [0] * 20 + [1] * 10
    again, other = kept_rows(data, 30, seed=0), kept_rows(data, 30, seed=1)
    assert torch.equal(kept.x, again.x)
    assert set(kept.x[:, 0].tolist()) != set(other.x[:, 0].tolist())
    assert not torch.equal(kept.x[:, 0], kept.x[:, 0].sort().values), "their order says nothing"
    assert len(set(kept.x[:, 0].tolist())) == 30


def test_nothing_is_kept_of_nothing_and_all_of_little():
    assert kept_rows(rows([0, 1]), 0, seed=0) is None
    assert sorted(kept_rows(rows([0, 1]), 300, seed=0).x[:, 0].tolist()) == [0.0, 3.0]


def test_a_fifth_as_many_points_as_samples_are_looked_at():
    chooser = calibrated_chooser(rows([0] * 5), samples=100, costs=(1.0, 2.0, 3.0), min_gain=0.1)
    assert chooser.base == Quantiles(20, costs=(1.0, 2.0, 3.0))
    assert (chooser.costs, chooser.min_gain) == ((1.0, 2.0, 3.0), 0.1)
    assert calibrated_chooser(rows([0] * 5), samples=2).base == Quantiles(2)


def test_a_curve_is_calibrated_if_the_model_keeps_rows(fitted):
    model = fitted[0]
    chooser = curve_chooser(model, 10)
    assert isinstance(chooser, Calibrated)
    assert chooser.reference is model.reference_
    model = type(model).__new__(type(model))
    model.__dict__ |= fitted[0].__dict__ | {"reference_": None}
    assert curve_chooser(model, 10) == Informed(10)
