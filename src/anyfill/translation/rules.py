"""Which codes may stand at which place of a translation, so that what is kept in it is kept as whole words.

Three rules, as bits: right behind a phrase no word goes on, and where words are counted a place must begin one or must
not. Beside them, everywhere: no code that is no text, no placeholder that the source has not, and none that is fixed.

Decoders that write all places at once ask for all of it (``everywhere``); those that write one after another for the
place they are at, as a ``Veto`` of the cached chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.samplers.cached import Veto
from anyfill.translation.constraints import Fixed
from anyfill.translation.vocabulary import Joint, is_placeholder

_BEHIND, _BEGINS, _GOES_ON = 1, 2, 4


@dataclass(frozen=True, slots=True, eq=False)
class Rules(Veto):
    """The rules of some candidates.

    Attributes:
        bits: int64 (R, L + 1), which of the three hold at places 0 … L; place 0 is the length.
        never: bool (R, V), codes that may stand nowhere.
        by_bits: bool (8, V), what each set of rules forbids.
        first: the variable that is place 1.
    """

    bits: Tensor
    never: Tensor
    by_bits: Tensor
    first: int = 1

    def everywhere(self) -> Tensor:
        """bool (R, L + 1, V), or (R, 1, V) where it is the same at every place: what is forbidden."""
        if not bool(self.bits.any()):
            return self.never.unsqueeze(1)
        return self.by_bits[self.bits] | self.never.unsqueeze(1)

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        """bool (R, V): what may not be drawn for variable (R,)."""
        place = (variable - self.first + 1).clamp(0, self.bits.shape[1] - 1).unsqueeze(1)
        return self.by_bits[self.bits.gather(1, place)[:, 0]] | self.never


def rules_of(fixed: Sequence[Fixed], never: Tensor, vocabulary: Joint, width: int, *, first: int = 1) -> Rules:
    """The rules of candidates under what is fixed in them.

    Args:
        fixed: R of them.
        never: bool (R, V), codes that may stand nowhere.
        vocabulary: of the codes.
        width: L + 1.
        first: the variable that is place 1.
    """
    bits, never = torch.zeros(len(fixed), width, dtype=torch.long), never.clone()
    for row, one in enumerate(fixed):
        for places, bit in ((one.behind, _BEHIND), (one.begins, _BEGINS), (one.goes_on, _GOES_ON)):
            if places:
                bits[row, [place for place in places if place < width]] |= bit
        if symbols := [code for code in one.codes.values() if is_placeholder(code)]:
            never[row, symbols] = True  # each is written once
    device = never.device
    return Rules(bits.to(device), never, _by_bits(vocabulary).to(device), first)


def _by_bits(vocabulary: Joint) -> Tensor:
    """bool (8, V): what each set of rules forbids."""
    begins, mark = torch.tensor(vocabulary.begins_word), torch.tensor(vocabulary.is_mark)
    # A space alone begins a word only if one goes on behind it: where words are counted there is none.
    alone = torch.tensor([vocabulary.piece(code) == "▁" for code in range(vocabulary.size)])
    byte = torch.tensor(vocabulary.is_byte)  # bytes may make a space
    of_bit = {_BEHIND: ~(begins | mark), _BEGINS: ~begins | alone, _GOES_ON: begins | byte}
    table = torch.zeros(8, vocabulary.size, dtype=torch.bool)
    for bits in range(8):
        for bit, never in of_bit.items():
            if bits & bit:
                table[bits] |= never
    return table
