"""How far to go from the models of pictures after the GPU to those trained on: how ``shipped mix --share`` was chosen.

    python -m experiments.sfarm.shipped_mixes digits --start START --runs RUN ...      results/sfarm/shipped_mixes.json

Of training pictures that are held out: nats of the whole picture and of the lower half given the upper, less those of
the start, paired; and of the lower half's pixels asked alone the bits that they cost and the entropy that is said.
START and RUN are folders of models.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from anyfill.evaluation import log_prob
from anyfill.images.reading import Pictures
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.training import load_model
from benchmarks.common import RESULTS, write_result
from experiments.sfarm.neighbours import alone
from experiments.sfarm.shipped import FOLDERS, HELD_OUT, about, asked_in, begin_with, read, rows_of

NAME = "sfarm/shipped_mixes"
ASKED = ("everything", "bottom")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=tuple(FOLDERS))
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--runs", type=Path, nargs="+", required=True)
    parser.add_argument("--shares", type=float, nargs="+", default=[1.0, 0.7, 0.5])
    parser.add_argument("--pictures", type=int, default=150)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    pictures = Pictures(read(arguments.model, "train").pixels[-HELD_OUT:])
    held, what = rows_of(arguments.model, pictures).rows().x, about(arguments.model, pictures)
    x, start = held[: arguments.pictures], load_model(arguments.start).float()
    before = {asked: nats(start, x, asked) for asked in ASKED}
    found: list[dict[str, Any]] = []
    for run in arguments.runs:
        trained = load_model(run).float()
        weights = {name: one.clone() for name, one in trained.state_dict().items()}
        for share in arguments.shares:
            begin_with(trained, start)
            for name, one in trained.state_dict().items():
                if one.is_floating_point():
                    one.lerp_(weights[name], share)
            less = {asked: nats(trained, x, asked) - before[asked] for asked in ASKED}
            line: dict[str, Any] = {"run": run.parent.name, "share": share}
            line |= {
                asked: {"less_start": float(one.mean()), "stderr": float(one.std() / math.sqrt(len(one)))}
                for asked, one in less.items()
            }
            found.append(line | {"alone": alone(trained, held[::100], what, "bottom")})
            print(found[-1], flush=True)
    path = RESULTS / f"{NAME}.json"
    others = json.loads(path.read_text())["models"] if path.exists() else {}
    told = {"pictures": len(x), "start": {asked: float(one.mean()) for asked, one in before.items()}, "mixes": found}
    write_result(NAME, {"models": {**others, arguments.model: told}})


@torch.no_grad()
def nats(model: Model, x: Tensor, asked: str) -> Tensor:
    """(B,): of the part of each picture that is asked given the rest, exact."""
    wanted = asked_in(asked).expand(len(x), -1)
    return -log_prob(model, x, Question(~wanted, wanted), rows_per_pass=50).value


if __name__ == "__main__":
    main()
