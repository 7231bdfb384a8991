"""SFARM's Table 3: bits per dimension of CIFAR-10 at equal seconds, whole pictures and marginals of random parts.

    python -m experiments.sfarm.table3 --out RUN --seconds 500 --width 512 --unet-width 128 --test-rows 2000

Published models trained about 1,000 times as long: nothing here competes with 2.69 to 2.97 bits. What is compared is
what the same seconds of the same GPU buy. One-pass: a token per pixel, three channel heads, exact in one pass.
U-Nets: the stratified bound (MAC: steps of its chain); SFARM's elements are pixels with coupled channels, MAC's and
ARDM's single ones.

Marginals: log p of all channels of a random subset of pixels (5 sizes) from nothing, divided by what is asked. One-pass
answers in one pass; the U-Nets of MAC and ARDM as a chain in one order, a pass for each sub-pixel (so short ones, of a
few rows).
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.evaluation import log_prob, mean_of
from anyfill.model import Model
from anyfill.questions import Question
from experiments.sfarm.picture_scores import in_halves, joint_scores, rows_per_pass
from experiments.sfarm.pictures import ONE_PASS, Data, load, parser_of, spread, trained, write

SHARES = (0.02, 0.1, 0.3, 0.6, 0.9)


def marginals(
    method: str, model: Model, data: Data, arguments: argparse.Namespace, rows: int, longest: int
) -> dict[str, dict[str, float]]:
    """Bits per asked sub-pixel of random subsets from nothing; kept beside the model, those of each row, too."""
    path: Path = arguments.out / method / "marginals.json"
    if path.exists():
        return json.loads(path.read_text())
    found: dict[str, dict[str, float]] = {}
    kept: dict[str, np.ndarray[Any, Any]] = {}
    device = next(model.parameters()).device
    x = data.test[spread(len(data.test), rows)].to(device)
    source = torch.Generator().manual_seed(0)
    for share in SHARES:
        pixels = torch.rand(len(x), x.shape[1] // data.shape[2], generator=source) < share
        pixels[:, 0] |= ~pixels.any(1)
        asked = pixels.repeat_interleave(data.shape[2], 1)
        if method not in ONE_PASS and int(asked.sum(1).max()) > longest:
            continue  # as many passes a row as are asked
        question = Question(torch.zeros_like(asked).to(device), asked.to(device))
        factorization = None if method in ONE_PASS else "difference" if method.startswith("mac") else None
        with in_halves(model):
            value = log_prob(model, x, question, factorization=factorization, rows_per_pass=rows_per_pass(x)).value  # type: ignore[arg-type]
        bits = -value / (asked.sum(1).to(device) * math.log(2))
        mean = mean_of(bits)
        found[f"{100 * share:.0f} %"] = {"bits_per_asked": mean.value, "stderr": mean.stderr, "rows": len(x)}
        kept[f"{100 * share:.0f} %"] = bits.cpu().numpy()
    np.savez_compressed(path.with_suffix(".npz"), **kept)
    path.write_text(json.dumps(found, indent=1) + "\n")
    return found


def main() -> None:
    parser = parser_of(__doc__, sets=("cifar10",), methods=("one-pass", "ardm", "mac", "sfarm"))
    parser.add_argument("--marginal-rows", type=int, default=200)
    parser.add_argument("--longest", type=int, default=450, help="longest marginal asked of a U-Net, in passes")
    arguments = parser.parse_args()
    data = load(arguments)
    found = {}
    for method in arguments.methods:
        model = trained(method, data, arguments)
        joint = joint_scores(method, model, data, arguments)
        found[method] = {"joint": joint, "rows": len(data.test)}
        if not method.startswith("sfarm"):
            found[method]["marginals"] = marginals(
                method, model, data, arguments, arguments.marginal_rows, arguments.longest
            )
        print(f"{method}: {joint['bits_per_dim']:.3f} +- {joint['bits_stderr']:.3f} bits ({joint['kind']})", flush=True)
        write(arguments, f"table3_{arguments.set}", {"methods": found})


if __name__ == "__main__":
    main()
