"""The one loss of masked models: ask, answer, and where wished ask again about the answer.

For a question (given, asked) and weights w, with x^0 the corruption's fill and x^u ~ p(. | x^{u-1}) in unknown places,

    loss = 1/U · sum_{u=0}^{U-1}  sum_j  w_j · ( - log p(x_j | shown(x^u, given)) )

U = 1 is ARDM, MAC, SFARM, CMLM; U > 1 is step-unrolled denoising (SUNDAE eq. 3, SUNMASK), where no gradient flows
through the samples. Given values stay what they are, unless ``redraw_given``: then the answers replace them too
(SUNDAE, which knows no given values; SUNMASK's released code as well). Which paper it is depends on what is passed in,
on nothing else.
"""

from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.likelihoods.marginals import Marginals
from anyfill.model import Model
from anyfill.objectives.weights import Sum, Weights
from anyfill.questions.question import Factorization, Order, Question, Questions, at_once, order_of, question_of
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class MaskedLoss:
    """Nats of the asked variables, weighted, over one or more unrolled steps.

    Attributes:
        questions: what is asked in training.
        weights: how much each asked variable counts.
        unroll: U >= 1; more than 1 needs a corruption that shows unknown places (Uniform).
        redraw_given: from the second step on, given places hold the network's answers too.
    """

    questions: Questions
    weights: Weights = field(default_factory=Sum)
    unroll: int = 1
    redraw_given: bool = False

    def __post_init__(self) -> None:
        require_count("unroll", self.unroll)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return self.questions.factorizations

    @property
    def order(self) -> Order | None:
        return order_of(self.questions)

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return at_once(self.questions.sample(batch, generator=generator))

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        question = question_of(rank).within(rows.present)
        if self.unroll == 1 and not model.corruption.shows_unknown:
            return self._step(model, rows, question, rows.x)[0]
        if not model.corruption.shows_unknown:
            got = type(model.corruption).__name__
            raise refuse("corruption with unroll > 1", expected="one that shows unknown places (Uniform)", got=got)
        if generator is None:
            raise refuse("generator", expected="one, for the noise in unknown places", got="none")
        x = model.corruption.fill(rows.x, question.given, generator=generator)
        total = torch.zeros(len(rows), device=rows.x.device)
        for step in range(self.unroll):
            loss, marginals = self._step(model, rows, question, x)
            total = total + loss
            if step + 1 < self.unroll:
                with torch.no_grad():
                    answer = marginals.sample(generator=generator).to(x.dtype)
                x = answer if self.redraw_given else torch.where(question.given, x, answer)
        return total / self.unroll

    def _step(self, model: Model, rows: Rows, question: Question, x: Tensor) -> tuple[Tensor, Marginals]:
        """Weighted nats (B,) of one answer, and the answer itself."""
        marginals = model.marginals(x, question.given, rows.context)
        weights = self.weights(question)
        nats = torch.where(weights > 0, -marginals.log_prob(rows.x), 0.0)
        return (weights * nats).sum(1), marginals

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        return self.loss(model, rows, self.sample_rank(len(rows), generator=generator), generator=generator)
