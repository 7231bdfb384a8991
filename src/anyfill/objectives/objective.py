"""What an objective is: a loss in nats per row, whose data-independent randomness is drawn first.

``sample_rank`` draws the questions of a whole batch as a rank; ``loss`` answers them. Splitting the two lets every
process of a distributed run draw the same global batch of questions and answer only its own rows.
"""

from typing import Protocol, runtime_checkable

from torch import Generator, Tensor

from anyfill.model import Model
from anyfill.questions.question import Factorization, Order
from anyfill.rows import Rows


@runtime_checkable
class Objective(Protocol):
    """A training loss."""

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """The readings of log p(asked | given) that minimising this loss trains."""
        ...

    @property
    def order(self) -> Order | None:
        """The protocol w the questions follow, if they follow one: the model's own order must be equal."""
        ...

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        """``batch`` questions as a rank, int64 (B, N), on the generator's device."""
        ...

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        """(B,) nats for the rows under these questions; only ``fit`` reduces."""
        ...

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        """(B,) nats: pose, then loss."""
        ...
