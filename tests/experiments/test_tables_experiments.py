"""The definitions behind the experiments on tables: likelihoods of unobserved cells, errors, paired intervals, jobs."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from anyfill.likelihoods import Gaussian
from anyfill.model import Model
from anyfill.networks.embed import Real
from anyfill.networks.latent import LatentVariable
from anyfill.questions import Factorization
from anyfill.recipes import miwae
from anyfill.rows import Rows
from anyfill.tables.calibrated import Calibrated
from anyfill.tables.choosers import Informed
from anyfill.tables.gaussian_em import gaussian_em_model
from anyfill.tables.measure import calibrated_chooser, kept_rows
from anyfill.tables.quantiles import Quantiles
from experiments import common
from experiments.mac import tables as mac_tables
from experiments.sfarm import fig5 as sfarm_fig5
from experiments.sfarm import table1 as sfarm_table1


def correlated(rows: int, variables: int = 4, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    mix = torch.randn(variables, variables, generator=generator)
    x = torch.randn(rows, variables, generator=generator) @ mix
    return (x - x.mean(0)) / x.std(0)


def test_with_one_order_both_definitions_are_minus_log_p_per_unobserved_feature() -> None:
    values, asked = torch.tensor([[-3.0, 2.0]]), torch.tensor([3, 4])
    expected = torch.tensor([1.0, -0.5], dtype=torch.float64)
    torch.testing.assert_close(common.inside(values, asked), expected)
    torch.testing.assert_close(common.outside(values, asked), expected)


def test_definitions_match_plain_arithmetic_over_two_orders() -> None:
    p, n = (0.2, 0.6), 2
    values = torch.tensor([[math.log(p[0])], [math.log(p[1])]], dtype=torch.float64)
    within = -math.log((p[0] ** (1 / n) + p[1] ** (1 / n)) / 2)
    assert common.inside(values, torch.tensor([n])).item() == pytest.approx(within)
    assert common.outside(values, torch.tensor([n])).item() == pytest.approx(-math.log(sum(p) / 2) / n)


def test_the_likelihood_is_never_worse_than_division_inside_the_exponent() -> None:
    values = 5 * torch.randn(7, 50, generator=torch.Generator().manual_seed(1))
    asked = torch.arange(50) % 6 + 1
    assert bool((common.outside(values, asked) <= common.inside(values, asked) + 1e-9).all())


def test_nll_of_a_joint_gaussian_is_that_of_its_conditional() -> None:
    x = correlated(200)
    model = gaussian_em_model(Rows.from_values(x), (0,) * 4, ridge=0.0)
    hidden = torch.tensor([[True, False, True, False], [False, True, True, True]])
    found = common.nll_of_unobserved(model, x[:2], hidden, orders=2, draws=1, seed=0)
    mean, covariance = x.double().mean(0).numpy(), np.cov(x.double().numpy().T, bias=True)
    expected = []
    for row, unknown in zip(x[:2].double().numpy(), hidden.numpy()):
        both = multivariate_normal(mean, covariance).logpdf(row)
        told = multivariate_normal(mean[~unknown], covariance[np.ix_(~unknown, ~unknown)]).logpdf(row[~unknown])
        expected.append(-(both - told) / unknown.sum())
    assert found["outside"] == pytest.approx(np.mean(expected), abs=1e-3)
    assert found["inside"] == pytest.approx(found["outside"])


def linear_latent_model() -> tuple[Model, np.ndarray, np.ndarray]:
    """A model with a linear decoder, of which p(x) is known: its mean and covariance come with it."""
    model = miwae.model(Real(), 3, Gaussian(0.1), latent=1, depth=0, draws=8, seed=0)
    network = model.network
    assert isinstance(network, LatentVariable)
    weight = torch.tensor([0.8, -0.5, 0.3])
    center = torch.tensor([0.1, 0.0, -0.2])
    with torch.no_grad():
        layer = network.decoder[0]
        assert isinstance(layer, torch.nn.Linear)
        layer.weight.zero_()
        layer.weight[0::2, 0] = weight
        layer.bias.zero_()
        layer.bias[0::2] = center
    covariance = np.outer(weight, weight) + 1.1**2 * np.eye(3)  # a raw scale of 0 is 1 above the floor
    return model, center.double().numpy(), covariance


def test_latent_nll_tends_to_the_exact_conditional_of_a_linear_model() -> None:
    model, mean, covariance = linear_latent_model()
    x = torch.tensor([[0.5, -1.0, 0.2], [1.5, 0.3, -0.7]])
    hidden = torch.tensor([[True, False, True], [False, True, False]])
    _, found = common.latent_nll(model, x, hidden, draws=4000, seed=0)
    for row, unknown, value in zip(x.double().numpy(), hidden.numpy(), found.tolist()):
        both = multivariate_normal(mean, covariance).logpdf(row)
        told = multivariate_normal(mean[~unknown], covariance[np.ix_(~unknown, ~unknown)]).logpdf(row[~unknown])
        assert value == pytest.approx(-(both - told) / unknown.sum(), abs=0.02)


def test_every_row_has_an_unobserved_cell_and_about_half_are() -> None:
    hidden = common.hidden_cells(5000, 3, seed=4)
    assert bool(hidden.any(1).all())
    assert float(hidden.float().mean()) == pytest.approx(0.5 + 1 / 8 / 3, abs=0.02)
    assert torch.equal(hidden, common.hidden_cells(5000, 3, seed=4))


@pytest.mark.parametrize(("name", "method", "floor"), [("auto", "auto", 1e-3), ("sfarm-stop@0.1", "sfarm-stop", 0.1)])
def test_a_name_is_read_as_method_and_floor(name: str, method: str, floor: float) -> None:
    assert common.read_name(name) == (method, floor)


def test_a_wide_floor_leaves_no_spikes() -> None:
    anchors = ((0.0, 1.0), ())
    assert [column.width for column in common.spiked(anchors, 1e-3).columns] == [11, 9]
    assert [column.width for column in common.spiked(anchors, 0.1).columns] == [9, 9]


def test_paired_interval_covers_the_mean_gap_and_counts_wins() -> None:
    first, second = [1.0, 2.0, 3.0, 4.0, 5.0], [1.5, 2.1, 3.3, 3.9, 5.2]
    found = common.paired(first, second)
    assert found["mean"] == pytest.approx(-0.2)
    assert found["low"] <= found["mean"] <= found["high"]
    assert (found["won"], found["splits"]) == (4, 5)
    same = common.paired([1.0] * 5, [2.0] * 5)
    assert same["low"] == same["high"] == -1.0
    assert common.paired([1.0] * 4, [2.0] * 4)["low"] is None


def test_finished_jobs_are_not_run_again_and_failed_ones_are(tmp_path: Path) -> None:
    lines, ran = tmp_path / "jobs.jsonl", []

    def work(job: dict[str, Any]) -> dict[str, Any]:
        ran.append(job["n"])
        if job["n"] == 1 and len(ran) < 3:
            raise ValueError("no")
        return {"square": job["n"] ** 2}

    jobs = [{"n": n} for n in range(3)]
    first = common.run_jobs(work, jobs[:2], lines, workers=0, minutes=None)
    assert [line["square"] for line in first] == [0]
    with lines.open("a") as file:
        file.write('{"job": {"n": 2}, "sq')  # cut short
        file.write("\n")
    second = common.run_jobs(work, jobs, lines, workers=0, minutes=None)
    assert sorted(line["square"] for line in second) == [0, 1, 4]
    assert ran == [0, 1, 1, 2]
    assert sum(1 for line in lines.read_text().splitlines() if line.endswith("}") and json.loads(line)) == 3


def test_nrmse_is_one_for_the_mean_and_averages_over_features() -> None:
    x = correlated(400)
    everything = torch.ones_like(x, dtype=torch.bool)
    assert mac_tables.nrmse(x.mean(0).expand_as(x), x, everything) == pytest.approx(1.0)
    off = x.clone()
    off[:, 0] += 2 * x[:, 0].std(correction=0)
    assert mac_tables.nrmse(off, x, everything) == pytest.approx(2 / 4)
    hidden = everything.clone()
    hidden[::2, 0] = False
    half = x.clone()
    half[::2, 0] += 100  # not hidden: does not count
    assert mac_tables.nrmse(half, x, hidden) == 0.0


def test_calibrated_choice_is_made_by_the_function_that_makes_it_for_users() -> None:
    x = correlated(40, 2)
    chooser = sfarm_fig5.rewarding("calibrated", 60, x, 0)
    kept = kept_rows(Rows.from_values(x), 300, seed=0)
    assert kept is not None
    users = calibrated_chooser(kept)
    assert isinstance(chooser, Calibrated)
    assert (chooser.base, chooser.observed_rows, chooser.expected_rows) == (users.base, 300, 24)
    assert torch.equal(chooser.reference.x, users.reference.x)
    assert sfarm_fig5.rewarding("quantiles", 60, x, 0) == users.base == Quantiles(20)
    assert sfarm_fig5.rewarding("draws", 60, x, 0) == Informed(60, estimator="draws")


def test_arguments_that_are_shown_hold_no_path_from_the_root() -> None:
    said = {"data": Path("/home/me/data"), "lines": Path("results/jobs.jsonl"), "rows": None, "sets": ["yacht"]}
    assert common.shown(said) == {"data": "data", "lines": "results/jobs.jsonl", "rows": None, "sets": ["yacht"]}


def test_the_estimator_with_the_lower_area_relative_to_random_is_taken() -> None:
    def line(name: str, *areas: float) -> dict[str, Any]:
        ways = ("draws", "divergence", "quantiles", "random")
        return {"job": {"model": name}, "curves": {way: {"rmse_area": area} for way, area in zip(ways, areas)}}

    lines = [line("auto", 0.8, 0.5, 0.7, 1.0), line("auto", 1.0, 1.6, 0.6, 2.0), line("sfarm", 0.2, 0.9, 0.9, 1.0)]
    found = sfarm_fig5.chosen_estimators(lines, ["auto", "sfarm", "miwae"])
    assert {model: one["estimator"] for model, one in found.items()} == {"auto": "quantiles", "sfarm": "draws"}
    assert found["auto"]["ratio"] == pytest.approx({"draws": 0.65, "divergence": 0.65, "quantiles": 0.5})


def test_rows_kept_aside_are_a_tenth_of_the_training_rows_and_no_test_rows() -> None:
    split = common.Split(torch.arange(40.0).view(20, 2), torch.full((3, 2), -1.0), ((), ()))
    aside = sfarm_fig5.kept_aside(split, seed=0)
    assert (len(aside.train), len(aside.test)) == (18, 2)
    assert sorted(torch.cat([aside.train, aside.test])[:, 0].tolist()) == split.train[:, 0].tolist()


def test_a_summary_counts_the_splits_it_has() -> None:
    lines = [
        {
            "job": {"method": "auto", "set": "yacht"},
            "by": "x",
            "inside": v,
            "outside": v,
            "seconds": 1.0,
            "cpu_seconds": 1.0,
        }
        for v in (1.0, 3.0)
    ]
    found = sfarm_table1.summary(lines, "auto", "yacht")
    assert found is not None
    assert (found["splits"], found["inside"]["mean"]) == (2, 2.0)
    assert found["inside"]["std"] == pytest.approx(math.sqrt(2))
    assert sfarm_table1.summary(lines, "auto", "energy") is None


def test_readings_decide_how_a_model_is_scored() -> None:
    model = gaussian_em_model(Rows.from_values(correlated(50)), (0,) * 4)
    hidden = torch.ones(1, 4, dtype=torch.bool)
    by = common.nll_of_unobserved(model, torch.zeros(1, 4), hidden, orders=3, draws=1, seed=0)["by"]
    assert by == "one chain, exact"
    model.factorizations = frozenset({Factorization.ANY_ORDER})
    by = common.nll_of_unobserved(model, torch.zeros(1, 4), hidden, orders=3, draws=1, seed=0)["by"]
    assert by == "3 orders"
