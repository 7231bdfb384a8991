"""How good and how varied text is: repetition, variety, filled blanks, bits per character; ``grade_text`` for a sheet.

    distinct-n      different n-grams / n-grams                                (low: the same phrases again and again)
    entropy-n       - sum_g p(g) log2 p(g) bits, p the share of n-gram g; it grows with the text: compare equal amounts
    stutter         words that repeat the word before them / words that have one before them
    bits per char.  nats per token · tokens / (ln 2 · characters); perplexity per word is exp(nats · tokens / words)

For BLEU and Self-BLEU see ``bleu``, which also says which references.
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
from anyfill.text.bleu import (
    Floats,
    NgramTable,
    Sentences,
    bleu,
    counted,
    number,
    require_orders,
    require_sentences,
    self_bleu,
)


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
    require_orders(max_n)
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
