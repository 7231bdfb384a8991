"""Which columns of a table are answered together, and how.

Columns of one *family* differ only in numbers. These become tensors with one entry per column, so that thirty counts
with thirty different steps, or thirty categories with thirty different sizes, cost one sequence of tensor operations:

    SpikedMixture   equal K, all with a grid or all without; a column with fewer spikes gets spikes of weight zero
    Categorical     any sizes; a column with fewer codes gets codes with a logit of -inf
    anything else   columns that are equal

So that one column of a thousand codes does not make thirty wide, columns with up to 4, 16, 64 … spikes or codes are
families of their own.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from anyfill.likelihoods.discrete import Categorical, codes_of
from anyfill.likelihoods.marginals import Likelihood, Marginals
from anyfill.likelihoods.spiked import SpikedMixture, read_spiked, stack_spiked


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
    if isinstance(column, SpikedMixture):
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
