"""Mixed columns answer exactly as each column alone would."""

import math
from dataclasses import dataclass, field

import pytest
import torch
from scipy import stats
from torch import Generator, Tensor

from anyfill.likelihoods import (
    Bernoulli,
    Categorical,
    DiscreteMarginals,
    EnergyMixture,
    FiniteMarginals,
    Gaussian,
    GaussianMarginals,
    GaussianMixture,
    Likelihood,
    Mixed,
    SpikedMixture,
    marginals_at,
)
from anyfill.likelihoods.mixed import code_sizes

FALSE_ALARM = 1e-6  # per statistical test, at a fixed seed

COLUMNS: tuple[Likelihood, ...] = (
    Gaussian(),
    Categorical(4),
    Bernoulli(),
    Categorical(4),
    GaussianMixture(3),
    Gaussian(min_scale=0.1),
    Gaussian(),
    Categorical(2),
)
MIXED = Mixed(COLUMNS)


def some(generator: Generator, rows: int = 5) -> tuple[Tensor, Tensor]:
    """Random parameters (B, N, P) and values (B, N) that every column can take."""
    params = torch.randn(rows, len(COLUMNS), MIXED.width, generator=generator)
    return params, torch.randint(2, (rows, len(COLUMNS)), generator=generator).float()


def test_width_is_the_widest_columns() -> None:
    assert MIXED.width == 9
    assert Mixed((Bernoulli(),)).width == 1


def test_every_answer_is_the_columns_own(generator: Generator) -> None:
    params, x = some(generator)
    whole = MIXED(params)
    for j, column in enumerate(COLUMNS):
        for alone in (column(params[:, j : j + 1, : column.width]), whole.column(j), whole.column(j - len(COLUMNS))):
            for mine, right in (
                (whole.log_prob(x), alone.log_prob(x[:, j : j + 1])),
                (whole.mode(), alone.mode()),
                (whole.mean(), alone.mean()),
                (whole.quantile(0.3), alone.quantile(0.3)),
                (whole.entropy(), alone.entropy()),
            ):
                assert mine.shape == x.shape
                assert mine.dtype == torch.float32
                torch.testing.assert_close(mine[:, j : j + 1], right.float())


def test_columns_are_of_their_own_kind_and_the_whole_is_not_discrete(generator: Generator) -> None:
    whole = MIXED(some(generator)[0])
    assert not isinstance(whole, DiscreteMarginals)
    assert isinstance(whole.column(1), FiniteMarginals)
    assert isinstance(whole.column(0), GaussianMarginals)
    with pytest.raises(IndexError):
        whole.column(len(COLUMNS))


def test_draws_of_every_column_follow_its_own_distribution(generator: Generator) -> None:
    params, _ = some(generator, rows=1)
    draws = MIXED(params.expand(20_000, -1, -1)).sample(generator=generator)
    assert draws.dtype == torch.float32
    for j in range(len(COLUMNS)):
        alone, mine = MIXED(params).column(j), draws[:, j]
        if isinstance(alone, FiniteMarginals):
            probs = alone.log_probs.double().exp().flatten()
            seen = torch.bincount(mine.long(), minlength=len(probs)).double()
            p_value = stats.chisquare(seen.numpy(), (probs / probs.sum() * len(mine)).numpy()).pvalue
        else:
            p_value = stats.kstest(alone.cdf(mine.unsqueeze(1)).flatten().numpy(), "uniform").pvalue  # type: ignore[attr-defined]
        assert p_value > FALSE_ALARM, j


def test_equal_columns_draw_independently(generator: Generator) -> None:
    draws = Mixed((Gaussian(), Bernoulli(), Gaussian()))(torch.zeros(1000, 3, 2)).sample(generator=generator)
    assert abs(torch.corrcoef(draws[:, [0, 2]].T)[0, 1]) < 0.2  # 6 standard errors


def test_temperature_zero_is_the_mode_and_equal_generators_give_equal_draws(generator: Generator) -> None:
    whole = MIXED(some(generator)[0])
    assert whole.sample(generator=generator, temperature=0.0).equal(whole.mode())
    first, second = (whole.sample(generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert first.equal(second)


def test_each_kind_of_column_is_read_once_however_many_columns_it_has() -> None:
    @dataclass(frozen=True)
    class Counting(Likelihood):
        width: int = 2
        calls: list[tuple[int, ...]] = field(default_factory=list, compare=False)

        def __call__(self, params: Tensor) -> GaussianMarginals:
            self.calls.append(tuple(params.shape))
            return Gaussian()(params)

    first = Counting()
    Mixed((first, Bernoulli(), Counting(), Counting()))(torch.zeros(5, 4, 2))
    assert first.calls == [(5, 3, 2)]


def test_no_value_in_one_column_leaves_the_others_and_all_gradients_alone(generator: Generator) -> None:
    params, x = some(generator)
    params.requires_grad_()
    clean = MIXED(params).log_prob(x)
    hidden = torch.zeros(x.shape, dtype=torch.bool)
    hidden[:, ::2] = True
    log_prob = MIXED(params).log_prob(torch.where(hidden, math.nan, x))
    assert log_prob[~hidden].equal(clean[~hidden])
    (gradient,) = torch.autograd.grad(torch.where(hidden, 0.0, log_prob).sum(), params)
    assert gradient.isfinite().all()
    assert gradient[hidden].eq(0).all()
    for j, column in enumerate(COLUMNS):
        assert gradient[:, j, column.width :].eq(0).all()
        assert hidden[0, j] or gradient[:, j, : column.width].ne(0).all()


def test_parameters_a_column_does_not_use_do_not_matter(generator: Generator) -> None:
    params, x = some(generator)
    spoiled = params.clone()
    for j, column in enumerate(COLUMNS):
        spoiled[:, j, column.width :] = math.nan
    assert MIXED(spoiled).log_prob(x).equal(MIXED(params).log_prob(x))


def test_asking_each_row_for_its_own_variables_gives_the_same_answers(generator: Generator) -> None:
    params, x = some(generator, rows=40)
    variable = torch.randint(len(COLUMNS), (40, 3), generator=generator)
    picked = params.gather(1, variable.unsqueeze(-1).expand(-1, -1, MIXED.width))
    some_of, whole = MIXED.at(picked, variable), MIXED(params)
    torch.testing.assert_close(some_of.log_prob(x.gather(1, variable)), whole.log_prob(x).gather(1, variable))
    for mine, right in (
        (some_of.mode(), whole.mode()),
        (some_of.mean(), whole.mean()),
        (some_of.quantile(0.7), whole.quantile(0.7)),
        (some_of.entropy(), whole.entropy()),
        (some_of.sample(generator=generator, temperature=0.0), whole.mode()),
    ):
        torch.testing.assert_close(mine, right.gather(1, variable))
    torch.testing.assert_close(some_of.column(1).mean(), some_of.mean()[:, 1:2])
    assert marginals_at(MIXED, picked, variable).mean().equal(some_of.mean())
    plain = picked[..., :2]
    assert marginals_at(Gaussian(), plain, variable).mean().equal(Gaussian()(plain).mean())


def test_wrong_arguments_are_refused_with_a_sentence(generator: Generator) -> None:
    with pytest.raises(ValueError, match="Mixed columns: expected at least one likelihood"):
        Mixed(())
    for bad in (Gaussian, "gaussian", Mixed((Gaussian(),))):
        with pytest.raises(ValueError, match="Mixed column 1: expected a likelihood of one variable"):
            Mixed((Bernoulli(), bad))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="parameters of Mixed: expected 8 variables"):
        MIXED(torch.zeros(2, 7, 9))
    with pytest.raises(ValueError, match="parameters of Mixed: expected a last dimension of 9"):
        MIXED(torch.zeros(2, 8, 8))
    whole = MIXED(some(generator)[0])
    with pytest.raises(ValueError, match="temperature"):
        whole.sample(generator=generator, temperature=-1.0)
    with pytest.raises(ValueError, match="quantile level q"):
        whole.quantile(2.0)


def test_a_likelihood_of_several_variables_says_its_sizes_and_is_no_column() -> None:
    energies = EnergyMixture(3, (0, 4, 2), components=2, latent=2, units=4, blocks=1)
    assert code_sizes(energies, 3).tolist() == [0, 4, 2]
    with pytest.raises(ValueError, match="Mixed column 0: expected a likelihood of one variable"):
        Mixed((energies,))


def test_a_list_of_columns_is_as_good_as_a_tuple() -> None:
    assert Mixed(list(COLUMNS)) == MIXED  # type: ignore[arg-type]


def test_a_layout_first_used_in_inference_mode_still_trains() -> None:
    columns = (Categorical(5), Gaussian(min_scale=0.0123))  # a combination no other test has made
    with torch.inference_mode():
        Mixed(columns)(torch.zeros(2, 2, 5)).log_prob(torch.zeros(2, 2))
    params = torch.zeros(2, 2, 5, requires_grad=True)
    Mixed(columns)(params).log_prob(torch.zeros(2, 2)).sum().backward()
    assert params.grad is not None
    assert bool((params.grad != 0).any())


def test_cells_of_any_columns_are_scored_as_they_are_side_by_side() -> None:
    generator = torch.Generator().manual_seed(0)
    columns = (SpikedMixture(2), Categorical(3), SpikedMixture(2, spikes=(0.0, 1.0)), Categorical(9), Categorical(2))
    likelihood = Mixed(columns)
    variable = torch.randint(5, (60,), generator=generator)
    params = torch.randn(60, likelihood.width, generator=generator)
    x = torch.where(torch.tensor([0, 3, 0, 9, 2])[variable] > 0, 1.0, torch.randn(60, generator=generator))
    wanted = likelihood.at(params.unsqueeze(0), variable.unsqueeze(0)).log_prob(x.unsqueeze(0))[0]
    torch.testing.assert_close(likelihood.log_prob_at(params, variable, x), wanted)
    assert likelihood.log_prob_at(params[:0], variable[:0], x[:0]).shape == (0,)
