"""Rows: the values of B rows of N variables, and which of them exist. NaN stops here.

A missing value never reaches a network: ``Rows.from_values`` replaces it by zero and marks it absent in ``present``.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from anyfill.checks import refuse, refuse_cells, require_bool, require_shape


@dataclass(frozen=True, slots=True)
class Rows:
    """B rows of N variables.

    Attributes:
        x: values (B, N), integer codes for discrete variables, floats otherwise; finite everywhere.
        present: bool (B, N), True = the value exists in the data.
        context: optional side information (B, ...) that every question may use.
    """

    x: Tensor
    present: Tensor
    context: Tensor | None = None

    def __post_init__(self) -> None:
        require_shape("x", self.x, (None, None))
        require_shape("present", self.present, tuple(self.x.shape))
        require_bool("present", self.present)
        if self.context is not None and (self.context.dim() == 0 or len(self.context) != len(self.x)):
            raise refuse("context", expected=f"one entry for each of {len(self.x)} rows", got=tuple(self.context.shape))

    @classmethod
    def from_values(cls, x: Tensor, context: Tensor | None = None) -> "Rows":
        """Rows from raw values (B, N): NaN means missing, infinite values are refused."""
        require_shape("x", x, (None, None))
        if not x.dtype.is_floating_point:
            return cls(x, torch.ones_like(x, dtype=torch.bool), context)
        refuse_cells(x.isinf(), x, "a finite number or NaN (missing)")
        present = ~torch.isnan(x)
        return cls(torch.where(present, x, 0.0), present, context)

    def __len__(self) -> int:
        return self.x.shape[0]

    @property
    def variables(self) -> int:
        """N, the number of variables in a row."""
        return self.x.shape[1]

    def take(self, index: Tensor) -> "Rows":
        """The rows at ``index`` (int, any length), in that order."""
        return Rows(self.x[index], self.present[index], None if self.context is None else self.context[index])

    def to(self, device: torch.device | str) -> "Rows":
        """The same rows on another device."""
        context = None if self.context is None else self.context.to(device)
        return Rows(self.x.to(device), self.present.to(device), context)


@runtime_checkable
class RowSource(Protocol):
    """Where training rows come from: anything with a length that yields rows by index.

    ``Rows`` itself is one; a memory-mapped corpus is another.
    """

    def __len__(self) -> int: ...

    @property
    def variables(self) -> int: ...

    def take(self, index: Tensor) -> Rows: ...


@runtime_checkable
class Arranged(Protocol):
    """A source that would rather be read in another order: rows of a kind together, say."""

    def arranged(self, permutation: Tensor, batch: int) -> Tensor:
        """The same row numbers (L,) in the order to be read in, ``batch`` at a time; must depend on nothing else."""
        ...
