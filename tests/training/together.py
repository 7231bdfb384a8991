"""Train under torchrun and write down what the first process saw. Usage: together.py FOLDER."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import torch
from training_standin import TOGETHER, VARIABLES, AskOne, one_pass_model, tiny_model, tiny_rows

from anyfill.recipes import one_pass
from anyfill.training import FitOptions, JsonLines, fit, fit_steps

torch.set_num_threads(1)
folder = Path(sys.argv[1])
# Each process starts from weights of its own; those of the first must win.
rank = int(os.environ["RANK"])
model = one_pass_model(seed=0 if rank == 0 else 7)
objective = one_pass.objective(VARIABLES)
sink = JsonLines(folder / "metrics.jsonl")
reports = fit_steps(
    model, tiny_rows(), objective, TOGETHER, validation=tiny_rows(13, seed=5), folder=folder / "run", metrics=[sink]
)
first = [asdict(next(reports)) for _ in range(5)]
reports.close()
model = one_pass_model(seed=5)
rest = [
    asdict(report)
    for report in fit_steps(
        model,
        tiny_rows(),
        objective,
        TOGETHER,
        validation=tiny_rows(13, seed=5),
        folder=folder / "run",
        resume=True,
        metrics=[sink],
    )
]
weights = {name: value.tolist() for name, value in model.state_dict().items()}
(folder / f"process{rank}.json").write_text(json.dumps({"reports": first + rest, "weights": weights}))
# A budget of time must end the run in both processes at the same step.
result = fit(tiny_model(), tiny_rows(), AskOne(), FitOptions(steps=10**9, seconds=0.2, batch_size=8, device="cpu"))
(folder / f"seconds{rank}.json").write_text(json.dumps(result.steps))
