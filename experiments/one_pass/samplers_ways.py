"""The samplers that ``samplers.py`` compares, each at a range of costs, in the order in which they are measured.

A *way* is one point of one line of the picture: a model, a policy or decoder, and how values are drawn.

    one by one           the model's own order, from the cache where there is one: what log-probabilities speak of
    speculative          the same law in fewer passes, drafted by the network itself or by n-grams of the training text
    consecutive groups   S groups of neighbours, each answered at once, in the model's order
    random groups        S groups of a random order (ARDM); S = all of them: one by one in a random order
    confidence           the most confident first, S steps, linear or cosine (MaskGIT)
    entropy-bounded      as many at once as are nearly independent, up to a bound in nats (EB-sampler)
    remasking            S steps that fill and take back a tenth at random (ReMDM); "unlikely": the least probable
    annealed Gibbs       S rounds of independent blocks that shrink (Coconet)
    fill, then Gibbs     S / 2 random groups, then S / 2 single characters anew
    chain                S rounds of denoising: SUNMASK (trust grows), "balanced", "re-noised"; SUNDAE (share 0.3)

A one-pass network reads values in the order in which they became known, and was trained for blocks in its own order.
Ways that decide on the way therefore ask it as if it were masked (``SortedBlock``): what is known is read as one given
block in the model's order, at the price of reading it anew. One way ("as answered") does not, for comparison.

Some ways have a law that can be computed for a given text: whoever chooses *where* without looking at *what* is drawn
gives a text the product of the probabilities met on the way, and feeding the text in place of the draws (``Truth``)
meets them. It is exact, or where the order is drawn at random the expectation of a bound.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Generator, Tensor, nn

from anyfill.evaluation import log_prob
from anyfill.likelihoods.marginals import Marginals
from anyfill.model import Model
from anyfill.networks.network import Unspecified
from anyfill.questions import Factorization, Question, Shuffled
from anyfill.questions.supported import step_factorization
from anyfill.samplers import (
    Anneal,
    AnnealedGibbs,
    CachedChain,
    Confidence,
    Draw,
    EntropyBounded,
    Follow,
    Gibbs,
    Policy,
    Rewrite,
    Sampler,
    Speculative,
    trace,
)
from anyfill.samplers.confidence import Remask
from anyfill.samplers.drafts import Draft

MODELS = ("one_pass", "ardm", "mac_rest", "sunmask", "sundae", "left_to_right")
JUDGE = "left_to_right"
BUDGETS = (8, 16, 32, 64, 128, 250)
BOUNDS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
DRAWS = {
    "as it is": Draw(),
    "temperature 0.8": Draw(temperature=0.8),
    "nucleus 0.95": Draw(nucleus=0.95),
    "typical 0.9": Draw(typical=0.9),
    "mode": Draw(temperature=0.0),
}
_WAVE = {32: 0, 128: 1, 8: 1, 64: 2, 16: 2, 250: 3, 1.0: 0, 10.0: 0, 0.1: 1, 3.0: 1, 0.3: 2, 0.03: 3}
"""When a setting's turn comes: the middle, then what is around it, then what takes longest."""

Task = Literal["free", "blanks", "text"]
Made = Sampler


@dataclass(frozen=True, slots=True)
class Way:
    """One measurement.

    Attributes:
        model: name of its folder.
        sampler: name of its line.
        setting: budget of passes, bound in nats, or None where there is nothing to set.
        policy: what samples.
        draw: name in ``DRAWS``.
        task: "free" = whole chunks from nothing, "blanks" = words in held-out chunks, "text" = held-out chunks under
            the way's own law (nothing is drawn).
        sorted_block: ask a one-pass network as if it were masked.
        wave: smaller is measured sooner.
    """

    model: str
    sampler: str
    setting: float | None
    policy: Made
    draw: str = "as it is"
    task: Task = "free"
    sorted_block: bool = False
    wave: int = field(default=0, compare=False)

    @property
    def key(self) -> dict[str, str | float | None]:
        """What tells it from all others in a file of results."""
        return {
            "model": self.model,
            "sampler": self.sampler,
            "setting": self.setting,
            "draw": self.draw,
            "task": self.task,
        }

    @property
    def law(self) -> Literal["exact", "bound"] | None:
        """What the product of the probabilities met on the way is; None = no such law, or none that can be computed."""
        if self.draw != "as it is":
            return None
        match self.policy:
            case CachedChain() | Speculative() | EntropyBounded() | Confidence(by="mode"):
                return "exact"
            case Follow():
                return "bound" if self.policy.order is not None and self.policy.order.random else "exact"
            case _:
                return None


def ways(budgets: Sequence[int] = BUDGETS, bounds: Sequence[float] = BOUNDS, draft: Draft | None = None) -> list[Way]:
    """All of them, the most informative first; ``draft`` is made of n-grams (without one, no way uses any)."""
    plain = [way for line in _lines(budgets, bounds, draft) for way in line]
    both = [
        replace(way, task=task) for way in plain for task in ("free", "blanks") if task == "free" or way.model != JUDGE
    ]
    laws = [replace(way, task="text", wave=way.wave + 1) for way in plain if way.law and way.model != JUDGE]
    return sorted([*both, *laws, *_drawn_otherwise(plain)], key=lambda way: way.wave)


def _lines(budgets: Sequence[int], bounds: Sequence[float], draft: Draft | None) -> Iterator[list[Way]]:
    def line(
        model: str, sampler: str, made: Callable[[Any], Made], settings: Sequence[float] = budgets, later: int = 0
    ) -> list[Way]:
        apart = model == "one_pass" and sampler not in ("consecutive groups", "confidence, as answered")
        return [
            Way(model, sampler, each, made(each), sorted_block=apart, wave=_WAVE.get(each, 0) + later)
            for each in settings
        ]

    def alone(model: str, sampler: str, policy: Made) -> list[Way]:
        return [Way(model, sampler, None, policy)]

    few, some_bounds = budgets[::2], bounds[1::2] or bounds
    yield alone(JUDGE, "one by one", CachedChain())
    yield alone("one_pass", "one by one", CachedChain())
    yield alone("one_pass", "speculative", Speculative())
    for model in (JUDGE, "one_pass") if draft is not None else ():
        yield alone(model, "speculative, n-grams", Speculative(draft=draft))
    yield alone("ardm", "one by one", Follow())
    for model in ("ardm", "one_pass"):
        yield line(model, "random groups", lambda s: Follow(Shuffled(), s))
        yield line(model, "confidence, cosine", Confidence)
        yield line(model, "entropy-bounded", EntropyBounded, bounds)
    yield line("ardm", "remasking", Remask)
    yield line("ardm", "annealed Gibbs", AnnealedGibbs)
    yield line("sunmask", "chain", lambda s: Rewrite(s, Anneal()))
    yield line("sundae", "chain", lambda s: Rewrite(s, share=0.3))
    yield alone("mac_rest", "one by one", Follow())
    yield line("mac_rest", "random groups", lambda s: Follow(Shuffled(), s), few, 1)
    yield line("mac_rest", "confidence, cosine", Confidence, few, 1)
    yield line("mac_rest", "entropy-bounded", EntropyBounded, some_bounds, 1)
    yield line("one_pass", "remasking", Remask, few, 1)
    yield line("ardm", "remasking, unlikely", lambda s: Remask(s, drops="unlikely"), few, 1)
    yield line("one_pass", "consecutive groups", lambda s: Follow(groups=s), few, 1)
    yield line("ardm", "fill, then Gibbs", _fill_then_gibbs, few, 2)
    yield line("ardm", "confidence, linear", lambda s: Confidence(s, "linear"), few, 2)
    yield line("sunmask", "chain, balanced", lambda s: Rewrite(s, Anneal(), balanced=True), few, 2)
    yield line("sunmask", "chain, re-noised", lambda s: Rewrite(s, Anneal(), noisy=True), few, 2)
    yield line("one_pass", "confidence, as answered", Confidence, few, 2)


def _fill_then_gibbs(passes: int) -> Gibbs:
    half = max(1, passes // 2)
    return Gibbs(1, half, first=Follow(Shuffled(), half))


def _drawn_otherwise(plain: Sequence[Way]) -> Iterator[Way]:
    """A few ways with sharper draws; of the modes of whole chunks there is nothing to say, so only blanks have them."""
    few = {
        (JUDGE, "one by one", None),
        ("one_pass", "one by one", None),
        ("ardm", "random groups", 64),
        ("ardm", "confidence, cosine", 64),
        ("ardm", "remasking", 64),
        ("sunmask", "chain", 64),
        ("sundae", "chain", 64),
    }
    for way in plain:
        if (way.model, way.sampler, way.setting) not in few:
            continue
        for name in ("temperature 0.8", "nucleus 0.95", "typical 0.9"):
            yield replace(way, draw=name, wave=2)
        for name in ("mode", "temperature 0.8") if way.model != JUDGE else ():
            yield replace(way, draw=name, task="blanks", wave=2)


class SortedBlock(nn.Module, Unspecified):
    """A one-pass network asked as a masked one: every unknown variable given the known ones, read in rising order."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.inner = network

    @property
    def variables(self) -> int:
        """N."""
        return int(self.inner.variables)  # type: ignore[arg-type]

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, P) from values and known (B, N)."""
        return self.inner(x, known, context)

    @classmethod
    def of(cls, model: Model) -> Model:
        """The model so asked. Each answer is p(one | a sorted given block): trained where any part may be asked, not
        by a model that only completes rows, to which nothing but the first hole ever followed the block."""
        factorizations = [Factorization.ANY_ORDER] if Factorization.DIRECT in model.factorizations else []
        return Model(cls(model.network), model.likelihood, order=model.order, factorizations=factorizations)


@dataclass(frozen=True, slots=True, eq=False)
class Truth(Draw):
    """Draws the values x (B, N) that are already there: the scores on the way are then those of a text's own law."""

    x: Tensor = field(default_factory=lambda: torch.empty(0))

    def __call__(self, marginals: Marginals, *, generator: Generator) -> Tensor:
        return self.x


def supported(way: Way, model: Model, question: Question) -> bool:
    """True if the model was trained on every conditional that the way may meet."""
    order, parallel = model.order, False
    if isinstance(way.policy, Policy):
        policy = way.policy.along(model.order)
        order, parallel = policy.order, policy.parallel
    return step_factorization(model.factorizations, question, model.order, order=order, parallel=parallel) is not None


def own_log_prob(
    way: Way, model: Model, x: Tensor, question: Question, *, allow_untrained: bool = False, generator: Generator
) -> Tensor:
    """float64 (B,): log p of the asked in x (B, N) under the law of the way; with random orders one draw of a bound."""
    if not isinstance(way.policy, Policy):  # one by one, whatever it is that makes it fast
        return log_prob(model, x, question).value
    states = trace(
        model, x, question, way.policy, draw=Truth(x=x), generator=generator, allow_untrained=allow_untrained
    )
    *_, last = states
    return torch.where(question.asked, last.score, 0.0).sum(1)
