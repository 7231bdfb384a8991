"""Everyday phrases: 40 short held-out sentences of Tatoeba, each with all the translations that people gave.

    python -m experiments.gmlm.everyday FOLDER [FOLDER ...] --out results/gmlm/everyday.json

FOLDERs are models. The sentences are of 2 to 5 English words, without names, in the order of a hash: nobody chose them,
and none is stored here. A translation counts as right if it is one of the references but for case and marks; chrF is
the best over references. Long answers (more than twice the longest reference) are counted: parallel decoders are prone
to them where several lengths are tried.
"""

import argparse
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from anyfill.disk import write_bytes
from anyfill.translation.cleaning import is_held_out
from anyfill.translation.metrics import sacrebleu_metrics
from anyfill.translation.model import Translator, load
from anyfill.translation.vocabulary import plain
from benchmarks.common import RESULTS, environment
from experiments.gmlm.translation import one_thread
from experiments.where import data_folder

COUNT = 40
NAMES = ("Tom", "Mary", "Maria", "Boston", "John")
ASKED = {
    "en": (
        "Good morning!",
        "Thank you very much.",
        "What time is it?",
        "Excuse me.",
        "I am hungry.",
        "I don't understand.",
    ),
    "de": (
        "Guten Morgen!",
        "Vielen Dank.",
        "Wie spät ist es?",
        "Entschuldigung.",
        "Ich habe Hunger.",
        "Ich verstehe nicht.",
    ),
}
"""What anybody would try first; the answers are kept, nothing is counted."""


def phrases(data: Path, source: str) -> list[tuple[str, list[str]]]:
    """The sources, each with its references."""
    found: dict[str, list[str]] = {}
    with gzip.open(data / "tatoeba_de_en" / "deu-eng.tsv.gz", "rt", encoding="utf-8") as file:
        for line in file:
            english, german = (plain(one) for one in line.rstrip("\n").split("\t")[:2])
            usual = 2 <= len(english.split()) <= 5 and not any(name in english for name in NAMES)
            if usual and is_held_out(english, 0.02, salt="test"):
                pair = (english, german) if source == "en" else (german, english)
                found.setdefault(pair[0], []).append(pair[1])
    order = sorted(found, key=lambda text: hashlib.blake2b(text.encode()).digest())
    return [(text, found[text]) for text in order[:COUNT]]


def bare(text: str) -> str:
    """Words alone, in lower case."""
    return " ".join(re.findall(r"\w+", text.lower()))


def asked(model: Translator, data: Path, lengths: int) -> dict[str, Any]:
    """How a model does."""
    chosen = phrases(data, model.languages[0])
    made = [one.text for one in model.translate([text for text, _ in chosen], lengths=lengths, protect=False)]
    chrf = sacrebleu_metrics().CHRF()
    right = sum(bare(text) in {bare(one) for one in references} for text, (_, references) in zip(made, chosen))
    best = [
        max(chrf.sentence_score(text, [one]).score for one in references) for text, (_, references) in zip(made, chosen)
    ]
    long = sum(
        len(text.split()) > 2 * max(len(one.split()) for one in references)
        for text, (_, references) in zip(made, chosen)
    )
    return {"lengths": lengths, "right": right, "of": len(chosen), "chrf": sum(best) / len(best), "long": long}


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--lengths", nargs="+", type=int, default=[1, 3, 5, 9])
    parser.add_argument("--out", type=Path, default=RESULTS / "gmlm" / "everyday.json")
    options = parser.parse_args(argv)
    one_thread()
    rows: list[dict[str, Any]] = []
    for folder in options.models:
        model = load(folder)
        words = ASKED[model.languages[0]]
        answers = {text: one.text for text, one in zip(words, model.translate(list(words)))}
        for lengths in options.lengths:
            row = {"model": folder.name, "direction": "-".join(model.languages), **asked(model, options.data, lengths)}
            rows.append(row)
            print(row, flush=True)
        rows[-1]["answers"] = answers
        print(answers, flush=True)
    payload = {"name": "gmlm/everyday", "environment": environment("cpu"), "rows": rows}
    write_bytes((json.dumps(payload, indent=1, ensure_ascii=False) + "\n").encode(), options.out)


if __name__ == "__main__":
    main()
