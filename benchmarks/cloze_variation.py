"""What it would cost to bring `fill`'s share of a word nearer to the posterior of p(text), which `score` implies.

    python -m benchmarks.cloze_variation --sentences deu-eng.tsv.gz --rows FILE [--questions 150] [--fit-on 100]

Cloze questions of ``benchmarks.cloze`` (part "fit": sentences that may choose between ways; "asked": the others), all
words that are proposed and the three readings of each (``benchmarks.cloze_readings``). A way is a triple of powers of
p(text), of the direct answer and of the counts, over the words that ``fill`` compares. For each: total variation from
the posterior of p(text) in the median, mean log share of the right word, mean share of the first, and how often it is
right, first and in five.

Powers that are all multiplied by the same number rank words alike, so that nothing but how sure they are changes.
"Nearest" is that of a list of ways which on the fitting part has the least variation where the length is not stated, of
those that lose at most a point there in the sum of the four shares of right words. Writes results/cloze_variation.json.
"""

import argparse
import math
from collections import Counter
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch

from anyfill import text
from anyfill.text.model import TextModel
from benchmarks.cloze import WORD, Cloze, cloze_questions, is_for_fitting, is_held_out
from benchmarks.cloze import read_sentences as sentences_of
from benchmarks.cloze_readings import Way, as_it_is, best, compared, shares, sureness
from benchmarks.common import appended, rows_in, write_result

TIMES = (1.2, 1.5, 2.0)
LISTED = [*product((0.29, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0), (0.0, 0.05, 0.1, 0.19, 0.3), (0.0, 0.1, 0.2, 0.35, 0.5))]
KINDS = (("stated", True), ("unstated", False))


def read(loaded: TextModel, asked: tuple[str, Cloze]) -> dict[str, Any]:
    """All words that are proposed for one question, and what each reading says of them."""
    part, one = asked
    if loaded.counts is None:
        raise ValueError("model: expected one that brings counts, got one without")
    found = {"unstated": compared(loaded, loaded.counts, one, stated=False)}
    found["stated"] = compared(loaded, loaded.counts, one, stated=True) if one.word.isalpha() else found["unstated"]
    return {"part": part, "text": one.text("____"), "word": one.word.lower(), **found}


def measured(rows: list[dict[str, Any]], way: Way) -> dict[str, Any]:
    """One way on some questions."""
    found: dict[str, Any] = {}
    for kind, stated in KINDS:
        five = [best(row[kind], row["word"], way, stated=stated) for row in rows]
        found[kind] = {**shares(rows, five), **sureness(rows, kind, way)}
    return found


def right(found: dict[str, Any]) -> float:
    """The sum of the four shares of right words."""
    return sum(found[kind][part] for kind, _ in KINDS for part in ("first", "five"))


def nearest(rows: list[dict[str, Any]], now: Way) -> Way:
    """See the top of this file."""
    enough = right(measured(rows, now)) - 0.01
    ways = [Way(*powers, shortlist=now.shortlist) for powers in LISTED]
    found = [(way, measured(rows, way)) for way in ways]
    kept = [(way, each) for way, each in found if right(each) >= enough] or [(now, measured(rows, now))]
    return min(kept, key=lambda one: one[1]["unstated"]["variation_from_posterior"]["median"])[0]


def main() -> None:
    """Ask, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True, help="a file of lines, one for each question answered")
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--fit-on", type=int, default=100)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="of asking; what is missing is asked next time")
    parser.add_argument("--name", default="cloze_variation")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    loaded = text.load()
    if arguments.seconds > 0:
        sentences = sentences_of(arguments.sentences)
        train = [one for one in sentences if not is_held_out(one)]
        common = Counter(word.lower() for one in train for word in WORD.findall(one)).most_common(10_000)
        known = {word for word, _ in common}
        asked: list[tuple[str, Cloze]] = []
        for part, count in (("fit", arguments.fit_on), ("asked", arguments.questions)):
            some = [one for one in sentences if is_held_out(one) and is_for_fitting(one) == (part == "fit")]
            asked += [(part, one) for one in cloze_questions(some, known, 500, 0)[:count]]
        done = {row["text"] for row in rows_in(arguments.rows)}
        missing = [each for each in asked if each[1].text("____") not in done]
        how: dict[str, Any] = {"processes": arguments.processes, "seconds": arguments.seconds}
        appended(partial(read, loaded), missing, arguments.rows, **how)
    rows = rows_in(arguments.rows)
    parts = {part: [row for row in rows if row["part"] == part] for part in ("fit", "asked")}
    now = as_it_is(loaded)
    ways = {"as fill does": now, "p(text)": Way(1.0, 0.0, 0.0, shortlist=now.shortlist)}
    for times in TIMES:
        powers = (times * now.joint, times * now.direct, times * now.counted)
        ways[f"its powers times {times}"] = Way(*powers, shortlist=now.shortlist)
    ways["nearer to p(text)"] = Way(0.5, 0.1, 0.2, shortlist=now.shortlist)
    ways["nearest"] = nearest(parts["fit"], now)
    results = {part: {name: measured(each, way) for name, way in ways.items()} for part, each in parts.items()}
    for part, found in results.items():
        for name, each in found.items():
            said = {kind: {key: value for key, value in each[kind].items() if "stderr" not in key} for kind in each}
            print(part, name, said, flush=True)
    about = {"questions": {part: len(each) for part, each in parts.items()}}
    write_result(
        arguments.name, {**about, "ways": {name: way._asdict() for name, way in ways.items()}, "results": results}
    )


if __name__ == "__main__":
    main()
