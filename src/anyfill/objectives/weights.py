"""How much each variable's log-probability counts in the loss, as a function of the question alone.

With a asked variables out of n in play (given or asked):

    Sum               1                   nats of the asked variables
    Mean              1 / a               MAC's released code: mean over all unknown variables
    Rescaled          n / a               ARDM eq. 7, orderless NADE: an unbiased estimate of the whole chain's nats
    Stepwise          N / a               SFARM eq. 8 to 10: as Rescaled, where a stage leaves variables out of play
    Damped            1 / (1 + a)         SUNMASK's released code
    Everyone          1, given too        SUNDAE: the network must also keep what is right
    RescaledEveryone  n / a, given too    Coconet's released code: the given ones are there to be copied
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from anyfill.questions.question import Question


@runtime_checkable
class Weights(Protocol):
    """Weights (B, N), zero where a variable does not count."""

    def __call__(self, question: Question) -> Tensor: ...


def _asked_count(question: Question) -> Tensor:
    return question.asked.sum(1, keepdim=True)


@dataclass(frozen=True, slots=True)
class Sum:
    """1 for each asked variable."""

    def __call__(self, question: Question) -> Tensor:
        return question.asked.float()


@dataclass(frozen=True, slots=True)
class Mean:
    """1 / a for each asked variable."""

    def __call__(self, question: Question) -> Tensor:
        return question.asked / _asked_count(question).clamp(min=1)


@dataclass(frozen=True, slots=True)
class Rescaled:
    """n / a for each asked variable."""

    def __call__(self, question: Question) -> Tensor:
        in_play = (question.given | question.asked).sum(1, keepdim=True)
        return question.asked * (in_play / _asked_count(question).clamp(min=1))


@dataclass(frozen=True, slots=True)
class Stepwise:
    """N / a for each asked variable: one of N steps was drawn, each of a variables could be next.

    N counts missing values too (a question does not tell them from ignored ones), so that a row with n values present
    counts about N / n as much as under ``Rescaled``.
    """

    def __call__(self, question: Question) -> Tensor:
        return question.asked * (question.asked.shape[1] / _asked_count(question).clamp(min=1))


@dataclass(frozen=True, slots=True)
class Damped:
    """1 / (1 + a) for each asked variable."""

    def __call__(self, question: Question) -> Tensor:
        return question.asked / (1 + _asked_count(question))


@dataclass(frozen=True, slots=True)
class Everyone:
    """1 for each variable, given or asked."""

    def __call__(self, question: Question) -> Tensor:
        return (question.given | question.asked).float()


@dataclass(frozen=True, slots=True)
class RescaledEveryone:
    """n / a for each variable, given or asked; nothing counts where nothing is asked."""

    def __call__(self, question: Question) -> Tensor:
        in_play = question.given | question.asked
        asked = _asked_count(question)
        return in_play * (asked > 0) * (in_play.sum(1, keepdim=True) / asked.clamp(min=1))
