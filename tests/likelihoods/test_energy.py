"""ACE's likelihood: the proposal where nothing is corrected, a density where something is, exact for codes."""

import pytest
import torch
from torch import Generator, Tensor

from anyfill.likelihoods import (
    Categorical,
    DiscreteMarginals,
    EnergyMarginals,
    EnergyMixture,
    GaussianMixture,
    Likelihood,
    Marginals,
    TiltedMarginals,
    energy,
)
from anyfill.likelihoods.mixed import marginals_at

SIZES = (0, 3, 0, 2)
N, K = len(SIZES), 3


def make(sizes: tuple[int, ...] = SIZES, *, random: bool = False, points: int = 32) -> EnergyMixture:
    torch.manual_seed(4)
    likelihood = EnergyMixture(len(sizes), sizes, components=K, latent=5, units=8, blocks=2, points=points)
    if random:
        for parameter in likelihood.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    return likelihood


def params_for(likelihood: EnergyMixture, rows: int, generator: Generator) -> Tensor:
    return torch.randn(rows, likelihood.variables, likelihood.width, generator=generator)


def test_the_likelihood_and_its_marginals_satisfy_the_protocols(generator: Generator) -> None:
    kinds = {(0, 0): TiltedMarginals, (2, 3): DiscreteMarginals, SIZES: EnergyMarginals}
    for sizes, kind in kinds.items():
        likelihood = make(sizes, random=True)
        assert isinstance(likelihood, Likelihood)
        params = params_for(likelihood, 7, generator).requires_grad_()
        marginals = likelihood(params)
        assert isinstance(marginals, Marginals)
        assert isinstance(marginals, kind)
        x = marginals.sample(generator=generator)
        floats = [marginals.log_prob(x), marginals.mean(), marginals.entropy()]
        for answer in (x, *floats, marginals.mode(), marginals.quantile(0.1)):
            assert answer.shape == (7, len(sizes))
        assert all(answer.dtype == torch.float32 and bool(answer.isfinite().all()) for answer in floats)
        assert not x.requires_grad
        assert marginals.log_prob(x).requires_grad
        assert bool((marginals.log_prob(marginals.mode()) >= marginals.log_prob(x) - 1e-2).all())
        assert bool((marginals.quantile(0.1) <= marginals.quantile(0.9)).all())
    assert make((2, 3)).exact
    assert not make(SIZES).exact


def test_before_training_it_is_its_proposal(generator: Generator) -> None:
    likelihood = make()
    params = params_for(likelihood, 50, generator)
    marginals = likelihood(params)
    x = torch.cat([torch.randn(50, 1, generator=generator), torch.randint(2, (50, 3), generator=generator)], 1)
    mixture = GaussianMixture(K)(params[..., : 3 * K])
    for j, size in enumerate(SIZES):
        proposal = Categorical(size)(params[..., :size]) if size else mixture
        for mine, its in (
            (marginals.log_prob(x), proposal.log_prob(x)),
            (marginals.mean(), proposal.mean()),
            (marginals.entropy(), proposal.entropy()),
            (marginals.quantile(0.7), proposal.quantile(0.7)),
        ):
            torch.testing.assert_close(mine[:, j], its[:, j].float(), atol=2e-5, rtol=1e-5)


def test_densities_integrate_and_probabilities_sum_to_1(generator: Generator) -> None:
    likelihood = make(random=True, points=64)
    with torch.no_grad():
        marginals = likelihood(params_for(likelihood, 5, generator))
        grid = torch.linspace(-12, 12, 801)
        density = torch.stack([marginals.log_prob(torch.full((5, N), float(value))).exp() for value in grid])
        mass = density.sum(0) * (grid[1] - grid[0])
        codes = torch.stack([marginals.log_prob(torch.full((5, N), float(code))).exp() for code in range(4)])
    assert float((mass[:, [0, 2]] - 1).abs().max()) < 0.02
    torch.testing.assert_close(codes.sum(0)[:, [1, 3]], torch.ones(5, 2))
    assert float(codes[3, :, 1].max()) == 0.0
    assert float(codes[2:, :, 3].max()) == 0.0


def test_the_normaliser_of_codes_is_the_sum_over_all_codes(generator: Generator) -> None:
    likelihood = make((4,), random=True)
    params = params_for(likelihood, 6, generator)
    start = likelihood.energy.start(params[..., -5:], torch.tensor([0]))
    correction = likelihood.energy.of_codes(start, torch.arange(4), False)
    wanted = (params[..., :4] + correction).softmax(-1)
    torch.testing.assert_close(likelihood(params).log_probs.exp(), wanted)


def test_the_correction_stays_within_its_bound_and_depends_on_variable_value_and_latent(generator: Generator) -> None:
    likelihood = make((0, 0), random=True)
    params = params_for(likelihood, 3, generator)
    marginals = likelihood(params)
    assert isinstance(marginals, TiltedMarginals)
    far = marginals.tilt(torch.tensor([-1e6, 0.0, 1e6]).expand(3, 2, 3))
    assert float(far.detach().abs().max()) <= likelihood.bound
    same = params[:, :1].expand(3, 2, -1)
    by_variable = likelihood(same).log_prob(torch.ones(3, 2))
    assert not torch.allclose(by_variable[:, 0], by_variable[:, 1])
    other = params.clone()
    other[..., -1] += 1.0  # of the latent vector
    assert not torch.allclose(marginals.log_prob(torch.ones(3, 2)), likelihood(other).log_prob(torch.ones(3, 2)))


@pytest.mark.parametrize("sizes", [(0, 0, 0), (3, 2, 4), SIZES])
def test_asked_one_by_one_each_variable_answers_as_among_all(sizes: tuple[int, ...], generator: Generator) -> None:
    likelihood = make(sizes, random=True)
    params = params_for(likelihood, 6, generator)
    variable = torch.randint(len(sizes), (6, 2), generator=generator)
    picked = params.gather(1, variable.unsqueeze(-1).expand(6, 2, likelihood.width))
    x = torch.randint(2, (6, len(sizes)), generator=generator).float()
    some, every = marginals_at(likelihood, picked, variable), likelihood(params)
    for mine, its in (
        (some.log_prob(x.gather(1, variable)), every.log_prob(x)),
        (some.mean(), every.mean()),
        (some.quantile(0.4).float(), every.quantile(0.4).float()),
    ):
        torch.testing.assert_close(mine, its.gather(1, variable), atol=1e-5, rtol=1e-5)
    some.log_prob(x.gather(1, variable)).sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in likelihood.parameters() if p.grad is not None)


def test_rows_do_not_see_each_other_and_portions_change_nothing(
    generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    likelihood = make(random=True).eval()
    params = params_for(likelihood, 9, generator)
    x = torch.randint(2, (9, N), generator=generator).float()
    with torch.no_grad():
        whole = likelihood(params).log_prob(x)
        apart = torch.cat([likelihood(params[i : i + 1]).log_prob(x[i : i + 1]) for i in range(9)])
        monkeypatch.setattr(energy, "_CHUNK", 700)
        portions = likelihood(params).log_prob(x)
        none = likelihood(params[:0])
        assert none.log_prob(x[:0]).shape == none.mean().shape == (0, N)
    torch.testing.assert_close(apart, whole, atol=1e-5, rtol=0)
    torch.testing.assert_close(portions, whole, atol=1e-5, rtol=0)


def test_answers_asked_for_later_are_of_the_moment_the_marginals_were_made(generator: Generator) -> None:
    torch.manual_seed(4)
    likelihood = EnergyMixture(2, components=K, latent=5, units=8, blocks=2, dropout=0.5)
    torch.nn.init.normal_(likelihood.energy.leave.weight)
    params = params_for(likelihood, 4, generator)
    likelihood.eval()
    with torch.no_grad():
        marginals = likelihood(params)
        now = marginals.mean()
    likelihood.train()
    fresh = likelihood(params)
    assert torch.equal(marginals.mean(), now)  # no dropout, and no gradient
    assert not marginals.log_prob(torch.zeros(4, 2)).requires_grad
    assert not torch.equal(fresh.mean(), now)
    assert fresh.log_prob(torch.zeros(4, 2)).requires_grad


def test_the_same_parameters_give_the_same_numbers_and_16_bits_are_widened(generator: Generator) -> None:
    likelihood = make(random=True)
    params = params_for(likelihood, 4, generator)
    x = torch.zeros(4, N)
    assert torch.equal(likelihood(params).log_prob(x), likelihood(params).log_prob(x))
    assert likelihood(params.bfloat16()).log_prob(x).dtype == torch.float32


def test_work_stays_on_the_parameters_device_and_never_waits_for_values(generator: Generator) -> None:
    likelihood = make().to("meta")
    marginals = likelihood(torch.randn(3, N, likelihood.width, device="meta"))
    x = marginals.sample(generator=generator)
    for answer in (x, marginals.log_prob(x), marginals.mode(), marginals.mean(), marginals.quantile(0.3)):
        assert answer.device.type == "meta"
        assert answer.shape == (3, N)


@pytest.mark.parametrize(
    ("make_it", "sentence"),
    [
        (lambda: EnergyMixture(0), "EnergyMixture variables: expected a whole number from 1 up"),
        (lambda: EnergyMixture(2, (0,)), "EnergyMixture sizes: expected 2 numbers of codes"),
        (lambda: EnergyMixture(2, (0, -1)), "EnergyMixture sizes"),
        (lambda: EnergyMixture(2, points=1), "EnergyMixture points: expected a whole number from 2"),
        (lambda: EnergyMixture(2, bound=0.0), "EnergyMixture bound: expected a number above 0"),
        (lambda: EnergyMixture(2, components=0), "components"),
        (lambda: make()(torch.zeros(1, 3, make().width)), "expected 4 variables"),
        (lambda: make()(torch.zeros(1, 4, 2)), "expected a last dimension of 14"),
    ],
)
def test_bad_settings_and_shapes_are_refused_in_one_sentence(make_it, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_it()
