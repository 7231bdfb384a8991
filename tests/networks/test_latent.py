"""Latent variable models against probabilistic PCA, whose every conditional is known."""

import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from anyfill.likelihoods import Bernoulli, Categorical, Gaussian, GaussianMixture, Pooled
from anyfill.likelihoods import Mixed as MixedLikelihood
from anyfill.model import Model
from anyfill.networks import Discrete, LatentVariable, Mixed, Network, Real
from anyfill.networks.latent import normal_points
from anyfill.questions import Factorization
from anyfill.tables.gaussian_joint import GaussianJoint
from anyfill.training import load_model, save_model

N, D, NOISE = 4, 2, 0.5


def loadings() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(N, D, generator=generator), torch.randn(N, generator=generator)


def pca(draws: int, *, depth: int = 0) -> LatentVariable:
    """x = W z + b + noise: a linear decoder; the encoder is the prior (depth 0) or an arbitrary wrong one."""
    torch.manual_seed(0)
    base = Gaussian()
    net = LatentVariable(Real(), N, base, latent=D, draws=draws, width=16, depth=depth)
    weights, offset = loadings()
    with torch.no_grad():
        for parameter in net.encoder.parameters():
            parameter.mul_(1.0 if depth else 0.0)
        net.encoder[-1].bias[D:] += 0.5 if depth else 0.0  # wider than the posterior: weights with a finite variance
        net.decoder = torch.nn.Sequential(torch.nn.Linear(D, N * 2))
        net.decoder[0].weight.copy_(torch.stack([weights, torch.zeros(N, D)], 1).flatten(0, 1))
        net.decoder[0].bias.copy_(base.params(offset, torch.full((N,), NOISE)).flatten())
    return net


def exact() -> GaussianJoint:
    weights, offset = loadings()
    covariance = weights.double() @ weights.double().T + NOISE**2 * torch.eye(N)
    return GaussianJoint(Real(), N, 2).set_moments(offset, covariance)


def questions() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    weights, offset = loadings()
    z = torch.randn(12, D, generator=generator)
    x = z @ weights.T + offset + NOISE * torch.randn(12, N, generator=generator)
    return x, torch.rand(12, N, generator=generator) < 0.5


@pytest.mark.parametrize("depth", [0, 1], ids=["the prior as q", "a wrong q"])
@torch.no_grad()
def test_the_answer_tends_to_the_exact_conditional_of_probabilistic_pca(depth: int) -> None:
    x, known = questions()
    mean, variance = exact().conditional(x, known)
    errors = []
    for draws in (8, 64, 1024):
        model = Model(pca(draws, depth=depth), Pooled(Gaussian(), draws, weighted=True))
        marginals = model.marginals(x, known)
        spread = (marginals.quantile(norm.cdf(1.0)) - marginals.quantile(norm.cdf(-1.0))) / 2  # scale of a Gaussian
        unknown = ~known
        errors.append(float(((marginals.mean() - mean).abs() + (spread - variance.sqrt()).abs())[unknown].mean()))
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert errors[2] < 0.01


@pytest.mark.parametrize("depth", [0, 1], ids=["the prior as q", "a wrong q"])
@torch.no_grad()
def test_the_evidence_tends_to_the_exact_one(depth: int) -> None:
    x, known = questions()
    joint = exact()
    mean, covariance = joint.mean, joint.covariance
    wanted = torch.tensor(
        [
            float(torch.distributions.MultivariateNormal(mean[k], covariance[k][:, k]).log_prob(row[k].double()))
            if bool(k.any())
            else 0.0
            for row, k in zip(x, known)
        ]
    )
    net = pca(8, depth=depth)
    errors = [float((net.log_evidence(x, known, draws) - wanted).abs().mean()) for draws in (None, 128, 2048)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert errors[2] < 0.02
    assert float(net.log_evidence(x, torch.zeros_like(known), 2048).abs().max()) < 0.02  # p(nothing) = 1


@torch.no_grad()
def test_draws_carry_the_densities_that_torch_computes(generator) -> None:
    x, known = questions()
    net = pca(3, depth=1)
    noise = torch.randn(len(x), 5, D, generator=generator)
    drawn = net.draw(x, known, noise)
    mean, scale = net.posterior(x, known)
    q = torch.distributions.Normal(mean.unsqueeze(1), scale.unsqueeze(1))
    z = q.loc + q.scale * noise
    prior = torch.distributions.Normal(0.0, 1.0)
    torch.testing.assert_close(
        drawn.log_ratio.float(), (prior.log_prob(z) - q.log_prob(z)).sum(-1), atol=1e-4, rtol=1e-4
    )
    weights, offset = loadings()
    scores = torch.distributions.Normal(z @ weights.T + offset, NOISE).log_prob(x.unsqueeze(1))
    wanted = torch.where(known.unsqueeze(1), scores, 0.0).sum(-1)
    torch.testing.assert_close(drawn.log_likelihood.float(), wanted, atol=1e-3, rtol=1e-3)
    assert drawn.params.shape == (len(x), 5, N, 2)


def mixed_net(**options: object) -> LatentVariable:
    torch.manual_seed(4)
    base = MixedLikelihood((Gaussian(), Categorical(3), GaussianMixture(2), Bernoulli()))
    return LatentVariable(Mixed((0, 3, 0, 2)), 4, base, latent=3, draws=8, width=16, depth=2, **options)  # type: ignore[arg-type]


def mixed_rows() -> tuple[Tensor, Tensor]:
    x = torch.tensor([[0.5, 2.0, -1.0, 1.0], [1.5, 0.0, 0.3, 0.0], [-2.0, 1.0, 0.1, 1.0]])
    return x, torch.tensor([[True, False, True, False], [False, True, False, True], [False] * 4])


@pytest.mark.parametrize("told", [True, False])
@torch.no_grad()
def test_unknown_values_are_never_read_and_rows_do_not_see_each_other(told: bool) -> None:
    net = mixed_net(told=told)
    assert isinstance(net, Network)
    x, known = mixed_rows()
    answer = net(x, known)
    assert answer.shape == (3, 4, net.outputs)
    assert net.outputs == Pooled(net.likelihood, 8, weighted=True).width
    assert torch.equal(answer, net(torch.where(known, x, torch.nan), known))
    assert torch.equal(net.log_evidence(x, known), net.log_evidence(torch.where(known, x, torch.nan), known))
    apart = torch.cat([net(x[row : row + 1], known[row : row + 1]) for row in range(3)])
    torch.testing.assert_close(answer, apart, atol=1e-5, rtol=1e-5)
    flipped = x.clone()
    flipped[0, 0] += 1.0
    assert not torch.equal(answer[0], net(flipped, known)[0])


@torch.no_grad()
def test_an_unknown_code_is_not_the_first_code() -> None:
    torch.manual_seed(0)
    net = LatentVariable(Discrete(3), 2, Categorical(3), 2, 4, 8, 1, told=False)
    x = torch.zeros(2, 2, dtype=torch.int64)
    mean, _ = net.posterior(x, torch.tensor([[True, True], [True, False]]))
    assert not torch.equal(mean[0], mean[1])


@torch.no_grad()
def test_the_answer_is_the_weighted_pool_of_its_draws() -> None:
    x, known = mixed_rows()
    for importance in (True, False):
        net = mixed_net(importance=importance)
        drawn = net.draw(x, known, net.noise)
        weights = (drawn.log_likelihood + drawn.log_ratio).softmax(1) if importance else torch.full((3, 8), 1 / 8)
        of_draws = torch.stack([net.likelihood(drawn.params[:, k]).log_prob(x) for k in range(8)], 1)
        wanted = (of_draws + weights.log().unsqueeze(2)).logsumexp(1)
        found = Model(net, Pooled(net.likelihood, 8, weighted=True)).marginals(x, known).log_prob(x)
        torch.testing.assert_close(found, wanted.float(), atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_the_evidence_of_many_rows_is_that_of_each(monkeypatch) -> None:
    net = mixed_net()
    x, known = mixed_rows()
    whole = net.log_evidence(x, known, 50)
    monkeypatch.setattr("anyfill.networks.latent._CHUNK", 1)
    torch.testing.assert_close(net.log_evidence(x, known, 50), whole)


def test_the_fixed_points_are_spread_like_the_normal_law() -> None:
    points = normal_points(1024, 5, seed=3)
    assert float(points.mean(0).abs().max()) < 0.01
    assert float((points.std(0) - 1).abs().max()) < 0.01
    ranks = torch.tensor(norm.cdf(points.numpy())).sort(0).values
    ideal = (torch.arange(1024).double().unsqueeze(1) + 0.5) / 1024
    assert float((ranks - ideal).abs().max()) < 2 / 1024  # one point in each of 1024 equal strips, as Sobol's are
    assert torch.equal(points, normal_points(1024, 5, seed=3))
    assert not torch.equal(points, normal_points(1024, 5, seed=4))


@torch.no_grad()
def test_a_saved_model_answers_bit_for_bit(tmp_path) -> None:
    net = mixed_net(activation="tanh", told=False, seed=7)
    model = Model(net, Pooled(net.likelihood, 8, weighted=True), factorizations={Factorization.ANY_ORDER})
    save_model(model, tmp_path)
    again = load_model(tmp_path)
    assert torch.equal(again.network(*mixed_rows()), net(*mixed_rows()))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"latent": 0}, "latent: expected a whole number"),
        ({"draws": 0}, "draws: expected a whole number"),
        ({"depth": -1}, "depth: expected a whole number from 0"),
        ({"activation": "sine"}, "activation: expected 'relu' or 'tanh'"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        LatentVariable(Real(), 2, Gaussian(), **options)  # type: ignore[arg-type]


def test_a_likelihood_for_another_number_of_draws_is_refused() -> None:
    with pytest.raises(ValueError, match="outputs of the network"):
        Model(LatentVariable(Real(), 2, Gaussian(), 2, 4, 8, 1), Pooled(Gaussian(), 5, weighted=True))
    with pytest.raises(ValueError, match="draws: expected a whole number"):
        LatentVariable(Real(), 2, Gaussian(), 2, 4, 8, 1).log_evidence(torch.zeros(1, 2), torch.ones(1, 2) > 0, 0)
