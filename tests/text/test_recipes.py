"""Text recipes: every name makes a model and an objective that fit together, at the size that it says."""

import itertools
import math

import pytest
import torch

from anyfill.corruption import Absorbing, Uniform
from anyfill.evaluation import log_prob
from anyfill.likelihoods import Gaussian
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer, ResidualMLP, Transformer
from anyfill.networks.embed import Real
from anyfill.questions import Factorization, Question
from anyfill.rows import Rows
from anyfill.samplers import sample
from anyfill.text.model import require_codes_of
from anyfill.text.recipes import TEXT_RECIPES, TEXT_SIZES, left_to_right, text_model, text_objective
from anyfill.text.vocabulary import TEXT8, Utf8
from anyfill.training import FitOptions, fit

N, CODES = 4, 3


def some_rows(rows: int = 8) -> Rows:
    x = torch.randint(CODES, (rows, N), generator=torch.Generator().manual_seed(1))
    return Rows.from_values(x)


@pytest.mark.parametrize("recipe", TEXT_RECIPES)
def test_every_recipe_trains_its_own_model(recipe) -> None:
    model, objective = text_model(recipe, N, CODES, size="1M"), text_objective(recipe, N)
    before = [weights.detach().clone() for weights in model.parameters()]
    done = fit(model, some_rows(), objective, FitOptions(steps=2, batch_size=4, device="cpu"))
    assert math.isfinite(done.loss)
    assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters()))
    assert model.factorizations == objective.factorizations


@pytest.mark.parametrize(
    ("recipe", "network", "corruption", "factorizations"),
    [
        ("ardm", Transformer, Absorbing(), {Factorization.ANY_ORDER}),
        ("mac_next", Transformer, Absorbing(), {Factorization.DIFFERENCE}),
        ("mac_rest", Transformer, Absorbing(), {Factorization.DIFFERENCE}),
        ("mac_inpainting", Transformer, Absorbing(), {Factorization.DIFFERENCE, Factorization.INPAINTING}),
        ("sunmask", Transformer, Uniform(CODES), None),
        ("sundae", Transformer, Uniform(CODES, mask_visible=False), None),
        (
            "one_pass",
            OnePassTransformer,
            Absorbing(),
            {Factorization.DIRECT, Factorization.INPAINTING, Factorization.DIFFERENCE},
        ),
        ("one_pass_filler", OnePassTransformer, Absorbing(), {Factorization.INPAINTING, Factorization.DIFFERENCE}),
        (
            "one_pass_spans",
            OnePassTransformer,
            Absorbing(),
            {Factorization.DIRECT, Factorization.INPAINTING, Factorization.DIFFERENCE},
        ),
        ("left_to_right", OnePassTransformer, Absorbing(), {Factorization.PREFIX}),
    ],
)
def test_a_recipe_is_its_network_corruption_and_questions(recipe, network, corruption, factorizations) -> None:
    model = text_model(recipe, N, CODES, size="1M")
    assert type(model.network) is network
    assert model.corruption == corruption
    assert getattr(model.network, "flag", None) == (
        None if network is OnePassTransformer else "stretched" if recipe in ("sunmask", "sundae") else "added"
    )
    if factorizations is not None:
        assert text_objective(recipe, N).factorizations == factorizations


@pytest.mark.parametrize("size", TEXT_SIZES)
def test_sizes_are_what_they_are_called(size) -> None:
    width, depth, heads = TEXT_SIZES[size]
    weights = 12 * depth * width**2
    assert abs(weights - 1e6 * float(size[:-1])) / weights < 0.06
    assert width % heads == 0
    if size in ("1M", "6M"):  # the others take a while to fill with random numbers
        for recipe in ("ardm", "one_pass"):
            model = text_model(recipe, 250, 27, size=size)
            assert sum(w.numel() for w in model.network.blocks.parameters() if w.dim() == 2) == weights


def test_all_methods_have_the_same_trunk() -> None:
    counts = {
        sum(w.numel() for w in text_model(recipe, N, CODES, size="1M").network.blocks.parameters())
        for recipe in TEXT_RECIPES
    }
    assert len(counts) == 1


def test_left_to_right_loss_is_the_chain_from_first_to_last(generator: torch.Generator) -> None:
    model = text_model("left_to_right", N, CODES, size="1M")
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(std=0.2, generator=generator)
    every = torch.tensor(list(itertools.product(range(CODES), repeat=N)))
    with model.evaluating():
        loss = left_to_right(N)(model, Rows.from_values(every), generator=generator)
        total = torch.zeros(len(every), dtype=torch.float64)
        for j in range(N):
            known = (torch.arange(N) < j).expand(len(every), -1)
            total += model.marginals(every, known).log_prob(every)[:, j].double()
    assert torch.allclose(-loss.double(), total, atol=1e-5)
    assert total.exp().sum().item() == pytest.approx(1.0, abs=1e-5)
    model.factorizations = left_to_right(N).factorizations
    answer = log_prob(model, every, Question.of(N, batch=len(every)))
    assert (answer.kind, answer.passes) == ("exact", 1)
    assert torch.allclose(answer.value, total, atol=1e-5)
    nothing = torch.zeros(2, N).bool()
    drawn = sample(model, torch.zeros(2, N).long(), Question(nothing, ~nothing), generator=generator)
    assert drawn.passes == N


def test_seeds_name_the_first_weights_and_leave_others_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first, again, other = (text_model("one_pass", N, CODES, size="1M", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.rand(1), expected)
    weights = [model.network.blocks[0].qkv.weight for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize("recipe", ["one_pass", "ardm"])
def test_shared_places_serve_any_length(recipe, generator: torch.Generator) -> None:
    model = text_model(recipe, N, CODES, size="1M", periods=1)
    longer = model.network.resized((9,))
    x = torch.randint(CODES, (2, 9), generator=generator)
    assert longer(x, torch.ones_like(x).bool()).shape == (2, 9, CODES)


def test_a_model_of_other_codes_is_refused() -> None:
    model = text_model("one_pass", N, TEXT8.size, size="1M")
    require_codes_of(model, TEXT8)
    with pytest.raises(ValueError, match="model: expected one of 256 codes, as the vocabulary has, got a model of 27"):
        require_codes_of(model, Utf8())
    numbers = Model(ResidualMLP(Real(), N, 2, 8, 1), Gaussian())
    with pytest.raises(ValueError, match="got a model of something else"):
        require_codes_of(numbers, TEXT8)
    assert isinstance(model.network.kind, Discrete)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: text_model("gpt", N, CODES), "recipe: expected 'ardm', .* got 'gpt'"),
        (lambda: text_objective("gpt", N), "recipe: expected"),
        (lambda: text_model("ardm", N, CODES, size="2M"), "size: expected '1M', '6M', '10M', '25M' or '85M', got '2M'"),
        (lambda: text_model("ardm", 0, CODES), "length: expected a whole number from 1 up"),
        (lambda: text_model("ardm", N, 1), "codes: expected a whole number from 2 up"),
    ],
)
def test_bad_names_are_refused_in_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
