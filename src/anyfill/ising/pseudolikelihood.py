"""Weighted, k- and adaptive pseudolikelihood: nats of a block given the rest, jointly (GMLM definitions 2, 3 and 7).

For a row x and a block K drawn for it, m of them independently, the loss is in nats per row

    fixed blocks       1/m sum_K  - log p(x_K | x_-K)
    adaptive blocks    1/m sum_K  - log p(x_K | x_-K, K),      p(x_K | x_-K, K) ∝ p(x_K | x_-K) p_K(K | x)     (eq. 1)

k = N is maximum likelihood. A block is answered jointly, which a masked network with its product of marginals cannot
do. With fixed blocks, missing cells are summed out exactly: - log p(x_{K, present} | x_{-K, present}), at a cost of
2^(asked or missing cells); with adaptive blocks a row must be whole, for p_K(K | x) reads all of it.

Under ``fit`` each batch has fresh blocks: ``sample_rank`` draws the first block of each row and ``loss`` the m - 1
others. An adaptive block can be drawn only when the values are there, so ``sample_rank`` refuses it and with it
``fit``; call the objective itself, which draws and answers, or ``fit_ising``, which keeps one draw for the whole fit,
as the paper's estimators do.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_shape
from anyfill.ising.model import block_number, blocks_by_size
from anyfill.model import Model
from anyfill.networks.states import all_codes
from anyfill.objectives.objective import Objective
from anyfill.questions.blocks import Blocks, listed_rows
from anyfill.questions.question import Factorization, Order, Question, Questions, at_once, question_of
from anyfill.rows import Rows


@runtime_checkable
class ExactBlocks(Protocol):
    """A network of codes 0 and 1 that knows p(x_K | x_-K) jointly for every block K."""

    def block_exponents(self, x: Tensor, members: Tensor) -> Tensor:
        """float64 (B, 2^k): log p(x_K | x_-K) of all states of a block (B, k), up to a constant in each row."""
        ...

    def block_log_prob(self, x: Tensor, asked: Tensor) -> Tensor:
        """float64 (B,): log p(x_asked | the rest), jointly."""
        ...


@dataclass(frozen=True, slots=True)
class Pseudolikelihood(Objective):
    """Nats of a random block given the rest, jointly.

    Attributes:
        blocks: which blocks, as listed ``Blocks`` or as ``Questions`` (``KSubset`` draws without listing).
        masks: m, blocks for each row.
    """

    blocks: Blocks | Questions
    masks: int = 1

    def __post_init__(self) -> None:
        require_count("masks", self.masks)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """ANY_ORDER: such a network is one joint, and blocks that cover all variables determine a positive joint.

        (Redrawing them in turn is an ergodic chain, whose stationary law is the only joint with these conditionals.)
        """
        return frozenset({Factorization.ANY_ORDER})

    @property
    def follows(self) -> Order | None:
        return None if isinstance(self.blocks, Blocks) else self.blocks.follows

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        """One block for each row, all of it asked at once; ValueError if blocks depend on the values."""
        if not isinstance(self.blocks, Blocks):
            return at_once(self.blocks.sample(batch, generator=generator))
        if self.blocks.adaptive:
            raise refuse(
                "blocks to pose before the values are seen",
                expected="blocks that do not depend on the values",
                got=f"{type(self.blocks).__name__}; call the objective itself, or use fit_ising",
            )
        nothing = torch.zeros(batch, self.blocks.subsets.shape[1], dtype=torch.int64, device=generator.device)
        return _rank(self.blocks.sample(nothing, generator=generator))

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        """(B,) nats of the blocks in ``rank`` (and of m - 1 drawn here); adaptive ones by eq. (1)."""
        network = model.network
        if not isinstance(network, ExactBlocks):
            expected = "one with exact joint conditionals of blocks (Ising)"
            raise refuse("network of Pseudolikelihood", expected=expected, got=type(network).__name__)
        require_shape("rank", rank, tuple(rows.x.shape))
        total = self._nats(network, rows, rank)
        for _ in range(self.masks - 1):
            if generator is None:
                raise refuse("generator", expected="one, for further blocks of each row", got="none")
            total = total + self._nats(network, rows, self._drawn(rows, generator))
        return total / self.masks

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        return self.loss(model, rows, self._drawn(rows, generator), generator=generator)

    def _drawn(self, rows: Rows, generator: Generator) -> Tensor:
        """int64 (B, N): one block for each row, given its values where that matters."""
        if isinstance(self.blocks, Blocks) and self.blocks.adaptive:
            _require_whole(rows)
            return _rank(self.blocks.sample(rows.x, generator=generator))
        return self.sample_rank(len(rows), generator=generator).to(rows.x.device)

    def _nats(self, network: ExactBlocks, rows: Rows, rank: Tensor) -> Tensor:
        """(B,): minus the log-probability of one block in each row."""
        question = question_of(rank).within(rows.present)
        if isinstance(self.blocks, Blocks) and self.blocks.adaptive:
            _require_whole(rows)
            return -adaptive_log_prob(network, self.blocks, rows.x, question.asked)
        if bool(question.ignored.any()):
            return -_partial_log_prob(network, rows.x, question)
        return -network.block_log_prob(rows.x, question.asked)


def adaptive_log_prob(network: ExactBlocks, blocks: Blocks, x: Tensor, asked: Tensor) -> Tensor:
    """float64 (B,): log p(x_K | x_-K, K) of eq. (1) for codes x (B, N) and the blocks ``asked`` (B, N)."""
    answer = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    for rows, members in blocks_by_size(asked):
        chosen = block_choice(blocks, x[rows], members)
        log_probs = (network.block_exponents(x[rows], members) + chosen).log_softmax(1)
        own = block_number(x[rows], members).unsqueeze(1)
        if bool(chosen.gather(1, own).isneginf().any()):
            raise refuse("block", expected="one that the rule draws for this row", got="one of probability 0")
        answer = answer.index_put((rows,), log_probs.gather(1, own)[:, 0])
    return answer


def block_choice(blocks: Blocks, x: Tensor, members: Tensor) -> Tensor:
    """float64 (B, 2^k): log p_K(K | x'_K, x_-K) for all states of the blocks ``members`` (B, k); -inf where never."""
    states = completions(x, members)
    asked = torch.zeros_like(x, dtype=torch.bool).scatter(1, members, True)
    row = listed_rows(blocks.subsets, asked).repeat_interleave(states.shape[1])
    return blocks.probabilities(states.flatten(0, 1)).gather(1, row.unsqueeze(1)).reshape(states.shape[:2]).log()


def completions(x: Tensor, members: Tensor) -> Tensor:
    """(B, 2^k, N): rows x (B, N) with the block ``members`` (B, k) in each of its states, the last fastest."""
    states = all_codes(members.shape[1]).to(x)
    whole = x.unsqueeze(1).expand(-1, len(states), -1)
    index = members.unsqueeze(1).expand(-1, len(states), -1)
    return whole.scatter(2, index, states.expand(len(x), -1, -1))


def _partial_log_prob(network: ExactBlocks, x: Tensor, question: Question) -> Tensor:
    """float64 (B,): log p(x_asked | x_given), the ignored summed out."""
    answer = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    for rows, members in blocks_by_size(~question.given):
        log_probs = network.block_exponents(x[rows], members).log_softmax(1)
        codes = all_codes(members.shape[1]).to(x.device)
        own, wanted = x[rows].gather(1, members).long(), question.asked[rows].gather(1, members)
        agrees = ((codes == own.unsqueeze(1)) | ~wanted.unsqueeze(1)).all(2)
        answer = answer.index_put((rows,), torch.where(agrees, log_probs, -torch.inf).logsumexp(1))
    return answer


def _require_whole(rows: Rows) -> None:
    if not bool(rows.present.all()):
        row, variable = (int(place) for place in (~rows.present).nonzero()[0])
        got = f"a missing value at row {row}, variable {variable}"
        raise refuse("rows for adaptive blocks", expected="whole rows (the rule reads every value)", got=got)


def _rank(asked: Tensor) -> Tensor:
    """int64 (B, N): the block asked at once, the rest given."""
    return torch.where(asked, 0, -1)
