"""Train the character model that ships with anyfill: "one_pass_spans", 6 M, windows of 250 characters of text8.

Trains on the first 11.5 M characters against the clock, keeps the weights of the best validation (first half of the
last 0.5 M), writes them with 16 bits, loads them back, and measures those on the 1,000 chunks of the second half:

    joint, marginal, conditional   bits per character, as in ``text8.py``
    blanks                         one word of 3 to 12 letters of a chunk is asked, its length known, all else given;
                                   share of words met exactly by the greedy fill, by the likeliest of 32 draws, and, to
                                   compare with, by the most common word of that length in the training text

    python -m experiments.one_pass.text_model --seconds 300 --out runs/text_model --turn-after runs/turn

Started again, it does what is not recorded yet: OUT/model, OUT/log.jsonl and OUT/run.json (trained), OUT/result.json
(measured).
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.samplers import CachedChain, Draw, sample
from anyfill.text.recipes import TEXT_SIZES, text_model, text_objective
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.text.vocabulary import TEXT8
from anyfill.training import load_model, save_model
from benchmarks.common import environment
from experiments.mac.text8_ask import ask
from experiments.mac.text8_common import (
    LENGTH,
    Parts,
    after,
    options_of,
    read_parts,
    record_of,
    shown,
    spread,
    train_in_turn,
    write_json,
)
from experiments.where import data_folder

RECIPE = "one_pass_spans"
SHORTEST, LONGEST = 3, 12


@dataclass(frozen=True, slots=True)
class Blanks:
    """One word in each of B chunks: codes (B, N), where it stands, bool (B, N), and the words themselves."""

    x: Tensor
    asked: Tensor
    words: tuple[str, ...]


def blanks_in(chunks: Tensor, seed: int) -> Blanks:
    """A random whole word (spaces on both sides) of 3 to 12 letters in each chunk (B, N) that has one."""
    generator = torch.Generator().manual_seed(seed)
    kept: list[int] = []
    asked = torch.zeros(chunks.shape, dtype=torch.bool)
    words: list[str] = []
    for row, codes in enumerate(chunks.cpu()):
        found = list(re.finditer(rf"(?<= )[a-z]{{{SHORTEST},{LONGEST}}}(?= )", TEXT8.decode(codes)))
        if not found:
            continue
        word = found[int(torch.randint(len(found), (), generator=generator))]
        asked[row, word.start() : word.end()] = True
        kept.append(row)
        words.append(word[0])
    return Blanks(chunks[kept], asked[kept].to(chunks.device), tuple(words))


@torch.no_grad()
def filled(model: Model, blanks: Blanks, *, tries: int, seed: int, rows: int = 2048) -> dict[str, list[str]]:
    """The greedy fill of each blank, and of ``tries`` draws the one of highest log p(word | the rest)."""
    generator = torch.Generator(blanks.x.device).manual_seed(seed)
    found: dict[str, list[str]] = {"greedy": [], "ranked": []}
    for first in range(0, len(blanks.x), max(1, rows // tries)):
        part = slice(first, first + max(1, rows // tries))
        x, asked = blanks.x[part], blanks.asked[part]
        greedy = sample(model, x, Question(~asked, asked), draw=Draw(temperature=0.0), generator=generator).x
        many, wanted = x.repeat_interleave(tries, 0), asked.repeat_interleave(tries, 0)
        question = Question(~wanted, wanted)
        drawn = sample(model, many, question, policy=CachedChain(), generator=generator).x
        value = log_prob(model, drawn, question).value.view(-1, tries)
        best = drawn.view(-1, tries, drawn.shape[1])[torch.arange(len(x)), value.argmax(1).cpu()]
        for name, answer in (("greedy", greedy), ("ranked", best)):
            found[name] += [TEXT8.decode(row[place]) for row, place in zip(answer.cpu(), asked.cpu())]
    return found


def most_common(train: Tensor, words: Sequence[str]) -> list[str]:
    """For each word the most common one of its length in the training text."""
    counts = Counter(TEXT8.decode(train.cpu()).split())
    of_length: dict[int, str] = {}
    for word, _ in counts.most_common():
        of_length.setdefault(len(word), word)
    return [of_length.get(len(word), "") for word in words]


def exact_matches(words: Sequence[str], fills: Sequence[str]) -> dict[str, Any]:
    """Share of words met exactly: of all, and by their length as [share, words]."""
    met = [(len(word), word == fill) for word, fill in zip(words, fills, strict=True)]
    lengths = sorted({length for length, _ in met})
    each = {str(length): [hit for other, hit in met if other == length] for length in lengths}
    share = sum(hit for _, hit in met) / max(len(met), 1)
    return {"share": share, "by_length": {length: [sum(hits) / len(hits), len(hits)] for length, hits in each.items()}}


def train(parts: Parts, arguments: argparse.Namespace, device: torch.device) -> None:
    """OUT/model with 16-bit weights, OUT/log.jsonl, OUT/run.json."""

    def fresh() -> Model:
        settings: Any = {name: getattr(arguments, name) for name in ("size", "dropout", "given", "ignored", "seed")}
        return text_model(RECIPE, LENGTH, TEXT8.size, **settings).to(device)

    options = replace(options_of(arguments, device), ema=arguments.ema)
    done = train_in_turn(
        fresh,
        text_objective(
            RECIPE,
            LENGTH,
            joint_share=arguments.joint_share,
            conditioned_share=arguments.conditioned_share,
            weigh=arguments.weigh,
        ),
        parts,
        options,
        validation=arguments.validation,
        log=arguments.out / "log.jsonl",
        gate=after(arguments.turn_after),
    )
    record = record_of(done)
    notes = vocabulary_notes(TEXT8) | {
        "text": {"lines": False, "length": LENGTH, "recipe": RECIPE},
        "made_by": "experiments/one_pass/text_model.py",
    }
    save_model(done.model.half(), arguments.out / "model", notes=notes)
    said = {"options": asdict(options), "arguments": shown(arguments), "environment": environment(device)}
    write_json(arguments.out / "run.json", record | said, indent=1)
    print(f"{record['steps']} steps in {record['seconds']:.0f} s, best after {record['best_step']}", flush=True)


def measure(parts: Parts, arguments: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    """OUT/result.json, from the 16-bit weights as they are read back."""
    model = load_model(arguments.out / "model").float().to(device)
    chunks = spread(parts.report, arguments.chunks)
    answers = ask(model, chunks, arguments.seed)
    for answer in answers.values():
        del answer["each"]
    blanks = blanks_in(spread(parts.report, arguments.blanks), arguments.seed)
    fills = filled(model, blanks, tries=arguments.tries, seed=arguments.seed)
    fills["most common of its length"] = most_common(parts.train, blanks.words)
    result = {
        "answers": {"chunks": len(chunks), **answers},
        "blanks": {
            "count": len(blanks.words),
            "letters": [SHORTEST, LONGEST],
            "tries": arguments.tries,
            "exact": {name: exact_matches(blanks.words, each) for name, each in fills.items()},
            "first": [[word, *each] for word, *each in zip(blanks.words[:20], *fills.values())],
            "first_are": ["word", *fills],
        },
        "bytes": sum(path.stat().st_size for path in (arguments.out / "model").iterdir()),
        "run": json.loads((arguments.out / "run.json").read_text()),
        "arguments": shown(arguments),
        "environment": environment(device),
    }
    write_json(arguments.out / "result.json", result, indent=1)
    return result


def main() -> None:
    """Train, then measure; whatever is recorded is not done again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--turn-after", type=Path, help="a lock file: wait until nobody holds it, then train")
    parser.add_argument("--size", default="6M", choices=list(TEXT_SIZES))
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--ema", type=float, help="decay of the moving average of the weights; none by default")
    parser.add_argument("--joint-share", type=float, help="rows read from first to last; by default the recipe's own")
    parser.add_argument(
        "--conditioned-share", type=float, help="of the other rows, told what is given; by default none"
    )
    parser.add_argument("--weigh", choices=("terms", "questions"), help="what counts once; by default terms")
    parser.add_argument("--given", choices=("causal", "full"), default="causal", help="how given values are read")
    parser.add_argument("--ignored", choices=("left out", "blank"), default="left out", help="how others are read")
    parser.add_argument("--validation", type=int, default=512, help="chunks that validate, in whole batches")
    parser.add_argument("--chunks", type=int, default=1000, help="chunks that are scored")
    parser.add_argument("--blanks", type=int, default=500)
    parser.add_argument("--tries", type=int, default=32, help="draws for each blank")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    parts = read_parts(arguments.data, device)
    if not (arguments.out / "run.json").exists():
        train(parts, arguments, device)
    if not (arguments.out / "result.json").exists():
        result = measure(parts, arguments, device)
        bits = {name: round(answer["bits"], 3) for name, answer in result["answers"].items() if name != "chunks"}
        exact = {name: round(each["share"], 3) for name, each in result["blanks"]["exact"].items()}
        print(f"bits per character {bits}; words met {exact}; {result['bytes']:,} bytes", flush=True)


if __name__ == "__main__":
    main()
