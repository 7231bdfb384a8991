"""``anyfill lab ising mixing``: how fast the chains forget, and what independent parallel forgets to, all exact.

    k-Gibbs                keeps p; gap 1 - lambda_2, C_k = 1 / gap is its Poincare constant and relaxation time
    independent parallel   keeps the law proportional to exp(sum h_i s_i) prod cosh(field on i), not p; its relaxation
                           time is 1 / (1 - max |lambda|), for it has negative eigenvalues

The mixing time is the number of steps after which no start is further than 1/4 from the stationary law in total
variation: by powers of the whole matrix, for up to 9 spins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor

from anyfill.interface.progress import metered
from anyfill.ising.blocks import k_blocks
from anyfill.ising.dynamics import transition_matrix
from anyfill.ising.model import Ising
from anyfill.ising.model_options import LabModel
from anyfill.ising.show import Found, Listing, large, number, offering, plain
from anyfill.ising.spectra import (
    LEAST_GAP,
    independent_parallel_law,
    independent_parallel_matrix,
    mixing_time,
    slowest_mode,
    spectrum,
)
from anyfill.ising.tensorization import tensorization_constant
from anyfill.ising.variance_command import require_listed

MAX_DENSE = 9
"""Spins up to which whole transition matrices are raised to powers."""
INSTEAD = "--sampled runs chains and measures autocorrelation times"
LEAST_PARALLEL_GAP = 1e-12
"""A gap of the parallel chain below this is rounding."""


@dataclass(frozen=True, slots=True)
class Mixing:
    """One sampler.

    Attributes:
        k: size of the block; None is independent parallel.
        gap: 1 - lambda_2, or 1 - max |lambda| for independent parallel; None where not computed.
        gap_below: what is known of a gap that is rounding, and so None; None otherwise.
        relaxation: 1 / gap; for k-Gibbs the Poincare constant; infinite beyond 1e28.
        converged: whether the search for the gap arrived; if not, the constant is too small.
        mixing_time: steps to total variation 1/4; None where not computed, infinite beyond 2^40.
        distance: total variation between the stationary law and p.
        divergence: KL(p, stationary law) in nats.
        tensorization: approximate tensorisation constant of entropy, found (a lower bound); None if not asked for.
        tensorization_bound: a proved upper bound of it.
    """

    k: int | None
    gap: float | None
    relaxation: float | None
    converged: bool
    mixing_time: float | None
    distance: float
    divergence: float
    gap_below: float | None = None
    tensorization: float | None = None
    tensorization_bound: float | None = None


def mixing(model: LabModel, sizes: Sequence[int], *, tensorization: bool, seed: int) -> Found:
    """Everything exact."""
    ising = model.ising
    require_listed(ising, "exact mixing", 10, INSTEAD)  # p, and a few vectors of Lanczos
    with offering(INSTEAD):
        found = list(metered(_each(ising, sizes, tensorization, seed), "mixing"))
    entropy = ("C_AT found", "C_AT at most") if tensorization else ()
    listing = Listing(
        model.words,
        ("sampler", "gap", "C = relaxation time", "mixing time", "TV to p", "KL(p, law)", *entropy),
        [
            (
                _name(one), number(one.gap) if one.gap_below is None else f"< {one.gap_below:g}",
                large(one.relaxation, "> 1e28") + ("" if one.converged else " or more"),
                large(one.mixing_time, "> 2^40"), number(one.distance, 3), number(one.divergence, 3),
                *((number(one.tensorization), number(one.tensorization_bound)) if tensorization else ()),
            )
            for one in found
        ],
    )  # fmt: skip
    parallel = found[-1]
    notes = [
        "k-Gibbs keeps p. Independent parallel keeps a law of its own, "
        + (
            f"{parallel.distance:.3g} away in total variation."
            if parallel.distance > 1e-12
            else "here p to within rounding."
        )
    ]
    if ising.variables > MAX_DENSE:
        notes.append(
            "Mixing times, and the gap of independent parallel, are "
            f"computed up to {MAX_DENSE} spins; --sampled measures beyond."
        )
    elif parallel.gap_below is not None:
        notes.append(f"The gap of independent parallel is below {parallel.gap_below:g}, which is rounding.")
    elif parallel.gap is None:
        notes.append("No gap of independent parallel: its law has states too unlikely for a double.")
    if tensorization:
        notes.append("C_AT lies between what was found (never less than C) and the proved bound.")
    document = {
        "command": "mixing",
        "model": model.to_dict(),
        "results": [asdict(one) | {"sampler": _name(one)} for one in found],
    }
    return Found(document, [listing], notes, lambda figure: _draw(figure, model.words, found))


def _each(ising: Ising, sizes: Sequence[int], tensorization: bool, seed: int) -> Iterator[tuple[Mixing, float]]:
    log_joint = ising.log_joint().detach()
    law, dense = log_joint.exp(), ising.variables <= MAX_DENSE
    generator = torch.Generator().manual_seed(seed)
    for place, k in enumerate(sizes, 1):
        blocks = k_blocks(ising.variables, k)
        mode = slowest_mode(log_joint, blocks)
        steps = _mixing_time(transition_matrix(log_joint, blocks), law) if dense else None
        entropy = tensorization_constant(log_joint, blocks, generator=generator) if tensorization else None
        yield (
            Mixing(
                k, mode.gap if mode.gap > LEAST_GAP else None, mode.constant, mode.converged, steps, 0.0, 0.0,
                gap_below=None if mode.gap > LEAST_GAP else LEAST_GAP,
                tensorization=None if entropy is None else entropy.constant,
                tensorization_bound=None if entropy is None else entropy.bound,
            ),
            place / (len(sizes) + 1),
        )  # fmt: skip
    log_other = independent_parallel_law(ising)
    other, gap, below, steps = log_other.exp(), None, None, None
    if dense:
        matrix = independent_parallel_matrix(ising)
        steps = _mixing_time(matrix, other)
        if float(log_other.min()) > -500.0:
            values = spectrum(matrix, other)
            gap = 1.0 - float(values[1:].abs().max())
            gap, below = (gap, None) if gap > LEAST_PARALLEL_GAP else (None, LEAST_PARALLEL_GAP)
    distance = 0.5 * float((law - other).abs().sum())
    divergence = max(0.0, float((law * (log_joint - log_other)).sum()))
    relaxation = None if gap is None else 1.0 / gap
    yield Mixing(None, gap, relaxation, True, steps, distance, divergence, below), 1.0


def _mixing_time(matrix: Tensor, law: Tensor) -> float:
    try:
        return float(mixing_time(matrix, law))
    except ValueError:  # more than 2^40 steps
        return float("inf")


def _name(one: Mixing) -> str:
    return "independent parallel" if one.k is None else f"{one.k}-Gibbs"


def _draw(figure: Figure, words: str, found: Sequence[Mixing]) -> None:
    left, right = (plain(axes) for axes in figure.subplots(1, 2))
    gibbs, parallel = found[:-1], found[-1]
    ks = [one.k or 0 for one in gibbs]
    left.plot(ks, [one.relaxation or 0.0 for one in gibbs], "o-", color="#1b4f8a", label="relaxation time C$_k$")
    if all(one.mixing_time is not None for one in gibbs):
        times = [one.mixing_time or 0.0 for one in gibbs]
        left.plot(ks, times, "s--", color="#3a8f5c", ms=5, label="mixing time")
    if all(one.tensorization is not None for one in gibbs):
        values = [one.tensorization or 0.0 for one in gibbs]
        left.plot(ks, values, "^:", color="#c0392b", ms=5, label="C$_{AT}$ found")
    if parallel.relaxation is not None:
        left.axhline(parallel.relaxation, color="black", lw=1, ls="--", label="independent parallel, relaxation")
    left.set(xlabel="k", ylabel="steps", yscale="log", xticks=ks)
    left.legend(frameon=False, fontsize=9)
    right.bar(["k-Gibbs", "independent parallel"], [0.0, parallel.distance], color=["#1b4f8a", "#555555"], width=0.5)
    for place, value in enumerate((0.0, parallel.distance)):
        right.annotate(f"{value:.3g}", (place, value), xytext=(0, 4), textcoords="offset points", ha="center")
    right.set_ylabel("total variation from p in the long run")
    right.set_ylim(0, max(0.05, 1.25 * parallel.distance))
    figure.suptitle(words)
