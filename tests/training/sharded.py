"""Train sharded under torchrun and write down what each process saw. Usage: sharded.py FOLDER [compile]."""

import json
import os
import shutil
import signal
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed
from torch import nn
from training_standin import TOGETHER, VARIABLES, AskOne, one_pass_model, tiny_model, tiny_rows, uneven_model

from anyfill.recipes import one_pass
from anyfill.training import FitOptions, fit, fit_steps
from anyfill.training.distributed import local
from anyfill.training.run import Run

torch.set_num_threads(1)
folder, rank = Path(sys.argv[1]), int(os.environ["RANK"])
SHARDED = replace(TOGETHER, shard=True)
MUON = replace(SHARDED, optimizer="muon")
seen: dict[str, object] = {}


def started(options: FitOptions, seed: int = 7, **others):
    """A run from weights that differ by process (those of the first must win), and its model."""
    model = one_pass_model(seed=0 if rank == 0 else seed)
    others = {"validation": tiny_rows(13, seed=5)} | others
    return model, fit_steps(model, tiny_rows(), one_pass.objective(VARIABLES), options, **others)


def weights(model: nn.Module):
    return {name: value.tolist() for name, value in model.state_dict().items()}


def ended(options: FitOptions, **others):
    model, reports = started(options, **others)
    curve = [[report.loss, report.gradient_norm, report.validation_loss] for report in reports]
    return {"curve": curve, "weights": weights(model)}


if sys.argv[2:] == ["compile"]:
    seen["compiled"] = ended(replace(MUON, compile=True))
    (folder / f"process{rank}.json").write_text(json.dumps(seen))
    sys.exit()

seen["adamw"] = ended(SHARDED)
seen["muon"] = ended(MUON, folder=folder / "whole")
seen["bf16-mixed"] = ended(replace(SHARDED, precision="bf16-mixed"))
seen["bf16-true"] = ended(replace(SHARDED, precision="bf16-true"))

# Stopped, then resumed in three ways; the fourth, alone, is the test's own.
model, reports = started(MUON, folder=folder / "stopped")
for _ in range(5):
    next(reports)
reports.close()
seen["stopped"] = weights(model)
torch.distributed.barrier()
if rank == 0:
    for copy in ("copied", "alone"):
        shutil.copytree(folder / "stopped", folder / copy)
torch.distributed.barrier()
seen["resumed"] = ended(MUON, seed=5, folder=folder / "stopped", resume=True)
seen["copied"] = ended(replace(MUON, shard=False), folder=folder / "copied", resume=True)
seen["begun alone"] = ended(MUON, folder=folder / "begun", resume=True)
seen["again"] = ended(MUON, folder=folder / "stopped", resume=True)

# Ctrl-C in one process stops both after the same step.
model, reports = started(MUON, folder=folder / "interrupted")
try:
    with closing(reports):
        for report in reports:
            if rank == 1 and report.step == 4:
                signal.raise_signal(signal.SIGINT)
    seen["interrupted"] = None
except KeyboardInterrupt:
    seen["interrupted"] = weights(model)
torch.distributed.barrier()
saved = json.loads((folder / "interrupted" / "config.json").read_text())
seen["interrupted at"] = saved["training"]["progress"]["step"]
seen["after the interrupt"] = ended(MUON, folder=folder / "interrupted", resume=True)

# One validation row: the second process has no batch at all; and another objective calls the model from outside.
seen["one row"] = ended(SHARDED, validation=tiny_rows(1, seed=5), validation_objective=one_pass.objective(VARIABLES))

model = uneven_model()
fit(model, tiny_rows(), AskOne(), MUON)
seen["uneven"] = weights(model)

run = Run(one_pass_model(), tiny_rows(), one_pass.objective(VARIABLES), MUON)
for _ in zip(range(2), run.reports()):
    pass
states = [state for optimizer in run.optimization.optimizers for state in optimizer.state.values()]
moments = [value for state in states for name, value in state.items() if name != "step"]
for name, tensors in (("weights held", list(run.model.parameters())), ("state held", moments)):
    seen[name] = [sum(local(each).numel() for each in tensors), sum(each.numel() for each in tensors)]

quick = FitOptions(steps=10**9, seconds=0.2, batch_size=8, device="cpu", shard=True)
seen["seconds"] = fit(tiny_model(), tiny_rows(), AskOne(), quick).steps
model = tiny_model()
model.network.scalar = nn.Parameter(torch.tensor(1.0))
try:
    fit(model, tiny_rows(), AskOne(), quick)
except ValueError as error:
    seen["refused"] = str(error)
(folder / f"process{rank}.json").write_text(json.dumps(seen))
