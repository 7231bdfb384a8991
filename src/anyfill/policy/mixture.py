"""Behaviour cloning by one mixture of K Gaussians over a whole action of A numbers (a mixture density network).

    p(a | o) = sum_k w_k(o) prod_d N(a_d; m_kd(o), s_kd(o)),     w = softmax( 1/A sum_d logits_dk )

The network and its parameters are those of A separate mixtures (``GaussianMixture``); only the weights are shared, so
that a draw takes one component for all numbers. What is told of some actions (a motor that is held) weighs components,

    p(a_rest | o, a_told) = sum_k w'_k prod_(d in rest) N(a_d; m_kd, s_kd)
    w'_k ∝ w_k prod_(d told) N(a_d; m_kd, s_kd)

which is exact.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.likelihoods import GaussianMixture, Mixed
from anyfill.likelihoods.continuous import GaussianMixtureMarginals
from anyfill.likelihoods.marginals import normal
from anyfill.likelihoods.mixture import component_log_probs
from anyfill.model import Model
from anyfill.objectives import Objective
from anyfill.questions import Question
from anyfill.questions.question import Questions, at_once, question_of
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class JointMixtureLoss(Objective):
    """Nats (B,) of all asked numbers together.

    Attributes:
        questions: which numbers are asked, given what; asked numbers are never codes.
    """

    questions: Questions

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return at_once(self.questions.sample(batch, generator=generator))

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        question = question_of(rank).within(rows.present)
        return -joint_log_prob(mixtures(model, rows.x, question.given), rows.x, question.asked)


def mixtures(model: Model, x: Tensor, known: Tensor) -> GaussianMixtureMarginals:
    """The separate mixtures (B, N, K) of all variables as if all were numbers."""
    likelihood = model.likelihood
    columns = likelihood.columns if isinstance(likelihood, Mixed) else (likelihood,)
    number = next((one for one in columns if isinstance(one, GaussianMixture)), None)
    if number is None:
        raise refuse("likelihood", expected="mixtures of Gaussians", got=repr(likelihood))
    return number(model.params(x, known)[..., : number.width])


def shared_log_weights(marginals: GaussianMixtureMarginals, asked: Tensor) -> Tensor:
    """(B, K): the mean of the log-weights of the asked variables (B, N), normalised again."""
    member = asked.unsqueeze(-1)
    total = torch.where(member, marginals.log_weights, 0.0).sum(1)
    return (total / member.sum(1).clamp(min=1)).log_softmax(-1)


def joint_log_prob(marginals: GaussianMixtureMarginals, x: Tensor, asked: Tensor) -> Tensor:
    """(B,): log p of the asked numbers of x (B, N) together."""
    each = _components(marginals, x, asked)
    return (shared_log_weights(marginals, asked) + each).logsumexp(-1)


@torch.no_grad()
def draw_jointly(
    model: Model, x: Tensor, question: Question, actions: Tensor, *, temperature: float, generator: Generator
) -> Tensor:
    """x (B, N) with the asked numbers drawn together; given values among the actions (N,) weigh the components.

    Temperature 0 is the centre of the heaviest component; above it, weights are raised to 1/T and scales to sqrt(T).
    """
    told = actions & question.given
    seen = question.given & ~told
    with model.evaluating():
        marginals = mixtures(model, x, seen)
    log_weights = shared_log_weights(marginals, actions.expand_as(told)) + _components(marginals, x, told)
    if temperature > 0.0:
        chances = (log_weights.double() / temperature).softmax(-1)
        component = torch.multinomial(chances, 1, generator=generator)
    else:
        component = log_weights.argmax(-1, keepdim=True)
    place = component.unsqueeze(1).expand(-1, x.shape[1], 1)
    center, scale = (part.gather(-1, place).squeeze(-1) for part in (marginals.centers, marginals.scales))
    noise = normal(center.shape, generator=generator, device=center.device).to(center.dtype)
    return torch.where(question.asked, center + temperature**0.5 * scale * noise, x)


def _components(marginals: GaussianMixtureMarginals, x: Tensor, members: Tensor) -> Tensor:
    """(B, K): the sum over members of log N(x_d; m_kd, s_kd)."""
    safe = torch.where(members, x, 0.0)
    each = component_log_probs(torch.zeros_like(marginals.log_weights), marginals.centers, marginals.scales, safe)
    return torch.where(members.unsqueeze(-1), each, 0.0).sum(1)
