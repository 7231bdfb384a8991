"""Cloze questions from everyday sentences: the word that was blanked, asked of a model and of counted n-grams.

    python -m benchmarks.cloze --sentences deu-eng.tsv.gz [--counts-from text8.gz --fold] [--model FOLDER]

**Questions.** The sentences (the first column of a .tsv, or the lines of a text), each distinct one once, are split by
a hash of the sentence: those in tenth 0 are held out, the others may be trained on (``--train-out FILE`` writes them,
for ``anyfill text train`` and ``count``). Of held-out sentences of 5 to 20 words one word of 3 letters or more, drawn
with the seed, is blanked, if it is one of the ``--known`` most common words of the text that is counted (others nobody
could know). A tenth of the held-out sentences fits weights, the others are asked: no sentence serves both.

**Ways.** Each answers the same questions: with ``stated`` length (the letters are told) and ``unstated``.

    3-gram, 5-gram   interpolated Kneser-Ney of the text given by --counts-from (by default the sentences that are not
                     held out), exact over all its words on both sides of the blank
    model            ``fill`` with a blank that is a word; stated: its answers of that length, looked for at that length
    both             the model's candidates and the counts', ranked by p(model)^a p(5-gram)^b, a and b fitted to the
                     questions of the other part by the mean log share of the right word

Accuracy of the first answer and of the five best, with standard errors; capitals do not count. Writes
results/cloze.json. CPU seconds of this process are reported, not wall time.
"""

import argparse
import gzip
import hashlib
import math
import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill import text
from anyfill.text.counting import counted_log_prob, weighed, words_of
from anyfill.text.folding import as_text8
from anyfill.text.model import TextModel
from anyfill.text.ngram import KneserNey
from anyfill.text.ngram_counts import count_ngrams
from anyfill.text.words import common_words
from benchmarks.common import spread, write_result

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class Cloze:
    """A sentence with a word taken out."""

    before: str
    word: str
    behind: str

    def text(self, word: str) -> str:
        """The sentence with a word put in."""
        return f"{self.before}{word}{self.behind}"


def read_sentences(path: Path) -> list[str]:
    """Each distinct one once, in the order of the file; of a .tsv the first column."""
    raw = path.read_bytes()
    lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()
    return list(dict.fromkeys(line.split("\t")[0].strip() for line in lines if line.strip()))


def is_held_out(sentence: str) -> bool:
    """Whether a sentence may not be trained on: one in ten, by its letters alone (case and marks do not count)."""
    return _tenth(letters(sentence)) == 0


def is_for_fitting(sentence: str) -> bool:
    """Whether a held-out sentence may fit weights, or choose between them; the others are asked."""
    return _tenth(sentence + "fit") == 1


def letters(sentence: str) -> str:
    """The words of a sentence alone, in small letters."""
    return " ".join(WORD.findall(sentence.lower()))


def _tenth(sentence: str) -> int:
    return int(hashlib.sha256(sentence.encode()).hexdigest(), 16) % 10


def cloze_questions(sentences: Iterable[str], known: set[str], count: int, seed: int) -> list[Cloze]:
    """One blank in each of so many sentences, drawn."""
    chosen = sorted({one for one in sentences if 5 <= len(one.split()) <= 20})
    random.Random(seed).shuffle(chosen)
    found: list[Cloze] = []
    for number, sentence in enumerate(chosen):
        words = [one for one in WORD.finditer(sentence) if len(one[0]) >= 3 and one[0].lower() in known]
        if words and len(found) < count:
            word = random.Random(seed * 1_000_003 + number).choice(words)
            found.append(Cloze(sentence[: word.start()], word[0], sentence[word.end() :]))
    return found


def by_counts(counts: KneserNey, one: Cloze, *, stated: bool, fold: bool) -> list[str]:
    """The five best words by n-grams, of the right length if it is stated."""
    before, behind = (as_text8(part) if fold else part for part in (one.before, one.behind))
    value = weighed(counts, before, behind)
    words = words_of(counts).words
    found: list[str] = []
    for code in np.argsort(-value, kind="stable").tolist():
        word = words[code - 1].lower() if code else ""
        if np.isfinite(value[code]) and word not in found and (not stated or len(word) == len(one.word)):
            found.append(word)
            if len(found) == 5:
                break
    return found


@dataclass(frozen=True, slots=True)
class Compared:
    """Words with what the model and the counts say of the sentence with each of them."""

    words: tuple[str, ...]
    model: tuple[float, ...]
    counts: tuple[float, ...]

    def best(self, weights: tuple[float, float]) -> list[str]:
        """Five, best first."""
        value = weights[0] * np.asarray(self.model) + weights[1] * np.asarray(self.counts)
        return list(dict.fromkeys(self.words[place].lower() for place in np.argsort(-value, kind="stable").tolist()))[
            :5
        ]


def by_model(loaded: TextModel, counts: KneserNey | None, one: Cloze, *, stated: bool, n: int = 12) -> Compared:
    """What ``fill`` compares for a word."""
    given = [part.replace("_", r"\_").replace("[", r"\[") for part in (one.before, one.behind)]
    units = loaded.vocabulary.units
    lengths = str(len(one.word)) if stated and units == "characters" else None
    letters = stated and units == "pieces" and one.word.isalpha()
    blank = "_" * len(one.word) if letters else "____"
    found = loaded.fill(f"{given[0]}{blank}{given[1]}", n=n, seed=0, lengths=lengths, letters=letters, counts=counts)
    kept = [fill for fill in found if not stated or len(fill.answers[0]) == len(one.word)]
    said = [0.0 if counts is None else counted_log_prob(counts, fill.text) for fill in kept]
    bits = [math.log(2) * fill.log2_probability for fill in kept]
    return Compared(tuple(fill.answers[0] for fill in kept), tuple(bits), tuple(said))


def fitted(questions: Sequence[Cloze], compared: Sequence[Compared]) -> tuple[float, float]:
    """a and b of greatest mean log share of the right word, where it was found."""
    rows: list[tuple[torch.Tensor, int]] = []
    for one, found in zip(questions, compared):
        lower = [word.lower() for word in found.words]
        if one.word.lower() in lower:
            rows.append((torch.tensor([found.model, found.counts], dtype=torch.float64), lower.index(one.word.lower())))
    a, b = fitted_weights(rows)
    return round(a, 3), round(b, 3)


def fitted_weights(rows: Sequence[tuple[torch.Tensor, int]]) -> list[float]:
    """The weights (F,), none below 0, of greatest mean log share of the right one of n, from (F, n) of each question.

    Convex, by Newton's cousin LBFGS.
    """
    features = len(rows[0][0])
    weights = torch.full((features,), 1 / features, dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS([weights], max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        solver.zero_grad()
        value = torch.stack([-(weights @ each).log_softmax(0)[right] for each, right in rows]).mean()
        value.backward()  # pyright: ignore[reportUnknownMemberType]
        return value

    solver.step(loss)  # pyright: ignore[reportArgumentType]
    return weights.detach().clamp(min=0.0).tolist()


def accuracy(questions: Sequence[Cloze], answers: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Shares of right words, the first answer and the five best, with standard errors."""
    first = [bool(best) and best[0] == one.word.lower() for one, best in zip(questions, answers)]
    five = [one.word.lower() in best[:5] for one, best in zip(questions, answers)]
    count = len(questions)
    shares = {"first": sum(first) / count, "five": sum(five) / count}
    return shares | {f"{name}_stderr": math.sqrt(share * (1 - share) / count) for name, share in shares.items()}


def counted(lines: Iterable[str], order: int, size: int) -> KneserNey:
    """n-grams of lines."""
    kept = list(lines)
    vocabulary = common_words((f"{line}\n" for line in kept), size, punctuation=True)
    return count_ngrams((vocabulary.encode(line).tolist() for line in kept), vocabulary, order=order)


def main() -> None:
    """Every way on every question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True, help="everyday sentences, .txt or .tsv, plain or .gz")
    parser.add_argument("--train-out", type=Path, help="write the sentences that may be trained on there, and stop")
    parser.add_argument("--counts-from", type=Path, help="the text that is counted; by default the training sentences")
    parser.add_argument("--first", type=int, help="only so many characters of that text, as the model was trained on")
    parser.add_argument("--fold", action="store_true", help="fold questions for counts as for text8")
    parser.add_argument("--model", type=Path, help="folder; by default the model that ships")
    parser.add_argument("--no-model", action="store_true", help="only the counts")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--fit-on", type=int, default=100, help="questions that weights are fitted to; 0 = none are")
    parser.add_argument("--compared", type=int, default=40, help="best fills that are ranked again with weights")
    parser.add_argument("--known", type=int, default=10_000)
    parser.add_argument("--vocabulary", type=int, default=30_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="cloze")
    arguments = parser.parse_args()
    sentences = read_sentences(arguments.sentences)
    train = [one for one in sentences if not is_held_out(one)]
    if arguments.train_out is not None:
        arguments.train_out.write_text("\n".join(train) + "\n")
        return
    if arguments.counts_from is None:
        source = train
    else:
        raw = arguments.counts_from.read_bytes()
        content = (gzip.decompress(raw) if arguments.counts_from.suffix == ".gz" else raw).decode()
        source = content[: arguments.first].splitlines()
    started = time.process_time()
    grams = {order: counted(source, order, arguments.vocabulary) for order in (3, 5)}
    common = Counter(word.lower() for line in source for word in WORD.findall(line)).most_common(arguments.known)
    held = [one for one in sentences if is_held_out(one)]
    parts = {name: [one for one in held if is_for_fitting(one) == (name == "fit")] for name in ("fit", "asked")}
    sizes = {"fit": arguments.fit_on, "asked": arguments.questions}
    known = {word for word, _ in common}
    asked = {name: cloze_questions(each, known, sizes[name], arguments.seed) for name, each in parts.items()}
    counting = time.process_time() - started
    loaded = None if arguments.no_model else text.load(arguments.model)
    results: dict[str, Any] = {}
    for stated in (True, False):
        ways: dict[str, Any] = {}
        for order, counts in grams.items():
            count = partial(by_counts, counts, stated=stated, fold=arguments.fold)
            answers, each = spread(count, asked["asked"], arguments.processes)
            ways[f"{order}-gram"] = accuracy(asked["asked"], answers) | {"cpu_seconds_each": each}
        if loaded is not None:
            ask = partial(by_model, loaded, None, stated=stated)
            compared, each = spread(ask, asked["asked"], arguments.processes)
            alone = [one.best((1.0, 0.0)) for one in compared]
            ways["model"] = accuracy(asked["asked"], alone) | {"cpu_seconds_each": each}
            if arguments.fit_on:
                weigh = partial(by_model, loaded, grams[5], stated=stated, n=arguments.compared)
                tried, _ = spread(weigh, asked["fit"], arguments.processes)
                weights = fitted(asked["fit"], tried)
                compared, each = spread(weigh, asked["asked"], arguments.processes)
                mixed = [one.best(weights) for one in compared]
                ways["both"] = accuracy(asked["asked"], mixed) | {"weights": weights, "cpu_seconds_each": each}
        results["stated" if stated else "unstated"] = ways
        for name, way in ways.items():
            print(
                f"{'stated' if stated else 'unstated':9s} {name:7s} first {way['first']:.3f} five {way['five']:.3f}",
                flush=True,
            )
        payload = {
            "arguments": {
                key: value.name if isinstance(value, Path) else value for key, value in vars(arguments).items()
            },
            "model": None if loaded is None else loaded.name if arguments.model is None else arguments.model.name,
            "questions": {name: len(each) for name, each in asked.items()},
            "counted_lines": len(source),
            "counting_cpu_seconds": counting,
            "results": results,
        }
        write_result(arguments.name, payload)


if __name__ == "__main__":
    main()
