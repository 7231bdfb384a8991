"""A pool is the mixture of its members: log p = log sum_m w_m p_m, and everything else follows from that."""

import math
from dataclasses import dataclass

import pytest
import torch
from scipy import stats
from torch import Generator, Tensor

from anyfill.likelihoods import (
    Bernoulli,
    Categorical,
    FiniteMarginals,
    Gaussian,
    GaussianMixture,
    GaussianMixtureMarginals,
    GridMixtureMarginals,
    Likelihood,
    Marginals,
    Mixed,
    MixedMarginals,
    Pooled,
    SpikedMixture,
    marginals_at,
    mixture,
)
from anyfill.likelihoods.mixed import code_sizes
from anyfill.model import Model
from anyfill.networks import Discrete, ResidualMLP
from anyfill.networks import Mixed as Kinds

FALSE_ALARM = 1e-6  # per statistical test, at a fixed seed

ONE_KIND: list[Likelihood] = [
    Bernoulli(),
    Categorical(4),
    Gaussian(),
    GaussianMixture(2),
    SpikedMixture(2, spikes=(0.0, 1.0)),
    SpikedMixture(2, spikes=(0.0,), step=0.5),
]
COLUMNS = (*ONE_KIND, Categorical(3), SpikedMixture(2, step=1.0), Gaussian())
MIXED = Mixed(COLUMNS)
ALL = [*ONE_KIND, MIXED]
N = len(COLUMNS)


def some(
    base: Likelihood, members: int, weighted: bool, generator: Generator, rows: int = 5
) -> tuple[Tensor, list[Marginals], Tensor, Tensor]:
    """Parameters (B, N, …), the members' own marginals, their log-weights (M, B, N) and values (B, N) for all."""
    params = torch.randn(rows, N, members * (base.width + weighted), generator=generator, dtype=torch.float64)
    width = base.width
    each = [base(params[..., m * width : (m + 1) * width]) for m in range(members)]
    uniform = torch.full((members, rows, N), -math.log(members)).double()
    log_weights = params[..., members * width :].log_softmax(-1).movedim(-1, 0) if weighted else uniform
    return params, each, log_weights, torch.randint(2, (rows, N), generator=generator).double()


def label(value: object) -> str:
    return repr(value)[:30]


@pytest.mark.parametrize("base", ALL, ids=label)
@pytest.mark.parametrize("weighted", [False, True])
def test_log_prob_and_its_gradient_are_the_log_mean_over_members(
    base: Likelihood, weighted: bool, generator: Generator
) -> None:
    params, _, _, x = some(base, 3, weighted, generator)
    params.requires_grad_()
    width, pool = base.width, Pooled(base, 3, weighted)
    assert pool.width == params.shape[-1]
    each = torch.stack([base(params[..., m * width : (m + 1) * width]).log_prob(x) for m in range(3)])
    weights = params[..., 3 * width :].log_softmax(-1).movedim(-1, 0) if weighted else -math.log(3)
    right, mine = (each + weights).logsumexp(0), pool(params).log_prob(x)
    torch.testing.assert_close(mine, right)
    slopes = [torch.autograd.grad(part.sum(), params)[0] for part in (mine, right)]
    torch.testing.assert_close(*slopes)


@pytest.mark.parametrize("base", ALL, ids=label)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_pool_of_one_is_its_member(base: Likelihood, weighted: bool, generator: Generator) -> None:
    params, (alone,), _, x = some(base, 1, weighted, generator)
    pool = Pooled(base, 1, weighted)(params)
    for mine, right in (
        (pool.log_prob(x), alone.log_prob(x)),
        (pool.mean(), alone.mean()),
        (pool.mode(), alone.mode()),
        (pool.quantile(0.2), alone.quantile(0.2)),
        (pool.entropy(), alone.entropy()),
    ):
        torch.testing.assert_close(mine, right, rtol=1e-7, atol=4e-6)


@pytest.mark.parametrize("base", ALL, ids=label)
def test_means_average_and_equal_members_change_nothing(base: Likelihood, generator: Generator) -> None:
    params, each, log_weights, x = some(base, 3, True, generator)
    average = sum(w * part.mean() for w, part in zip(log_weights.exp(), each))
    torch.testing.assert_close(Pooled(base, 3, weighted=True)(params).mean(), average)
    same, alone = Pooled(base, 4)(params[..., : base.width].repeat(1, 1, 4)), base(params[..., : base.width])
    for mine, right in (
        (same.log_prob(x), alone.log_prob(x)),
        (same.mode(), alone.mode()),
        (same.quantile(0.7), alone.quantile(0.7)),
        (same.entropy(), alone.entropy()),
    ):
        torch.testing.assert_close(mine, right, rtol=1e-7, atol=4e-6)


@pytest.mark.parametrize("base", ONE_KIND[2:], ids=label)
def test_quantile_mode_and_entropy_are_those_of_the_averaged_distribution(
    base: Likelihood, generator: Generator
) -> None:
    params, each, log_weights, _ = some(base, 3, True, generator)
    pool = Pooled(base, 3, weighted=True)(params)

    def cdf(x: Tensor) -> Tensor:
        return sum(w * part.cdf(x) for w, part in zip(log_weights.exp(), each))  # type: ignore[attr-defined]

    step = getattr(base, "step", 0.0)
    for q in (0.05, 0.5, 0.9):
        found = pool.quantile(q)
        assert (cdf(found + (0 if step else 1e-8)) >= q - 1e-12).all()
        assert (cdf(found - (step or 1e-8)) <= q + 1e-12).all()
    if isinstance(pool, GridMixtureMarginals):
        points = torch.arange(-60, 60, step).double().view(-1, 1, 1).expand(-1, 5, N)
        mass = pool.log_prob(points).exp()
        right = -(mass * pool.log_prob(points)).sum(0)
    else:
        assert isinstance(pool, GaussianMixtureMarginals)
        around = torch.linspace(-9, 9, 400).double().view(-1, 1, 1, 1)
        points = (pool.centers + pool.scales * around).movedim(-1, 0).flatten(0, 1).sort(0).values
        density = pool.log_prob(points).exp()
        right = torch.trapezoid(-torch.xlogy(density, density), points, dim=0)
    assert (pool.log_prob(points) <= pool.log_prob(pool.mode()) + 1e-9).all()
    torch.testing.assert_close(pool.entropy(), right, rtol=0, atol=5e-6 if step else 1e-3)


def test_codes_have_averaged_probabilities_and_impossible_ones_stay_so(generator: Generator) -> None:
    params = torch.randn(2, 3, 8, generator=generator)
    params[..., 1] = -math.inf
    params[..., 5] = -math.inf  # code 1 is impossible for both members
    params[..., 6] = -math.inf  # code 2 for one of them
    params.requires_grad_()
    pool = Pooled(Categorical(4), 2)(params)
    assert isinstance(pool, FiniteMarginals)
    torch.testing.assert_close(pool.log_probs.exp(), (params[..., :4].softmax(-1) + params[..., 4:].softmax(-1)) / 2)
    total = pool.entropy().sum() + pool.log_prob(torch.full((2, 3), 2)).sum() + pool.mean().sum()
    assert torch.autograd.grad(total, params)[0].isfinite().all()
    both = Mixed((Categorical(4), Categorical(2), Bernoulli()))
    wide = torch.randn(2, 3, 12, generator=generator).requires_grad_()
    columns = Pooled(both, 3)(wide)
    answers = columns.entropy() + columns.mean() + columns.log_prob(torch.ones(2, 3))
    (gradient,) = torch.autograd.grad(answers.sum(), wide)
    assert gradient.isfinite().all()
    assert gradient[:, 1].view(2, 3, 4)[..., 2:].eq(0).all()


def test_a_mixture_has_a_component_for_each_members_and_one_for_each_spike() -> None:
    assert Pooled(Gaussian(), 7)(torch.zeros(2, 3, 14)).centers.shape == (2, 3, 7)  # type: ignore[attr-defined]
    spiked = Pooled(SpikedMixture(2, spikes=(0.0, 1.0, 2.0)), 5)(torch.zeros(2, 3, 45))
    assert isinstance(spiked, GaussianMixtureMarginals)
    assert spiked.centers.shape == (2, 3, 3 + 5 * 2)
    torch.testing.assert_close(spiked.log_weights.exp().sum(-1), torch.ones(2, 3))
    nested = Pooled(Pooled(SpikedMixture(2, spikes=(0.0,), step=1.0), 2), 3)(torch.zeros(2, 3, 42))
    assert isinstance(nested, GridMixtureMarginals)
    assert nested.mixture.centers.shape == (2, 3, 1 + 6 * 2)


def test_draws_follow_the_pool(generator: Generator) -> None:
    params = 2 * torch.randn(1, N, 3 * (MIXED.width + 1), generator=generator)
    pool, rows = Pooled(MIXED, 3, weighted=True), 20_000
    one, draws = pool(params), pool(params.expand(rows, -1, -1)).sample(generator=generator)
    assert isinstance(one, MixedMarginals)
    for j in range(N):
        alone, mine = one.column(j), draws[:, j : j + 1]
        if isinstance(alone, GaussianMixtureMarginals):
            p_value = stats.kstest(alone.cdf(mine).flatten().numpy(), "uniform").pvalue
        else:
            values, seen = mine.unique(return_counts=True)
            mass = alone.log_prob(values.view(-1, 1)).double().exp().flatten()
            often = mass * rows > 5
            counts, expected = (torch.cat([p[often], p[~often].sum(0, True)]) for p in (seen.double(), mass * rows))
            expected[-1] = rows - expected[:-1].sum()
            keep = expected > 1e-3
            right = expected[keep] * counts[keep].sum() / expected[keep].sum()
            p_value = stats.chisquare(counts[keep].numpy(), right.numpy()).pvalue
        assert p_value > FALSE_ALARM, j


def test_temperature_acts_on_the_pool_and_not_inside_its_members(generator: Generator) -> None:
    sure = torch.tensor([[[6.0, 0.0, 0.0, 0.0, 0.0, 6.0, 0.0, 0.0]]])  # one member says 0, the other 1
    cold = Pooled(Categorical(4), 2)(sure.expand(4000, 1, 8)).sample(generator=generator, temperature=0.5)
    averaged = Pooled(Categorical(4), 2)(sure).log_probs.double().mul(2).softmax(-1).flatten()  # type: ignore[attr-defined]
    share = (cold == 0).double().mean().item()
    assert abs(share - averaged[0].item()) < 6 * math.sqrt(0.25 / 4000)
    pool = Pooled(MIXED, 2)(torch.randn(3, N, 2 * MIXED.width, generator=generator))
    assert pool.sample(generator=generator, temperature=0.0).equal(pool.mode())


@pytest.mark.parametrize("weighted", [False, True])
def test_asking_each_row_for_its_own_variables_gives_the_same_answers(weighted: bool, generator: Generator) -> None:
    params, _, _, x = some(MIXED, 3, weighted, generator, rows=30)
    pool = Pooled(MIXED, 3, weighted)
    variable = torch.randint(N, (30, 2), generator=generator)
    picked = params.gather(1, variable.unsqueeze(-1).expand(-1, -1, pool.width))
    some_of, whole = marginals_at(pool, picked, variable), pool(params)
    for mine, right in (
        (some_of.log_prob(x.gather(1, variable)), whole.log_prob(x)),
        (some_of.mean(), whole.mean()),
        (some_of.mode(), whole.mode()),
        (some_of.quantile(0.4), whole.quantile(0.4)),
        (some_of.entropy(), whole.entropy()),
    ):
        torch.testing.assert_close(mine, right.gather(1, variable))
    assert isinstance(some_of, MixedMarginals)
    torch.testing.assert_close(some_of.column(1).mean(), some_of.mean()[:, 1:])
    plain = Pooled(Gaussian(), 2)
    assert marginals_at(plain, picked[..., :4], variable).mean().equal(plain(picked[..., :4]).mean())


def test_columns_of_a_pool_are_of_their_own_kind(generator: Generator) -> None:
    params, _, _, x = some(MIXED, 3, True, generator)
    pool = Pooled(MIXED, 3, weighted=True)(params)
    assert isinstance(pool, MixedMarginals)
    for j in (*range(N), -1):
        alone = pool.column(j)
        assert isinstance(alone, FiniteMarginals) == isinstance(COLUMNS[j], Bernoulli | Categorical)
        torch.testing.assert_close(alone.log_prob(x[:, [j]]), pool.log_prob(x)[:, [j]])
        torch.testing.assert_close(alone.mean(), pool.mean()[:, [j]])
    with pytest.raises(IndexError):
        pool.column(N)


def test_a_pool_of_columns_and_a_column_of_pools_are_the_same(generator: Generator) -> None:
    inner = Mixed((Pooled(Categorical(3), 2), Pooled(Gaussian(), 2)))
    outer = Pooled(Mixed((Categorical(3), Gaussian())), 2)
    params = torch.randn(4, 2, 6, generator=generator)
    rearranged = params.clone()
    rearranged[:, 1, :4] = params[:, 1, [0, 1, 3, 4]]
    x = torch.tensor([[0.0, 0.3]]).expand(4, 2)
    torch.testing.assert_close(inner(rearranged).log_prob(x), outer(params).log_prob(x))
    assert code_sizes(inner, 2).tolist() == code_sizes(outer, 2).tolist() == [3, 0]


def test_no_value_in_one_variable_leaves_the_others_and_all_gradients_alone(generator: Generator) -> None:
    pool = Pooled(MIXED, 2, weighted=True)
    params = torch.randn(3, N, pool.width, generator=generator).requires_grad_()
    x = torch.randint(2, (3, N), generator=generator).float()
    hidden = torch.zeros(3, N, dtype=torch.bool)
    hidden[:, ::2] = True
    log_prob, clean = pool(params).log_prob(torch.where(hidden, math.nan, x)), pool(params).log_prob(x)
    assert log_prob.isnan().equal(hidden)
    assert log_prob[~hidden].equal(clean[~hidden])
    (gradient,) = torch.autograd.grad(torch.where(hidden, 0.0, log_prob).sum(), params)
    assert gradient.isfinite().all()
    assert gradient[hidden].eq(0).all()


def test_a_member_without_weight_does_not_count(generator: Generator) -> None:
    pool = Pooled(SpikedMixture(2, spikes=(0.0,), step=0.5), 3, weighted=True)
    params = torch.randn(2, 3, pool.width, generator=generator)
    params[..., -1] = -math.inf
    params.requires_grad_()
    x = torch.zeros(2, 3)
    two = Pooled(pool.base, 2, weighted=True)(torch.cat([params[..., :14], params[..., 21:23]], -1))
    torch.testing.assert_close(pool(params).log_prob(x), two.log_prob(x))
    torch.testing.assert_close(pool(params).mode(), two.mode())
    assert torch.autograd.grad(pool(params).log_prob(x).sum(), params)[0].isfinite().all()


def test_a_model_sees_the_codes_through_a_pool() -> None:
    base = Mixed((Categorical(3), SpikedMixture(2, spikes=(0.0,), step=0.5), Bernoulli(), Gaussian()))
    pool, row = Pooled(base, 4, weighted=True), torch.tensor([1.0, math.nan, math.nan, math.nan])
    assert code_sizes(pool, 4).tolist() == [3, 0, 2, 0]
    model = Model(ResidualMLP(Kinds((3, 0, 2, 0)), 4, pool.width, 8, 1), pool)
    drawn = model.given(row).sample(50, seed=1, allow_untrained=True).flatten(0, -2)
    assert drawn.shape == (50, 4)
    assert drawn[:, 0].eq(1).all()
    assert (2 * drawn[:, 1]).eq((2 * drawn[:, 1]).round()).all()
    assert drawn[:, 2].unique().tolist() == [0, 1]
    with pytest.raises(ValueError, match="a code from 0 to"):
        model.given(torch.tensor([7.0, math.nan, math.nan, math.nan]))
    with pytest.raises(ValueError, match="kind of variable 0: expected 3 codes"):
        Model(ResidualMLP(Kinds((2, 0, 2, 0)), 4, pool.width, 8, 1), pool)
    with pytest.raises(ValueError, match="kind of variable 0: expected 5 codes"):
        Model(ResidualMLP(Discrete(2), 3, 10, 8, 1), Pooled(Pooled(Categorical(5), 2), 1))


def test_many_members_are_answered_a_few_variables_at_a_time(
    generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    plain = mixture.component_log_probs

    def watched(*args: Tensor) -> Tensor:
        answer = plain(*args)
        held.append(answer.numel())
        return answer

    pool = Pooled(GaussianMixture(2), 64)(torch.randn(3, 4, 64 * 6, generator=generator))
    whole = pool.mode(), pool.quantile(0.9)
    monkeypatch.setattr(mixture, "component_log_probs", watched)
    monkeypatch.setattr(mixture, "_CHUNK", 2 * 128**2)
    torch.testing.assert_close((pool.mode(), pool.quantile(0.9)), whole)
    assert max(held) <= 2 * 128**2


def test_wrong_arguments_are_refused_with_a_sentence() -> None:
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="Pooled members: expected a whole number from 1 up"):
            Pooled(Gaussian(), bad)  # type: ignore[arg-type]
    for base in (Gaussian, "gaussian"):
        with pytest.raises(ValueError, match="Pooled base: expected a likelihood"):
            Pooled(base, 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="parameters of Pooled of 3: expected a last dimension of 9"):
        Pooled(Gaussian(), 3, weighted=True)(torch.zeros(2, 2, 6))
    with pytest.raises(ValueError, match="Mixed column 0: expected a likelihood of one variable"):
        Mixed((Pooled(MIXED, 2),))

    @dataclass(frozen=True)
    class Own(Likelihood):
        width: int = 1

        def __call__(self, params: Tensor) -> Marginals:
            class Nothing:
                log_prob = sample = mode = mean = quantile = entropy = None

            return Nothing()  # type: ignore[return-value]

    with pytest.raises(ValueError, match="Pooled base: expected a likelihood whose marginals can be pooled"):
        Pooled(Own(), 2)(torch.zeros(1, 1, 2))
    with pytest.raises(ValueError, match="Pooled columns: expected marginals that can be pooled, got Nothing"):
        Pooled(Mixed((Own(), Bernoulli())), 2)(torch.zeros(1, 2, 2))
