"""Eq. (6) of the GMLM paper, a clique among isolated spins, and its chains, lumped to the few states that matter.

    log p(x) = sum_i h_i s_i + c J sum_{i < j in C} s_i s_j - log Z         c = 1: pairs once, c = 2: twice

Whether a chain is in R_1 (all of C at +1) or R_-1 (all at -1) is decided by C alone, and neither the choice of a block
nor the law of the spins in C depends on the isolated ones: the 2^|C| states of the clique are a Markov chain. With one
field for all of C it is enough to count: from m spins at +1,

    k-Gibbs    a = |K ∩ C| is hypergeometric (N, |C|, k), and u of these are at +1, hypergeometric (|C|, m, a); then v
               of them are set to +1, P(v) ∝ C(a, v) exp((h + cJ s)(2v - a) + cJ ((2v - a)^2 - a) / 2),
               s = 2(m - u) - (|C| - a) the sum of the others;  m' = m - u + v
    parallel   m' = Binomial(m, sigmoid(2h + 2cJ(2m - |C| - 1))) + Binomial(|C| - m, sigmoid(2h + 2cJ(2m - |C| + 1)))

(definitions 10 and 11). Everything is kept in logarithms: at J = 50 a way out of R_-1 has a chance of exp(-600).
What the paper promises of these chains is in ``anyfill.ising.separation``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import comb, log

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from anyfill.checks import refuse, require_count
from anyfill.ising.model import Ising, Pairs
from anyfill.networks.exact import all_codes, to_spins

MAX_MEMBERS = 10
"""The largest clique whose 2^|C| states are listed (a matrix of 1024 x 1024); with equal fields any size is counted."""


@dataclass(frozen=True, slots=True)
class Clique:
    """The parameters of eq. (6); the clique is the first ``len(inside)`` variables.

    Attributes:
        inside: fields h_i of the clique.
        outside: fields of the isolated spins.
        coupling: J.
        pairs: whether the exponent counts each pair once or twice.
        words: a few, for titles.
    """

    inside: tuple[float, ...]
    outside: tuple[float, ...]
    coupling: float
    pairs: Pairs = "once"
    words: str = field(default="clique among isolated spins", compare=False, kw_only=True)

    def __post_init__(self) -> None:
        if not self.inside:
            raise refuse("clique", expected="at least one spin", got="none")
        numbers = torch.tensor([*self.inside, *self.outside, self.coupling], dtype=torch.float64)
        if not bool(numbers.isfinite().all()):
            raise refuse("fields and coupling", expected="finite numbers", got=numbers[~numbers.isfinite()][0].item())

    @classmethod
    def alike(
        cls, variables: int, size: int, coupling: float, field: float, *, outside: float = 0.0, pairs: Pairs = "once"
    ) -> "Clique":
        """One field for the whole clique and one for all others."""
        require_count("size of the clique", size, maximum=variables)
        return cls((field,) * size, (outside,) * (variables - size), coupling, pairs)

    @classmethod
    def of(cls, ising: Ising) -> "Clique":
        """Read off an Ising model that has this form; ValueError otherwise."""
        members = sorted({end for edge in ising.edges for end in edge}) or [0]
        strengths = set(ising.couplings.tolist())
        if set(ising.edges) != set(combinations(members, 2)) or len(strengths) > 1:
            got = f"{len(ising.edges)} edges with {len(strengths)} different couplings"
            raise refuse("Ising model", expected="one clique, coupled alike, and isolated spins (eq. 6)", got=got)
        fields = ising.fields.tolist()
        inside = tuple(fields[i] for i in members)
        outside = tuple(fields[i] for i in range(ising.variables) if i not in members)
        return cls(inside, outside, strengths.pop() if strengths else 0.0, ising.pairs, words=ising.words)

    @property
    def size(self) -> int:
        """|C|."""
        return len(self.inside)

    @property
    def variables(self) -> int:
        """N."""
        return len(self.inside) + len(self.outside)

    @property
    def strength(self) -> float:
        """c J: what the field on a spin changes by when a neighbour flips is twice this."""
        return self.coupling * (1.0 if self.pairs == "once" else 2.0)

    @property
    def is_even(self) -> bool:
        """Whether all fields of the clique are equal, so that counting is enough."""
        return len(set(self.inside)) == 1

    def ising(self) -> Ising:
        """The model itself."""
        fields: Sequence[float] = (*self.inside, *self.outside)
        return Ising.clique(self.variables, self.size, self.coupling, fields, pairs=self.pairs)


@dataclass(frozen=True, slots=True, eq=False)
class LumpedChain:
    """A chain on the clique alone.

    Attributes:
        log_matrix: float64 (S, S), log P(from row to column).
        up: int64 (S,), how many spins of the clique are at +1; S = |C| + 1 counts, or 2^|C| states.
        size: |C|.
    """

    log_matrix: Tensor
    up: Tensor
    size: int

    @property
    def matrix(self) -> Tensor:
        """float64 (S, S)."""
        return self.log_matrix.exp()

    @property
    def high(self) -> Tensor:
        """bool (S,): R_1."""
        return self.up == self.size

    @property
    def low(self) -> int:
        """The number of the state R_-1."""
        return 0

    @property
    def total(self) -> Tensor:
        """int64 (S,): sum of the clique's spins."""
        return 2 * self.up - self.size


def clique_kgibbs_matrix(clique: Clique, k: int, *, lumped: bool | None = None) -> LumpedChain:
    """k-Gibbs (definition 10) on the clique; counts where the fields allow it, unless ``lumped`` says otherwise."""
    require_count("k", k, maximum=clique.variables)
    if _counted(clique, lumped):
        return _chain(_kgibbs_counts(clique, k), clique)
    size = clique.size
    joint = Ising.clique(size, size, clique.coupling, clique.inside, pairs=clique.pairs).log_joint().detach()
    number = torch.arange(2**size)
    answer = torch.full((2**size, 2**size), -torch.inf, dtype=torch.float64)
    for chosen in all_codes(size).bool():
        inside = int(chosen.sum())
        ways = _ways(clique, k, inside)
        if ways == 0.0:
            continue
        axes = [int(axis) for axis in chosen.nonzero()[:, 0]]
        shaped = joint.reshape((2,) * size)
        given = (shaped - shaped.logsumexp(axes, keepdim=True)).flatten() if axes else torch.zeros_like(joint)
        kept = int((~chosen).long() @ (2 ** torch.arange(size - 1, -1, -1)))
        same = (number.unsqueeze(1) & kept) == (number & kept)
        answer = torch.where(same, torch.logaddexp(answer, given + log(ways)), answer)
    return _chain(answer, clique)


def clique_parallel_matrix(clique: Clique, *, lumped: bool | None = None) -> LumpedChain:
    """Independent parallel (definition 11) on the clique: every spin given the old values of all the others."""
    size, strength = clique.size, clique.strength
    if _counted(clique, lumped):
        log_choose = _log_choose(size)
        answer = torch.full((size + 1, size + 1), -torch.inf, dtype=torch.float64)
        for m in range(size + 1):
            stay = _log_binomial(log_choose, m, 2.0 * (clique.inside[0] + strength * (2 * m - size - 1)))
            rise = _log_binomial(log_choose, size - m, 2.0 * (clique.inside[0] + strength * (2 * m - size + 1)))
            for kept in range(m + 1):
                reached = slice(kept, kept + size - m + 1)
                answer[m, reached] = torch.logaddexp(answer[m, reached], stay[kept] + rise)
        return _chain(answer, clique)
    codes = all_codes(size)
    spins = to_spins(codes)
    others = spins.sum(1, keepdim=True) - spins
    on_each = torch.tensor(clique.inside, dtype=torch.float64) + strength * others  # (S, |C|)
    return _chain(logsigmoid(2.0 * on_each.unsqueeze(1) * spins).sum(2), clique)


def _kgibbs_counts(clique: Clique, k: int) -> Tensor:
    """float64 (|C| + 1, |C| + 1): log P of k-Gibbs on the number of spins at +1."""
    size, h, strength = clique.size, clique.inside[0], clique.strength
    log_choose = _log_choose(size)
    answer = torch.full((size + 1, size + 1), -torch.inf, dtype=torch.float64)
    alone = clique.variables - size
    for a in range(max(0, k - alone), min(k, size) + 1):
        log_ways = _log_ratio(comb(alone, k - a) * comb(size, a), comb(clique.variables, k))
        u = torch.arange(a + 1)
        inside = 2.0 * u.double() - a  # the block's sum, for v = 0 … a spins at +1
        within = log_choose[a, u] + 0.5 * strength * (inside**2 - a)
        for left in range(size - a + 1):  # spins at +1 outside the block: m = left + u and m' = left + v
            log_u = log_choose[left + u, u] + log_choose[size - left - u, a - u] - log_choose[size, a]
            law = (within + (h + strength * (2 * left - (size - a))) * inside).log_softmax(0)
            square = answer[left : left + a + 1, left : left + a + 1]
            square.copy_(torch.logaddexp(square, log_ways + log_u.unsqueeze(1) + law))
    return answer


def _chain(log_matrix: Tensor, clique: Clique) -> LumpedChain:
    counted = len(log_matrix) == clique.size + 1
    up = torch.arange(clique.size + 1) if counted else all_codes(clique.size).sum(1)
    return LumpedChain(log_matrix.log_softmax(1), up, clique.size)  # rounding apart, its rows sum to 1 already


def _ways(clique: Clique, k: int, inside: int) -> float:
    """P(K ∩ C = A) for one set A of this size."""
    alone = clique.variables - clique.size
    return comb(alone, k - inside) / comb(clique.variables, k) if 0 <= k - inside <= alone else 0.0


def _counted(clique: Clique, lumped: bool | None) -> bool:
    if lumped and not clique.is_even:
        raise refuse("fields of the clique", expected="equal, to count spins instead of listing states", got="others")
    counted = clique.is_even if lumped is None else lumped
    if not counted and clique.size > MAX_MEMBERS:
        expected = f"at most {MAX_MEMBERS} to list its states (or equal fields, to count them)"
        raise refuse("size of the clique", expected=expected, got=clique.size)
    return counted


def _log_choose(size: int) -> Tensor:
    """float64 (size + 1, size + 1): log C(n, r), -inf for r > n."""
    table = torch.full((size + 1, size + 1), -torch.inf, dtype=torch.float64)
    row = [1]
    for n in range(size + 1):
        table[n, : n + 1] = torch.tensor([log(ways) for ways in row], dtype=torch.float64)
        row = [1, *(one + other for one, other in pairwise(row)), 1]
    return table


def _log_ratio(above: int, below: int) -> float:
    """log(above / below) of whole numbers above 0, to the last digit where the ratio is a double."""
    return log(above / below) if above / below > 0 else log(above) - log(below)


def _log_binomial(log_choose: Tensor, n: int, logit: float) -> Tensor:
    """float64 (n + 1,): the log of the binomial law of n draws, each 1 with probability sigmoid(logit)."""
    value = torch.tensor(logit, dtype=torch.float64)
    r = torch.arange(n + 1)
    return log_choose[n, r] + r * logsigmoid(value) + (n - r) * logsigmoid(-value)
