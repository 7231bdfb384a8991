"""The one loss of masked models: ask, answer, and where wished ask again about the answer.

For a question (given, asked) and weights w, with x^0 the corruption's fill and x^u ~ p(. | x^{u-1}) in unknown places,

    loss = 1/U · sum_{u=0}^{U-1}  sum_j  w_j · ( - log p(x_j | shown(x^u, given)) )

U = 1 is ARDM, MAC, SFARM, CMLM; U > 1 is step-unrolled denoising (SUNDAE eq. 3, SUNMASK), where no gradient flows
through the samples. Given values stay what they are, unless ``redraw_given``: then the answers replace them too
(SUNMASK's equation 2; SUNDAE, which knows no given values). Which paper it is depends on what is passed in,
on nothing else.

``SampledNormaliser`` is ACE's loss: the nats of an energy model whose normaliser is estimated from fresh draws of its
proposal.

    loss = - sum_j w_j [ log q(x_j) + c(x_j) - log 1/S sum_s exp c(x^s) ],      x^s ~ q(. | known), S = 20

with no gradient through x^s. The gradient of this one term is that of ACE's two, the energy's and the proposal's
log-likelihood (see ``anyfill.likelihoods.energy``); its value is the energy's alone, so it is read like any other loss.
The logarithm of an estimate is low on average: in training the loss flatters by about Var(exp c) / 2S. Where nothing is
trained (validation) the normaliser is the one that answers questions, from fixed points.

    regularisation r:   + r / N · sum_j w_j [ log p(x_j) - log q(x_j) ]²     the released code's pull of p towards q
                                                                             (r = 1 for POWER), in training only
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_member, require_probability
from anyfill.likelihoods.energy import EnergyMarginals
from anyfill.likelihoods.marginals import Marginals
from anyfill.likelihoods.tilted import TiltedMarginals
from anyfill.model import Model
from anyfill.networks.coupled import CoupledChannels
from anyfill.objectives.objective import QuestionLoss, smoothed_nats
from anyfill.questions.question import Question, question_of
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class MaskedLoss(QuestionLoss):
    """Nats of the asked variables, weighted, over one or more unrolled steps.

    Attributes:
        questions: what is asked in training.
        weights: how much each asked variable counts.
        unroll: U >= 1; more than 1 needs a corruption that shows unknown places (Uniform).
        redraw_given: from the second step on, given places hold the network's answers too.
        answer: what the next step is shown: a "sample", or the likeliest value (PaDIR's argmax).
        kept: so many variables in front are never replaced by an answer: the length of the words behind it.
        smoothing: of labels, see ``smoothed_nats``; validation measures it too.
        within: channels of a pixel that is asked are answered one after another, each given those before it, which is
            the joint nats of the pixel; for a network whose channels are coupled (``CoupledChannels``).
    """

    unroll: int = 1
    redraw_given: bool = False
    answer: Literal["sample", "mode"] = "sample"
    kept: int = 0
    smoothing: float = 0.0
    within: bool = False

    def __post_init__(self) -> None:
        require_count("unroll", self.unroll)
        require_count("kept", self.kept, minimum=0)
        require_member("answer", self.answer, ("sample", "mode"))
        require_probability("smoothing", self.smoothing)
        if self.within and self.unroll > 1:
            raise refuse("unroll", expected="1 where channels are answered within their pixel", got=self.unroll)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        question = question_of(rank).within(rows.present)
        if self.unroll == 1 and not model.corruption.shows_unknown:
            return self._step(model, rows, question, rows.x, rows.context)[0]
        if not model.corruption.shows_unknown:
            got = type(model.corruption).__name__
            raise refuse("corruption with unroll > 1", expected="one that shows unknown places (Uniform)", got=got)
        if generator is None:
            raise refuse("generator", expected="one, for the noise in unknown places", got="none")
        x = model.corruption.fill(rows.x, question.given, generator=generator)
        total = torch.zeros(len(rows), device=rows.x.device)
        context = model.read(rows.context)  # once for all steps
        for step in range(self.unroll):
            loss, marginals = self._step(model, rows, question, x, context)
            total = total + loss
            if step + 1 < self.unroll:
                with torch.no_grad():
                    answer = marginals.mode() if self.answer == "mode" else marginals.sample(generator=generator)
                x = self._shown(x, answer.to(x.dtype), question)
        return total / self.unroll

    def _shown(self, x: Tensor, answer: Tensor, question: Question) -> Tensor:
        """What the next step sees (B, N), from what this one saw and answered."""
        stays = torch.arange(x.shape[1], device=x.device) < self.kept
        return torch.where(stays if self.redraw_given else stays | question.given, x, answer)

    def _step(
        self, model: Model, rows: Rows, question: Question, x: Tensor, context: Tensor | None
    ) -> tuple[Tensor, Marginals]:
        """Weighted nats (B,) of one answer, and the answer itself."""
        if self.within:
            network = model.network
            if not isinstance(network, CoupledChannels):
                raise refuse("network", expected="CoupledChannels, to answer within pixels", got=type(network).__name__)
            model.check_context(context)
            marginals = model.likelihood(network.within(x, question.given, context))
        else:
            marginals = model.marginals(x, question.given, context)
        return self.weighted(question, smoothed_nats(marginals, rows.x, self.smoothing)), marginals


@dataclass(frozen=True, slots=True)
class SampledNormaliser(QuestionLoss):
    """Nats of the asked variables, weighted, under a likelihood with energies (``EnergyMixture``).

    Attributes:
        questions: what is asked in training.
        weights: how much each asked variable counts.
        samples: S, draws of the proposal for each normaliser.
        regularisation: r >= 0.
    """

    samples: int = 20
    regularisation: float = 0.0

    def __post_init__(self) -> None:
        require_count("samples", self.samples)
        if not self.regularisation >= 0.0:
            raise refuse("regularisation", expected="a number from 0", got=repr(self.regularisation))

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        if model.is_one_pass:
            raise refuse("network of SampledNormaliser", expected="a masked one", got=type(model.network).__name__)
        question = question_of(rank).within(rows.present)
        x = model.corruption.fill(rows.x, question.given, generator=generator)
        marginals = model.marginals(x, question.given, rows.context)
        if not model.training or not isinstance(marginals, TiltedMarginals | EnergyMarginals):
            # Codes alone have an exact normaliser, and nothing to estimate.
            return self.weighted(question, -marginals.log_prob(rows.x))
        if generator is None:
            raise refuse("generator", expected="one, for the draws of the normaliser", got="none")
        log_prob = marginals.sampled_log_prob(rows.x, self.samples, generator=generator)
        loss = self.weighted(question, -log_prob)
        if self.regularisation:
            apart = log_prob - marginals.proposal_log_prob(rows.x)  # c - log Z: nothing of this reaches q
            loss = loss + self.regularisation / rows.variables * self.weighted(question, apart * apart)
        return loss
