"""Phrases that are kept: lengths that have room for their pieces are tried, and compared fairly."""

import math

import pytest
import torch

from anyfill.translation.constraints import Keep
from anyfill.translation.hypotheses import MOST, Decoding
from anyfill.translation.keeping import keeping

SOURCE = "Ich wohne in Berlin."


@pytest.mark.parametrize("place", [None, 2])
def test_lengths_that_are_longer_by_the_extra_pieces_are_tried_too(translators, place):
    decoder = translators("cmlm").decoder
    text = "Bahnhof"
    extra = len(decoder.vocabulary.encode(text)) - 1
    assert extra >= 2
    log_lengths = torch.full((decoder.length,), -50.0, dtype=torch.float64)
    likely = decoder.length - extra - 1
    log_lengths[likely - 1] = 0.0
    found = keeping(decoder, [Keep(text, place)], Decoding(lengths=1))(log_lengths)
    assert {one.length for one in found} == {likely, likely + extra}
    assert {one.extra for one in found} == {extra}
    assert len(found) <= MOST
    symbols = keeping(decoder, [Keep("⟦0⟧", place)], Decoding(lengths=1))(log_lengths)
    assert {(one.length, one.extra) for one in symbols} == {(likely, None)}  # the source has it, too


@pytest.mark.parametrize("text", ["Berlin", "Vienna", "house"])
def test_ways_to_keep_a_word_are_ranked_by_the_mean_of_all_words_with_a_prior_of_both_lengths(translators, text):
    decoder, how = translators("cmlm").decoder, Decoding(passes=2)
    source = decoder.vocabulary.encode(SOURCE)
    with torch.no_grad():
        log_lengths = decoder.model.read(torch.tensor([source])).lengths.double().log_softmax(-1)[0]
    extra = len(decoder.vocabulary.encode(text)) - 1
    found = decoder.decode([source], how, ways=keeping(decoder, [Keep(text)], how))[0]
    ranked = []
    for one in found:
        n = len(one.codes)
        lengths = [n, n - extra] if n > extra else [n]
        prior = math.log(sum(math.exp(log_lengths[length - 1]) for length in lengths) / 2)
        ranked.append((one.log_prob - prior) / n + how.reward * n + how.prior * prior)
    assert len({len(one.codes) for one in found}) > 1
    assert ranked == pytest.approx(sorted(ranked, reverse=True), abs=1e-4)
