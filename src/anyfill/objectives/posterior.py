"""The one-pass chain, and a direct answer that follows the posterior of the joint, on short texts by themselves.

A network reads p(b | s, t), a blank b between s and t, in two ways: directly, s and t given; and as the posterior of
the joint, proportional to p(s b t). ``AgreeingLoss`` compares both on two answers of every text in a row. Here K
answers b_1 … b_K of a blank are compared at once, and the direct answer is distilled from the joint,

    KL( q || r ),   q_k = p(s b_k t) / sum_j p(s b_j t)  taken as it is,   r_k = p(b_k | s, t) / sum_j p(b_j | s, t):

0 for a true joint, whatever the answers are. b_1 are the true values; the others are drawn, without repeats, half from
the direct answer and half from what s alone makes likely, so that what one reading holds likely and the other does not
is among them. A blank of two has K - 2 other first values, each with a second one drawn behind it, and one other second
value behind the true first.

Three things matter beside the formula.

*One text alone.* A row of several texts, a break behind each, is taken apart, and some of its texts are asked about as
people ask: alone, from place 0 on, with or without the break at the end.

*Unseen text.* What was read many times is known by heart, and both readings agree about it without agreeing about
anything else. A share of the values of each text is therefore drawn anew, each from those before it; the share itself
is drawn, so that some texts stay as they are.

*Dropout.* Both readings are taken without it, as they are used: its noise would differ between the answers. No gradient
flows into the joint, for independent variables always agree, and a network whose joint followed too would have that to
gain where dropout is off.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_positive, require_probability
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.model import Model
from anyfill.objectives.agreement import without_dropout
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.question import Order, Question, chain_rank
from anyfill.rank import NEVER
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class PosteriorLoss(OnePassLoss):
    """``OnePassLoss`` and the divergence, for networks of codes that read what is given causally.

    Attributes:
        follow_weight: what the divergence of a text counts for, in nats of a row.
        texts: how many texts of each row are asked about.
        longest: places of a text; a longer one is cut there.
        proposals: K, at least 3.
        redrawn: share of the values that are drawn anew, on average; in a text from none to twice as many.
        breaks: the code behind each text of a row of several; None = a row is one text.
    """

    follow_weight: float = 32.0
    texts: int = 4
    longest: int = 24
    proposals: int = 8
    redrawn: float = 0.2
    breaks: int | None = None

    def __post_init__(self) -> None:
        OnePassLoss.__post_init__(self)
        require_positive("follow_weight", self.follow_weight)
        require_count("texts", self.texts)
        require_count("longest", self.longest, minimum=3)
        require_count("proposals", self.proposals, minimum=3)
        require_probability("redrawn", self.redrawn)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        """(B,) nats of the chain, and the divergence of some texts of each row."""
        nats = OnePassLoss.loss(self, model, rows, rank, generator=generator)
        if generator is None:
            return nats  # nothing to draw from: the chain alone, as where a loss is only looked at
        if rows.context is not None:
            raise refuse("rows", expected="no context", got=tuple(rows.context.shape))
        alone = self.lone_texts(rows, generator=generator)
        found = self.divergence(model, alone, generator=generator)
        return nats + self.follow_weight * found.view(len(nats), self.texts).sum(1)

    def lone_texts(self, rows: Rows, *, generator: Generator) -> Rows:
        """(B * texts, longest): texts of each row, each once, from place 0 on; empty where none is left."""
        x, present = rows.x, rows.present
        ends = present & (x == self.breaks) if self.breaks is not None else torch.zeros_like(present)
        begins = present & functional.pad(ends[:, :-1], (1, 0), value=True)
        key = torch.where(begins, _uniform(x.shape, x.device, generator), -1.0)
        chance, start = key.topk(min(self.texts, x.shape[1]), dim=1)
        lacking = self.texts - start.shape[1]
        chance, start = functional.pad(chance, (0, lacking), value=-1.0), functional.pad(start, (0, lacking))
        place = start.unsqueeze(2) + torch.arange(min(self.longest, x.shape[1]), device=x.device)  # (B, texts, M)
        inside = (chance >= 0.0).unsqueeze(2) & (place < x.shape[1])
        place = place.clamp(max=x.shape[1] - 1).flatten(1)
        shape = (len(x) * self.texts, -1)
        codes, end = x.gather(1, place).view(shape), ends.gather(1, place).view(shape)
        inside = inside.view(shape) & present.gather(1, place).view(shape)
        before = end.long().cumsum(1) - end.long()
        unended = _uniform((shape[0], 1), x.device, generator) < 0.5
        inside = inside & (before == 0) & ~(end & unended)
        return Rows(torch.where(inside, codes, 0), inside)

    def divergence(self, model: Model, texts: Rows, *, generator: Generator) -> Tensor:
        """(U,): KL of both readings of a blank in each text, of one value in the first half and of two in the other."""
        present, device = texts.present, texts.x.device
        place = torch.arange(present.shape[1], device=device)
        words = present if self.breaks is None else present & (texts.x != self.breaks)
        count, size = words.sum(1), (torch.arange(len(present), device=device) >= len(present) // 2) + 1
        valid = count > size
        room = (count - size + 1).clamp(min=1)
        start = (_uniform((len(present),), device, generator) * room).long().clamp(max=room - 1)
        nothing = torch.zeros_like(present)
        whole = _rank(self.order, nothing, present)
        x, left = self._redrawn(model, texts, whole, start, generator)
        begin, end = start.unsqueeze(1), (start + size).unsqueeze(1)
        asked = (place >= begin) & (place < end) & present
        rank = _rank(self.order, present & ~asked, asked)
        with without_dropout(model):
            direct = _at(model.chain(x, rank, strict=True), start)  # (U, V), what the direct answer is trained by
        firsts = self._firsts(x.gather(1, begin), direct.detach(), left, generator)  # (U, K)
        score = direct.gather(1, firsts)
        answers = x.unsqueeze(1).repeat(1, self.proposals, 1)  # (U, K, M)
        answers = torch.where((place == begin).unsqueeze(1), firsts.unsqueeze(2), answers)
        half = len(x) // 2  # blanks of two begin there
        pairs, following = answers[half:].flatten(0, 1), (start[half:] + 1).clamp(max=len(place) - 1)
        ranks, places = (each.repeat_interleave(self.proposals, 0) for each in (rank[half:], following))
        with without_dropout(model):
            second = _at(model.chain(pairs, ranks, strict=True), places).view(len(following), self.proposals, -1)
        drawn = self._seconds(x[half:].gather(1, following.unsqueeze(1)), second.detach(), generator)
        more = second.gather(2, drawn.unsqueeze(2)).squeeze(2)
        score = torch.cat([score[:half], score[half:] + more])
        is_next = (place == following.unsqueeze(1)).unsqueeze(1)
        answers = torch.cat([answers[:half], torch.where(is_next, drawn.unsqueeze(2), answers[half:])])
        with torch.no_grad(), without_dropout(model):
            each = answers.flatten(0, 1)
            terms = model.chain(each, whole.repeat_interleave(self.proposals, 0), strict=True).log_prob(each)
            behind = present & (place >= begin)
            joint = torch.where(behind.unsqueeze(1), terms.view(answers.shape).double(), 0.0).sum(2)
            target = joint.log_softmax(1)
        found = (target.exp() * (target - score.double().log_softmax(1))).sum(1)
        return torch.where(valid, found, 0.0).to(score.dtype)

    def _redrawn(
        self, model: Model, texts: Rows, whole: Tensor, start: Tensor, generator: Generator
    ) -> tuple[Tensor, Tensor]:
        """int64 (U, M): the texts, some of their values drawn anew; and log p (U, V) at ``start`` of what comes there,
        before anything is."""
        with torch.no_grad(), without_dropout(model):
            chain = model.chain(texts.x, whole, strict=True)
            left, drawn = _at(chain, start), chain.sample(generator=generator).to(texts.x.dtype)
        device = texts.x.device
        share = 2.0 * self.redrawn * _uniform((len(drawn), 1), device, generator)
        some = (_uniform(drawn.shape, device, generator) < share) & texts.present
        if self.breaks is not None:
            some = some & (texts.x != self.breaks) & (drawn != self.breaks)
        return torch.where(some, drawn, texts.x), left

    def _firsts(self, truth: Tensor, direct: Tensor, left: Tensor, generator: Generator) -> Tensor:
        """int64 (U, K): the true first value (U, 1), of blanks of two twice, and others, none of them twice."""
        mixed = torch.logaddexp(direct.float(), left.float()).scatter(1, truth, -torch.inf)
        others = (mixed + _gumbel(mixed.shape, mixed.device, generator)).topk(self.proposals - 1, dim=1).indices
        twice = (torch.arange(len(truth), device=truth.device) >= len(truth) // 2).unsqueeze(1)
        return torch.cat([truth, torch.where(twice, truth, others[:, :1]), others[:, 1:]], 1)

    def _seconds(self, truth: Tensor, second: Tensor, generator: Generator) -> Tensor:
        """int64 (W, K) from log p (W, K, V): the true one (W, 1), another behind the same first, and one for each."""
        values = second.float().clone()
        values[:, 1] = values[:, 1].scatter(1, truth, -torch.inf)
        drawn = (values + _gumbel(values.shape, values.device, generator)).argmax(2)
        return torch.cat([truth, drawn[:, 1:]], 1)


def _rank(order: Order, given: Tensor, asked: Tensor) -> Tensor:
    return torch.where(given | asked, chain_rank(order, Question(given, asked)), NEVER)


def _at(marginals: object, place: Tensor) -> Tensor:
    """(B, V): log p of the values at one place of each row."""
    if not isinstance(marginals, FiniteMarginals):
        raise refuse("model", expected="one of codes", got=type(marginals).__name__)
    log_probs = marginals.log_probs
    return log_probs[torch.arange(len(place), device=place.device), place]


def _uniform(shape: tuple[int, ...], device: torch.device, generator: Generator) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64).to(device)


def _gumbel(shape: tuple[int, ...], device: torch.device, generator: Generator) -> Tensor:
    """Noise under which the largest log p are a draw without repeats."""
    uniform = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float32).to(device)
    return -(-uniform.clamp(1e-20, 1.0 - 1e-7).log()).log()
