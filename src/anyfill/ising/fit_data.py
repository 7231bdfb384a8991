"""``anyfill lab ising fit --data``: the same estimates from a file of spins, where no truth is known.

Standard errors are sqrt(diag Gamma_k(theta^) / n), at the estimate itself; exact for up to 12 spins. With a ridge
Gamma_k is (H + ridge)^-1 J (H + ridge)^-1: how the estimate varies, not how far the ridge has moved it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure

from anyfill.interface.progress import metered
from anyfill.ising.asymptotics import ising_variance
from anyfill.ising.blocks import k_blocks
from anyfill.ising.estimation import IsingFit, fit_ising
from anyfill.ising.fit_command import MAX_FOR_TRACE, Descend, require_sizes
from anyfill.ising.model import Ising
from anyfill.ising.model_options import LabModel
from anyfill.ising.show import Found, Listing, number, plain
from anyfill.ising.spin_files import SpinData

MAX_SHOWN = 40
"""Parameters that are listed in the terminal; JSON has all."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One k.

    Attributes:
        k: the size of the blocks; N is maximum likelihood.
        loss: nats per row.
        converged: whether it is the minimum; else ``note`` says why.
        note: empty if converged.
        theta: the estimate.
        errors: its standard errors; None where they were not computed.
    """

    k: int
    loss: float
    converged: bool
    note: str
    theta: tuple[float, ...]
    errors: tuple[float, ...] | None


def fit_data(model: LabModel, data: SpinData, path: Path, sizes: Sequence[int], how: Descend, *, seed: int) -> Found:
    """Fit the edges of the model to the rows."""
    ising, rows = model.ising, len(data.codes)
    require_sizes(sizes)
    names = [f"J({data.names[i]}, {data.names[j]})" for i, j in ising.edges]
    names += [f"h({name})" for name in data.names] if ising.free_fields else []
    found = list(metered(_estimates(ising, data, sizes, how, names, seed), "fit"))
    told = [
        "MLE" if one.k == ising.variables else f"k = {one.k}" for one in found
    ]  # fmt: skip
    listings = [
        Listing(
            f"{path.name}: {rows:,} rows of {ising.variables} spins, {len(names)} parameters",
            ("", "nats per row", "tr(Γ_k)/n at the estimate", "converged"),
            [
                (name, f"{one.loss:.6f}",
                 "-" if one.errors is None else number(sum(error**2 for error in one.errors)),
                 "yes" if one.converged else "no")
                for name, one in zip(told, found)
            ],
        )
    ]  # fmt: skip
    if len(names) <= MAX_SHOWN:
        listings.append(
            Listing(
                "Estimates and standard errors",
                ("parameter", *told),
                [(name, *(_with_error(one, place) for one in found)) for place, name in enumerate(names)],
            )
        )
    notes = [f"{name}: {one.note}" for name, one in zip(told, found) if one.note]
    if how.ridge > 0 and any(one.errors is not None for one in found):
        notes.append("Standard errors are of the estimates with the ridge: they leave out the bias that it adds.")
    document = {
        "command": "fit",
        "data": path.name,
        "rows": rows,
        "columns": list(data.names),
        "parameters": names,
        **asdict(how),
        "results": [asdict(one) for one in found],
    }
    return Found(document, listings, notes, lambda figure: _draw(figure, f"{path.name}, {rows:,} rows", names, found))


def _estimates(
    ising: Ising, data: SpinData, sizes: Sequence[int], how: Descend, names: Sequence[str], seed: int
) -> Iterator[tuple[Estimate, float]]:
    generator = torch.Generator().manual_seed(seed)
    for place, k in enumerate(sizes, 1):
        done = fit_ising(
            ising, data.codes, k=k, masks=how.masks, method=how.method, ridge=how.ridge,
            tolerance=1e-8, names=names, generator=generator,
        )  # fmt: skip
        theta = tuple(done.ising.theta.tolist())
        errors = _errors(done, k, how, len(data.codes))
        yield Estimate(k, done.loss, done.converged, done.note, theta, errors), place / len(sizes)


def _errors(done: IsingFit, k: int, how: Descend, rows: int) -> tuple[float, ...] | None:
    """Standard errors of a finite estimate."""
    if not done.converged or done.ising.variables > MAX_FOR_TRACE:
        return None
    gamma = ising_variance(done.ising, k_blocks(done.ising.variables, k), masks=how.masks, ridge=how.ridge)
    return tuple((gamma.diagonal() / rows).sqrt().tolist())


def _with_error(one: Estimate, place: int) -> str:
    value = f"{one.theta[place]:+.3f}"
    return value if one.errors is None else f"{value} ± {one.errors[place]:.3f}"


def _draw(figure: Figure, title: str, names: Sequence[str], found: Sequence[Estimate]) -> None:
    axes = plain(figure.subplots())
    colours = ("#c0392b", "#d1843a", "#3a8f5c", "#1b4f8a", "#6c3a8f", "#555555")
    for number_, one in enumerate(found):
        places = [place + 0.6 * (number_ + 0.5) / len(found) - 0.3 for place in range(len(names))]
        bars = None if one.errors is None else [2.0 * error for error in one.errors]
        label = f"k = {one.k}" + (", ±2 standard errors" if bars and number_ == 0 else "")
        axes.errorbar(
            places, one.theta, bars, fmt="o", ms=3.5, color=colours[number_ % len(colours)], lw=1, label=label
        )
    axes.axhline(0.0, color="grey", lw=0.8)
    axes.set_ylabel("estimate")
    axes.set_xlim(-0.6, len(names) - 0.4)
    if len(names) <= MAX_SHOWN:
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    else:
        axes.set_xlabel("parameter: couplings, then fields")
    limits = [value for one in found if one.converged for value in one.theta]
    if limits and not all(math.isclose(value, limits[0]) for value in limits):
        room = 0.3 * (max(limits) - min(limits))
        axes.set_ylim(min(limits) - room, max(limits) + room)
    axes.legend(frameon=False, fontsize=9)
    figure.suptitle(title)
