"""``anyfill lab ising mixing --sampled``: autocorrelation times from chains that were run, for models of any size.

tau = 1 + 2 sum_t rho_t of the magnetisation (mean spin) and of the exponent (minus the energy), in steps of the
sampler; a step of k-Gibbs redraws k spins. Chains start from draws (exact, or after sweeps) and the first quarter of
their steps is not counted, for independent parallel has a law of its own to find. tau is believed if every chain is 10
tau long and all together 1000.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import torch
from matplotlib.figure import Figure
from torch import Generator, Tensor

from anyfill.checks import require_count
from anyfill.evaluation.mixing import autocorrelation_time
from anyfill.interface.progress import metered
from anyfill.ising.chains import IndependentParallel, KGibbs, run_chain, still
from anyfill.ising.heat_bath import draw_rows
from anyfill.ising.model import Ising
from anyfill.ising.model_options import LabModel
from anyfill.ising.show import Found, Listing, number, plain
from anyfill.networks.states import to_spins

MAX_TOGETHER = 14
LONG, TOGETHER = 10.0, 1000.0
"""Autocorrelation times that each chain, and all of them together, must be long."""
_PIECES = 20


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


def usual_sizes(variables: int) -> list[int]:
    """Sizes whose states are few."""
    return [k for k in (1, 2, 4, 8) if k <= variables]


def mixing_sampled(model: LabModel, sizes: Sequence[int], *, chains: int, steps: int, sweeps: int, seed: int) -> Found:
    """Run the chains."""
    for k in sizes:
        require_count("k of sampled mixing", k, maximum=MAX_TOGETHER)
    generator = torch.Generator().manual_seed(seed)
    start = draw_rows(model.ising, chains, sweeps, generator=generator)
    kernels: list[int | None] = [*sizes, None]
    series: dict[int | None, list[Tensor]] = {k: [] for k in kernels}
    work = _series(model.ising, kernels, start.codes, steps, generator)
    for k, piece in metered(work, "mixing"):
        series[k].append(piece)
    found = [_measure(k, torch.cat(series[k])) for k in kernels]
    listing = Listing(
        f"{model.words}: {chains} chains of {steps:,} steps",
        ("sampler", "τ of mean spin", "τ of exponent", "believed", "mean spin", "standard error"),
        [
            (
                _name(one), number(one.magnetisation), number(one.exponent), "yes" if one.believed else "no",
                f"{one.mean:+.4f}", number(one.mean_error, 2),
            )
            for one in found
        ],
    )  # fmt: skip
    notes = [start.warning] if start.warning else []
    if not all(one.believed for one in found):
        notes.append(f"Not believed: chains shorter than {LONG:g} τ, whose τ comes out too small: more --steps.")
    document = {
        "command": "mixing",
        "sampled": True,
        "model": model.to_dict(),
        "chains": chains,
        "steps": steps,
        "halves_apart": start.apart,
        "warnings": notes,
        "results": [asdict(one) | {"sampler": _name(one)} for one in found],
    }
    return Found(document, [listing], notes, lambda figure: _draw(figure, model.words, found))


def _series(
    ising: Ising, kernels: Sequence[int | None], x: Tensor, steps: int, generator: Generator
) -> Iterator[tuple[tuple[int | None, Tensor], float]]:
    """Pieces (time, chains, 2) of mean spin and exponent for each sampler, without the first quarter of all steps."""
    law = still(ising)
    costs = [2.0 ** (0 if k is None else k) + 10.0 for k in kernels]
    done = 0.0
    for k, cost in zip(kernels, costs):
        kernel = IndependentParallel() if k is None else KGibbs(k)
        now = x
        for state in run_chain(law, kernel, x, steps // 4, generator=generator):
            now = state
        kept: list[Tensor] = []
        whole = steps - steps // 4
        for step, state in enumerate(run_chain(law, kernel, now, whole, generator=generator), 1):
            spins = to_spins(state)
            exponent = spins @ law.fields + 0.5 * ((spins @ law.interaction) * spins).sum(1)
            kept.append(torch.stack([spins.mean(1), exponent], 1))
            if step == whole or step % max(1, whole // _PIECES) == 0:
                piece, kept = torch.stack(kept), []
                yield (k, piece), (done + cost * (0.25 + 0.75 * step / whole)) / sum(costs)
        done += cost


def _measure(k: int | None, series: Tensor) -> Measured:
    """From mean spin and exponent (time, chains, 2)."""
    length = len(series)
    spin, exponent = series[:, :, 0].T, series[:, :, 1].T
    times = autocorrelation_time(spin), autocorrelation_time(exponent)
    error = (float(spin.var()) * times[0] / spin.numel()) ** 0.5 if times[0] < float("inf") else float("inf")
    return Measured(k, *times, length >= max(LONG, TOGETHER / spin.shape[0]) * max(times), float(spin.mean()), error)


def _name(one: Measured) -> str:
    return "independent parallel" if one.k is None else f"{one.k}-Gibbs"


def _draw(figure: Figure, words: str, found: Sequence[Measured]) -> None:
    axes = plain(figure.subplots())
    gibbs, parallel = found[:-1], found[-1]
    ks = [one.k or 0 for one in gibbs]
    axes.plot(ks, [one.magnetisation for one in gibbs], "o-", color="#1b4f8a", label="k-Gibbs, mean spin")
    axes.plot(ks, [one.exponent for one in gibbs], "s--", color="#3a8f5c", ms=5, label="k-Gibbs, exponent")
    axes.axhline(parallel.magnetisation, color="black", lw=1, ls="--", label="independent parallel, mean spin")
    axes.set(xlabel="k", ylabel="autocorrelation time, steps", yscale="log", xticks=ks)
    axes.legend(frameon=False)
    figure.suptitle(f"{words}: from chains")
