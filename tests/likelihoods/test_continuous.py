"""Gaussian and GaussianMixture against torch.distributions, scipy and their definitions."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Generator, Tensor

from anyfill.likelihoods import Gaussian, GaussianMarginals, GaussianMixture, GaussianMixtureMarginals

FALSE_ALARM = 1e-6  # per statistical test, at a fixed seed


def mixture_of(parts: list[tuple[float, float, float]]) -> GaussianMixtureMarginals:
    """One variable, float64."""
    weight, mean, scale = torch.tensor(parts, dtype=torch.float64).T.reshape(3, 1, 1, -1)
    return GaussianMixtureMarginals((weight / weight.sum()).log(), mean, scale)


def random_mixtures(generator: Generator, shape: tuple[int, int], components: int) -> GaussianMixtureMarginals:
    params = 2 * torch.randn(*shape, 3 * components, generator=generator, dtype=torch.float64)
    return GaussianMixture(components)(params)


def test_gaussian_agrees_with_torch_distributions(generator: Generator) -> None:
    params = 3 * torch.randn(4, 5, 2, generator=generator, dtype=torch.float64)
    x = 3 * torch.randn(4, 5, generator=generator, dtype=torch.float64)
    ours = Gaussian()(params)
    theirs = torch.distributions.Normal(ours.center, ours.scale)
    for mine, right in (
        (ours.log_prob(x), theirs.log_prob(x)),
        (ours.cdf(x), theirs.cdf(x)),
        (ours.mean(), theirs.mean),
        (ours.mode(), theirs.mode),
        (ours.entropy(), theirs.entropy()),
        (ours.quantile(0.83), theirs.icdf(torch.tensor(0.83, dtype=torch.float64))),
        (ours.quantile(1e-12), torch.from_numpy(stats.norm.ppf(1e-12, ours.center, ours.scale))),
    ):
        torch.testing.assert_close(mine, right, rtol=1e-12, atol=1e-12)


def test_mixture_agrees_with_torch_distributions(generator: Generator) -> None:
    ours = random_mixtures(generator, (4, 5), 3)
    x = 3 * torch.randn(4, 5, generator=generator, dtype=torch.float64)
    theirs = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(logits=ours.log_weights), torch.distributions.Normal(ours.centers, ours.scales)
    )
    torch.testing.assert_close(ours.log_prob(x), theirs.log_prob(x))
    torch.testing.assert_close(ours.cdf(x), theirs.cdf(x))
    torch.testing.assert_close(ours.mean(), theirs.mean)


def test_the_density_is_the_slope_of_the_cdf_which_climbs_from_zero_to_one(generator: Generator) -> None:
    for marginals in (
        random_mixtures(generator, (50, 4), 3),
        Gaussian()(torch.randn(50, 4, 2, generator=generator).double()),
    ):
        x = (3 * torch.randn(50, 4, generator=generator, dtype=torch.float64)).requires_grad_()
        (slope,) = torch.autograd.grad(marginals.cdf(x).sum(), x)
        torch.testing.assert_close(slope, marginals.log_prob(x).exp())
        assert marginals.cdf(torch.full((50, 4), -math.inf)).eq(0).all()
        torch.testing.assert_close(marginals.cdf(torch.full((50, 4), math.inf)), torch.ones(50, 4).double())


@pytest.mark.parametrize("temperature", [1.0, 0.25, 4.0])
def test_draws_follow_the_tempered_distribution(generator: Generator, temperature: float) -> None:
    parts = [(0.6, -1.0, 0.5), (0.3, 2.0, 1.5), (0.1, 0.0, 0.1)]
    hot = [(weight ** (1 / temperature), mean, scale * math.sqrt(temperature)) for weight, mean, scale in parts]
    rows = 20_000

    def drawn_from(marginals: GaussianMarginals | GaussianMixtureMarginals) -> Tensor:
        return marginals.sample(generator=generator, temperature=temperature).flatten()

    def p_value(draws: Tensor, target: GaussianMixtureMarginals) -> float:
        levels = target.cdf(draws.view(-1, 1)).flatten()  # uniform if the draws follow the target
        return float(stats.kstest(levels.numpy(), "uniform").pvalue)

    one, rest = mixture_of(parts), mixture_of(hot)
    draws = drawn_from(GaussianMixtureMarginals(*(part.expand(rows, 1, 3) for part in one._mixture)))
    assert p_value(draws, rest) > FALSE_ALARM
    assert p_value(draws * 1.1, rest) < FALSE_ALARM  # and the test has the power to see a tenth

    draws = drawn_from(GaussianMarginals(torch.full((rows, 1), 2.0).double(), torch.full((rows, 1), 1.5).double()))
    assert p_value(draws, mixture_of([(1.0, 2.0, 1.5 * math.sqrt(temperature))])) > FALSE_ALARM


def test_temperature_zero_is_the_mode_and_equal_generators_give_equal_draws(generator: Generator) -> None:
    for marginals in (random_mixtures(generator, (3, 4), 3), Gaussian()(torch.randn(3, 4, 2, generator=generator))):
        assert marginals.sample(generator=generator, temperature=0.0).equal(marginals.mode())
        first, second = (marginals.sample(generator=torch.Generator().manual_seed(7)) for _ in range(2))
        assert first.equal(second)
        assert not first.equal(marginals.sample(generator=torch.Generator().manual_seed(8)))
        with pytest.raises(ValueError, match="temperature: expected a finite number of at least 0"):
            marginals.sample(generator=generator, temperature=-1.0)
        with pytest.raises(ValueError, match="quantile level q"):
            marginals.quantile(1.5)


@pytest.mark.parametrize("likelihood", [Gaussian(), GaussianMixture(3)])
def test_no_value_in_one_variable_leaves_the_others_and_all_gradients_alone(
    generator: Generator, likelihood: Gaussian | GaussianMixture
) -> None:
    params = torch.randn(1, 4, likelihood.width, generator=generator).requires_grad_()
    x = torch.tensor([[0.3, math.nan, math.inf, -0.2]])
    log_prob = likelihood(params).log_prob(x)
    assert log_prob[0, 1].isnan()
    assert log_prob[0, 2] == -math.inf
    clean = likelihood(params).log_prob(torch.tensor([[0.3, 0.0, 0.0, -0.2]]))
    assert log_prob[0, [0, 3]].equal(clean[0, [0, 3]])
    torch.where(log_prob.isfinite(), log_prob, 0.0).sum().backward()
    assert params.grad is not None
    assert params.grad[0, [1, 2]].eq(0).all()
    assert params.grad[0, [0, 3]].isfinite().all()
    assert params.grad[0, [0, 3]].abs().sum() > 0


@given(st.lists(st.sampled_from([-1e4, -30.0, 0.0, 30.0, 1e4]), min_size=6, max_size=6), st.floats(-1e4, 1e4))
def test_extreme_parameters_keep_everything_finite(values: list[float], x: float) -> None:
    for likelihood in (Gaussian(), GaussianMixture(2)):
        params = torch.tensor(values[: likelihood.width]).view(1, 1, -1).requires_grad_()
        marginals = likelihood(params)
        total = marginals.log_prob(torch.tensor([[x]])) + marginals.entropy() + marginals.mean()
        assert total.isfinite().all()
        assert torch.autograd.grad(total.sum(), params)[0].isfinite().all()
        assert marginals.mode().isfinite().all()
        assert marginals.quantile(0.3).isfinite().all()


def test_a_component_of_weight_zero_changes_nothing(generator: Generator) -> None:
    params = torch.randn(2, 3, 6, generator=generator, dtype=torch.float64)
    params[..., 1] = -math.inf
    params.requires_grad_()
    marginals, x = GaussianMixture(2)(params), torch.randn(2, 3, generator=generator).double()
    alone = GaussianMarginals(marginals.centers[..., 0], marginals.scales[..., 0])
    for mine, right in (
        (marginals.log_prob(x), alone.log_prob(x)),
        (marginals.mode(), alone.mode()),
        (marginals.mean(), alone.mean()),
        (marginals.quantile(0.2), alone.quantile(0.2)),
        (marginals.entropy(), alone.entropy()),
    ):
        torch.testing.assert_close(mine, right, rtol=0, atol=2e-6)
    total = (marginals.log_prob(x) + marginals.entropy()).sum()
    assert torch.autograd.grad(total, params)[0].isfinite().all()


def test_params_inverts_the_call(generator: Generator) -> None:
    mean, scale = (
        torch.randn(2, 3, generator=generator).double(),
        torch.rand(2, 3, generator=generator).double() * 9 + 1e-3,
    )
    read = Gaussian()(Gaussian().params(mean, scale))
    torch.testing.assert_close(torch.stack([read.center, read.scale]), torch.stack([mean, scale]))
    wanted = random_mixtures(generator, (2, 3), 4)
    read = GaussianMixture(4)(GaussianMixture(4).params(*wanted._mixture))
    torch.testing.assert_close(torch.stack(read._mixture), torch.stack(wanted._mixture))
    floor = Gaussian(min_scale=0.5)
    assert floor(floor.params(torch.zeros(1, 1), torch.full((1, 1), 0.1))).scale.item() == pytest.approx(0.5)


def test_zero_parameters_mean_unit_scale_and_components_that_can_part() -> None:
    params = torch.zeros(1, 1, 9, requires_grad=True)
    marginals = GaussianMixture(3)(params)
    assert marginals.scales.detach() == pytest.approx(1, abs=2e-3)
    assert Gaussian()(torch.zeros(1, 1, 2)).scale.item() == pytest.approx(1, abs=2e-4)
    (gradient,) = torch.autograd.grad(marginals.log_prob(torch.tensor([[0.4]])).sum(), params)
    assert all(len(set(part.flatten().tolist())) == 3 for part in gradient.chunk(3, -1))


def test_the_scale_never_falls_below_its_floor() -> None:
    raw = torch.tensor([-1e4, -50.0, -10.0]).view(1, 3, 1)
    assert (Gaussian(min_scale=0.01)(torch.cat([raw, raw], -1)).scale >= 0.01).all()
    assert (GaussianMixture(1, min_scale=0.01)(torch.cat([raw] * 3, -1)).scales >= 0.01).all()


@pytest.mark.parametrize("likelihood", [Gaussian(), GaussianMixture(2)])
def test_half_precision_is_read_as_float32_and_no_rows_give_no_answers(
    generator: Generator, likelihood: Gaussian | GaussianMixture
) -> None:
    for rows in (2, 0):
        params = torch.randn(rows, 3, likelihood.width, generator=generator).bfloat16()
        marginals = likelihood(params)
        drawn = marginals.sample(generator=generator)
        answers = (drawn, marginals.log_prob(drawn), marginals.mode(), marginals.mean(), marginals.quantile(0.3))
        for answer in (*answers, marginals.entropy(), marginals.cdf(drawn)):
            assert answer.dtype == torch.float32
            assert answer.shape == (rows, 3)
        assert marginals.log_prob(drawn).equal(likelihood(params.float()).log_prob(drawn))


def test_wrong_arguments_are_refused_with_a_sentence() -> None:
    for bad in (0, -1.0, math.nan):
        with pytest.raises(ValueError, match="min_scale: expected a number above 0"):
            Gaussian(min_scale=bad)
        with pytest.raises(ValueError, match="min_scale: expected a number above 0"):
            GaussianMixture(2, min_scale=bad)
    for count in (0, -3, 1.5):
        with pytest.raises(ValueError, match="GaussianMixture components: expected a whole number from 1 up"):
            GaussianMixture(count)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="parameters of Gaussian: expected a last dimension of 2"):
        Gaussian()(torch.zeros(2, 2, 3))
    with pytest.raises(ValueError, match=r"parameters of GaussianMixture\(2\): expected a last dimension of 6"):
        GaussianMixture(2)(torch.zeros(2, 2, 3))
