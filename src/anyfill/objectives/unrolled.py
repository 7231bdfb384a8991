"""The one loss of masked models: ask, answer, and where wished ask again about the answer.

For a question (given, asked) and weights w, with x^0 the corruption's fill and x^u ~ p(. | x^{u-1}) in unknown places,

    loss = 1/U · sum_{u=0}^{U-1}  sum_j  w_j · ( - log p(x_j | shown(x^u, given)) )

U = 1 is ARDM, MAC, SFARM, CMLM; U > 1 is step-unrolled denoising (SUNDAE eq. 3, SUNMASK), where no gradient flows
through the samples. Which paper it is depends on the questions and weights that are passed in, on nothing else.
"""

from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.data.rows import Rows
from anyfill.model import Model
from anyfill.objectives.weights import Sum, Weights
from anyfill.questions.question import Order, Question, Questions, Reading, question_of
from anyfill.rank import NEVER


@dataclass(frozen=True, slots=True)
class Unrolled:
    """Nats of the asked variables, weighted, over one or more unrolled steps.

    Attributes:
        questions: what is asked in training.
        weights: how much each asked variable counts.
        unroll: U >= 1; more than 1 needs a corruption that shows unknown places (Scramble).
        order: the protocol w that the questions follow, if they follow one.
    """

    questions: Questions
    weights: Weights = field(default_factory=Sum)
    unroll: int = 1
    order: Order | None = None

    def __post_init__(self) -> None:
        require_count("unroll", self.unroll)

    @property
    def readings(self) -> frozenset[Reading]:
        return self.questions.readings

    def pose(self, batch: int, *, generator: Generator) -> Tensor:
        question = self.questions.sample(batch, generator=generator)
        return torch.where(question.given, -1, torch.where(question.asked, 0, NEVER))

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        question = question_of(rank).within(rows.present)
        if self.unroll == 1 and not model.corruption.shows_unknown:
            return self._step(model, rows, question, rows.x)[0]
        if not model.corruption.shows_unknown:
            got = type(model.corruption).__name__
            raise refuse("corruption with unroll > 1", expected="one that shows unknown places (Scramble)", got=got)
        if generator is None:
            raise refuse("generator", expected="one, for the noise in unknown places", got="none")
        x = model.corruption.fill(rows.x, question.given, generator=generator)
        total = torch.zeros(len(rows), device=rows.x.device)
        for _ in range(self.unroll):
            loss, answer = self._step(model, rows, question, x, generator)
            total = total + loss
            x = torch.where(question.given, x, answer.to(x.dtype))
        return total / self.unroll

    def _step(
        self, model: Model, rows: Rows, question: Question, x: Tensor, generator: Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Weighted nats (B,) of one answer, and the answer sampled (B, N) if there is a generator."""
        marginals = model.marginals(x, question.given, rows.context)
        weights = self.weights(question)
        nats = torch.where(weights > 0, -marginals.log_prob(rows.x), 0.0)
        with torch.no_grad():
            answer = x if generator is None else marginals.sample(generator=generator)
        return (weights * nats).sum(1), answer

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        return self.loss(model, rows, self.pose(len(rows), generator=generator), generator=generator)
