"""The default recipe for tables, end to end on small ones."""

import pytest
import torch

from anyfill.likelihoods import Categorical, Gaussian, Mixed, SpikedMixture
from anyfill.model import Model
from anyfill.questions.question import Factorization
from anyfill.rows import Rows
from anyfill.tables.ensemble import EnsembleOptions, ensemble_steps
from anyfill.training import StepReport, load_model, save_model

LIKELIHOOD = Mixed((SpikedMixture(2), SpikedMixture(2, spikes=(0.0,)), Categorical(2)))
QUICK = EnsembleOptions(steps=60, members=4, width=16, bins=4, rows_per_member=32, judge_every=20)


def table(rows: int, seed: int = 0) -> tuple[torch.Tensor, Rows]:
    """y = sin 2x where the code is 1, exactly 0 where it is 0; a fifth of all cells is missing."""
    generator = torch.Generator().manual_seed(seed)
    code = (torch.rand(rows, generator=generator) < 0.5).float()
    x = torch.randn(rows, generator=generator)
    y = code * (torch.sin(2 * x) + 0.1 * torch.randn(rows, generator=generator))
    whole = torch.stack([x, y, code], 1)
    holes = torch.rand(whole.shape, generator=generator) < 0.2
    return whole, Rows.from_values(torch.where(holes, torch.nan, whole))


def trained(options: EnsembleOptions, rows: Rows) -> tuple[list[StepReport], Model]:
    reports: list[StepReport] = []
    model: Model | None = None
    for one in ensemble_steps(rows, LIKELIHOOD, options):
        if isinstance(one, Model):
            model = one
        elif isinstance(one, StepReport):
            reports.append(one)
    assert model is not None
    return reports, model


def test_it_learns_what_a_gaussian_cannot() -> None:
    whole, rows = table(400)
    _, model = trained(EnsembleOptions(steps=250, members=4, width=32, bins=8, judge_every=50), rows)
    hole = ~rows.present[:, 1] & rows.present[:, 0] & rows.present[:, 2]
    with torch.no_grad():
        mean = model.marginals(rows.x, rows.present).mean()
    error, spread = (mean - whole)[hole, 1].square().mean().sqrt(), whole[hole, 1].std()
    line = torch.linalg.lstsq(whole[:, [0, 2]], whole[:, 1:2]).solution
    straight = (whole[:, [0, 2]] @ line - whole[:, 1:2])[hole].square().mean().sqrt()
    assert float(error) < 0.75 * float(straight) < 0.75 * float(spread)
    zero = hole & (whole[:, 2] == 0)
    assert float(mean[zero, 1].abs().max()) < 0.3


def test_the_same_seed_gives_the_same_model_bit_for_bit_and_another_seed_another() -> None:
    _, rows = table(120)
    first, second = (trained(QUICK, rows)[1].state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = trained(EnsembleOptions(steps=60, members=4, width=16, bins=4, rows_per_member=32, seed=1), rows)[1]
    assert any(not torch.equal(first[name], value) for name, value in other.state_dict().items())


def test_it_may_be_asked_anything_and_survives_a_folder(tmp_path) -> None:
    _, rows = table(120)
    reports, model = trained(QUICK, rows)
    assert Factorization.ANY_ORDER in model.factorizations
    assert any(report.validation_loss is not None for report in reports)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    with torch.no_grad():
        one, other = (m.marginals(rows.x, rows.present).mean() for m in (model, again))
    assert torch.equal(one, other)


def test_what_is_missing_has_no_part_in_the_model() -> None:
    _, rows = table(120)
    spoiled = Rows(torch.where(rows.present, rows.x, 50.0), rows.present)
    first, second = (trained(QUICK, data)[1].state_dict() for data in (rows, spoiled))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("rows", [1, 3, 30])
def test_tiny_tables_and_columns_without_values_still_give_a_model(rows: int) -> None:
    _, data = table(rows)
    data = Rows(data.x, data.present & torch.tensor([True, False, True]))
    _, model = trained(QUICK, data)
    with torch.no_grad():
        marginals = model.marginals(data.x, data.present)
    assert bool(marginals.mean().isfinite().all())


def test_a_wide_table_starts_from_factors() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(150, 1, generator=generator)
    numbers = z + 0.3 * torch.randn(150, 70, generator=generator)
    code = (z > 0).float()
    whole = torch.cat([numbers, code], 1)
    known = torch.rand(whole.shape, generator=generator) < 0.8
    rows = Rows.from_values(torch.where(known, whole, torch.nan))
    likelihood = Mixed((*(SpikedMixture(1),) * 70, Categorical(2)))
    options = EnsembleOptions(steps=1, members=1, width=8, bins=0, rows_per_member=16)
    *_, model = ensemble_steps(rows, likelihood, options)
    assert isinstance(model, Model)
    assert model.network.rank > 0
    with torch.no_grad():
        mean = model.marginals(rows.x, rows.present).mean()
    # 70 readings of z: what is left is the reading's own noise, 0.3, where the mean alone would leave 1.04.
    assert float((mean - whole)[~known].square().mean().sqrt()) < 0.4


def test_other_likelihoods_are_refused() -> None:
    _, rows = table(10)
    with pytest.raises(ValueError, match="SpikedMixture or Categorical"):
        next(iter(ensemble_steps(rows, Mixed((Gaussian(),) * 3), QUICK)))
