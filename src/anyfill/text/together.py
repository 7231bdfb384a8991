"""The processes of torchrun: which one this is, and work that the first does alone."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Literal, cast

import torch.distributed

from anyfill.training import FitOptions
from anyfill.training.distributed import Processes


def processes() -> int:
    return int(os.environ["WORLD_SIZE"]) if torch.distributed.is_torchelastic_launched() else 1


def is_first() -> bool:
    return not torch.distributed.is_torchelastic_launched() or os.environ["RANK"] == "0"


def first_alone(work: Callable[[], None], device: Literal["cpu", "cuda"]) -> None:
    """Do the work in the first process; the others wait until it is done, however long that takes."""
    if processes() == 1:
        work()
        return
    distributed = Processes(FitOptions(device=device))
    waiting = torch.distributed.new_group(backend="gloo", timeout=timedelta(days=30))
    if distributed.is_first:
        work()
    try:
        torch.distributed.barrier(group=cast("torch.distributed.ProcessGroup", waiting))
    except RuntimeError:  # the first process has gone, and has said why
        raise SystemExit(2) from None
