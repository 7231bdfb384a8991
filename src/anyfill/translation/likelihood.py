"""The exact log-probability of a translation, where a model has one.

    length    log p(n | source) + sum_i log p(w_i | w_1 … w_{i-1}, n, source)          CMLM, DisCo
    end       sum_i log p(w_i | w_1 … w_{i-1}, source), END the last word              autoregression
    joined    the same, the source being the beginning of the row                      the one-pass model

PaDIR and SUNDAE predict every word from noise: there is no joint law of the words to be asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from anyfill.checks import refuse
from anyfill.evaluation import log_prob
from anyfill.networks.encoder_decoder import END
from anyfill.questions.order import HeadFirst, Increasing
from anyfill.questions.question import Question
from anyfill.translation.hypotheses import Coded
from anyfill.translation.recipes import layout_of


@dataclass(frozen=True, slots=True)
class Score:
    """The exact log-probability of a translation.

    Attributes:
        nats: log p(target | source), its length or end included.
        pieces: of the target.
        passes: of the network.
        by: the model that answered in the place of one without a likelihood; "" = the one that was asked.
    """

    nats: float
    pieces: int
    passes: int
    by: str = ""

    @property
    def per_piece(self) -> float:
        """Nats of a piece, END or length counted as one."""
        return self.nats / (self.pieces + 1)


def has_likelihood(recipe: str) -> bool:
    """Whether a model of this recipe has a joint law of the words."""
    return recipe not in ("padir", "sundae")


def exact_score(decoder: Coded, source: Sequence[int], target: Sequence[int]) -> Score:
    """log p(target | source), both as codes; ValueError if the model has no likelihood."""
    n = len(target)
    if not 1 <= n <= decoder.length:
        raise refuse("translation", expected=f"1 to {decoder.length} pieces", got=n)
    if not has_likelihood(decoder.recipe):
        raise refuse(
            "score", expected="a model with a likelihood (cmlm, disco, autoregressive, one_pass)", got=decoder.recipe
        )
    layout, device = layout_of(decoder.recipe), decoder.device
    x = torch.zeros(1, decoder.model.variables, dtype=torch.long)
    asked, told = torch.zeros_like(x, dtype=torch.bool), torch.zeros_like(x, dtype=torch.bool)
    context, order = torch.tensor([list(source)], device=device), None
    if layout == "joined":
        half = decoder.length + 1
        x[0, : len(source) + 1], told[0, : len(source) + 1] = torch.tensor([*source, END]), True
        x[0, half : half + n + 1], asked[0, half : half + n + 1] = torch.tensor([*target, END]), True
        context = None
    else:
        ends = layout == "end"
        x[0, : n + 1], asked[0, : n + 1] = torch.tensor([*target, END] if ends else [n, *target]), True
        order = None if ends else HeadFirst(Increasing())
    question = Question(told.to(device), asked.to(device))
    found = log_prob(decoder.model, x.to(device), question, order=order, context=context)
    return Score(float(found.value), n, found.passes)
