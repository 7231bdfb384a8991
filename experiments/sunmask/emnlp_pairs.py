"""The company that words keep: how a sentence leans to one of two, and which pairs are worth asking about.

Pairs of captions are chosen by a rule that knows the training sentences alone. A word's company is the share of every
other word among those beside it in its sentences; what sets it apart is the divergence

    sum_w p(w | beside the word) log [ p(w | beside the word) / p(w) ]        in nats

Of the words that stand in a hundredth of the sentences, without a full stop, those with 0.8 nats or more are taken, the
most frequent first ("white" or "next" keep any company and are not among them). Each in turn is paired with the one of
those left with which it shares the fewest sentences, the more frequent of equals.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import mean

PRIOR = 50.0
"""Words' worth of the overall shares that are added to counts."""


def leaning(training: Sequence[Sequence[str]], first: str, second: str) -> Callable[[Sequence[str]], float]:
    """How far a sentence leans towards ``first``, away from ``second``; in nats per word."""
    overall = Counter(word for sentence in training for word in sentence)
    total = overall.total()
    near = {
        keyword: Counter(word for sentence in training if keyword in sentence for word in sentence)
        for keyword in (first, second)
    }

    def log_share(word: str, keyword: str) -> float:
        return math.log((near[keyword][word] + PRIOR * overall[word] / total) / (near[keyword].total() + PRIOR))

    def lean(sentence: Sequence[str]) -> float:
        others = [word for word in sentence if word not in (first, second) and word in overall]
        return mean(log_share(word, first) - log_share(word, second) for word in others) if others else 0.0

    return lean


def frequent_pairs(
    training: Sequence[Sequence[str]], count: int = 8, *, share: float = 0.01, apart: float = 0.8
) -> list[tuple[str, str]]:
    """So many pairs by the rule above; fewer if there are not as many such words."""
    overall = Counter(word for sentence in training for word in sentence)
    within = Counter(word for sentence in training for word in set(sentence))
    frequent = [word for word, times in within.most_common() if times >= share * len(training) and word.isalpha()]
    beside: dict[str, Counter[str]] = {word: Counter() for word in frequent}
    shared: dict[str, Counter[str]] = {word: Counter() for word in frequent}
    for sentence in training:
        words = set(sentence)
        for word in words & beside.keys():
            beside[word].update(other for other in sentence if other != word)
            shared[word].update(words)

    def divergence(word: str) -> float:
        near, total = beside[word], beside[word].total()
        return sum(n / total * math.log(n / total * overall.total() / overall[other]) for other, n in near.items())

    left = [word for word in frequent if divergence(word) >= apart][: 2 * count]
    pairs: list[tuple[str, str]] = []
    while len(left) > 1:
        first = left.pop(0)
        second = min(left, key=lambda other: shared[first][other])  # the first of equals, which is the most frequent
        left.remove(second)
        pairs.append((first, second))
    return pairs
