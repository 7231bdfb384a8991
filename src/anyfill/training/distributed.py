"""The processes of a run: which device each computes on, how they share weights, what they tell each other.

Under ``torchrun`` each process takes its place in the group (gloo on CPU, NCCL on CUDA); otherwise there is one. They
share the work in one of two ways:

    copied    DDP: each holds all weights, gradients are averaged while they are computed
    sharded   FSDP: weights, gradients and optimizer state are spread, each process holds about 1/n of every tensor

A sharded tensor is a ``DTensor``, cut along its first axis. This file is the only one that knows it:

    whole(t)        all of it, in every process: ALL processes must call it, in the same order
    part(w, like)   this process's share of a whole tensor: no word between processes
    local(t)        this process's share as a plain tensor that shares its memory

On plain tensors all three do nothing. Files hold whole tensors only, so a run may go on with another number of
processes, sharded or not. Repeated blocks (parts of a ModuleList that have parts themselves) are put together one at a
time, when they are called, and all the rest when the loss is. So every process must call the same blocks, and use the
same parameters, in each step; the losses here do.
"""

import atexit
import gc
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeGuard

import torch
import torch.distributed
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from anyfill.checks import refuse
from anyfill.training.options import FitOptions

# What shards is imported where there is something to shard: it takes most of a second, and few runs need it.
if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


class Processes:
    """This process among those of a run.

    Args:
        options: the device, and whether to shard.

    Attributes:
        device: where this process computes.
        process, processes: its number, and how many there are.
        shards: True if they share the weights out among them.
    """

    def __init__(self, options: FitOptions) -> None:
        is_cuda = options.device == "cuda" or (options.device == "auto" and torch.cuda.is_available())
        if is_cuda and not torch.cuda.is_available():
            raise refuse("device", expected="'cpu' (torch finds no CUDA device here)", got="'cuda'")
        self.process, self.processes = 0, 1
        if torch.distributed.is_torchelastic_launched():
            self.process, self.processes = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if self.processes > 1:
            if is_cuda:
                torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            if not torch.distributed.is_initialized():
                torch.distributed.init_process_group("nccl" if is_cuda else "gloo")
            atexit.unregister(_leave)  # once is enough, and before all that was registered earlier
            atexit.register(_leave)
        self.device = torch.device("cuda", torch.cuda.current_device()) if is_cuda else torch.device("cpu")
        self.shards = options.shard and self.processes > 1
        self._stops = False
        self._hosts: Any = torch.distributed.new_group(backend="gloo") if self.shards else None  # no accelerator waits

    @property
    def is_first(self) -> bool:
        """True in the one process that writes files."""
        return self.process == 0

    def set_up(self, module: nn.Module) -> nn.Module:
        """The module on this device, sharing its gradients (or all) with the other processes."""
        if self.shards:
            _shard(module, self.device)
            return module
        module.to(self.device)
        if self.processes == 1:
            return module
        # Which parameters a loss uses may change with the question.
        devices = [self.device] if self.device.type == "cuda" else None
        copied = DistributedDataParallel(module, device_ids=devices, find_unused_parameters=True)
        copied.broadcast_buffers = False  # they are constants: no need to send them about at each step
        return copied

    def unshared(self, module: nn.Module, enabled: bool) -> AbstractContextManager[None]:
        """Inside (if ``enabled``), gradients are added up here only; the next one outside shares the sum."""
        if self.shards:
            _sharded_modules(module)[0].set_requires_gradient_sync(not enabled)
        return module.no_sync() if enabled and isinstance(module, DistributedDataParallel) else nullcontext()

    @contextmanager
    def alone(self, module: nn.Module) -> Generator[None]:
        """Inside, what was set up is whole everywhere: calling it, or parts of it, waits for no other process.

        But if sharded, all must call the same parts equally often: the next backward pass gathers in the order of all
        calls before it.
        """
        sharded = _sharded_modules(module) if self.shards else []
        for each in sharded:
            each.set_reshard_after_forward(False, recurse=False)
            each.unshard()
        try:
            yield
        finally:
            for each in sharded:
                each.reshard()
                each.set_reshard_after_forward(each is not module, recurse=False)  # the whole is needed at once again

    def sum(self, value: Tensor) -> Tensor:
        """The sum over processes, in each of them."""
        if self.processes > 1:
            torch.distributed.all_reduce(value)
        return value

    def mean(self, value: Tensor) -> Tensor:
        """The mean over processes, in each of them."""
        return self.sum(value) / self.processes

    def agreed(self, value: float) -> float:
        """The first process's value, in each of them."""
        if self.processes == 1:
            return value
        said = torch.tensor(value, dtype=torch.float64, device=self.device)
        torch.distributed.broadcast(said, src=0)
        return float(said)

    def stopping(self, wish: bool) -> bool:
        """Whether to stop before the next step. If weights are sharded none can save alone: then one wish is all's."""
        if self.shards and not self._stops:
            wishes = torch.tensor(float(wish))
            torch.distributed.all_reduce(wishes, group=self._hosts)
            self._stops = bool(wishes)
        return self._stops or wish

    def wait(self) -> None:
        """Until all processes are here."""
        if self.processes > 1:
            torch.distributed.barrier(device_ids=[self.device.index] if self.device.type == "cuda" else None)


def _leave() -> None:
    """Leave all groups before the process ends: a thread of gloo that still runs then would abort it (SIGABRT)."""
    if torch.distributed.is_initialized():
        gc.collect()  # wrapped modules of finished runs hold the group, and with it its threads
        torch.distributed.destroy_process_group()
        gc.collect()


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, in every process; all must take part."""
    return tensor.full_tensor() if _is_sharded(tensor) else tensor


def part(value: Tensor, like: Tensor) -> Tensor:
    """This process's share of a whole tensor, if ``like`` is sharded and has its shape; else the tensor as it is."""
    if not _is_sharded(like) or like.shape != value.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    mesh = like.device_mesh
    return distribute_tensor(value.to(mesh.device_type), mesh, like.placements, src_data_rank=None)


def local(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor, in the same memory."""
    return tensor.to_local().detach() if _is_sharded(tensor) else tensor


def wholes(tensors: Mapping[str, Tensor], *, keep: bool = True) -> dict[str, Tensor]:
    """All tensors whole, those that were sharded on the CPU; without ``keep`` this process only hands in its parts."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        value = whole(tensor.detach())
        if keep:
            found[name] = value.cpu() if _is_sharded(tensor) else tensor
    return found


def parts(tensors: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """This process's share of each whole tensor that is sharded under the same name in ``like``."""
    return {name: part(value, like[name]) if name in like else value for name, value in tensors.items()}


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """(K, …): K tensors of one shape, whole, in one message; all must take part."""
    first = tensors[0]
    mine = torch.stack([local(tensor) for tensor in tensors])
    if not _is_sharded(first):
        return mine
    from torch.distributed.tensor import DTensor, Shard

    like = torch.empty((len(tensors), *first.shape), device="meta")
    spread = DTensor.from_local(
        mine, first.device_mesh, [Shard(1)], run_check=False, shape=like.shape, stride=like.stride()
    )
    return spread.full_tensor()


def _shard(module: nn.Module, device: torch.device) -> None:
    """Shard a module in place over all processes, with the first one's weights; ValueError if it cannot be."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    for name, parameter in module.named_parameters():
        if parameter.dim() == 0:
            raise refuse(f"parameter {name}, to be sharded", expected="at least one dimension", got="none: a number")
    with torch.no_grad():
        for value in [*module.parameters(), *module.buffers()]:
            sent = value.detach().to(device).contiguous()
            torch.distributed.broadcast(sent, src=0)
            value.copy_(sent)
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    for each in [*_blocks(module), module]:
        fully_shard(each, mesh=mesh)


def _sharded_modules(module: nn.Module) -> list[Any]:
    """What was sharded, the whole first."""
    from torch.distributed.fsdp import FSDPModule

    return [each for each in module.modules() if isinstance(each, FSDPModule)]


def _is_sharded(tensor: Tensor) -> "TypeGuard[DTensor]":
    return hasattr(tensor, "full_tensor")


def _blocks(module: nn.Module) -> Iterator[nn.Module]:
    """The repeated blocks, those inside others first, each once."""
    lists = [each for each in module.modules() if isinstance(each, nn.ModuleList)]
    found = {id(block): block for each in lists for block in each if not isinstance(block, nn.ModuleList)}
    for block in reversed(found.values()):
        if any(True for _ in block.children()) and any(True for _ in block.parameters()):
            yield block
