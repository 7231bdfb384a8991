"""Missing letters and wrong words in everyday sentences: what the model and n-grams restore and find, and a word list.

    python -m benchmarks.text_restore --sentences deu-eng.tsv.gz [--questions 500] [--model FOLDER] [--processes 8]

Sentences are split as in ``benchmarks.cloze``: n-grams are counted, and the word list is made, from those that are not
held out. Of so many held-out sentences of 5 to 20 words each

    restore   loses every letter with chance 0.15 (at least one): precision = right words / words answered, recall =
              right words / words with gaps
    check     has, in every second sentence, one word of 3 letters or more with one edit (a letter left out, put in,
              changed, or two swapped; it may turn into another word): precision = wrong words found / words doubted,
              recall = wrong words found / wrong words; "mended" = of the wrong words those that are put right

    word list   restore: the most common word that fits; check: words that are not in the list are doubted, the most
                common word one edit away is proposed
    3-gram      ``restore`` and ``check`` by interpolated Kneser-Ney trigrams
    5-gram      the same with 5-grams
    model       the model that ships, or --model, without any counts: ``spelt`` and ``doubted``
    5-gram and model   the 5-grams propose, both rank

Writes results/text_restore.json.
"""

import argparse
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from anyfill import text
from anyfill.text.doubts import check, doubted, edits
from anyfill.text.gaps import Change, Corrected, matching, restore, spelt
from anyfill.text.ngram import KneserNey
from benchmarks.cloze import WORD, counted, is_held_out, read_sentences
from benchmarks.common import spread, write_result

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


def graded(
    broken: Sequence[Broken], answer: Callable[[str], Corrected], *, is_check: bool, processes: int = 1
) -> dict[str, Any]:
    """Precision and recall of an answer to each sentence."""
    found, seconds = spread(answer, [one.now for one in broken], processes)
    answered = right = there = mended = 0
    for one, corrected in zip(broken, found):
        changes = corrected.changes
        there += len(one.places)
        answered += sum(change.word != change.written or is_check for change in changes)
        for change in changes:
            if change.offset in one.places:
                word = WORD.match(one.was, change.offset)
                is_right = word is not None and change.word == word[0]
                mended += is_right
                right += is_right or is_check
    shares: dict[str, Any] = {"precision": right / max(answered, 1), "recall": right / max(there, 1), "words": there}
    if is_check:
        shares |= {"mended": mended / max(there, 1), "doubted": answered}
    return shares | {"cpu_seconds_each": seconds}


def main() -> None:
    """Every way on every sentence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--model", type=Path, help="folder; by default the model that ships")
    parser.add_argument("--no-model", action="store_true", help="only the word list and the counts")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--weights", type=float, nargs=2, default=(0.5, 1.0), help="of the model and of the counts")
    parser.add_argument("--vocabulary", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="text_restore")
    arguments = parser.parse_args()
    sentences = read_sentences(arguments.sentences)
    train = [one for one in sentences if not is_held_out(one)]
    chosen = sorted(one for one in sentences if is_held_out(one) and 5 <= len(one.split()) <= 20 and "_" not in one)
    source = random.Random(arguments.seed)
    source.shuffle(chosen)
    chosen = chosen[: arguments.questions]
    gapped = [with_gaps(one, source) for one in chosen]
    wrong = [misspelt(one, source) if number % 2 else Broken(one, one, ()) for number, one in enumerate(chosen)]
    grams = {order: counted(train, order, arguments.vocabulary) for order in (3, 5)}
    words: Sequence[str] = getattr(grams[5].vocabulary, "words", ())
    known = {word: number for number, word in reversed([*enumerate(words)])}
    weights = (arguments.weights[0], arguments.weights[1])
    ways: dict[str, tuple[Callable[[str], Corrected], Callable[[str], Corrected]]] = {
        "word list": (partial(restored_by_list, grams[5]), partial(checked_by_list, known)),
        "3-gram": (partial(restore, counts=grams[3]), partial(check, counts=grams[3])),
        "5-gram": (partial(restore, counts=grams[5]), partial(check, counts=grams[5])),
    }
    if not arguments.no_model:
        loaded = text.load(arguments.model)
        both: dict[str, Any] = {"counts": grams[5], "model": loaded, "weights": weights}
        ways["model"] = partial(spelt, loaded), partial(doubted, loaded)
        ways["5-gram and model"] = partial(restore, **both), partial(check, **both)
    results: dict[str, Any] = {"restore": {}, "check": {}}
    said = {key: value.name if isinstance(value, Path) else value for key, value in vars(arguments).items()}
    for name, (mend, doubt) in ways.items():
        results["restore"][name] = graded(gapped, mend, is_check=False, processes=arguments.processes)
        results["check"][name] = graded(wrong, doubt, is_check=True, processes=arguments.processes)
        for task, each in results.items():
            shown = {key: round(value, 3) for key, value in each[name].items()}
            print(f"{task:8s} {name:18s}", shown, flush=True)
        write_result(arguments.name, {"arguments": said, "sentences": len(chosen), "results": results})


if __name__ == "__main__":
    main()
