"""How values are drawn, and which samplers a model may be asked with.

exact             one by one in the model's order, from a key-value cache if there is one
speculative       the same law in fewer passes, where drafts are good (one-pass models)
confidence        the most confident first, one at a time (models of any order)
entropy-bounded   as many at once as are nearly independent (models of any order; an approximation)
"""

import os
from dataclasses import dataclass, field

import torch

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.questions.question import Factorization
from anyfill.questions.supported import PREFERENCE
from anyfill.samplers import Confidence, Draw, EntropyBounded, Sampler, Speculative

SAMPLERS = ("exact", "speculative", "confidence", "entropy-bounded")
ROWS = 64
"""Rows drawn side by side: enough for a processor to be busy, few enough to see how the work goes on."""
_MAX_THREADS = 4


@dataclass(frozen=True, slots=True)
class Manner:
    """How to draw.

    Attributes:
        draw: temperature, top-k, nucleus, typical.
        sampler: one of ``SAMPLERS``.
    """

    draw: Draw = field(default_factory=Draw)
    sampler: str = "exact"

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise refuse("--sampler", expected=", ".join(SAMPLERS), got=repr(self.sampler))

    def policy(self, model: Model, asked: int) -> Sampler | None:
        """The sampler, for at most so many asked places; ValueError if the model was not trained for it."""
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


def trained_for(model: Model) -> str:
    """What the model was trained for, in words."""
    return "one trained for: " + ", ".join(one.value for one in PREFERENCE if one in model.factorizations)


def free_threads() -> int:
    """How many threads to compute with: as many as nobody else uses, for the load of the last minute; at most four.

    On a busy machine every operation of several threads waits for the one that is held up, and takes many times as long
    as with one; and finding out by trying would take longer than a sentence takes to fill.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    free = round((os.cpu_count() or 1) - load)
    return max(1, min(free, torch.get_num_threads(), _MAX_THREADS))


def generator_of(seed: int) -> torch.Generator:
    """The source of all that is random in a command."""
    return torch.Generator().manual_seed(seed)
