"""Which optimizer moves which parameter, and its state as named tensors.

    hidden   matrices (two dimensions) inside repeated blocks (a ModuleList or Sequential): Muon, if asked for
    decayed  other weights of two or more dimensions (heads, convolutions): Adam(W) with weight decay
    plain    norms, biases, embeddings, and tables the network holds itself (positions): no weight decay

Muon's update is rescaled to the root mean square of AdamW's (``match_rms_adamw``), so one learning rate does for both.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.training.muon import Muon
from anyfill.training.options import FitOptions
from anyfill.training.shards import part


def sort_parameters(model: Model) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """(hidden, decayed, plain): every parameter that requires a gradient, once."""
    own = {id(parameter) for parameter in model.network.parameters(recurse=False)}
    tables = own | {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    containers = [module for module in model.modules() if isinstance(module, nn.ModuleList | nn.Sequential)]
    repeated = {id(parameter) for container in containers for parameter in container.parameters()}
    hidden: list[Tensor] = []
    decayed: list[Tensor] = []
    plain: list[Tensor] = []
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        if parameter.dim() < 2 or id(parameter) in tables:
            plain.append(parameter)
        elif parameter.dim() == 2 and id(parameter) in repeated:
            hidden.append(parameter)
        else:
            decayed.append(parameter)
    return hidden, decayed, plain


def make_optimizers(model: Model, options: FitOptions) -> list[Optimizer]:
    """The optimizers of a run over the parameters that require a gradient."""
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise refuse("model", expected="at least one parameter to train", got="none")
    hidden, decayed, plain = sort_parameters(model)
    if options.optimizer != "muon":
        hidden, decayed = [], hidden + decayed
    optimizers: list[Optimizer] = []
    if decayed or plain:
        kind = torch.optim.Adam if options.optimizer == "adam" else torch.optim.AdamW
        groups: list[dict[str, Any]] = [
            {"params": decayed, "weight_decay": options.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        optimizers.append(kind(groups, lr=options.learning_rate, betas=options.betas, fused=True))
    if hidden:
        optimizers.append(Muon(hidden, lr=options.learning_rate, weight_decay=options.weight_decay))
    return optimizers


def set_learning_rate(optimizers: Sequence[Optimizer], rate: float) -> None:
    """Use this learning rate from now on."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate


def optimizer_tensors(optimizers: Sequence[Optimizer], names: Mapping[Tensor, str]) -> dict[str, Tensor]:
    """All state under ``parameter/quantity``; ``names`` gives each parameter's name."""
    tensors: dict[str, Tensor] = {}
    for optimizer in optimizers:
        for parameter, state in optimizer.state.items():
            for quantity, value in state.items():
                tensors[f"{names[parameter]}/{quantity}"] = torch.as_tensor(value)
    return tensors


def restore_optimizers(
    optimizers: Sequence[Optimizer], names: Mapping[Tensor, str], tensors: Mapping[str, Tensor]
) -> None:
    """Put back what ``optimizer_tensors`` gave."""
    saved: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        name, quantity = key.rsplit("/", 1)
        saved.setdefault(name, {})[quantity] = value
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state = saved.get(names[parameter])
                if state is None:
                    continue  # a parameter that no loss has used so far has no state yet
                optimizer.state[parameter] = {
                    quantity: part(value.to(parameter.device, copy=True), parameter)
                    for quantity, value in state.items()
                }
