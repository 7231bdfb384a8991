"""Heterogeneous columns: variable j has its own likelihood columns[j].

The network gives every variable the same number of parameters, the widest column's; column j reads the first
columns[j].width of them. Equal columns form one group, and work is done once per group, never per column. Values and
results are floats; discrete columns use their codes as floats.

``Mixed.at`` answers for positions whose variable differs from row to row (a sampler that asks every row for its own
next variable): each distinct column reads all positions and ``variable`` picks the answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import Bernoulli, Categorical
from anyfill.likelihoods.marginals import Likelihood, Marginals
from anyfill.likelihoods.numerics import read_params, require_level, require_temperature


class _Layout(Protocol):
    """Which part answers where."""

    def split(self, x: Tensor) -> Sequence[Tensor]: ...

    def join(self, parts: Sequence[Tensor]) -> Tensor: ...


@dataclass(frozen=True, slots=True, eq=False)
class _ByVariable:
    """Part g answers for the variables ``members[g]``; ``place`` (N,) is where each variable stands after ``cat``."""

    members: tuple[Tensor, ...]
    place: Tensor

    def split(self, x: Tensor) -> Sequence[Tensor]:
        return [x.index_select(-1, index) for index in self.members]

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(parts), -1).index_select(-1, self.place)


@dataclass(frozen=True, slots=True, eq=False)
class _ByPosition:
    """Each of ``count`` parts answers everywhere; ``chosen`` (B, M) says whose answer counts."""

    chosen: Tensor
    count: int

    def split(self, x: Tensor) -> Sequence[Tensor]:
        return [x] * self.count

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(parts), -1).gather(-1, self.chosen.unsqueeze(-1)).squeeze(-1)


@dataclass(frozen=True, slots=True, eq=False)
class MixedMarginals:
    """Distributions of different kinds side by side.

    Attributes:
        parts: the marginals of each group of equal columns.
        layout: which part answers where.
        alone: the marginals (B, 1) of one position.
        dtype: of all results.
    """

    parts: tuple[Marginals, ...]
    layout: _Layout
    alone: Callable[[int], Marginals]
    dtype: torch.dtype

    def map(self, answer: Callable[[Marginals], Tensor]) -> Tensor:
        """``answer`` of each part, put back in place: (B, N) float. ``answer`` keeps the shape of its part."""
        return self.layout.join([answer(part).to(self.dtype) for part in self.parts])

    def column(self, j: int) -> Marginals:
        """The marginals (B, 1) of variable j alone, of their own kind (discrete codes are integers again)."""
        return self.alone(j)

    def log_prob(self, x: Tensor) -> Tensor:
        """log-probability or log-density, (B, N)."""
        pieces = self.layout.split(x)
        return self.layout.join([part.log_prob(piece).to(self.dtype) for part, piece in zip(self.parts, pieces)])

    def sample(self, *, generator: Generator, temperature: float = 1.0) -> Tensor:
        """One draw per variable, (B, N) float; each column reads the temperature in its own way."""
        require_temperature(temperature)
        return self.map(lambda part: part.sample(generator=generator, temperature=temperature))

    def mode(self) -> Tensor:
        """(B, N) float."""
        return self.map(lambda part: part.mode())

    def mean(self) -> Tensor:
        """(B, N)."""
        return self.map(lambda part: part.mean())

    def quantile(self, q: float) -> Tensor:
        """(B, N) float."""
        require_level(q)
        return self.map(lambda part: part.quantile(q))

    def entropy(self) -> Tensor:
        """Nats, (B, N): of the codes in discrete columns, differential in continuous ones; not to be compared."""
        return self.map(lambda part: part.entropy())


@lru_cache(maxsize=64)
def _grouped(columns: tuple[Likelihood, ...]) -> tuple[tuple[Likelihood, tuple[int, ...]], ...]:
    """The distinct columns, each with the variables it serves, in order of first appearance."""
    groups: dict[Likelihood, list[int]] = {}
    for variable, column in enumerate(columns):
        groups.setdefault(column, []).append(variable)
    return tuple((column, tuple(members)) for column, members in groups.items())


@lru_cache(maxsize=64)
def _by_variable(columns: tuple[Likelihood, ...], device: torch.device) -> _ByVariable:
    """The layout of the columns on a device: kept, because sending it there makes an accelerator wait."""
    with torch.inference_mode(False):  # made while a model is only asked, it must still serve when one is trained
        members = tuple(torch.tensor(index, device=device) for _, index in _grouped(columns))
        return _ByVariable(members, torch.cat(members).argsort())


@dataclass(frozen=True, slots=True)
class Mixed:
    """Variable j uses ``columns[j]``."""

    columns: tuple[Likelihood, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not self.columns:
            raise refuse("Mixed columns", expected="at least one likelihood", got="none")
        for j, column in enumerate(self.columns):
            # A class satisfies the protocol as its instances do; a Mixed column would hide several columns in one.
            if isinstance(column, (type, Mixed)) or not isinstance(column, Likelihood):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise refuse(f"Mixed column {j}", expected="a likelihood of one variable", got=repr(column))

    @property
    def width(self) -> int:
        return max(column.width for column in self.columns)

    def __call__(self, params: Tensor) -> MixedMarginals:
        """(B, N, P) -> distributions, where N is the number of columns."""
        params = read_params(params, self.width, "Mixed")
        if params.dim() < 2 or params.shape[-2] != len(self.columns):
            raise refuse("parameters of Mixed", expected=f"{len(self.columns)} variables", got=tuple(params.shape))
        layout = _by_variable(self.columns, params.device)
        parts = tuple(
            column(params.index_select(-2, index)[..., : column.width])
            for (column, _), index in zip(_grouped(self.columns), layout.members)
        )

        def alone(j: int) -> Marginals:
            j = range(len(self.columns))[j]  # IndexError beyond the last column, and -1 is the last
            return self.columns[j](params[..., j : j + 1, : self.columns[j].width])

        return MixedMarginals(parts, layout, alone, params.dtype)

    def at(self, params: Tensor, variable: Tensor) -> MixedMarginals:
        """Distributions of the variables ``variable`` (B, M, int), one parameter row (B, M, P) for each."""
        params = read_params(params, self.width, "Mixed")
        groups = _grouped(self.columns)
        group_of = torch.empty(len(self.columns), dtype=torch.long)
        for number, (_, index) in enumerate(groups):
            group_of[list(index)] = number
        parts = tuple(column(params[..., : column.width]) for column, _ in groups)
        chosen = group_of.to(params.device)[variable]

        def alone(j: int) -> Marginals:
            j = range(params.shape[-2])[j]
            return self.at(params[..., j : j + 1, :], variable[..., j : j + 1])

        return MixedMarginals(parts, _ByPosition(chosen, len(groups)), alone, params.dtype)


def marginals_at(likelihood: Likelihood, params: Tensor, variable: Tensor) -> Marginals:
    """Read parameters (B, M, P) as distributions of the variables ``variable`` (B, M), whatever the likelihood.

    Only ``Mixed`` needs to know which variables they are.
    """
    return likelihood.at(params, variable) if isinstance(likelihood, Mixed) else likelihood(params)


def code_sizes(likelihood: Likelihood, variables: int) -> Tensor:
    """int64 (N,): how many codes each of N variables has; 0 = not discrete, or not known to be."""
    columns = likelihood.columns if isinstance(likelihood, Mixed) else [likelihood] * variables
    sizes = [2 if isinstance(one, Bernoulli) else one.size if isinstance(one, Categorical) else 0 for one in columns]
    return torch.tensor(sizes)
