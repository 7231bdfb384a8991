"""SpikedMixture: what its parameters stand for, on a grid and off it."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator

from anyfill.likelihoods import GaussianMixture, GaussianMixtureMarginals, GridMixtureMarginals, SpikedMixture

KINDS = [
    SpikedMixture(2),
    SpikedMixture(3, spikes=(0.0, 1.5), min_scale=0.05),
    SpikedMixture(2, step=0.25, offset=0.1),
    SpikedMixture(1, spikes=(-0.4, 0.1, 0.6), spike_scale=0.01, step=0.5, offset=0.1),
]


def test_parameters_are_spike_logits_logits_means_and_raw_scales(generator: Generator) -> None:
    kind = SpikedMixture(2, spikes=(-1.0, 0.5, 2.0), spike_scale=0.02, min_scale=0.1)
    assert kind.width == 9
    params = torch.randn(4, 5, 9, generator=generator, dtype=torch.float64)
    marginals, free = kind(params), GaussianMixture(2, min_scale=0.1)(params[..., 3:])
    assert isinstance(marginals, GaussianMixtureMarginals)
    torch.testing.assert_close(marginals.log_weights, params[..., :5].log_softmax(-1))
    torch.testing.assert_close(marginals.centers[..., 3:], free.centers)
    torch.testing.assert_close(marginals.scales[..., 3:], free.scales)
    x = torch.randn(4, 5, generator=generator, dtype=torch.float64)
    centers = torch.cat([torch.tensor([-1.0, 0.5, 2.0]).double().expand(4, 5, 3), free.centers], -1)
    scales = torch.cat([torch.full((4, 5, 3), 0.02).double(), free.scales], -1)
    mixed = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(logits=params[..., :5]), torch.distributions.Normal(centers, scales)
    )
    torch.testing.assert_close(marginals.log_prob(x), mixed.log_prob(x))
    torch.testing.assert_close(marginals.cdf(x), mixed.cdf(x))
    torch.testing.assert_close(marginals.mean(), mixed.mean)


def test_without_spikes_and_grid_it_is_a_mixture_of_gaussians(generator: Generator) -> None:
    params = torch.randn(3, 4, 6, generator=generator)
    ours, theirs = SpikedMixture(2, min_scale=1e-3)(params), GaussianMixture(2)(params)
    x = theirs.sample(generator=generator)
    for mine, right in (
        (ours.log_prob(x), theirs.log_prob(x)),
        (ours.entropy(), theirs.entropy()),
        (ours.quantile(0.3), theirs.quantile(0.3)),
        (ours.mode(), theirs.mode()),
    ):
        torch.testing.assert_close(mine, right)


@pytest.mark.parametrize("step", [0.0, 0.5])
def test_the_mass_at_a_spike_tends_to_its_weight_as_spikes_narrow(step: float) -> None:
    log_weights = torch.tensor([[[0.2, 0.3, 0.5]]], dtype=torch.float64).log()
    far = torch.full((1, 1, 1), 30.0).double(), torch.full((1, 1, 1), 0.5).double()
    for scale in (1e-1, 1e-2, 1e-4):
        kind = SpikedMixture(1, spikes=(0.5, 2.0), spike_scale=scale, step=step)
        marginals = kind(kind.params(log_weights, *far))
        for spike, weight in ((0.5, 0.2), (2.0, 0.3)):
            if step:
                mass = marginals.log_prob(torch.tensor([[spike]])).exp().item()
            else:
                ends = (marginals.cdf(torch.tensor([[spike + side]]).double()).item() for side in (0.05, -0.05))
                mass = next(ends) - next(ends)
            assert mass == pytest.approx(weight, abs=1e-12 if scale == 1e-4 else weight)


def test_params_inverts_the_call(generator: Generator) -> None:
    kind = KINDS[3]
    weights = torch.randn(2, 3, 4, generator=generator).double().log_softmax(-1)
    mean, scale = torch.randn(2, 3, 1, generator=generator).double(), torch.rand(2, 3, 1, generator=generator) + 0.5
    marginals = kind(kind.params(weights, mean, scale.double()))
    assert isinstance(marginals, GridMixtureMarginals)
    torch.testing.assert_close(marginals.mixture.log_weights, weights)
    torch.testing.assert_close(marginals.mixture.centers[..., 3:], mean)
    torch.testing.assert_close(marginals.mixture.scales[..., 3:], scale.double())


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_no_value_in_one_variable_leaves_the_others_and_all_gradients_alone(
    kind: SpikedMixture, generator: Generator
) -> None:
    params = torch.randn(1, 4, kind.width, generator=generator).requires_grad_()
    log_prob = kind(params).log_prob(torch.tensor([[0.1, math.nan, math.inf, -0.4]]))
    clean = kind(params).log_prob(torch.tensor([[0.1, 0.0, 0.0, -0.4]]))
    assert log_prob[0, 1].isnan()
    assert log_prob[0, 2] == -math.inf
    assert log_prob[0, [0, 3]].equal(clean[0, [0, 3]])
    (gradient,) = torch.autograd.grad(torch.where(log_prob.isfinite(), log_prob, 0.0).sum(), params)
    assert gradient.isfinite().all()
    assert gradient[0, [1, 2]].eq(0).all()
    assert gradient[0, [0, 3]].abs().sum() > 0


@given(
    st.sampled_from(KINDS),
    st.lists(st.sampled_from([-1e4, -30.0, 0.0, 30.0, 1e4]), min_size=11, max_size=11),
    st.floats(-1e4, 1e4),
)
def test_extreme_parameters_and_values_keep_everything_finite(kind: SpikedMixture, raw: list[float], x: float) -> None:
    params = torch.tensor(raw[: kind.width]).view(1, 1, -1).requires_grad_()
    marginals = kind(params)
    total = marginals.log_prob(torch.tensor([[x]])) + marginals.entropy() + marginals.mean()
    assert total.isfinite().all()
    assert torch.autograd.grad(total.sum(), params)[0].isfinite().all()
    for answer in (marginals.mode(), marginals.quantile(0.3), marginals.cdf(torch.tensor([[x]]))):
        assert answer.isfinite().all()


@pytest.mark.parametrize("step", [0.0, 0.1])
def test_fifty_scales_away_the_slope_still_points_home(step: float) -> None:
    kind = SpikedMixture(1, spikes=(0.0,), step=step, min_scale=0.01)
    for x in (50.0, -500.0):
        params = torch.tensor([[[0.0, 0.0, 0.0, 0.0]]], requires_grad=True)
        log_prob = kind(params).log_prob(torch.tensor([[x]]))
        density = -0.5 * (x / 1.01) ** 2 - math.log(2 * math.sqrt(2 * math.pi) * 1.01)
        cell = math.log(0.1 * math.sinh(abs(x) * 0.05) / (abs(x) * 0.05)) if step else 0.0
        assert log_prob.item() == pytest.approx(density + cell, rel=2e-3)
        (gradient,) = torch.autograd.grad(log_prob.sum(), params)
        assert gradient[0, 0, 2].item() == pytest.approx(x, rel=0.05)  # the slope in the mean is (x - m) / s^2
        assert gradient[0, 0, 3].item() > 0  # a wider component would hold it better
        assert gradient.isfinite().all()


def test_half_precision_is_read_as_float32_and_no_rows_give_no_answers(generator: Generator) -> None:
    for kind in KINDS:
        for rows in (2, 0):
            params = torch.randn(rows, 3, kind.width, generator=generator).bfloat16()
            marginals = kind(params)
            drawn = marginals.sample(generator=generator)
            answers = (drawn, marginals.log_prob(drawn), marginals.mode(), marginals.mean(), marginals.quantile(0.3))
            for answer in (*answers, marginals.entropy(), marginals.cdf(drawn)):
                assert answer.dtype == torch.float32
                assert answer.shape == (rows, 3)


def test_log_prob_broadcasts_over_leading_dimensions_and_takes_one_variable(generator: Generator) -> None:
    for kind in KINDS:
        params = torch.randn(2, 3, kind.width, generator=generator)
        x = torch.randn(5, 2, 3, generator=generator)
        wide = kind(params).log_prob(x)
        torch.testing.assert_close(wide, torch.stack([kind(params).log_prob(row) for row in x]))
        torch.testing.assert_close(kind(params[0, 0]).log_prob(x[0, 0, 0]), wide[0, 0, 0])


def test_wrong_arguments_are_refused_with_a_sentence() -> None:
    for options, what in (
        ({"components": 0}, "components: expected a whole number from 1 up"),
        ({"spike_scale": 0.0}, "spike_scale: expected a number above 0"),
        ({"min_scale": -1.0}, "min_scale: expected a number above 0"),
        ({"step": -0.1}, "step: expected 0 .a density. or the width of a cell"),
        ({"step": math.inf}, "step: expected"),
        ({"offset": math.nan}, "offset: expected finite numbers"),
        ({"spikes": (0.0, math.inf)}, "spikes: expected finite numbers"),
    ):
        with pytest.raises(ValueError, match=f"SpikedMixture {what}"):
            SpikedMixture(**{"components": 2, **options})  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"parameters of SpikedMixture\(2\) with 0 spikes: expected a last dimension of 6"
    ):
        SpikedMixture(2)(torch.zeros(1, 1, 7))
    assert SpikedMixture(2, spikes=[1.0, 2.0]) == SpikedMixture(2, spikes=(1.0, 2.0))  # type: ignore[arg-type]
