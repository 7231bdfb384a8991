"""Tiny models of text with random weights, so that everything they could answer can be listed."""

import sys
from pathlib import Path

import pytest
import torch

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer, Transformer
from anyfill.questions import Factorization
from anyfill.text.model import TextModel
from anyfill.text.vocabulary import Characters, Vocabulary

sys.path.insert(0, str(Path(__file__).parent))  # plain_bleu

ABC = Characters("abc")


def tiny_model(
    codes: int = 3, length: int = 6, factorizations=(Factorization.DIRECT,), *, one_pass=True, seed=0
) -> Model:
    """A model of random, far from uniform, conditionals."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        kind = OnePassTransformer if one_pass else Transformer
        network = kind(Discrete(codes), (length,), codes, width=16, depth=1, heads=2)
        for weights in network.parameters():  # some begin as zero, and the network would hardly look around
            weights.data += 0.2 * torch.randn_like(weights)
    return Model(network, Categorical(codes), factorizations=factorizations).eval()


def tiny(vocabulary: Vocabulary = ABC, length: int = 6, **options) -> TextModel:
    fields = {name: options.pop(name) for name in ("lines", "lengths") if name in options}
    return TextModel(tiny_model(vocabulary.size, length, **options), vocabulary, "tiny", **fields)


def step_by_step(model: Model, codes, given: int = 0) -> float:
    """log p(codes behind the first ``given`` | those), place by place: what one pass must agree with."""
    x = torch.zeros(1, model.variables, dtype=torch.int64)
    x[0, : len(codes)] = torch.as_tensor(codes)
    total = 0.0
    for place in range(given, len(codes)):
        known = torch.arange(model.variables).unsqueeze(0) < place
        with model.evaluating():
            total += float(model.marginals(x, known).log_prob(x)[0, place])
    return total


@pytest.fixture(name="tiny", scope="session")
def _tiny():
    return tiny


@pytest.fixture(name="step_by_step", scope="session")
def _step_by_step():
    return step_by_step
