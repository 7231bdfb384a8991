"""How values are drawn from a model of text, by one of these samplers or by any of ``anyfill.samplers``.

Their names:

    exact             one by one in the model's order, from a key-value cache if there is one
    speculative       the same law in fewer passes, where drafts are good (one-pass models)
    confidence        the most confident first, one at a time (models of any order)
    entropy-bounded   as many at once as are nearly independent (models of any order; an approximation)
"""

from dataclasses import dataclass, replace

import torch

from anyfill.checks import refuse, require_member
from anyfill.model import Model
from anyfill.questions.question import Factorization, Question
from anyfill.questions.supported import PREFERENCE, completed
from anyfill.samplers import Confidence, Draw, EntropyBounded, Sampler, Speculative

SAMPLERS = ("exact", "speculative", "confidence", "entropy-bounded")


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How to draw.

    Attributes:
        sampler: one of ``SAMPLERS``, or a sampler of your own.
        temperature, nucleus, top_k, typical: see ``Draw``.
        seed: of everything random.
    """

    sampler: str | Sampler = "exact"
    temperature: float = 1.0
    nucleus: float | None = None
    top_k: int | None = None
    typical: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.sampler, str):
            require_member("--sampler", self.sampler, SAMPLERS)
        _ = self.draw  # which refuses what cannot be

    @property
    def draw(self) -> Draw:
        """How one value is drawn."""
        return Draw(temperature=self.temperature, top_k=self.top_k, nucleus=self.nucleus, typical=self.typical)

    @property
    def is_usual(self) -> bool:
        """Whether nothing is said of how to draw, but for the seed."""
        return self == replace(SamplingOptions(), seed=self.seed)

    @property
    def more(self) -> str:
        """What finds more than was drawn: without randomness all draws are alike."""
        return "a --temperature above 0" if self.temperature == 0 else "more --draws"

    def generator(self) -> torch.Generator:
        """The source of all that is random."""
        return torch.Generator().manual_seed(self.seed)

    def policy(self, model: Model, asked: int) -> Sampler | None:
        """The sampler, for at most so many asked places; ValueError if the model was not trained for it."""
        if not isinstance(self.sampler, str):
            return self.sampler
        what = f"--sampler {self.sampler}"
        if self.sampler == "exact":
            return None
        if self.sampler == "speculative":
            if not model.is_one_pass:
                raise refuse(what, expected="a one-pass model", got=f"a {type(model.network).__name__}")
            return Speculative()
        if Factorization.ANY_ORDER not in model.factorizations:
            raise refuse(what, expected="a model trained for any order (recipe ardm)", got=trained_for(model))
        return Confidence(max(asked, 1)) if self.sampler == "confidence" else EntropyBounded()

    def require_supported(self, model: Model, question: Question, what: str, expected: str) -> None:
        """ValueError, in the words of a command, if the model was not trained for what this sampler asks of it."""
        if self.policy(model, 1) is None or self.sampler == "speculative":
            try:
                completed(model.factorizations, question, model.order, order=model.order)
            except ValueError:
                raise refuse(what, expected=expected, got=trained_for(model)) from None


def trained_for(model: Model) -> str:
    """What the model was trained for, in words."""
    return "one trained for: " + ", ".join(one.value for one in PREFERENCE if one in model.factorizations)
