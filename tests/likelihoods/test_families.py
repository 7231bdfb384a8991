"""Columns that are answered together answer as each would alone."""

import math

import pytest
import torch
from torch import Generator, Tensor

from anyfill.likelihoods import (
    Bernoulli,
    Categorical,
    DiscreteMarginals,
    FiniteMarginals,
    Gaussian,
    GaussianMixture,
    GaussianMixtureMarginals,
    GridMixtureMarginals,
    Likelihood,
    Mixed,
    SpikedMixture,
)
from anyfill.likelihoods.mixed import code_sizes, families_of

# Steps, spikes, floors and sizes all differ; 0 and 1 are values of every column.
COLUMNS: tuple[Likelihood, ...] = (
    SpikedMixture(2, spikes=(0.0, 1.0, 2.0), step=0.5),
    Categorical(4),
    SpikedMixture(2, spikes=(0.0,), spike_scale=0.05),
    SpikedMixture(2, step=0.25, min_scale=0.2),
    Gaussian(),
    Categorical(2),
    SpikedMixture(2, min_scale=0.1),
    SpikedMixture(3, spikes=(1.0,), step=1.0),
    SpikedMixture(2, spikes=(1.0, 0.0), spike_scale=0.02, step=1.0, offset=3.0),
    Bernoulli(),
    SpikedMixture(2, spikes=(0.5, 0.1, -3.0, 4.0)),
    Categorical(3),
    GaussianMixture(2),
)
MIXED = Mixed(COLUMNS)


def some(generator: Generator, rows: int = 6) -> tuple[Tensor, Tensor]:
    params = torch.randn(rows, len(COLUMNS), MIXED.width, generator=generator)
    return params, torch.randint(2, (rows, len(COLUMNS)), generator=generator).float()


def one_by_one(params: Tensor, x: Tensor) -> Tensor:
    """log_prob, a column at a time."""
    pieces = enumerate(COLUMNS)
    return torch.cat([c(params[:, j : j + 1, : c.width]).log_prob(x[:, j : j + 1]) for j, c in pieces], -1)


def test_there_is_one_part_for_each_family(generator: Generator) -> None:
    parts = MIXED(some(generator)[0]).parts
    kinds = [GridMixtureMarginals, FiniteMarginals, GaussianMixtureMarginals, type(Gaussian()(torch.zeros(2)))]
    assert [type(part) for part in parts[:4]] == kinds
    assert len(parts) == 7  # + SpikedMixture(3), Bernoulli, GaussianMixture
    members = [family.members.tolist() for family in families_of(COLUMNS, torch.device("cpu")).each]
    assert members == [[0, 3, 8], [1, 5, 11], [2, 6, 10], [4], [7], [9], [12]]


def test_what_is_padded_at_most_quadruples() -> None:
    columns: list[Likelihood] = [Categorical(size) for size in (1, 4, 5, 16, 17, 1000, 2)]
    columns += [SpikedMixture(1, spikes=(0.0,) * count) for count in (0, 4, 5, 32)]
    each = families_of(tuple(columns), torch.device("cpu")).each
    assert [family.members.tolist() for family in each] == [[0, 1, 6], [2, 3], [4], [5], [7, 8], [9], [10]]
    for family in each:
        assert family.width <= max(7, 4 * min(columns[j].width for j in family.members))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_probs_and_gradients_are_those_of_each_column_alone(generator: Generator, dtype: torch.dtype) -> None:
    params, x = (part.to(dtype) for part in some(generator, rows=40))
    params.requires_grad_()
    together, apart = MIXED(params).log_prob(x), one_by_one(params, x)
    assert together.isfinite().any(0).all()
    torch.testing.assert_close(together, apart, rtol=1e-6, atol=1e-6)
    weight = torch.randn(together.shape, generator=generator)
    slopes = [
        torch.autograd.grad(torch.where(part.isfinite(), part * weight, 0.0).sum(), params)[0]
        for part in (together, apart)
    ]
    torch.testing.assert_close(*slopes, rtol=2e-6, atol=2e-6)


def test_every_other_answer_is_the_columns_own(generator: Generator) -> None:
    params, _ = some(generator)
    whole = MIXED(params)
    for j, column in enumerate(COLUMNS):
        alone = column(params[:, j : j + 1, : column.width])
        assert type(whole.column(j)) is type(alone)
        for mine, right in (
            (whole.mode(), alone.mode()),
            (whole.mean(), alone.mean()),
            (whole.quantile(0.3), alone.quantile(0.3)),
            (whole.quantile(0.9), alone.quantile(0.9)),
            (whole.entropy(), alone.entropy()),
        ):
            torch.testing.assert_close(mine[:, j : j + 1], right.float(), rtol=1e-5, atol=1e-5)


def test_gradients_of_means_and_entropies_are_finite_and_touch_no_spare_parameter(generator: Generator) -> None:
    params, x = some(generator)
    spoiled = params.clone()
    for j, column in enumerate(COLUMNS):
        spoiled[:, j, column.width :] = math.nan
    spoiled.requires_grad_()
    whole = MIXED(spoiled)
    assert whole.log_prob(x).equal(MIXED(params).log_prob(x))
    log_prob = whole.log_prob(x)
    total = torch.where(log_prob.isfinite(), log_prob, 0.0) + whole.mean() + whole.entropy()
    (gradient,) = torch.autograd.grad(total.sum(), spoiled)
    assert gradient.isfinite().all()
    for j, column in enumerate(COLUMNS):
        assert gradient[:, j, column.width :].eq(0).all()


def test_a_code_that_only_another_column_has_is_impossible_and_passes_no_gradient(generator: Generator) -> None:
    params, x = some(generator)
    params.requires_grad_()
    x[:, 5] = 3.0  # a code of column 1, not of column 5
    x[0, 0] = math.nan
    log_prob = MIXED(params).log_prob(x)
    assert log_prob[:, 5].eq(-math.inf).all()
    assert log_prob.isnan().sum() == 1
    (gradient,) = torch.autograd.grad(torch.where(log_prob.isfinite(), log_prob, 0.0).sum(), params)
    assert gradient.isfinite().all()
    assert gradient[:, 5].eq(0).all()
    assert gradient[0, 0].eq(0).all()
    assert gradient[1:, 0].abs().sum() > 0


def test_draws_stay_in_each_columns_own_codes_and_grid(generator: Generator) -> None:
    params, _ = some(generator, rows=1)
    draws = MIXED(params.expand(4000, -1, -1)).sample(generator=generator, temperature=3.0)
    for j, column in enumerate(COLUMNS):
        if isinstance(column, Categorical):
            assert draws[:, j].unique().tolist() == list(range(column.size))
        if isinstance(column, SpikedMixture) and column.step:
            cell = (draws[:, j].double() - column.offset) / column.step
            torch.testing.assert_close(cell, cell.round(), rtol=0, atol=1e-5)


def test_asking_each_row_for_its_own_variables_gives_the_same_answers_and_gradients(generator: Generator) -> None:
    params, x = some(generator, rows=60)
    params.requires_grad_()
    variable = torch.randint(len(COLUMNS), (60, 4), generator=generator)
    picked = params.gather(1, variable.unsqueeze(-1).expand(-1, -1, MIXED.width))
    some_of, whole = MIXED.at(picked, variable), MIXED(params)
    mine, right = some_of.log_prob(x.gather(1, variable)), whole.log_prob(x).gather(1, variable)
    torch.testing.assert_close(mine, right)
    slopes = [
        torch.autograd.grad(torch.where(part.isfinite(), part, 0.0).sum(), params, retain_graph=True)[0]
        for part in (mine, right)
    ]
    torch.testing.assert_close(*slopes)
    for answer in ("mode", "mean", "entropy"):
        torch.testing.assert_close(getattr(some_of, answer)(), getattr(whole, answer)().gather(1, variable))
    torch.testing.assert_close(some_of.quantile(0.7), whole.quantile(0.7).gather(1, variable))
    torch.testing.assert_close(some_of.column(-1).mean(), some_of.mean()[:, 3:])


def test_only_codes_have_sizes_and_only_they_are_discrete(generator: Generator) -> None:
    assert code_sizes(MIXED, len(COLUMNS)).tolist() == [0, 4, 0, 0, 0, 2, 0, 0, 0, 2, 0, 3, 0]
    assert [isinstance(part, DiscreteMarginals) for part in MIXED(some(generator)[0]).parts].count(True) == 2


def test_a_family_first_used_in_inference_mode_still_trains() -> None:
    spiked = (SpikedMixture(1, spikes=(0.123,)), SpikedMixture(1), SpikedMixture(4, step=0.7))
    columns = (*spiked, Categorical(2), Categorical(3))  # a combination no other test has made
    with torch.inference_mode():
        Mixed(columns)(torch.zeros(2, 5, 12)).log_prob(torch.zeros(2, 5))
    params = torch.zeros(2, 5, 12, requires_grad=True)
    Mixed(columns)(params).log_prob(torch.zeros(2, 5)).sum().backward()
    assert params.grad is not None
    assert params.grad.ne(0).any(-1).all()
