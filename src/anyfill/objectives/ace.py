"""ACE's loss: the nats of an energy model whose normaliser is estimated from fresh draws of its proposal.

    loss = - sum_j w_j [ log q(x_j) + c(x_j) - log 1/S sum_s exp c(x^s) ],      x^s ~ q(. | known), S = 20

with no gradient through x^s. The gradient of this one term is that of ACE's two, the energy's and the proposal's
log-likelihood (see ``anyfill.likelihoods.energy``); its value is the energy's alone, so it is read like any other loss.
The logarithm of an estimate is low on average: in training the loss flatters by about Var(exp c) / 2S. Where nothing is
trained (validation) the normaliser is the one that answers questions, from fixed points.

    regularisation r:   + r / N · sum_j w_j [ log p(x_j) - log q(x_j) ]²     the released code's pull of p towards q
                                                                             (r = 1 for POWER), in training only
"""

from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.likelihoods.energy import EnergyMarginals
from anyfill.likelihoods.tilted import TiltedMarginals
from anyfill.model import Model
from anyfill.objectives.weights import Sum, Weights
from anyfill.questions.question import Factorization, Order, Questions, at_once, order_of, question_of
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class SampledNormaliser:
    """Nats of the asked variables, weighted, under a likelihood with energies (``EnergyMixture``).

    Attributes:
        questions: what is asked in training.
        weights: how much each asked variable counts.
        samples: S, draws of the proposal for each normaliser.
        regularisation: r >= 0.
    """

    questions: Questions
    weights: Weights = field(default_factory=Sum)
    samples: int = 20
    regularisation: float = 0.0

    def __post_init__(self) -> None:
        require_count("samples", self.samples)
        if not self.regularisation >= 0.0:
            raise refuse("regularisation", expected="a number from 0", got=repr(self.regularisation))

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return self.questions.factorizations

    @property
    def order(self) -> Order | None:
        return order_of(self.questions)

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return at_once(self.questions.sample(batch, generator=generator))

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        if model.is_one_pass:
            raise refuse("network of SampledNormaliser", expected="a masked one", got=type(model.network).__name__)
        question = question_of(rank).within(rows.present)
        x = model.corruption.fill(rows.x, question.given, generator=generator)
        marginals = model.marginals(x, question.given, rows.context)
        weights = self.weights(question)
        if not model.training or not isinstance(marginals, TiltedMarginals | EnergyMarginals):
            # Codes alone have an exact normaliser, and nothing to estimate.
            return _total(weights, -marginals.log_prob(rows.x))
        if generator is None:
            raise refuse("generator", expected="one, for the draws of the normaliser", got="none")
        log_prob = marginals.sampled_log_prob(rows.x, self.samples, generator=generator)
        loss = _total(weights, -log_prob)
        if self.regularisation:
            apart = log_prob - marginals.proposal_log_prob(rows.x)  # c - log Z: nothing of this reaches q
            loss = loss + self.regularisation / rows.variables * _total(weights, apart * apart)
        return loss

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        return self.loss(model, rows, self.sample_rank(len(rows), generator=generator), generator=generator)


def _total(weights: Tensor, terms: Tensor) -> Tensor:
    """(B,): the weighted sum of terms (B, N), of which those without weight are not read."""
    return (weights * torch.where(weights > 0, terms, 0.0)).sum(1)
