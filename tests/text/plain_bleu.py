"""Sentence BLEU with smoothing method 1, written from the definition and for no other virtue than being plain."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction

Sentence = Sequence[Hashable]


def grams(sentence: Sentence, n: int) -> "Counter[tuple[Hashable, ...]]":
    return Counter(tuple(sentence[i : i + n]) for i in range(len(sentence) - n + 1))


def matches(references: Sequence[Sentence], sentence: Sentence, n: int) -> int:
    """Clipped count: what a sentence has of an n-gram, but no more than some one reference has."""
    return sum(
        min(times, max(grams(reference, n)[gram] for reference in references))
        for gram, times in grams(sentence, n).items()
    )


def plain_bleu(references: Sequence[Sentence], sentence: Sentence, n: int) -> float:
    found = [matches(references, sentence, k) for k in range(1, n + 1)]
    if found[0] == 0:
        return 0.0
    there = [max(1, len(sentence) - k + 1) for k in range(1, n + 1)]
    precisions = [Fraction(a, b) if a else Fraction(1, 10) / b for a, b in zip(found, there)]
    length = len(sentence)
    nearest = sorted({len(reference) for reference in references}, key=lambda r: (abs(r - length), r))[0]
    penalty = 1.0 if length > nearest else math.exp(1 - nearest / length)
    return penalty * float(math.prod(precisions)) ** (1 / n)
