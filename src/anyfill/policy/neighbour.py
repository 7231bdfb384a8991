"""The nearest row: 1-nearest neighbour by a masked distance, as a network.

    d(x, r)² = sum over known j that row r has of (x_j - r_j)²   + missing j of r count as far as the mean of the others
    params(x, known) = the values of the nearest row

A code differs by 1 from every other. Nothing is learnt: the rows themselves are the weights. What the nearest row does
not have is answered with the mean, 0. In a pilot it beat behaviour cloning when sensors were lost.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anyfill.checks import refuse, require_counts
from anyfill.networks.embed import Kind, Mixed
from anyfill.networks.network import Capabilities
from anyfill.rows import Rows

_CELLS = 2**24
_SURE = 30.0  # logit of the neighbour's code beside 0 of the others


@dataclass(eq=False, repr=False)
class NearestRow(nn.Module, Capabilities):
    """(B, N, outputs): each variable as the nearest of the kept rows has it.

    A number's first parameter is its value (the mean of ``UnitGaussian``); a code has the logits of ``Categorical``.

    Attributes:
        kind: what a value is.
        variables: N.
        outputs: P.
        count: how many rows are kept; ``remember`` sets them.
    """

    kind: Kind
    variables: int
    outputs: int
    count: int = 0
    context_width = 0

    def __post_init__(self) -> None:
        require_counts(self, "variables", "outputs")
        super().__init__()
        self.register_buffer("rows", torch.zeros(self.count, self.variables))
        self.register_buffer("there", torch.zeros(self.count, self.variables, dtype=torch.bool))

    def remember(self, rows: Rows) -> "NearestRow":
        """The same with these rows."""
        if rows.variables != self.variables:
            raise refuse("rows", expected=f"{self.variables} variables", got=rows.variables)
        made = NearestRow(self.kind, self.variables, self.outputs, len(rows))
        made.get_buffer("rows").copy_(rows.x)
        made.get_buffer("there").copy_(rows.present)
        return made

    def nearest(self, x: Tensor, known: Tensor) -> Tensor:
        """int64 (B,): the number of the nearest row."""
        rows, there = self.get_buffer("rows"), self.get_buffer("there")
        if not len(rows):
            raise refuse("rows to compare with", expected="one at least", got="none")
        codes = self._sizes(x.device) > 0
        numbers, coded = known & ~codes, known & codes
        asked = torch.where(numbers, x, 0.0)
        best = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        least = torch.full((len(x),), torch.inf, device=x.device)
        at_once = max(1, _CELLS // max(1, len(x)))
        weight, has = numbers.float(), there.float()
        for begin in range(0, len(rows), at_once):
            part, own = rows[begin : begin + at_once], has[begin : begin + at_once]
            values = torch.where(codes, 0.0, part) * own
            apart = (asked * asked) @ own.T - 2 * asked @ values.T + weight @ (values * values).T
            counted = weight @ own.T
            for j in codes.nonzero().squeeze(1).tolist():
                differs = (x[:, j : j + 1] != part[:, j]) & (own[:, j] > 0)
                apart = apart + torch.where(coded[:, j : j + 1] & differs, 1.0, 0.0)
                counted = counted + torch.where(coded[:, j : j + 1], own[:, j], 0.0)
            mean = torch.where(counted > 0, apart / counted.clamp(min=1), torch.inf)
            nearest = mean.min(1)
            closer = nearest.values < least
            best = torch.where(closer, nearest.indices + begin, best)
            least = torch.where(closer, nearest.values, least)
        return best

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        number = self.nearest(x, known)
        has = self.get_buffer("there")[number]
        value = torch.where(has, self.get_buffer("rows")[number], 0.0)
        sizes = self._sizes(x.device)
        place = torch.arange(self.outputs, device=x.device)
        code = torch.where(has.unsqueeze(-1) & (place == value.unsqueeze(-1)), _SURE, 0.0)
        plain = torch.where(place == 0, value.unsqueeze(-1), 0.0)
        return torch.where((sizes > 0).unsqueeze(-1), code, plain)

    def _sizes(self, device: torch.device) -> Tensor:
        """int64 (N,): codes of each variable."""
        sizes = self.kind.sizes if isinstance(self.kind, Mixed) else (0,) * self.variables
        return torch.tensor(sizes, device=device)
