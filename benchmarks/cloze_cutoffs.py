"""What n-grams lose where rare ones are left out and shares are rounded: blanked words, by the n-grams alone.

    python -m benchmarks.cloze_cutoffs --sentences deu-eng.tsv.gz --corpus OUT [--questions 400]

OUT is what ``experiments.one_pass.english_corpus`` wrote; the n-grams are of its everyday sentences, those of the first
row of Tatoeba's alone, as in ``benchmarks.cloze``. The questions are those that may fit weights, no others. Files are
written and read again, so that what answers is what would ship. Writes results/cloze_cutoffs.json.
"""

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from anyfill.text.ngram import load_ngrams
from anyfill.text.ngram_counts import count_ngrams
from anyfill.text.words import common_words
from benchmarks.cloze import WORD, accuracy, by_counts, cloze_questions, is_for_fitting, is_held_out, read_sentences
from benchmarks.common import write_result

KINDS: tuple[tuple[str, tuple[int, ...], int], ...] = (
    ("tatoeba", (), 32),
    ("everyday", (), 32),
    ("everyday", (1, 1, 1, 2, 2), 8),
    ("everyday", (1, 1, 2, 2, 2), 8),
    ("everyday", (1, 2, 2, 2, 2), 8),
)


def main() -> None:
    """Every kind on the same questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--name", default="cloze_cutoffs")
    arguments = parser.parse_args()
    sentences = read_sentences(arguments.sentences)
    lines = (arguments.corpus / "english.txt").read_text().splitlines()
    numbers = json.loads((arguments.corpus / "everyday.json").read_text())
    texts = {
        "tatoeba": [one for one in sentences if not is_held_out(one)],
        "everyday": sorted(lines[number] for number in numbers),
    }
    words = Counter(word.lower() for one in texts["tatoeba"] for word in WORD.findall(one))
    known = {word for word, _ in words.most_common(10_000)}
    held = [one for one in sentences if is_held_out(one) and is_for_fitting(one)]
    asked = cloze_questions(held, known, 500, 0)[: arguments.questions]
    results: list[dict[str, Any]] = []
    for name, least, bits in KINDS:
        vocabulary = common_words((f"{line}\n" for line in texts[name]), 30_000, punctuation=True)
        found = count_ngrams((vocabulary.encode(one).tolist() for one in texts[name]), vocabulary, order=5, least=least)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "counts"
            found.save(path, bits=bits)
            size, found = path.stat().st_size, load_ngrams(path)
        row: dict[str, Any] = {"text": name, "least": least, "bits": bits, "bytes": size}
        for kind, stated in (("stated", True), ("unstated", False)):
            row[kind] = accuracy(asked, [by_counts(found, one, stated=stated, fold=False) for one in asked])
        results.append(row)
        print(json.dumps(row), flush=True)
        write_result(arguments.name, {"questions": len(asked), "results": results})


if __name__ == "__main__":
    main()
