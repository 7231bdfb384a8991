"""The n-grams that ship beside the model of everyday English, from the same corpus.

    python -m experiments.one_pass.english_counts --corpus OUT [--model src/anyfill/models/english]

OUT is what ``experiments.one_pass.english_corpus`` wrote: of its lines the everyday sentences are counted (Tatoeba and
the Tanaka corpus, CC BY; what ``benchmarks.cloze`` holds out is in none of its lines). 5-grams of words and marks;
those of four and five tokens are kept if they occur twice, shares in 8 bits. Writes MODEL/counts.safetensors, which
``fill``, ``restore`` and ``check`` take where nothing else is said; with the powers of p(text), the direct answer and
these n-grams by which ``fill`` ranks words.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from anyfill.text.model import COUNTS
from anyfill.text.ngram_counts import count_ngrams
from anyfill.text.words import common_words

ORDER, LEAST, VOCABULARY = 5, (1, 1, 1, 2, 2), 30_000
POWERS = (0.29, 0.19, 0.35)
"""Cut-offs and powers were chosen on questions of ``benchmarks.cloze`` that may fit weights, docs/results/cloze.md."""


def main() -> None:
    """Count, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("src/anyfill/models/english"))
    arguments = parser.parse_args()
    lines = (arguments.corpus / "english.txt").read_text().splitlines()
    lines = sorted(lines[number] for number in json.loads((arguments.corpus / "everyday.json").read_text()))
    vocabulary = common_words((f"{line}\n" for line in lines), VOCABULARY, punctuation=True)
    found = count_ngrams((vocabulary.encode(one).tolist() for one in lines), vocabulary, order=ORDER, least=LEAST)
    replace(found, powers=POWERS).save(arguments.model / COUNTS, bits=8)
    grams = [len(level.keys) for level in found.levels]
    size = (arguments.model / COUNTS).stat().st_size
    print(json.dumps({"lines": len(lines), "words": vocabulary.size - 1, "n-grams": grams, "bytes": size}))


if __name__ == "__main__":
    main()
