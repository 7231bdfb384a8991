"""A rank (B, N) says when each variable is answered; every part of anyfill reads it the same way.

    rank < 0          given (``-1``; where the order inside the given block matters, ``-g .. -1``)
    rank = 0, 1, 2 …  the step at which an asked variable is answered, ties = in parallel
    rank = NEVER      neither given nor asked: ignored

so that at step t the known variables are exactly ``rank < t``.
"""

from typing import Final

from torch import Tensor

NEVER: Final = 2**31 - 1
"""The rank of an ignored variable: it is answered never, hence after everything."""


def known_before(rank: Tensor, step: Tensor | int) -> Tensor:
    """bool (B, N): what is known when step ``step`` (a number, or one per row (B, 1)) is answered."""
    return rank < step


def asked_in(rank: Tensor) -> Tensor:
    """bool (B, N): the asked variables of a rank."""
    return (rank >= 0) & (rank < NEVER)
