"""``fit``: an Ising model by k-pseudolikelihood and maximum likelihood, from simulated rows or from a file of spins.

Simulated rows have a truth: the squared error |theta^ - theta|² of n rows tends to tr(Gamma_k) / n in the mean. All k
see the same rows in every repetition, each its own masks. Gamma_k is exact for up to 12 spins and estimated from draws
beyond (one mask per row).

Rows of a file have none: standard errors are sqrt(diag Gamma_k(theta^) / n), at the estimate itself; exact for up to 12
spins. With a ridge Gamma_k is (H + ridge)^-1 J (H + ridge)^-1: how the estimate varies, not how far the ridge has moved
it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from anyfill.checks import refuse, refuse_given, require_count
from anyfill.interface.progress import metered
from anyfill.interface.threads import threads
from anyfill.ising import lab
from anyfill.ising.asymptotics import ising_variance
from anyfill.ising.blocks import k_blocks
from anyfill.ising.estimation import IsingFit, Method, fit_ising
from anyfill.ising.heat_bath import draw_rows
from anyfill.ising.model import Ising
from anyfill.ising.sampled_variances import MAX_BLOCK, MAX_PARAMETERS, sampled_traces
from anyfill.networks.exact import MAX_EXACT

MAX_FOR_TRACE = 12
"""Spins up to which Gamma_k is exact here."""
MAX_SHOWN = 40
"""Parameters that are listed in a table; JSON has all."""
SWEEPS = 500


@dataclass(frozen=True, slots=True)
class Descent:
    """How every fit is done.

    Attributes:
        masks: blocks drawn for each row.
        method: how to descend.
        ridge: weight of |theta|² / 2.
    """

    masks: int = 1
    method: Method = "lbfgs"
    ridge: float = 0.0


@threads(1)
def fit(
    model: Ising | None = None,
    *,
    data: str | Path | lab.SpinData | Tensor | None = None,
    k: lab.BlockSizes = None,
    rows: int | None = None,
    repetitions: int | None = None,
    masks: int = 1,
    method: Method = "lbfgs",
    ridge: float = 0.0,
    fixed_fields: bool = False,
    seed: int = 0,
) -> lab.Result:
    """Estimate an Ising model by k-pseudolikelihood and maximum likelihood; squared errors beside tr(Gamma_k)/n.

    Args:
        model: the truth to simulate, or with ``data`` the edges to fit; by default a complete graph, J = 0.3.
        data: instead of simulated rows: a CSV file or an array (n, N) of -1 and 1, or 0 and 1.
        k: sizes of the blocks, such as ``[1, 2]`` or ``"1-4"``; k = N is maximum likelihood.
        rows: rows to simulate; 4000 by default.
        repetitions: fits to average over; 10 by default.
        masks: blocks drawn for each row.
        method: "lbfgs", "newton" or "gradient".
        ridge: weight of half the squared length of the parameters.
        fixed_fields: the fields are known, and couplings alone are fitted.
        seed: of everything random.
    """
    read = None if data is None else lab.spins(data)
    if read is not None:
        refuse_given("beside --data", {"--rows": rows, "--repetitions": repetitions})
    model = Ising.complete(4 if read is None else len(read.names), 0.3) if model is None else model
    model = model.with_fixed_fields() if fixed_fields else model
    count, how = model.variables, Descent(masks, method, ridge)
    if read is not None and count != len(read.names):
        expected = f"one for each of {count} spins"
        raise refuse("columns of the data", expected=expected, got=len(read.names))
    sizes = lab.block_sizes(k, count, usual_sizes(count))
    for size in sizes:
        if size > MAX_EXACT:
            got = f"{size}: use a smaller --k (a fit lists the 2^k states of a block)"
            raise refuse("--k of a fit", expected=f"at most {MAX_EXACT}", got=got)
    if read is not None:
        return _fit_data(model, read, sizes, how, seed)
    rows, repetitions = 4000 if rows is None else rows, 10 if repetitions is None else repetitions
    require_count("--rows", rows)
    require_count("--repetitions", repetitions)
    return _fit_rows(model, sizes, how, rows, repetitions, seed)


def usual_sizes(variables: int) -> list[int]:
    """All k of a few spins; else small ones, and maximum likelihood where states can be listed."""
    if variables <= 6:
        return list(range(1, variables + 1))
    return [1, 2, 4, *([variables] if variables <= MAX_FOR_TRACE else [])]


# ---- simulated rows


@dataclass(frozen=True, slots=True)
class KFit:
    """One k.

    Attributes:
        k: the size of the blocks; N is maximum likelihood.
        errors: squared errors of the repetitions with a finite estimate.
        infinite: repetitions whose estimate is infinite (separable rows).
        expected: tr(Gamma_k) / n; None where it was not computed.
        expected_error: its standard error; 0 if it is exact.
        mean, deviation, standard_error: of the squared errors; None where too few are finite.
    """

    k: int
    errors: tuple[float, ...]
    infinite: int
    expected: float | None
    expected_error: float
    mean: float | None
    deviation: float | None
    standard_error: float | None

    @classmethod
    def of(cls, k: int, fits: Sequence[float | None], expected: float | None, expected_error: float) -> "KFit":
        """From the squared error of every repetition, None for an infinite estimate."""
        errors = tuple(error for error in fits if error is not None)
        count, mean, deviation, own = len(errors), None, None, None
        if errors:
            mean = sum(errors) / count
        if mean is not None and count > 1:
            deviation = math.sqrt(sum((error - mean) ** 2 for error in errors) / (count - 1))
            own = deviation / math.sqrt(count)
        return cls(k, errors, len(fits) - count, expected, expected_error, mean, deviation, own)

    def row(self, variables: int) -> tuple[str, ...]:
        """For the table."""
        error = f" ± {lab.number(self.expected_error, 2)}" if self.expected_error else ""
        return (
            f"{self.k} (MLE)" if self.k == variables else str(self.k),
            lab.number(self.mean), lab.number(self.standard_error, 2), lab.number(self.expected) + error,
            "-" if self.mean is None or not self.expected else f"{self.mean / self.expected:.2f}", str(self.infinite),
        )  # fmt: skip


def _fit_rows(truth: Ising, sizes: Sequence[int], how: Descent, rows: int, repetitions: int, seed: int) -> lab.Result:
    """Simulate, fit, compare."""
    generator, steps = torch.Generator().manual_seed(seed), 3000 if how.method == "gradient" else None
    warnings, options = dict[str, None](), asdict(how)
    errors: dict[int, list[float | None]] = {k: [] for k in sizes}

    def fits() -> Iterator[tuple[IsingFit, float]]:
        """Every fit, with the share of the work done."""
        for repetition in range(repetitions):
            draws = draw_rows(truth, rows, SWEEPS, generator=generator)
            if draws.warning:
                warnings[draws.warning.replace("give them more --sweeps, or ", "")] = None
            for place, k in enumerate(sizes, 1):
                share = (repetition + place / len(sizes)) / repetitions
                done = fit_ising(truth, draws.codes, k=k, tolerance=1e-8, steps=steps, generator=generator, **options)
                yield done, share

    for k, done in zip(cycle(sizes), metered(fits(), "fit")):
        error = float((done.ising.theta - truth.theta).detach().square().sum())
        errors[k].append(error if done.converged else None)
    expected = expectations(truth, sizes, how, rows, seed)
    found = [KFit.of(k, errors[k], *expected[k]) for k in sizes]
    masks = "one mask" if how.masks == 1 else f"{how.masks} masks"
    by = "" if how.method == "lbfgs" else f", {how.method}"
    several = f"{repetitions} repetitions" if repetitions > 1 else "one repetition"
    listing = lab.Listing(
        f"{truth.words}: {len(truth.theta)} parameters from {rows:,} rows, {masks} for each, {several}{by}",
        ("k", "squared error", "standard error", "expected tr(Γ_k)/n", "ratio", "infinite"),
        [one.row(truth.variables) for one in found],
    )
    notes = list(warnings)
    if how.ridge > 0:
        notes.append("tr(Γ_k)/n is without the ridge, which adds bias and takes variance away.")
    if any(one.infinite for one in found):
        notes.append("Infinite estimates (separable rows) are left out of the mean: more --rows, or a --ridge.")
    if truth.variables > MAX_EXACT:
        notes.append(
            f"No maximum likelihood: it would sum over 2^{truth.variables} states. Rows are the ends of chains."
        )
    document = {
        "command": "fit",
        "model": truth.to_dict(),
        "rows": rows,
        "repetitions": repetitions,
        **asdict(how),
        "warnings": list(warnings),
        "results": [asdict(one) for one in found],
    }
    return lab.Result(document, [listing], notes, lambda figure: _draw_errors(figure, truth.words, rows, found))


def expectations(
    truth: Ising, sizes: Sequence[int], how: Descent, rows: int, seed: int
) -> dict[int, tuple[float | None, float]]:
    """tr(Gamma_k) / rows and its standard error for each size; None where it is too much work."""
    if truth.variables <= MAX_FOR_TRACE:
        return {
            k: (float(ising_variance(truth, k_blocks(truth.variables, k), masks=how.masks).trace()) / rows, 0.0)
            for k in sizes
        }
    answer: dict[int, tuple[float | None, float]] = dict.fromkeys(sizes, (None, 0.0))
    if how.masks == 1 and len(truth.theta) <= MAX_PARAMETERS:
        generator = torch.Generator().manual_seed(seed)
        draws = draw_rows(truth, max(4096, 8 * len(truth.theta)), SWEEPS, generator=generator)
        small = [k for k in sizes if k <= MAX_BLOCK]
        for one, _ in sampled_traces(truth, draws.codes, small, generator=generator, likelihood=False):
            answer[one.k or 0] = (one.trace / rows, one.error / rows)
    return answer


def _draw_errors(figure: Figure, words: str, rows: int, found: Sequence[KFit]) -> None:
    (axes,) = lab.panels(figure, f"{words}, {rows:,} rows")
    label = "squared error, mean ±0.5 standard deviations"
    lab.curve(axes, found, "mean", "o", error="deviation", width=0.5, color="#1b4f8a", capsize=4, label=label, zorder=3)
    lab.curve(axes, found, "expected", "s--", color="#c0392b", ms=5, label="expected: tr(Γ$_k$) / n")
    axes.set(xlabel="k", ylabel="squared error of the parameters", xticks=[one.k for one in found])
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


# ---- rows of a file


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

    def shown(self, place: int) -> str:
        """One parameter with its standard error."""
        value = f"{self.theta[place]:+.3f}"
        return value if self.errors is None else f"{value} ± {self.errors[place]:.3f}"


def _fit_data(ising: Ising, data: lab.SpinData, sizes: Sequence[int], how: Descent, seed: int) -> lab.Result:
    """Fit the edges of the model to the rows."""
    rows = len(data.codes)
    names = [f"J({data.names[i]}, {data.names[j]})" for i, j in ising.edges]
    names += [f"h({name})" for name in data.names] if ising.free_fields else []
    found = list(metered(_estimates(ising, data, sizes, how, names, seed), "fit"))
    titles = ["MLE" if one.k == ising.variables else f"k = {one.k}" for one in found]
    listings = [
        lab.Listing(
            f"{data.source}: {rows:,} rows of {ising.variables} spins, {len(names)} parameters",
            ("", "nats per row", "tr(Γ_k)/n at the estimate", "converged"),
            [
                (title, f"{one.loss:.6f}",
                 "-" if one.errors is None else lab.number(sum(error**2 for error in one.errors)),
                 "yes" if one.converged else "no")
                for title, one in zip(titles, found)
            ],
        )
    ]  # fmt: skip
    if len(names) <= MAX_SHOWN:
        shown = [(name, *(one.shown(place) for one in found)) for place, name in enumerate(names)]
        listings.append(lab.Listing("Estimates and standard errors", ("parameter", *titles), shown))
    notes = [f"{title}: {one.note}" for title, one in zip(titles, found) if one.note]
    if how.ridge > 0 and any(one.errors is not None for one in found):
        notes.append("Standard errors are of the estimates with the ridge: they leave out the bias that it adds.")
    document = {
        "command": "fit",
        "data": data.source,
        "rows": rows,
        "columns": list(data.names),
        "parameters": names,
        **asdict(how),
        "results": [asdict(one) for one in found],
    }
    title = f"{data.source}, {rows:,} rows"
    return lab.Result(document, listings, notes, lambda figure: _draw_estimates(figure, title, names, found))


def _estimates(
    ising: Ising, data: lab.SpinData, sizes: Sequence[int], how: Descent, names: Sequence[str], seed: int
) -> Iterator[tuple[Estimate, float]]:
    generator = torch.Generator().manual_seed(seed)
    for place, k in enumerate(sizes, 1):
        done = fit_ising(ising, data.codes, k=k, tolerance=1e-8, names=names, generator=generator, **asdict(how))
        errors = None
        if done.converged and ising.variables <= MAX_FOR_TRACE:
            gamma = ising_variance(done.ising, k_blocks(ising.variables, k), masks=how.masks, ridge=how.ridge)
            errors = tuple((gamma.diagonal() / len(data.codes)).sqrt().tolist())
        theta = tuple(done.ising.theta.tolist())
        yield Estimate(k, done.loss, done.converged, done.note, theta, errors), place / len(sizes)


def _draw_estimates(figure: Figure, title: str, names: Sequence[str], found: Sequence[Estimate]) -> None:
    (axes,) = lab.panels(figure, title)
    colours = ("#c0392b", "#d1843a", "#3a8f5c", "#1b4f8a", "#6c3a8f", "#555555")
    for i, one in enumerate(found):
        places = [place + 0.6 * (i + 0.5) / len(found) - 0.3 for place in range(len(names))]
        bars = None if one.errors is None else [2.0 * error for error in one.errors]
        label = f"k = {one.k}" + (", ±2 standard errors" if bars and i == 0 else "")
        axes.errorbar(places, one.theta, bars, fmt="o", ms=3.5, color=colours[i % len(colours)], lw=1, label=label)
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
