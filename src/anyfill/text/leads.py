"""Spaces before blanks in a vocabulary whose codes bring the space along: given by the user, asked with the first code.

Whoever writes "station. [4] In" has said that the blank begins behind a space. That space is a part of the blank's
first code b_1, so what is wanted is

    p(b | s, t, b_1 begins with a space),

and not p(b | s, t), by which a new line may be likelier there than a space: draws from it would be thrown away.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.samplers import Veto
from anyfill.text.blanks import BlankRow, Sheet
from anyfill.text.encoding import texts_of

_ANY, _LED, _LED_ALONE = range(3)


@dataclass(frozen=True, slots=True, eq=False)
class Leads(Veto):
    """Which codes may stand where, in B rows with the same blanks in several sizes.

    Attributes:
        kind: int64 (B, N), which of the kinds of places each is: any, the first of a blank with a space before it, and
            such a blank's only one.
        may: bool (3, codes), which codes may stand at a place of each kind: a space alone is no answer.
    """

    kind: Tensor
    may: Tensor

    @classmethod
    def of(cls, sheet: Sheet, group: range, rows: Sequence[BlankRow]) -> "Leads | None":
        """Of a group of blanks in rows; None if none of them has a space before it that is asked with it."""
        leads = [sheet.leads[blank] for blank in group]
        if not any(leads):
            return None
        kind = torch.full((len(rows), len(rows[0].x)), _ANY)
        for number, row in enumerate(rows):
            for lead, place in zip(leads, row.places):
                if lead:
                    kind[number, place.start] = _LED_ALONE if place.stop - place.start == 1 else _LED
        lead, texts = next(filter(None, leads)), texts_of(sheet.vocabulary)
        led = torch.tensor([text.startswith(lead) for text in texts])
        alone = torch.tensor([text != lead for text in texts])
        return cls(kind, torch.stack([torch.ones_like(led), led, led & alone]))

    def rows(self, index: Tensor) -> "Leads":
        """Of some rows (R,)."""
        return Leads(self.kind[index], self.may)

    @property
    def allowed(self) -> Tensor:
        """bool (B, N, codes): which codes may stand at each place."""
        return self.may[self.kind]

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        return ~self.may[self.kind.gather(1, variable.unsqueeze(1)).squeeze(1)]
