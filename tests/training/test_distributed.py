"""Two processes with half of each batch learn what one process learns with the whole."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from training_standin import TOGETHER, VARIABLES, one_pass_model, tiny_rows

from anyfill.recipes import one_pass
from anyfill.training import fit_steps, load_model


def test_two_processes_follow_the_curve_of_one_also_after_a_resumption(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    program += [str(Path(__file__).with_name("together.py")), str(tmp_path)]
    running = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    model, objective = one_pass_model(), one_pass.objective(VARIABLES)
    alone = [asdict(r) for r in fit_steps(model, tiny_rows(), objective, TOGETHER, validation=tiny_rows(13, seed=5))]
    output, _ = running.communicate(timeout=200)
    assert running.returncode == 0, output

    seen = [json.loads((tmp_path / f"process{rank}.json").read_text()) for rank in range(2)]
    for together in seen:
        assert len(together["reports"]) == len(alone) == 12
        assert alone[-1]["loss"] < alone[0]["loss"]
        for one, two in zip(alone, together["reports"]):
            for name in ("step", "loss", "learning_rate", "gradient_norm", "validation_loss"):
                assert two[name] == pytest.approx(one[name], abs=1e-4), name
    assert seen[0]["weights"] == seen[1]["weights"], "both processes end with the same weights"
    for name, value in model.state_dict().items():
        torch.testing.assert_close(torch.tensor(seen[0]["weights"][name]), value, rtol=1e-3, atol=1e-4)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 13)), "only the first process writes"
    saved = load_model(tmp_path / "run").state_dict()
    assert {name: value.tolist() for name, value in saved.items()} == seen[0]["weights"]
    ends = [json.loads((tmp_path / f"seconds{rank}.json").read_text()) for rank in range(2)]
    assert ends[0] == ends[1] > 0
