"""Sources that no mark closes, as headings and greetings: translated as they are, and with a full stop lent to them.

    python -m experiments.gmlm.unclosed note                     which share of the training sources ends in a mark
    python -m experiments.gmlm.unclosed measure --sentences 300  results/gmlm/unclosed.json

``measure`` takes every k-th sentence of Multi30k's validation part and takes the mark at the end away, of the
references, too. BLEU and how many translations are more than 1.5 times as long as their reference, in words.
"""

import argparse
import gzip
import json
import time
from dataclasses import replace
from pathlib import Path

import torch

from anyfill.training.checkpoint import read_config, read_tensors, write_folder
from anyfill.translation.metrics import evaluated
from anyfill.translation.model import NOTES, load
from anyfill.translation.sentences import is_open
from benchmarks.common import RESULTS, environment
from experiments.gmlm.ship import HOME
from experiments.where import data_folder

WAYS = ("en-de", "de-en")
TIMES = 3
"""Multi30k counts so often in the training pairs."""
PHRASES = {
    "de-en": ("Guten Morgen", "Gute Nacht", "Danke", "Wie geht es dir", "Ein Hund im Schnee", "Ich habe Hunger"),
    "en-de": ("Good morning", "Good night", "Thank you", "How are you", "A dog in the snow", "I am hungry"),
}


def lines(path: Path) -> list[str]:
    """Of a packed text file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.strip() for line in file]


def note(data: Path) -> None:
    """Put the share into the notes of the models that ship; their weights stay."""
    for way in WAYS:
        language = way[:2]
        near = lines(data / "multi30k" / f"train.{language}.gz")
        column = ("en", "de").index(language)
        far = [line.split("\t")[column] for line in lines(data / "tatoeba_de_en" / "deu-eng.tsv.gz")]
        closed = [not is_open(text) for text in TIMES * near + far if text]
        folder = HOME / f"translation-{way}"
        config = read_config(folder)
        weights = read_tensors(folder, config, "weights")
        config["notes"][NOTES]["closed"] = round(sum(closed) / len(closed), 3)
        write_folder(folder, {key: config[key] for key in ("anyfill", "model", "notes", "training")},
                     {"weights": weights})  # fmt: skip
        print(way, config["notes"][NOTES]["closed"], config["files"]["weights"]["name"])


def measure(data: Path, sentences: int) -> None:
    """Both ways, with and without the lent full stop."""
    torch.set_num_threads(1)
    found: dict[str, dict[str, dict[str, object]]] = {}
    for way in WAYS:
        sides = [lines(data / "multi30k" / f"val.{language}.gz") for language in way.split("-")]
        pairs = [pair for pair in zip(*sides) if pair[0].endswith(".") and pair[1].endswith(".")]
        step = max(len(pairs) // sentences, 1)
        chosen = [tuple(text.rstrip(" .") for text in pair) for pair in pairs[::step][:sentences]]
        sources, references = map(list, zip(*chosen))
        translator = load(way)
        found[way] = {}
        for name, closes in (("as it is", False), ("closed", True)):
            begun = time.process_time()
            asked = replace(translator, closes=closes)
            texts = [one.text.rstrip(" .") for one in asked.translate(sources)]
            longer = sum(len(a.split()) > 1.5 * len(b.split()) for a, b in zip(texts, references))
            phrases = {one: asked.translate(one).text for one in PHRASES[way]}
            found[way][name] = {
                **evaluated(texts, references), "longer": longer, "sentences": len(texts),
                "cpu_seconds": time.process_time() - begun, "phrases": phrases,
            }  # fmt: skip
            print(way, name, json.dumps(found[way][name], ensure_ascii=False), flush=True)
    record = {"set": "Multi30k, validation part, without the mark at the end", "ways": found, **environment("cpu")}
    (RESULTS / "gmlm" / "unclosed.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("note", "measure"))
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--sentences", type=int, default=300)
    arguments = parser.parse_args()
    if arguments.part == "note":
        note(arguments.data)
    else:
        measure(arguments.data, arguments.sentences)


if __name__ == "__main__":
    main()
