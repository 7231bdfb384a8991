"""What people get wrong at the front door: a right answer, or one clear sentence that names what, expected and got."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from anyfill import Factorization, FitOptions, Model, Question, Rows, fit, load_model, log_prob, recipes, save_model
from anyfill.likelihoods import Categorical, Gaussian
from anyfill.networks import Discrete, EnumeratedJoint, OnePassTransformer, Real
from anyfill.training import CheckpointError

N = 3
NOTHING, ALL = torch.zeros(2, N).bool(), torch.ones(2, N).bool()


def codes() -> Model:
    joint = EnumeratedJoint.random(N, 2, generator=torch.Generator().manual_seed(0))
    return Model(joint, Categorical(2), factorizations=Factorization)


def numbers(variables: int = N) -> Model:
    torch.manual_seed(0)
    net = OnePassTransformer(Real(), (variables,), 2, 16, 1, 2, positions="learned")
    return Model(net, Gaussian(), factorizations=[Factorization.DIRECT])


def x(*values: float, rows: int = 2) -> Tensor:
    return torch.tensor([values] * rows)


NAN, INF = float("nan"), float("inf")
SENTENCES: dict[str, tuple[Callable[[], object], str]] = {
    "too few columns": (lambda: codes().given(x(0, 1)), r"shape of x: expected \(any, 3\), got \(2, 2\)"),
    "three dimensions": (lambda: codes().given(torch.zeros(2, 2, N)), r"shape of x: expected \(any, 3\)"),
    "infinite": (lambda: numbers().given(x(0.0, INF, NAN)), "value at row 0, variable 1: expected a finite"),
    "not a code": (lambda: codes().given(x(0.0, 7.0, NAN)), "value at row 0, variable 1: expected a code from 0 to"),
    "half a code": (lambda: codes().given(x(0.0, 0.5, NAN)), "value at row 0, variable 1: expected a code from 0 to"),
    "boolean values": (lambda: codes().given(ALL), "dtype of x: expected an integer or floating-point type"),
    "a list": (lambda: codes().given([[0, 1, 0]]), "x: expected a torch tensor, got list"),  # type: ignore[arg-type]
    "known as numbers": (lambda: codes().given(x(0, 1, 0), x(1, 0, 0)), "dtype of known: expected torch.bool"),
    "given and asked": (lambda: log_prob(codes(), x(0, 1, 0), Question(ALL, ALL)), "given and asked disjoint"),
    "mask as numbers": (
        lambda: Question(x(1, 0, 0), x(0, 1, 1)),
        r"dtype of given: expected torch.bool \(True = known",
    ),
    "NaN where asked": (
        lambda: log_prob(numbers(), x(0.0, NAN, 1.0), Question(NOTHING, ALL)),
        "value at row 0, variable 1: expected a finite",
    ),
    "level": (
        lambda: numbers().given(x(NAN, NAN, 0.0)).interval(90),
        "level: expected a number between 0 and 1, got 90",
    ),
    "no rows": (
        lambda: fit(numbers(), Rows(torch.zeros(0, N), torch.zeros(0, N).bool()), recipes.one_pass.objective(N)),
        "rows: expected at least one row, got none",
    ),
    "wrong rows": (
        lambda: fit(numbers(), Rows.from_values(torch.zeros(4, N + 1)), recipes.one_pass.objective(N)),
        "variables of rows: expected 3, as the model has, got 4",
    ),
    "infinite rows": (lambda: Rows.from_values(x(0.0, INF, 0.0)), "expected a finite number or NaN"),
    "a bare tensor": (lambda: fit(numbers(), torch.zeros(4, N), recipes.one_pass.objective(N)), "rows: expected Rows"),  # type: ignore[arg-type]
    "codes out of range": (
        lambda: fit(codes(), Rows.from_values(torch.tensor([[0, 1, 2]])), recipes.one_pass.objective(N)),
        "value of rows at row 0, variable 2: expected a code from 0 to 1, got 2",
    ),
    "masked loss, one-pass network": (
        lambda: fit(numbers(), Rows.from_values(torch.zeros(4, N)), recipes.ardm.objective(N)),
        "objective: expected one for one-pass networks",
    ),
    "outputs": (
        lambda: Model(OnePassTransformer(Discrete(3), (N,), 2, 8, 1, 2), Categorical(3)),
        "outputs of the network: expected 3, as .* needs, got 2",
    ),
    "shape": (lambda: OnePassTransformer(Discrete(3), 3, 3), "shape: expected a tuple"),  # type: ignore[arg-type]
    "contradiction": (
        lambda: codes().given(x(0.0, NAN, NAN)).log_prob(x(1.0, 0.0, 0.0)),
        "value at row 0, variable 0: expected the value that is given, or none, got 1.0",
    ),
    "unknown reading": (
        lambda: log_prob(codes(), x(0, 1, 0), Question(NOTHING, ALL), factorization="backwards"),
        "factorization: expected 'difference' or .*, got 'backwards'",
    ),
    "no such variable": (
        lambda: Question.of(N, given=[3]),
        "variable given: expected a whole number from 0 to 2, got 3",
    ),
    "zero steps": (lambda: FitOptions(steps=0), "steps: expected a whole number from 1 up, got 0"),
    "NaN rate": (lambda: FitOptions(learning_rate=NAN), "learning_rate: expected"),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_bad_input_gets_one_clear_sentence(name: str) -> None:
    call, sentence = SENTENCES[name]
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert "expected" in text
    assert "got" in text


def test_all_missing_rows_are_answered_from_nothing_and_trained_on_in_peace() -> None:
    model = codes()
    drawn = model.given(x(NAN, NAN, NAN)).sample(4, seed=1)
    assert drawn.shape == (4, 2, N)
    assert bool(((drawn == 0) | (drawn == 1)).all())
    net = numbers()
    rows = Rows.from_values(torch.tensor([[NAN] * N, [0.3, NAN, 1.0]]))
    assert fit(net, rows, recipes.one_pass.objective(N), FitOptions(steps=3, batch_size=4)).steps == 3
    assert all(bool(parameter.isfinite().all()) for parameter in net.parameters())


def test_everything_given_and_nothing_asked_are_legal_and_certain() -> None:
    model = codes()
    full = x(0.0, 1.0, 0.0)
    assert torch.equal(model.given(full).sample(3, seed=0), full.long().expand(3, 2, N))
    answer = log_prob(model, full, Question(ALL, NOTHING))
    assert answer.value.tolist() == [0.0, 0.0]
    assert (answer.kind, answer.passes) == ("exact", 0)


@pytest.mark.parametrize("factorization", list(Factorization))
def test_a_reading_may_be_named_by_its_word(factorization: Factorization) -> None:
    torch.manual_seed(0)
    net = OnePassTransformer(Discrete(2), (N,), 2, 16, 1, 2)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model = Model(net, Categorical(2), factorizations=Factorization)
    given = {Factorization.PREFIX: [0], Factorization.MARGINAL: []}.get(factorization, [2])
    question = Question.of(N, given=given)
    named = log_prob(model, torch.tensor([[0, 1, 0]]), question, factorization=factorization.value)
    assert named.factorization is factorization
    assert torch.equal(
        named.value, log_prob(model, torch.tensor([[0, 1, 0]]), question, factorization=factorization).value
    )
    assert named.passes == (2 if factorization is Factorization.DIFFERENCE else 1)


def test_a_question_by_numbers_is_the_question_by_masks() -> None:
    question = Question.of(4, given=[0, 2], batch=2)
    assert question.given.tolist() == [[True, False, True, False]] * 2
    assert question.asked.tolist() == [[False, True, False, True]] * 2
    assert Question.of(4, given=[0], asked=[3]).ignored.tolist() == [[False, True, True, False]]


def test_repr_says_what_the_model_may_be_asked() -> None:
    assert "factorizations: direct" in repr(numbers())
    assert "not trained" in repr(Model(codes().network, Categorical(2)))  # type: ignore[arg-type]


def test_one_variable_is_enough() -> None:
    torch.manual_seed(0)
    model = Model(OnePassTransformer(Discrete(3), (1,), 3, 8, 1, 2), Categorical(3))
    rows = Rows.from_values(torch.tensor([[0], [1], [1], [2]]))
    fit(model, rows, recipes.one_pass.objective(1), FitOptions(steps=2, batch_size=4))
    assert model.given(torch.tensor([NAN])).sample(5, seed=0).shape == (5, 1, 1)
    whole = torch.tensor([[True]])
    total = sum(log_prob(model, torch.tensor([[k]]), Question(~whole, whole)).value.exp().item() for k in range(3))
    assert total == pytest.approx(1.0, abs=1e-6)


def test_an_untrained_model_says_so() -> None:
    model = Model(codes().network, Categorical(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="never trained"):
        log_prob(model, x(0, 1, 0), Question(NOTHING, ALL))


@pytest.mark.skipif(os.name != "posix", reason="permissions as on POSIX")
def test_a_folder_that_cannot_be_written_is_named_and_left_alone(tmp_path: Path) -> None:
    occupied = tmp_path / "model"
    occupied.write_text("mine")
    with pytest.raises(CheckpointError, match="model"):
        save_model(numbers(), occupied)
    assert occupied.read_text() == "mine"
    with pytest.raises(CheckpointError) as caught:
        save_model(numbers(), Path("/proc/nowhere/model"))
    assert "\n" not in str(caught.value)
    with pytest.raises(CheckpointError, match="nothing"):
        load_model(tmp_path / "nothing")
