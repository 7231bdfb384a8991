"""``mixing``: how fast the chains forget, and what independent parallel forgets to; exact, or from chains that ran.

    k-Gibbs                keeps p; gap 1 - lambda_2, C_k = 1 / gap is its Poincare constant and relaxation time
    independent parallel   keeps the law proportional to exp(sum h_i s_i) prod cosh(field on i), not p; its relaxation
                           time is 1 / (1 - max |lambda|), for it has negative eigenvalues

The mixing time is the number of steps after which no start is further than 1/4 from the stationary law in total
variation: by powers of the whole matrix, for up to 9 spins.

From chains, for models of any size: tau = 1 + 2 sum_t rho_t of the magnetisation (mean spin) and of the exponent (minus
the energy), in steps of the sampler; a step of k-Gibbs redraws k spins. Chains start from draws (exact, or after
sweeps) and the first quarter of their steps is not counted, for independent parallel has a law of its own to find. tau
is believed if every chain is 10 tau long and all together 1000.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import torch
from matplotlib.figure import Figure
from torch import Generator, Tensor

from anyfill.checks import refuse, refuse_given, require_count
from anyfill.evaluation.mixing import autocorrelation_time
from anyfill.interface.progress import metered
from anyfill.interface.threads import threads
from anyfill.ising import lab, spectra
from anyfill.ising.blocks import k_blocks
from anyfill.ising.chains import kernel_of, run_chain, still
from anyfill.ising.dynamics import transition_matrix
from anyfill.ising.heat_bath import draw_rows
from anyfill.ising.model import Ising
from anyfill.ising.sampled_variances import MAX_BLOCK
from anyfill.ising.tensorization import tensorization_constant
from anyfill.ising.variances import require_listed
from anyfill.networks.exact import to_spins

MAX_DENSE = 9
"""Spins up to which whole transition matrices are raised to powers."""
INSTEAD = "--sampled runs chains and measures autocorrelation times"
MIN_PARALLEL_GAP = 1e-12
"""A gap of the parallel chain below this is rounding."""
LONG, TOGETHER = 10.0, 1000.0
"""Autocorrelation times that each chain, and all of them together, must be long."""
_PIECES = 20


@threads(1)
def mixing(
    model: Ising,
    *,
    k: lab.BlockSizes = None,
    tensorization: bool = False,
    sampled: bool = False,
    chains: int | None = None,
    steps: int | None = None,
    sweeps: int | None = None,
    seed: int = 0,
) -> lab.Result:
    """Spectral gaps, Poincare constants, relaxation and mixing times of k-Gibbs and of independent parallel.

    Args:
        model: the model.
        k: sizes of the blocks, such as ``[1, 2]`` or ``"1-4"``; all by default.
        tensorization: also search approximate tensorisation constants (slower).
        sampled: measure autocorrelation times of chains, for any number of spins.
        chains: chains of ``sampled``; 100 by default.
        steps: steps of each, the first quarter not counted; 4000 by default.
        sweeps: sweeps before them, for more than 20 spins; 500 by default.
        seed: of everything random.
    """
    count = model.variables
    if not sampled:
        refuse_given("without --sampled", {"--chains": chains, "--steps": steps, "--sweeps": sweeps})
        return _exact(model, lab.block_sizes(k, count, list(range(1, count + 1))), tensorization, seed)
    if tensorization:
        raise refuse("--tensorization", expected="none with --sampled: it lists all states", got="one")
    sizes = lab.block_sizes(k, count, lab.small_sizes(count))
    chains, steps = 100 if chains is None else chains, 4000 if steps is None else steps
    require_count("--chains", chains, minimum=2)
    require_count("--steps", steps, minimum=20)
    return _sampled(model, sizes, chains, steps, 500 if sweeps is None else sweeps, seed)


# ---- exact


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

    def row(self) -> tuple[str, ...]:
        """For the table; the last two are for entropy."""
        return (
            lab.sampler_name(self.k), lab.number(self.gap) if self.gap_below is None else f"< {self.gap_below:g}",
            lab.number(self.relaxation, beyond="> 1e28") + ("" if self.converged else " or more"),
            lab.number(self.mixing_time, beyond="> 2^40"), lab.number(self.distance, 3), lab.number(self.divergence, 3),
            lab.number(self.tensorization), lab.number(self.tensorization_bound),
        )  # fmt: skip


def _exact(ising: Ising, sizes: Sequence[int], tensorization: bool, seed: int) -> lab.Result:
    require_listed(ising, "exact mixing", 10, INSTEAD)  # p, and a few vectors of Lanczos
    with lab.offering(INSTEAD):
        found = list(metered(_mixings(ising, sizes, tensorization, seed), "mixing"))
    columns = ("sampler", "gap", "C = relaxation time", "mixing time", "TV to p", "KL(p, law)")
    columns += ("C_AT found", "C_AT at most") if tensorization else ()
    listing = lab.Listing(ising.words, columns, [one.row()[: len(columns)] for one in found])
    parallel = found[-1]
    apart = f"{parallel.distance:.3g} away in total variation."
    here = apart if parallel.distance > 1e-12 else "here p to within rounding."
    notes = [f"k-Gibbs keeps p. Independent parallel keeps a law of its own, {here}"]
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
        "model": ising.to_dict(),
        "results": [asdict(one) | {"sampler": lab.sampler_name(one.k)} for one in found],
    }
    return lab.Result(document, [listing], notes, lambda figure: _draw_exact(figure, ising.words, found))


def _mixings(ising: Ising, sizes: Sequence[int], tensorization: bool, seed: int) -> Iterator[tuple[Mixing, float]]:
    """Every sampler, with the share of the work done."""
    log_joint = ising.log_joint().detach()
    law, dense = log_joint.exp(), ising.variables <= MAX_DENSE
    generator = torch.Generator().manual_seed(seed)
    for place, k in enumerate(sizes, 1):
        blocks = k_blocks(ising.variables, k)
        mode = spectra.slowest_mode(log_joint, blocks)
        steps = _mixing_time(transition_matrix(log_joint, blocks), law) if dense else None
        entropy = tensorization_constant(log_joint, blocks, generator=generator) if tensorization else None
        gap, below = (mode.gap, None) if mode.gap > spectra.MIN_GAP else (None, spectra.MIN_GAP)
        bounds = (None, None) if entropy is None else (entropy.constant, entropy.bound)
        yield (Mixing(k, gap, mode.constant, mode.converged, steps, 0.0, 0.0, below, *bounds), place / (len(sizes) + 1))
    log_other = spectra.independent_parallel_law(ising)
    other, gap, below, steps = log_other.exp(), None, None, None
    if dense:
        matrix = spectra.independent_parallel_matrix(ising)
        steps = _mixing_time(matrix, other)
        if float(log_other.min()) > -500.0:
            gap = 1.0 - float(spectra.spectrum(matrix, other)[1:].abs().max())
            gap, below = (gap, None) if gap > MIN_PARALLEL_GAP else (None, MIN_PARALLEL_GAP)
    distance = 0.5 * float((law - other).abs().sum())
    divergence = max(0.0, float((law * (log_joint - log_other)).sum()))
    relaxation = None if gap is None else 1.0 / gap
    yield Mixing(None, gap, relaxation, True, steps, distance, divergence, below), 1.0


def _mixing_time(matrix: Tensor, law: Tensor) -> float:
    try:
        return float(spectra.mixing_time(matrix, law))
    except ValueError:  # more than 2^40 steps
        return math.inf


def _draw_exact(figure: Figure, words: str, found: Sequence[Mixing]) -> None:
    left, right = lab.panels(figure, words, 2)
    gibbs, parallel = found[:-1], found[-1]
    ks = [one.k or 0 for one in gibbs]
    lab.curve(left, gibbs, "relaxation", "o-", color="#1b4f8a", label="relaxation time C$_k$")
    if parallel.mixing_time is not None:
        lab.curve(left, gibbs, "mixing_time", "s--", color="#3a8f5c", ms=5, label="mixing time")
    if gibbs[0].tensorization is not None:
        lab.curve(left, gibbs, "tensorization", "^:", color="#c0392b", ms=5, label="C$_{AT}$ found")
    if parallel.relaxation is not None:
        left.axhline(parallel.relaxation, color="black", lw=1, ls="--", label="independent parallel, relaxation")
    left.set(xlabel="k", ylabel="steps", yscale="log", xticks=ks)
    left.legend(frameon=False, fontsize=9)
    right.bar(["k-Gibbs", "independent parallel"], [0.0, parallel.distance], color=["#1b4f8a", "#555555"], width=0.5)
    for place, value in enumerate((0.0, parallel.distance)):
        right.annotate(f"{value:.3g}", (place, value), xytext=(0, 4), textcoords="offset points", ha="center")
    right.set_ylabel("total variation from p in the long run")
    right.set_ylim(0, max(0.05, 1.25 * parallel.distance))


# ---- from chains


@dataclass(frozen=True, slots=True)
class Measured:
    """One sampler.

    Attributes:
        k: size of the block; None is independent parallel.
        magnetisation: tau of the mean spin, steps; infinite if it never moved.
        exponent: tau of the exponent.
        believed: whether the chains are long enough for the larger.
        mean: mean spin over chains and time.
        mean_error: its standard error, by tau.
    """

    k: int | None
    magnetisation: float
    exponent: float
    believed: bool
    mean: float
    mean_error: float

    def row(self) -> tuple[str, ...]:
        """For the table."""
        return (
            lab.sampler_name(self.k), lab.number(self.magnetisation), lab.number(self.exponent),
            "yes" if self.believed else "no", f"{self.mean:+.4f}", lab.number(self.mean_error, 2),
        )  # fmt: skip


def _sampled(ising: Ising, sizes: Sequence[int], chains: int, steps: int, sweeps: int, seed: int) -> lab.Result:
    for k in sizes:
        require_count("k of sampled mixing", k, maximum=MAX_BLOCK)
    generator = torch.Generator().manual_seed(seed)
    start = draw_rows(ising, chains, sweeps, generator=generator)
    series: dict[int | None, list[Tensor]] = {k: [] for k in (*sizes, None)}
    for k, piece in metered(_series(ising, list(series), start.codes, steps, generator), "mixing"):
        series[k].append(piece)
    found = [_measure(k, torch.cat(pieces)) for k, pieces in series.items()]
    listing = lab.Listing(
        f"{ising.words}: {chains} chains of {steps:,} steps",
        ("sampler", "τ of mean spin", "τ of exponent", "believed", "mean spin", "standard error"),
        [one.row() for one in found],
    )
    notes = [start.warning] if start.warning else []
    if not all(one.believed for one in found):
        notes.append(f"Not believed: chains shorter than {LONG:g} τ, whose τ comes out too small: more --steps.")
    document = {
        "command": "mixing",
        "sampled": True,
        "model": ising.to_dict(),
        "chains": chains,
        "steps": steps,
        "halves_apart": start.apart,
        "warnings": notes,
        "results": [asdict(one) | {"sampler": lab.sampler_name(one.k)} for one in found],
    }
    return lab.Result(document, [listing], notes, lambda figure: _draw_sampled(figure, ising.words, found))


def _series(
    ising: Ising, samplers: Sequence[int | None], x: Tensor, steps: int, generator: Generator
) -> Iterator[tuple[tuple[int | None, Tensor], float]]:
    """Pieces (time, chains, 2) of mean spin and exponent for each sampler, without the first quarter of all steps."""
    law, early = still(ising), steps // 4
    costs = [2.0 ** (0 if k is None else k) + 10.0 for k in samplers]
    for place, k in enumerate(samplers):
        kept: list[Tensor] = []
        for step, state in enumerate(run_chain(law, kernel_of(k), x, steps, generator=generator), 1 - early):
            if step < 1:
                continue
            spins = to_spins(state)
            exponent = spins @ law.fields + 0.5 * ((spins @ law.interaction) * spins).sum(1)
            kept.append(torch.stack([spins.mean(1), exponent], 1))
            if step == steps - early or step % max(1, (steps - early) // _PIECES) == 0:
                share = 0.25 + 0.75 * step / (steps - early)
                yield (k, torch.stack(kept)), (sum(costs[:place]) + costs[place] * share) / sum(costs)
                kept = []


def _measure(k: int | None, series: Tensor) -> Measured:
    """From mean spin and exponent (time, chains, 2)."""
    spin, exponent = series[:, :, 0].T, series[:, :, 1].T
    times = autocorrelation_time(spin), autocorrelation_time(exponent)
    error = (float(spin.var()) * times[0] / spin.numel()) ** 0.5 if times[0] < math.inf else math.inf
    believed = len(series) >= max(LONG, TOGETHER / len(spin)) * max(times)
    return Measured(k, *times, believed, float(spin.mean()), error)


def _draw_sampled(figure: Figure, words: str, found: Sequence[Measured]) -> None:
    (axes,) = lab.panels(figure, f"{words}: from chains")
    gibbs, parallel = found[:-1], found[-1]
    ks = [one.k or 0 for one in gibbs]
    lab.curve(axes, gibbs, "magnetisation", "o-", color="#1b4f8a", label="k-Gibbs, mean spin")
    lab.curve(axes, gibbs, "exponent", "s--", color="#3a8f5c", ms=5, label="k-Gibbs, exponent")
    axes.axhline(parallel.magnetisation, color="black", lw=1, ls="--", label="independent parallel, mean spin")
    axes.set(xlabel="k", ylabel="autocorrelation time, steps", yscale="log", xticks=ks)
    axes.legend(frameon=False)
