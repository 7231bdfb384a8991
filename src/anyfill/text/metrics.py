"""How good and how varied text is: BLEU, repetition, variety, filled blanks, bits per character; ``grade_text``: all.

    distinct-n      different n-grams / n-grams                                (low: the same phrases again and again)
    entropy-n       - sum_g p(g) log2 p(g) bits, p the share of n-gram g; it grows with the text: compare equal amounts
    stutter         words that repeat the word before them / words that have one before them
    bits per char.  nats per token · tokens / (ln 2 · characters); perplexity per word is exp(nats · tokens / words)

**BLEU-n** against references and **Self-BLEU-n**, sentence by sentence, as the benchmarks of text generation have them.
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
own and nobody else's, and then the second largest (``largest_two``).

Which sentences (both scores grow with the number of references, so a number without this means nothing: Self-BLEU-5 of
the same real text is 0.12 among 1,000 sentences and 0.24 among 10,000, results/bleu.json):

    GansFallingShort, and ours     10,000 samples against all 10,000 test sentences; Self-BLEU among all 10,000 samples
    SUNMASK, Figure 2              1,000 samples; its baselines have 10,000, so Self-BLEU is lower for the same text
    Texygen                        the first 500 references and the first 500 samples
    TextGAN-PyTorch                the first 200 samples against all test sentences

Slice the lists to follow another protocol. Words are compared as they are: sentences come split and in one spelling
(Texygen splits again with NLTK's tokeniser). Texygen's ``SelfBleu.get_bleu``, which it does not call, leaves the
sentence itself among its references, so that everything scores 1.

How n-grams are counted stands in ``anyfill.text.ngram_tables``.

A sentence is a list of words; a word is anything that can be hashed, so codes of tokens do as well as strings.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from anyfill.checks import refuse, require_bool, require_count, require_shape
from anyfill.text.ngram_tables import Floats, Ints, Sentences, counted, largest_two, number, require_sentences
from anyfill.text.ngram_tables import NgramTable as NgramTable

SMOOTHED = 0.1


def bleu(sentences: Sentences, references: Sentences | NgramTable, *, max_n: int = 5) -> Floats:
    """float64 (S, max_n): BLEU-1 … BLEU-``max_n`` of each sentence against all references.

    ``references`` may be an ``NgramTable.of(references, max_n)`` that is used again; ``.mean(0)`` is the set's score.
    """
    require_count("largest order of n-grams", max_n)
    table = references if isinstance(references, NgramTable) else NgramTable.of(references, max_n)
    if len(table.levels) < max_n:
        expected = f"n-grams of up to {max_n} words"
        raise refuse("table of references", expected=expected, got=f"up to {len(table.levels)}")
    lengths, found = table.look_up(sentences)
    matched = np.zeros((len(lengths), max_n))
    for k, (level, counts) in enumerate(zip(table.levels[:max_n], found)):
        clipped = np.minimum(counts.times, level.largest[counts.code])
        matched[:, k] = np.bincount(counts.owner, clipped, len(lengths))
    return _scores(matched, lengths, _nearest(lengths, np.unique(table.lengths)))


def self_bleu(sentences: Sentences, *, max_n: int = 5) -> Floats:
    """float64 (S, max_n): Self-BLEU-1 … Self-BLEU-``max_n``, each sentence against all the others; low is diverse."""
    require_count("largest order of n-grams", max_n)
    vocabulary, flat = number(sentences)
    lengths = flat.lengths
    if len(lengths) < 2:
        raise refuse("sentences", expected="at least two, for each is compared with the others", got=len(lengths))
    matched = np.zeros((len(lengths), max_n))
    for k, (pairs, counts) in enumerate(counted(flat, len(vocabulary), max_n)):
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


@dataclass(frozen=True, slots=True)
class TextGrade:
    """A set of sentences on one sheet; entry n - 1 of a tuple is for n-grams of n words.

    Attributes:
        sentences: how many there are; scores of different numbers of sentences cannot be compared.
        bleu: mean BLEU-n against the references: high is good.
        self_bleu: mean Self-BLEU-n: low is varied.
        distinct, entropy: distinct-n, and entropy-n in bits.
        stutter: share of words that repeat the one before.
    """

    sentences: int
    bleu: tuple[float, ...]
    self_bleu: tuple[float, ...]
    distinct: tuple[float, ...]
    entropy: tuple[float, ...]
    stutter: float


def grade_text(sentences: Sentences, references: Sentences | NgramTable, *, max_n: int = 5) -> TextGrade:
    """All grades of ``sentences``, for n up to ``max_n``; give ``NgramTable.of(references)`` to grade several sets."""
    totals = _totals(sentences, max_n)
    return TextGrade(
        sentences=len(sentences),
        bleu=tuple(bleu(sentences, references, max_n=max_n).mean(0).tolist()),
        self_bleu=tuple(self_bleu(sentences, max_n=max_n).mean(0).tolist()),
        distinct=tuple(map(_distinct, totals)),
        entropy=tuple(map(_entropy, totals)),
        stutter=stutter(sentences),
    )


def distinct(sentences: Sentences, n: int) -> float:
    """Distinct-n: different n-grams divided by n-grams, over all sentences; 0 if none is so long."""
    return _distinct(_totals(sentences, n)[-1])


def ngram_entropy(sentences: Sentences, n: int) -> float:
    """Entropy in bits of the n-grams of all sentences; 0 if none is so long."""
    return _entropy(_totals(sentences, n)[-1])


def stutter(sentences: Sentences, references: Sentences | None = None) -> float:
    """The share of words that repeat the word before them, of all that have one before them (0 if none has).

    With ``references``, one for each sentence, a repeat is excused as often as its reference repeats the same word
    ("repeated in the model output but not in the reference", PaDIR, section 3.3; it leaves open whether one repeat in
    the reference excuses several: here it does not).
    """
    require_sentences(sentences)
    if references is not None:
        require_sentences(references)
        if len(references) != len(sentences):
            raise refuse("references", expected=f"one for each of {len(sentences)} sentences", got=len(references))
    repeats = sum(_repeats(sentence).total() for sentence in sentences)
    if references is not None:
        repeats = sum((_repeats(own) - _repeats(theirs)).total() for own, theirs in zip(sentences, references))
    pairs = sum(max(len(sentence) - 1, 0) for sentence in sentences)
    return repeats / pairs if pairs else 0.0


@dataclass(frozen=True, slots=True)
class BlankMatches:
    """Shares of what was filled in exactly: asked tokens, blanks (runs of asked tokens), rows with a blank."""

    tokens: float
    blanks: float
    rows: float


def blank_matches(x: Tensor, truth: Tensor, asked: Tensor) -> BlankMatches:
    """How much of the asked in ``truth`` (B, N) is found in ``x`` (B, N); ``asked`` is bool (B, N).

    A blank is a longest run of asked tokens in a row and matches if all of them do. Tokens not asked are not looked at.
    """
    require_bool("asked", asked)
    require_shape("asked", asked, (None, None))
    require_shape("x", x, tuple(asked.shape))
    require_shape("truth", truth, tuple(asked.shape))
    if not bool(asked.any()):
        raise refuse("asked", expected="at least one token", got="none")
    begins = asked.clone()
    begins[:, 1:] &= ~asked[:, :-1]
    blank = begins.flatten().cumsum(0)[asked.flatten()] - 1
    right = (x == truth)[asked]
    whole = torch.ones(int(begins.sum()), dtype=torch.int64, device=asked.device)
    whole.scatter_reduce_(0, blank, right.long(), reduce="amin")
    rows = ((x == truth) | ~asked).all(1)[asked.any(1)]
    return BlankMatches(*(float(each.double().mean()) for each in (right, whole, rows)))


def exact_match(filled: Sequence[Hashable], truth: Sequence[Hashable]) -> float:
    """The share of blanks filled as they were: for blanks whose length the filler chose, as strings or tuples."""
    if not len(truth) or len(filled) != len(truth):
        raise refuse("filled", expected=f"one answer for each of {len(truth)} blanks, at least one", got=len(filled))
    return sum(own == theirs for own, theirs in zip(filled, truth)) / len(truth)


def bits_per_character(nats: float, *, tokens: int, characters: int) -> float:
    """Bits per character of ``tokens`` tokens that spell ``characters`` characters, at ``nats`` per token.

    ``nats`` is the mean of -log p over tokens (a sum has ``tokens=1``). All that the tokens spell is counted, spaces
    between words too; models of different tokens can be compared by it if they spell the same text.
    """
    require_count("tokens", tokens)
    require_count("characters", characters)
    return float(nats) * tokens / (math.log(2) * characters)


def perplexity(nats: float, *, tokens: int, words: int) -> float:
    """exp of the nats per word, of ``tokens`` tokens that make ``words`` words, at ``nats`` per token on average."""
    require_count("tokens", tokens)
    require_count("words", words)
    return math.exp(float(nats) * tokens / words)


def _repeats(sentence: Sequence[Hashable]) -> Counter[Hashable]:
    """How often each word follows itself."""
    return Counter(word for before, word in pairwise(sentence) if word == before)


def _totals(sentences: Sentences, max_n: int) -> list[Floats]:
    """For each order, how often every n-gram occurs in all sentences together (G,)."""
    require_count("largest order of n-grams", max_n)
    vocabulary, flat = number(sentences)
    levels = counted(flat, len(vocabulary), max_n)
    return [np.bincount(each.code, each.times, len(pairs)).astype(np.float64) for pairs, each in levels]


def _distinct(totals: Floats) -> float:
    return len(totals) / float(totals.sum()) if len(totals) else 0.0


def _entropy(totals: Floats) -> float:
    if not len(totals):
        return 0.0
    share = totals / totals.sum()
    return max(0.0, -float((share * np.log2(share)).sum()))
