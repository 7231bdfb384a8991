"""Decoding again where words were dropped: what goes on from where, and who is left alone."""

from dataclasses import replace

import pytest

from anyfill.questions import Factorization
from anyfill.translation.decode import Decoder
from anyfill.translation.hypotheses import Decoding
from anyfill.translation.recipes import make_model

HOW = Decoding(passes=3, lengths=12, shorten=0)
SOURCES = ("Guten Morgen", "Ich wohne in Wien.", "Das Haus ist rot.", "Der Hund schläft.")


@pytest.fixture(scope="module")
def decoded(vocabulary):
    """Pairs of hypotheses that began with the same noise, not shortened and shortened once."""
    model = make_model("padir", vocabulary.size, 16, "toy", dropout=0.0).eval()
    model.factorizations = {Factorization.ANY_ORDER}
    model.network.table.weight.data[150:154] *= 4  # a few words are said again and again
    decoder = Decoder(model, "padir", vocabulary)
    sources = [vocabulary.encode(source) for source in SOURCES]
    found = [decoder.decode(sources, replace(HOW, shorten=times), history=True) for times in (0, 1)]
    once, again = ([{one.history[0]: one for one in some} for some in each] for each in found)
    return [(one, other[key]) for some, other in zip(once, again) for key, one in some.items()]


def test_a_row_without_repeats_is_left_as_it_is(decoded):
    untouched = [pair for pair in decoded if len(pair[0].codes) == len(pair[0].history[-1])]
    assert untouched
    assert all(one == other for one, other in untouched)


def test_a_row_with_repeats_goes_on_from_what_is_left_of_it(decoded):
    dropped = [(a, b) for a, b in decoded if 0 < len(a.codes) < len(a.history[-1])]
    assert len(dropped) > 3
    for before, after in dropped:
        assert after.history[: len(before.history)] == before.history
        rest = after.history[len(before.history) :]
        assert rest
        assert all(len(row) == len(before.codes) for row in rest)
        assert after.passes > before.passes
        assert len(after.codes) <= len(before.codes)
    assert any(after.codes != before.codes for before, after in dropped)
