"""Translate a test once more with a model of a sitting, on this machine: other options, the same sentences.

    python -m experiments.gmlm.again MODEL --name longer --tests FOLDER --out again.json --lengths 5

Writes what ``experiments.gmlm.scores`` reads. Candidates are ranked as is the default now, by the mean and a reward.
"""

import argparse
import json
import time
from pathlib import Path

from anyfill.disk import write_bytes
from anyfill.translation.hypotheses import Decoding
from anyfill.translation.model import load
from experiments.gmlm.translation import one_thread


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--name", required=True, help="of the step")
    parser.add_argument("--tests", type=Path, required=True)
    parser.add_argument("--test", default="multi30k")
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--lengths", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(argv)
    one_thread()
    model = load(options.model)
    direction = "-".join(model.languages)
    pairs = json.loads((options.tests / f"tests-{direction}.json").read_text(encoding="utf-8"))[options.test]
    begun = time.perf_counter()
    made = model.translate([a for a, _ in pairs], passes=options.passes, lengths=options.lengths, protect=False)
    note = {
        "step": options.name,
        "recipe": model.recipe,
        "data": "distilled",
        "corpus": "all",
        "direction": direction,
        "test": options.test,
        "passes": options.passes,
        "lengths": options.lengths,
        "beam": 4,
        "reward": Decoding().reward,
        "prior": Decoding().prior,
        "seconds": time.perf_counter() - begun,
        "mean_passes": sum(one.passes for one in made) / len(made),
        "texts": [one.text for one in made],
    }
    write_bytes(json.dumps(note, ensure_ascii=False).encode(), options.out)


if __name__ == "__main__":
    main()
