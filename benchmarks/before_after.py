"""Is this tree as fast as another one? The same work in both, by turns, in one run.

    python -m benchmarks.before_after OTHER/src [--model FOLDER] [--turns 3]

    score    log p of 64 rows of 250 variables by a one-pass network
    sample   4 rows of 250 variables drawn one by one from the cache
    train    10 steps of that network's smaller sister on scikit-learn's digits
    fill     5,000 rows by a saved table model (``benchmarks.same_answers --make`` makes one), if FOLDER is named

Each is timed in CPU seconds of its own process, one thread. Printed: the median of each tree, and their ratio: above 1
this tree is the faster one. Writes results/before_after.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.common import ROOT, write_result

WORK = """
import json, sys, time
import numpy as np, pandas as pd, torch
torch.set_num_threads(1)
from sklearn.datasets import load_digits
from anyfill import FitOptions, Model, Question, Rows, TableModel, fit, log_prob, recipes, sample
from anyfill.likelihoods import Categorical
from anyfill.networks import Discrete, OnePassTransformer

def timed(work):
    start = time.process_time()
    work()
    return time.process_time() - start

torch.manual_seed(0)
new = hasattr(FitOptions(), "optimizer")
objective = recipes.one_pass.objective if new else recipes.one_pass
network = OnePassTransformer(Discrete(27), (250,), 27, width=256, depth=4, heads=4)
model = Model(network, Categorical(27)).eval()
trained = "factorizations" if new else "readings"
setattr(model, trained, getattr(objective(250), trained))
x, question = torch.randint(27, (64, 250)), Question.of(250, batch=64)
few, generator = Question.of(250, batch=4), torch.Generator().manual_seed(0)
pixels = torch.tensor(load_digits().images.reshape(-1, 64), dtype=torch.int64)
small = Model(OnePassTransformer(Discrete(17), (8, 8), 17, width=96, depth=3, heads=3), Categorical(17))
options = FitOptions(steps=10, batch_size=64, **{"optimizer" if new else "optimiser": "muon"})
log_prob(model, x[:2], Question.of(250, batch=2))  # warm
found = {
    "score": timed(lambda: log_prob(model, x, question)),
    "sample": timed(lambda: sample(model, x[:4], few, generator=generator)),
    "train": timed(lambda: fit(small, Rows.from_values(pixels), objective(64), options)),
}
if sys.argv[1]:
    table = TableModel.load(sys.argv[1])
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "area": rng.lognormal(size=5000), "length": rng.normal(size=5000), "rooms": rng.integers(1, 6, 5000) * 1.0,
        "kind": rng.choice(["house", "flat"], 5000), "level": rng.choice([0.0, 0.5, 1.0], 5000),
    })
    holes = frame.mask(rng.random(frame.shape) < 0.2)
    found["fill"] = timed(lambda: table.transform(holes))
print(json.dumps(found))
"""


def measure(src: Path, work: str, *words: str) -> dict[str, float]:
    """CPU seconds of each piece of work with one tree."""
    environment = {**os.environ, "PYTHONPATH": str(src)}
    done = subprocess.run(
        [sys.executable, "-c", work, *words], env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def compared(other: Path, work: str, *words: str, turns: int) -> dict[str, dict[str, float]]:
    """Medians of both trees for each piece of work, and their ratio, printed too."""
    trees = {"before": other.resolve(), "after": ROOT / "src"}
    seconds = [{name: measure(src, work, *words) for name, src in trees.items()} for _ in range(turns)]
    found: dict[str, dict[str, float]] = {}
    for kind in seconds[0]["after"]:
        before, after = (statistics.median(turn[name][kind] for turn in seconds) for name in ("before", "after"))
        found[kind] = {"before_seconds": before, "after_seconds": after, "before_over_after": before / after}
        print(f"{kind:9s}{before:8.2f} s {after:8.2f} s   {before / after:.2f} x")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="src of the other tree")
    parser.add_argument("--model", default="", help="folder of a saved table model")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    found = compared(arguments.other, WORK, arguments.model, turns=arguments.turns)
    print(f"wrote {write_result('before_after', {'turns': arguments.turns, 'work': found})}")


if __name__ == "__main__":
    main()
