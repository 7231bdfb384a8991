"""Spins as the library's codes: 0 stands for -1, 1 for +1, and states are numbered with the last variable fastest.

spin s_i = 2 x_i - 1,     state number = sum_i x_i 2^(N-1-i)
"""

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count

MAX_EXACT = 20
"""The most spins whose 2^N states are enumerated: 2^20 float64 are 8 MiB."""


def require_exact(variables: int, what: str) -> None:
    """Refuse exact work on more states than are enumerated; say what it would take and what to do instead."""
    if variables > MAX_EXACT:
        size = f"{2.0 ** (variables - 27):,.3g} GiB" if variables < 1000 else "no machine"
        raise refuse(
            f"variables for {what}",
            expected=f"at most {MAX_EXACT} (all 2^N states are enumerated)",
            got=f"{variables}, which would need {size} for one number per state; "
            "sample with anyfill.ising.chains and fit with k-pseudolikelihood, which need no enumeration",
        )


def all_codes(variables: int) -> Tensor:
    """int64 (2^N, N): every state, the last variable running fastest."""
    require_count("variables", variables, minimum=0)
    require_exact(variables, "listing all states")
    shift = torch.arange(variables - 1, -1, -1)
    return (torch.arange(2**variables).unsqueeze(1) >> shift) & 1


def state_numbers(codes: Tensor) -> Tensor:
    """int64 (...): the number of each state, from codes (..., N)."""
    count = codes.shape[-1]
    return (codes.long() << torch.arange(count - 1, -1, -1, device=codes.device)).sum(-1)


def to_spins(codes: Tensor) -> Tensor:
    """float64, same shape: -1 and +1 from codes 0 and 1."""
    return 2.0 * codes.double() - 1.0


def to_codes(spins: Tensor) -> Tensor:
    """int64, same shape: codes 0 and 1 from -1 and +1; ValueError for anything else."""
    if not bool((spins.abs() == 1).all()):
        raise refuse("spins", expected="-1 and +1", got=f"{spins[spins.abs() != 1].flatten()[0].item()}")
    return (spins > 0).long()
