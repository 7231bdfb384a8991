"""Every exported likelihood keeps the promises of the protocols."""

import dataclasses

import pytest
import torch
from torch import Generator

import anyfill.likelihoods as exported
from anyfill.likelihoods import (
    Bernoulli,
    Categorical,
    DiscreteMarginals,
    EnergyMixture,
    Gaussian,
    GaussianMixture,
    Likelihood,
    LogisticMixture,
    Marginals,
    Mixed,
    Poolable,
    Pooled,
    SpikedMixture,
    UnitGaussian,
)

EVERY: list[Likelihood] = [
    Bernoulli(),
    Categorical(5),
    Gaussian(),
    UnitGaussian(),
    GaussianMixture(3),
    LogisticMixture(5, 2),
    SpikedMixture(2, spikes=(0.0, 1.0)),
    SpikedMixture(2, spikes=(0.0,), step=0.5),
    Mixed((Gaussian(), Categorical(3), Bernoulli(), Gaussian())),
    Mixed((SpikedMixture(2, (0.0,)), Categorical(3), Categorical(4), SpikedMixture(2, step=0.5))),
    Pooled(SpikedMixture(2, spikes=(0.0,), step=0.5), 3, weighted=True),
    Pooled(Mixed((SpikedMixture(2, (0.0,)), Categorical(3), Categorical(4), Gaussian())), 2),
]


@pytest.mark.parametrize("likelihood", EVERY, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_likelihoods_and_their_marginals_satisfy_the_protocols(
    likelihood: Likelihood, dtype: torch.dtype, generator: Generator
) -> None:
    assert isinstance(likelihood, Likelihood)
    assert hash(likelihood) == hash(dataclasses.replace(likelihood))  # type: ignore[type-var]
    params = torch.randn(3, 4, likelihood.width, generator=generator).to(dtype).requires_grad_()
    marginals = likelihood(params)
    assert isinstance(marginals, Marginals)
    assert isinstance(marginals, Poolable)
    assert isinstance(marginals, DiscreteMarginals) == isinstance(likelihood, (Bernoulli, Categorical, LogisticMixture))
    x = marginals.sample(generator=generator)
    floats = [marginals.log_prob(x), marginals.mean(), marginals.entropy()]
    for answer in (x, *floats, marginals.mode(), marginals.quantile(0.1)):
        assert answer.shape == (3, 4)
    assert all(answer.dtype == torch.float32 for answer in floats)
    assert not x.requires_grad
    assert marginals.log_prob(x).requires_grad
    assert (marginals.log_prob(marginals.mode()) >= marginals.log_prob(x) - 1e-4).all()
    assert (marginals.quantile(0.1) <= marginals.quantile(0.9)).all()


@pytest.mark.parametrize("likelihood", EVERY, ids=lambda each: type(each).__name__)
def test_work_stays_on_the_parameters_device_and_never_waits_for_values(
    likelihood: Likelihood, generator: Generator
) -> None:
    """The meta device has shapes but no values: reading one, or mixing in a CPU tensor, raises."""
    marginals = likelihood(torch.randn(3, 4, likelihood.width, device="meta"))
    x = marginals.sample(generator=generator)
    for answer in (
        x,
        marginals.log_prob(x),
        marginals.sample(generator=generator, temperature=0.7),
        marginals.mode(),
        marginals.mean(),
        marginals.quantile(0.3),
        marginals.quantile(0.0),
        marginals.entropy(),
    ):
        assert answer.device.type == "meta"
        assert answer.shape == (3, 4)


def test_every_exported_likelihood_is_tested_here() -> None:
    classes = [getattr(exported, name) for name in exported.__all__ if isinstance(getattr(exported, name), type)]
    likelihoods = {c for c in classes if dataclasses.is_dataclass(c) and hasattr(c, "width")}
    with_weights = {EnergyMixture}  # neither hashed by its settings nor without a device: see test_energy.py
    assert likelihoods - with_weights == {type(each) for each in EVERY}
