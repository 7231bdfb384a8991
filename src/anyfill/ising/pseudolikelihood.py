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

**In closed form** (``BlockLoss``). The exponent of an Ising model is linear in theta, so for rows x with blocks K (and
o(x) = fixed fields + log p_K(K | x), if adaptive), equal rows counted once,

    L(theta)  = sum_g w_g log sum_s exp(theta · T_gs + o_gs)  -  theta · mean T  -  mean o     + ridge/2 |theta|²
    gradient  = sum_g w_g E_g[T] - mean T                                                      + ridge theta
    Hessian   = sum_g w_g Cov_g[T]                                                             + ridge I

where a group g is a pair (x_-K, K) with the share w_g of the rows, s runs over the 2^|K| states of its block and E_g is
the conditional law of the block. The Hessian is a mean of covariances: the loss is convex (proposition 11), adaptive
blocks included. There are at most 2^(N-k) C(N, k) groups however many rows there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_shape
from anyfill.ising.blocks import Blocks, block_choice, completions, listed_rows
from anyfill.ising.model import Ising, blocks_by_size
from anyfill.model import Model
from anyfill.networks.states import all_codes, require_exact
from anyfill.objectives.objective import Objective
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


_PORTION = 2**21
"""Statistics computed together."""
_KEPT = 2**25
"""The most statistics that are kept from one evaluation to the next: 256 MiB."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Groups with blocks of one size.

    Attributes:
        weights: (G,), shares of the rows.
        statistics: T (G, 2^k, P).
        offsets: o (G, 2^k), -inf where a state is impossible.
    """

    weights: Tensor
    statistics: Tensor
    offsets: Tensor

    def laws(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Conditional laws (G, 2^k) of the blocks and their log-normalisers (G,)."""
        exponents = self.statistics @ theta + self.offsets
        normaliser = exponents.logsumexp(1)
        return (exponents - normaliser.unsqueeze(1)).exp(), normaliser


class BlockLoss:
    """Mean of -log p_theta(x_K | x_-K) (or of eq. 1, if blocks are adaptive) as a function of theta (P,).

    Args:
        ising: which model; of its parameters only fixed fields are read.
        x: codes (n, N).
        asked: bool (n, N), the block of each row.
        adaptive: the adaptive blocks that ``asked`` was drawn from, if it was.
        ridge: weight of |theta|² / 2.
    """

    def __init__(
        self, ising: Ising, x: Tensor, asked: Tensor, *, adaptive: Blocks | None = None, ridge: float = 0.0
    ) -> None:
        require_exact(int(asked.sum(1).max()), "the states of a block")
        self.ising, self.adaptive, self.ridge = ising, adaptive, ridge
        self.mean_statistics, self._mean_offset = torch.zeros_like(ising.theta.detach()), 0.0
        self._groups: list[tuple[Tensor, Tensor, Tensor]] = []
        with torch.no_grad():
            for rows, _ in blocks_by_size(asked):
                codes, own = x[rows], asked[rows]
                whole, count = _distinct(torch.cat([codes, own], 1))
                share = count.double() / len(x)
                self.mean_statistics += share @ ising.statistics(whole[:, : x.shape[1]])
                outside = torch.where(own, 0, codes)
                groups, count = _distinct(torch.cat([outside, own], 1))
                group_members = groups[:, x.shape[1] :].nonzero()[:, 1].reshape(len(groups), -1)
                self._groups.append((groups[:, : x.shape[1]], group_members, count.double() / len(x)))
                self._mean_offset += float(share @ self._own_offset(whole[:, : x.shape[1]], whole[:, x.shape[1] :]))
        size = len(self.mean_statistics) * sum(len(g) << m.shape[1] for g, m, _ in self._groups)
        self._kept = list(self._make()) if size <= _KEPT else None

    def value_and_gradient(self, theta: Tensor) -> tuple[float, Tensor]:
        """Nats per row, and the gradient (P,)."""
        gradient = self.ridge * theta - self.mean_statistics
        value = 0.5 * self.ridge * theta @ theta - theta @ self.mean_statistics - self._mean_offset
        for part in self._parts():
            law, normaliser = part.laws(theta)
            value = value + part.weights @ normaliser
            gradient = gradient + (part.weights.unsqueeze(1) * law).flatten() @ part.statistics.flatten(0, 1)
        return float(value), gradient

    def hessian(self, theta: Tensor) -> Tensor:
        """(P, P), positive semi-definite."""
        hessian = self.ridge * torch.eye(len(theta), dtype=theta.dtype, device=theta.device)
        for part in self._parts():
            law, _ = part.laws(theta)
            centred = part.statistics - (law.unsqueeze(1) @ part.statistics)
            scaled = ((part.weights.unsqueeze(1) * law).sqrt().unsqueeze(2) * centred).flatten(0, 1)
            hessian = hessian + scaled.T @ scaled
        return hessian

    def _parts(self) -> "Iterator[_Part] | list[_Part]":
        return self._make() if self._kept is None else self._kept

    def _make(self) -> Iterator[_Part]:
        """All groups, a portion at a time."""
        for codes, members, weights in self._groups:
            each = max(1, _PORTION // (len(self.mean_statistics) << members.shape[1]))
            for some in torch.arange(len(codes), device=codes.device).split(each):
                states = completions(codes[some], members[some])
                flat = states.flatten(0, 1)
                statistics = self.ising.statistics(flat).reshape(*states.shape[:2], -1)
                offsets = self._fixed(flat).reshape(states.shape[:2])
                if self.adaptive is not None:
                    offsets = offsets + block_choice(self.adaptive, codes[some], members[some])
                yield _Part(weights[some], statistics, offsets)

    def _fixed(self, x: Tensor) -> Tensor:
        """float64 (B,): what the exponent has of fixed fields."""
        if self.ising.free_fields:
            return torch.zeros(len(x), dtype=torch.float64, device=x.device)
        return (2.0 * x.double() - 1.0) @ self.ising.fields

    def _own_offset(self, x: Tensor, asked: Tensor) -> Tensor:
        """float64 (B,): o at the rows themselves."""
        offset = self._fixed(x)
        if self.adaptive is None:
            return offset
        row = listed_rows(self.adaptive.subsets, asked.bool())
        return offset + self.adaptive.probabilities(x).gather(1, row.unsqueeze(1))[:, 0].log()


def _distinct(codes: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows of 0/1 codes (B, C), and how often each occurs."""
    columns = codes.shape[1]
    if columns > 62:
        return torch.unique(codes.long(), dim=0, return_counts=True)
    shift = torch.arange(columns - 1, -1, -1, device=codes.device)
    number, count = torch.unique((codes.long() << shift).sum(1), return_counts=True)
    return (number.unsqueeze(1) >> shift) & 1, count
