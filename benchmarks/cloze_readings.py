"""How ``fill`` ranks words: its own proposals and those of counts, by every reading, weights chosen on other questions.

    python -m benchmarks.cloze_readings --sentences deu-eng.tsv.gz --rows FILE [--questions 500] [--processes 4]

The questions are those of ``benchmarks.cloze``, with stated and unstated length, and as many sentences of the part that
may fit weights as --fit-on says. For each, the words are what ``fill`` may compare: its own proposals (beams from the
left and given both sides), and what the n-grams that come with the model propose as well. A stated length is told to
``fill`` by a ``_`` for each letter; a word with an apostrophe, which is no letter, is looked for as where its length is
not stated, and among the answers of that length. Of each word are kept

    J  log p(text with the word)     D  log p(word | both sides, its number of pieces)     K  log p by those n-grams,

and words are ranked by a J + d D + k K. The weights of a row of the table were listed beforehand (``WAYS``), or are
those of greatest mean log share of the right word on the fitting part ("fitted"); the way that is best there is named
("chosen": the sum of the four shares). "as fill does" are the weights of the model that is asked, and p(text) only of
the ``SHORTLIST`` words of greatest D + K. For the first questions of all ``fill`` itself is asked, and must answer the
same five words.

Beside right words each way tells how sure it is: the mean share of its first answer, the mean log share of the right
word where it is compared, and the total variation between its shares and the posterior of p(text), which is what
``score`` says of the same words (median and quartiles).

Each question is appended to the file ROWS as soon as it is answered; started again with it, the questions that are
there are not asked again. --seconds stops asking. Writes results/cloze_readings.json: shares of right words, first and
among five, with standard errors, beside 3-grams and 5-grams over all their words.
"""

import argparse
import math
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill import text
from anyfill.text.blanks import blank_window, sheet_of
from anyfill.text.counting import CountedPlace
from anyfill.text.encoding import encode_text
from anyfill.text.model import TextModel
from anyfill.text.ngram import KneserNey
from anyfill.text.word_proposals import word_codes
from anyfill.text.word_search import SHORTLIST, direct_log_probs, joint_log_probs, words_for
from anyfill.text.word_window import ReadWindow
from benchmarks.cloze import (
    WORD,
    Cloze,
    by_counts,
    cloze_questions,
    counted,
    fitted_weights,
    is_for_fitting,
    is_held_out,
)
from benchmarks.cloze import read_sentences as sentences_of
from benchmarks.common import appended, rows_in, write_result

Floats = NDArray[np.float64]


class Way(NamedTuple):
    """The weights a, d, k of J, D, K; whether only the model's own proposals are compared; whether few of them are."""

    joint: float
    direct: float
    counted: float
    own: bool = False
    shortlist: bool = False


THIRD = 1 / 3
WAYS = {
    "without counts: p(text)": Way(1.0, 0.0, 0.0, own=True),
    "without counts: direct": Way(0.0, 1.0, 0.0, own=True),
    "without counts: p(text) and direct, half each": Way(0.5, 0.5, 0.0, own=True),
    "counts propose: p(text)": Way(1.0, 0.0, 0.0),
    "counts propose: p(text) and direct, half each": Way(0.5, 0.5, 0.0),
    "counts propose and rank: alone": Way(0.0, 0.0, 1.0),
    "counts propose and rank: with p(text), half each": Way(0.5, 0.0, 0.5),
    "counts propose and rank: all three, a third each": Way(THIRD, THIRD, THIRD),
    "counts propose and rank: all three, 2 : 2 : 1": Way(0.4, 0.4, 0.2),
}
CHECKED = 16


def asked_text(one: Cloze, *, stated: bool) -> str:
    """The sentence with its blank, as ``fill`` reads it."""
    before, behind = (part.replace("_", r"\_").replace("[", r"\[") for part in (one.before, one.behind))
    return f"{before}{'_' * len(one.word) if stated else '____'}{behind}"


def compared(loaded: TextModel, counts: KneserNey, one: Cloze, *, stated: bool) -> dict[str, Any]:
    """Every word that is proposed, first by the model and then by counts, and what each reading says of it."""
    template = loaded.template(asked_text(one, stated=stated), letters=stated)
    sheet = sheet_of(template, loaded.vocabulary, lines=loaded.lines)
    window = blank_window(sheet, range(1), (), loaded.length)
    read = ReadWindow(loaded.model, window)
    found = dict(each for each, _ in words_for(read, sheet, 0) if each)
    own, place = len(found), CountedPlace.of(counts, one.before, one.behind)
    for word in place.likely("_" * len(one.word) if stated else ""):
        found.setdefault(word, encode_text(loaded.vocabulary, sheet.leads[0] + word))
    words, codes = list(found), list(found.values())
    joint = joint_log_probs(loaded, read, word_codes(loaded.vocabulary, sheet.leads[0]), codes).tolist()
    is_between = bool(len(window.given[1]))
    direct = direct_log_probs(read, codes).tolist() if is_between else [0.0] * len(codes)
    said = place.log_probs(words).tolist()
    numbers = {name: [round(value, 4) for value in each] for name, each in (("J", joint), ("D", direct), ("K", said))}
    return {"words": words, "own": own, **numbers}


def answered(loaded: TextModel, grams: dict[int, KneserNey], asked: tuple[str, Cloze]) -> dict[str, Any]:
    """What every reading says of the words that are proposed for one question."""
    part, one = asked
    row: dict[str, Any] = {"part": part, "text": one.text("____"), "word": one.word.lower()}
    own = grams[5] if loaded.counts is None else loaded.counts
    for name, stated in (("unstated", False), ("stated", True)):
        spelt = stated and one.word.isalpha()
        row[name] = dict(row["unstated"]) if stated and not spelt else compared(loaded, own, one, stated=stated)
        for order, counts in grams.items():
            row[name][f"{order}-gram"] = by_counts(counts, one, stated=stated, fold=False)
    return row


def shared(said: dict[str, Any], way: Way) -> tuple[list[int], Floats, Floats]:
    """The words that a way compares, their shares, and their posterior by J alone."""
    kept = np.arange(said["own"] if way.own else len(said["words"]))
    numbers = {name: np.asarray(said[name]) for name in "JDK"}
    if way.shortlist and numbers["D"].any() and len(kept) > SHORTLIST:
        kept = kept[np.argsort(-(numbers["D"] + numbers["K"])[kept], kind="stable")[:SHORTLIST]]
    joint, direct, counted = (numbers[name][kept] for name in "JDK")
    power = way.joint if numbers["D"].any() else way.joint + way.direct  # nothing stands behind: there is no D
    value = power * joint + way.direct * direct + way.counted * counted
    return kept.tolist(), softmax(value), softmax(joint)


def softmax(value: Floats) -> Floats:
    """exp(value) as shares."""
    part = np.exp(value - value.max())
    return part / part.sum()


def best(said: dict[str, Any], word: str, way: Way, *, stated: bool) -> list[str]:
    """The five best words of a question."""
    kept, share, _ = shared(said, way)
    ranked = (said["words"][kept[place]].lower() for place in np.argsort(-share, kind="stable").tolist())
    return list(dict.fromkeys(one for one in ranked if not stated or len(one) == len(word)))[:5]


def sureness(rows: list[dict[str, Any]], kind: str, way: Way) -> dict[str, Any]:
    """How sure a way is, and how far from the posterior of p(text)."""
    first: list[float] = []
    right: list[float] = []
    apart: list[float] = []
    for row in rows:
        kept, share, posterior = shared(row[kind], way)
        first.append(float(share.max()))
        apart.append(float(0.5 * np.abs(share - posterior).sum()))
        there = [place for place, number in enumerate(kept) if row[kind]["words"][number].lower() == row["word"]]
        if there:
            right.append(math.log(max(float(share[there].sum()), 1e-12)))
    quarters = np.quantile(apart, [0.5, 0.25, 0.75]).tolist()
    return {
        "mean_share_of_first": float(np.mean(first)),
        "mean_log_share_of_right": float(np.mean(right)),
        "variation_from_posterior": {"median": quarters[0], "quartiles": quarters[1:]},
    }


def fit(rows: list[dict[str, Any]], *, own: bool) -> Way:
    """The weights of greatest mean log share of the right word."""
    names = "JD" if own else "JDK"
    found: list[tuple[torch.Tensor, int]] = []
    for row in rows:
        for kind in ("stated", "unstated"):
            said = row[kind]
            lower = [word.lower() for word in said["words"][: said["own"] if own else None]]
            if row["word"] in lower and any(said["D"]):
                numbers = torch.tensor([said[name][: len(lower)] for name in names], dtype=torch.float64)
                found.append((numbers, lower.index(row["word"])))
    weights = [round(one, 2) for one in fitted_weights(found)]
    return Way(*weights, *([0.0] if own else []), own=own)


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


def table(rows: list[dict[str, Any]], ways: dict[str, Way]) -> dict[str, Any]:
    """Every way on these questions."""
    results: dict[str, Any] = {}
    for name, stated in (("stated", True), ("unstated", False)):
        each: dict[str, Any] = {}
        for order in (3, 5):
            each[f"{order}-gram"] = shares(rows, [row[name][f"{order}-gram"] for row in rows])
        for title, way in ways.items():
            five = [best(row[name], row["word"], way, stated=stated) for row in rows]
            each[title] = {**shares(rows, five), **sureness(rows, name, way)}
            at = [[row[name]["words"][place].lower() for place in shared(row[name], way)[0]] for row in rows]
            each[title]["compared"] = sum(row["word"] in words for row, words in zip(rows, at)) / len(rows)
        results[name] = each
    return results


def chosen(results: dict[str, Any], ways: dict[str, Way], *, own: bool) -> str:
    """The way with the greatest sum of the four shares."""
    names = [name for name, way in ways.items() if way.own == own]
    return max(names, key=lambda name: sum(results[kind][name][part] for kind in results for part in ("first", "five")))


def as_it_is(loaded: TextModel) -> Way:
    """How ``fill`` ranks words with this model."""
    (joint, direct), (own, counted) = loaded.readings, loaded.weights
    if loaded.counts is None:
        return Way(joint, direct, 0.0, own=True)
    return Way(own * joint, own * direct, counted, shortlist=bool(direct and counted))


def disagreeing(loaded: TextModel, rows: list[dict[str, Any]], questions: dict[str, Cloze]) -> int:
    """Of the first questions, how many ``fill`` itself answers otherwise than by its readings of the kept numbers."""
    wrong = 0
    for row in rows[:CHECKED]:
        one = questions[row["text"]]
        for name, stated in (("stated", True), ("unstated", False)):
            spelt = stated and one.word.isalpha()
            fills = loaded.fill(
                asked_text(one, stated=spelt), n=12 if spelt or not stated else 32, letters=spelt, seed=0
            )
            right_size = (
                fill.answers[0].lower() for fill in fills if not stated or len(fill.answers[0]) == len(one.word)
            )
            five = list(dict.fromkeys(right_size))[:5]
            wrong += five != best(row[name], row["word"], as_it_is(loaded), stated=stated)
    return wrong


def main() -> None:
    """Ask, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="folder; by default the model that ships")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--fit-on", type=int, default=300)
    parser.add_argument("--rows", type=Path, required=True, help="a file of lines, one for each question answered")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="of asking; what is missing is asked next time")
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
    answered_ones = {row["text"] for row in rows_in(arguments.rows)}
    open_ones = [each for each in asked if each[1].text("____") not in answered_ones]
    loaded = text.load(arguments.model)
    if open_ones:
        grams = {order: counted(train, order, 30_000) for order in (3, 5)}
        how: dict[str, Any] = {"processes": arguments.processes, "seconds": arguments.seconds}
        appended(partial(answered, loaded, grams), open_ones, arguments.rows, **how)
    rows = rows_in(arguments.rows)
    parts = {part: [row for row in rows if row["part"] == part] for part in ("fit", "asked")}
    ways = dict(WAYS)
    if parts["fit"]:
        ways["without counts: fitted"] = fit(parts["fit"], own=True)
        ways["counts propose and rank: fitted"] = fit(parts["fit"], own=False)
    ways["as fill does"] = as_it_is(loaded)
    results = {part: table(each, ways) for part, each in parts.items() if each}
    best_ways = {str(own): chosen(results["fit"], ways, own=own) for own in (True, False)} if parts["fit"] else {}
    for part, kinds in results.items():
        for kind, each in kinds.items():
            for name, way in each.items():
                said = {key: round(value, 3) for key, value in way.items() if isinstance(value, float)}
                print(f"{part:5s} {kind:9s} {name:50s}", said, way.get("variation_from_posterior", ""))
    print({name: way for name, way in ways.items() if name not in WAYS})
    wrong = disagreeing(loaded, parts["asked"], {one.text("____"): one for _, one in asked})
    print("chosen on the fitting part:", best_ways, "; fill itself differs in", wrong)
    counts = {part: len(each) for part, each in parts.items()}
    about: dict[str, Any] = {"questions": counts, "fill_differs": wrong, "checked": CHECKED}
    about |= {"chosen_own": best_ways.get("True"), "chosen": best_ways.get("False")}
    about["ways"] = {name: way._asdict() for name, way in ways.items()}
    seconds = sum(row["cpu_seconds"] for row in rows) / len(rows)
    write_result(arguments.name, {**about, "cpu_seconds_each": seconds, "results": results})


if __name__ == "__main__":
    main()
