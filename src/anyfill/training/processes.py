"""The one place that knows Lightning Fabric: which device, which precision, how many processes.

Under ``torchrun`` each process takes its place in the group (gloo on CPU, NCCL on CUDA); otherwise there is one.
"""

import atexit
import inspect
import logging
import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from anyfill.checks import refuse
from anyfill.training.options import FitOptions
from anyfill.training.shards import put_together, share_gradients, spread


class Processes:
    """This process among those of a run: its device, its precision, and what it tells the others.

    Args:
        options: device, precision, and whether to shard.

    Attributes:
        device: where this process computes.
        process, processes: its number, and how many there are.
        shards: True if they share the weights out among them.
    """

    def __init__(self, options: FitOptions) -> None:
        with allow_tf32(), _quiet("lightning_fabric"):
            self._fabric = _launch(options)
        self.device: torch.device = self._fabric.device
        self.process: int = self._fabric.global_rank
        self.processes: int = self._fabric.world_size
        self.shards = options.shard and self.processes > 1
        self._precision = options.precision
        self._stops = False
        self._hosts: Any = None
        if self.shards:  # to talk without waiting for accelerators
            self._hosts = torch.distributed.new_group(backend="gloo")
            atexit.register(_close, self._hosts)
        if self.processes > 1:
            atexit.unregister(_leave)  # once is enough
            atexit.register(_leave)

    @property
    def is_first(self) -> bool:
        """True in the one process that writes files."""
        return self.process == 0

    def set_up(self, module: nn.Module) -> nn.Module:
        """The module on this device, in this precision, sharing its gradients (or all) with the other processes."""
        if not self.shards:
            return self._fabric.setup_module(module)
        spread(_precision(self._precision, self.device.type).convert_module(module), self.device)
        return _InPrecision(module, self.autocast)

    def unshared(self, module: nn.Module, enabled: bool) -> AbstractContextManager[None]:
        """Inside (if ``enabled``), gradients are added up here only; the next one outside shares the sum."""
        if isinstance(module, _InPrecision):
            share_gradients(module.module, not enabled)
            return nullcontext()
        return self._fabric.no_backward_sync(module, enabled=enabled)

    def alone(self, module: nn.Module) -> AbstractContextManager[None]:
        """Inside, what was set up may be called without its wrapper; if sharded, equally often in every process."""
        return put_together(module.module) if isinstance(module, _InPrecision) else nullcontext()

    def backward(self, loss: Tensor) -> None:
        """Gradients of a loss that came out of the set-up module."""
        self._fabric.backward(loss)

    def autocast(self) -> AbstractContextManager[None]:
        """Inside, a module that is called without its wrapper computes in the run's precision."""
        return self._fabric.autocast()

    def mean(self, value: Tensor) -> Tensor:
        """The mean over processes, in each of them."""
        return self._fabric.all_reduce(value, reduce_op="mean") if self.processes > 1 else value

    def sum(self, value: Tensor) -> Tensor:
        """The sum over processes, in each of them."""
        return self._fabric.all_reduce(value, reduce_op="sum") if self.processes > 1 else value

    def agreed(self, value: float) -> float:
        """The first process's value, in each of them."""
        return float(self._fabric.broadcast(value)) if self.processes > 1 else value

    def stopping(self, wish: bool) -> bool:
        """Whether to stop before the next step. If weights are sharded none can save alone: then one wish is all's."""
        if self.shards and not self._stops:
            wishes = torch.tensor(float(wish))
            torch.distributed.all_reduce(wishes, group=self._hosts)
            self._stops = bool(wishes)
        return self._stops or wish

    def wait(self) -> None:
        """Until all processes are here."""
        self._fabric.barrier()


class _InPrecision(nn.Module):
    """A sharded module that computes in the run's precision."""

    def __init__(self, module: nn.Module, precision: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__()
        self.module = module
        self.precision = precision

    def forward(self, *inputs: Tensor | None) -> Tensor:
        with self.precision():
            return self.module(*inputs)


def _leave() -> None:
    """Leave the group before the process ends: a thread of gloo that still runs then would abort it (SIGABRT)."""
    if torch.distributed.is_initialized() and torch.distributed.get_backend() == "gloo":
        torch.distributed.destroy_process_group()


def _close(group: Any) -> None:
    """Leave this one group, for the same reason."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group(group)


@contextmanager
def allow_tf32() -> Generator[None]:
    """Inside, 32-bit products on CUDA may use its fast units; the caller's setting is untouched after."""
    if not torch.cuda.is_available():
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def _quiet(name: str) -> Generator[None]:
    """Inside, this logger keeps its small talk (which precision, how many processes) to itself."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def _launch(options: FitOptions) -> Any:
    """A Fabric for these options, joined to the process group if there is one."""
    # Imported here, not at the top: it takes seconds, and loading a model needs none of it.
    # The package of Fabric alone: ``lightning`` would bring in its trainer too, and two seconds more.
    from lightning_fabric import Fabric
    from lightning_fabric.strategies.ddp import DDPStrategy

    device = options.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise refuse("device", expected="'cpu' (torch finds no CUDA device here)", got="'cuda'")
    world = int(os.environ["WORLD_SIZE"]) if torch.distributed.is_torchelastic_launched() else 1
    settings: dict[str, Any] = {"accelerator": device, "plugins": [_precision(options.precision, device)]}
    if world == 1:
        return Fabric(devices=[torch.cuda.current_device()] if device == "cuda" else 1, **settings)
    local = int(os.environ["LOCAL_WORLD_SIZE"])
    # Which parameters a loss uses may change with the question; and buffers are constants: no need to send them about.
    known = inspect.signature(DistributedDataParallel.__init__).parameters
    buffers = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"  # its name before 2.13
    sharing: dict[str, Any] = {"find_unused_parameters": True, buffers: False}
    strategy: Any = DDPStrategy(**sharing)
    fabric = Fabric(devices=local, num_nodes=world // local, strategy=strategy, **settings)
    fabric.launch()
    return fabric


def _precision(precision: str, device: str) -> Any:
    """Fabric's plugin of this name, except that the data pass it as they are.

    It would round every float argument of the module, so that the loss would score rounded values: in bf16 a code 257
    is 256. What a network computes in 16 bits it casts itself, or autocast does.
    """
    from lightning_fabric.plugins import HalfPrecision, MixedPrecision, Precision

    plugin: Any = Precision()
    if precision == "bf16-mixed":
        plugin = MixedPrecision("bf16-mixed", device)
    elif precision == "bf16-true":
        plugin = HalfPrecision("bf16-true")
    plugin.convert_input = _unchanged
    return plugin


def _unchanged(data: Any) -> Any:
    return data
