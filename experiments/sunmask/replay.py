"""Sampling at the accelerator's own speed: the network's answer for one shape of batch, replayed as a CUDA graph.

A denoising chain asks a network the same kind of question a thousand times. Inside ``replayed`` questions (B, N) of the
shape that was captured are copied to the graph's own tensors and answered by one launch; other shapes, and other
machines than CUDA, are answered as ever (and so is all, with a warning, if nothing can be captured). The answer's
memory is that of the graph: use it before asking again.
"""

import logging
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from anyfill.model import Model

_log = logging.getLogger(__name__)


def half_precision(device: str) -> Any:
    """Networks in bf16 on a GPU; weights are narrowed anew each time, so that a graph holds no stale copies."""
    return torch.autocast("cuda", torch.bfloat16, cache_enabled=False) if device == "cuda" else nullcontext()


@contextmanager
def replayed(model: Model, rows: int, device: str) -> Generator[None]:
    """Inside, questions of ``rows`` rows to the model's network are replayed, in bf16."""
    if device != "cuda":
        with model.evaluating():
            yield
        return
    network: Any = model.network
    with half_precision(device), model.evaluating():
        x = torch.zeros(rows, model.variables, dtype=torch.int64, device=device)
        known = torch.zeros_like(x, dtype=torch.bool)
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                network(x, known, None)
        torch.cuda.current_stream().wait_stream(aside)
        torch.cuda.synchronize()
        graph: Any = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                answer = network(x, known, None)
        except RuntimeError as error:
            _log.warning("sampling goes on without CUDA graphs: %s", str(error).splitlines()[0])
            torch.cuda.synchronize()
            yield
            return
        plain = network.forward

        def forward(new: Tensor, trusted: Tensor, context: Tensor | None = None) -> Tensor:
            if new.shape != x.shape or context is not None:
                return plain(new, trusted, context)
            x.copy_(new)
            known.copy_(trusted)
            graph.replay()
            return answer

        network.forward = forward
        try:
            yield
        finally:
            del network.forward
