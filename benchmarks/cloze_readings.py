"""How ``fill`` ranks words: its own proposals and those of counts, by every reading, weights chosen on other questions.

    python -m benchmarks.cloze_readings --sentences deu-eng.tsv.gz --rows FILE [--questions 500] [--processes 4]

The questions are those of ``benchmarks.cloze``, with stated and unstated length, and as many sentences of the part that
may fit weights as --fit-on says. For each, the words are what ``fill`` compares: its own proposals (beams from the left
and given both sides), and what 5-grams of the sentences that are not held out propose as well (``fill`` with
``counts``). A stated length is told to ``fill`` by a ``_`` for each letter; a word with an apostrophe, which is no
letter, is looked for as where its length is not stated, and among the answers of that length. Of each word are kept

    J  log p(text with the word)     D  log p(word | both sides, its number of pieces)     K  log p by the 5-grams,

and words are ranked by a J + d D + k K. ``TextModel.readings`` are a and d of ``fill``. The weights of a row of the
table were listed beforehand (``WAYS``); those that are best on the fitting part are named ("chosen": the sum of the
four shares). For the first questions of all ``fill`` itself is asked, and must answer the same five words.

Each question is appended to the file ROWS as soon as it is answered; started again with it, the questions that are
there are not asked again. Writes results/cloze_readings.json: shares of right words, first and among five, with
standard errors, beside 3-grams and 5-grams over all their words.
"""

import argparse
import json
import math
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill import text
from anyfill.evaluation import shared_prefix_log_prob
from anyfill.text.blanks import blank_window, sheet_of
from anyfill.text.counting import counted_log_prob, likely_words
from anyfill.text.model import TextModel
from anyfill.text.ngram import KneserNey
from anyfill.text.vocabularies import encode_text
from anyfill.text.word_search import direct_log_probs, word_candidates
from benchmarks.cloze import WORD, Cloze, by_counts, cloze_questions, counted, is_for_fitting, is_held_out
from benchmarks.cloze import read_sentences as sentences_of
from benchmarks.common import spread, write_result

WAYS: dict[str, tuple[float, float, float]] = {
    "p(text)": (1.0, 0.0, 0.0),
    "p(text) and direct, 2 : 1": (2 / 3, 1 / 3, 0.0),
    "p(text) and direct, half each": (0.5, 0.5, 0.0),
    "p(text) and direct, 1 : 2": (1 / 3, 2 / 3, 0.0),
    "direct": (0.0, 1.0, 0.0),
}
COUNTED: dict[str, tuple[float, float, float]] = {
    "5-gram": (0.0, 0.0, 1.0),
    "p(text) and 5-gram, half each": (0.5, 0.0, 0.5),
    "all three, a third each": (1 / 3, 1 / 3, 1 / 3),
    "p(text), direct and half of 5-gram": (0.4, 0.4, 0.2),
}
CHECKED = 4


def asked_text(one: Cloze, *, stated: bool) -> str:
    """The sentence with its blank, as ``fill`` reads it."""
    before, behind = (part.replace("_", r"\_").replace("[", r"\[") for part in (one.before, one.behind))
    return f"{before}{'_' * len(one.word) if stated else '____'}{behind}"


def compared(loaded: TextModel, counts: KneserNey, one: Cloze, *, stated: bool) -> dict[str, Any]:
    """Every word that is proposed, how many of them by the model, and what each reading says of it."""
    template = loaded.template(asked_text(one, stated=stated), letters=stated)
    sheet = sheet_of(template, loaded.vocabulary, lines=loaded.lines)
    window = blank_window(sheet, range(1), (), loaded.length)
    *_, (found, _) = word_candidates(replace(loaded, readings=(1.0, 0.0)), sheet, 0, window)
    own = [] if found is None else found[0]
    words, codes, joint = [c.answers[0] for c in own], [c.codes[0] for c in own], [c.log_prob for c in own]
    before, behind = window.given
    pattern: dict[str, Any] = {"pattern": "_" * len(one.word)} if stated else {}
    for word in likely_words(counts, one.before, one.behind, **pattern) if len(behind) else ():
        if word not in words:
            words.append(word)
            codes.append(encode_text(loaded.vocabulary, sheet.leads[0] + word))
    sizes = torch.tensor([len(before) + len(code) + len(behind) for code in codes[len(own) :]])
    x = torch.zeros(len(sizes), loaded.length, dtype=torch.int64)
    for row, code in enumerate(codes[len(own) :]):
        x[row, : int(sizes[row])] = torch.cat([before, code, behind])
    order = sizes.argsort(stable=True)
    if len(sizes):
        more = torch.cat([*shared_prefix_log_prob(loaded.model, x[order], sizes[order])])
        joint += more[order.argsort()].tolist()
    direct = direct_log_probs(loaded.model, window, codes).tolist() if len(behind) else [0.0] * len(codes)
    said = [counted_log_prob(counts, one.text(word)) for word in words]
    numbers = {name: [round(value, 4) for value in each] for name, each in (("J", joint), ("D", direct), ("K", said))}
    return {"words": words, "own": len(own), **numbers}


def answered(loaded: TextModel, grams: dict[int, KneserNey], path: Path, asked: tuple[str, Cloze]) -> None:
    """Append what every reading says of the words that are proposed for one question."""
    part, one = asked
    row: dict[str, Any] = {"part": part, "text": one.text("____"), "word": one.word.lower()}
    for name, stated in (("unstated", False), ("stated", True)):
        spelt = stated and one.word.isalpha()
        row[name] = dict(row["unstated"]) if stated and not spelt else compared(loaded, grams[5], one, stated=stated)
        for order, counts in grams.items():
            row[name][f"{order}-gram"] = by_counts(counts, one, stated=stated, fold=False)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def best(said: dict[str, Any], word: str, weights: tuple[float, float, float], *, stated: bool, own: bool) -> list[str]:
    """The five best words of a question."""
    count = said["own"] if own else len(said["words"])
    value = sum(weight * np.asarray(said[name][:count]) for weight, name in zip(weights, "JDK"))
    ranked = (said["words"][place].lower() for place in np.argsort(-np.asarray(value), kind="stable").tolist())
    return list(dict.fromkeys(one for one in ranked if not stated or len(one) == len(word)))[:5]


def shares(rows: list[dict[str, Any]], answers: list[list[str]]) -> dict[str, float]:
    """Shares of right words, first and five best, with standard errors."""
    right = {
        "first": [five[:1] == [row["word"]] for row, five in zip(rows, answers)],
        "five": [row["word"] in five for row, five in zip(rows, answers)],
    }
    found: dict[str, float] = {}
    for name, hits in right.items():
        share = sum(hits) / max(len(hits), 1)
        found |= {name: share, f"{name}_stderr": math.sqrt(share * (1 - share) / max(len(hits), 1))}
    return found


def table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Every way on these questions."""
    results: dict[str, Any] = {}
    for name, stated in (("stated", True), ("unstated", False)):
        each = {f"{order}-gram": shares(rows, [row[name][f"{order}-gram"] for row in rows]) for order in (3, 5)}
        for title, ways, own in (("fill", WAYS, True), ("fill with counts", WAYS | COUNTED, False)):
            for way, weights in ways.items():
                five = [best(row[name], row["word"], weights, stated=stated, own=own) for row in rows]
                each[f"{title}: {way}"] = shares(rows, five)
            at = [row[name]["words"][: row[name]["own"] if own else None] for row in rows]
            there = [row["word"] in map(str.lower, words) for row, words in zip(rows, at)]
            each[f"{title}: proposed"] = {"share": sum(there) / max(len(there), 1)}
        results[name] = each
    return results


def chosen(results: dict[str, Any], title: str) -> str:
    """The way with the greatest sum of the four shares."""
    names = [name for name in results["stated"] if name.startswith(f"{title}: ") and "first" in results["stated"][name]]
    return max(names, key=lambda name: sum(results[kind][name][part] for kind in results for part in ("first", "five")))


def disagreeing(loaded: TextModel, rows: list[dict[str, Any]], questions: dict[str, Cloze]) -> int:
    """Of the first questions, how many ``fill`` itself answers otherwise than by its readings of the kept numbers."""
    wrong = 0
    for row in rows[:CHECKED]:
        one = questions[row["text"]]
        for name, stated in (("stated", True), ("unstated", False)):
            spelt = stated and one.word.isalpha()
            fills = loaded.fill(
                asked_text(one, stated=spelt), n=12 if spelt or not stated else 99, letters=spelt, seed=0
            )
            right_size = (
                fill.answers[0].lower() for fill in fills if not stated or len(fill.answers[0]) == len(one.word)
            )
            five = list(dict.fromkeys(right_size))[:5]
            weights = loaded.readings if one.behind else (1.0, 0.0)
            wrong += five != best(row[name], row["word"], (*weights, 0.0), stated=stated, own=True)
    return wrong


def main() -> None:
    """Ask, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="folder; by default the model that ships")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--fit-on", type=int, default=100)
    parser.add_argument("--rows", type=Path, required=True, help="a file of lines, one for each question answered")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--name", default="cloze_readings")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sentences = sentences_of(arguments.sentences)
    train = [one for one in sentences if not is_held_out(one)]
    known = {word for word, _ in Counter(w.lower() for one in train for w in WORD.findall(one)).most_common(10_000)}
    held = [one for one in sentences if is_held_out(one)]
    asked: list[tuple[str, Cloze]] = []
    for part, count in (("fit", arguments.fit_on), ("asked", arguments.questions)):
        some = [one for one in held if is_for_fitting(one) == (part == "fit")]
        asked += [(part, one) for one in cloze_questions(some, known, 500, 0)[:count]]
    done = [json.loads(line) for line in arguments.rows.read_text().splitlines()] if arguments.rows.exists() else []
    answered_ones = {row["text"] for row in done}
    open_ones = [each for each in asked if each[1].text("____") not in answered_ones]
    loaded = text.load(arguments.model)
    seconds = 0.0
    if open_ones:
        grams = {order: counted(train, order, 30_000) for order in (3, 5)}
        _, seconds = spread(partial(answered, loaded, grams, arguments.rows), open_ones, arguments.processes)
    rows = [json.loads(line) for line in arguments.rows.read_text().splitlines()]
    parts = {part: [row for row in rows if row["part"] == part] for part in ("fit", "asked")}
    results = {part: table(each) for part, each in parts.items()}
    best_ways = {title: chosen(results["fit"], title) for title in ("fill", "fill with counts")}
    for kind, each in results["asked"].items():
        for name, way in each.items():
            print(f"{kind:9s} {name:50s}", {key: round(value, 3) for key, value in way.items()})
    wrong = disagreeing(loaded, parts["asked"], {one.text("____"): one for _, one in asked})
    print("chosen on the fitting part:", best_ways, "; fill itself differs in", wrong)
    counts = {part: len(each) for part, each in parts.items()}
    about = {"questions": counts, "chosen": best_ways, "readings": loaded.readings, "fill_differs": wrong}
    write_result(arguments.name, {**about, "cpu_seconds_each": seconds, "results": results})


if __name__ == "__main__":
    main()
