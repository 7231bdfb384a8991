"""Distributions over blocks K of variables that are redrawn or predicted together, given the rest: p_K(K | x).

    FixedBlocks      p_K does not depend on x: weighted pseudolikelihood and block dynamics (GMLM definitions 2 and 6)
    k_blocks         all subsets of size k, uniformly: k-pseudolikelihood and k-Gibbs (definitions 3 and 10)
    AdaptiveBlocks   p_K(. | x) depends on the values (definitions 7 and 8)

The paper says "a partition" in definition 2 and then uses overlapping sets whose union is everything: so here.
With adaptive blocks the law of the block given the rest is *not* p(x_K | x_-K) but eq. (1), which knows
that K was chosen,

    p(x_K | x_-K, K) = p(x) p_K(K | x) / sum_{x'_K} p(x'_K, x_-K) p_K(K | x'_K, x_-K)

(lemma 3). Codes x are 0 and 1 as everywhere; ``subsets`` is bool (M, N), True = in the block. No block is listed twice:
"K was chosen" would then have two meanings, the set and the row, with different laws.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_bool, require_count, require_shape
from anyfill.networks.exact import all_codes

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
        raise refuse(
            f"blocks of size {k} among {variables} variables",
            expected=f"at most {MAX_BLOCKS:,} to list",
            got=f"{count:,}; draw them with anyfill.questions.KSubset instead",
        )
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
