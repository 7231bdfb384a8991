"""Randomness without state: every draw is a function of (seed, step, purpose), never of what was drawn before.

A run that was killed therefore continues exactly as if it had not been, from its weights and the number of its steps
alone; and every process of a distributed run can draw the same global batch without a word between them.
"""

import hashlib
from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor

_LARGEST_EPOCH = 2**24


def derive(seed: int, purpose: str, *numbers: int) -> int:
    """A 63-bit seed from a run's seed, a purpose and numbers (step, process …); different inputs, unrelated seeds."""
    text = ":".join([str(seed), purpose, *map(str, numbers)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def seeded(device: torch.device, seed: int, purpose: str, *numbers: int) -> torch.Generator:
    """A fresh generator on ``device``, seeded by ``derive``."""
    return torch.Generator(device).manual_seed(derive(seed, purpose, *numbers))


@contextmanager
def global_seed(device: torch.device, seed: int) -> Generator[None]:
    """Seed torch's global generators (dropout draws from them) inside; the caller's own state is untouched after."""
    cpu = torch.default_generator.get_state()
    accelerator = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    try:
        torch.default_generator.manual_seed(seed)
        if accelerator is not None:
            torch.cuda.manual_seed(seed)
        yield
    finally:
        torch.default_generator.set_state(cpu)
        if accelerator is not None:
            torch.cuda.set_rng_state(accelerator, device)


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on ``device``, without making the host wait for an accelerator to catch up."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


class RowStream:
    """Which rows each step reads: epoch after epoch, each a permutation of all rows drawn from (seed, epoch).

    A batch may cross epochs, and with fewer rows than the batch it crosses several. Above 2^24 rows a permutation
    would cost more than it brings (few runs see a whole epoch of those): rows are then drawn independently.

    Args:
        length: number of rows.
        batch: rows per step.
        seed: the run's seed.
        device: where the indices are wanted.
    """

    def __init__(self, length: int, batch: int, seed: int, device: torch.device) -> None:
        self.length = length
        self.batch = batch
        self.seed = seed
        self.device = device
        self._epoch = -1
        self._permutation = torch.empty(0, dtype=torch.int64)

    def position(self, step: int) -> tuple[int, int]:
        """(epoch, rows of it already read) after ``step`` steps."""
        return divmod(step * self.batch, self.length)

    def index(self, step: int) -> Tensor:
        """int64 (batch,): the rows of the step that follows ``step`` finished ones."""
        if self.length > _LARGEST_EPOCH:
            generator = seeded(torch.device("cpu"), self.seed, "rows", step)
            return moved(torch.randint(self.length, (self.batch,), generator=generator), self.device)
        pieces: list[Tensor] = []
        epoch, position = self.position(step)
        missing = self.batch
        while missing:
            piece = self._permutation_of(epoch)[position : position + missing]
            pieces.append(piece)
            missing -= len(piece)
            epoch, position = epoch + 1, 0
        return torch.cat(pieces)

    def _permutation_of(self, epoch: int) -> Tensor:
        if epoch != self._epoch:
            # Drawn on the CPU, whatever the device: the order of the data is the same everywhere.
            generator = seeded(torch.device("cpu"), self.seed, "epoch", epoch)
            self._permutation = torch.randperm(self.length, generator=generator).to(self.device)
            self._epoch = epoch
        return self._permutation
