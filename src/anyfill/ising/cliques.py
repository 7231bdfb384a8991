"""Eq. (6) of the GMLM paper, a clique among isolated spins: its chains, lumped to the few states that matter, and what
the paper promises of them (propositions 8, 4, 5 and corollary 1).

    log p(x) = sum_i h_i s_i + c J sum_{i < j in C} s_i s_j - log Z         c = 1: pairs once, c = 2: twice

Whether a chain is in R_1 (all of C at +1) or R_-1 (all at -1) is decided by C alone, and neither the choice of a block
nor the law of the spins in C depends on the isolated ones: the 2^|C| states of the clique are a Markov chain. With one
field for all of C it is enough to count: from m spins at +1,

    k-Gibbs    a = |K ∩ C| is hypergeometric (N, |C|, k), and u of these are at +1, hypergeometric (|C|, m, a); then v
               of them are set to +1, P(v) ∝ C(a, v) exp((h + cJ s)(2v - a) + cJ ((2v - a)^2 - a) / 2),
               s = 2(m - u) - (|C| - a) the sum of the others;  m' = m - u + v
    parallel   m' = Binomial(m, sigmoid(2h + 2cJ(2m - |C| - 1))) + Binomial(|C| - m, sigmoid(2h + 2cJ(2m - |C| + 1)))

(definitions 10 and 11). Everything is kept in logarithms: at J = 50 a way out of R_-1 has a chance of exp(-600).

**When k-Gibbs reaches the larger mode and independent parallel does not.** Under assumption 5 (h_C = sum of C's fields
> sum of |h_i| outside, J_0 = J - ||h||_1 > 0), with n = |C|:

    proposition 8   p(x) > p(y) >= e^{2 J_0} p(z), x in R_1, y in R_-1, z elsewhere;
                    p(x) = e^{2 h_C} p(f(x)) where f flips C
    proposition 4   P(not in R_1 after T steps of k-Gibbs) <= c^T from any start, k >= n,
                    c = 1 - C(N-n, k-n) / C(N, k) · e^{2(J_0+h_C)} / (e^{2(J_0+h_C)} + e^{2 J_0} + 2^n - 2)
    proposition 5   P(sum over C > -2 at some t <= T) <= 2 T exp(-2 r^2 / n) for independent parallel started with
                    sum <= -2, where r = n tanh(J_0) / 2 - 1
    corollary 1     with assumptions 6 and 7: R_1 in one step of k-Gibbs, and not in M steps of independent parallel

Where what is printed does not hold as printed (each is tested):

- J. The proofs use each pair once: in proposition 5 a neighbour changes the field by J, in proposition 8 a flip costs
  2 (n-1) J. If eq. (6) runs over ordered pairs, everything holds with 2 J in the place of J, and *a fortiori* with J
  itself, since J_0 may be any smaller number. Here J stands for ``Clique.strength`` = c J.
- Proposition 8 says p(y) > e^{2 J_0} p(z). The proof gives >=, and equality occurs: n = 2 with one of the two fields 0.
- Proposition 4 has the denominator e^{2(J_0+h)} + e^{2 J_0 + 2n - 2} in the main text: a line broken the wrong way, the
  appendix has e^{2 J_0} + 2^n - 2, which is what the proof derives (for each state in R_-1 there are 2^n - 2 others of
  C, each at most e^{-2 J_0} times as likely). The main text's is larger for all n >= 2, so it is a valid bound too, but
  so weak that corollary 1 would not follow (it would need h_C of about n).
- Proposition 5 needs r > 0: Hoeffding's inequality is used at the deviation r. The formula squares r, so it promises
  something for r < 0 as well, and that promise can be false (n = 2, J_0 near 0). Here such a bound is vacuous. Even as
  J_0 grows, c_stuck < (n - 2)^2 / (2 n), so T < 1 for every delta if n <= 4: it says nothing of figure 3 (n = 4).
  Where it holds it is not tight: only one side of Hoeffding's inequality is used, so its factor 2 may go, and leaving
  "sum <= -2" means sum >= 0 (n even) or >= -1 (n odd), so r may be n tanh(J_0) / 2, or that less 1/2 (``sharper``).
- Corollary 1 expands (-1 + n/4)^2 as 1 - n/2 + n^2/4; it is 1 - n/2 + n^2/16. The next line, c_stuck >= -1 + n/8,
  follows from the right one (2/n - 1 + n/8) and the corollary stands. (H.50) rounds T up where proposition 5 rounds
  down; harmless, since what is rounded is at least the whole number M.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import ceil, comb, exp, floor, inf, log, log1p, tanh

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from anyfill.checks import refuse, require_count
from anyfill.ising.model import Ising, Pairs
from anyfill.networks.exact import all_codes, require_exact, to_spins

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


@dataclass(frozen=True, slots=True)
class Ferromagnet:
    """Assumption 5.

    Attributes:
        clique_field: h_C, the sum of the clique's fields.
        other_fields: sum of |h_i| outside the clique.
        margin: J_0 = J - ||h||_1, the largest that the assumption allows (J = c J as it acts).
        holds: whether the assumption does: h_C above the other fields, and J_0 > 0.
    """

    clique_field: float
    other_fields: float
    margin: float

    @property
    def holds(self) -> bool:
        return self.clique_field > self.other_fields and self.clique_field > 0 and self.margin > 0


def ferromagnet(clique: Clique) -> Ferromagnet:
    """What assumption 5 speaks of."""
    other = sum(abs(h) for h in clique.outside)
    margin = clique.strength - sum(abs(h) for h in clique.inside) - other
    return Ferromagnet(sum(clique.inside), other, margin)


@dataclass(frozen=True, slots=True)
class Modes:
    """Proposition 8 by enumeration; all in nats.

    Attributes:
        high_over_low: smallest log p(x) - log p(y), x in R_1, y in R_-1; above 0 says the proposition.
        low_over_rest: smallest log p(y) - log p(z), z elsewhere; at least 2 J_0 (strictly more is printed).
        margin: J_0.
        bijection_error: largest | log p(x) - log p(f(x)) - 2 h_C | over R_1.
        high_mass, low_mass: P(R_1) and P(R_-1).
    """

    high_over_low: float
    low_over_rest: float
    margin: float = field(kw_only=True)
    bijection_error: float
    high_mass: float
    low_mass: float


def modes(clique: Clique) -> Modes:
    """Compare all 2^N states; the clique needs two spins at least, or nothing is elsewhere."""
    require_exact(clique.variables, "the modes")
    require_count("size of the clique", clique.size, minimum=2)
    log_p = clique.ising().log_joint().detach()
    codes = all_codes(clique.variables)
    up = codes[:, : clique.size].sum(1)
    high, low = log_p[up == clique.size], log_p[up == 0]  # listed alike outside the clique: f takes one to the other
    rest = log_p[(up > 0) & (up < clique.size)]
    facts = ferromagnet(clique)
    apart = (high - low - 2.0 * facts.clique_field).abs().max()
    numbers = high.min() - low.max(), low.min() - rest.max(), apart, high.logsumexp(0).exp(), low.logsumexp(0).exp()
    return Modes(*map(float, numbers), margin=facts.margin)


@dataclass(frozen=True, slots=True)
class ReachBound:
    """Proposition 4: k-Gibbs is in R_1 within ``steps`` steps with probability 1 - delta, from any start.

    Attributes:
        miss: c, above the chance that one step ends outside R_1; from the appendix, which is the right one.
        steps: T = ceil(log delta / log c); infinite where c is 1 to all digits.
        printed_miss, printed_steps: the same from the main text: valid, and much weaker.
    """

    miss: float
    steps: float
    printed_miss: float
    printed_steps: float


def reach_bound(clique: Clique, k: int, delta: float) -> ReachBound:
    """Proposition 4, in both printed forms; ValueError where its conditions fail."""
    facts = _require_ferromagnet(clique)
    _require_delta(delta)
    require_count("k", k, minimum=clique.size, maximum=clique.variables)
    n = clique.size
    together = comb(clique.variables - n, k - n) / comb(clique.variables, k)
    # Both fractions divided through by e^{2(J_0+h)}: nothing overflows.
    others = exp(-2.0 * facts.clique_field) + _exp(
        n * log(2.0) + log1p(-(2.0 ** (1 - n))) - 2.0 * (facts.margin + facts.clique_field)
    )
    printed = _exp(2.0 * n - 2.0 - 2.0 * facts.clique_field)
    pair: list[float] = []
    for extra in (others, printed):
        hit = together / (1.0 + extra)
        pair += [1.0 - hit, _steps(hit, delta)]
    return ReachBound(*pair)


@dataclass(frozen=True, slots=True)
class StuckBound:
    """Proposition 5: independent parallel keeps sum_C <= -2 for ``steps`` steps with probability 1 - delta.

    Attributes:
        deviation: r = n tanh(J_0) / 2 - 1; the proposition says nothing unless it is above 0.
        exponent: c_stuck = 2 r^2 / n as printed; 0 where vacuous.
        steps: T = floor(delta exp(c_stuck) / 2); 0 where vacuous.
        printed_steps: T as printed, whatever the sign of r.
        sharper_steps: T from one-sided Hoeffding at the deviation that leaving really needs.
    """

    deviation: float
    exponent: float
    steps: float
    printed_steps: float
    sharper_steps: float

    @property
    def vacuous(self) -> bool:
        """Whether nothing is promised."""
        return self.steps < 1


def stuck_bound(clique: Clique, delta: float) -> StuckBound:
    """Proposition 5; ValueError where its conditions fail."""
    facts = _require_ferromagnet(clique)
    _require_delta(delta)
    n = clique.size
    half = 0.5 * n * tanh(facts.margin)
    deviation = half - 1.0
    printed = _floor(0.5 * delta * _exp(2.0 * deviation**2 / n))
    needed = half if n % 2 == 0 else half - 0.5
    sharper = _floor(delta * _exp(2.0 * needed**2 / n)) if needed > 0 else 0
    if deviation <= 0:
        return StuckBound(deviation, 0.0, 0, printed, sharper)
    return StuckBound(deviation, 2.0 * deviation**2 / n, printed, printed, sharper)


@dataclass(frozen=True, slots=True)
class Separation:
    """Corollary 1: which of its assumptions hold, and what follows.

    Attributes:
        size_needed: 8 (1 + ln(4 M / delta)), for |C|.
        field_needed: ln(2 (4 - delta) / delta) / 2, for h_C.
        margin_needed: |C| ln 2 / 2, for J_0.
        k_needed: max(|C|, N - delta (N + 1) / ((4 - delta) |C| + delta)), for k.
        ferromagnetic, strong, large: assumptions 5, 6 and 7.
        reach: proposition 4 at delta / 2, where its conditions hold.
        stuck: proposition 5 at delta / 2, likewise.
    """

    size_needed: float
    field_needed: float
    margin_needed: float
    k_needed: float
    ferromagnetic: bool
    strong: bool
    large: bool
    reach: ReachBound | None
    stuck: StuckBound | None

    @property
    def follows(self) -> bool:
        """Whether, with probability 1 - delta, k-Gibbs is in R_1 after one step and parallel is not in M steps."""
        return self.ferromagnetic and self.strong and self.large


def separation(clique: Clique, k: int, *, delta: float, steps: int) -> Separation:
    """Check corollary 1 for M = ``steps`` steps of independent parallel started with sum_C <= -2."""
    _require_delta(delta)
    require_count("k", k, maximum=clique.variables)
    require_count("steps", steps)
    facts, n, variables = ferromagnet(clique), clique.size, clique.variables
    size_needed, field_needed = 8.0 * (1.0 + log(4.0 * steps / delta)), 0.5 * log(2.0 * (4.0 - delta) / delta)
    margin_needed = 0.5 * n * log(2.0)
    k_needed = max(float(n), variables - delta * (variables + 1) / ((4.0 - delta) * n + delta))
    strong = n >= size_needed and facts.clique_field >= field_needed and facts.margin >= margin_needed
    usable = facts.holds and n >= 2
    reach = reach_bound(clique, k, 0.5 * delta) if usable and k >= n else None
    stuck = stuck_bound(clique, 0.5 * delta) if usable else None
    needed = size_needed, field_needed, margin_needed, k_needed
    return Separation(*needed, facts.holds, strong, k >= k_needed, reach, stuck)


def _require_ferromagnet(clique: Clique) -> Ferromagnet:
    require_count("size of the clique", clique.size, minimum=2)
    facts = ferromagnet(clique)
    if not facts.holds:
        expected = "sum of the clique's fields above the sum of |h_i| outside, and J above the sum of all |h_i|"
        got = f"{facts.clique_field:g} against {facts.other_fields:g}, and J - ||h||_1 = {facts.margin:g}"
        raise refuse("assumption 5", expected=expected, got=got)
    return facts


def _require_delta(delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise refuse("delta", expected="a number above 0 and below 1", got=delta)


def _steps(hit: float, delta: float) -> float:
    """ceil(log delta / log(1 - hit)), at least one step; infinite where hit is 0."""
    if hit >= 1.0:
        return 1
    return max(1, ceil(log(delta) / log1p(-hit))) if hit > 0.0 else inf


def _exp(value: float) -> float:
    """exp without overflow."""
    return exp(value) if value < 700.0 else inf


def _floor(value: float) -> float:
    """The whole number below, or infinity."""
    return floor(value) if value < inf else inf
