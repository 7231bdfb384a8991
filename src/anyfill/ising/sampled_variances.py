"""The asymptotic variance of k-pseudolikelihood estimated from draws, for models whose states cannot be listed.

The rows are split into parts; in each, H_k is the mean of exact conditional covariances of one random block for each
row (``sampled_information``). tr(H^-1) is taken of the mean over parts, its bias of first order and its standard error
by the jackknife over parts. For maximum likelihood H is the covariance of the statistics themselves.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import torch
from matplotlib.figure import Figure
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.interface.progress import metered
from anyfill.ising import asymptotics, lab
from anyfill.ising.heat_bath import draw_rows
from anyfill.ising.model import Ising
from anyfill.questions.subsets import KSubset

PARTS = 16
MAX_PARAMETERS = 600
"""More would take matrices of 600 x 600 for every part."""
MAX_BLOCK = 14
"""The largest block whose states are listed for every row."""


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


def require_parameters(ising: Ising) -> None:
    """Refuse a model of which nothing is to be estimated."""
    if not len(ising.theta):
        raise refuse("model", expected="parameters to estimate", got="no couplings, and fixed fields")


def _require_sampled(ising: Ising, rows: int, sizes: Sequence[int]) -> None:
    """Refuse what cannot be estimated from so many rows."""
    require_parameters(ising)
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
            parts.append(asymptotics.sampled_information(ising, blocks, x, generator=generator, batches=2).information)
        yield _jackknife(k, torch.stack(parts)), sum(work[:place]) / sum(work)


def _jackknife(k: int | None, parts: Tensor) -> SampledTrace:
    """From an estimate of H in each part (G, P, P) to one of tr(H^-1), with its standard error."""
    count, whole = len(parts), _trace(parts.mean(0))
    left = torch.tensor([_trace((parts.sum(0) - part) / (count - 1)) for part in parts], dtype=torch.float64)
    error = math.sqrt((count - 1) * float((left - left.mean()).square().mean()))
    return SampledTrace(k, count * whole - (count - 1) * float(left.mean()), error)


def _trace(information: Tensor) -> float:
    return float(asymptotics.inverse_information(information).trace())


def sampled_variance(ising: Ising, sizes: Sequence[int], rows: int, sweeps: int, seed: int) -> lab.Result:
    """An estimate for each size from rows drawn after so many sweeps, beside that of maximum likelihood."""
    _require_sampled(ising, rows, sizes)
    generator = torch.Generator().manual_seed(seed)
    draws = draw_rows(ising, rows, sweeps, generator=generator)
    found = list(metered(sampled_traces(ising, draws.codes, sizes, generator=generator), "variance"))
    whole = found[-1]
    listing = lab.Listing(
        f"{ising.words}: {len(ising.theta)} parameters, estimated from {rows:,} draws",
        ("k", "tr Γ_k", "standard error", "ratio to MLE"),
        [
            ("MLE" if one.k is None else str(one.k), lab.number(one.trace), lab.number(one.error, 2),
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
    return lab.Result(document, [listing], notes, lambda figure: _draw(figure, ising.words, found))


def _draw(figure: Figure, words: str, found: Sequence[SampledTrace]) -> None:
    (axes,) = lab.panels(figure, f"{words}: estimated from draws")
    label = "tr Γ$_k$, ±2 standard errors"
    lab.curve(axes, found, "trace", "o-", error="error", color="#1b4f8a", capsize=3, label=label)
    axes.axhline(found[-1].trace, color="grey", lw=1, ls=":", label="maximum likelihood")
    ks = [one.k for one in found if one.k is not None]
    axes.set(xlabel="k", ylabel="asymptotic variance (trace)", xticks=ks)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
