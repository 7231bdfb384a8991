"""Counted drafts: Witten-Bell by another route, and the law that is stated is the law that is drawn."""

from collections import Counter

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator

from anyfill.samplers import Draw, reshape_log_probs
from anyfill.samplers.drafts import Draft, NgramDraft

TEXT = [0, 1, 2, 0, 1, 1, 0, 2, 2, 1, 0, 1, 2, 1, 0, 0]


def by_counting(text, size, order, context):
    """p(c | context), from counters; every shorter n-gram is the ending of one of ``order`` values."""
    grams = [tuple(text[i : i + order]) for i in range(len(text) - order + 1)]
    law = [1 / size] * size
    for n in range(1, order + 1):
        if n - 1 > len(context):
            break
        tail = tuple(context[len(context) - (n - 1) :])
        seen = Counter(gram[-1] for gram in grams if gram[order - n : order - 1] == tail)
        if not seen:
            break
        total, kinds = sum(seen.values()), len(seen)
        law = [(seen[c] + kinds * law[c]) / (total + kinds) for c in range(size)]
    return torch.tensor(law, dtype=torch.float64)


def stated(draft, values, known, variables, draw=None):
    """(B, W, K) for rows of values."""
    options = {"draw": draw or Draw(), "generator": Generator().manual_seed(0)}
    return draft(torch.tensor(values), torch.tensor(known), torch.tensor(variables), **options)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_are_those_of_witten_bell(order):
    draft = NgramDraft.of(torch.tensor(TEXT), 3, order=order)
    for context in [(0, 1, 2), (2, 0, 0), (1, 1, 1), (2, 2, 2), (0, 2, 2)]:
        _, log_probs = stated(draft, [[*context, 0]], [[True] * 3 + [False]], [[3]])
        expected = by_counting(TEXT, 3, order, context)
        torch.testing.assert_close(log_probs.exp()[0, 0], expected, atol=1e-8, rtol=0)


def test_context_ends_at_the_first_value_that_is_not_known():
    draft = NgramDraft.of(torch.tensor(TEXT), 3, order=4)
    for known, context in {
        (True, True, True): (1, 0, 1),
        (False, True, True): (0, 1),
        (True, False, True): (1,),
        (True, True, False): (),
    }.items():
        _, log_probs = stated(draft, [[1, 0, 1, 9]], [[*known, False]], [[3]])
        torch.testing.assert_close(log_probs.exp()[0, 0], by_counting(TEXT, 3, 4, context), atol=1e-8, rtol=0)
    _, first = stated(draft, [[7, 7]], [[False, True]], [[0]])  # at the left edge nothing is known
    torch.testing.assert_close(first.exp()[0, 0], by_counting(TEXT, 3, 4, ()), atol=1e-8, rtol=0)


def test_rows_are_counted_apart():
    rows = torch.tensor([[0, 0, 1], [1, 2, 2]])
    draft = NgramDraft.of(rows, 3, order=2)
    _, log_probs = stated(draft, [[1, 0]], [[True, False]], [[1]])
    unigram = torch.tensor([(1 + 3 / 3) / (4 + 3), (1 + 3 / 3) / (4 + 3), (2 + 3 / 3) / (4 + 3)], dtype=torch.float64)
    expected = (torch.tensor([0.0, 0.0, 1.0]) + unigram) / 2  # 1 was followed by 2, once; never by the next row
    torch.testing.assert_close(log_probs.exp()[0, 0], expected, atol=1e-8, rtol=0)


@pytest.mark.parametrize("draw", [Draw(), Draw(temperature=0.5), Draw(top_k=2)])
def test_guesses_follow_the_law_that_is_stated(draw):
    """Each guess by chi-square, apart for every law it was drawn from. False alarms: p > 0.001 with a fixed seed."""
    draft, rows = NgramDraft.of(torch.tensor(TEXT), 3, order=3), 20_000
    x = torch.tensor([0, 9, 9, 1, 9]).expand(rows, 5)
    known = torch.tensor([True, False, False, True, False]).expand(rows, 5)
    variables = torch.tensor([1, 2, 4]).expand(rows, 3)
    guesses, log_probs = draft(x, known, variables, draw=draw, generator=Generator().manual_seed(1))
    for guess, laws in zip(guesses.unbind(1), log_probs.unbind(1)):
        for law in laws.unique(dim=0):
            counts = torch.bincount(guess[(laws == law).all(1)], minlength=3).double()
            possible = law > -torch.inf
            assert not bool(counts[~possible].any())
            assert chisquare(counts[possible], law.exp()[possible] * counts.sum()).pvalue > 0.001
    for first in guesses[:, 0].unique().tolist():  # the second was guessed after its left neighbour, so it has seen it
        expected = reshape_log_probs(by_counting(TEXT, 3, 3, (0, first)).log(), draw).exp()
        torch.testing.assert_close(log_probs[guesses[:, 0] == first][0, 1].exp(), expected, atol=1e-7, rtol=0)


def test_the_same_generator_gives_the_same_guesses_and_the_draft_is_one():
    draft = NgramDraft.of(torch.tensor(TEXT).to(torch.uint8), 3, order=2)
    assert isinstance(draft, Draft)
    assert draft.size == 3
    x, known, variables = torch.zeros(50, 4).long(), torch.zeros(50, 4).bool(), torch.arange(4).expand(50, 4)
    one, two, other = (
        draft(x, known, variables, draw=Draw(), generator=Generator().manual_seed(s))[0] for s in (0, 0, 1)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("codes", "size", "order", "sentence"),
    [
        ([0, 1], 3, 3, r"codes: expected at least one row of 3 codes or more, got \(2,\)"),
        ([0, 5, 1], 3, 2, "codes: expected from 0 to 2, got 0 to 5"),
        ([0, 1, 2], 3, 0, "order: expected a whole number from 1 up, got 0"),
        (list(range(9)), 5000, 9, r"order: expected \(size \+ 1\)\^\(order - 1\) of at most"),
    ],
)
def test_what_cannot_be_counted_is_refused_in_one_sentence(codes, size, order, sentence):
    with pytest.raises(ValueError, match=sentence):
        NgramDraft.of(torch.tensor(codes), size, order=order)


def test_a_table_on_another_device_is_refused():
    draft = NgramDraft.of(torch.tensor(TEXT), 3, order=2).to("meta")
    with pytest.raises(ValueError, match=r"device of the draft: expected cpu, as the rows \(use .to\), got meta"):
        stated(draft, [[0, 0]], [[True, False]], [[1]])
