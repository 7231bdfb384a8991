"""The packages that benchmarks/bleu.py measures itself against, in a process of their own.

    python benchmarks/bleu_peers.py nltk|fast_bleu      reads one request per line, answers one line of JSON each

It needs the package, and nothing of this project, so it may run under another interpreter. Requests:

    {"job": "bleu", "sentences": [[word, ...], ...], "references": [[word, ...], ...]}
    {"job": "self_bleu", "sentences": [...], "only": k}      the first k against all others (NLTK only; absent: all)

    -> {"cpu": seconds, "wall": seconds, "scores": BLEU-5 with smoothing method 1 of each sentence}

A job is timed from lists of words to scores, as one call or as the loop that a user of the package writes.
"""

import importlib.metadata
import json
import sys
import time
from typing import Any

Sentences = list[list[str]]
WEIGHTS = (0.2,) * 5


class Nltk:
    """sentence_bleu for each sentence, as Texygen and its followers call it."""

    package = "nltk"

    def __init__(self) -> None:
        from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

        self.score, self.smoothing = sentence_bleu, SmoothingFunction().method1

    def bleu(self, sentences: Sentences, references: Sentences) -> list[float]:
        return [float(self.score(references, each, WEIGHTS, smoothing_function=self.smoothing)) for each in sentences]

    def self_bleu(self, sentences: Sentences, only: int | None = None) -> list[float]:
        return [
            self.bleu([each], sentences[:index] + sentences[index + 1 :])[0]
            for index, each in enumerate(sentences[:only])
        ]


class FastBleu:
    """C++ with OpenMP."""

    package = "fast-bleu"

    def __init__(self) -> None:
        import fast_bleu

        self.module = fast_bleu

    def bleu(self, sentences: Sentences, references: Sentences) -> list[float]:
        return self.module.BLEU(references, {5: WEIGHTS}).get_score(sentences)[5]

    def self_bleu(self, sentences: Sentences, only: int | None = None) -> list[float]:
        if only is not None:
            raise ValueError("fast-bleu scores all sentences or none")
        return self.module.SelfBLEU(sentences, {5: WEIGHTS}).get_score()[5]


PEERS: dict[str, Any] = {"nltk": Nltk, "fast_bleu": FastBleu}


def main() -> None:
    if sys.argv[1:] not in [[name] for name in PEERS]:  # benchmarks/bleu.py calls it; alone it has nothing to do
        print(__doc__)
        return
    build = PEERS[sys.argv[1]]
    version = importlib.metadata.version(build.package)
    peer = build()
    print(json.dumps({"version": version}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        job = getattr(peer, request.pop("job"))
        cpu, wall = time.process_time(), time.perf_counter()
        scores = job(**request)
        took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        print(json.dumps({**took, "scores": scores}), flush=True)


if __name__ == "__main__":
    main()
