"""The sweep of temperatures, how a curve is read, and the picture."""

import json
import sys

import pytest

from anyfill.text.metrics import bleu, self_bleu
from experiments.sunmask import emnlp_plot as plot
from experiments.sunmask.emnlp_plot import Chain, Point


def test_a_sweep_has_the_mean_scores_of_what_is_drawn_at_each_temperature():
    text = plot.made_up_text(60, 0)
    sets = {0.5: text[:20], 1.0: text[20:50]}
    points = plot.sweep(sets.__getitem__, (0.5, 1.0), text[50:], n=3)
    for point, (temperature, sentences) in zip(points, sets.items(), strict=True):
        assert point.temperature == temperature
        assert point.sentences == len(sentences)
        assert point.bleu == pytest.approx(bleu(sentences, text[50:], max_n=3)[:, 2].mean())
        assert point.self_bleu == pytest.approx(self_bleu(sentences, max_n=3)[:, 2].mean())


def test_a_curve_is_read_between_its_points_and_nowhere_else():
    points = [Point(0.2, 0.3, 100, 1.0), Point(0.4, 0.7, 100, 0.5), Point(0.1, 0.2, 100, 2.0)]
    assert plot.self_bleu_at(points, 0.3) == pytest.approx(0.5)
    assert plot.self_bleu_at(points, 0.15) == pytest.approx(0.25)
    assert plot.self_bleu_at(points, 0.2) == pytest.approx(0.3)
    assert plot.self_bleu_at(points, 0.41) is None
    assert plot.self_bleu_at(points, 0.09) is None
    assert plot.self_bleu_at([], 0.1) is None


def test_where_a_curve_turns_back_the_lower_branch_counts():
    points = [Point(0.2, 0.9, 100, 0.3), Point(0.4, 0.8, 100, 0.6), Point(0.2, 0.2, 100, 1.0)]
    assert plot.self_bleu_at(points, 0.3) == pytest.approx(0.5)


def test_a_chain_at_a_low_temperature_repeats_its_likeliest_sentence():
    chain = Chain([[1, 2, 3], [1, 2, 3], [1, 4], [5]], 2)
    assert chain.draw(5, 0.01, 0) == [[1, 2, 3]] * 5
    drawn = chain.draw(400, 1.0, 0)
    assert {tuple(each) for each in drawn} == {(1, 2, 3), (1, 4), (5,)}
    # 400 draws with probability 1/2: mean 200, deviation 10; beyond 5 deviations once in a million.
    assert abs(drawn.count([1, 2, 3]) - 200) < 50


def test_a_file_of_points_is_drawn_beside_it(tmp_path, monkeypatch):
    stored = {"a": [{"bleu": 0.2, "self_bleu": 0.3, "sentences": 1000, "temperature": 1.0}]}
    (tmp_path / "points.json").write_text(json.dumps({"curves": stored}))
    monkeypatch.setattr(sys, "argv", ["emnlp_plot.py", str(tmp_path / "points.json")])
    plot.main()
    assert (tmp_path / "points.png").stat().st_size > 10_000


@pytest.mark.slow
def test_in_the_demonstration_the_chain_of_the_right_order_does_better(tmp_path):
    curves = plot.demo(tmp_path / "demo.png", count=300)
    first, second = curves.values()
    at = [(plot.self_bleu_at(first, level), plot.self_bleu_at(second, level)) for level in (0.25, 0.35, 0.45)]
    assert all(one is not None and other is not None and other < 0.9 * one for one, other in at)
    assert (tmp_path / "demo.png").stat().st_size > 10_000
