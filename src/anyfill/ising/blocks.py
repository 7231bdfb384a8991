"""Blocks K of variables that are redrawn or predicted together, given the rest: how they are drawn, p_K(K | x), and the
loss that asks for them, pseudolikelihood.

    FixedBlocks      p_K does not depend on x: weighted pseudolikelihood and block dynamics (GMLM definitions 2 and 6)
    k_blocks         all subsets of size k, uniformly: k-pseudolikelihood and k-Gibbs (definitions 3 and 10)
    AdaptiveBlocks   p_K(. | x) depends on the values (definitions 7 and 8)

The paper says "a partition" in definition 2 and then uses overlapping sets whose union is everything: so here.
With adaptive blocks the law of the block given the rest is *not* p(x_K | x_-K) but eq. (1), which knows
that K was chosen,

    p(x_K | x_-K, K) = p(x) p_K(K | x) / sum_{x'_K} p(x'_K, x_-K) p_K(K | x'_K, x_-K)

(lemma 3). Codes x are 0 and 1 as everywhere; ``subsets`` is bool (M, N), True = in the block. No block is listed twice:
"K was chosen" would then have two meanings, the set and the row, with different laws.

**Pseudolikelihood**, weighted, k- and adaptive: nats of a block given the rest, jointly (definitions 2, 3 and 7). For a
row x and a block K drawn for it, m of them independently, the loss is in nats per row

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_bool, require_count, require_shape
from anyfill.ising.model import blocks_by_size
from anyfill.model import Model
from anyfill.networks.exact import all_codes
from anyfill.objectives.objective import Objective
from anyfill.questions.question import Factorization, Order, Question, Questions, at_once, question_of
from anyfill.rows import Rows

MAX_BLOCKS = 200_000
"""The most blocks that are listed."""


@runtime_checkable
class Blocks(Protocol):
    """A distribution over M listed blocks that may depend on the values.

    Attributes:
        adaptive: whether the probabilities do depend on the values.
    """

    adaptive: ClassVar[bool]

    @property
    def subsets(self) -> Tensor:
        """bool (M, N), True = in the block; all different."""
        ...

    def probabilities(self, x: Tensor) -> Tensor:
        """float64 (B, M): p_K(K | x) for rows of codes (B, N)."""
        ...

    def sample(self, x: Tensor, *, generator: Generator) -> Tensor:
        """bool (B, N): one block for each row of codes (B, N)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class FixedBlocks:
    """Blocks drawn without looking at the values.

    Attributes:
        subsets: bool (M, N), all different; together they cover all variables, and none is empty.
        weights: float64 (M,), above zero; normalised here.
    """

    subsets: Tensor
    weights: Tensor
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_subsets(self.subsets)
        require_shape("weights", self.weights, (len(self.subsets),))
        weights = self.weights.double()
        if not bool((weights.isfinite() & (weights > 0)).all()):
            raise refuse("weights of the blocks", expected="finite numbers above 0", got=weights.tolist()[:8])
        object.__setattr__(self, "weights", weights / weights.sum())

    def probabilities(self, x: Tensor) -> Tensor:
        return self.weights.to(x.device).expand(len(x), -1)

    def sample(self, x: Tensor, *, generator: Generator) -> Tensor:
        weights = self.weights.to(generator.device)
        drawn = torch.multinomial(weights, len(x), replacement=True, generator=generator)
        return self.subsets.to(x.device)[drawn.to(x.device)]


@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveBlocks:
    """Blocks whose probabilities depend on the values.

    Attributes:
        subsets: bool (M, N), all different; together they cover all variables, and none is empty.
        rule: from rows of codes (B, N) to weights (B, M), none negative and some above zero in every row;
            normalised here. It must be a function of the row alone.
    """

    subsets: Tensor
    rule: Callable[[Tensor], Tensor]
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_subsets(self.subsets)

    def probabilities(self, x: Tensor) -> Tensor:
        weights = self.rule(x).double()
        require_shape("weights from the rule", weights, (len(x), len(self.subsets)))
        total = weights.sum(1, keepdim=True)
        if not bool(((weights >= 0).all(1) & (total[:, 0] > 0) & total[:, 0].isfinite()).all()):
            raise refuse("weights from the rule", expected="none negative, some above 0 in each row", got="others")
        return weights / total

    def sample(self, x: Tensor, *, generator: Generator) -> Tensor:
        probabilities = self.probabilities(x).to(generator.device)
        drawn = torch.multinomial(probabilities, 1, generator=generator)[:, 0]
        return self.subsets.to(x.device)[drawn.to(x.device)]


def k_blocks(variables: int, k: int) -> FixedBlocks:
    """All subsets of size k, uniformly."""
    require_count("variables", variables)
    require_count("k", k, maximum=variables)
    count = comb(variables, k)
    if count > MAX_BLOCKS:
        got = f"{count:,}; draw them with anyfill.questions.KSubset instead"
        what = f"blocks of size {k} among {variables} variables"
        raise refuse(what, expected=f"at most {MAX_BLOCKS:,} to list", got=got)
    return FixedBlocks(subsets_of(variables, combinations(range(variables), k)), torch.ones(count, dtype=torch.float64))


def subsets_of(variables: int, members: "Sequence[Sequence[int]] | combinations[tuple[int, ...]]") -> Tensor:
    """bool (M, N) from the members of each block."""
    listed = list(members)
    rows = [row for row, block in enumerate(listed) for _ in block]
    places = [member for block in listed for member in block]
    for member in set(places):
        require_count("member of a block", member, minimum=0, maximum=variables - 1)
    subsets = torch.zeros(len(listed), variables, dtype=torch.bool)
    subsets[rows, places] = True
    return subsets


def listed_rows(subsets: Tensor, asked: Tensor) -> Tensor:
    """int64 (B,): which row of subsets (M, N) each block of ``asked`` (B, N) is; refuses one that is not listed."""
    ours = subsets.to(asked.device)
    same = asked.double() @ ours.double().T + (~asked).double() @ (~ours).double().T == asked.shape[1]  # (B, M)
    if not bool(same.any(1).all()):
        got = asked[~same.any(1)][0].nonzero()[:, 0].tolist()
        raise refuse("block", expected="one of those listed", got=got)
    return same.long().argmax(1)


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


def _check_subsets(subsets: Tensor) -> None:
    require_bool("subsets", subsets)
    require_shape("subsets", subsets, (None, None))
    if not bool(subsets.any(1).all()) or not bool(subsets.any(0).all()):
        raise refuse("subsets", expected="no empty block, and every variable in some block", got=subsets.tolist()[:8])
    distinct, row = torch.unique(subsets, dim=0, return_inverse=True)
    if len(distinct) < len(subsets):
        again = int((row.bincount() > 1).nonzero()[0])
        one, other = (row == again).nonzero()[:2, 0].tolist()
        raise refuse("subsets", expected="no block listed twice", got=f"rows {one} and {other} alike")


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
            got = f"{type(self.blocks).__name__}; call the objective itself, or use fit_ising"
            expected = "blocks that do not depend on the values"
            raise refuse("blocks to pose before the values are seen", expected=expected, got=got)
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
            return -_log_prob(network, rows.x, question)
        return -network.block_log_prob(rows.x, question.asked)


def adaptive_log_prob(network: ExactBlocks, blocks: Blocks, x: Tensor, asked: Tensor) -> Tensor:
    """float64 (B,): log p(x_K | x_-K, K) of eq. (1) for codes x (B, N) and the blocks ``asked`` (B, N)."""
    answer = _log_prob(network, x, Question(~asked, asked), blocks)
    if not bool(answer.isfinite().all()):
        raise refuse("block", expected="one that the rule draws for this row", got="one of probability 0")
    return answer


def _log_prob(network: ExactBlocks, x: Tensor, question: Question, adaptive: Blocks | None = None) -> Tensor:
    """float64 (B,): log p(x_asked | x_given), the ignored summed out; eq. (1) if blocks are adaptive."""
    answer = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    for rows, members in blocks_by_size(~question.given):
        exponents = network.block_exponents(x[rows], members)
        if adaptive is not None:
            exponents = exponents + block_choice(adaptive, x[rows], members)
        codes = all_codes(members.shape[1]).to(x.device)
        own, asked = x[rows].gather(1, members).long(), question.asked[rows].gather(1, members)
        agrees = ((codes == own.unsqueeze(1)) | ~asked.unsqueeze(1)).all(2)
        answer = answer.index_put((rows,), torch.where(agrees, exponents.log_softmax(1), -torch.inf).logsumexp(1))
    return answer


def _require_whole(rows: Rows) -> None:
    if not bool(rows.present.all()):
        row, variable = (int(place) for place in (~rows.present).nonzero()[0])
        got = f"a missing value at row {row}, variable {variable}"
        raise refuse("rows for adaptive blocks", expected="whole rows (the rule reads every value)", got=got)


def _rank(asked: Tensor) -> Tensor:
    """int64 (B, N): the block asked at once, the rest given."""
    return torch.where(asked, 0, -1)
