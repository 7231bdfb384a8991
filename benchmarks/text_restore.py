"""Missing letters and wrong words in everyday sentences: what the model and n-grams restore and find, and a word list.

    python -m benchmarks.text_restore --sentences deu-eng.tsv.gz --rows FILE [--questions 500] [--processes 8]

Sentences are split as in ``benchmarks.cloze``: n-grams are counted, and the word list is made, from those that are not
held out. Of so many held-out sentences of 5 to 20 words each

    restore   loses every letter with chance 0.15 (at least one): precision = right words / words answered, recall =
              right words / words with gaps
    check     has, in every second sentence, one word of 3 letters or more with one edit (a letter left out, put in,
              changed, or two swapped; it may turn into another word): precision = wrong words found / words doubted,
              recall = wrong words found / wrong words; "mended" = of the wrong words those that are put right
    crossword   has one word of 4 letters or more with half of its letters missing (each with chance 0.5, at least
              two, never all), all else there; asked only where --tasks says so. The ways are those of restore

    word list   restore: the most common word that fits; check: words that are not in the list are doubted, the most
                common word one edit away is proposed
    3-gram      ``restore`` and ``check`` by interpolated Kneser-Ney trigrams
    5-gram      the same with 5-grams
    model         the model that ships, or --model, without any counts: ``spelt`` and ``doubted``
    its n-grams and model   what ``anyfill text restore`` and ``check`` do where nothing is said: the n-grams that come
                  with the model propose, both rank, with weights a : b
    5-gram and model   the same with the 5-grams above

Each answer is appended to the file ROWS as soon as it is there; started again with it, what is there is not asked
again. --seconds stops asking, --ways says which. ``WEIGHTS`` were listed beforehand; those of the package (the first)
stand to be compared on other sentences (--part fit). Writes results/text_restore.json.
"""

import argparse
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from anyfill import text
from anyfill.text.doubts import check, doubted, edits
from anyfill.text.gaps import Change, Corrected, matching, restore, spelt
from anyfill.text.ngram import KneserNey
from benchmarks.cloze import WORD, counted, is_for_fitting, is_held_out, read_sentences
from benchmarks.common import appended, rows_in, write_result

Way = dict[str, Callable[[str], Corrected]]
"""What answers each task."""
WEIGHTS = ((0.5, 1.0), (0.5, 0.5))
"""Of the model and of the counts."""
TASKS = ("restore", "check", "crossword")
GAPPED = re.compile(r"(?:[^\W]|['’])*_(?:[^\W]|['’])*")


@dataclass(frozen=True, slots=True)
class Broken:
    """A sentence as it was, as it is, and where its words were changed."""

    was: str
    now: str
    places: tuple[int, ...]


def with_gaps(sentence: str, source: random.Random, chance: float = 0.15) -> Broken:
    """The sentence without some of its letters."""
    letters = [place for place, one in enumerate(sentence) if one.isalpha()]
    lost = {place for place in letters if source.random() < chance} or {source.choice(letters)}
    now = "".join("_" if place in lost else one for place, one in enumerate(sentence))
    spans = [word.span() for word in WORD.finditer(sentence)]
    return Broken(sentence, now, tuple(start for start, stop in spans if lost & set(range(start, stop))))


def as_in_a_crossword(sentence: str, source: random.Random) -> Broken:
    """The sentence with about half of the letters of one of its words."""
    words = [word for word in WORD.finditer(sentence) if len(word[0]) >= 4 and word[0].isascii() and word[0].isalpha()]
    if not words:
        return Broken(sentence, sentence, ())
    word = source.choice(words)
    places = range(*word.span())
    lost = {place for place in places if source.random() < 0.5}
    while not 2 <= len(lost) < len(places):
        lost = {place for place in places if source.random() < 0.5}
    now = "".join("_" if place in lost else one for place, one in enumerate(sentence))
    return Broken(sentence, now, (word.start(),))


def misspelt(sentence: str, source: random.Random) -> Broken:
    """The sentence with one edit in one of its words."""
    words = [word for word in WORD.finditer(sentence) if len(word[0]) >= 3 and word[0].isascii()]
    if not words:
        return Broken(sentence, sentence, ())
    word = source.choice(words)
    written = source.choice(sorted({one for one in edits(word[0]) if one and one != word[0] and "'" not in one}))
    return Broken(sentence, sentence[: word.start()] + written + sentence[word.end() :], (word.start(),))


def restored_by_list(counts: KneserNey, sentence: str) -> Corrected:
    """Each word with gaps by itself, the most common one that fits."""
    changes: list[Change] = []
    for gap in GAPPED.finditer(sentence):
        fits = matching(counts, gap[0])
        if fits:
            changes.append(Change(gap.start(), gap[0], fits[0], 0.0))
    return Corrected(sentence, tuple(changes))


def checked_by_list(known: dict[str, int], sentence: str) -> Corrected:
    """Words that are not in the list."""
    changes: list[Change] = []
    for word in WORD.finditer(sentence):
        if word[0] not in known and word[0].lower() not in known:
            near = [one for one in edits(word[0]) if one in known]
            changes.append(Change(word.start(), word[0], min(near, key=known.__getitem__) if near else word[0], 0.0))
    return Corrected(sentence, tuple(changes))


def asked(ways: Mapping[str, Way], item: tuple[str, str, int, str]) -> dict[str, Any]:
    """What one way makes of one sentence, as a line."""
    task, name, number, sentence = item
    found = ways[name]["check" if task == "check" else "restore"](sentence)
    changes = [(one.offset, one.written, one.word) for one in found.changes]
    return {"task": task, "way": name, "number": number, "changes": changes}


def graded(broken: Sequence[Broken], rows: Sequence[dict[str, Any]], *, is_check: bool) -> dict[str, Any]:
    """Precision and recall of the answers to sentences."""
    answered = right = there = mended = 0
    for row in rows:
        one = broken[row["number"]]
        there += len(one.places)
        for offset, written, chosen in row["changes"]:
            answered += chosen != written or is_check
            if offset in one.places:
                word = WORD.match(one.was, offset)
                is_right = word is not None and chosen == word[0]
                mended += is_right
                right += is_right or is_check
    shares: dict[str, Any] = {"precision": right / max(answered, 1), "recall": right / max(there, 1), "words": there}
    if is_check:
        shares |= {"mended": mended / max(there, 1), "doubted": answered}
    seconds = sum(row["cpu_seconds"] for row in rows) / max(len(rows), 1)
    return shares | {"sentences": len(rows), "cpu_seconds_each": seconds}


def main() -> None:
    """Every way on every sentence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True, help="a file of lines, one for each answer")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument(
        "--part", choices=("asked", "fit"), default="asked", help="held-out sentences to ask, or to fit on"
    )
    parser.add_argument("--model", type=Path, help="folder; by default the model that ships")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS[:2])
    parser.add_argument("--ways", nargs="+", help="only those of these names, in this order")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="of asking; what is missing is asked next time")
    parser.add_argument("--vocabulary", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="text_restore")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sentences = read_sentences(arguments.sentences)
    train = [one for one in sentences if not is_held_out(one)]
    chosen = sorted(one for one in sentences if is_held_out(one) and 5 <= len(one.split()) <= 20 and "_" not in one)
    source = random.Random(arguments.seed)
    source.shuffle(chosen)
    first, others = chosen[: arguments.questions], chosen[arguments.questions :]
    chosen = first if arguments.part == "asked" else [one for one in others if is_for_fitting(one)]
    chosen = chosen[: arguments.questions]
    gapped = [with_gaps(one, source) for one in chosen]
    wrong = [misspelt(one, source) if number % 2 else Broken(one, one, ()) for number, one in enumerate(chosen)]
    grams = {order: counted(train, order, arguments.vocabulary) for order in (3, 5)}
    words: Sequence[str] = getattr(grams[5].vocabulary, "words", ())
    known = {word: number for number, word in reversed([*enumerate(words)])}
    loaded = text.load(arguments.model)
    alone = replace(loaded, counts=None, weights=(1.0, 0.0))
    ways: dict[str, Way] = {
        "word list": {"restore": partial(restored_by_list, grams[5]), "check": partial(checked_by_list, known)},
        "3-gram": {"restore": partial(restore, counts=grams[3]), "check": partial(check, counts=grams[3])},
        "5-gram": {"restore": partial(restore, counts=grams[5]), "check": partial(check, counts=grams[5])},
        "model": {"restore": partial(spelt, alone), "check": partial(doubted, alone)},
    }
    counts = {"5-gram": grams[5]} | ({} if loaded.counts is None else {"its n-grams": loaded.counts})
    for name, each in counts.items():
        for weights in WEIGHTS:
            both: dict[str, Any] = {"counts": each, "model": loaded, "weights": weights}
            title = f"{name} and model, {weights[0]:g} : {weights[1]:g}"
            ways[title] = {"restore": partial(restore, **both), "check": partial(check, **both)}
    ways = {name: ways[name] for name in arguments.ways or ways}
    patterns = random.Random(arguments.seed)  # of its own: the other tasks stay as they are
    broken = {"restore": gapped, "check": wrong, "crossword": [as_in_a_crossword(one, patterns) for one in chosen]}
    broken = {task: broken[task] for task in arguments.tasks}
    done = {(row["task"], row["way"], row["number"]) for row in rows_in(arguments.rows)}
    every = [
        (task, name, n, one.now)
        for name in ways
        for n in range(len(chosen))
        for task in broken
        for one in [broken[task][n]]
        if one.places or task == "check"
    ]
    how: dict[str, Any] = {"processes": arguments.processes, "seconds": arguments.seconds}
    appended(partial(asked, ways), [one for one in every if one[:3] not in done], arguments.rows, **how)
    rows = rows_in(arguments.rows)
    results: dict[str, Any] = {}
    for task, each in broken.items():
        by_way = {name: [row for row in rows if (row["task"], row["way"]) == (task, name)] for name in ways}
        results[task] = {name: graded(each, some, is_check=task == "check") for name, some in by_way.items()}
        for name, shares in results[task].items():
            print(f"{task:8s} {name:32s}", {key: round(value, 3) for key, value in shares.items()}, flush=True)
    said = {key: value.name if isinstance(value, Path) else value for key, value in vars(arguments).items()}
    said |= {"seconds": None}  # infinity is no JSON
    write_result(arguments.name, {"arguments": said, "sentences": len(chosen), "results": results})


if __name__ == "__main__":
    main()
