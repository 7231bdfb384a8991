"""Heterogeneous columns: variable j has its own likelihood columns[j].

The network gives every variable the same number of parameters, the widest column's; column j reads the first
columns[j].width of them. Work is done once per *family* of columns (``anyfill.likelihoods.families``), never per
column. Values and results are floats; discrete columns use their codes as floats.

``Mixed.at`` answers for positions whose variable differs from row to row (a sampler that asks every row for its own
next variable): each family reads all positions and ``variable`` picks the answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import Bernoulli, Categorical
from anyfill.likelihoods.families import families_of
from anyfill.likelihoods.marginals import Likelihood, Marginals, PerVariable, Poolable
from anyfill.likelihoods.numerics import Source, read_params, require_level, require_temperature
from anyfill.likelihoods.pooled import Pooled


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
        parts: the marginals of each family of columns.
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

    def sample(self, *, generator: Source, temperature: float = 1.0) -> Tensor:
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

    def pooled(self, log_weights: Tensor) -> "MixedMarginals":
        """Each variable's mixture over members (M, B, N) with log-weights (M, B, N)."""
        pieces = self.layout.split(log_weights)
        parts = tuple(_poolable(part).pooled(piece) for part, piece in zip(self.parts, pieces))

        def alone(j: int) -> Marginals:
            j = range(log_weights.shape[-1])[j]
            return _poolable(self.alone(j)).pooled(log_weights[..., j : j + 1])

        return MixedMarginals(parts, self.layout, alone, self.dtype)


def _poolable(part: Marginals) -> Poolable:
    if not isinstance(part, Poolable):
        raise refuse("Pooled columns", expected="marginals that can be pooled", got=type(part).__name__)
    return part


@dataclass(frozen=True, slots=True)
class Mixed(Likelihood):
    """Variable j uses ``columns[j]``."""

    columns: tuple[Likelihood, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not self.columns:
            raise refuse("Mixed columns", expected="at least one likelihood", got="none")
        for j, column in enumerate(self.columns):
            # A class satisfies the protocol as its instances do; a Mixed column would hide several columns in one.
            is_one = not isinstance(column, type) and isinstance(column, Likelihood)  # pyright: ignore[reportUnnecessaryIsInstance]
            if not is_one or isinstance(_member(column), PerVariable):
                raise refuse(f"Mixed column {j}", expected="a likelihood of one variable", got=repr(column))

    @property
    def width(self) -> int:
        return max(column.width for column in self.columns)

    def __call__(self, params: Tensor) -> MixedMarginals:
        """(B, N, P) -> distributions, where N is the number of columns."""
        params = read_params(params, self.width, "Mixed")
        if params.dim() < 2 or params.shape[-2] != len(self.columns):
            raise refuse("parameters of Mixed", expected=f"{len(self.columns)} variables", got=tuple(params.shape))
        families = families_of(self.columns, params.device)
        parts = tuple(family(params) for family in families.each)
        layout = _ByVariable(tuple(family.members for family in families.each), families.place)

        def alone(j: int) -> Marginals:
            j = range(len(self.columns))[j]  # IndexError beyond the last column, and -1 is the last
            return self.columns[j](params[..., j : j + 1, : self.columns[j].width])

        return MixedMarginals(parts, layout, alone, params.dtype)

    def at(self, params: Tensor, variable: Tensor) -> MixedMarginals:
        """Distributions of the variables ``variable`` (B, M, int), one parameter row (B, M, P) for each."""
        params = read_params(params, self.width, "Mixed")
        families = families_of(self.columns, params.device)
        chosen, row = families.number[variable], families.row[variable]
        # Where another family is asked, the first member answers, and nobody listens.
        parts = tuple(
            family.at(params, torch.where(chosen == number, row, 0)) for number, family in enumerate(families.each)
        )

        def alone(j: int) -> Marginals:
            j = range(params.shape[-2])[j]
            return self.at(params[..., j : j + 1, :], variable[..., j : j + 1])

        return MixedMarginals(parts, _ByPosition(chosen, len(parts)), alone, params.dtype)


def marginals_at(likelihood: Likelihood, params: Tensor, variable: Tensor) -> Marginals:
    """Read parameters (B, M, P) as distributions of the variables ``variable`` (B, M), whatever the likelihood.

    Only ``Mixed``, and a pool of it, needs to know which variables they are.
    """
    return likelihood.at(params, variable) if isinstance(likelihood, PerVariable) else likelihood(params)


def code_sizes(likelihood: Likelihood, variables: int) -> Tensor:
    """int64 (N,): how many codes each of N variables has; 0 = not discrete, or not known to be."""
    likelihood = _member(likelihood)
    if likelihood.sizes:
        return torch.tensor(likelihood.sizes)
    columns = likelihood.columns if isinstance(likelihood, Mixed) else [likelihood] * variables
    return torch.tensor([_size(_member(column)) for column in columns])


def _size(column: Likelihood) -> int:
    return 2 if isinstance(column, Bernoulli) else column.size if isinstance(column, Categorical) else 0


def _member(likelihood: Likelihood) -> Likelihood:
    """What each member of a pool is; the likelihood itself if it is none."""
    while isinstance(likelihood, Pooled):
        likelihood = likelihood.base
    return likelihood
