"""DDPM and RePaint against a Gaussian whose denoiser, law and posterior are known; and their bookkeeping."""

import numpy as np
import pytest
import torch
from torch import Generator, Tensor, nn

from anyfill.corruption import NoiseSchedule
from anyfill.likelihoods import UnitGaussian
from anyfill.model import Model
from anyfill.networks.network import Unspecified
from anyfill.objectives import DenoisingLoss
from anyfill.questions import Question
from anyfill.recipes import ddpm
from anyfill.rows import Rows
from anyfill.samplers import RePaint, sample

COVARIANCE = torch.tensor([[1.0, 0.8, 0.3], [0.8, 1.0, 0.5], [0.3, 0.5, 1.0]]).double() * 0.5


class ExactDenoiser(nn.Module, Unspecified):
    """E[e | x_t] for rows from N(0, C): sqrt(1 - a) (a C + (1 - a) I)^-1 x_t."""

    outputs = 1
    context_width = 1
    variables = 3

    def __init__(self, schedule: NoiseSchedule) -> None:
        super().__init__()
        self.schedule = schedule

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        assert context is not None
        assert bool(known.all())
        time = (context[0, 0] * self.schedule.times / 1000).round().long()
        a = self.schedule.kept()[time]
        inside = a * COVARIANCE + (1 - a) * torch.eye(3)
        return ((1 - a).sqrt() * torch.linalg.solve(inside, x.double().T).T).to(x.dtype).unsqueeze(-1)


def exact(schedule: NoiseSchedule) -> Model:
    return Model(ExactDenoiser(schedule), UnitGaussian())


def test_calls_are_as_many_as_the_paper_makes() -> None:
    assert len(RePaint(times=250, jump=10, resamplings=10).calls()) == 2410
    assert sum(back for _, back in RePaint(times=250, jump=10, resamplings=10).calls()) == 2160
    assert len(RePaint(times=100, jump=10, resamplings=10).calls()) == 910
    assert len(RePaint(times=100, jump=5, resamplings=5).calls()) == 480
    assert [time for time, _ in RePaint(times=4, jump=2, resamplings=1).calls()] == [3, 2, 1, 0]
    assert RePaint(times=4, jump=2, resamplings=2).calls() == [(3, 0), (2, 0), (1, 0), (2, 2), (1, 0), (0, 0)]


def law(policy: RePaint, value: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of what the sampler draws, exactly: every step of it is linear with Gaussian noise.

    Written from the papers' formulas, with the value of the first variable given (None: nothing is).
    """
    kept = policy.schedule.kept()[policy.schedule.spread(policy.times)].numpy()
    before = np.concatenate([[1.0], kept[:-1]])
    covariance, one = COVARIANCE.numpy(), np.eye(3)
    mean, spread = np.zeros(3), np.eye(3)
    for call, (time, renoised) in enumerate(policy.calls()):
        for at in range(time - renoised + 1, time + 1):
            beta = 1 - kept[at] / before[at]
            mean, spread = np.sqrt(1 - beta) * mean, (1 - beta) * spread + beta * one
        a, e = kept[time], before[time]
        b = 1 - a / e
        if value is not None:
            mean[0] = np.sqrt(a) * value if call else 0.0
            spread[0, :] = spread[:, 0] = 0.0
            spread[0, 0] = 1 - a if call else 1.0
        noise = np.sqrt(1 - a) * np.linalg.inv(a * covariance + (1 - a) * one)
        clean = (one - np.sqrt(1 - a) * noise) / np.sqrt(a)
        step = (np.sqrt(e) * b * clean + np.sqrt(1 - b) * (1 - e) * one) / (1 - a)
        mean, spread = step @ mean, step @ spread @ step.T + b * (1 - e) / (1 - a) * one
    return mean, spread


def drawn(policy: RePaint, value: float | None, draws: int, generator: Generator) -> Tensor:
    x = torch.tensor([[value or 0.0, 0.0, 0.0]]).repeat(draws, 1)
    question = Question.of(3, given=[] if value is None else [0], batch=draws)
    model = exact(policy.schedule)
    return sample(model, x, question, policy=policy, generator=generator, allow_untrained=True).x.double()


def test_ddpm_draws_have_their_exact_law_which_tends_to_that_of_the_data(generator) -> None:
    """12,000 draws within 5 standard errors; and the law itself, as the number of times grows."""
    policy = RePaint(NoiseSchedule(200, 5e-4, 0.1), 200, 10, 1)
    got = drawn(policy, None, 12_000, generator)
    mean, spread = law(policy, None)
    assert float((torch.cov(got.T) - torch.from_numpy(spread)).abs().max()) < 5 * 0.5 * (2 / 12_000) ** 0.5
    assert float((got.mean(0) - torch.from_numpy(mean)).abs().max()) < 5 * (0.5 / 12_000) ** 0.5
    gaps = [np.abs(law(RePaint(times=t, resamplings=1), None)[1] - COVARIANCE.numpy()).max() for t in (50, 250, 1000)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.006


def test_repaint_draws_have_their_exact_law_which_tends_to_the_posterior(generator) -> None:
    """Given the first value: 6,000 draws within 5 standard errors; more resamplings lead to p(others | first)."""
    value = 1.2
    gain = (COVARIANCE[1:, 0] / COVARIANCE[0, 0]).numpy()
    mean, spread = gain * value, COVARIANCE[1:, 1:].numpy() - np.outer(gain, COVARIANCE[0, 1:].numpy())

    def gaps(times: int, resamplings: int) -> tuple[float, float]:
        found_mean, found = law(RePaint(times=times, resamplings=resamplings), value)
        return float(np.abs(found_mean[1:] - mean).max()), float(np.abs(found[1:, 1:] - spread).max())

    policy = RePaint(NoiseSchedule(200, 5e-4, 0.1), 100, 10, 5)
    got = drawn(policy, value, 6000, generator)
    assert bool((got[:, 0] == torch.tensor(value)).all())
    found_mean, found = law(policy, value)
    open_ = got[:, 1:]
    assert float((open_.mean(0) - torch.from_numpy(found_mean[1:])).abs().max()) < 5 * (0.5 / 6000) ** 0.5
    assert float((torch.cov(open_.T) - torch.from_numpy(found[1:, 1:])).abs().max()) < 5 * 0.5 * (2 / 6000) ** 0.5
    once, few, many = gaps(250, 1), gaps(250, 5), gaps(250, 20)
    assert once[0] > 0.3  # what is put in does not know what stands around it
    assert once[0] > few[0] > many[0]
    assert many[0] < 0.04
    assert gaps(500, 10)[1] < 0.75 * gaps(250, 10)[1]  # and the spread is as good as the times are fine


def test_the_loss_is_half_the_squared_error_of_the_noise(generator) -> None:
    """With the exact denoiser its mean is the entropy-like bound 1/2 E var(e | x_t) + constant, by quadrature in t."""
    schedule = NoiseSchedule(50, 1e-3, 0.2)
    rows = torch.distributions.MultivariateNormal(torch.zeros(3).double(), COVARIANCE).sample((20_000,)).float()
    model, loss = exact(schedule), DenoisingLoss(3, schedule)
    kept, expected = schedule.kept(), 0.0
    for a in kept:
        precision = torch.linalg.inv(a * COVARIANCE + (1 - a) * torch.eye(3))
        expected += float((3 - (1 - a) * precision.trace()) / 2) / len(kept)
    expected += 1.5 * float(torch.log(torch.tensor(2 * torch.pi)))

    found = 0.0
    for time in range(50):  # the toy denoiser takes one time for a batch
        noise = torch.randn(20_000, 3, generator=generator)
        a = kept[time].float()
        noisy = a.sqrt() * rows + (1 - a).sqrt() * noise
        answer = model.likelihood(model.network(noisy, noisy == noisy, schedule.told(torch.full((20_000,), time))))
        found += float(-answer.log_prob(noise).sum(1).mean()) / 50
    assert found == pytest.approx(expected, abs=0.02)
    torch.manual_seed(0)
    net = ddpm.model((2, 2), width=8, blocks=1)
    value = ddpm.objective(4)(net, Rows.from_values(torch.zeros(3, 4)), generator=generator)
    assert value.shape == (3,)
    assert bool(value.isfinite().all())
    assert loss.factorizations == frozenset()


def test_levels_and_numbers_are_each_others_inverse() -> None:
    levels = torch.arange(17)
    assert torch.equal(ddpm.levels_of(ddpm.scaled(levels, 17), 17), levels)
    with pytest.raises(ValueError, match="times: expected at most 100"):
        RePaint(NoiseSchedule(100), times=200)
