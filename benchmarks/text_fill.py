"""Filling a word: seconds of today's search against 0.1's way, in one run, and the exactness of what is cached.

    python -m benchmarks.text_fill [--model FOLDER] [--questions 8]

before    every length from 1 to 12 (stated: the one length) by itself: all fills of the short ones, draws and beams for
          the others, each scored (``candidates``, which still answers brackets); of a model of pieces every number of
          pieces from 1 to 6, and where letters are stated, those of the answers that have so many
after     one search for words of all lengths (``word_search``), with the n-grams that come with the model, if any do,
          as ``fill`` does

Both answer the same blanks one after another in the same process; CPU seconds, the ratio of the sums, and how often the
likeliest text found now is at least as likely as that of 0.1's first word. Exactness: the largest difference between
log p of every candidate as it was ranked, with a cache of what candidates share, and plain scoring of the same text
from nothing.
Writes results/text_fill.json.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import torch

from anyfill import text
from anyfill.evaluation import log_prob
from anyfill.questions import Question
from anyfill.text.blanks import BlankWindow, blank_window, is_one_word, sheet_of
from anyfill.text.candidates import Candidate, candidates
from anyfill.text.counting import CountedPlace
from anyfill.text.model import TextModel
from anyfill.text.sampling import SamplingOptions
from anyfill.text.template import Lengths, parse
from anyfill.text.word_search import word_candidates
from benchmarks.common import write_result

TEXTS = (
    "the ____ sat on the mat",
    "he went to the ____ and bought some bread",
    "the capital of france is ____",
    "it is ____ cold today",
    "the ____ of the united states was elected",
    "she has never ____ him before",
    "they live in a small ____ near the river",
    "most of the ____ were killed in the war",
)


def before(loaded: TextModel, sentence: str, size: int | None) -> list[tuple[str, float]]:
    """Whole words that 0.1's way finds, best first, with log p of the window."""
    lengths = _lengths(loaded, size)
    template = parse(sentence, unstated=lengths, free=True)
    sheet, sampling = sheet_of(template, loaded.vocabulary), SamplingOptions(seed=0)
    window = blank_window(sheet, range(1), (), loaded.length)
    work = candidates(loaded, sheet, range(1), window, sampling=sampling, generator=sampling.generator())
    *_, (found, _) = work
    words = [(one.answers[0], one.log_prob) for one in (found or ([], 0))[0] if is_one_word(one.answers[0])]
    return [one for one in words if size is None or len(one[0]) == size]


def after(loaded: TextModel, sentence: str, size: int | None) -> tuple[list[Candidate], BlankWindow]:
    """Words that are found now, best first, and the window they are for."""
    if loaded.vocabulary.units == "pieces":  # as ``fill`` asks: pieces are not counted, letters are
        text = sentence if size is None else sentence.replace("____", "_" * size)
        template = loaded.template(text, letters=size is not None)
    else:
        lengths = _lengths(loaded, size)
        template = parse(sentence, unstated=lengths, word=lengths)
    sheet = sheet_of(template, loaded.vocabulary)
    window = blank_window(sheet, range(1), (), loaded.length)
    counts = loaded.counts
    counted = None if counts is None else CountedPlace.of(counts, template.stretches[0], template.stretches[1])
    *_, (found, _) = word_candidates(loaded, sheet, 0, window, counted=counted, weights=loaded.weights)
    return [] if found is None else found[0], window


def _lengths(loaded: TextModel, size: int | None) -> Lengths:
    """Of a word, in codes; letters say nothing of the number of pieces."""
    if loaded.vocabulary.units == "pieces":
        return Lengths(1, 6)
    return Lengths(1, 12) if size is None else Lengths(size, size)


def _apart(loaded: TextModel, given: tuple[torch.Tensor, ...], ranked: list[Candidate]) -> float:
    """The largest difference in nats between ranked and plain log-probabilities; not counted in the seconds."""
    if not len(given[1]):
        return 0.0
    largest = 0.0
    for one in ranked:
        codes = torch.cat([given[0], one.codes[0], given[1]])
        x = torch.zeros(1, loaded.length, dtype=torch.int64)
        x[0, : len(codes)] = codes
        asked = (torch.arange(loaded.length) < len(codes)).unsqueeze(0)
        plain = float(log_prob(loaded.model, x, Question(torch.zeros_like(asked), asked)).value)
        largest = max(largest, abs(plain - one.log_prob))
    return largest


def main() -> None:
    """Both ways on every text, stated and unstated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="folder; by default the model that ships")
    parser.add_argument("--questions", type=int, default=len(TEXTS))
    parser.add_argument("--stated", type=int, default=5, help="letters, where the length is stated")
    parser.add_argument("--name", default="text_fill")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    loaded = text.load(arguments.model)
    results: dict[str, Any] = {}
    # Nothing said to 0.1 where a word of pieces ends that nothing stands behind.
    open_ended = loaded.vocabulary.units != "pieces"
    texts = [one for one in TEXTS if open_ended or not one.endswith("____")][: arguments.questions]
    before(loaded, TEXTS[0], 2)  # warm
    for kind, size in (("stated", arguments.stated), ("unstated", None)):
        seconds, same, apart = {"before": 0.0, "after": 0.0}, 0, 0.0
        for sentence in texts:
            started = time.process_time()
            old = before(loaded, sentence, size)
            seconds["before"] += time.process_time() - started
            started = time.process_time()
            ranked, window = after(loaded, sentence, size)
            seconds["after"] += time.process_time() - started
            same += bool(old) and bool(ranked) and max(one.log_prob for one in ranked) >= old[0][1] - 1e-4
            apart = max(apart, _apart(loaded, window.given, ranked))
        results[kind] = {
            "questions": len(texts),
            "cpu_seconds_before": seconds["before"],
            "cpu_seconds_after": seconds["after"],
            "ratio": seconds["before"] / seconds["after"],
            "first_at_least_as_likely": same,
            "largest_difference_nats": apart,
        }
        print(kind, {name: round(value, 6) for name, value in results[kind].items()}, flush=True)
    said = {key: value.name if isinstance(value, Path) else value for key, value in vars(arguments).items()}
    write_result(arguments.name, {"arguments": said, "model": loaded.name, "results": results})


if __name__ == "__main__":
    main()
