"""Whatever a run computes in, its loss scores the values that were given, not rounded ones."""

from dataclasses import dataclass

import pytest
import torch
from torch import Generator, Tensor

from anyfill import likelihoods, networks, recipes
from anyfill.model import Model
from anyfill.objectives import Objective
from anyfill.questions.question import Factorization, Order
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit

CODES = 300
ROWS = torch.stack([1.2345678 + torch.arange(CODES) / CODES, torch.arange(CODES).float()], 1)
"""A real column that 16 bits would round, and codes, some above the 256 that bf16 can count to."""


@dataclass(frozen=True)
class Watched:
    """An objective that writes down the values and contexts its loss is given."""

    inner: Objective
    seen: list[tuple[Tensor, Tensor]]

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return self.inner.factorizations

    @property
    def follows(self) -> Order | None:
        return self.inner.follows

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return self.inner.sample_rank(batch, generator=generator)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        assert rows.context is not None
        self.seen.append((rows.x.clone(), rows.context.clone()))
        return self.inner.loss(model, rows, rank, generator=generator)

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        return self.inner(model, rows, generator=generator)


def model_of(network: str, kind: str) -> Model:
    gaussian = likelihoods.Gaussian()
    mixed = likelihoods.Mixed((gaussian, likelihoods.Categorical(CODES)))
    values, likelihood = (networks.Real(), gaussian) if kind == "real" else (networks.Mixed((0, CODES)), mixed)
    size = {"width": 32, "depth": 1, "context_width": 1}
    if network == "one pass":
        return Model(networks.OnePassTransformer(values, (2,), likelihood.width, **size), likelihood)
    if network == "transformer":
        return Model(networks.Transformer(values, (2,), likelihood.width, **size), likelihood)
    return Model(networks.ResidualMLP(values, 2, likelihood.width, **size), likelihood)


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
@pytest.mark.parametrize("kind", ["real", "mixed"])
@pytest.mark.parametrize("network", ["one pass", "transformer", "mlp"])
def test_sixteen_bit_training_scores_exactly_the_values_that_were_given(
    network: str, kind: str, precision: str
) -> None:
    torch.manual_seed(0)
    model, seen = model_of(network, kind), []
    objective = Watched(recipes.one_pass.objective(2) if network == "one pass" else recipes.ardm.objective(2), seen)
    rows = Rows.from_values(ROWS, context=ROWS[:, :1])
    options = FitOptions(steps=4, batch_size=100, report_every=1, precision=precision, device="cpu")
    fit(model, rows, objective, options, validation=rows)
    given = ROWS[ROWS[:, 1].argsort()]
    for calls in (seen[:3], seen[-3:]):  # an epoch of training; the validation after the last step
        x, context = (torch.cat(parts) for parts in zip(*calls))
        assert x.dtype == context.dtype == torch.float32
        order = x[:, 1].argsort()
        assert torch.equal(x[order], given)
        assert torch.equal(context[order], given[:, :1])
