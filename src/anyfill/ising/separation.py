"""When k-Gibbs finds the larger mode of a clique and independent parallel does not: propositions 8, 4, 5, corollary 1.

The model is eq. (6) of the GMLM paper (``anyfill.ising.cliques``). Under assumption 5 (h_C = sum of C's fields
above the sum of |h_i| outside, J_0 = J - ||h||_1 > 0), with n = |C|:

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

from dataclasses import dataclass, field
from math import ceil, comb, exp, floor, inf, log, log1p, tanh

from anyfill.checks import refuse, require_count
from anyfill.ising.cliques import Clique
from anyfill.networks.exact import all_codes, require_exact


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
        """Whether assumption 5 holds."""
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
