"""Does a model of text agree with itself about a blank? Its direct answer against that of its joint.

For a blank of one or two codes b between s and t,

    direct   p(b | s, t), s and t given                 joint   p(s b t) / sum over b' of p(s b' t)

both over the same list of b, renormalised there: all there are, where they are few; else the likeliest of the direct
answer and of what s alone makes likely, ``LISTED`` each. Their total variation, 1/2 sum |p - q|, is 0 for a true joint
and at most 1.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import shared_prefix_log_prob
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question, chain_rank
from anyfill.text.word_proposals import code_log_probs

LISTED, FIRST = 100, 32
"""Answers that are listed of each reading; first codes of two that are gone on with, of each."""


@dataclass(frozen=True, slots=True, eq=False)
class BlankReadings:
    """What both readings say of the same answers to one blank.

    Attributes:
        answers: int64 (A, size), their codes.
        direct: float64 (A,), log p given both sides.
        joint: float64 (A,), log p of the text with each.
    """

    answers: Tensor
    direct: Tensor
    joint: Tensor

    def variation(self, direct: float = 1.0, joint: float = 1.0) -> float:
        """The total variation between them, each raised to a power and renormalised."""
        return 0.5 * float(((direct * self.direct).softmax(0) - (joint * self.joint).softmax(0)).abs().sum())


@dataclass(frozen=True, slots=True)
class BlankGap:
    """How far apart both readings of one blank are.

    Attributes:
        variation: total variation between them.
        listed: how many answers were compared.
        covered: the direct probability of these answers together.
    """

    variation: float
    listed: int
    covered: float


def blank_gap(model: Model, codes: Tensor, start: int, size: int) -> BlankGap:
    """Compare both readings of the blank at ``start`` of 1 or 2 codes in a text of codes (L,), at most a row.

    Raises:
        ValueError: the model has no cache that can be copied, or the blank is not within the text.
    """
    said = blank_readings(model, codes, start, size)
    return BlankGap(said.variation(), len(said.answers), float(said.direct.exp().sum()))


def blank_readings(model: Model, codes: Tensor, start: int, size: int) -> BlankReadings:
    """Both readings of that blank; see ``blank_gap``."""
    network = model.network
    if not isinstance(network, Windowed) or model.order != Increasing():
        raise refuse("model", expected="a one-pass model in increasing order", got=type(network).__name__)
    if size not in (1, 2) or not 0 <= start <= len(codes) - size or len(codes) > model.variables:
        got = f"{size} at {start} of {len(codes)}"
        raise refuse("blank", expected="one or two codes within a text of at most a row", got=got)
    x = torch.zeros(1, model.variables, dtype=torch.int64)
    x[0, : len(codes)] = codes
    place = torch.arange(model.variables).unsqueeze(0)
    asked = (place >= start) & (place < start + size)
    direct = opened_blank(model, x, Question((place < len(codes)) & ~asked, asked), start)
    left = opened_blank(model, x, Question(place < start, asked), start)
    firsts = torch.cat([each.topk(min(FIRST, len(each))).indices for each in (direct[0], left[0])]).unique()
    answers, values = _answers(direct[0], left[0], direct[1], left[1], firsts, size)
    rows = x.repeat(len(answers), 1)
    rows[:, start : start + size] = answers
    sizes = torch.full((len(rows),), len(codes))
    return BlankReadings(answers, values, torch.cat([*shared_prefix_log_prob(model, rows, sizes)]))


def opened_blank(model: Model, x: Tensor, question: Question, start: int) -> tuple[Tensor, "SecondCode"]:
    """log p (V,) of the first code of the blank, and what gives that of the second behind it."""
    with model.evaluating():
        params, cache = model.cached.open(x, chain_rank(model.order, question))
    return code_log_probs(model, params, start)[0].double(), SecondCode(model, cache, start + 1)


@dataclass(frozen=True, slots=True)
class SecondCode:
    """log p (F, V) of the second code behind each of F first ones."""

    model: Model
    cache: object
    place: int

    @property
    def network(self) -> Windowed:
        """The network; ValueError if it has no cache to go on from in several ways."""
        if not isinstance(self.model.network, Windowed):
            raise refuse("network", expected="one with a cache", got=type(self.model.network).__name__)
        return self.model.network

    def __call__(self, firsts: Tensor) -> Tensor:
        network = self.network
        with self.model.evaluating():
            params, _ = network.extend(firsts, network.select(self.cache, torch.zeros_like(firsts)))
        return code_log_probs(self.model, params, self.place).double()


def _answers(
    direct: Tensor, left: Tensor, second: SecondCode, second_left: SecondCode, firsts: Tensor, size: int
) -> tuple[Tensor, Tensor]:
    """int64 (A, size): the answers to compare, and their direct log p (A,)."""
    if size == 2:
        direct = (direct[firsts].unsqueeze(1) + second(firsts)).flatten()
        left = (left[firsts].unsqueeze(1) + second_left(firsts)).flatten()
    kept = torch.cat([each.topk(min(LISTED, len(each))).indices for each in (direct, left)]).unique()
    if size == 1:
        return kept.unsqueeze(1), direct[kept]
    codes = len(direct) // len(firsts)
    return torch.stack([firsts[kept.div(codes, rounding_mode="floor")], kept % codes], 1), direct[kept]
