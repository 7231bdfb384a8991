"""What a one-pass transformer has read, as keys and values, and how several answers are read or foreseen at once.

Row b has read the tokens 0 … place[b]; the last of them predicts variable order[b, place[b]]. Slots beyond ``place``
hold nothing that counts, so taking answers back is moving ``place`` back, and a window of W new tokens is written into
the slots behind it, for each row its own:

    advance   the next W answers, known or guessed. Slot place + 1 + i is read by the tokens from i on (causal).
    peek      one answer, and W - 1 copies of its token aimed at the variables further on. Copy i sees what its original
              saw and itself, in slot place + 1 + i, so it predicts from what was read alone (as ties do in ``chain``).

The last slot is nobody's: the token in it has no variable left to predict. What runs past the end of a row goes there.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(slots=True)
class Cache:
    """What has been read so far.

    Attributes:
        order: int64 (B, N), the variables in the order they are read.
        place: int64 (B,), index of the token each row read last; it predicts ``order[place]``.
        keys, values: per block (B, H, L, D); entries beyond ``place`` are not yet valid.
        context: the context vector each token gets, if any.
        blanks: int64 (B, N), how many blanks follow the n-th variable of the order; None = none anywhere.
    """

    order: Tensor
    place: Tensor
    keys: list[Tensor]
    values: list[Tensor]
    context: Tensor | None
    blanks: Tensor | None = None

    def at(self, place: Tensor) -> "Cache":
        """The same cache (keys and values shared) with another ``place`` (B,), which may lie past the end."""
        return replace(self, place=place)

    def rows(self, index: Tensor) -> "Cache":
        """The cache of the rows ``index`` (R,) alone, copied."""
        return Cache(
            self.order[index],
            self.place[index],
            [key[index] for key in self.keys],
            [value[index] for value in self.values],
            None if self.context is None else self.context[index],
            None if self.blanks is None else self.blanks[index],
        )


@dataclass(frozen=True, slots=True)
class Window:
    """Where W new tokens go.

    Attributes:
        slots: int64 (B, 1, W, 1), where their keys and values are written.
        own, target: int64 (B, W), the variables they read and predict.
        visible: bool (B, 1, W, reach), which of the first ``reach`` slots each of them sees.
    """

    slots: Tensor
    own: Tensor
    target: Tensor
    visible: Tensor

    @classmethod
    def behind(cls, cache: Cache, count: int, *, copies: bool) -> "Window":
        """``count`` tokens right behind what was read: a chain of answers, or one answer and its copies."""
        variables, room = cache.order.shape[1], cache.keys[0].shape[2]
        step = torch.arange(count, device=cache.place.device)
        start = cache.place.unsqueeze(1)
        slots = (start + 1 + step).clamp(max=room - 1)
        reads = start.expand(-1, count) if copies else start + step
        slot = torch.arange(int(slots.max()) + 1 if len(slots) else 1, device=cache.place.device)
        seen = start if copies else slots
        visible = (slot <= seen.unsqueeze(2)) | (slot == slots.unsqueeze(2))
        own = cache.order.gather(1, reads.clamp(max=variables - 1))
        target = cache.order.gather(1, slots.clamp(max=variables - 1))
        return cls(slots[:, None, :, None], own, target, visible.unsqueeze(1))

    def write(self, into: Tensor, new: Tensor) -> Tensor:
        """Put keys or values (B, H, W, D) into their slots of (B, H, L, D); returns the first ``reach`` of them."""
        into.scatter_(2, self.slots.expand_as(new), new.to(into.dtype))
        return into[:, :, : self.visible.shape[-1]]
