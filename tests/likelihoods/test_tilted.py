"""Tilted mixtures against exact ones: a linear tilt of a mixture of Gaussians is again a mixture of Gaussians.

q = sum_k w_k N(m_k, s_k), c = a x    =>    p = sum_k w'_k N(m_k + a s_k², s_k), w'_k ∝ w_k exp(a m_k + a² s_k²/2)
"""

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import kstest
from torch import Generator, Tensor

from anyfill.likelihoods import GaussianMixture, GaussianMixtureMarginals, Marginals, TiltedMarginals

B, N, K = 6, 3, 4


def mixtures(generator: Generator, dtype: torch.dtype = torch.float64) -> GaussianMixtureMarginals:
    params = torch.randn(B, N, 3 * K, generator=generator, dtype=dtype)
    params[..., 2 * K :] -= 1.5  # scales about 1/4, of a mixture whose own is about 1
    return GaussianMixture(K)(params)


def linear(q: GaussianMixtureMarginals, a: float, points: int = 32) -> tuple[TiltedMarginals, GaussianMixtureMarginals]:
    """The tilted mixture, and the same distribution exactly."""
    square = q.scales * q.scales
    weights = (q.log_weights + a * q.centers + a * a * square / 2).log_softmax(-1)
    exact = GaussianMixtureMarginals(weights, q.centers + a * square, q.scales)
    return TiltedMarginals(q, lambda x: a * x, points), exact


def test_without_a_tilt_every_answer_is_the_mixtures_own(generator: Generator) -> None:
    q = mixtures(generator, torch.float32)
    p = TiltedMarginals(q, torch.zeros_like, 32)
    assert isinstance(p, Marginals)
    x = torch.randn(B, N, generator=generator)
    for mine, its in (
        (p.log_prob(x), q.log_prob(x)),
        (p.sampled_log_prob(x, 5, generator=generator), q.log_prob(x)),
        (p.cdf(x), q.cdf(x)),
        (p.mean(), q.mean()),
        (p.entropy(), q.entropy()),
        (q.log_prob(p.mode()), q.log_prob(q.mode())),
        *((p.quantile(level), q.quantile(level)) for level in (0.01, 0.3, 0.95)),
    ):
        torch.testing.assert_close(mine, its, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize(("a", "points", "tolerance"), [(0.5, 32, 0.015), (-0.5, 128, 0.005)])
def test_a_linear_tilt_gives_the_exact_mixture(a: float, points: int, tolerance: float, generator: Generator) -> None:
    p, exact = linear(mixtures(generator), a, points)
    x = torch.randn(B, N, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(p.log_prob(x), exact.log_prob(x), atol=tolerance, rtol=0)
    torch.testing.assert_close(p.mean(), exact.mean(), atol=3 * tolerance, rtol=0)
    torch.testing.assert_close(p.entropy(), exact.entropy(), atol=4 * tolerance, rtol=0)
    torch.testing.assert_close(p.cdf(x), exact.cdf(x), atol=tolerance, rtol=0)
    for level in (0.05, 0.5, 0.95):
        torch.testing.assert_close(exact.cdf(p.quantile(level)), torch.full_like(x, level), atol=tolerance, rtol=0)
    top = exact.log_prob(exact.mode())
    torch.testing.assert_close(exact.log_prob(p.mode()), top, atol=1e-3, rtol=0)


def test_more_points_come_closer(generator: Generator) -> None:
    q = mixtures(generator)
    x = torch.zeros(B, N, dtype=torch.float64)
    errors = [float((p.log_prob(x) - e.log_prob(x)).abs().max()) for p, e in (linear(q, 1.0, s) for s in (8, 32, 128))]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_a_wavy_tilt_agrees_with_quadrature(generator: Generator) -> None:
    q = mixtures(generator)

    def tilt(x: Tensor) -> Tensor:
        return (2 * x).sin() - 0.3 * x.abs()

    p = TiltedMarginals(q, tilt, 64)
    x = torch.zeros(B, N, dtype=torch.float64)
    log_z = q.log_prob(x) - p.log_prob(x)
    for row, column in ((0, 0), (3, 1), (5, 2)):
        one = GaussianMixtureMarginals(*(part[row, column] for part in (q.log_weights, q.centers, q.scales)))

        def mass(value: float, one: GaussianMixtureMarginals = one) -> float:
            at = torch.tensor(value, dtype=torch.float64)
            return float((one.log_prob(at) + tilt(at)).exp())

        exact = quad(mass, -12, 12, limit=400, points=sorted(one.centers.tolist()))[0]
        assert float(log_z[row, column]) == pytest.approx(math.log(exact), abs=0.01)


def test_the_sampled_normaliser_is_unbiased_and_its_logarithm_is_low(generator: Generator) -> None:
    """20 000 estimates from 5 draws each: within 4 standard errors (false-alarm rate 6e-5), which are below 1 %."""
    a, count = 0.8, 20_000
    few = mixtures(generator)
    parts = (few.log_weights, few.centers, few.scales)
    q = GaussianMixtureMarginals(*(part[:1, :1].expand(count, 1, K) for part in parts))
    p, exact = linear(q, a)
    x = torch.zeros(count, 1, dtype=torch.float64)
    log_z = q.log_prob(x) - p.sampled_log_prob(x, 5, generator=generator)
    true = (q.log_prob(x) - exact.log_prob(x))[0, 0]
    ratio = (log_z - true).exp()
    error = float(ratio.std()) / math.sqrt(count)
    assert error < 0.01
    assert abs(float(ratio.mean()) - 1) < 4 * error
    assert float((log_z - true).mean()) < -4 * float(log_z.std()) / math.sqrt(count)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_draws_follow_the_tilted_law(temperature: float, generator: Generator) -> None:
    """Kolmogorov-Smirnov on 5 000 draws against the exact law, false-alarm rate 0.001; the untilted law is refused."""
    count, a = 5_000, 0.7
    q = GaussianMixtureMarginals(
        torch.zeros(count, 1, 1), torch.full((count, 1, 1), 0.3), torch.full((count, 1, 1), 0.9)
    )
    drawn = linear(q, a)[0].sample(generator=generator, temperature=temperature).squeeze(1).double()
    scale = 0.9 * math.sqrt(temperature)
    assert kstest(drawn.numpy(), "norm", args=(0.3 + a * 0.81, scale)).pvalue > 0.001
    assert kstest(drawn.numpy(), "norm", args=(0.3, scale)).pvalue < 1e-6


def test_temperature_0_is_the_mode_and_quantiles_end_at_infinity(generator: Generator) -> None:
    p, _ = linear(mixtures(generator), 0.5)
    assert torch.equal(p.sample(generator=generator, temperature=0.0), p.mode())
    assert bool(p.quantile(0.0).isneginf().all())
    assert bool(p.quantile(1.0).isposinf().all())
    with pytest.raises(ValueError, match="quantile level"):
        p.quantile(1.5)


def test_cdf_and_quantile_undo_each_other(generator: Generator) -> None:
    q = mixtures(generator)
    p = TiltedMarginals(q, lambda x: (3 * x).sin(), 16)
    for level in (0.001, 0.2, 0.9):
        wanted = torch.full((B, N), level, dtype=torch.float64)
        torch.testing.assert_close(p.cdf(p.quantile(level)), wanted, atol=1e-6, rtol=0)


def test_the_proposal_learns_from_its_own_log_density_alone(generator: Generator) -> None:
    params = torch.randn(B, N, 3 * K, generator=generator).requires_grad_()
    x = torch.randn(B, N, generator=generator)
    q = GaussianMixture(K)(params)
    (wanted,) = torch.autograd.grad(q.log_prob(x).sum(), params)
    for value in (
        TiltedMarginals(GaussianMixture(K)(params), lambda x: x.sin(), 8).log_prob(x),
        TiltedMarginals(GaussianMixture(K)(params), lambda x: x.sin(), 8).sampled_log_prob(x, 3, generator=generator),
    ):
        torch.testing.assert_close(torch.autograd.grad(value.sum(), params)[0], wanted)


def test_what_was_looked_at_without_gradients_is_looked_at_again_with_them(generator: Generator) -> None:
    slope = torch.tensor(0.5, requires_grad=True)
    p = TiltedMarginals(mixtures(generator, torch.float32), lambda x: slope * x, 16)
    with torch.no_grad():
        before = p.log_prob(torch.zeros(B, N))
    after = p.log_prob(torch.zeros(B, N))
    assert torch.equal(before, after)
    (gradient,) = torch.autograd.grad(after.sum(), slope)  # - sum of d log Z / da = - sum of the means
    assert float(gradient) == pytest.approx(-float(p.mean().detach().sum()), abs=0.05 * B * N)


def test_a_value_that_is_none_spoils_only_its_own_place(generator: Generator) -> None:
    slope = torch.tensor(0.5, requires_grad=True)
    p = TiltedMarginals(mixtures(generator, torch.float32), lambda x: slope * x, 16)
    x = torch.zeros(B, N)
    clean = p.log_prob(x)
    x[0, 0], x[1, 1] = torch.nan, torch.inf
    value = p.log_prob(x)
    assert value[0, 0].isnan()
    assert value[1, 1].isneginf()
    rest = torch.ones(B, N, dtype=torch.bool)
    rest[0, 0] = rest[1, 1] = False
    assert torch.equal(value[rest], clean[rest])
    (gradient,) = torch.autograd.grad(torch.where(rest, value, 0.0).sum(), slope)
    assert bool(gradient.isfinite())


def test_work_stays_on_the_parameters_device_and_never_waits_for_values(generator: Generator) -> None:
    q = GaussianMixture(K)(torch.randn(B, N, 3 * K, device="meta"))
    p = TiltedMarginals(q, torch.sin, 8)
    x = p.sample(generator=generator, temperature=0.7)
    fresh = p.sampled_log_prob(x, 3, generator=generator)
    for answer in (x, fresh, p.log_prob(x), p.mode(), p.mean(), p.quantile(0.3), p.entropy(), p.cdf(x)):
        assert answer.device.type == "meta"
        assert answer.shape == (B, N)
