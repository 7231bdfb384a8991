"""The one-pass chain: all N terms of one random chain of conditionals, from one forward pass.

A question (given, asked, ignored) becomes the order  w(given), w(asked), w(ignored)  and the loss is the whole chain

    - sum_t log p(x_v(t) | x_v(0), …, x_v(t-1)),

so one pass trains log p(given) as a marginal, log p(asked | given) as a conditional, and so on. A share of the rows
follows w through all variables: the joint is one order out of 2^N and would otherwise hardly ever be trained.

Of the other rows a share may be *conditioned* on the given block (rank < 0): its terms are left out, the loss is that
of the rest given the block. All others answer the block first (rank >= 0), and it is scored. A plainly causal network
reads both alike. One that reads given values both ways (``OnePassTransformer(given="full")``) trains its conditionals
on rows that are conditioned and its marginals on the others; what is conditioned on is never scored, so no term sees
itself.

A network that reads what is ignored as blanks (``OnePassTransformer(ignored="blank")``) trains marginals so: of a row
that is cut and not conditioned it reads the first block A alone, all else as blanks, and all N variables are scored,

    - sum_j log p(x_j | x_i for i in A read before j),

those of A as terms of log p(x_A), the others as those of the subset that they would be part of.

*Asked alone.* Of a chain of many terms one alone is given nothing but the given block, the first, which w begins with:
p(x_j | given) of any other j is hardly ever trained, although a marginal is the plainest question of all. With
``alone_share`` a share of the batches ask all they ask so,

    - sum_(j asked) log p(x_j | given),

by ranks that tie: as many terms as the chain has, from one pass, too.

What a term counts for. Summed as they come ("terms"), long blocks outweigh short ones: what a few values say of one
another, and the last few holes given all the rest, hardly count, although they are asked as often as anything else.
``weigh="questions"`` lets each scored block of a row count alike, whatever its length,

    M / blocks · sum_blocks mean_(t in block) - log p(x_v(t) | …),       M the number of values that are there,

which is M times the expected nats per asked value, as MAC and ARDM weigh theirs (N / asked). The price is a noisier
gradient, by less than it seems: with block sizes k uniform on 1 … N a term weighs N / k, and the mean square of a row's
weight grows by about ln N at most.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_member, require_probability
from anyfill.likelihoods.marginals import Marginals
from anyfill.model import Model
from anyfill.objectives.objective import Objective, smoothed_nats
from anyfill.questions.order import Increasing
from anyfill.questions.question import Factorization, Order, Question, Questions, chain_rank, rank_of
from anyfill.rank import NEVER, asked_in
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class OnePassLoss(Objective):
    """Nats of a whole row, read in a random order out of those that w allows.

    Attributes:
        questions: how the row is cut into blocks.
        order: the protocol w inside each block.
        joint_share: share of rows read in w's order from first to last.
        conditioned_share: share of the other rows whose given block is conditioned on, not answered and scored.
        weigh: what counts once: every scored term, or every scored block ("questions").
        smoothing: of labels, see ``smoothed_nats``; validation measures it too.
        joint_orders: what rows of the joint share follow, each as often as the others; none = w.
        joint_batches: whole batches are read in w's order, that share of them, and no row of the others: for a network
            whose pass over a batch is as long as its longest row asks for (``OnePassGroups``).
        alone_share: share of the batches in which each asked variable is asked alone, given the given block; rows of
            the joint share ask everything, given nothing.
    """

    questions: Questions
    order: Order = field(default_factory=Increasing)
    joint_share: float = 0.25
    conditioned_share: float = 0.0
    weigh: Literal["terms", "questions"] = "terms"
    joint_orders: tuple[Order, ...] = ()
    smoothing: float = 0.0
    joint_batches: bool = False
    alone_share: float = 0.0

    def __post_init__(self) -> None:
        require_member("weigh", self.weigh, ("terms", "questions"))
        require_probability("joint_share", self.joint_share)
        require_probability("smoothing", self.smoothing)
        require_probability("conditioned_share", self.conditioned_share)
        require_probability("alone_share", self.alone_share)
        if self.alone_share == 1.0:
            raise refuse("alone_share", expected="a share below 1: a network is asked for chains too", got=1.0)
        if any(order.random for order in self.joint_orders):
            raise refuse("joint_orders", expected="orders that are not random", got=repr(self.joint_orders))

    @property
    def factorizations(self) -> frozenset[Factorization]:
        if self.joint_share == 1.0:  # one chain only
            return frozenset({Factorization.ANY_ORDER if self.order.random else Factorization.PREFIX})
        if self.order.random:  # blocks in random order are random orders
            return frozenset({Factorization.ANY_ORDER})
        # The blocks are paths of the questions, and the given block, unless it is always conditioned on, is a path of
        # its own: a marginal. But the network reads its tokens in w's order only, so whatever the paths would allow a
        # masked network, not any order.
        paths = self.questions.path_factorizations
        any_part = paths - {Factorization.WHOLE}  # of whole elements, marginals are whole as well: nothing to add
        own = {Factorization.DIFFERENCE} if any_part and self.conditioned_share < 1.0 else set[Factorization]()
        return (paths | own) - {Factorization.ANY_ORDER}

    @property
    def follows(self) -> Order:
        return self.order

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        """int64 (B, N): ranks with a gap between blocks, so that rank // N is 0 in the given block if it is answered
        (conditioned on: below 0), 1 in the asked and 2 in the ignored one; or all that is asked 0, alone."""
        if self.alone_share and bool(torch.rand((), generator=generator, device=generator.device) < self.alone_share):
            question, joint = self.questions.sample(batch, generator=generator), self._joint(batch, generator)
            asked = question.asked | joint
            return torch.where(asked, 0, torch.where(question.given, -1, NEVER))
        whole = self._joint(1, generator).expand(batch, 1) if self.joint_batches else None
        if whole is not None and self.joint_orders and bool(whole.all()):
            return self._in_joint_orders(batch, generator)  # looked up: then no question need be drawn
        question = self.questions.sample(batch, generator=generator)
        joint = self._joint(batch, generator) if whole is None else whole
        question = Question(question.given & ~joint, question.asked | joint)
        rank = chain_rank(self.order, question, then_ignored=True, generator=generator)
        variables = rank.shape[1]
        answered = rank + question.given.sum(1, keepdim=True)  # 0 … N-1: the given block first
        if self.conditioned_share > 0.0:
            conditioned = torch.rand(batch, 1, generator=generator, device=generator.device) < self.conditioned_share
            answered = torch.where(conditioned, rank, answered)
        block = torch.where(question.given, 0, torch.where(question.asked, 1, 2))
        rank = answered + variables * block
        if not self.joint_orders:
            return rank
        return torch.where(joint, self._in_joint_orders(batch, generator), rank)

    def _joint(self, batch: int, generator: Generator) -> Tensor:
        """bool (B, 1): what is read as a whole."""
        return torch.rand(batch, 1, generator=generator, device=generator.device) < self.joint_share

    def _in_joint_orders(self, batch: int, generator: Generator) -> Tensor:
        """int64 (B, N): whole rows, each in one of the joint orders."""
        variables = self.questions.variables
        each = _whole_ranks(self.joint_orders, variables, generator.device)
        which = torch.randint(len(each), (batch,), generator=generator, device=generator.device)
        return each[which] + variables

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        """(B,) nats of what is asked (rank >= 0); what is conditioned on (rank < 0) is read, not scored."""
        reads_both_ways = model.capabilities.reads_both_ways
        reads_blanks = model.capabilities.reads_blanks
        got = f"conditioned_share={self.conditioned_share}, joint_share={self.joint_share}"
        learns = model.training  # what it would learn too little from it may well be measured by
        if learns and reads_both_ways and (self.conditioned_share == 0.0 or self.joint_share == 1.0):
            raise refuse("objective", expected="rows that are told, as the network reads them both ways", got=got)
        if learns and reads_blanks and (self.conditioned_share in (0.0, 1.0) or self.joint_share == 1.0):
            expected = "rows that are told and rows that are not, as the network reads blanks in the latter alone"
            raise refuse("objective", expected=expected, got=got)
        if reads_blanks and self.order != Increasing():
            raise refuse("order", expected=f"{Increasing()}, as blanks are read by index", got=repr(self.order))
        rank = torch.where(rows.present, rank, NEVER)
        scored, block = asked_in(rank), rank.div(rank.shape[1], rounding_mode="floor")
        if reads_blanks:
            first = torch.where(scored, block, 3).amin(1, keepdim=True)
            blank = scored & (block > first) & ~(rank < 0).any(1, keepdim=True)
            rank, block = torch.where(blank, NEVER, rank), torch.where(blank, first, block)
        marginals = model.chain(rows.x, rank, self.told(rows), strict=self.is_strict(rank))
        nats = torch.where(scored, self.term_nats(marginals, rows, rank), 0.0)
        if self.weigh == "terms":
            return nats.sum(1)
        means: list[Tensor] = []
        sizes: list[Tensor] = []
        for number in range(3):
            member = scored & (block == number)
            sizes.append(member.sum(1))
            means.append(torch.where(member, nats, 0.0).sum(1) / sizes[-1].clamp(min=1))
        blocks = torch.stack(sizes).gt(0).sum(0).clamp(min=1)
        return rows.present.sum(1) / blocks * torch.stack(means).sum(0)

    def is_strict(self, rank: Tensor) -> bool:
        """Whether no two asked variables of a row tie, as in chains; asked alone, all of them do."""
        return not self.alone_share or bool((asked_in(rank) & (rank > 0)).any())

    def told(self, rows: Rows) -> Tensor | None:
        """(B, ...): what of the rows' context the network is shown: all of it."""
        return rows.context

    def term_nats(self, marginals: Marginals, rows: Rows, rank: Tensor) -> Tensor:
        """(B, N): what each term counts, from the laws that a model gave under this rank; unscored are not read."""
        return smoothed_nats(marginals, rows.x, self.smoothing)


@cache
def _whole_ranks(orders: tuple[Order, ...], variables: int, device: torch.device) -> Tensor:
    """int64 (K, N): the ranks of whole rows in fixed orders; made once, for every step draws from them."""
    asked = torch.ones(1, variables, dtype=torch.bool, device=device)
    return torch.cat([rank_of(order, Question(~asked, asked)) for order in orders])
