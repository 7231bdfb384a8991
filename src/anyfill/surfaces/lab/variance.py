"""``anyfill lab ising variance``: the exact asymptotic variance of k-pseudolikelihood, and theorems 1 and 2 on it.

    theorem 1   Gamma_{k+1} <= Gamma_k            margin: the smallest eigenvalue of Gamma_k - Gamma_{k+1}
    theorem 2   Gamma_k <= C_k I^-1               margin: the smallest eigenvalue of C_k I^-1 - Gamma_k

as matrices, C_k the Poincare constant of k-Gibbs. A margin holds down to rounding: -1e-9 of the larger trace. Both are
about one mask for each row; with more masks they need not hold, and the table then says so.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.data.spins import MOST_EXACT, all_codes
from anyfill.evaluation.lab.asymptotics import asymptotic_variance, fisher_information, inverse_information
from anyfill.evaluation.lab.spectra import slowest_mode
from anyfill.networks.ising import Ising
from anyfill.questions.blocks import k_blocks
from anyfill.surfaces.lab.model import LabModel
from anyfill.surfaces.lab.show import Found, Listing, number, offering, plain, verdict
from anyfill.surfaces.meter import metered

ROUNDING = 1e-9
INSTEAD = "--sampled estimates the traces from draws, without the theorem checks"


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


class Computed(NamedTuple):
    """k, Gamma_k (P, P), C_k, and whether the search for C_k arrived."""

    k: int
    gamma: Tensor
    constant: float
    converged: bool


def read_masks(text: str) -> float:
    """Masks for each row: a whole number, or infinity for ``all``."""
    if text == "all":
        return math.inf
    if not text.isdecimal() or int(text) < 1:
        raise refuse("--masks", expected="a whole number from 1 up, or all", got=repr(text))
    return int(text)


def require_listed(ising: Ising, what: str, each: int, way: str) -> None:
    """Refuse exact work on too many spins: what it would need with so many numbers for each state, and another way."""
    if ising.variables > MOST_EXACT:
        room = f"{each * 2.0 ** (ising.variables - 27):,.3g} GiB" if ising.variables < 1000 else "no machine"
        size = f"2^{ising.variables} states would need {room} for {each} numbers each"
        raise refuse(f"spins for {what}", expected=f"at most {MOST_EXACT}", got=f"{ising.variables}: {size} ({way})")


def require_parameters(ising: Ising) -> None:
    """Refuse a model with nothing to estimate."""
    if not len(ising.theta):
        raise refuse("model", expected="parameters to estimate", got="no couplings, and fixed fields")


def variances(ising: Ising, sizes: Sequence[int], masks: float = 1) -> Iterator[tuple[Computed, float]]:
    """One for each size, with the share of the work done."""
    log_joint, statistics = ising.log_joint().detach(), ising.statistics(all_codes(ising.variables)).detach()
    for place, k in enumerate(sizes, 1):
        blocks = k_blocks(ising.variables, k)
        gamma = asymptotic_variance(log_joint, statistics, blocks, masks=masks)
        mode = slowest_mode(log_joint, blocks)
        yield Computed(k, gamma, mode.constant, mode.converged), place / len(sizes)


def compare(found: Sequence[Computed], inverse: Tensor) -> list[KVariance]:
    """The theorems on every k; inverse (P, P) is I^-1."""
    rows: list[KVariance] = []
    whole = float(inverse.trace())
    for place, (k, gamma, constant, converged) in enumerate(found):
        trace = float(gamma.trace())
        order = _least(gamma - found[place + 1].gamma) if place + 1 < len(found) else None
        bound = _least(constant * inverse - gamma) if math.isfinite(constant) else math.inf
        # A constant that is too small may fail where the right one holds, and only so.
        bounded = bound >= -ROUNDING * constant * whole
        rows.append(
            KVariance(
                k,
                trace,
                constant,
                converged,
                constant * whole,
                order,
                None if order is None else order >= -ROUNDING * trace,
                bound,
                bounded if bounded or converged else None,
            )
        )
    return rows


def variance(model: LabModel, sizes: Sequence[int], *, masks: float) -> Found:
    """Everything exact."""
    ising = model.ising
    require_parameters(ising)
    require_listed(ising, "exact variances", len(ising.theta), INSTEAD)
    if masks != math.inf:
        require_count("--masks", masks)
    with offering(INSTEAD):
        fisher = fisher_information(ising.log_joint(), ising.statistics(all_codes(ising.variables)))
        inverse = inverse_information(fisher)
        found = list(metered(variances(ising, sizes, masks), "variance"))
    rows, least = compare(found, inverse), float(inverse.trace())
    ordered = [row for row in rows if row.order_holds is not None]
    drawn = "every block" if masks == math.inf else "one block" if masks == 1 else f"{masks:.0f} blocks"
    decided = [row for row in rows if row.bound_holds is not None]
    holding = [all(bool(row.order_holds) for row in ordered), all(bool(row.bound_holds) for row in decided)]
    first = _summary(holding[0], [(row.order_margin or 0.0, row.trace) for row in ordered])
    second = _summary(holding[1], [(row.bound_margin, row.bound) for row in decided])
    notes = [
        f"theorem 1, Γ_next <= Γ_k as matrices: {first}",
        f"theorem 2, Γ_k <= C_k I^-1 as matrices: {second}",
    ]
    if masks != 1:
        notes.append("The theorems speak of one block for each row; with more they need not hold.")
    listing = Listing(
        f"{model.words}: {len(ising.theta)} parameters, {drawn} for each row",
        ("k", "tr Γ_k", "ratio to MLE", "C_k", "C_k tr I^-1", "theorem 1", "margin", "theorem 2", "margin"),
        [
            (
                str(row.k), number(row.trace), f"{row.trace / least:.3f}",
                number(row.poincare) + ("" if row.converged else " or more"), number(row.bound),
                "-" if row.order_holds is None else verdict(row.order_holds),
                "-" if row.order_margin is None else _margin(row.order_margin, row.trace),
                "-" if row.bound_holds is None else verdict(row.bound_holds), _margin(row.bound_margin, row.bound),
            )
            for row in rows
        ],
    )  # fmt: skip
    document = {
        "command": "variance",
        "model": model.to_dict(),
        "parameters": len(ising.theta),
        "masks": "all" if masks == math.inf else masks,
        "trace_of_inverse_information": least,
        "theorem_1": holding[0],
        "theorem_2": holding[1],
        "results": [asdict(row) for row in rows],
    }
    return Found(document, [listing], notes, lambda figure: _draw(figure, model.words, rows, least))


def _summary(holds: bool, margins: Sequence[tuple[float, float]]) -> str:
    return f"{verdict(holds)}, least margin {_margin(*min(margins))}" if margins else "nothing to compare"


def _margin(value: float, scale: float) -> str:
    """A margin for people: 0 where it is rounding in numbers of this size."""
    return "0" if abs(value) <= ROUNDING * scale else f"{value:.3g}"


def _least(matrix: Tensor) -> float:
    return float(torch.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0])


def _draw(figure: Figure, words: str, rows: Sequence[KVariance], least: float) -> None:
    ks = [row.k for row in rows]
    left, right = (plain(axes) for axes in figure.subplots(1, 2))
    left.plot(ks, [row.trace for row in rows], "o-", color="#1b4f8a", label="tr Γ$_k$")
    if all(math.isfinite(row.bound) for row in rows):
        left.plot(ks, [row.bound for row in rows], "s--", color="#c0392b", label="theorem 2: C$_k$ tr I$^{-1}$", ms=4)
    left.axhline(least, color="grey", lw=1, ls=":", label="maximum likelihood")
    left.set(xlabel="k", ylabel="asymptotic variance (trace)", yscale="log", xticks=ks)
    left.legend(frameon=False)
    right.plot(ks, [row.poincare for row in rows], "o-", color="#3a8f5c")
    right.set(xlabel="k", ylabel="Poincaré constant C$_k$", yscale="log", xticks=ks)
    figure.suptitle(words)
