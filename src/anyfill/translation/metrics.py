"""How good translations are: BLEU and chrF by sacrebleu, and what parallel decoding gets wrong.

    bleu, chrf      corpus scores with sacrebleu's signature, on plain text (13a tokens, mixed case)
    stutter         how often a word equals the one before it in the output and no such pair stands in the reference, in
                    percent of words (the paper's word-level stutter, section 3.3)
    length_ratio    words of the output over words of the reference
    length_error    mean of |words of output - words of reference| of a sentence
    distinct        different bigrams over all bigrams of the output

Intervals are bootstrap over sentences; two systems are compared on the same resamples.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse, require_package


def sacrebleu_metrics() -> Any:
    """sacrebleu's metrics; ValueError with what to install if they are not there."""
    return require_package("sacrebleu.metrics", "BLEU", extra="translation")


def _require_alike(outputs: Sequence[str], references: Sequence[str]) -> None:
    if len(outputs) != len(references) or not outputs:
        raise refuse("references", expected=f"{len(outputs):,}, one for each translation", got=f"{len(references):,}")


def repeats(text: str) -> list[str]:
    """The words that equal the one before them."""
    return [word for before, word in pairwise(text.split()) if before == word]


def stutter_rate(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Percent of words."""
    count = words = 0
    for output, reference in zip(outputs, references):
        allowed = repeats(reference)
        words += len(output.split())
        for word in repeats(output):
            if word in allowed:
                allowed.remove(word)
            else:
                count += 1
    return 100.0 * count / max(words, 1)


def distinct(outputs: Sequence[str], n: int = 2) -> float:
    """Different n-grams over all n-grams."""
    grams = [tuple(words[i : i + n]) for words in (one.split() for one in outputs) for i in range(len(words) - n + 1)]
    return len(set(grams)) / max(len(grams), 1)


def evaluated(outputs: Sequence[str], references: Sequence[str], *, tokenize: str = "13a") -> dict[str, Any]:
    """All of them, with BLEU's and chrF's signatures and a 95 % interval of BLEU."""
    _require_alike(outputs, references)
    metrics = sacrebleu_metrics()
    bleu, chrf = metrics.BLEU(tokenize=tokenize, force=tokenize == "none"), metrics.CHRF()
    score, other = bleu.corpus_score(outputs, [references]), chrf.corpus_score(outputs, [references])
    low, high = np.quantile(bootstrap(outputs, references, tokenize=tokenize), [0.025, 0.975]).tolist()
    ours, theirs = ([len(one.split()) for one in some] for some in (outputs, references))
    return {
        "bleu": score.score,
        "bleu_low": low,
        "bleu_high": high,
        "bleu_signature": str(bleu.get_signature()),
        "chrf": other.score,
        "chrf_signature": str(chrf.get_signature()),
        "stutter": stutter_rate(outputs, references),
        "length_ratio": sum(ours) / max(sum(theirs), 1),
        "length_error": float(np.mean([abs(a - b) for a, b in zip(ours, theirs)])),
        "distinct": distinct(outputs),
        "sentences": len(outputs),
    }


def bootstrap(
    outputs: Sequence[str], references: Sequence[str], *, resamples: int = 500, seed: int = 0, tokenize: str = "13a"
) -> NDArray[np.float64]:
    """(resamples,): BLEU of resampled sentences; the same seed resamples the same ones."""
    _require_alike(outputs, references)
    stats = _statistics(outputs, references, tokenize)
    index = np.random.default_rng(seed).integers(len(stats), size=(resamples, len(stats)))
    return np.array([_bleu(stats[some].sum(0)) for some in index])


def compared(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    *,
    resamples: int = 500,
    tokenize: str = "13a",
) -> dict[str, float]:
    """BLEU of the first less that of the second: the difference, its 95 % interval, and how often it is above 0."""
    drawn = [bootstrap(one, references, resamples=resamples, tokenize=tokenize) for one in (first, second)]
    gap = drawn[0] - drawn[1]
    low, high = np.quantile(gap, [0.025, 0.975]).tolist()
    whole = [_bleu(_statistics(one, references, tokenize).sum(0)) for one in (first, second)]
    return {"difference": whole[0] - whole[1], "low": low, "high": high, "above": float((gap > 0).mean())}


def _statistics(outputs: Sequence[str], references: Sequence[str], tokenize: str) -> NDArray[np.float64]:
    """(sentences, 10): lengths of output and reference, right n-grams, all n-grams, n = 1 … 4."""
    return _counted(tuple(outputs), tuple(references), tokenize)


@lru_cache(maxsize=64)  # a system is compared with many others
def _counted(outputs: tuple[str, ...], references: tuple[str, ...], tokenize: str) -> NDArray[np.float64]:
    bleu = sacrebleu_metrics().BLEU(tokenize=tokenize, effective_order=True, force=tokenize == "none")
    rows: list[list[float]] = []
    for output, reference in zip(outputs, references):
        one = bleu.sentence_score(output, [reference])
        rows.append([one.sys_len, one.ref_len, *one.counts, *one.totals])
    return np.array(rows, dtype=np.float64)


def _bleu(total: NDArray[np.float64]) -> float:
    """BLEU of summed statistics, smoothed as sacrebleu does (a count of none becomes 1/2, 1/4, …)."""
    ours, theirs, counts, totals = total[0], total[1], total[2:6], total[6:10]
    if ours == 0 or totals[0] == 0 or counts[0] == 0:
        return 0.0
    logs, halving = [], 1.0
    for count, all_of_them in zip(counts, totals):
        if all_of_them == 0:
            return 0.0
        if count == 0:
            halving *= 2
            logs.append(np.log(100.0 / (halving * all_of_them)))
        else:
            logs.append(np.log(100.0 * count / all_of_them))
    brevity = 1.0 if ours >= theirs else float(np.exp(1 - theirs / ours))
    return float(brevity * np.exp(np.mean(logs)))
