"""``variance``: the asymptotic variance of k-pseudolikelihood, exact with theorems 1 and 2 on it, or from draws.

    theorem 1   Gamma_{k+1} <= Gamma_k            margin: the smallest eigenvalue of Gamma_k - Gamma_{k+1}
    theorem 2   Gamma_k <= C_k I^-1               margin: the smallest eigenvalue of C_k I^-1 - Gamma_k

as matrices, C_k the Poincare constant of k-Gibbs. A margin holds down to rounding: -1e-9 of the larger trace. Both are
about one mask for each row; with more masks they need not hold, and the table then says so. How much work a k is, is
known before it begins: sizes that are too much are left out, and the table says which.

From draws, for models whose states cannot be listed: the rows are split into parts; in each, H_k is the mean of exact
conditional covariances of one random block for each row (``sampled_information``). tr(H^-1) is taken of the mean over
parts, its bias of first order and its standard error by the jackknife over parts. For maximum likelihood H is the
covariance of the statistics themselves.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.interface.progress import metered
from anyfill.interface.threads import threads
from anyfill.ising.asymptotics import (
    asymptotic_variance,
    fisher_information,
    inverse_information,
    parameter_names,
    sampled_information,
)
from anyfill.ising.blocks import MAX_BLOCKS, k_blocks
from anyfill.ising.dynamics import MAX_NUMBERS, MAX_WORK, k_block_nodes
from anyfill.ising.heat_bath import draw_rows
from anyfill.ising.inputs import BlockSizes, block_sizes, small_sizes
from anyfill.ising.model import Ising
from anyfill.ising.show import Listing, Result, curve, number, offering, panels, refuse_given, verdict
from anyfill.ising.spectra import slowest_mode
from anyfill.networks.states import MAX_EXACT, all_codes
from anyfill.questions.subsets import KSubset

ROUNDING = 1e-9
INSTEAD = "--sampled estimates the traces from draws, without the theorem checks"
STEPS, NODE = 30, 2e5
"""Lanczos steps that C_k usually takes, and multiplications that cost as much as one visit to a node of the tree."""
PARTS = 16
MAX_PARAMETERS = 600
"""Of a sampled variance: more would take matrices of 600 x 600 for every part."""
MAX_BLOCK = 14
"""The largest block whose states are listed for every row."""


@threads(1)
def variance(
    model: Ising,
    *,
    k: BlockSizes = None,
    masks: int | str | float = 1,
    sampled: bool = False,
    rows: int | None = None,
    sweeps: int | None = None,
    fixed_fields: bool = False,
    seed: int = 0,
) -> Result:
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
        return _exact(model, block_sizes(k, model.variables, list(range(1, model.variables + 1))), per_row)
    if per_row != 1:
        raise refuse("--masks", expected="1 with --sampled", got=masks)
    sizes = block_sizes(k, model.variables, small_sizes(model.variables))
    return _sampled(model, sizes, 4096 if rows is None else rows, 500 if sweeps is None else sweeps, seed)


def _masks(masks: int | str | float) -> float:
    """Masks for each row: a whole number, or infinity for ``all``."""
    if masks in ("all", math.inf):
        return math.inf
    if not str(masks).isdecimal() or int(masks) < 1:
        raise refuse("--masks", expected="a whole number from 1 up, or all", got=repr(masks))
    return int(masks)


def _require_parameters(ising: Ising) -> None:
    if not len(ising.theta):
        raise refuse("model", expected="parameters to estimate", got="no couplings, and fixed fields")


def require_listed(ising: Ising, what: str, each: int, way: str) -> None:
    """Refuse exact work on too many spins: what it would need with so many numbers for each state, and another way."""
    if ising.variables > MAX_EXACT:
        room = f"{each * 2.0 ** (ising.variables - 27):,.3g} GiB" if ising.variables < 1000 else "no machine"
        size = f"2^{ising.variables} states would need {room} for {each} numbers each"
        raise refuse(f"spins for {what}", expected=f"at most {MAX_EXACT}", got=f"{ising.variables}: {size} ({way})")


# ---- exact


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
            str(self.k), number(self.trace), f"{self.trace / best:.3f}",
            number(self.poincare, beyond="> 1e28") + ("" if self.converged else " or more"),
            number(self.bound, beyond="> 1e28"),
            verdict(self.order_holds), "-" if self.order_margin is None else _margin(self.order_margin, self.trace),
            verdict(self.bound_holds), _margin(self.bound_margin, self.bound),
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
    pairs = sum(number * 2.0 ** (count - depth) for depth, number in enumerate(nodes, 1))
    return pairs * (len(ising.theta) ** 2 + 10.0 * STEPS) + NODE * STEPS * sum(nodes)


def _variances(ising: Ising, sizes: Sequence[int], masks: float) -> Iterator[tuple[Computed, float]]:
    """One for each size, with the share of the work done."""
    log_joint, statistics = ising.log_joint().detach(), ising.statistics(all_codes(ising.variables)).detach()
    work, names = [work_of(ising, k) for k in sizes], parameter_names(ising)
    for place, k in enumerate(sizes):
        blocks = k_blocks(ising.variables, k)
        gamma = asymptotic_variance(log_joint, statistics, blocks, masks=masks, names=names)
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


def _exact(ising: Ising, sizes: Sequence[int], masks: float) -> Result:
    _require_parameters(ising)
    require_listed(ising, "exact variances", len(ising.theta), INSTEAD)
    heavy = [k for k in sizes if work_of(ising, k) > MAX_WORK]
    if len(heavy) == len(sizes):
        work, k = min((work_of(ising, k), k) for k in sizes)
        got = f"{work:.1e} for k = {k}" if math.isfinite(work) else "more than fits in memory"
        expected = f"a size with at most {MAX_WORK:.0e} multiplications"
        raise refuse(f"--k of {ising.variables} spins", expected=expected, got=f"{got} ({INSTEAD})")
    with offering(INSTEAD):
        fisher = fisher_information(ising.log_joint(), ising.statistics(all_codes(ising.variables)))
        inverse = inverse_information(fisher, names=parameter_names(ising))
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
    listing = Listing(
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
    return Result(document, [listing], notes, lambda figure: _draw_exact(figure, ising.words, rows, best))


def _summary(holds: bool, margins: Sequence[tuple[float, float]]) -> str:
    return f"{verdict(holds)}, least margin {_margin(*min(margins))}" if margins else "nothing to compare"


def _margin(value: float, scale: float) -> str:
    """A margin for people: 0 where it is rounding in numbers of this size."""
    return "0" if abs(value) <= ROUNDING * scale else f"{value:.3g}"


def _smallest(matrix: Tensor) -> float:
    """The smallest eigenvalue."""
    return float(torch.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0])


def _draw_exact(figure: Figure, words: str, rows: Sequence[KVariance], best: float) -> None:
    ks = [row.k for row in rows]
    left, right = panels(figure, words, 2)
    curve(left, rows, "trace", "o-", color="#1b4f8a", label="tr Γ$_k$")
    if all(math.isfinite(row.bound) for row in rows):
        curve(left, rows, "bound", "s--", color="#c0392b", label="theorem 2: C$_k$ tr I$^{-1}$", ms=4)
    left.axhline(best, color="grey", lw=1, ls=":", label="maximum likelihood")
    left.set(xlabel="k", ylabel="asymptotic variance (trace)", yscale="log", xticks=ks)
    left.legend(frameon=False)
    curve(right, rows, "poincare", "o-", color="#3a8f5c")
    right.set(xlabel="k", ylabel="Poincaré constant C$_k$", yscale="log", xticks=ks)


# ---- from draws


@dataclass(frozen=True, slots=True, eq=False)
class OwnBlocks:
    """A listed block for each row: row i has block i. Satisfies ``Blocks`` for exactly these rows.

    Attributes:
        subsets: bool (n, N).
    """

    subsets: Tensor
    adaptive: ClassVar[bool] = False

    def probabilities(self, x: Tensor) -> Tensor:
        return torch.eye(len(x), len(self.subsets), dtype=torch.float64)

    def sample(self, x: Tensor, *, generator: Generator) -> Tensor:
        return self.subsets[: len(x)]


@dataclass(frozen=True, slots=True)
class SampledTrace:
    """One k; None stands for maximum likelihood.

    Attributes:
        k: the size of the blocks.
        trace: the estimate of tr(Gamma_k).
        error: its standard error.
    """

    k: int | None
    trace: float
    error: float


def _require_sampled(ising: Ising, rows: int, sizes: Sequence[int]) -> None:
    """Refuse what cannot be estimated from so many rows."""
    _require_parameters(ising)
    count = len(ising.theta)
    if count > MAX_PARAMETERS:
        raise refuse("parameters of a sampled variance", expected=f"at most {MAX_PARAMETERS}", got=count)
    needed = 2 * PARTS * max(2, math.ceil(count / PARTS))
    if rows < needed:
        raise refuse("--rows", expected=f"at least {needed:,} for {count} parameters", got=rows)
    for k in sizes:
        require_count("k of a sampled variance", k, maximum=MAX_BLOCK)


def sampled_traces(
    ising: Ising, codes: Tensor, sizes: Sequence[int], *, generator: Generator, likelihood: bool = True
) -> Iterator[tuple[SampledTrace, float]]:
    """An estimate for each size and for maximum likelihood, each with the share of the work done."""
    _require_sampled(ising, len(codes), sizes)
    count = len(ising.theta)
    work = [2.0**k for k in sizes] + [2.0] * likelihood
    for place, k in enumerate([*sizes, *([None] * likelihood)], 1):
        parts: list[Tensor] = []
        for x in codes.tensor_split(PARTS):
            if k is None:
                parts.append(torch.cov(ising.statistics(x).detach().T).reshape(count, count))
                continue
            blocks = OwnBlocks(KSubset(ising.variables, k).sample(len(x), generator=generator).asked)
            parts.append(sampled_information(ising, blocks, x, generator=generator, batches=2).information)
        yield _jackknife(k, torch.stack(parts)), sum(work[:place]) / sum(work)


def _jackknife(k: int | None, parts: Tensor) -> SampledTrace:
    """From an estimate of H in each part (G, P, P) to one of tr(H^-1), with its standard error."""
    count, whole = len(parts), _trace(parts.mean(0))
    left = torch.tensor([_trace((parts.sum(0) - part) / (count - 1)) for part in parts], dtype=torch.float64)
    error = math.sqrt((count - 1) * float((left - left.mean()).square().mean()))
    return SampledTrace(k, count * whole - (count - 1) * float(left.mean()), error)


def _trace(information: Tensor) -> float:
    return float(inverse_information(information).trace())


def _sampled(ising: Ising, sizes: Sequence[int], rows: int, sweeps: int, seed: int) -> Result:
    _require_sampled(ising, rows, sizes)
    generator = torch.Generator().manual_seed(seed)
    draws = draw_rows(ising, rows, sweeps, generator=generator)
    found = list(metered(sampled_traces(ising, draws.codes, sizes, generator=generator), "variance"))
    whole = found[-1]
    listing = Listing(
        f"{ising.words}: {len(ising.theta)} parameters, estimated from {rows:,} draws",
        ("k", "tr Γ_k", "standard error", "ratio to MLE"),
        [
            ("MLE" if one.k is None else str(one.k), number(one.trace), number(one.error, 2),
             f"{one.trace / whole.trace:.3f}")
            for one in found
        ],
    )  # fmt: skip
    notes = [draws.warning] if draws.warning else []
    document = {
        "command": "variance",
        "sampled": True,
        "model": ising.to_dict(),
        "rows": rows,
        "halves_apart": draws.apart,
        "warnings": notes,
        "results": [asdict(one) for one in found],
    }
    return Result(document, [listing], notes, lambda figure: _draw_sampled(figure, ising.words, found))


def _draw_sampled(figure: Figure, words: str, found: Sequence[SampledTrace]) -> None:
    (axes,) = panels(figure, f"{words}: estimated from draws")
    label = "tr Γ$_k$, ±2 standard errors"
    curve(axes, found, "trace", "o-", error="error", color="#1b4f8a", capsize=3, label=label)
    axes.axhline(found[-1].trace, color="grey", lw=1, ls=":", label="maximum likelihood")
    ks = [one.k for one in found if one.k is not None]
    axes.set(xlabel="k", ylabel="asymptotic variance (trace)", xticks=ks)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
