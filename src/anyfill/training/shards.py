"""FSDP: weights, gradients and optimizer state spread over the processes, each holding about 1/n of every tensor.

A sharded tensor is a ``DTensor``, cut along its first axis. This file is the only one that knows it:

    whole(t)        all of it, in every process: ALL processes must call it, in the same order
    part(w, like)   this process's share of a whole tensor: no word between processes
    local(t)        this process's share as a plain tensor that shares its memory

On plain tensors all three do nothing. Files hold whole tensors only, so a run may go on with another number of
processes, sharded or not. Repeated blocks (parts of a ModuleList that have parts themselves) are put together one at a
time, when they are called, and all the rest when the loss is. So every process must call the same blocks, and use the
same parameters, in each step; the losses here do.
"""

import copy
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

import torch
import torch.distributed
from torch import Tensor, nn

from anyfill.checks import refuse
from anyfill.model import Model

# What shards is imported where there is something to shard: it takes most of a second, and few runs need it.
if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


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


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """(K, …): K tensors of one shape, whole, in one message; all must take part."""
    first = tensors[0]
    mine = torch.stack([local(tensor) for tensor in tensors])
    if not _is_sharded(first):
        return mine
    from torch.distributed.tensor import DTensor, Shard

    like = torch.empty((len(tensors), *first.shape), device="meta")
    spread_out = DTensor.from_local(
        mine, first.device_mesh, [Shard(1)], run_check=False, shape=like.shape, stride=like.stride()
    )
    return spread_out.full_tensor()


def parts(tensors: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """This process's share of each whole tensor that is sharded under the same name in ``like``."""
    return {name: part(value, like[name]) if name in like else value for name, value in tensors.items()}


def twin(model: Model) -> Model:
    """A copy to be sharded, which cannot be undone; the model itself waits on the CPU for the weights."""
    return copy.deepcopy(model.cpu())


def spread(module: nn.Module, device: torch.device) -> None:
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
    for block in _blocks(module):
        fully_shard(block, mesh=mesh)
    fully_shard(module, mesh=mesh)


def share_gradients(module: nn.Module, enabled: bool) -> None:
    """Whether the next gradients are summed over processes, or added up in this one until they are."""
    from torch.distributed.fsdp import FSDPModule

    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(enabled)


@contextmanager
def put_together(module: nn.Module) -> Generator[None]:
    """Inside, a sharded module is whole everywhere: calling it, or parts of it, waits for no other process.

    But all must call the same parts equally often: the next backward pass gathers in the order of all calls before it.
    """
    from torch.distributed.fsdp import FSDPModule

    sharded = [each for each in module.modules() if isinstance(each, FSDPModule)]
    for each in sharded:
        each.set_reshard_after_forward(False, recurse=False)
        each.unshard()
    try:
        yield
    finally:
        for each in sharded:
            each.reshard()
            each.set_reshard_after_forward(each is not module, recurse=False)  # the whole is needed at once again


def _is_sharded(tensor: Tensor) -> "TypeGuard[DTensor]":
    return hasattr(tensor, "full_tensor")


def _blocks(module: nn.Module) -> Iterator[nn.Module]:
    """The repeated blocks, those inside others first, each once."""
    lists = [each for each in module.modules() if isinstance(each, nn.ModuleList)]
    found = {id(block): block for each in lists for block in each if not isinstance(block, nn.ModuleList)}
    for block in reversed(found.values()):
        if any(True for _ in block.children()) and any(True for _ in block.parameters()):
            yield block
