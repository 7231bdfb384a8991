"""Errors of BLEU and Self-BLEU: leaving out groups, against sets that are really drawn again; pairs of words."""

import numpy as np
import pytest

from anyfill.text.metrics import bleu, self_bleu
from anyfill.text.ngram_tables import NgramTable
from experiments.sunmask import emnlp_errors as errors
from experiments.sunmask import emnlp_plot as plot
from experiments.sunmask.emnlp_grade import curves_of
from experiments.sunmask.emnlp_pairs import frequent_pairs


def test_each_group_is_left_out_once():
    text = plot.made_up_text(30, 0)
    table = NgramTable.of(text[20:], 3)
    found = errors.left_out(text[:12], table, groups=3, n=3)
    for k in range(3):
        rest = [sentence for place, sentence in enumerate(text[:12]) if place % 3 != k]
        assert found["bleu"][k] == pytest.approx(bleu(rest, text[20:], max_n=3)[:, 2].mean())
        assert found["self_bleu"][k] == pytest.approx(self_bleu(rest, max_n=3)[:, 2].mean())
    assert errors.left_out(text[:5], table, groups=3, n=3) is None


def test_of_a_mean_it_is_the_usual_error():
    values = np.random.default_rng(0).normal(size=40)
    without = [float(np.delete(values, k).mean()) for k in range(40)]
    assert errors.standard_error(without) == pytest.approx(values.std(ddof=1) / np.sqrt(40))
    assert errors.half_interval(1.0, 20) == pytest.approx(2.093, abs=1e-3)


def test_the_error_is_the_spread_of_sets_that_are_drawn_again():
    """40 sets of 100 sentences of one chain: what one set says of its error is the spread of all, within a factor.

    The spread of 40 is known to 11 %, the mean of their 40 errors better: 0.4 is more than three deviations.
    """
    chain = plot.Chain(plot.made_up_text(3000, 1), 2)
    table = NgramTable.of(plot.made_up_text(500, 2))
    sets = [chain.draw(100, 0.8, seed) for seed in range(40)]
    spread = {"bleu": [bleu(one, table)[:, 4].mean() for one in sets]}
    spread["self_bleu"] = [self_bleu(one)[:, 4].mean() for one in sets]
    found = [errors.left_out(one, table, groups=10) for one in sets]
    for score, values in spread.items():
        told = np.sqrt(np.mean([errors.standard_error(one[score]) ** 2 for one in found]))
        assert told == pytest.approx(np.std(values, ddof=1), rel=0.4)


def test_a_curve_read_off_has_the_error_of_its_readings():
    def point(score, own, temperature, shifts):
        without = {"bleu": [score + s for s in shifts], "self_bleu": [own] * len(shifts)}
        return plot.Point(score, own, 100, temperature, None, without)

    shifts = [-0.01, 0.0, 0.01, 0.02]
    points = [point(0.2, 0.3, 1.0, shifts), point(0.4, 0.7, 0.5, shifts)]  # a line of slope 2, moved to the sides
    assert plot.self_bleu_error(points, 0.3) == pytest.approx(2 * errors.standard_error(shifts))
    assert plot.self_bleu_error(points, 0.405) is None  # some of the curves do not come so far
    assert plot.self_bleu_error([plot.Point(0.2, 0.3, 9, 1.0), points[1]], 0.3) is None
    assert points[0].bar("bleu") == pytest.approx(errors.half_interval(errors.standard_error(shifts), 4))
    assert plot.Point(0.2, 0.3, 9).bar("bleu") == 0.0


def test_rounds_of_one_temperature_are_a_curve_of_their_own(tmp_path):
    def grade(label, temperature, rounds, score):
        return {
            "label": label,
            "recipe": "sunmask",
            "temperature": temperature,
            "rounds": rounds,
            "bleu": [0.0, score],
            "self_bleu": [0.0, score],
            "sentences": 10,
        }

    grades = [grade("sunmask", 1.0, 52, 0.1), grade("sunmask", 0.7, 52, 0.2)]
    grades += [grade("sunmask_104", 0.7, 104, 0.3), grade("sunmask_13", 0.7, 13, 0.4)]
    grades += [grade("sunmask_typical", 0.7, 52, 0.5)]
    curves = curves_of(grades)
    assert [point.bleu for point in curves["sunmask"]] == [0.1, 0.2]
    assert [point.bleu for point in curves["sunmask_typical"]] == [0.5]
    assert [(point.rounds, point.bleu) for point in curves["sunmask, t = 0.7"]] == [(13, 0.4), (52, 0.2), (104, 0.3)]
    plot.draw_sweep(curves, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_pairs_are_frequent_words_of_different_company_that_seldom_meet():
    training = [["bat", "ball", "the"]] * 30 + [["oven", "cake", "the"]] * 20 + [["oven", "bat", "the"]] * 2
    training += [["boat."]] * 9 + [["rare", "the"]] * 2
    pairs = frequent_pairs(training, 2, share=0.05, apart=0.6)
    assert pairs == [("bat", "cake"), ("ball", "oven")]  # "the" keeps any company, "boat." has a full stop
    assert frequent_pairs(training, 1, share=0.05, apart=0.6) == [("bat", "ball")]  # of the two most frequent alone
