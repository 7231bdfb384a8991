"""The scores of the imputation benchmark against independent formulas."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import integrate, stats

from anyfill.likelihoods import SpikedMixture
from anyfill.tables.numbers import Number
from benchmarks import imputation
from benchmarks.tables import encoding, holes, ours, scores, sets, turns


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_crps_of_a_gaussian_is_the_integral_of_the_squared_distance_of_the_distribution_functions():
    for center, scale, x in ((0.3, 0.7, 1.9), (-2.0, 3.0, -2.5)):

        def gap(t: float, center: float = center, scale: float = scale, x: float = x) -> float:
            return (stats.norm.cdf(t, center, scale) - (t >= x)) ** 2

        exact = integrate.quad(gap, center - 12 * scale, x)[0] + integrate.quad(gap, x, center + 12 * scale)[0]
        got = scores.crps_gaussian(np.array([center]), np.array([scale]), np.array([x]))
        assert got[0] == pytest.approx(exact, abs=1e-7)


def test_crps_of_draws_is_the_double_sum_over_different_pairs(rng: np.random.Generator):
    draws, x = rng.normal(size=(7, 4)), rng.normal(size=4)
    pairs = [abs(draws[i] - draws[j]) for i in range(7) for j in range(7) if i != j]
    exact = np.abs(draws - x).mean(0) - np.mean(pairs, axis=0) / 2
    np.testing.assert_allclose(scores.crps_draws(draws, x), exact, atol=1e-12)


def test_fair_crps_of_few_draws_is_the_gaussian_one_on_average(rng: np.random.Generator):
    x = np.full(40_000, 0.8)
    few = scores.crps_draws(rng.normal(size=(3, len(x))), x)
    exact = scores.crps_gaussian(np.zeros(1), np.ones(1), x[:1])[0]
    assert few.mean() == pytest.approx(exact, abs=4 * few.std() / math.sqrt(len(x)))


def test_crps_of_a_single_draw_is_the_absolute_error():
    np.testing.assert_allclose(scores.crps_draws(np.array([[1.0, -2.0]]), np.array([0.5, 1.0])), [0.5, 3.0])


def test_crps_of_codes_is_half_the_brier_score_of_their_frequencies_up_to_fairness(rng: np.random.Generator):
    draws, code = rng.integers(0, 3, size=(9, 5)), rng.integers(0, 3, size=5)
    wrong = (draws != code).mean(0)
    pairs = [draws[i] != draws[j] for i in range(9) for j in range(9) if i != j]
    np.testing.assert_allclose(scores.crps_codes(draws, code), wrong - np.mean(pairs, axis=0) / 2, atol=1e-12)
    chances = np.stack([(draws == k).mean(0) for k in range(3)], 1)
    brier = ((chances - np.eye(3)[code]) ** 2).sum(1) / 2
    np.testing.assert_allclose(scores.crps_chances(chances, code), brier, atol=1e-12)


def test_a_level_that_was_never_seen_has_chance_zero():
    got = scores.crps_chances(np.array([[0.25, 0.75]]), np.array([-1]))
    assert got[0] == pytest.approx((1 + 0.25**2 + 0.75**2) / 2)


def test_energy_score_of_one_number_is_its_crps(rng: np.random.Generator):
    draws, x = rng.normal(size=(12, 1)), np.array([0.4])
    got = scores.energy_row(draws, np.zeros((12, 0), dtype=np.int64), x, np.zeros(0, dtype=np.int64))
    assert got == pytest.approx(scores.crps_draws(draws, x)[0])


def test_energy_score_is_the_double_sum_of_euclidean_distances_with_one_hot_codes(rng: np.random.Generator):
    numbers, codes = rng.normal(size=(8, 2)), rng.integers(0, 3, size=(8, 2))
    x, code = rng.normal(size=2), np.array([0, 2])

    def vector(number: np.ndarray, own: np.ndarray) -> np.ndarray:
        return np.concatenate([number, np.eye(3)[own].ravel() / math.sqrt(2)])

    cloud, point = [vector(a, b) for a, b in zip(numbers, codes)], vector(x, code)
    pairs = [np.linalg.norm(a - b) for i, a in enumerate(cloud) for j, b in enumerate(cloud) if i != j]
    exact = np.mean([np.linalg.norm(a - point) for a in cloud]) - np.mean(pairs) / 2
    assert scores.energy_row(numbers, codes, x, code) == pytest.approx(exact)


def test_mass_of_a_mixture_between_two_points_is_its_integral(rng: np.random.Generator):
    weights, centers, scales = np.array([0.2, 0.8]), np.array([-1.0, 2.0]), np.array([0.5, 1.5])
    exact = integrate.quad(lambda t: float((weights * stats.norm.pdf(t, centers, scales)).sum()), -0.7, 1.1)[0]
    got = scores.mixture_log_mass(np.log(weights)[None], centers[None], scales[None], np.array([-0.7]), np.array([1.1]))
    assert math.exp(got[0]) == pytest.approx(exact, abs=1e-10)
    below = scores.mixture_cdf(np.log(weights)[None], centers[None], scales[None], np.array([1.1]))
    assert below[0] == pytest.approx((weights * stats.norm.cdf(1.1, centers, scales)).sum())


def test_log_mass_keeps_its_digits_in_both_tails():
    for a, b in ((30.0, 30.5), (-30.5, -30.0)):
        # The first terms of Mills' ratio: P(Z > t) = phi(t)/t (1 - 1/t^2 + 3/t^4 - 15/t^6)
        def log_tail(t: float) -> float:
            return stats.norm.logpdf(t) - math.log(t) + math.log(1 - t**-2 + 3 * t**-4 - 15 * t**-6)

        exact = log_tail(30.0) + math.log1p(-math.exp(log_tail(30.5) - log_tail(30.0)))
        assert scores.log_between(np.array([a]), np.array([b]))[0] == pytest.approx(exact, abs=1e-6)
    assert scores.log_between(np.array([-np.inf]), np.array([np.inf]))[0] == 0.0
    assert scores.log_between(np.array([1.0]), np.array([1.0]))[0] == -math.inf


def test_nll_of_a_fine_cell_is_minus_the_log_density():
    r, x = 1e-4, np.array([0.3, -1.7])
    mass = scores.log_between(x - r / 2, x + r / 2)
    nll, impossible = scores.negative_log(mass, r)
    np.testing.assert_allclose(nll, -stats.norm.logpdf(x), atol=1e-6)
    assert impossible == 0


def test_an_impossible_value_costs_as_much_as_one_in_a_milliard_and_is_counted():
    nll, impossible = scores.negative_log(np.array([-math.inf, 0.0]), 0.5)
    np.testing.assert_allclose(nll, [-math.log(1e-9 / 0.5), -math.log(1 / 0.5)])
    assert impossible == 1


def test_tied_coverage_of_the_true_law_is_the_level_however_coarse_it_is():
    mass = np.array([0.02, 0.5, 0.18, 0.27, 0.03])
    at = mass.cumsum()
    for level in (0.5, 0.9, 0.97):
        assert (mass * scores.tied_coverage(at - mass, at, level)).sum() == pytest.approx(level)


def test_tied_coverage_is_what_randomised_pits_have(rng: np.random.Generator):
    below, at = np.array([0.0, 0.03, 0.9, 0.96]), np.array([0.1, 0.6, 1.0, 0.99])
    pit = below + rng.random((200_000, 4)) * (at - below)
    np.testing.assert_allclose(scores.tied_coverage(below, at), ((pit > 0.05) & (pit <= 0.95)).mean(0), atol=5e-3)


def test_draws_of_the_truth_cover_at_the_level_with_ties_and_without(rng: np.random.Generator):
    for coarse in (1e-9, 1.0):
        sample = np.round(rng.normal(size=(21, 20_000)) / coarse) * coarse
        draws, x = sample[1:], sample[0]
        covered = scores.tied_coverage(*scores.draw_cells(draws, x - coarse / 2, x + coarse / 2)).mean()
        assert covered == pytest.approx(0.9, abs=0.01)
    low, high = scores.draw_interval(rng.normal(size=(20, 20_000)))
    x = rng.normal(size=20_000)
    assert ((low <= x) & (x <= high)).mean() == pytest.approx(0.9, abs=0.01)


def test_resolution_is_the_smallest_gap_but_not_below_a_ten_thousandth_of_the_spread():
    assert scores.resolution(np.array([3.0, 1.0, 1.5, 3.0]), 1.0) == 0.5
    assert scores.resolution(np.array([0.0, 1.0, 1.0 + 1e-12]), 1.0) == 1e-4


@pytest.mark.parametrize("way", ["mcar", "mar", "mnar"])
def test_three_tenths_of_the_present_cells_are_hidden_and_no_other(way: str, rng: np.random.Generator):
    frame = pd.DataFrame({f"x{j}": rng.normal(size=2000) for j in range(6)})
    frame["level"] = rng.choice(list("abc"), size=2000)
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    data = sets.Dataset("made", frame, tuple(frame.columns[:6]), ("level",))
    hidden = holes.hide(data, way, 0)
    present = frame.notna().to_numpy()
    assert not (hidden & ~present).any()
    assert hidden.sum() / present.sum() == pytest.approx(0.3, abs=0.02)
    assert (hidden == holes.hide(data, way, 0)).all()
    assert (hidden != holes.hide(data, way, 1)).any()
    own = [frame[name].rank()[hidden[:, j] & present[:, j]].mean() for j, name in enumerate(frame.columns[:6])]
    lean = np.abs(np.array(own) / frame.notna().sum().iloc[:6].to_numpy() - 0.5)
    # Under MNAR what is hidden ranks 1/6 above or below the middle; under MCAR and MAR, independent columns, nowhere.
    assert (np.nan_to_num(lean) > 0.12).all() if way == "mnar" else (np.nan_to_num(lean) < 0.06).all()


def test_one_hot_and_codes_decode_to_what_was_encoded():
    frame = pd.DataFrame({"n": [1.0, 5.0, 3.0], "two": ["a", "b", "a"], "three": ["z", "x", "y"]})
    for one_hot in (False, True):
        code = encoding.Encoding.of(frame, ("n",), ("two", "three"), one_hot=one_hot)
        empty = frame.mask(np.ones(frame.shape, dtype=bool))
        back = code.decode(code.encode(frame), empty)
        np.testing.assert_allclose(back["n"], frame["n"])
        assert [back[name].tolist() for name in ("two", "three")] == [frame[name].tolist() for name in ("two", "three")]
        assert code.encode(frame).shape[1] == (5 if one_hot else 3)
        assert np.isnan(code.encode(frame.assign(three="new"))[:, -1]).all()


def test_laws_of_grids_and_warps_agree_with_the_marginals_own_log_probabilities():
    number = Number("n", 2.0, 4.0, step=1.0)
    column = SpikedMixture(2, spikes=(0.25,), spike_scale=1e-3, step=0.25)
    params = torch.randn(3, 1, column.width, generator=torch.Generator().manual_seed(0))
    x = np.array([3.0, 7.0, -1.0])
    own, below, at = ours.law_of(number, column(params)).cells(np.arange(3), x - 0.5, x + 0.5)
    z = torch.from_numpy(number.encode(x)).unsqueeze(1)
    np.testing.assert_allclose(own, column(params).log_prob(z)[:, 0].double(), atol=1e-4)
    np.testing.assert_allclose(at - below, np.exp(own), atol=1e-9)
    np.testing.assert_allclose(at, column(params).cdf(z)[:, 0].double(), atol=1e-5)
    pair = ours.law_of(number, column(params)).cells(np.arange(3), x - 1, x + 1)[0]  # the two values x and x + 1
    both = column(params).log_prob(z).exp() + column(params).log_prob(z + 0.25).exp()
    np.testing.assert_allclose(pair, both[:, 0].double().log(), atol=1e-4)

    bent = Number("b", 0.2, 0.7, warp="log", center=-1.0, spread=2.0)
    smooth = SpikedMixture(2)
    params = torch.randn(3, 1, smooth.width, generator=torch.Generator().manual_seed(1))
    x, r = np.array([0.5, 2.0, 9.0]), 1e-3
    law = ours.law_of(bent, smooth(params))
    mass = law.cells(np.arange(3), x - r / 2, x + r / 2)[0]
    z = torch.from_numpy(bent.encode(x)).unsqueeze(1)
    density = smooth(params).log_prob(z)[:, 0].double().numpy() + bent.log_slope(x)
    np.testing.assert_allclose(mass - math.log(r), density, atol=1e-3)
    assert law.cells(np.arange(3), np.full(3, -2.0), np.full(3, np.inf))[0] == pytest.approx(0.0, abs=1e-6)


def test_where_minutes_count_jobs_come_as_methods_and_holes_are_named_and_slow_methods_begin_with_the_smallest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "imputation --methods ours,utrees --holes mnar,mcar --modes in --seeds 0 --tables wine,diabetes --minutes 1"
    monkeypatch.setattr("sys.argv", line.split())
    found = imputation._jobs(imputation._arguments(), tmp_path, [])
    assert [(job.method, job.holes, job.table) for job in found] == [
        ("ours", "mnar", "diabetes"),
        ("ours", "mnar", "wine"),
        ("ours", "mcar", "diabetes"),
        ("ours", "mcar", "wine"),
        ("utrees", "mnar", "wine"),
        ("utrees", "mnar", "diabetes"),
        ("utrees", "mcar", "wine"),
        ("utrees", "mcar", "diabetes"),
    ]


def test_turns_are_taken_one_after_the_other_with_methods_side_by_side_and_no_job_twice(tmp_path: Path) -> None:
    path = tmp_path / "turns.json"
    path.write_text(
        json.dumps(
            [
                {"methods": "ours,em", "tables": "wine,diabetes", "holes": "mcar", "modes": "in"},
                {"methods": "ours", "tables": "wine", "modes": "in", "seeds": "0,1"},
            ]
        )
    )
    options = {"draws": 5, "steps": None, "costly": False, "by_clock": True}
    found = turns.jobs_of(turns.read_turns(path), turns.Tables(tmp_path, []), **options)
    assert [(job.seed, job.holes, job.table, job.method) for job in found] == [
        (0, "mcar", "diabetes", "ours"),
        (0, "mcar", "diabetes", "em"),
        (0, "mcar", "wine", "ours"),
        (0, "mcar", "wine", "em"),
        (0, "mar", "wine", "ours"),
        (0, "mnar", "wine", "ours"),
        (1, "mcar", "wine", "ours"),
        (1, "mar", "wine", "ours"),
        (1, "mnar", "wine", "ours"),
    ]
    path.write_text('[{"method": "ours"}]')
    with pytest.raises(SystemExit, match=r"expected methods, .* got method"):
        turns.read_turns(path)
