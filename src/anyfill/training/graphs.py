"""A loss and its gradients as one CUDA graph for each shape of batch: thousands of small launches become one.

A small network on a fast accelerator waits for the host, which launches a few thousand kernels a step. Where the shapes
of a batch were met before, the whole of forward and backward is replayed instead:

    inputs -> the graph's own tensors;  replay;  the gradients lie where they lay when the graph was captured

The optimizer runs outside, as ever. What is learnt does not change: noise and dropout follow the same seeds (a graph
reads the state of a registered generator anew in each replay). Graphs share one pool of memory: one may overwrite what
another left, so the loss is copied out, and the gradients are used up before the next replay.

A network whose pass is as long as the ranks of a batch ask for says so (``Capabilities.room``): its length is looked up
before, and belongs to the shape.

A shape is warmed up once before it is captured. If a capture fails (a network that looks at values on the host), that
is logged, and this run goes on without graphs.
"""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from anyfill.training.loss import LossModule

_log = logging.getLogger(__name__)
_Shape = tuple[int | tuple[torch.Size, torch.dtype] | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """One shape's graph.

    Attributes:
        graph: forward and backward.
        inputs: what it reads; None where the loss takes none.
        loss: what it writes, a scalar.
        gradients: of each parameter, or None where the loss does not use it.
    """

    graph: Any
    inputs: Sequence[Tensor | None]
    loss: Tensor
    gradients: Sequence[Tensor | None]


@contextmanager
def _reserved(network: Any, room: int | None) -> Generator[None]:
    """Inside, the network's strict chains are so long, whatever their ranks are."""
    if room is None:
        yield
        return
    network.reserved = room
    try:
        yield
    finally:
        network.reserved = None


class Replay:
    """Forward and backward of a loss on CUDA, replayed where a shape is known.

    Args:
        module: the loss; its generator is freshly seeded before each call, and so are torch's own.
    """

    def __init__(self, module: LossModule) -> None:
        self.module = module
        self.parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.captured: dict[_Shape, Captured] = {}
        self.works = True
        self._pool: Any = None

    def __call__(self, x: Tensor, present: Tensor, context: Tensor | None, rank: Tensor) -> Tensor:
        """The loss of a batch, a scalar; its gradients are in ``grad`` of the parameters, which had none before."""
        inputs = (x, present, context, rank)
        if not self.works:
            return self._plainly(inputs)
        room = self.module.model.capabilities.room(rank)
        shape = (room, *(None if one is None else (one.shape, one.dtype) for one in inputs))
        found = self.captured.get(shape)
        if found is None:
            try:
                with _reserved(self.module.model.network, room):
                    found = self.captured[shape] = self._capture(inputs)
            except RuntimeError as error:
                _log.warning("training goes on without CUDA graphs: %s", str(error).splitlines()[0])
                self.works = False
                torch.cuda.synchronize()
                self._forget()
                self._reseed()
                return self._plainly(inputs)
        for held, new in zip(found.inputs, inputs):
            if held is not None and new is not None:
                held.copy_(new, non_blocking=True)
        found.graph.replay()
        for parameter, gradient in zip(self.parameters, found.gradients):
            parameter.grad = gradient
        return found.loss.clone()

    def _plainly(self, inputs: Sequence[Any]) -> Tensor:
        loss = self.module(*inputs)
        loss.backward()
        return loss.detach()

    def _capture(self, inputs: Sequence[Tensor | None]) -> Captured:
        held = [None if one is None else one.clone() for one in inputs]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            self._plainly(held)  # workspaces and the like are made now, not inside the graph
        torch.cuda.current_stream().wait_stream(aside)
        self._forget()
        graph: Any = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.module.generator)
        with torch.cuda.graph(graph, pool=self._pool):
            loss = self._plainly(held)
        if self._pool is None:
            self._pool = graph.pool()
        gradients = [parameter.grad for parameter in self.parameters]
        self._forget()
        self._reseed()
        return Captured(graph, held, loss, gradients)

    def _forget(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def _reseed(self) -> None:
        """Back to where the generators were when this call began: warming up has drawn from them."""
        self.module.generator.manual_seed(self.module.generator.initial_seed())
        torch.cuda.manual_seed(torch.cuda.initial_seed())
