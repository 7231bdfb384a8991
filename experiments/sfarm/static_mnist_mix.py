"""The mean of the weights of runs that share a beginning, for ``static_mnist``.

    python -m experiments.sfarm.static_mnist mix --out MIX --of RUN OTHER ...

Runs that went on from the same weights, each with noise of its own, end in one valley of the loss: the mean of their
weights has less of the noise of each, and less of what each has learnt by heart (Wortsman et al. 2022, Model soups). It
is one model of the same size, so an order of its is scored in one pass as before. Validation rows say what each run
and the mean of all come to in the raster order; the best becomes MIX/model, and MIX/train.json says all of it.
"""

import argparse
import copy
import json

import torch
from torch import Tensor

from anyfill.model import Model
from anyfill.training import load_model, save_model
from benchmarks.common import environment
from experiments.sfarm.static_mnist import bring_home, device_of, held_out, said, settled
from experiments.sfarm.static_mnist_score import raster_rank, terms


def mean_of(models: list[Model]) -> Model:
    """A model whose every weight is the mean of theirs."""
    mean = copy.deepcopy(models[0])
    with torch.no_grad():
        for name, one in mean.state_dict().items():
            if one.is_floating_point():
                one.copy_(torch.stack([model.state_dict()[name] for model in models]).mean(0))
    return mean


def raster_nats(model: Model, x: Tensor) -> float:
    """Exact nats of pictures (B, N) in the model's own order."""
    return float(-terms(model, x, raster_rank(model, x)).mean())


def mix(arguments: argparse.Namespace) -> None:
    """Each run, and the mean of all: the best by validation is kept."""
    device, runs = device_of(), list(arguments.of)
    torch.set_float32_matmul_precision("high")
    models = [load_model(run / "model") for run in runs]
    candidates = {run.name: model for run, model in zip(runs, models)} | {"mean": mean_of(models)}
    valid, found = held_out(arguments).to(device), dict[str, float]()
    for name, model in candidates.items():
        found[name] = raster_nats(settled(copy.deepcopy(model), arguments).to(device).eval(), valid)
        print(f"{name}: valid raster {found[name]:.3f}", flush=True)
    best = min(found, key=found.__getitem__)
    arguments.out.mkdir(parents=True, exist_ok=True)
    save_model(candidates[best], arguments.out / "model")
    bring_home(candidates[best], arguments)
    record = {
        "arguments": said(arguments),
        "weights": best,
        "validation": found,
        "environment": environment(device),
    }
    (arguments.out / "train.json").write_text(json.dumps(record, indent=1) + "\n")
