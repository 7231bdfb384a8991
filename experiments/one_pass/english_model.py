"""Train the model of everyday English that may ship: pieces, 512 of them at a time, 8-bit weights of at most 15 MB.

    python -m experiments.one_pass.english_corpus --out corpus
    python -m experiments.one_pass.english_model --corpus corpus/english.txt --out runs/english --stop-after 1500 \
        --sentences deu-eng.tsv.gz

Started again it goes on where it stopped, bit for bit (``anyfill text train --resume``): several short turns on a GPU
are one training. Every turn ends with a model that can be used. Then

    OUT/model          the best weights so far in 8 bits with a scale for each row, its vocabulary, its card in numbers
    OUT/result.json    bits per piece on held-out sentences with 32-bit and 8-bit weights (the loss of rounding), bytes,
                       total variation between both readings of blanks (``benchmarks.text_consistency``), and cloze
                       questions beside n-grams of the same sentences (``benchmarks.cloze``)

``--smoke`` does all of it in seconds on a CPU: 1M weights, rows of 64, a few steps, a few questions.
"""

import argparse
import json
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from anyfill import text
from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.text.settings import Settings
from anyfill.text.training import train_in_words
from anyfill.text.vocabulary import Vocabulary
from anyfill.training import load_model, load_notes, save_model
from benchmarks.cloze import is_held_out, read_sentences
from benchmarks.common import RESULTS, environment
from experiments.mac.text8_common import write_json

SMOKE: dict[str, Any] = {"size": "1M", "vocabulary_size": 600, "length": 64, "batch": 4, "steps": 6}


def train(arguments: argparse.Namespace) -> list[str]:
    """OUT/run, until it has ended or the time is over."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    said: dict[str, Any] = {
        "size": arguments.size,
        "vocabulary_size": arguments.vocabulary_size,
        "length": arguments.length,
        "batch": arguments.batch,
        "steps": arguments.steps,
        **(SMOKE if arguments.smoke else {}),
    }
    settings = Settings(recipe=arguments.recipe, units="pieces", seed=arguments.seed, valid_share=0.01, **said)
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(arguments.stop_after)
    try:
        resume = (arguments.out / "run" / "config.json").exists()
        return train_in_words([arguments.corpus], arguments.out / "run", settings, resume=resume, say=print)
    except KeyboardInterrupt:
        return [f"stopped after {arguments.stop_after} s; the same command goes on"]
    finally:
        signal.alarm(0)


@torch.no_grad()
def held_out_bits(model: Model, vocabulary: Vocabulary, sentences: list[str], rows: int) -> float:
    """Bits per piece of held-out sentences, one below the other, in rows from nothing."""
    codes = vocabulary.encode("\n".join(sentences)).long()
    length = model.variables
    rows = min(rows, len(codes) // length)
    x = codes[: rows * length].view(rows, length).to(next(model.parameters()).device)
    asked = torch.ones_like(x, dtype=torch.bool)
    value = log_prob(model, x, Question(~asked, asked), rows_per_pass=8).value
    return -float(value.mean()) / length / math.log(2)


def measured(name: str, *arguments: str) -> dict[str, Any]:
    """What a benchmark writes, run by itself."""
    target = f"one_pass/{name}"
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments, "--name", target], check=True)
    return json.loads((RESULTS / f"{target}.json").read_text())["results"]


def main() -> None:
    """Train on, export, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument(
        "--sentences", type=Path, required=True, help="everyday sentences, of which a tenth is held out"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--stop-after", type=int, default=1500, help="seconds of this turn")
    parser.add_argument("--steps", type=int, default=30_000, help="of all turns together")
    parser.add_argument("--recipe", default="one_pass_agreeing")
    parser.add_argument("--size", default="10M")
    parser.add_argument("--vocabulary-size", type=int, default=6144)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--blanks", type=int, default=200)
    parser.add_argument("--no-measure", action="store_true", help="train and export only")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for line in train(arguments):
        print(line, flush=True)
    model, notes = load_model(arguments.out / "run").float(), load_notes(arguments.out / "run")
    save_model(model, arguments.out / "model", notes=notes, eight_bit=True)
    loaded = text.load(arguments.out / "model")
    sentences = [one for one in read_sentences(arguments.sentences) if is_held_out(one)]
    rows = 2 if arguments.smoke else 64
    bits = {
        "32-bit": held_out_bits(model, loaded.vocabulary, sentences, rows),
        "8-bit": held_out_bits(loaded.model, loaded.vocabulary, sentences, rows),
    }
    size = sum(path.stat().st_size for path in (arguments.out / "model").iterdir())
    result: dict[str, Any] = {"bits_per_piece": bits, "bytes": size, "environment": environment()}
    print(f"bits per piece {bits}; {size:,} bytes", flush=True)
    if not arguments.no_measure:
        said = ["--sentences", str(arguments.sentences), "--model", str(arguments.out / "model")]
        few, some = ("4", "4") if arguments.smoke else (str(arguments.blanks), str(arguments.questions))
        result["consistency"] = measured("text_consistency", *said, "--blanks", few)
        fit_on = "3" if arguments.smoke else "100"
        result["cloze"] = measured("cloze", *said, "--questions", some, "--fit-on", fit_on)
    shown = {key: str(value.name) if isinstance(value, Path) else value for key, value in vars(arguments).items()}
    write_json(arguments.out / "result.json", {"arguments": shown, **result}, indent=1)


if __name__ == "__main__":
    main()
