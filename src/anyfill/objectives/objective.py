"""What an objective is: a loss in nats per row, whose data-independent randomness is drawn first.

``sample_rank`` draws the questions of a whole batch as a rank; ``loss`` answers them. Splitting the two lets every
process of a distributed run draw the same global batch of questions and answer only its own rows.

Weights: how much each variable's log-probability counts in the loss, as a function of the question alone.

With a asked variables out of n in play (given or asked):

    Sum               1                   nats of the asked variables
    Mean              1 / a               MAC's released code: mean over all unknown variables
    Rescaled          n / a               ARDM eq. 7, orderless NADE: an unbiased estimate of the whole chain's nats
    Stepwise          N / a               SFARM eq. 8 to 10: as Rescaled, where a stage leaves variables out of play
    Damped            1 / (1 + a)         SUNMASK's released code
    HeadCounts        as another says, but the first variables count so and so much: a length beside its words
    Everyone          1, given too        SUNDAE: the network must also keep what is right
    RescaledEveryone  n / a, given too    Coconet's released code: the given ones are there to be copied
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.marginals import DiscreteMarginals, Marginals
from anyfill.model import Model
from anyfill.questions.question import Factorization, Order, Question, Questions, at_once
from anyfill.rows import Rows


@runtime_checkable
class Objective(Protocol):
    """A training loss: only ``sample_rank`` and ``loss`` must be said."""

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """The factorizations of log p(asked | given) that minimising this loss trains; none by default."""
        return frozenset()

    @property
    def follows(self) -> Order | None:
        """The protocol w the questions follow, if they follow one: the model's own order must be equal."""
        return None

    @abstractmethod
    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        """``batch`` questions as a rank, int64 (B, N), on the generator's device."""
        ...

    @abstractmethod
    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        """(B,) nats for the rows under these questions; only ``fit`` reduces."""
        ...

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        """(B,) nats of freshly drawn questions."""
        return self.loss(model, rows, self.sample_rank(len(rows), generator=generator), generator=generator)


@runtime_checkable
class Weights(Protocol):
    """Weights (B, N), zero where a variable does not count."""

    def __call__(self, question: Question) -> Tensor: ...


def _asked_count(question: Question) -> Tensor:
    return question.asked.sum(1, keepdim=True)


@dataclass(frozen=True, slots=True)
class Sum(Weights):
    """1 for each asked variable."""

    def __call__(self, question: Question) -> Tensor:
        return question.asked.float()


@dataclass(frozen=True, slots=True)
class Mean(Weights):
    """1 / a for each asked variable."""

    def __call__(self, question: Question) -> Tensor:
        return question.asked / _asked_count(question).clamp(min=1)


@dataclass(frozen=True, slots=True)
class Rescaled(Weights):
    """n / a for each asked variable."""

    def __call__(self, question: Question) -> Tensor:
        in_play = (question.given | question.asked).sum(1, keepdim=True)
        return question.asked * (in_play / _asked_count(question).clamp(min=1))


@dataclass(frozen=True, slots=True)
class Stepwise(Weights):
    """N / a for each asked variable: one of N steps was drawn, each of a variables could be next.

    N counts missing values too (a question does not tell them from ignored ones), so that a row with n values present
    counts about N / n as much as under ``Rescaled``.
    """

    def __call__(self, question: Question) -> Tensor:
        return question.asked * (question.asked.shape[1] / _asked_count(question).clamp(min=1))


@dataclass(frozen=True, slots=True)
class Damped(Weights):
    """1 / (1 + a) for each asked variable."""

    def __call__(self, question: Question) -> Tensor:
        return question.asked / (1 + _asked_count(question))


@dataclass(frozen=True, slots=True)
class Everyone(Weights):
    """1 for each variable, given or asked."""

    def __call__(self, question: Question) -> Tensor:
        return (question.given | question.asked).float()


@dataclass(frozen=True, slots=True)
class HeadCounts(Weights):
    """Weights of ``rest``, but ``weight`` for each of the first ``head`` variables, given or asked.

    For networks that answer those whether they are known or not (``EncoderDecoder`` and the length of its target).
    """

    rest: Weights
    weight: float = 1.0
    head: int = 1

    def __call__(self, question: Question) -> Tensor:
        weights = self.rest(question)
        in_play = (question.given | question.asked)[:, : self.head]
        return torch.cat([in_play.to(weights.dtype) * self.weight, weights[:, self.head :]], 1)


@dataclass(frozen=True, slots=True)
class RescaledEveryone(Weights):
    """n / a for each variable, given or asked; nothing counts where nothing is asked."""

    def __call__(self, question: Question) -> Tensor:
        in_play = question.given | question.asked
        asked = _asked_count(question)
        return in_play * (asked > 0) * (in_play.sum(1, keepdim=True) / asked.clamp(min=1))


def smoothed_nats(marginals: Marginals, x: Tensor, smoothing: float) -> Tensor:
    """(B, N): - (1 - e) log p(x) - e · mean over all possible codes k of log p(k): label smoothing (Szegedy et al.)."""
    nats = -marginals.log_prob(x)
    if smoothing == 0.0:
        return nats
    if not isinstance(marginals, DiscreteMarginals):
        raise refuse("smoothing", expected="0, as only codes are smoothed", got=smoothing)
    possible = ~marginals.log_probs.isneginf()
    mean = torch.where(possible, marginals.log_probs, 0.0).sum(-1) / possible.sum(-1)
    return (1.0 - smoothing) * nats - smoothing * mean


def cross_entropy(q: Tensor, log_probs: Tensor) -> Tensor:
    """(...): - sum_k q(k) log p(k) of laws over codes (..., K), with 0 log 0 = 0."""
    return -torch.where(q > 0, q * log_probs, 0.0).sum(-1)


@dataclass(frozen=True, slots=True)
class QuestionLoss(Objective):
    """A loss that asks the questions of a family, each at once, and weighs the answers.

    Attributes:
        questions: what is asked in training.
        weights: how much each asked variable counts.
    """

    questions: Questions
    weights: Weights = field(default_factory=Sum)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return self.questions.factorizations

    @property
    def follows(self) -> Order | None:
        return self.questions.follows

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return at_once(self.questions.sample(batch, generator=generator))

    def weighted(self, question: Question, nats: Tensor) -> Tensor:
        """(B,): the weighted sum of nats (B, N), of which those without weight are not read."""
        weights = self.weights(question)
        return (weights * torch.where(weights > 0, nats, 0.0)).sum(1)
