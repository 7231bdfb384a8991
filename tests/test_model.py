"""The model: what it refuses to be made of or told, and that one-pass networks are read in w's order."""

import pytest
import torch
from torch import nn

from anyfill import Factorization, Model, Question, Rows, log_prob, recipes, sample
from anyfill.likelihoods import Categorical, Gaussian
from anyfill.likelihoods import Mixed as MixedLikelihood
from anyfill.networks import Discrete, Mixed, OnePassTransformer, Real, ResidualMLP, Transformer
from anyfill.objectives import MaskedLoss, OnePassLoss
from anyfill.questions import Decreasing, Increasing, MacEdges, Mixture, Shuffled, UniformSplits

N = 4


def randomised(net: nn.Module) -> nn.Module:
    torch.manual_seed(2)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.4)
    return net.eval()


@torch.no_grad()
def test_marginals_of_a_one_pass_network_read_the_known_block_in_the_models_order(generator) -> None:
    net = randomised(OnePassTransformer(Discrete(3), (N,), 3, 16, 1, 2))
    x, known = torch.randint(3, (6, N), generator=generator), torch.rand(6, N, generator=generator) < 0.6
    for order in (Increasing(), Decreasing()):
        model = Model(net, Categorical(3), order=order, factorizations=Factorization)  # type: ignore[arg-type]
        mine = model.marginals(x, known).log_prob(x)[~known]
        same = model.given(x, known).marginals().log_prob(x)[~known]
        torch.testing.assert_close(mine, same)
        for row, variable in (~known).nonzero().tolist():
            asked = torch.zeros(1, N).bool()
            asked[0, variable] = True
            question = Question(known[row : row + 1], asked)
            exact = log_prob(model, x[row : row + 1], question, factorization=Factorization.DIRECT).value
            torch.testing.assert_close(
                model.marginals(x, known).log_prob(x)[row, variable].double(), exact[0], atol=1e-5, rtol=0
            )


def test_evaluating_switches_dropout_off_everywhere() -> None:
    model = Model(ResidualMLP(Real(), N, 2, 16, 1, dropout=0.5), Gaussian()).eval()
    model.network.train()  # a part in another mode than the whole
    with model.evaluating():
        assert not any(part.training for part in model.modules())
    assert model.network.training
    assert not model.training


def test_evaluating_inside_evaluating_looks_at_no_part_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(ResidualMLP(Real(), N, 2, 16, 1, dropout=0.5), Gaussian()).train()
    looks: list[int] = []
    own = Model.modules
    monkeypatch.setattr(Model, "modules", lambda self, **options: looks.append(1) or own(self, **options))
    with model.evaluating():
        for _ in range(3):
            with model.evaluating():
                assert not model.network.training
                assert not torch.is_grad_enabled()
    assert len(looks) == 1
    assert model.network.training
    with model.evaluating():  # and afterwards it looks again
        assert not model.network.training
    assert len(looks) == 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Model(Transformer(Discrete(2), (N,), 5), Categorical(5)), "kind of variable 0: expected 5 codes"),
        (
            lambda: Model(ResidualMLP(Mixed((2, 0)), 2, 3), MixedLikelihood((Categorical(3), Gaussian()))),
            "kind of variable 0: expected 3 codes",
        ),
        (lambda: Rows(torch.zeros(5, N), torch.ones(5, N).bool(), torch.zeros(3, 2)), "context: expected one entry"),
        (lambda: Mixture((MacEdges(N), MacEdges(N, Decreasing()))), "orders of Mixture parts"),
    ],
)
def test_parts_that_do_not_fit_are_refused(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("network", [OnePassTransformer, Transformer])
@pytest.mark.parametrize("width", [0, 3])
def test_context_is_refused_where_none_is_taken_and_required_where_one_is(network, width: int) -> None:
    model = Model(
        network(Discrete(2), (N,), 2, 8, 1, 2, context_width=width), Categorical(2), factorizations=Factorization
    )
    question, x = Question.of(N), torch.zeros(1, N, dtype=torch.int64)
    right, wrong = (None, torch.zeros(1, 3)) if width == 0 else (torch.zeros(1, 3), None)
    assert log_prob(model, x, question, context=right).value.isfinite().all()
    with pytest.raises(ValueError, match="context: expected"):
        log_prob(model, x, question, context=wrong)


@pytest.mark.parametrize("bad", [7.0, -3.0, 0.6, float("nan")])
def test_a_given_value_that_is_no_code_is_refused_by_every_entrance(bad: float, generator) -> None:
    model = Model(
        randomised(OnePassTransformer(Discrete(2), (N,), 2, 8, 1, 2)), Categorical(2), factorizations=Factorization
    )  # type: ignore[arg-type]
    x = torch.tensor([[bad, 0.0, 1.0, 0.0]])
    with pytest.raises(ValueError, match="given value at row 0, variable 0: expected a code from 0 to 1"):
        log_prob(model, x, Question.of(N, given=[0]))
    with pytest.raises(ValueError, match="given value at row 0, variable 0"):
        sample(model, x, Question.of(N, given=[0]), generator=generator)


@pytest.mark.parametrize("bad", [0.7, -0.5, -3.0, 9.0])
def test_an_asked_value_that_is_no_code_is_impossible(bad: float) -> None:
    model = Model(
        randomised(OnePassTransformer(Discrete(2), (N,), 2, 8, 1, 2)), Categorical(2), factorizations=Factorization
    )  # type: ignore[arg-type]
    answer = model.given(torch.tensor([float("nan")] * 3 + [1.0])).log_prob(torch.tensor([bad, 0.0, 1.0, 1.0]))
    assert answer.value.item() == -torch.inf


@pytest.mark.parametrize("rows_per_pass", [0, -1, 2.5])
def test_the_size_of_a_pass_is_a_whole_number(rows_per_pass) -> None:
    model = Model(
        randomised(OnePassTransformer(Discrete(2), (N,), 2, 8, 1, 2)), Categorical(2), factorizations=Factorization
    )  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rows_per_pass: expected a whole number from 1 up"):
        model.given(torch.full((N,), torch.nan)).sample(2, seed=0, rows_per_pass=rows_per_pass)


def test_an_objective_follows_the_order_of_its_questions() -> None:
    assert MaskedLoss(MacEdges(N, Decreasing())).follows == Decreasing()
    assert recipes.mac.objective_inpainting(N, Decreasing()).follows == Decreasing()
    assert recipes.ardm.objective(N).follows is None


def test_a_chain_claims_only_what_it_practises() -> None:
    assert OnePassLoss(UniformSplits(N), joint_share=1.0).factorizations == {Factorization.PREFIX}
    assert OnePassLoss(UniformSplits(N), Shuffled()).factorizations == {Factorization.ANY_ORDER}
    assert MacEdges(N, Shuffled()).factorizations == {Factorization.ANY_ORDER}


@torch.no_grad()
def test_a_chain_in_random_orders_is_scored_over_orders(generator) -> None:
    net = randomised(OnePassTransformer(Discrete(2), (N,), 2, 8, 1, 2))
    model = Model(
        net, Categorical(2), order=Shuffled(), factorizations=OnePassLoss(UniformSplits(N), Shuffled()).factorizations
    )  # type: ignore[arg-type]
    answer = log_prob(model, torch.zeros(2, N).long(), Question.of(N, batch=2), orders=4, generator=generator)
    assert answer.kind == "estimate"
    assert bool((answer.stderr > 0).all())


def test_information_is_never_read_off_differences_that_do_not_fit() -> None:
    net = randomised(OnePassTransformer(Discrete(2), (N,), 2, 8, 1, 2))
    model = Model(net, Categorical(2), factorizations=recipes.one_pass.objective_filler(N).factorizations)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="information about the target"):
        model.given(torch.full((N,), torch.nan)).information(target=2, seed=0)
