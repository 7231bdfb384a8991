"""Rows that are told their given block: nothing told is scored, and without such rows nothing has changed."""

import math
from dataclasses import replace

import pytest
import torch

from anyfill import recipes
from anyfill.likelihoods import Categorical, Gaussian
from anyfill.model import Model
from anyfill.networks import Discrete, EnumeratedJoint, OnePassTransformer, Real
from anyfill.objectives import OnePassLoss
from anyfill.questions import (
    Factorization,
    Increasing,
    Question,
    Shuffled,
    UniformCardinality,
    UniformSplits,
    chain_rank,
)
from anyfill.rank import NEVER
from anyfill.rows import Rows
from anyfill.text.recipes import one_pass_spans, text_model, text_objective
from anyfill.training import FitOptions, fit, load_model, save_model

N, K = 5, 3


def model_of(given: str, kind: str = "codes") -> Model:
    torch.manual_seed(2)
    if kind == "codes":
        net, likelihood = OnePassTransformer(Discrete(K), (N,), K, 16, 2, 2, given=given), Categorical(K)  # type: ignore[arg-type]
    else:
        net = OnePassTransformer(Real(), (N,), 2, 16, 2, 2, positions="learned", given=given)  # type: ignore[arg-type]
        likelihood = Gaussian()
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return Model(net, likelihood)


def some_rows(rows: int, generator: torch.Generator) -> Rows:
    return Rows.from_values(torch.randint(K, (rows, N), generator=generator))


@pytest.mark.parametrize("order", [Increasing(), Shuffled()])
@pytest.mark.parametrize("questions", [UniformSplits(N), UniformCardinality(N)])
def test_with_no_row_told_the_loss_is_what_it_was_bit_for_bit(questions, order, generator) -> None:
    """What it was: the given block ranks -g … -1, and every present term is scored."""
    model, rows = model_of("causal"), some_rows(60, generator)
    rows = Rows(rows.x, torch.rand(60, N, generator=generator) < 0.8)
    first, second = (torch.Generator().manual_seed(3) for _ in range(2))
    found = OnePassLoss(questions, order)(model, rows, generator=first)
    question = questions.sample(60, generator=second)
    joint = torch.rand(60, 1, generator=second) < 0.25
    question = Question(question.given & ~joint, question.asked | joint)
    rank = chain_rank(order, question, then_ignored=True, generator=second)
    marginals = model.chain(rows.x, torch.where(rows.present, rank, NEVER), strict=True)
    assert torch.equal(found, -torch.where(rows.present, marginals.log_prob(rows.x), 0.0).sum(1))
    assert torch.equal(torch.rand(4, generator=first), torch.rand(4, generator=second))  # and so many draws


def test_a_told_row_costs_what_is_left_given_the_block_and_another_all_of_it(generator) -> None:
    joint = EnumeratedJoint.random(N, K, generator=generator)
    rows, whole = some_rows(80, generator), torch.ones(80, N, dtype=torch.bool)
    objective = OnePassLoss(UniformSplits(N), conditioned_share=0.5)
    rank = objective.sample_rank(80, generator=generator)
    told = (rank < 0).any(1)
    expected = joint.log_prob(rows.x, whole) - joint.log_prob(rows.x, rank < 0)
    loss = objective.loss(Model(joint, Categorical(K)), rows, rank)
    torch.testing.assert_close(-loss.double(), expected)
    assert 0 < int(told.sum()) < 80
    assert bool((expected[told] > joint.log_prob(rows.x, whole)[told]).all())


@pytest.mark.parametrize(("joint_share", "conditioned_share"), [(0.25, 0.5), (0.0, 0.2), (0.5, 1.0)])
def test_so_many_of_the_rows_that_are_cut_are_told_and_all_others_answer_everything(
    joint_share, conditioned_share, generator
) -> None:
    rows = 20_000
    rank = OnePassLoss(UniformCardinality(8), joint_share=joint_share, conditioned_share=conditioned_share).sample_rank(
        rows, generator=generator
    )
    told = (rank < 0).any(1)
    expected = (1 - joint_share) * conditioned_share * 7 / 8  # all 8 are asked, and nothing given, once in 8
    assert told.double().mean() == pytest.approx(expected, abs=4 * math.sqrt(0.25 / rows))
    place = rank.argsort(1).argsort(1)  # 0 … 7
    block = (rank < 0).sum(1, keepdim=True)
    assert torch.equal((place - block)[rank < 0], rank[rank < 0])  # -g … -1
    number, answered = rank.div(8, rounding_mode="floor"), (rank >= 0) & ~told.unsqueeze(1)
    assert torch.equal(rank[answered] % 8, place[answered])  # then one by one, and rank // 8 says in which block
    assert bool(((number == 0).sum(1)[~told] + (number == 1).sum(1)[~told] == 8).all())
    assert bool(((number < 0) == (rank < 0)).all() and not ((number == 0) & told.unsqueeze(1)).any())


@pytest.mark.parametrize("conditioned_share", [0.0, 0.5])
def test_weighing_questions_makes_every_scored_block_of_a_row_count_alike(conditioned_share, generator) -> None:
    joint = EnumeratedJoint.random(N, K, generator=generator)
    model, rows = Model(joint, Categorical(K)), some_rows(200, generator)
    rows = Rows(rows.x, torch.rand(200, N, generator=generator) < 0.8)
    objective = OnePassLoss(UniformSplits(N), conditioned_share=conditioned_share, weigh="questions")
    rank = objective.sample_rank(200, generator=generator)
    loss = objective.loss(model, rows, rank)
    assert torch.equal(loss, objective.loss(model, Rows(torch.where(rows.present, rows.x, 0), rows.present), rank))
    for row in range(200):
        there, means = rows.present[row], []
        read = torch.zeros(1, N, dtype=torch.bool)
        for number in (-1, 0, 1, 2):  # told, answered, asked, ignored
            block = (rank[row].div(N, rounding_mode="floor") == number) & there
            now = read | block
            told = joint.log_prob(rows.x[row : row + 1], now) - joint.log_prob(rows.x[row : row + 1], read)
            if number >= 0 and bool(block.any()):
                means.append(-float(told) / int(block.sum()))
            read = now
        expected = int(there.sum()) * sum(means) / max(len(means), 1)
        assert float(loss[row]) == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_weighing_questions_leaves_rows_of_one_block_as_they_are(generator) -> None:
    model, rows = model_of("causal"), some_rows(20, generator)
    one = OnePassLoss(UniformSplits(N), joint_share=1.0)
    rank = one.sample_rank(20, generator=generator)
    torch.testing.assert_close(replace(one, weigh="questions").loss(model, rows, rank), one.loss(model, rows, rank))
    with pytest.raises(ValueError, match="weigh: expected 'terms' or 'questions', got 'rows'"):
        replace(one, weigh="rows")


@pytest.mark.parametrize("given", ["causal", "full"])
def test_no_scored_term_sees_its_own_value_or_a_later_one_in_training(given, generator) -> None:
    model = model_of(given, "numbers")
    objective = OnePassLoss(UniformSplits(N), conditioned_share=0.5)
    rank = objective.sample_rank(60, generator=generator)
    x = torch.randn(60, N, generator=generator).requires_grad_()
    marginals = model.chain(x, rank, strict=True)
    terms = marginals.log_prob(torch.zeros(60, N))  # at a fixed value: what is left is what the network saw
    for variable in range(N):
        (slope,) = torch.autograd.grad(terms[:, variable].sum(), x, retain_graph=True)
        scored = rank[:, variable] >= 0
        assert torch.equal((slope != 0)[scored], (rank < rank[:, variable : variable + 1])[scored])
    assert 10 < int((rank < 0).any(1).sum()) < 50
    loss = objective.loss(model, Rows.from_values(x.detach()), rank)
    scored = torch.where(rank >= 0, model.chain(x, rank).log_prob(x), 0.0).sum(1)
    torch.testing.assert_close(loss, -scored, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("given", ["causal", "full"])
def test_a_missing_value_is_never_told_and_never_asked(given, generator) -> None:
    model, objective = model_of(given, "numbers"), OnePassLoss(UniformSplits(N), conditioned_share=0.5)
    x, present = torch.randn(40, N, generator=generator), torch.rand(40, N, generator=generator) < 0.6
    rank = objective.sample_rank(40, generator=generator)
    clean = objective.loss(model, Rows(torch.where(present, x, 0.0), present), rank)
    assert torch.equal(clean, objective.loss(model, Rows(torch.where(present, x, 7.5), present), rank))
    assert bool(clean.isfinite().all())
    assert torch.equal(objective.loss(model, Rows(x, torch.zeros_like(present)), rank), torch.zeros(40))


@pytest.mark.parametrize("shares", [{}, {"joint_share": 1.0, "conditioned_share": 0.5}])
def test_reading_both_ways_is_not_trained_without_rows_that_are_told(shares, generator) -> None:
    objective, rows = OnePassLoss(UniformSplits(N), **shares), some_rows(4, generator)
    objective(model_of("causal"), rows, generator=generator)
    with pytest.raises(ValueError, match="objective: expected rows that are told, as the network reads them both ways"):
        objective(model_of("full"), rows, generator=generator)


def test_a_share_of_told_rows_leaves_the_readings_and_all_of_them_leaves_no_marginals() -> None:
    for make in (recipes.one_pass.objective, recipes.one_pass.objective_filler, one_pass_spans):
        assert make(N, conditioned_share=0.5).factorizations == make(N).factorizations
        assert make(N, conditioned_share=0.5).conditioned_share == 0.5
    assert recipes.one_pass.objective_filler(N, conditioned_share=1.0).factorizations == {Factorization.INPAINTING}
    assert recipes.one_pass.objective(N, Shuffled(), conditioned_share=1.0).factorizations == {Factorization.ANY_ORDER}


def test_a_model_that_reads_both_ways_is_trained_saved_and_loaded(tmp_path, generator) -> None:
    model, objective, rows = (
        model_of("full"),
        recipes.one_pass.objective(N, conditioned_share=0.5),
        some_rows(16, generator),
    )
    done = fit(model, rows, objective, FitOptions(steps=2, batch_size=8, device="cpu"))
    assert math.isfinite(done.loss)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.network.given == "full"
    assert again.factorizations == (objective.factorizations - {Factorization.DIFFERENCE}) | {
        Factorization.MARGINAL
    }  # roles matter to it
    rank = objective.sample_rank(16, generator=generator)
    with torch.no_grad():
        assert torch.equal(objective.loss(model.eval(), rows, rank), objective.loss(again.eval(), rows, rank))


def test_text_recipes_pass_both_settings_on() -> None:
    assert text_model("one_pass_spans", N, K, size="1M", given="full").network.given == "full"
    assert text_model("one_pass_spans", N, K, size="1M").network.given == "causal"
    assert text_objective("one_pass_spans", N, conditioned_share=0.5) == one_pass_spans(N, conditioned_share=0.5)
    both = text_objective("one_pass_filler", N, joint_share=0.5, conditioned_share=0.75)
    assert both == recipes.one_pass.objective_filler(N, joint_share=0.5, conditioned_share=0.75)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: OnePassLoss(UniformSplits(N), conditioned_share=1.5),
            "conditioned_share: expected a number from 0 to 1",
        ),
        (
            lambda: text_objective("ardm", N, conditioned_share=0.5),
            "conditioned_share: expected None, or a one-pass recipe",
        ),
        (
            lambda: text_objective("left_to_right", N, conditioned_share=0.5),
            "conditioned_share: expected None, or a one-pass recipe",
        ),
        (lambda: text_model("ardm", N, K, size="1M", given="full"), "given: expected 'causal', or a one-pass recipe"),
        (lambda: text_model("left_to_right", N, K, size="1M", given="full"), "given: expected 'causal', or"),
        (lambda: text_model("one_pass", N, K, size="1M", given="all"), "given: expected 'causal' or 'full'"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
