"""``variance``: the asymptotic variance of k-pseudolikelihood, exact with theorems 1 and 2 on it, or from draws.

    theorem 1   Gamma_{k+1} <= Gamma_k            margin: the smallest eigenvalue of Gamma_k - Gamma_{k+1}
    theorem 2   Gamma_k <= C_k I^-1               margin: the smallest eigenvalue of C_k I^-1 - Gamma_k

as matrices, C_k the Poincare constant of k-Gibbs. A margin holds down to rounding: -1e-9 of the larger trace. Both are
about one mask for each row; with more masks they need not hold, and the table then says so. How much work a k is, is
known before it begins: sizes that are too much are left out, and the table says which.

From draws: see ``anyfill.ising.sampled_variances``.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from anyfill.checks import refuse, refuse_given
from anyfill.interface.progress import metered
from anyfill.interface.threads import threads
from anyfill.ising import asymptotics, lab
from anyfill.ising.blocks import MAX_BLOCKS, k_blocks
from anyfill.ising.dynamics import MAX_NUMBERS, MAX_WORK, k_block_nodes
from anyfill.ising.model import Ising
from anyfill.ising.sampled_variances import require_parameters, sampled_variance
from anyfill.ising.spectra import slowest_mode
from anyfill.networks.exact import MAX_EXACT, all_codes

ROUNDING = 1e-9
INSTEAD = "--sampled estimates the traces from draws, without the theorem checks"
STEPS, NODE = 30, 2e5
"""Lanczos steps that C_k usually takes, and multiplications that cost as much as one visit to a node of the tree."""


@threads(1)
def variance(
    model: Ising,
    *,
    k: lab.BlockSizes = None,
    masks: int | str | float = 1,
    sampled: bool = False,
    rows: int | None = None,
    sweeps: int | None = None,
    fixed_fields: bool = False,
    seed: int = 0,
) -> lab.Result:
    """Asymptotic variance of k-pseudolikelihood for every k, with Poincare constants; checks theorems 1 and 2.

    Args:
        model: the model.
        k: sizes of the blocks, such as ``[1, 2]`` or ``"1-4"``; all by default.
        masks: blocks drawn for each row: a number, or "all".
        sampled: estimate from draws, for more spins than can be listed.
        rows: draws of ``sampled``; 4096 by default.
        sweeps: sweeps before a draw of ``sampled``, for more than 20 spins; 500 by default.
        fixed_fields: the fields are known, and couplings alone are estimated.
        seed: of the draws.
    """
    model = model.with_fixed_fields() if fixed_fields else model
    per_row = _masks(masks)
    if not sampled:
        refuse_given("without --sampled", {"--rows": rows, "--sweeps": sweeps})
        return _exact(model, lab.block_sizes(k, model.variables, list(range(1, model.variables + 1))), per_row)
    if per_row != 1:
        raise refuse("--masks", expected="1 with --sampled", got=masks)
    sizes = lab.block_sizes(k, model.variables, lab.small_sizes(model.variables))
    return sampled_variance(model, sizes, 4096 if rows is None else rows, 500 if sweeps is None else sweeps, seed)


def _masks(masks: int | str | float) -> float:
    """Masks for each row: a whole number, or infinity for ``all``."""
    if masks in ("all", math.inf):
        return math.inf
    if not str(masks).isdecimal() or int(masks) < 1:
        raise refuse("--masks", expected="a whole number from 1 up, or all", got=repr(masks))
    return int(masks)


def require_listed(ising: Ising, what: str, each: int, way: str) -> None:
    """Refuse exact work on too many spins: what it would need with so many numbers for each state, and another way."""
    if ising.variables > MAX_EXACT:
        room = f"{each * 2.0 ** (ising.variables - 27):,.3g} GiB" if ising.variables < 1000 else "no machine"
        size = f"2^{ising.variables} states would need {room} for {each} numbers each"
        raise refuse(f"spins for {what}", expected=f"at most {MAX_EXACT}", got=f"{ising.variables}: {size} ({way})")


@dataclass(frozen=True, slots=True)
class KVariance:
    """One k.

    Attributes:
        k: the size of the blocks.
        trace: tr(Gamma_k).
        poincare: C_k.
        converged: whether the search for C_k arrived; if not, it is too small.
        bound: C_k tr(I^-1).
        order_margin: theorem 1 against the next k listed; None for the last.
        bound_margin: theorem 2.
        order_holds, bound_holds: whether they hold to within rounding; None if that is not decided.
    """

    k: int
    trace: float
    poincare: float
    converged: bool
    bound: float
    order_margin: float | None
    order_holds: bool | None
    bound_margin: float
    bound_holds: bool | None

    def row(self, best: float) -> tuple[str, ...]:
        """For the table; best is tr(I^-1)."""
        return (
            str(self.k), lab.number(self.trace), f"{self.trace / best:.3f}",
            lab.number(self.poincare, beyond="> 1e28") + ("" if self.converged else " or more"),
            lab.number(self.bound, beyond="> 1e28"),
            lab.verdict(self.order_holds), "-" if self.order_margin is None else _margin(self.order_margin, self.trace),
            lab.verdict(self.bound_holds), _margin(self.bound_margin, self.bound),
        )  # fmt: skip


class Computed(NamedTuple):
    """k, Gamma_k (P, P), C_k, and whether the search for C_k arrived."""

    k: int
    gamma: Tensor
    constant: float
    converged: bool


def work_of(ising: Ising, k: int) -> float:
    """Roughly how many multiplications Gamma_k and C_k take: 3e9 in a second; infinite if they do not fit in memory."""
    count, nodes = ising.variables, k_block_nodes(ising.variables, k)
    if math.comb(count, k) > MAX_BLOCKS or math.comb(count, k) * 2.0 ** (count - k) > MAX_NUMBERS:
        return math.inf
    pairs = sum(many * 2.0 ** (count - depth) for depth, many in enumerate(nodes, 1))
    return pairs * (len(ising.theta) ** 2 + 10.0 * STEPS) + NODE * STEPS * sum(nodes)


def _variances(ising: Ising, sizes: Sequence[int], masks: float) -> Iterator[tuple[Computed, float]]:
    """One for each size, with the share of the work done."""
    log_joint, statistics = ising.log_joint().detach(), ising.statistics(all_codes(ising.variables)).detach()
    work, names = [work_of(ising, k) for k in sizes], asymptotics.parameter_names(ising)
    for place, k in enumerate(sizes):
        blocks = k_blocks(ising.variables, k)
        gamma = asymptotics.asymptotic_variance(log_joint, statistics, blocks, masks=masks, names=names)
        mode = slowest_mode(log_joint, blocks)
        yield Computed(k, gamma, mode.constant, mode.converged), sum(work[: place + 1]) / sum(work)


def compare(found: Sequence[Computed], inverse: Tensor) -> list[KVariance]:
    """The theorems on every k; inverse (P, P) is I^-1."""
    rows: list[KVariance] = []
    whole = float(inverse.trace())
    for (k, gamma, constant, converged), after in zip(found, [*found[1:], None]):
        trace = float(gamma.trace())
        order = None if after is None else _smallest(gamma - after.gamma)
        bound = _smallest(constant * inverse - gamma) if math.isfinite(constant) else math.inf
        # A constant that is too small may fail where the right one holds, and only so.
        bounded = bound >= -ROUNDING * constant * whole
        ordered = None if order is None else order >= -ROUNDING * trace
        decided = bounded if bounded or converged else None
        rows.append(KVariance(k, trace, constant, converged, constant * whole, order, ordered, bound, decided))
    return rows


def _exact(ising: Ising, sizes: Sequence[int], masks: float) -> lab.Result:
    require_parameters(ising)
    require_listed(ising, "exact variances", len(ising.theta), INSTEAD)
    heavy = [k for k in sizes if work_of(ising, k) > MAX_WORK]
    if len(heavy) == len(sizes):
        work, k = min((work_of(ising, k), k) for k in sizes)
        got = f"{work:.1e} for k = {k}" if math.isfinite(work) else "more than fits in memory"
        expected = f"a size with at most {MAX_WORK:.0e} multiplications"
        raise refuse(f"--k of {ising.variables} spins", expected=expected, got=f"{got} ({INSTEAD})")
    with lab.offering(INSTEAD):
        fisher = asymptotics.fisher_information(ising.log_joint(), ising.statistics(all_codes(ising.variables)))
        inverse = asymptotics.inverse_information(fisher, names=asymptotics.parameter_names(ising))
        light = [k for k in sizes if k not in heavy]
        found = list(metered(_variances(ising, light, masks), "variance"))
    rows, best = compare(found, inverse), float(inverse.trace())
    ordered = [row for row in rows if row.order_holds is not None]
    decided = [row for row in rows if row.bound_holds is not None]
    holding = [all(row.order_holds for row in ordered), all(row.bound_holds for row in decided)]
    first = _summary(holding[0], [(row.order_margin or 0.0, row.trace) for row in ordered])
    second = _summary(holding[1], [(row.bound_margin, row.bound) for row in decided])
    notes = [f"theorem 1, Γ_next <= Γ_k as matrices: {first}", f"theorem 2, Γ_k <= C_k I^-1 as matrices: {second}"]
    if masks != 1:
        notes.append("The theorems speak of one block for each row; with more they need not hold.")
    if heavy:
        listed = f"k = {', '.join(str(k) for k in heavy)}"
        notes.append(f"Not computed: {listed}, which would take too long or too much memory; {INSTEAD}.")
    drawn = "every block" if masks == math.inf else "one block" if masks == 1 else f"{masks:.0f} blocks"
    shown = {row.k: row.row(best) for row in rows}
    listing = lab.Listing(
        f"{ising.words}: {len(ising.theta)} parameters, {drawn} for each row",
        ("k", "tr Γ_k", "ratio to MLE", "C_k", "C_k tr I^-1", "theorem 1", "margin", "theorem 2", "margin"),
        [shown.get(k, (str(k), *"--------")) for k in sizes],
    )
    document = {
        "command": "variance",
        "model": ising.to_dict(),
        "parameters": len(ising.theta),
        "masks": "all" if masks == math.inf else masks,
        "trace_of_inverse_information": best,
        "theorem_1": holding[0],
        "theorem_2": holding[1],
        "left_out": heavy,
        "results": [asdict(row) for row in rows],
    }
    return lab.Result(document, [listing], notes, lambda figure: _draw(figure, ising.words, rows, best))


def _summary(holds: bool, margins: Sequence[tuple[float, float]]) -> str:
    return f"{lab.verdict(holds)}, least margin {_margin(*min(margins))}" if margins else "nothing to compare"


def _margin(value: float, scale: float) -> str:
    """A margin for people: 0 where it is rounding in numbers of this size."""
    return "0" if abs(value) <= ROUNDING * scale else f"{value:.3g}"


def _smallest(matrix: Tensor) -> float:
    """The smallest eigenvalue."""
    return float(torch.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0])


def _draw(figure: Figure, words: str, rows: Sequence[KVariance], best: float) -> None:
    ks = [row.k for row in rows]
    left, right = lab.panels(figure, words, 2)
    lab.curve(left, rows, "trace", "o-", color="#1b4f8a", label="tr Γ$_k$")
    if all(math.isfinite(row.bound) for row in rows):
        lab.curve(left, rows, "bound", "s--", color="#c0392b", label="theorem 2: C$_k$ tr I$^{-1}$", ms=4)
    left.axhline(best, color="grey", lw=1, ls=":", label="maximum likelihood")
    left.set(xlabel="k", ylabel="asymptotic variance (trace)", yscale="log", xticks=ks)
    left.legend(frameon=False)
    lab.curve(right, rows, "poincare", "o-", color="#3a8f5c")
    right.set(xlabel="k", ylabel="Poincaré constant C$_k$", yscale="log", xticks=ks)
