"""Heterogeneous columns: variable j has its own likelihood columns[j].

The network gives every variable the same number of parameters, the widest column's; column j reads the first
columns[j].width of them. Values and results are floats; discrete columns use their codes as floats.

**Families.** Work is done once per family of columns, never per column. Columns of one family differ only in numbers.
These become tensors with one entry per column, so that thirty counts with thirty different steps, or thirty categories
with thirty different sizes, cost one sequence of tensor operations:

    SpikedMixture   equal K, all with a grid or all without, none on a circle; a column with fewer spikes gets spikes of
                    weight zero
    Categorical     any sizes; a column with fewer codes gets codes with a logit of -inf
    anything else   columns that are equal

So that one column of a thousand codes does not make thirty wide, columns with up to 4, 16, 64 … spikes or codes are
families of their own.

``Mixed.at`` answers for positions whose variable differs from row to row (a sampler that asks every row for its own
next variable): each family reads all positions and ``variable`` picks the answer.

``Pooled``: a mixture of answers, of an ensemble of networks or of weighted draws of a latent variable.

    p(x) = sum_m w_m p_m(x),      w_m = 1/M, or softmax of M log-weights

The parameters of a variable are those of member 0, then member 1, …, and last the log-weights where there are any. What
a pool answers with is again a mixture of the same family, so every answer is as exact as its family's:

    Gaussian                  M components
    mixtures, on a grid too   M times the components; a spike that all members have stays one, its weights added
    Bernoulli, Categorical    the averaged probabilities
    Mixed                     each family of columns as above

Temperature acts on the pool, not inside its members: p^(1/T) of the averaged probabilities for codes; for numbers a
component from (w_m w_mk)^(1/T), with scale s sqrt(T). T = 0 is the mode of the pool.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import cast

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.likelihoods.discrete import Bernoulli, Categorical, codes_of
from anyfill.likelihoods.logistic import LogisticMixture
from anyfill.likelihoods.marginals import (
    ByPosition,
    ByVariable,
    Likelihood,
    Marginals,
    PerVariable,
    Poolable,
    SideBySide,
    read_params,
)
from anyfill.likelihoods.spiked import SpikedMixture, read_spiked, stack_spiked


@dataclass(frozen=True, slots=True, eq=False)
class MixedMarginals(SideBySide):
    """Distributions of different kinds side by side, one part for each family of columns.

    Attributes:
        alone: the marginals (B, 1) of one position.
    """

    alone: Callable[[int], Marginals]

    def column(self, j: int) -> Marginals:
        """The marginals (B, 1) of variable j alone, of their own kind (discrete codes are integers again)."""
        return self.alone(j)

    def pooled(self, log_weights: Tensor) -> "MixedMarginals":
        """Each variable's mixture over members (M, B, N) with log-weights (M, B, N)."""
        pieces = self.layout.split(log_weights)
        parts = tuple(_poolable(part).pooled(piece) for part, piece in zip(self.parts, pieces))

        def alone(j: int) -> Marginals:
            j = range(log_weights.shape[-1])[j]
            return _poolable(self.alone(j)).pooled(log_weights[..., j : j + 1])

        return MixedMarginals(parts, self.layout, self.dtype, alone)


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
        layout = ByVariable(tuple(family.members for family in families.each), families.place)

        def alone(j: int) -> Marginals:
            j = range(len(self.columns))[j]  # IndexError beyond the last column, and -1 is the last
            return self.columns[j](params[..., j : j + 1, : self.columns[j].width])

        return MixedMarginals(parts, layout, params.dtype, alone)

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

        return MixedMarginals(parts, ByPosition(chosen, len(parts)), params.dtype, alone)

    def log_prob_at(self, params: Tensor, variable: Tensor, x: Tensor) -> Tensor:
        """(H,): of values x (H,) of the variables ``variable`` (H,), from their parameters (H, P).

        The same as ``at(...).log_prob(x)``, and each family reads its own alone.
        """
        params = read_params(params, self.width, "Mixed")
        families = families_of(self.columns, params.device)
        chosen, row = families.number[variable], families.row[variable]
        places: list[Tensor] = []
        found: list[Tensor] = []
        for number, family in enumerate(families.each):
            own = (chosen == number).nonzero()[:, 0]
            if len(own):
                places.append(own)
                said = family.at(params.index_select(0, own).unsqueeze(0), row[own].unsqueeze(0))
                found.append(said.log_prob(x[own].unsqueeze(0))[0])
        return torch.cat(found)[torch.cat(places).argsort()] if found else x.new_zeros(0)


def marginals_at(likelihood: Likelihood, params: Tensor, variable: Tensor) -> Marginals:
    """Read parameters (B, M, P) as distributions of the variables ``variable`` (B, M), whatever the likelihood.

    Only ``Mixed``, and a pool of it, needs to know which variables they are.
    """
    if _is_per_variable(type(likelihood)):
        return cast(PerVariable, likelihood).at(params, variable)
    return likelihood(params)


@cache
def _is_per_variable(kind: type[Likelihood]) -> bool:
    """Looked up once for each kind: comparing an object with a protocol takes as long as a small layer."""
    return callable(getattr(kind, "at", None))


def code_sizes(likelihood: Likelihood, variables: int) -> Tensor:
    """int64 (N,): how many codes each of N variables has; 0 = not discrete, or not known to be."""
    likelihood = _member(likelihood)
    if likelihood.sizes:
        return torch.tensor(likelihood.sizes)
    columns = likelihood.columns if isinstance(likelihood, Mixed) else [likelihood] * variables
    return torch.tensor([_size(_member(column)) for column in columns])


def _size(column: Likelihood) -> int:
    return (
        2 if isinstance(column, Bernoulli) else column.size if isinstance(column, Categorical | LogisticMixture) else 0
    )


def _member(likelihood: Likelihood) -> Likelihood:
    """What each member of a pool is; the likelihood itself if it is none."""
    while isinstance(likelihood, Pooled):
        likelihood = likelihood.base
    return likelihood


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """n columns that are read as one.

    Attributes:
        members: int64 (n,), the variables.
        width: W, how many parameters are read of each.
        index: int64 (n, W), which those are, in the order of the family; None: the first W of every variable.
        read: parameters (..., n, W) and the settings -> distributions.
        settings: what differs between the columns, tensors (n, ...).
    """

    members: Tensor
    width: int
    index: Tensor | None
    read: Callable[..., Marginals]
    settings: tuple[Tensor, ...]

    def __call__(self, params: Tensor) -> Marginals:
        """Distributions (..., n) of the members, from the parameters (..., N, P) of all variables."""
        if self.index is None:
            return self.read(params[..., : self.width].index_select(-2, self.members), *self.settings)
        place = self.members.unsqueeze(-1) * params.shape[-1] + self.index
        picked = params.flatten(-2).index_select(-1, place.flatten()).unflatten(-1, place.shape)
        return self.read(picked, *self.settings)

    def at(self, params: Tensor, row: Tensor) -> Marginals:
        """Distributions of the members numbered ``row`` (B, M), from their parameters (..., B, M, P)."""
        if self.index is None:
            picked = params[..., : self.width]
        else:
            picked = params.gather(-1, self.index[row].expand(*params.shape[:-1], self.width))
        return self.read(picked, *(part[row] for part in self.settings))


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """All columns.

    Attributes:
        each: the families, in order of first appearance.
        place: int64 (N,), where each variable stands when the members of all families stand in a row.
        number: int64 (N,), the family of each variable.
        row: int64 (N,), which of its members each variable is.
    """

    each: tuple[Family, ...]
    place: Tensor
    number: Tensor
    row: Tensor


def _key(column: Likelihood) -> Hashable:
    """Equal for columns of one family."""
    if isinstance(column, SpikedMixture) and not column.period:  # few columns go round: each by itself
        return SpikedMixture, column.components, column.step > 0, _crowd(len(column.spikes))
    return (Categorical, _crowd(column.size)) if isinstance(column, Categorical) else column


def _crowd(count: int) -> int:
    """0 up to 4, 1 up to 16, 2 up to 64 …"""
    return max(0, (max(count, 1) - 1).bit_length() - 1) // 2


@lru_cache(maxsize=64)
def families_of(columns: tuple[Likelihood, ...], device: torch.device) -> Families:
    """The families of the columns, on a device: kept, because sending them there makes an accelerator wait."""
    groups: dict[Hashable, list[int]] = {}
    for variable, column in enumerate(columns):
        groups.setdefault(_key(column), []).append(variable)
    number, row = [0] * len(columns), [0] * len(columns)
    for i, members in enumerate(groups.values()):
        for k, variable in enumerate(members):
            number[variable], row[variable] = i, k
    with torch.inference_mode(False):  # made while a model is only asked, it must still serve when one is trained
        each = tuple(_family([columns[j] for j in members], members, device) for members in groups.values())
        place = torch.cat([family.members for family in each]).argsort()
        return Families(each, place, torch.tensor(number, device=device), torch.tensor(row, device=device))


def _family(columns: Sequence[Likelihood], members: Sequence[int], device: torch.device) -> Family:
    """The family of columns with one key."""
    first, where = columns[0], torch.tensor(members, device=device)
    if all(column == first for column in columns):
        return Family(where, first.width, None, first, ())
    spiked = [column for column in columns if isinstance(column, SpikedMixture)]
    if spiked:
        index, settings = stack_spiked(spiked, device)
        alike = len({column.width for column in columns}) == 1
        return Family(where, index.shape[-1], None if alike else index, read_spiked, settings)
    size = torch.tensor([column.width for column in columns], device=device).unsqueeze(-1)
    most = max(column.width for column in columns)
    return Family(where, most, None, codes_of, (torch.arange(most, device=device) < size,))


@dataclass(frozen=True, slots=True)
class Pooled(Likelihood):
    """M answers of one likelihood as one; M P parameters, and M more if ``weighted``.

    Args:
        base: the likelihood of each member; ``Mixed`` and another ``Pooled`` are as good as any.
        members: M, at least 1.
        weighted: the last M parameters of each variable are the members' log-weights, of any sum.
    """

    base: Likelihood
    members: int
    weighted: bool = False

    def __post_init__(self) -> None:
        require_count("Pooled members", self.members)
        # A class satisfies the protocol as its instances do.
        if isinstance(self.base, type) or not isinstance(self.base, Likelihood):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise refuse("Pooled base", expected="a likelihood", got=repr(self.base))

    @property
    def width(self) -> int:
        return self.members * (self.base.width + self.weighted)

    def __call__(self, params: Tensor) -> Marginals:
        """(B, N, M P [+ M]) -> distributions."""
        members, log_weights = self._split(params)
        return self._pool(self.base(members), log_weights)

    def at(self, params: Tensor, variable: Tensor) -> Marginals:
        """Distributions of the variables ``variable`` (B, K, int), one parameter row (B, K, M P [+ M]) for each."""
        members, log_weights = self._split(params)
        of_base = self.base.at(members, variable) if isinstance(self.base, PerVariable) else self.base(members)
        return self._pool(of_base, log_weights)

    def _split(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """The parameters of the members, (M, B, N, P), and their log-weights (M, B, N)."""
        params = read_params(params, self.width, f"Pooled of {self.members}")
        ends = [self.members * self.base.width, self.members * self.weighted]
        members, logits = params.split(ends, -1)
        if self.weighted:
            log_weights = logits.log_softmax(-1).movedim(-1, 0)
        else:
            log_weights = params.new_full((), -math.log(self.members)).expand(self.members, *params.shape[:-1])
        return members.unflatten(-1, (self.members, self.base.width)).movedim(-2, 0), log_weights

    def _pool(self, marginals: Marginals, log_weights: Tensor) -> Marginals:
        if not isinstance(marginals, Poolable):
            raise refuse("Pooled base", expected="a likelihood whose marginals can be pooled", got=repr(self.base))
        return marginals.pooled(log_weights)
