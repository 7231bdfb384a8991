"""The data of a run: which rows and questions each step reads, and a short stand-in for all of them.

Randomness has no state: every draw is a function of (seed, step, purpose), never of what was drawn before. A run that
was killed therefore continues exactly as if it had not been, from its weights and the number of its steps alone; and
every process draws the same global batch of row numbers and of questions without a word, then keeps its own slice of
both. So what is learnt does not depend on how many processes share the work, nor on how a process cuts its share:

    global batch   [ process 0: micro 0 | micro 1 ][ process 1: micro 0 | micro 1 ] …
"""

import hashlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.objectives.objective import Objective
from anyfill.rows import Arranged, Rows, RowSource
from anyfill.training.distributed import Processes
from anyfill.training.options import FitOptions

_LARGEST_EPOCH = 2**24
_KEEP_ON_DEVICE = 2**30
"""Rows of at most so many bytes are put on the training device once and for all."""


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
        source: the rows; one that is ``Arranged`` has a say in each epoch's order.
    """

    def __init__(self, length: int, batch: int, seed: int, device: torch.device, source: object = None) -> None:
        self.length = length
        self.source = source
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
            order = torch.randperm(self.length, generator=generator)
            if isinstance(self.source, Arranged):
                order = self.source.arranged(order, self.batch)
            self._permutation = order.to(self.device)
            self._epoch = epoch
        return self._permutation


def resident(rows: Rows, device: torch.device) -> Rows:
    """The rows, on ``device`` already if they are few enough."""
    context = 0 if rows.context is None else rows.context.nbytes
    return rows.to(device) if rows.x.nbytes + rows.present.nbytes + context <= _KEEP_ON_DEVICE else rows


def fitting(rows: Rows, device: torch.device, dtype: torch.dtype) -> Rows:
    """The same rows on ``device``, whole numbers as int64 and floats as ``dtype``."""
    context = None if rows.context is None else moved(rows.context, device)
    if context is not None and context.dtype.is_floating_point:
        context = context.to(dtype)
    x = moved(rows.x, device).to(dtype if rows.x.dtype.is_floating_point else torch.int64)
    return Rows(x, moved(rows.present, device), context)


class Batches:
    """The micro-batches of one process.

    Args:
        rows: the training rows.
        objective: what poses the questions.
        options: batch size, micro-batches and seed.
        distributed: this process among the others.
        dtype: of real values, see ``Precision.values``.
    """

    def __init__(
        self, rows: RowSource, objective: Objective, options: FitOptions, distributed: Processes, dtype: torch.dtype
    ) -> None:
        if options.batch_size % (distributed.processes * options.accumulate):
            expected = f"a multiple of {distributed.processes} processes x {options.accumulate} micro-batches"
            raise refuse("batch_size", expected=expected, got=options.batch_size)
        self.rows = resident(rows, distributed.device) if isinstance(rows, Rows) else rows
        self.objective = objective
        self.options = options
        self.device = distributed.device
        self.dtype = dtype
        self.process = distributed.process
        self.micro = options.batch_size // (distributed.processes * options.accumulate)
        source = self.rows.take(torch.zeros(1, dtype=torch.int64)).x.device
        self.stream = RowStream(len(rows), options.batch_size, options.seed, source, rows)

    def at(self, step: int) -> Iterator[tuple[Rows, Tensor]]:
        """(rows, rank) of each micro-batch of this process in the step that follows ``step`` finished ones."""
        index = self.stream.index(step)
        generator = seeded(self.device, self.options.seed, "questions", step)
        rank = self.objective.sample_rank(self.options.batch_size, generator=generator)
        start = self.process * self.options.accumulate * self.micro
        for first in range(start, start + self.options.accumulate * self.micro, self.micro):
            mine = slice(first, first + self.micro)
            rows = fitting(self.rows.take(index[mine]), self.device, self.dtype)
            # A source may cut rows behind the last value that any of them has (``Capabilities.takes_beginnings``).
            yield rows, rank[mine, : rows.variables].to(self.device)


_CELLS = 2**22
"""Values that are read wholly."""
_SPREAD = 4096
"""Rows read of more, fewer where so many are more than ``_CELLS`` values."""
_ENDS = 64
"""Rows read at either end."""
_AT_ONCE = 2**18
"""Values held at a time."""
_MARK = "2"
"""What this kind of fingerprint begins with; the earlier kind has 16 digits and no mark."""


def fingerprint(rows: RowSource, *, like: object = None) -> str:
    """A short stand-in for data, so that a run is not resumed with other data by mistake.

    The same text for the same values, on whatever device and in however many bits they are kept. Up to ``_CELLS``
    values all rows are read. Of more, so that a corpus on disk is not read through, the first and the last ``_ENDS``
    rows and ``_SPREAD`` evenly spaced ones: there the number of rows, or whatever moves or changes a good part of them,
    is noticed, a single value in between may not be. The first runs noted a fingerprint of the ends alone.

    Args:
        rows: the data.
        like: a fingerprint to be compared with, as it was read from a file; if it is of the earlier kind, so is this.
    """
    if isinstance(like, str) and len(like) == 16:
        return _digest(rows, _ends(len(rows)), 2 * _ENDS)
    return _MARK + _digest(rows, _chosen(len(rows), rows.variables), max(1, _AT_ONCE // max(1, rows.variables)))


def _chosen(count: int, variables: int) -> Tensor:
    """int64: the rows that are read, in order."""
    if count * variables <= _CELLS:
        return torch.arange(count)
    rows = max(2, min(_SPREAD, _CELLS // variables, count))
    spread = torch.arange(rows) * (count - 1) // (rows - 1)
    return torch.cat([_ends(count), spread]).unique()


def _ends(count: int) -> Tensor:
    first, last = min(_ENDS, count), max(_ENDS, count - _ENDS)
    return torch.cat([torch.arange(first), torch.arange(min(last, count), count)])


def _digest(rows: RowSource, index: Tensor, at_once: int) -> str:
    digest = hashlib.sha256(str(len(rows)).encode())
    for part in index.split(at_once):
        some = rows.take(part)
        x = torch.where(some.present, some.x, torch.zeros_like(some.x))  # what stands in absent places does not count
        for tensor in (x, some.present, some.context):
            digest.update(b"none" if tensor is None else _content(tensor))
    return digest.hexdigest()[:16]


def _content(tensor: Tensor) -> bytes:
    wide = tensor.detach().cpu().to(torch.float64 if tensor.dtype.is_floating_point else torch.int64)
    return str(tuple(wide.shape)).encode() + wide.contiguous().numpy().tobytes()
