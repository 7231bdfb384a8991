"""``anyfill lab ising fit``: estimate a model from simulated rows by k-pseudolikelihood, beside what theory expects.

The squared error |theta^ - theta|² of n rows tends to tr(Gamma_k) / n in the mean. All k see the same rows in every
repetition, each its own masks. Gamma_k is exact for up to 12 spins and estimated from draws beyond (one mask per row).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import torch
from matplotlib.figure import Figure
from torch import Generator

from anyfill.checks import refuse, require_count
from anyfill.interface.progress import metered
from anyfill.ising.asymptotics import ising_variance
from anyfill.ising.blocks import k_blocks
from anyfill.ising.estimation import fit_ising
from anyfill.ising.heat_bath import draw_rows
from anyfill.ising.model import Ising
from anyfill.ising.model_options import LabModel
from anyfill.ising.show import Found, Listing, number, plain
from anyfill.ising.variance_sampled import MAX_PARAMETERS, MAX_TOGETHER, sampled_traces
from anyfill.networks.states import MAX_EXACT

MAX_FOR_TRACE = 12
"""Spins up to which Gamma_k is exact here."""
SWEEPS = 500


@dataclass(frozen=True, slots=True)
class Descend:
    """How every fit is done.

    Attributes:
        masks: blocks drawn for each row.
        method: how to descend.
        ridge: weight of |theta|² / 2.
    """

    masks: int = 1
    method: Literal["lbfgs", "newton", "gradient"] = "lbfgs"
    ridge: float = 0.0


@dataclass(frozen=True, slots=True)
class KFit:
    """One k.

    Attributes:
        k: the size of the blocks; N is maximum likelihood.
        errors: squared errors of the repetitions with a finite estimate.
        infinite: repetitions whose estimate is infinite (separable rows).
        expected: tr(Gamma_k) / n; None where it was not computed.
        expected_error: its standard error; 0 if it is exact.
    """

    k: int
    errors: tuple[float, ...]
    infinite: int
    expected: float | None
    expected_error: float

    @property
    def mean(self) -> float | None:
        """The mean squared error."""
        return sum(self.errors) / len(self.errors) if self.errors else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over repetitions."""
        if self.mean is None or len(self.errors) < 2:
            return None
        return math.sqrt(sum((error - self.mean) ** 2 for error in self.errors) / (len(self.errors) - 1))

    @property
    def standard_error(self) -> float | None:
        """Of the mean."""
        return None if self.deviation is None else self.deviation / math.sqrt(len(self.errors))


def usual_sizes(variables: int) -> list[int]:
    """All k of a few spins; else small ones, and maximum likelihood where states can be listed."""
    if variables <= 6:
        return list(range(1, variables + 1))
    return [1, 2, 4, *([variables] if variables <= MAX_FOR_TRACE else [])]


def require_sizes(sizes: Sequence[int]) -> None:
    """Refuse a block whose states cannot be listed."""
    for k in sizes:
        if k > MAX_EXACT:
            got = f"{k}: use a smaller --k (a fit lists the 2^k states of a block)"
            raise refuse("--k of a fit", expected=f"at most {MAX_EXACT}", got=got)


def fit_simulated(
    model: LabModel, sizes: Sequence[int], how: Descend, *, rows: int, repetitions: int, seed: int
) -> Found:
    """Simulate, fit, compare."""
    require_count("--repetitions", repetitions)
    require_sizes(sizes)
    truth = model.ising
    generator = torch.Generator().manual_seed(seed)
    warnings: list[str] = []
    errors: dict[int, list[float | None]] = {k: [] for k in sizes}
    for k, error in metered(_fits(truth, sizes, how, rows, repetitions, generator, warnings), "fit"):
        errors[k].append(error)
    expected = expectations(truth, sizes, how, rows, seed)
    found = [
        KFit(k, tuple(e for e in errors[k] if e is not None), sum(e is None for e in errors[k]), *expected[k])
        for k in sizes
    ]
    masks = "one mask" if how.masks == 1 else f"{how.masks} masks"
    by = "" if how.method == "lbfgs" else f", {how.method}"
    several = f"{repetitions} repetitions" if repetitions > 1 else "one repetition"
    listing = Listing(
        f"{model.words}: {len(truth.theta)} parameters from {rows:,} rows, {masks} for each, {several}{by}",
        ("k", "squared error", "standard error", "expected tr(Γ_k)/n", "ratio", "infinite"),
        [
            (
                f"{one.k} (MLE)" if one.k == truth.variables else str(one.k),
                number(one.mean), number(one.standard_error, 2), _expected(one),
                "-" if one.mean is None or not one.expected else f"{one.mean / one.expected:.2f}", str(one.infinite),
            )
            for one in found
        ],
    )  # fmt: skip
    notes = list(dict.fromkeys(warnings))
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
        "model": model.to_dict(),
        "rows": rows,
        "repetitions": repetitions,
        **asdict(how),
        "warnings": list(dict.fromkeys(warnings)),
        "results": [
            asdict(one) | {"mean": one.mean, "deviation": one.deviation, "standard_error": one.standard_error}
            for one in found
        ],
    }
    return Found(document, [listing], notes, lambda figure: _draw(figure, model.words, rows, found))


def expectations(
    truth: Ising, sizes: Sequence[int], how: Descend, rows: int, seed: int
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
        small = [k for k in sizes if k <= MAX_TOGETHER]
        for one, _ in sampled_traces(truth, draws.codes, small, generator=generator, likelihood=False):
            answer[one.k or 0] = (one.trace / rows, one.error / rows)
    return answer


def _fits(
    truth: Ising,
    sizes: Sequence[int],
    how: Descend,
    rows: int,
    repetitions: int,
    generator: Generator,
    warnings: list[str],
) -> Iterator[tuple[tuple[int, float | None], float]]:
    """k and squared error of every fit, None for an infinite estimate, with the share of the work done."""
    for repetition in range(repetitions):
        draws = draw_rows(truth, rows, SWEEPS, generator=generator)
        if draws.warning:
            warnings.append(draws.warning.replace("give them more --sweeps, or ", ""))
        for place, k in enumerate(sizes, 1):
            done = fit_ising(
                truth, draws.codes, k=k, masks=how.masks, method=how.method, ridge=how.ridge,
                tolerance=1e-8, steps=3000 if how.method == "gradient" else None, generator=generator,
            )  # fmt: skip
            error = float((done.ising.theta - truth.theta).detach().square().sum()) if done.converged else None
            yield (k, error), (repetition + place / len(sizes)) / repetitions


def _expected(one: KFit) -> str:
    if one.expected is None:
        return "-"
    return number(one.expected) + (f" ± {number(one.expected_error, 2)}" if one.expected_error else "")


def _draw(figure: Figure, words: str, rows: int, found: Sequence[KFit]) -> None:
    axes = plain(figure.subplots())
    shown = [one for one in found if one.mean is not None]
    axes.errorbar(
        [one.k for one in shown], [one.mean or 0.0 for one in shown],
        [0.5 * (one.deviation or 0.0) for one in shown],
        fmt="o", color="#1b4f8a", capsize=4, label="squared error, mean ±0.5 standard deviations", zorder=3,
    )  # fmt: skip
    told = [one for one in found if one.expected is not None]
    axes.plot(
        [one.k for one in told], [one.expected or 0.0 for one in told],
        "s--", color="#c0392b", ms=5, label="expected: tr(Γ$_k$) / n",
    )  # fmt: skip
    axes.set(xlabel="k", ylabel="squared error of the parameters", xticks=[one.k for one in found])
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    figure.suptitle(f"{words}, {rows:,} rows")
