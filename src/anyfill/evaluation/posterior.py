"""The conditional of a joint by Bayes' rule: answers are looked for, and each gets its exact log p(given, answer).

For values b of some variables of a row, the others of which are given,

    p(b | given)  =  p(given, b) / sum over b' of p(given, b').

A network that was also trained to answer b directly gives another law, unless its conditionals fit together; this one
agrees with log p of whole rows, whatever the network. It costs a reading for each b, so likely ones are looked for.
Variables are read in increasing order, values of those asked are chosen one after another by a geometric mean of

    left      p(chosen values, given ones between them | given ones before), a factor of p(given, b) as it is
    direct    p(chosen values | all that is given), the network's own answer, if it was trained for it

of which the first knows nothing of what stands behind and the second need not fit the joint. ``width`` beginnings go
on, and of whole answers ``keep``, half of them by what was learnt from the others (``evaluation.joint_search``). Their
joint is then read to its end with a cache. No value has a probability above 1, so what is read bounds the whole: an
answer stops, and is none of those that are given, once it is at most e^-``REACH`` of what has been found; unless it is
one of the ``whole`` that seem likeliest, or all there are are kept.

**What was not read.** Each b that is not among the answers was dropped at exactly one choice. From those dropped at a
choice ``draws`` are drawn, by what they were dropped by, their other values by that mean; with q(b) the probability of
drawing b, the mean of p(given, b) / q(b) is an unbiased estimate of the sum of p(given, b) over all b dropped there.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.evaluation.joint_search import JointSearch
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question
from anyfill.questions.supported import step_factorization


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """p(asked | given) by Bayes' rule, over the answers that were read.

    Attributes:
        answers: int64 (A, asked), values of the asked variables in increasing order, likeliest first.
        log_prob: float64 (A,), log p(given, answer) in nats: exact.
        log_rest: log of an unbiased estimate of the sum of p(given, b) over all other b; -inf if there are none.
        stderr: the standard error of that estimate, as a part of all.
        stopped: at most this part of all is with answers that were not read to their end.
    """

    answers: Tensor
    log_prob: Tensor
    log_rest: float
    stderr: float
    stopped: float

    @property
    def kind(self) -> Literal["exact", "estimate"]:
        """Whether all answers there are were read."""
        return "exact" if self.log_rest == -math.inf else "estimate"

    @property
    def log_total(self) -> float:
        """log p(given), the sum over all answers, in nats."""
        return float(torch.logaddexp(self.log_prob.logsumexp(0), torch.tensor(self.log_rest, dtype=torch.float64)))

    @property
    def covered(self) -> float:
        """The part of all probability that the answers have."""
        return math.exp(float(self.log_prob.logsumexp(0)) - self.log_total)

    @property
    def shares(self) -> Tensor:
        """float64 (A,): p(answer | given); together ``covered``."""
        return (self.log_prob - self.log_total).exp()


def can_enumerate(model: Model, question: Question) -> bool:
    """Whether ``posterior`` answers this question about one row: a cache, and a joint that was trained for."""
    joint = Question(torch.zeros_like(question.given), question.given | question.asked)
    reads = step_factorization(model.factorizations, joint, model.order, order=model.order)
    return isinstance(model.network, Windowed) and model.order == Increasing() and reads is not None


def posterior(
    model: Model,
    x: Tensor,
    question: Question,
    *,
    width: int = 128,
    keep: int = 512,
    draws: int = 16,
    whole: int = 8,
    allowed: Tensor | None = None,
    generator: Generator,
) -> Posterior:
    """Answers to a question about one row, and what p(given, answer) of whole rows makes of them.

    Args:
        model: one-pass, in increasing order, with codes.
        x: values (1, N); those that are neither given nor asked do not count.
        question: (1, N), something asked.
        width: beginnings of answers that go on.
        keep: answers that are read.
        draws: for each choice, to estimate what all others have.
        whole: answers that are read to their end, however unlikely they are.
        allowed: bool (N, codes), which codes each variable may take: others are no answers.
        generator: of these draws.

    Raises:
        ValueError: the model has no such joint, or nothing is asked.
    """
    for name, count in (("width", width), ("keep", keep), ("draws", draws), ("whole", whole)):
        require_count(name, count)
    if len(x) != 1 or not bool(question.asked.any()) or not can_enumerate(model, question):
        expected = "something asked of one row, by a one-pass model in increasing order that was trained for p(row)"
        raise refuse("posterior", expected=expected, got=f"{len(x)} rows, {model.order!r}")
    if allowed is not None and not bool(allowed[question.asked[0]].any(1).all()):
        raise refuse("allowed", expected="a code at least for each asked variable", got="none for some")
    search = JointSearch.of(model, x[0], question, allowed, generator)
    with model.evaluating():
        found = search.answered(width=width, keep=keep, draws=draws, whole=min(whole, keep))
    kept = (~found.is_drawn & found.value.isfinite()).nonzero().flatten()
    kept = kept[found.value[kept].argsort(descending=True, stable=True)]
    rest = (found.value - found.log_q - math.log(draws))[found.is_drawn]
    log_rest = float(rest.logsumexp(0)) if len(rest) else -math.inf
    total = float(torch.cat([found.value[kept], rest]).logsumexp(0))
    stopped = math.exp(float(found.bound[~found.is_drawn].logsumexp(0)) - total)
    return Posterior(found.codes[kept], found.value[kept], log_rest, _stderr(rest - total, draws), stopped)


def _stderr(rest: Tensor, draws: int) -> float:
    """Of a sum of means of ``draws`` each: ``rest`` (any,) are the logarithms of terms / draws."""
    if len(rest) == 0:
        return 0.0
    if draws == 1:
        return math.inf
    return math.sqrt(sum(draws * float(one.var()) for one in rest.exp().split(draws)))
