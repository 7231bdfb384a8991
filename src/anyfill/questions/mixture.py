"""A uniform mixture of families: SFARM's modes (random, four directions, inner and outer patch) are one.

    P(question) = (1/K) Σ_k P_k(question)

``draw`` also says which part each row came from, which a network may be told (SFARM's mode embedding).
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.questions.draws import below
from anyfill.questions.enumerate import enumerate_questions, merged
from anyfill.questions.question import (
    Factorization,
    Order,
    Question,
    Questions,
    Weighted,
    order_of,
    path_factorizations_of,
)


@dataclass(frozen=True, slots=True)
class Mixture:
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
        orders = [order for order in map(order_of, self.parts) if order is not None]
        if any(order != orders[0] for order in orders):
            raise refuse("orders of Mixture parts", expected="the same wherever there is one", got=orders)

    @property
    def variables(self) -> int:
        """N, the number of variables of every part."""
        return self.parts[0].variables

    @property
    def order(self) -> Order | None:
        """The protocol w of the parts that follow one."""
        return next((order for order in map(order_of, self.parts) if order is not None), None)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """What any part trains, the mixture trains (at 1/K of the pace)."""
        return frozenset[Factorization]().union(*(part.factorizations for part in self.parts))

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """What the paths of any part train, the paths of the mixture train."""
        return frozenset[Factorization]().union(*(path_factorizations_of(part) for part in self.parts))

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions, tensors (B, N)."""
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
