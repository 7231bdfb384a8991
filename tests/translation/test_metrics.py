"""Metrics against sacrebleu and by hand."""

import pytest

pytest.importorskip("sacrebleu")

from sacrebleu.metrics import BLEU

from anyfill.translation.metrics import _bleu, _statistics, bootstrap, compared, distinct, evaluated, stutter_rate

REFERENCES = [
    "the house is red and the dog is small",
    "a man rides a bicycle in the park",
    "good morning to you all",
] * 4
OUTPUTS = [
    "the house is is red and the dog small",
    "a man rides a a bicycle in the park",
    "good evening to you all",
] * 4


def test_summed_statistics_give_sacrebleus_corpus_score():
    for outputs in (OUTPUTS, REFERENCES, ["x y z"] * 12, ["the house"] * 12):
        expected = BLEU().corpus_score(outputs, [REFERENCES]).score
        assert _bleu(_statistics(outputs, REFERENCES, "13a").sum(0)) == pytest.approx(expected, abs=1e-6)


def test_evaluation_has_signatures_and_an_interval_around_the_score():
    found = evaluated(OUTPUTS, REFERENCES)
    assert "tok:13a" in found["bleu_signature"]
    assert "version:2" in found["chrf_signature"]
    assert found["bleu_low"] <= found["bleu"] <= found["bleu_high"]
    assert found["length_error"] == pytest.approx((0 + 1 + 0) / 3)
    assert evaluated(REFERENCES, REFERENCES)["bleu"] == pytest.approx(100.0)
    with pytest.raises(ValueError, match="one for each translation"):
        evaluated(OUTPUTS, REFERENCES[:2])


def test_stutter_counts_repeats_that_the_reference_has_not():
    assert stutter_rate(["the the dog"], ["the dog"]) == pytest.approx(100 / 3)
    assert stutter_rate(["that that is"], ["that that was"]) == 0.0
    assert stutter_rate(["no no no"], ["no no"]) == pytest.approx(100 / 3)
    assert stutter_rate([""], ["x"]) == 0.0


def test_a_system_is_compared_on_the_same_sentences():
    better = compared(REFERENCES, OUTPUTS, REFERENCES, resamples=50)
    assert better["difference"] > 0
    assert better["above"] == 1.0
    assert compared(OUTPUTS, OUTPUTS, REFERENCES, resamples=20) == {
        "difference": 0.0,
        "low": 0.0,
        "high": 0.0,
        "above": 0.0,
    }
    assert (bootstrap(OUTPUTS, REFERENCES, resamples=5) == bootstrap(OUTPUTS, REFERENCES, resamples=5)).all()
    assert distinct(["a b a b"]) == pytest.approx(2 / 3)
