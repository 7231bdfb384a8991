"""What to measure next: how many nats each unknown variable is expected to tell about a target (SFARM eq. 15).

With M joint draws (y, x_U) ~ p(. | given), the same for every candidate j (common random numbers),

    I(y; x_j | given)  ~  1/M sum_m [ log p(y_m | x_j^m, given) - log p(y_m | given) ]

An any-order model has both terms directly, so there is no latent variable to approximate and there are no bins to
choose (EDDI and HH-VAEM need the one or the other). An estimate may fall below 0 by about its standard error.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.checks import refuse, require_shape
from anyfill.evaluation.chain import log_prob
from anyfill.model import Model
from anyfill.questions.licence import step_reading, unlicensed
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question


@dataclass(frozen=True, slots=True)
class Information:
    """How many nats each variable is expected to tell about the target.

    Attributes:
        value: float64 (B, N), I(target; x_j | given); 0 where x_j is not a candidate.
        stderr: float64 (B, N), Monte Carlo standard error.
        candidate: bool (B, N), neither given nor a part of the target.
        samples: M, the number of joint draws.
    """

    value: Tensor
    stderr: Tensor
    candidate: Tensor
    samples: int

    def best(self, cost: Tensor | None = None) -> Tensor:
        """int64 (B,): the candidate that tells most (per unit of ``cost``, (N,)); -1 where there is none."""
        worth = self.value if cost is None else self.value / cost
        index = torch.where(self.candidate, worth, -torch.inf).argmax(1)
        return torch.where(self.candidate.any(1), index, -1)


def information(
    model: Model,
    drawn: Tensor,
    given: Tensor,
    target: Tensor,
    *,
    context: Tensor | None = None,
    rows_per_pass: int | None = None,
) -> Information:
    """I(target; x_j | given) for every j that is neither, from joint draws.

    Args:
        model: what is asked.
        drawn: (M, B, N), M >= 2 draws of all variables given the given ones.
        given: bool (B, N).
        target: bool (B, N), disjoint from ``given``; where a row has none, every answer is 0.
        context: optional side information (B, ...).
        rows_per_pass: most rows in one call of the network.
    """
    require_shape("drawn", drawn, (None, *given.shape))
    samples = len(drawn)
    if samples < 2:
        raise refuse("samples", expected="2 at least", got=samples)
    order = Increasing() if model.order.random else None  # a random order would blur the difference
    rows = drawn.reshape(-1, drawn.shape[2])
    side = None if context is None else context.repeat(samples, *[1] * (context.dim() - 1))

    def score(known: Tensor) -> Tensor:
        """float64 (M, B): log p(y_m | x_known)."""
        question = Question(known.repeat(samples, 1), target.repeat(samples, 1))
        # Read step by step: differences of marginals that do not fit together are no information at all.
        reading = step_reading(model.readings, question, model.order, order=model.order if order is None else order)
        if reading is None:
            raise unlicensed(model.readings, "information about the target")
        answer = log_prob(
            model, rows, question, reading=reading, order=order, context=side, rows_per_pass=rows_per_pass
        )
        return answer.value.reshape(drawn.shape[:2])

    candidate = ~(given | target)
    value = torch.zeros(given.shape, dtype=torch.float64, device=given.device)
    stderr = torch.zeros_like(value)
    base = score(given)
    column = torch.arange(given.shape[1], device=given.device)
    for j in range(given.shape[1]):
        if bool(candidate[:, j].any()):
            gain = score(given | (candidate & (column == j))) - base
            value[:, j] = torch.where(candidate[:, j], gain.mean(0), 0.0)
            stderr[:, j] = torch.where(candidate[:, j], gain.std(0) / samples**0.5, 0.0)
    return Information(value, stderr, candidate, samples)
