"""Which reading ranks words best: p(text), the direct answer given both sides, n-grams, or products of them?

    python -m benchmarks.cloze_readings --sentences deu-eng.tsv.gz [--questions 200] [--rows FILE] [--processes 4]

The questions are those of ``benchmarks.cloze``. 5-grams of the sentences that are not held out propose 40 words for
each, and 16 of the right length; the same words are then ranked in every way,

    p(text)^a  p(word | both sides, its number of pieces)^d  p(5-gram)^k,

so that the ways differ in nothing but the ranking. A word that the 5-grams do not propose is missed by all of them
(``proposed`` says how often it is there). Each question is appended to the file ROWS as soon as it is answered; started
again with it, the questions that are there are not asked again. Writes results/cloze_readings.json.
"""

import argparse
import json
import math
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill import text
from anyfill.evaluation import shared_prefix_log_prob
from anyfill.text.blanks import BlankWindow, Lengths
from anyfill.text.counting import counted_log_prob, likely_words
from anyfill.text.model import TextModel
from anyfill.text.ngram import KneserNey
from anyfill.text.vocabularies import encode_text
from anyfill.text.word_search import _direct as direct  # pyright: ignore[reportPrivateUsage]
from benchmarks.cloze import WORD, Cloze, by_counts, cloze_questions, counted, is_for_fitting, is_held_out
from benchmarks.cloze import read_sentences as sentences_of
from benchmarks.common import spread, write_result

WAYS: dict[str, tuple[float, float, float]] = {
    "p(text)": (1.0, 0.0, 0.0),
    "direct": (0.0, 1.0, 0.0),
    "both readings, half each": (0.5, 0.5, 0.0),
    "5-gram": (0.0, 0.0, 1.0),
    "p(text) and 5-gram": (0.5, 0.0, 0.5),
    "direct and 5-gram": (0.0, 0.5, 0.5),
    "all three": (1 / 3, 1 / 3, 1 / 3),
}


def answered(loaded: TextModel, counts: KneserNey, path: Path, one: Cloze) -> None:
    """Append what every reading says of the words that are proposed for one question."""
    lead = " " if one.before.endswith(" ") else ""
    before = encode_text(loaded.vocabulary, one.before.removesuffix(" "))
    behind = encode_text(loaded.vocabulary, one.behind)
    words = likely_words(counts, one.before, one.behind, n=40)
    words += likely_words(counts, one.before, one.behind, n=16, pattern="_" * len(one.word))
    words = list(dict.fromkeys(words))
    codes = [encode_text(loaded.vocabulary, lead + word) for word in words]
    sizes = torch.tensor([len(before) + len(code) + len(behind) for code in codes])
    x = torch.zeros(len(words), loaded.length, dtype=torch.int64)
    for row, code in enumerate(codes):
        x[row, : int(sizes[row])] = torch.cat([before, code, behind])
    window = BlankWindow((before, behind), (Lengths(1, 9, is_word=True),), whole=True)
    found: dict[str, Any] = {"text": one.text("____"), "word": one.word.lower(), "ws": [word.lower() for word in words]}
    found["J"] = torch.cat([*shared_prefix_log_prob(loaded.model, x, sizes)]).tolist()
    found["D"] = direct(loaded.model, window, codes).tolist()
    found["K"] = [counted_log_prob(counts, one.text(word)) for word in words]
    found["kn5"] = {str(stated): by_counts(counts, one, stated=stated, fold=False) for stated in (True, False)}
    with path.open("a") as file:
        file.write(json.dumps(found) + "\n")


def best(row: dict[str, Any], weights: tuple[float, float, float], *, stated: bool) -> list[str]:
    """The five best words of a question."""
    value = sum(weight * np.asarray(row[name]) for weight, name in zip(weights, "JDK"))
    ranked = (row["ws"][place] for place in np.argsort(-np.asarray(value), kind="stable").tolist())
    return list(dict.fromkeys(word for word in ranked if not stated or len(word) == len(row["word"])))[:5]


def shares(right: list[list[bool]]) -> dict[str, float]:
    """Shares of right words, first and five best, with standard errors."""
    found: dict[str, float] = {}
    for name, hits in zip(("first", "five"), right):
        share = sum(hits) / max(len(hits), 1)
        found |= {name: share, f"{name}_stderr": math.sqrt(share * (1 - share) / max(len(hits), 1))}
    return found


def main() -> None:
    """Ask, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="folder; by default the model that ships")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rows", type=Path, required=True, help="a file of lines, one for each question answered")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--name", default="cloze_readings")
    arguments = parser.parse_args()
    sentences = sentences_of(arguments.sentences)
    train = [one for one in sentences if not is_held_out(one)]
    known = {word for word, _ in Counter(w.lower() for one in train for w in WORD.findall(one)).most_common(10_000)}
    held = [one for one in sentences if is_held_out(one) and not is_for_fitting(one)]
    asked = cloze_questions(held, known, 500, 0)[: arguments.questions]
    done = [json.loads(line) for line in arguments.rows.read_text().splitlines()] if arguments.rows.exists() else []
    open_ones = [one for one in asked if one.text("____") not in {row.get("text") for row in done}]
    if open_ones:
        work = partial(answered, text.load(arguments.model), counted(train, 5, 30_000), arguments.rows)
        spread(work, open_ones, arguments.processes)
    rows = [json.loads(line) for line in arguments.rows.read_text().splitlines()]
    results: dict[str, Any] = {}
    for stated in (True, False):
        five: dict[str, list[list[str]]] = {"5-gram, all words": [row["kn5"][str(stated)] for row in rows]}
        five |= {name: [best(row, weights, stated=stated) for row in rows] for name, weights in WAYS.items()}
        each: dict[str, Any] = {}
        for name, answers in five.items():
            pairs = list(zip(rows, answers))
            first = [bool(words) and words[0] == row["word"] for row, words in pairs]
            each[name] = shares([first, [row["word"] in words for row, words in pairs]])
            print(
                f"{'stated' if stated else 'unstated':9s} {name:26s}", {k: round(v, 3) for k, v in each[name].items()}
            )
        results["stated" if stated else "unstated"] = each
    proposed = sum(row["word"] in row["ws"] for row in rows) / len(rows)
    write_result(arguments.name, {"questions": len(rows), "proposed": proposed, "results": results})


if __name__ == "__main__":
    main()
