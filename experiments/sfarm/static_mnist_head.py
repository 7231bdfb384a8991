"""The last layer once more, by rows that the network was not trained on, for ``static_mnist``.

    python -m experiments.sfarm.static_mnist head --out HEAD --of RUN --tokens patches --shifts 2 --neighbours 3

What a network says of rows that it has learnt is not what it knows of others: on rows kept aside its last state still
tells more than its last layer, fitted to the rows trained on, reads from it (Kirichenko, Izmailov and Wilson 2023, Last
layer re-training). With z_t the state from which term t of the raster order is read, logit l_t = w z_t + b, and rows
kept aside r = 1 … R, of which N terms each,

    v, c = argmin  1/R sum_r sum_t nats(x_t | l_t + v z_t + c) + λ (|v|² + c²),

which is convex; λ is chosen by four-fold cross-validation among those rows. Then w + v and b + c are the layer. It is
the same network and the same single pass. Only the raster order had a part in it, so for other questions the layer
before is the one to ask. The rows are the --valid-rows that chose the checkpoint, and no test row.
"""

import argparse
import json
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from anyfill.model import Model
from anyfill.training import load_model, save_model
from benchmarks.common import environment
from experiments.sfarm.static_mnist import device_of, held_out, said, settled
from experiments.sfarm.static_mnist_score import raster_rank

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)
FOLDS = 4


@torch.no_grad()
def states(model: Model, x: Tensor, rows: int = 64) -> Tensor:
    """float16 (B, N, width): what the last layer reads in the model's own order."""
    network: Any = model.network
    read: list[Tensor] = []
    hook = network.head.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].half()))
    try:
        for part in x.split(rows):
            network.chain(part, raster_rank(model, part))
    finally:
        hook.remove()
    return torch.cat(read)


def row_nats(z: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(B,): nats of pictures x (B, N) by a last layer (width,), () over states z (B, N, width)."""
    logit = z.float() @ weight + bias
    return functional.binary_cross_entropy_with_logits(logit, x.float(), reduction="none").sum(1)


def fitted_layer(
    z: Tensor, x: Tensor, weight: Tensor, bias: Tensor, ridge: float, *, steps: int = 25, rows: int = 256
) -> tuple[Tensor, Tensor]:
    """Weights (width,) and bias () of the layer that says least of these rows, no farther away than it must be."""
    change = torch.zeros(len(weight) + 1, device=z.device, requires_grad=True)
    optimizer = torch.optim.LBFGS([change], max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        total = ridge * change.square().sum()
        total.backward()
        total = total.detach()
        for some, those in zip(z.split(rows), x.split(rows)):
            part = row_nats(some, those, weight + change[:-1], bias + change[-1]).sum() / len(x)
            part.backward()
            total += part.detach()
        return total

    optimizer.step(loss)
    found = change.detach()
    return weight + found[:-1], bias + found[-1]


def retrain_head(arguments: argparse.Namespace) -> None:
    """The run's model with its last layer fitted anew: HEAD/model, and HEAD/train.json says how."""
    device = device_of()
    (run,) = arguments.of
    kept = next((run / name for name in ("model", "model_16", "model_8") if (run / name).is_dir()), run / "model")
    model = load_model(kept).float()
    if model.capabilities.context_width:
        model = settled(model, arguments)
    model = model.to(device).eval()
    layer = model.network.head
    weight, bias = layer.weight.detach()[0], layer.bias.detach()[0]
    x = held_out(arguments).to(device)
    z = states(model, x)
    before, fold = row_nats(z, x, weight, bias), torch.arange(len(x), device=device) % FOLDS
    crossed: dict[float, Tensor] = {}
    for ridge in RIDGES:
        nats = torch.zeros_like(before)
        for number in range(FOLDS):
            inside, outside = fold != number, fold == number
            own = fitted_layer(z[inside], x[inside], weight, bias, ridge)
            nats[outside] = row_nats(z[outside], x[outside], *own)
        crossed[ridge] = nats
        less = nats - before
        print(f"ridge {ridge:g}: {nats.mean():.4f}, {less.mean():+.4f} ± {less.std() / len(x) ** 0.5:.4f}", flush=True)
    best = min(crossed, key=lambda ridge: float(crossed[ridge].mean()))
    own = fitted_layer(z, x, weight, bias, best)
    with torch.no_grad():
        layer.weight.copy_(own[0].unsqueeze(0))
        layer.bias.copy_(own[1].unsqueeze(0))
    less = crossed[best] - before
    record = {
        "arguments": said(arguments),
        "model": kept.name,
        "rows": len(x),
        "nats_before": float(before.mean()),
        "ridge": best,
        "cross_validated": {f"{ridge:g}": float(nats.mean()) for ridge, nats in crossed.items()},
        "cross_validated_less_before": float(less.mean()),
        "stderr_of_that": float(less.std() / len(x) ** 0.5),
        "nats_of_the_rows_fitted_to": float(row_nats(z, x, *own).mean()),
        "environment": environment(device),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    save_model(model.cpu(), arguments.out / "model")
    (arguments.out / "train.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"{record['nats_before']:.3f} before, {best:g}: {crossed[best].mean():.3f} cross-validated", flush=True)
