"""What decoding takes and gives, and what every decoder has: a model, its codes, one way through the sampling loop."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from anyfill.checks import refuse_given, require_count, require_member, require_seed
from anyfill.interface.options import option_name
from anyfill.model import Model
from anyfill.questions.question import Question, chain_rank
from anyfill.samplers import Draw, Sampler, State, Task, trace
from anyfill.samplers.loop import run
from anyfill.samplers.rowwise import RowStreams
from anyfill.translation.constraints import Fixed
from anyfill.translation.recipes import layout_of
from anyfill.translation.vocabulary import FIRST, MAX_PLACEHOLDERS, Joint, is_placeholder

ROWS = {"cpu": 256, "cuda": 8192}
"""Candidates decoded side by side."""
MOST = 64
"""Ways to meet a constraint that are tried for one source."""
NOISY = ("padir", "sundae")
"""Recipes that start from noise: all others decode in one way, whatever the seed."""
_OPTIONS = {"length": ("passes", "lengths"), "end": ("beam", "length_penalty"), "joined": ("speculative",)}
Ways = Callable[[Tensor], list[Fixed]]
"""From log p(n | source) (N,) of n = 1 … N to what is tried."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """How to decode.

    Attributes:
        passes: T, of models that decode in parallel.
        lengths: how many of the likeliest lengths are tried.
        beam: beams of autoregressive models; 1 = greedy.
        stutter: remask repeated words between passes, drop them after the last (PaDIR).
        shorten: so often a row in which words were dropped is decoded again without them, at the length it has then.
        rank: how candidates compare.
        reward: r of ranking by the mean, nats a word.
        prior: l of ranking by the mean, the weight of log p(n | source).
        length_penalty: of beams.
        speculative: one-pass models guess several words at a time; the result is the same.
        seed: of the noise that PaDIR and SUNDAE start from.
    """

    passes: int = 4
    lengths: int = 3
    beam: int = 4
    stutter: bool = True
    shorten: int = 1
    rank: Literal["mean", "joint"] = "mean"
    reward: float = 0.015
    prior: float = 0.07
    length_penalty: float = 1.0
    speculative: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", require_seed("seed", self.seed))
        require_count("passes", self.passes, maximum=1000)
        require_count("lengths", self.lengths, maximum=64)
        require_count("beam", self.beam, maximum=64)
        require_count("shorten", self.shorten, minimum=0)
        require_member("rank", self.rank, ("mean", "joint"))


def decoding_options(recipe: str) -> tuple[str, ...]:
    """Those of ``Decoding`` that a model of this recipe has a use for and ``translate`` takes."""
    return _OPTIONS[layout_of(recipe)] + (("seed",) if recipe in NOISY else ())


def decoding_of(recipe: str, said: Mapping[str, Any]) -> Decoding:
    """How to decode, by what was said; None = it was not. ValueError if it means nothing to this recipe."""
    known = {name: value for name, value in said.items() if value is not None}
    used = decoding_options(recipe)
    why = f"with the recipe {recipe}, which decodes by {' and '.join(used)}"
    refuse_given(why, {option_name(name): value for name, value in known.items() if name not in (*used, "seed")})
    return Decoding(**known)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation in codes.

    Attributes:
        codes: its words.
        score: mean log-probability of a word, or all of it where candidates are ranked jointly; nats.
        log_prob: log p(n) + sum of the words' log-probabilities, by the passes that wrote them; exact where ``exact``.
        exact: whether that is the model's likelihood.
        passes: of the network.
        history: the row after each pass, if it was wanted.
    """

    codes: tuple[int, ...]
    score: float
    log_prob: float
    exact: bool
    passes: int
    history: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Coded:
    """A model and its codes.

    Attributes:
        model: trained.
        recipe: what it is.
        vocabulary: its codes.
    """

    model: Model
    recipe: str
    vocabulary: Joint

    @property
    def length(self) -> int:
        """N, the most pieces of a side."""
        half = self.model.variables // 2 if layout_of(self.recipe) == "joined" else self.model.variables
        return half - 1

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.model.parameters()).device

    @property
    def rows_at_once(self) -> int:
        """How many candidates go through the network together."""
        return ROWS.get(self.device.type, ROWS["cpu"])

    def never(self, source: Sequence[int]) -> Tensor:
        """bool (V,): codes of no text (END is one), and placeholders that the source has not."""
        never = torch.arange(self.vocabulary.size) < FIRST + MAX_PLACEHOLDERS
        never[[code for code in source if is_placeholder(code)]] = False
        return never

    def _states(
        self,
        policy: Sampler,
        draw: Draw,
        x: Tensor,
        question: Question,
        context: Any,
        seed: int,
        *,
        all_of_them: bool = False,
        keys: Tensor | None = None,
        begun: bool = False,
    ) -> list[State]:
        """The last state, or all of them. With keys (R,), the first noise of a row is its own, whatever its company.

        Rows that were ``begun`` start from the words that stand in x.
        """
        with self.model.evaluating():  # once for all passes
            generator = torch.Generator(self.device).manual_seed(seed)
            if keys is None and not begun:
                found = trace(self.model, x, question, policy=policy, draw=draw, context=context, generator=generator)
            else:
                nothing = Question(question.given, torch.zeros_like(question.asked))
                rank = chain_rank(self.model.fixed_order, nothing)
                if keys is None:
                    first = State.first(x, torch.where(question.given, rank, 0))
                else:
                    uniform = RowStreams(keys).uniform(tuple(x.shape), x.device)
                    first = State.first(torch.where(question.given, x, (uniform * self.vocabulary.size).long()), rank)
                task = Task(self.model, x, question, draw, context, generator)
                found = run(policy.along(self.model.order), task, first)
            states: list[State] = []
            for state in found:
                states = [*states, state] if all_of_them else [state]
        return states


def padded(sources: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """int64 (B, S): codes with 0 behind the end."""
    longest = max(len(source) for source in sources)
    return torch.tensor([[*source, *[0] * (longest - len(source))] for source in sources], device=device)
