"""BLEU-n against references and Self-BLEU-n, sentence by sentence, as the benchmarks of text generation have them.

For a sentence of c words against a set of references

    BLEU-n  = BP · exp( (1/n) sum_{k=1..n} log p_k )        uniform weights
    p_k     = sum_g min(count(g), max over references count_r(g)) / max(1, c - k + 1)      over its k-grams g
              (0.1 in place of a sum of 0: "smoothing method 1"); all is 0 if not one word is in any reference
    BP      = 1 if c > r, else exp(1 - r / c);     r = the length nearest to c among the references (the shorter of two)

which is NLTK's ``sentence_bleu`` with ``SmoothingFunction().method1``: equal to it to 1e-9 (tests/, results/bleu.json).
Self-BLEU-n of a sentence is its BLEU-n against all the others. The number reported for a set is the mean over its
sentences, never BLEU of the corpus.

Why it takes a second and not hours. The references matter only through the largest count of each n-gram in any one of
them, found once for all sentences. For Self-BLEU they change from sentence to sentence, but only by one being left out,
and of "the largest count among the others" there are two values per n-gram: the largest, unless it is the sentence's
own and nobody else's, and then the second largest (``ngrams.largest_two``).

Which sentences (both scores grow with the number of references, so a number without this means nothing: Self-BLEU-5 of
the same real text is 0.12 among 1,000 sentences and 0.24 among 10,000, results/bleu.json):

    GansFallingShort, and ours     10,000 samples against all 10,000 test sentences; Self-BLEU among all 10,000 samples
    SUNMASK, Figure 2              1,000 samples; its baselines have 10,000, so Self-BLEU is lower for the same text
    Texygen                        the first 500 references and the first 500 samples
    TextGAN-PyTorch                the first 200 samples against all test sentences

Slice the lists to follow another protocol. Words are compared as they are: sentences come split and in one spelling
(Texygen splits again with NLTK's tokeniser). Texygen's ``SelfBleu.get_bleu``, which it does not call, leaves the
sentence itself among its references, so that everything scores 1.
"""

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.text.ngrams import Ints, NgramTable, Sentences, counted, largest_two, number, require_orders

Floats = NDArray[np.float64]
SMOOTHED = 0.1


def bleu(sentences: Sentences, references: Sentences | NgramTable, *, most: int = 5) -> Floats:
    """float64 (S, most): BLEU-1 … BLEU-``most`` of each sentence against all references.

    ``references`` may be an ``NgramTable.of(references, most)`` that is used again; ``.mean(0)`` is the set's score.
    """
    require_orders(most)
    table = references if isinstance(references, NgramTable) else NgramTable.of(references, most)
    if len(table.levels) < most:
        raise refuse("table of references", expected=f"n-grams of up to {most} words", got=f"up to {len(table.levels)}")
    lengths, found = table.look_up(sentences)
    matched = np.zeros((len(lengths), most))
    for k, (level, counts) in enumerate(zip(table.levels[:most], found)):
        clipped = np.minimum(counts.times, level.largest[counts.code])
        matched[:, k] = np.bincount(counts.owner, clipped, len(lengths))
    return _scores(matched, lengths, _nearest(lengths, np.unique(table.lengths)))


def self_bleu(sentences: Sentences, *, most: int = 5) -> Floats:
    """float64 (S, most): Self-BLEU-1 … Self-BLEU-``most``, each sentence against all the others; low is diverse."""
    require_orders(most)
    vocabulary, flat = number(sentences)
    lengths = flat.lengths
    if len(lengths) < 2:
        raise refuse("sentences", expected="at least two, for each is compared with the others", got=len(lengths))
    matched = np.zeros((len(lengths), most))
    for k, (pairs, counts) in enumerate(counted(flat, len(vocabulary), most)):
        largest, second = largest_two(counts, len(pairs))
        among_others = np.where(counts.times < largest[counts.code], largest[counts.code], second[counts.code])
        matched[:, k] = np.bincount(counts.owner, np.minimum(counts.times, among_others), len(lengths))
    kinds, times = np.unique(lengths, return_counts=True)
    nearest = lengths.copy()  # another sentence is as long, or:
    for length in kinds[times == 1]:
        nearest[lengths == length] = _nearest(np.array([length]), kinds[kinds != length])
    return _scores(matched, lengths, nearest)


def _nearest(lengths: Ints, kinds: Ints) -> Ints:
    """For each length the nearest of ``kinds`` (ascending), the shorter of two that are equally near."""
    above = np.searchsorted(kinds, lengths)
    low, high = kinds[np.maximum(above - 1, 0)], kinds[np.minimum(above, len(kinds) - 1)]
    return np.where(np.abs(lengths - low) <= np.abs(high - lengths), low, high)


def _scores(matched: Floats, lengths: Ints, nearest: Ints) -> Floats:
    """Matches (S, m), lengths and nearest reference lengths (S,) to BLEU-1 … BLEU-m (S, m)."""
    orders = np.arange(1, matched.shape[1] + 1)
    there = np.maximum(lengths[:, None] - orders + 1, 1)
    log_precision = np.log(np.where(matched > 0, matched, SMOOTHED) / there)
    words = np.maximum(lengths, 1)
    log_penalty = np.where(lengths > nearest, 0.0, 1.0 - nearest / words)
    scores = np.exp(log_penalty[:, None] + np.cumsum(log_precision, 1) / orders)
    return np.where(matched[:, :1] > 0, scores, 0.0)
