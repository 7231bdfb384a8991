"""How far a model of text disagrees with itself: total variation between its two readings of a blank.

    python -m benchmarks.text_consistency --sentences deu-eng.tsv.gz [--model FOLDER] [--blanks 200]

Blanks of one and of two codes, as many of each, at places drawn with the seed in held-out sentences (those of
``benchmarks.cloze``); what is compared stands in ``anyfill.text.consistency``. Writes results/text_consistency.json.
"""

import argparse
import random
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import torch

from anyfill import text
from anyfill.model import Model
from anyfill.text.consistency import BlankGap, blank_gap
from anyfill.text.vocabularies import boundary, encode_text
from benchmarks.cloze import is_held_out, read_sentences
from benchmarks.common import spread, write_result


def _gap(model: Model, size: int, blank: tuple[torch.Tensor, int]) -> BlankGap:
    return blank_gap(model, *blank, size)


def main() -> None:
    """All blanks of one code, then all of two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="folder; by default the model that ships")
    parser.add_argument("--blanks", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="text_consistency")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    loaded = text.load(arguments.model)
    chosen = sorted(one for one in read_sentences(arguments.sentences) if is_held_out(one) and len(one.split()) >= 5)
    source = random.Random(arguments.seed)
    source.shuffle(chosen)
    edge = boundary(loaded.vocabulary)
    results: dict[str, Any] = {}
    seconds = 0.0
    for size in (1, 2):
        asked: list[tuple[torch.Tensor, int]] = []
        for sentence in chosen:
            codes = torch.cat([edge, encode_text(loaded.vocabulary, sentence.strip()), edge])
            if len(asked) < arguments.blanks // 2 and 4 + size <= len(codes) <= loaded.length:
                asked.append((codes, source.randrange(2, len(codes) - size - 1)))
        gaps, each = spread(partial(_gap, loaded.model, size), asked, arguments.processes)
        found, covered = [gap.variation for gap in gaps], [gap.covered for gap in gaps]
        seconds += each * len(gaps)
        quarters = statistics.quantiles(found, n=4)
        results[f"{size}"] = {
            "blanks": len(found),
            "median": statistics.median(found),
            "quartiles": [quarters[0], quarters[2]],
            "mean": statistics.mean(found),
            "covered": statistics.mean(covered),
        }
        print(f"{size} codes: median {statistics.median(found):.3f} of {len(found)}", flush=True)
    said = {key: value.name if isinstance(value, Path) else value for key, value in vars(arguments).items()}
    about = {"arguments": said, "model": loaded.name if arguments.model is None else arguments.model.name}
    write_result(arguments.name, {**about, "cpu_seconds": seconds, "results": results})


if __name__ == "__main__":
    main()
