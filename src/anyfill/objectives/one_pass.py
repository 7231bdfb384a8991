"""The one-pass chain: all N terms of one random chain of conditionals, from one forward pass.

A question (given, asked, ignored) becomes the order  w(given), w(asked), w(ignored)  and the loss is the whole chain

    - sum_t log p(x_v(t) | x_v(0), …, x_v(t-1)),

so one pass trains log p(given) as a marginal, log p(asked | given) as a conditional, and so on. A share of the rows
follows w through all variables: the joint is one order out of 2^N and would otherwise hardly ever be practised.
"""

from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from anyfill.checks import require_probability
from anyfill.data.rows import Rows
from anyfill.model import Model
from anyfill.questions.order import Increasing
from anyfill.questions.question import Order, Question, Questions, Reading, chain_rank, path_readings_of
from anyfill.rank import NEVER


@dataclass(frozen=True, slots=True)
class Chain:
    """Nats of a whole row, read in a random order out of those that w allows.

    Attributes:
        questions: how the row is cut into blocks.
        order: the protocol w inside each block.
        joint_share: share of rows read in w's order from first to last.
    """

    questions: Questions
    order: Order = field(default_factory=Increasing)
    joint_share: float = 0.25

    def __post_init__(self) -> None:
        require_probability("joint_share", self.joint_share)

    @property
    def readings(self) -> frozenset[Reading]:
        if self.joint_share == 1.0:  # one chain only
            return frozenset({Reading.ANY_ORDER if self.order.random else Reading.PREFIX})
        if self.order.random:  # blocks in random order are random orders
            return frozenset({Reading.ANY_ORDER})
        # The blocks are paths of the questions, and the given block is a path of its own: a marginal. But the network
        # reads its tokens in w's order only, so whatever the paths would allow a masked network, not any order.
        paths = path_readings_of(self.questions)
        return frozenset({Reading.DIFFERENCE} | paths) - {Reading.ANY_ORDER} if paths else frozenset()

    def pose(self, batch: int, *, generator: Generator) -> Tensor:
        question = self.questions.sample(batch, generator=generator)
        joint = torch.rand(batch, 1, generator=generator, device=generator.device) < self.joint_share
        question = Question(question.given & ~joint, question.asked | joint)
        return chain_rank(self.order, question, then_ignored=True, generator=generator)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        rank = torch.where(rows.present, rank, NEVER)
        marginals = model.chain(rows.x, rank, rows.context, strict=True)
        return -torch.where(rows.present, marginals.log_prob(rows.x), 0.0).sum(1)

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        return self.loss(model, rows, self.pose(len(rows), generator=generator), generator=generator)
