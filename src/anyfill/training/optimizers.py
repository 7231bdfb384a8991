"""What moves the weights: an optimizer for each parameter, and a moving average that follows them.

hidden   matrices inside repeated blocks (a ModuleList or Sequential), kernels among them as matrices (out, all else):
         Muon, if asked for
decayed  other weights of two or more dimensions (heads, first kernels): Adam(W) with weight decay
plain    norms, biases, embeddings, and tables the network holds itself (positions): no weight decay
"""

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.training.distributed import local, part, stacked
from anyfill.training.options import FitOptions


class Optimization:
    """The optimizers of a run over the parameters that require a gradient, and their average if one is kept.

    Args:
        model: what is trained, on its device, in its precision, shared as it will be.
        options: which optimizer, and how.
    """

    def __init__(self, model: Model, options: FitOptions) -> None:
        trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        self.names: dict[Tensor, str] = {parameter: name for name, parameter in trained.items()}
        self.optimizers = make_optimizers(model, options)
        self.average = None if options.ema is None else Average(trained, options.ema)
        self._clip_norm, self._clip_value = options.clip_norm, options.clip_value

    def step(self, step: int, rate: float) -> Tensor:
        """Update number ``step`` by the gradients, at this learning rate; the length the gradient had: a scalar."""
        norm = nn.utils.get_total_norm([p.grad for p in self.names if p.grad is not None])
        clipped = norm
        if self._clip_value is not None:
            nn.utils.clip_grad_value_(list(self.names), self._clip_value)
            clipped = nn.utils.get_total_norm([p.grad for p in self.names if p.grad is not None])
        if self._clip_norm is not None:
            nn.utils.clip_grads_with_norm_(list(self.names), self._clip_norm, clipped)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()
        if self.average is not None:
            self.average.update(step)
        return norm.detach()

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the parameters are their average, if one is kept."""
        return nullcontext() if self.average is None else self.average.in_place()

    def tensors(self) -> dict[str, Tensor]:
        """All state: ``optimizer/PARAMETER/quantity``, ``average/PARAMETER``."""
        states = [item for optimizer in self.optimizers for item in optimizer.state.items()]
        found = {
            f"optimizer/{self.names[parameter]}/{quantity}": torch.as_tensor(value)
            for parameter, state in states
            for quantity, value in state.items()
        }
        average = {} if self.average is None else self.average.tensors()
        return found | {f"average/{name}": value for name, value in average.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what ``tensors`` gave; KeyError if something is not there."""
        saved: dict[str, dict[str, Tensor]] = {}  # a parameter that no loss has used so far has no state yet
        for key, value in tensors.items():
            role, _, rest = key.partition("/")
            if role == "optimizer":
                name, quantity = rest.rsplit("/", 1)
                saved.setdefault(name, {})[quantity] = value
        for optimizer in self.optimizers:
            for parameter in (p for group in optimizer.param_groups for p in group["params"]):
                if state := saved.get(self.names[parameter]):
                    optimizer.state[parameter] = {
                        quantity: _laid_as(part(value.to(parameter.device, copy=True), parameter), parameter)
                        for quantity, value in state.items()
                    }
        if self.average is not None:
            self.average.restore({name: tensors[f"average/{name}"] for name in self.average.names})


def _laid_as(value: Tensor, parameter: Tensor) -> Tensor:
    """The value, in memory as the parameter is where it has its shape: fused steps go through both side by side.

    Kernels may lie channels last (``networks.unet_parts.compile_layers``); what comes from a file never does.
    """
    if value.shape != parameter.shape or value.stride() == parameter.stride():
        return value
    return torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def sort_parameters(model: Model) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """(hidden, decayed, plain): every parameter that requires a gradient, once."""
    own = {id(parameter) for parameter in model.network.parameters(recurse=False)}
    tables = own | {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    kernels = {id(module.weight) for module in model.modules() if isinstance(module, nn.Conv1d | nn.Conv2d)}
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
        elif id(parameter) in repeated and (parameter.dim() == 2 or id(parameter) in kernels):
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


_QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonalise(matrices: Tensor) -> Tensor:
    """The nearest semi-orthogonal matrices, roughly, to ``matrices`` (K, R, C).

    Five steps of a quintic Newton-Schulz iteration send the singular values into about [0.7, 1.2].
    """
    a, b, c = _QUINTIC
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if tall else x).to(matrices.dtype)


class Muon(Optimizer):
    """Muon (Jordan et al. 2024): momentum whose every matrix is replaced by the nearest semi-orthogonal one.

        M <- μ M + (1 - μ) G,   U = orthogonalise((1 - μ) G + μ M),   W <- (1 - ηλ) W - η · 0.2 √max(rows, columns) · U

    The factor gives the update the root mean square of AdamW's (Liu et al. 2025), so one learning rate does for both.
    ``torch.optim.Muon`` computes the same; here all matrices of one shape are orthogonalised together, and in 32 bits
    on a CPU, where 16-bit products are slow: 14 times faster there at the same loss (benchmarks/muon.py). Of sharded
    matrices each process holds the momentum of its rows; it orthogonalises them all, and takes its rows of the answer.

    Args:
        params: matrices, or kernels, read as matrices (out, all else); vectors belong to another optimizer.
        lr: learning rate, on AdamW's scale.
        momentum: μ.
        weight_decay: λ, decoupled.
    """

    def __init__(
        self, params: Iterable[Tensor], *, lr: float, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(list(params), {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.dim() < 2:
                    raise refuse("parameter of Muon", expected="a matrix", got=f"shape {tuple(parameter.shape)}")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One update of every matrix that has a gradient."""
        if closure is not None:
            raise refuse("closure", expected="none (Muon evaluates no loss)", got="one")
        for group in self.param_groups:
            shapes: dict[tuple[int, ...], list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes.setdefault(tuple(parameter.shape), []).append(parameter)
            for shape, matrices in shapes.items():
                self._update(shape, matrices, group["lr"], group["momentum"], group["weight_decay"])

    def _update(self, shape: tuple[int, ...], matrices: list[Tensor], lr: float, momentum: float, decay: float) -> None:
        ahead: list[Tensor] = []
        for matrix in matrices:
            gradient = torch.zeros_like(matrix) if matrix.grad is None else matrix.grad
            state = self.state[matrix]
            if not state:
                state["momentum"] = torch.zeros_like(matrix)
            local(state["momentum"]).lerp_(local(gradient), 1 - momentum)
            ahead.append(gradient.lerp(state["momentum"], momentum))
        step = lr * 0.2 * math.sqrt(max(shape[0], math.prod(shape[1:])))
        for matrix, update in zip(matrices, orthogonalise(stacked(ahead).flatten(2)).unbind(0)):
            local(matrix).mul_(1 - lr * decay).add_(local(part(update.reshape(shape), matrix)), alpha=-step)


class Average:
    """A moving average of the weights (EMA): often better than the last weights, and never in the way of training.

        average <- d_t · average + (1 - d_t) · weights,      d_t = min(decay, (1 + t) / (10 + t))

    The rising d_t lets a short run forget its first, random weights. The sums stay in 32 bits even for 16-bit weights,
    whose steps of (1 - d) would otherwise be rounded away.

    Args:
        parameters: the parameters by name; they are read, never written, except inside ``in_place``.
        decay: d above.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], decay: float) -> None:
        self.decay = decay
        self.names = list(parameters)
        self.parameters: Sequence[nn.Parameter] = list(parameters.values())
        self.shadow = [p.detach().to(torch.promote_types(p.dtype, torch.float32), copy=True) for p in self.parameters]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after ``step`` finished steps."""
        decay = min(self.decay, (1 + step) / (10 + step))
        mine = [local(shadow) for shadow in self.shadow]
        weights = [local(parameter.detach()).to(shadow.dtype) for parameter, shadow in zip(self.parameters, mine)]
        torch._foreach_lerp_(mine, weights, 1 - decay)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]

    def tensors(self) -> dict[str, Tensor]:
        """The average by parameter name."""
        return dict(zip(self.names, self.shadow))

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what ``tensors`` gave."""
        for name, shadow in zip(self.names, self.shadow):
            shadow.copy_(part(tensors[name], shadow))

    @contextmanager
    def in_place(self) -> Generator[None]:
        """Inside, the parameters are their average; afterwards, bit for bit what they were."""
        kept = [parameter.detach().clone() for parameter in self.parameters]
        try:
            self._write(self.shadow)
            yield
        finally:
            self._write(kept)

    @torch.no_grad()
    def _write(self, values: Sequence[Tensor]) -> None:
        for parameter, value in zip(self.parameters, values):
            parameter.copy_(value)
