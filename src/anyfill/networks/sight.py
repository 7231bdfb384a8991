"""What tokens see of one another: those before them, and all that carry what is given; and attention under that.

Of B rows of L tokens, row b has told(b) tokens in front that carry what is given. Token q sees token k if

    k <= q   or   k < told(b)

As a bool mask (``prefix_mask``) this is plain, and every entry of B L L costs, seen or not. As blocks of 128 x 128
(``prefix_blocks``) a compiled kernel skips what nobody sees and looks at the rule only where a block is seen in part:

    block (i, j) of queries and keys is seen at all    if  j <= i  or  128 j < told
    and wholly                                         if  128 (j + 1) - 1 <= 128 i  or  128 (j + 1) <= told

where a block that sticks out of the L x L is never seen wholly. Uncompiled, blocks are a slower way to the same answer.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

# Imported where blocks are used: it takes most of a second, and only training on an accelerator uses them.
if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

SIDE = 128
"""Of a block."""


def prefix_mask(told: Tensor, length: int) -> Tensor:
    """bool (B, L, L): which tokens each of them sees, from told (B, 1)."""
    step = torch.arange(length, device=told.device)
    return (step.unsqueeze(1) >= step) | (step < told.unsqueeze(2))


def prefix_blocks(told: Tensor, length: int) -> "BlockMask":
    """The same as blocks, for ``attend``; nothing is looked up on the host."""
    from torch.nn.attention.flex_attention import BlockMask

    count = -(-length // SIDE)
    block = torch.arange(count, device=told.device)
    row, column = block.unsqueeze(1), block
    front = told.unsqueeze(2)  # (B, 1, 1)
    seen = (column <= row) | (SIDE * column < front)
    inside = (SIDE * (row + 1) <= length) & (SIDE * (column + 1) <= length)
    wholly = inside & ((column < row) | (SIDE * (column + 1) <= front))
    own = told[:, 0]

    def rule(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query) | (key < own[b])

    return BlockMask.from_kv_blocks(
        *_listed(seen & ~wholly), *_listed(wholly), BLOCK_SIZE=SIDE, mask_mod=rule, seq_lengths=(length, length)
    )


def prefix_sight(told: Tensor, length: int, *, blocks: bool) -> Any:
    """What the tokens see of one another, from told (B, 1), as ``attend`` takes it: as blocks, or a mask."""
    return prefix_blocks(told, length) if blocks else prefix_mask(told, length).unsqueeze(1)


def _listed(wanted: Tensor) -> tuple[Tensor, Tensor]:
    """int32 (B, 1, Q) and (B, 1, Q, K): how many blocks of each line (B, Q, K) are wanted, and which, those first."""
    order = wanted.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)
    return wanted.sum(-1, dtype=torch.int32).unsqueeze(1), order.to(torch.int32).unsqueeze(1).contiguous()


def attend(query: Tensor, key: Tensor, value: Tensor, visible: Any = None, causal: bool = False) -> Tensor:
    """(B, H, L, D) from queries, keys and values, each (B, H, L, D).

    ``visible`` is a bool mask or a float bias broadcasting to (B, H, L, L), or blocks; None = all, or with ``causal``
    what is not behind.
    """
    if visible is None or isinstance(visible, Tensor):
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=visible, is_causal=causal)
    from torch.nn.attention.flex_attention import flex_attention

    attended: Any = flex_attention(query, key, value, block_mask=visible)
    return attended
