"""Losses: what each paper's loss is, against independent formulas and the exact oracle."""

import math

import pytest
import torch

from anyfill import recipes
from anyfill.corruption import Absorbing, Uniform
from anyfill.likelihoods import Categorical, Gaussian
from anyfill.model import Model
from anyfill.networks import Discrete, EnumeratedJoint, OnePassTransformer, Real, ResidualMLP, Transformer
from anyfill.objectives import Damped, Everyone, MaskedLoss, Mean, Objective, OnePassLoss, Rescaled, Sum
from anyfill.questions import (
    Bernoulli,
    Factorization,
    Increasing,
    Question,
    UniformCardinality,
    UniformSplits,
    enumerate_questions,
)
from anyfill.rank import NEVER
from anyfill.rows import Rows

N, K = 4, 2


@pytest.fixture
def oracle() -> Model:
    joint = EnumeratedJoint.random(N, K, generator=torch.Generator().manual_seed(5))
    return Model(joint, Categorical(K))


def all_rows() -> Rows:
    codes = torch.arange(K**N)
    x = torch.stack([(codes // K**place) % K for place in reversed(range(N))], 1)
    return Rows(x, torch.ones_like(x, dtype=torch.bool))


def entropy(model: Model, rows: Rows) -> float:
    joint = model.network
    assert isinstance(joint, EnumeratedJoint)
    log_p = joint.log_prob(rows.x, torch.ones_like(rows.present))
    return float(-(log_p.exp() * log_p).sum())


RECIPES = {
    "one_pass": recipes.one_pass.objective,
    "one_pass_filler": recipes.one_pass.objective_filler,
    "ardm": recipes.ardm.objective,
    "mac_next": recipes.mac.objective,
    "mac_rest": recipes.mac.objective_rest,
    "mac_inpainting": recipes.mac.objective_inpainting,
}


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_an_objective_that_trains_by_gradient(name: str, generator) -> None:
    objective = RECIPES[name](N)
    assert isinstance(objective, Objective)
    net = OnePassTransformer if isinstance(objective, OnePassLoss) else Transformer
    model = Model(net(Discrete(K), (N,), K, 16, 1, 2), Categorical(K))
    loss = objective(model, all_rows(), generator=generator)
    assert loss.shape == (K**N,)
    loss.mean().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters() if p.requires_grad)
    assert any(bool((p.grad != 0).any()) for p in model.parameters() if p.grad is not None)


def test_the_chain_loss_of_the_oracle_is_its_exact_negative_log_probability_in_every_order(oracle, generator) -> None:
    rows = all_rows()
    exact = -oracle.network.log_prob(rows.x, torch.ones_like(rows.present))
    for _ in range(5):
        torch.testing.assert_close(OnePassLoss(UniformSplits(N))(oracle, rows, generator=generator).double(), exact)


def test_ardm_is_an_unbiased_estimate_of_the_chain(oracle) -> None:
    # Expectation over questions by enumeration, over data by the joint itself: the entropy, exactly.
    rows, objective, total = all_rows(), recipes.ardm.objective(N), 0.0
    weight = oracle.network.log_prob(rows.x, torch.ones_like(rows.present)).exp()
    for question in enumerate_questions(UniformCardinality(N)):
        rank = torch.full((K**N, N), NEVER)
        rank[:, list(question.given)] = -1
        rank[:, list(question.asked)] = 0
        total += float(question.probability) * float((weight * objective.loss(oracle, rows, rank)).sum())
    assert total == pytest.approx(entropy(oracle, rows), abs=1e-6)


def test_mac_next_asks_one_variable_and_mac_rest_averages_over_the_unknown(oracle, generator) -> None:
    rows = all_rows()
    rank = recipes.mac.objective(N).sample_rank(200, generator=generator)
    assert bool(((rank == 0).sum(1) == 1).all())
    rest = recipes.mac.objective_rest(N)
    rank = rest.sample_rank(len(rows), generator=generator)
    terms = -oracle.marginals(rows.x, rank < 0).log_prob(rows.x)
    expected = torch.stack([terms[row][rank[row] == 0].mean() for row in range(len(rows))])
    torch.testing.assert_close(rest.loss(oracle, rows, rank), expected, check_dtype=False)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [(Sum(), 1.0), (Mean(), 1 / 3), (Rescaled(), 5 / 3), (Damped(), 1 / 4), (Everyone(), 1.0)],
    ids=lambda part: type(part).__name__,
)
def test_weights_are_those_of_the_papers(weights, expected: float) -> None:
    given_ = torch.tensor([[True, True, False, False, False, False]])
    asked = torch.tensor([[False, False, True, True, True, False]])
    out = weights(Question(given_, asked))[0]
    assert out[2].item() == pytest.approx(expected)
    assert out[5].item() == 0.0
    assert (out[0].item() != 0.0) == isinstance(weights, Everyone)


@pytest.mark.parametrize("name", RECIPES)
def test_a_missing_value_is_never_asked_and_never_told(name: str, generator) -> None:
    objective = RECIPES[name](N)
    network = OnePassTransformer if isinstance(objective, OnePassLoss) else Transformer
    torch.manual_seed(0)
    net = network(Real(), (N,), 2, 16, 1, 2, positions="learned")
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model = Model(net, Gaussian())
    x = torch.randn(20, N, generator=generator)
    present = torch.rand(20, N, generator=generator) < 0.7
    rank = objective.sample_rank(20, generator=generator)
    clean = objective.loss(model, Rows(torch.where(present, x, 0.0), present), rank)
    dirty = objective.loss(model, Rows(torch.where(present, x, 7.5), present), rank)
    assert torch.equal(clean, dirty)
    assert bool(clean.isfinite().all())
    nothing = objective.loss(model, Rows(x, torch.zeros_like(present)), rank)
    assert torch.equal(nothing, torch.zeros(20))


def test_unrolling_feeds_the_answer_back_and_averages_the_steps(generator) -> None:
    torch.manual_seed(0)
    net = ResidualMLP(Discrete(3), N, 3, width=16, depth=1)
    torch.nn.init.normal_(net.leave.weight, std=1.0)
    model = Model(net, Categorical(3), corruption=Uniform(3))
    rows = Rows(torch.randint(3, (64, N), generator=generator), torch.ones(64, N, dtype=torch.bool))
    one, two = (MaskedLoss(Bernoulli(N), Damped(), unroll=unroll) for unroll in (1, 2))
    rank = one.sample_rank(64, generator=generator)
    noise = torch.Generator().manual_seed(9)
    loss = two.loss(model, rows, rank, generator=noise)
    noise.manual_seed(9)
    x = model.corruption.fill(rows.x, rank < 0, generator=noise)
    expected = torch.zeros(64)
    for _ in range(2):
        marginals = model.marginals(x, rank < 0)
        asked = rank == 0
        expected += torch.where(asked, -marginals.log_prob(rows.x), 0.0).sum(1) / (1 + asked.sum(1))
        x = torch.where(rank < 0, x, marginals.sample(generator=noise))
    torch.testing.assert_close(loss, expected / 2)
    noise.manual_seed(9)
    assert not torch.equal(one.loss(model, rows, rank, generator=noise), loss)


def test_unrolling_what_is_never_shown_is_refused(generator) -> None:
    model = Model(ResidualMLP(Discrete(3), N, 3, width=16, depth=1), Categorical(3), corruption=Absorbing())
    with pytest.raises(ValueError, match="corruption with unroll > 1"):
        MaskedLoss(Bernoulli(N), unroll=2)(model, all_rows(), generator=generator)
    with pytest.raises(ValueError, match="unroll: expected a whole number from 1 up"):
        MaskedLoss(Bernoulli(N), unroll=0)
    scrambled = Model(model.network, Categorical(3), corruption=Uniform(3))  # type: ignore[arg-type]
    objective = MaskedLoss(Bernoulli(N))
    with pytest.raises(ValueError, match="generator: expected one"):
        objective.loss(scrambled, all_rows(), objective.sample_rank(K**N, generator=generator))


def test_objectives_license_the_readings_they_train() -> None:
    assert recipes.mac.objective(N).factorizations == {Factorization.DIFFERENCE}
    assert recipes.mac.objective_rest(N).factorizations == {Factorization.DIFFERENCE}
    assert recipes.mac.objective_inpainting(N).factorizations == {Factorization.DIFFERENCE, Factorization.INPAINTING}
    assert recipes.ardm.objective(N).factorizations == {Factorization.ANY_ORDER}
    assert recipes.one_pass.objective_filler(N).factorizations == {Factorization.DIFFERENCE, Factorization.INPAINTING}
    assert recipes.one_pass.objective(N).factorizations == {
        Factorization.DIFFERENCE,
        Factorization.INPAINTING,
        Factorization.DIRECT,
    }


def test_the_joint_share_of_rows_reads_from_first_to_last(generator) -> None:
    first_to_last = torch.arange(8)
    rank = OnePassLoss(UniformCardinality(8), joint_share=1.0).sample_rank(50, generator=generator)
    assert bool((rank.argsort(1) == first_to_last).all())
    rank = OnePassLoss(UniformCardinality(8), joint_share=0.25).sample_rank(20_000, generator=generator)
    share = float((rank.argsort(1) == first_to_last).all(1).double().mean())
    # 1/4 on purpose, and by chance when given is a prefix in sorted order: sum over sizes 0..7 of 1 / (8 C(8, k)).
    chance = sum(1 / (8 * math.comb(8, k)) for k in range(8))
    assert share == pytest.approx(0.25 + 0.75 * chance, abs=4 * math.sqrt(0.25 / 20_000))
    assert OnePassLoss(UniformCardinality(8)).follows == Increasing()
