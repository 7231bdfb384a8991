"""The demo's models of digits: three ways to train, equal seconds each, compared on digits that were held out.

Per digit and question, score = log p(asked | given) in the order from the first pixel to the last. Bits per pixel are

    - sum over digits of log2 p(asked | given)  /  sum over digits of |asked|

with the standard error of that ratio over digits.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from anyfill import images, recipes
from anyfill.cli.examples import Digits
from anyfill.evaluation import log_prob
from anyfill.interface.threads import best_threads
from anyfill.likelihoods import Categorical
from anyfill.model import Model, seeded
from anyfill.networks.embed import Discrete
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.networks.transformer import Transformer
from anyfill.objectives.objective import Objective
from anyfill.questions import Question, UniformCardinality, UniformSplits
from anyfill.training import FitOptions, StepReport, fit_steps

Watch = Callable[[Iterator[StepReport], int | None, str], Iterator[StepReport]]
"""Shows how a training run goes: the signature of ``anyfill.interface.progress.watch``."""
OPTIONS = FitOptions(warmup_steps=20, optimizer="muon", device="cpu")
"""Of every model of the demo; so small a model gains nothing from an accelerator."""

WIDTH, DEPTH, HEADS = 64, 3, 4
BATCH = 32
EXAMPLES = (95, 71, 29, 13, 42, 48)
"""The held-out digits that are filled: legible ones, chosen by looking at the originals only."""
ROWS_PER_PASS = 256
"""Rows of a pass when scoring: more do not fit into a core's cache."""
QUESTIONS = {"joint": "all pixels", "marginal": "a random subset", "conditional": "a random subset given another"}


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to train.

    Attributes:
        about: the recipe in one sentence.
        network: the class of its network; all have the same width and depth.
        objective: from the number of variables.
        conditional: how it reads log p(asked | given) off the network.
    """

    about: str
    network: type[nn.Module]
    objective: Callable[[int], Objective]
    conditional: str = "directly"

    def build(self, digits: Digits, seed: int) -> Model:
        """An untrained model; ``seed`` is of its first weights."""
        with seeded(seed):
            network = self.network(
                Discrete(digits.levels), digits.shape, digits.levels, width=WIDTH, depth=DEPTH, heads=HEADS
            )
        return Model(network, Categorical(digits.levels))  # pyright: ignore[reportArgumentType]

    def train(self, name: str, digits: Digits, seconds: float, seed: int, watch: Watch) -> tuple[Model, StepReport]:
        """A model after so many seconds, and the last report of its training. All have the same settings.

        The rate was chosen at this budget, on digits taken out of the training part: of 0.005, 0.01, 0.02 and 0.04 it
        is the best for each of the three, or within 0.03 bits of the best on each question. Width, depth and batch size
        were chosen with the one-pass model alone.
        """
        model, clock_decides = self.build(digits, seed), 1_000_000
        options = replace(
            OPTIONS, steps=clock_decides, seconds=seconds, batch_size=BATCH, learning_rate=0.02, seed=seed
        )
        *_, last = watch(fit_steps(model, digits.train, self.objective(model.variables), options), None, name)
        return model, last


CONTENDERS = {
    "one-pass": Contender(
        "a causal decoder reads given, then asked pixels, each in increasing order; a pass trains all 64 terms.",
        OnePassTransformer,
        recipes.one_pass.objective,
    ),
    "ARDM": Contender(
        "a bidirectional network learns every pixel given every random subset of the others.",
        Transformer,
        recipes.ardm.objective,
    ),
    "MAC": Contender(
        "the same network learns only what answering in increasing order will ask (the loss of its released code).",
        Transformer,
        recipes.mac.objective_rest,
        "as the difference of two marginals",
    ),
}


def threads_for(digits: Digits) -> tuple[int, int]:
    """How many threads to train with, and how many to score with: the fastest, by trying (a second or two)."""
    contender = CONTENDERS["one-pass"]
    model = contender.build(digits, 0)
    objective = contender.objective(model.variables)
    generator = torch.Generator().manual_seed(0)
    some, many = (digits.train.take(torch.arange(size)) for size in (BATCH, ROWS_PER_PASS))

    def step() -> None:
        objective(model, some, generator=generator).sum().backward()

    def passing() -> None:
        with model.evaluating():
            objective(model, many, generator=generator)

    return best_threads(step), best_threads(passing)


def questions_for(digits: Digits, count: int, seed: int) -> dict[str, Question]:
    """What is asked of ``count`` held-out digits: everything, random subsets, random subsets given random others."""
    variables = digits.test.variables
    generator = torch.Generator().manual_seed(seed)
    everything = torch.ones(count, variables, dtype=torch.bool)
    return {
        "joint": Question(~everything, everything),
        "marginal": UniformCardinality(variables, "nothing").sample(count, generator=generator),
        "conditional": UniformSplits(variables).sample(count, generator=generator),
    }


@dataclass(frozen=True, slots=True)
class Score:
    """One kind of question, scored.

    Attributes:
        bits: per pixel asked.
        stderr: of ``bits``, over digits.
        kind: exact, bound or estimate.
        passes: network passes one digit needed, at most.
        seconds: wall-clock time to score all digits.
    """

    bits: float
    stderr: float
    kind: str
    passes: int
    seconds: float


def score(model: Model, x: Tensor, question: Question) -> Score:
    """Bits per asked pixel of rows (B, N) under one kind of question."""
    start = time.perf_counter()
    answer = log_prob(model, x, question, rows_per_pass=ROWS_PER_PASS)
    seconds = time.perf_counter() - start
    asked = question.asked.sum(1).double()
    bits = -answer.value / math.log(2)
    ratio = bits.sum() / asked.sum()
    # A ratio of two sums over digits: its error is that of what the ratio leaves unexplained.
    rest = bits - ratio * asked
    stderr = rest.std(correction=min(1, len(x) - 1)) / (asked.mean() * math.sqrt(len(x)))
    return Score(float(ratio), float(stderr), answer.kind, answer.passes, seconds)


@dataclass(frozen=True, slots=True)
class Fill:
    """A digit with a part erased, and what the model puts there.

    Attributes:
        name: what was erased.
        original: (64,).
        given: bool (64,).
        samples: (n, 64).
        bits: per erased pixel, of the original: - log2 p(erased | given) / |erased|.
        kind: of ``bits``.
        passes: of ``bits``.
    """

    name: str
    original: Tensor
    given: Tensor
    samples: Tensor
    bits: float
    kind: str
    passes: int


def patterns(shape: tuple[int, int], seed: int) -> dict[str, Tensor]:
    """Named parts of an image that stay: bool (H * W,), True = given."""
    height, width = shape
    row = torch.arange(height).unsqueeze(1).expand(shape)
    column = torch.arange(width).unsqueeze(0).expand(shape)
    chance = torch.rand(shape, generator=torch.Generator().manual_seed(seed))
    stay = {
        "bottom half erased": row < height // 2,
        "right half erased": column < width // 2,
        "random half erased": chance < chance.median(),
        "frame erased": (row >= height // 4)
        & (row < height - height // 4)
        & (column >= width // 4)
        & (column < width - width // 4),
        "two columns left": (column == width // 2 - 1) | (column == width // 2),
        "every other row erased": row % 2 == 0,
    }
    return {name: given.flatten() for name, given in stay.items()}


def fill(model: Model, digits: Digits, *, samples: int, seed: int) -> list[Fill]:
    """One held-out digit for each pattern, filled several times."""
    cases = patterns(digits.shape, seed)
    x, given = digits.test.x[list(EXAMPLES)], torch.stack(list(cases.values()))
    conditional = model.given(x, given)
    drawn = conditional.sample(samples, seed=seed)
    answer = conditional.log_prob(x)
    bits = -answer.value / math.log(2) / (~given).sum(1)
    return [
        Fill(name, x[i], given[i], drawn[:, i], float(bits[i]), answer.kind, answer.passes)
        for i, name in enumerate(cases)
    ]


def enlarged(digits: Digits) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """uint8 (n, 28, 28, 1): the digits of ``fill`` as MNIST shows digits, 20 pixels large in the middle of 28, light on
    dark, black and white."""
    small = (digits.test.x[list(EXAMPLES)].reshape(-1, 1, *digits.shape) / (digits.levels - 1)).float()
    large = nn.functional.interpolate(small, (20, 20), mode="bicubic").clamp(0, 1)
    framed = nn.functional.pad((large > 0.5).byte() * 255, (4, 4, 4, 4))
    return framed.movedim(1, 3).numpy()


def fill_enlarged(digits: Digits, *, samples: int, seed: int) -> list[Fill]:
    """The same digits and patterns, filled by the model of handwritten digits that ships."""
    model = images.load("digits")
    cases = patterns((model.about.height, model.about.width), seed)
    found: list[Fill] = []
    for (name, given), pixels in zip(cases.items(), enlarged(digits)):
        erased = ~given.reshape(pixels.shape[:2]).numpy()
        fills, scored = model.fill(pixels, erased, n=samples, seed=seed), model.score(pixels, erased)
        drawn = torch.from_numpy(np.stack([one.pixels for one in fills])).flatten(1)
        original = torch.from_numpy(pixels).flatten()
        found.append(Fill(name, original, given, drawn, scored.bits_per_dimension, scored.kind, 1))
    return found


def dream(model: Model, count: int, seed: int) -> Tensor:
    """(count, 64): digits drawn from nothing."""
    blank = torch.zeros(count, model.variables, dtype=torch.int64)
    return model.given(blank, torch.zeros_like(blank, dtype=torch.bool)).sample(1, seed=seed)[0]
