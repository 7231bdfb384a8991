"""Mixtures of families, and SFARM's masking modes, which are one (Flexible Conditional Generation with Stochastically
Factorized Autoregressive Models, 3.5).

A mode has a region A. Stage (a) activates the variables of A one by one, each time a uniform one of those left; stage
(b) then does the same with the complement B (eq. 12). With |A| + |B| = N steps in all, at a uniform step (eq. 8)

    stage (a)   known = a part of A             asked = the rest of A,   P(known, asked) = 1 / [N C(|A|, |asked|)]
    stage (b)   known = A and a part of B       asked = the rest of B,   P(known, asked) = 1 / [N C(|B|, |asked|)]

``asked`` is every variable that could be next. Each of them is next with probability 1 / |asked|, so the weights of
eq. 8 to 10 are N / |asked| (``anyfill.objectives.Stepwise``). A region that is everything, or nothing, is the random
mode: then this is ``UniformCardinality`` and the loss is ARDM's (eq. 11). Several modes are a ``Mixture``,
P(question) = (1/K) sum_k P_k(question) (eq. 2).

Drawn without a sort: one variable is asked for certain, and whether it lies in A decides the stage, with probability
|A| / N; the others of its region are asked with a uniform probability (see ``draws``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.questions.draws import below, only, uniforms
from anyfill.questions.enumerate import enumerate_questions, merged, require_listable
from anyfill.questions.question import Factorization, Family, Order, Question, Questions, Weighted

Region = tuple[bool, ...]
"""For each of the N variables whether it belongs to the region."""


@dataclass(frozen=True, slots=True)
class Mixture(Family):
    """Each row's question comes from one of the parts, all equally likely.

    Args:
        parts: families over the same number of variables.
    """

    parts: tuple[Questions, ...]

    def __post_init__(self) -> None:
        if len(self.parts) == 0:
            raise refuse("Mixture parts", expected="at least one family of questions", got="none")
        counts = [part.variables for part in self.parts]
        if len(set(counts)) > 1:
            raise refuse("variables of Mixture parts", expected="the same number in each part", got=counts)
        orders = [part.follows for part in self.parts if part.follows is not None]
        if any(order != orders[0] for order in orders):
            raise refuse("orders of Mixture parts", expected="the same wherever there is one", got=orders)

    @property
    def variables(self) -> int:
        """N, the number of variables of every part."""
        return self.parts[0].variables

    @property
    def follows(self) -> Order | None:
        """The protocol w of the parts that follow one."""
        return next((part.follows for part in self.parts if part.follows is not None), None)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """What any part trains, the mixture trains (at 1/K of the pace)."""
        return frozenset[Factorization]().union(*(part.factorizations for part in self.parts))

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """What the paths of any part train, the paths of the mixture train."""
        return frozenset[Factorization]().union(*(part.path_factorizations for part in self.parts))

    def sample(self, batch: int, *, generator: Generator) -> Question:
        return self.draw(batch, generator=generator)[0]

    def draw(self, batch: int, *, generator: Generator) -> tuple[Question, Tensor]:
        """``batch`` questions, tensors (B, N), and which part each row came from, int64 (B,)."""
        component = below(len(self.parts), batch, generator)
        # Every part draws the whole batch and keeps its own rows: to count rows first would make a GPU wait.
        questions = [part.sample(batch, generator=generator) for part in self.parts]
        given, asked = questions[0].given, questions[0].asked
        for number, question in enumerate(questions[1:], start=1):
            given = torch.where(component == number, question.given, given)
            asked = torch.where(component == number, question.asked, asked)
        return Question(given, asked), component.squeeze(1)

    def support(self) -> list[Weighted]:
        """Every question of every part, once."""
        return merged(
            question._replace(probability=question.probability / len(self.parts))
            for part in self.parts
            for question in enumerate_questions(part)
        )


@dataclass(frozen=True, slots=True)
class Staged(Family):
    """A uniform step of a two-stage activation: what is known, and all that may come next.

    Args:
        region: for each of the N variables whether stage (a) activates it.
    """

    region: Region

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", _checked("Staged region", self.region))

    @property
    def variables(self) -> int:
        """N."""
        return len(self.region)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """Any order if there is one stage only; with two, no chain but the mode's own is trained whole."""
        return frozenset({Factorization.ANY_ORDER}) if self._one_stage else frozenset()

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """Every completion if there is one stage only."""
        return frozenset({Factorization.INPAINTING}) if self._one_stage else frozenset()

    @property
    def _one_stage(self) -> bool:
        return len(set(self.region)) == 1

    def sample(self, batch: int, *, generator: Generator) -> Question:
        region = torch.tensor(self.region, device=generator.device)
        certain = only(below(self.variables, batch, generator), self.variables)
        second = ~(certain & region).any(1, keepdim=True)
        stage = region != second  # the variables of the stage: A in stage (a), B in stage (b)
        rate = uniforms(batch, 1, generator)
        asked = stage & ((uniforms(batch, self.variables, generator) < rate) | certain)
        return Question((stage & ~asked) | (second & region), asked)

    def support(self) -> list[Weighted]:
        """All 2^|A| - 1 questions of stage (a) and 2^|B| - 1 of stage (b)."""
        first = [i for i, inside in enumerate(self.region) if inside]
        second = [i for i, inside in enumerate(self.region) if not inside]
        count = 2 ** len(first) + 2 ** len(second) - 2
        require_listable("Staged", self.variables, count)
        return [
            Weighted(
                tuple(sorted({*before, *stage}.difference(asked))),
                asked,
                Fraction(1, self.variables * comb(len(stage), size)),
            )
            for before, stage in (([], first), (first, second))
            for size in range(1, len(stage) + 1)
            for asked in combinations(stage, size)
        ]


@dataclass(frozen=True, slots=True)
class InStages(Order):
    """A fresh uniform order for every row in which the variables of the region come first: to sample a mode's way.

    Args:
        region: for each of the N variables whether it belongs to the first stage.
    """

    region: Region

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", _checked("InStages region", self.region))

    @property
    def random(self) -> bool:
        return True

    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64: the stage, random bits, and the position, so that keys are distinct with certainty."""
        if generator is None:
            raise refuse("InStages.priority", expected="a generator to draw the order from", got="none")
        if variables != len(self.region):
            raise refuse("variables", expected=f"{len(self.region)}, as the region has", got=variables)
        low_bits = max(variables - 1, 1).bit_length()
        bits = torch.randint(2 ** (61 - low_bits), (batch, variables), generator=generator, device=generator.device)
        second = ~torch.tensor(self.region, device=generator.device)
        return (second.long() << 61) | (bits << low_bits) | torch.arange(variables, device=generator.device)


def directions(shape: tuple[int, int]) -> tuple[Region, Region, Region, Region]:
    """The left, right, top and bottom half of an image (height, width), each the first stage of one mode.

    The middle row or column of an odd side belongs to the right or bottom half.
    """
    height, width = shape
    left = [x < width // 2 for _ in range(height) for x in range(width)]
    top = [y < height // 2 for y in range(height) for _ in range(width)]
    return tuple(left), tuple(not inside for inside in left), tuple(top), tuple(not inside for inside in top)


def patches(shape: tuple[int, int]) -> tuple[Region, Region]:
    """The inner and the outer part of an image (height, width), each the first stage of one mode.

    The inner part is the middle half of either side (the paper does not say how large its patches are).
    """
    height, width = shape
    inner = [
        height // 4 <= y < height - height // 4 and width // 4 <= x < width - width // 4
        for y in range(height)
        for x in range(width)
    ]
    return tuple(inner), tuple(not inside for inside in inner)


def _checked(name: str, region: Sequence[bool] | Tensor) -> Region:
    """The region as a tuple; ValueError unless it is one bool for each of at least one variable."""
    values = region.tolist() if isinstance(region, Tensor) else list(region)
    if not values or any(not isinstance(inside, bool) for inside in values):
        raise refuse(name, expected="True or False for each variable", got=str(region)[:60])
    return tuple(values)
