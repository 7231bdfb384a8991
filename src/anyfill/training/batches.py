"""From (seed, step) to the micro-batches of one process.

Every process draws the same global batch of row numbers and the same global batch of questions, then keeps its own
slice of both. So what is learnt does not depend on how many processes share the work, nor on how a process cuts its
share into micro-batches:

    global batch   [ process 0: micro 0 | micro 1 ][ process 1: micro 0 | micro 1 ] …
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.objectives.objective import Objective
from anyfill.rows import Rows, RowSource
from anyfill.training.options import FitOptions
from anyfill.training.processes import Processes
from anyfill.training.randomness import RowStream, moved, seeded

_KEEP_ON_DEVICE = 2**30
"""Rows of at most so many bytes are put on the training device once and for all."""


def resident(rows: Rows, device: torch.device) -> Rows:
    """The rows, on ``device`` already if they are few enough."""
    context = 0 if rows.context is None else rows.context.nbytes
    return rows.to(device) if rows.x.nbytes + rows.present.nbytes + context <= _KEEP_ON_DEVICE else rows


def check_rows(name: str, rows: RowSource, variables: int) -> None:
    """ValueError unless these rows can train a model of N ``variables``."""
    if len(rows) == 0:
        raise refuse(name, expected="at least one row", got="none")
    if rows.variables != variables:
        raise refuse(f"variables of {name}", expected=f"{variables}, as the model has", got=rows.variables)
    dtype = rows.take(torch.zeros(1, dtype=torch.int64)).x.dtype
    if dtype == torch.bool or dtype.is_complex:
        raise refuse(f"dtype of {name}", expected="whole numbers or floats", got=dtype)


def fitting(rows: Rows, device: torch.device, dtype: torch.dtype) -> Rows:
    """The same rows on ``device``, whole numbers as int64 and floats in the model's own ``dtype``.

    Floats have 32 bits even if the model has 16, for the loss must score the values that were given, not rounded ones.
    """
    dtype = torch.promote_types(dtype, torch.float32)
    wanted = dtype if rows.x.dtype.is_floating_point else torch.int64
    context = None if rows.context is None else moved(rows.context, device)
    if context is not None and context.dtype.is_floating_point:
        context = context.to(dtype)
    return Rows(moved(rows.x, device).to(wanted), moved(rows.present, device), context)


class Batches:
    """The micro-batches of one process.

    Args:
        rows: the training rows.
        objective: what poses the questions.
        options: batch size, micro-batches and seed.
        distributed: this process among the others.
        dtype: the model's floating-point type.
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
        self.stream = RowStream(len(rows), options.batch_size, options.seed, source)

    def at(self, step: int) -> Iterator[tuple[Rows, Tensor]]:
        """(rows, rank) of each micro-batch of this process in the step that follows ``step`` finished ones."""
        index = self.stream.index(step)
        generator = seeded(self.device, self.options.seed, "questions", step)
        rank = self.objective.sample_rank(self.options.batch_size, generator=generator)
        start = self.process * self.options.accumulate * self.micro
        for first in range(start, start + self.options.accumulate * self.micro, self.micro):
            mine = slice(first, first + self.micro)
            yield fitting(self.rows.take(index[mine]), self.device, self.dtype), rank[mine].to(self.device)
