"""SFARM's own network: what K orders come to, the bound of a mode; and in what order figures 6 to 8 are drawn."""

import argparse
import json
import math

import numpy as np
import pytest
import torch

from experiments.sfarm import fig6_7_8, sitting
from experiments.sfarm.paper import Paper, orders_of, report
from experiments.sfarm.pictures import ONE_PASS, parser_of
from tests.experiments.test_pictures_sitting import Child, arguments


def test_log_mean_exp_of_orders_grows_from_the_first_to_the_mixture_of_all() -> None:
    values = torch.tensor([[-3.0, -4.0], [-5.0, -4.0]], dtype=torch.float64)
    found = orders_of(values)
    assert found["rows"] == 2
    assert found["mean of the orders"]["nats"] == 4.0
    assert found["log-mean-exp of 1"]["nats"] == 3.5
    mixture = -(math.log((math.exp(-3) + math.exp(-5)) / 2) - 4.0) / 2
    assert found["log-mean-exp of 2"]["nats"] == pytest.approx(mixture)
    assert found["log-mean-exp of 2"]["less than the mean of the orders"] == pytest.approx(4.0 - mixture)


def test_random_steps_of_the_random_mode_come_to_its_bound(tmp_path) -> None:
    parser = parser_of("", sets=("static",), methods=("sfarm-paper",))
    options = parser.parse_args(["--out", str(tmp_path), "--set", "digits", "--rows", "4", "--seed", "1"])
    paper = Paper(options)
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():  # heads begin at zero, where every question has the same answer
        for parameter in paper.model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=noise)
    x = paper.data.test
    bound = paper._bound(paper.model, x, passes=32)
    steps = torch.stack([paper._in_mode(0, x[row].repeat(64, 1), draws=4) for row in range(len(x))])  # (4, 64)
    error = steps.std(1) / 8
    assert bool(((steps.mean(1) - bound).abs() < 4.5 * error + 0.02 * bound.abs()).all())
    first = paper._in_mode(1, x, draws=2)
    assert not torch.equal(first, paper._in_mode(2, x, draws=2))  # it is told the mode


def test_orders_are_asked_of_a_run_that_is_over_beside_its_scores(tmp_path) -> None:
    parser = parser_of("", sets=("static",), methods=("sfarm-paper",))
    words = ("--out", str(tmp_path), "--set", "digits", "--rows", "3", "--orders", "2", "--order-rows", "2")
    options = parser.parse_args([*words, "--steps", "2", "--batch", "4"])
    options.until, options.scoring = math.inf, 0.0
    paper = Paper(options)
    paper.train()
    paper.score()
    before = (paper.folder / "scores.json").read_bytes()
    Paper(options).ask()
    assert (paper.folder / "scores.json").read_bytes() == before
    report(tmp_path, tmp_path)
    found = json.loads((tmp_path / "paper.json").read_text())
    assert found["run"]["ended"] == "steps"
    assert found["asked"]["environment"]["device_type"] == "cpu"
    for part in ("scores", "asked"):
        assert (found[part]["orders"]["K"], found[part]["orders"]["rows"]) == (2, 2)
    # The same weights, rows and draws.
    assert found["asked"]["orders"] == found["scores"]["orders"]


def test_few_steps_of_every_method_are_drawn_before_one_by_one() -> None:
    options = argparse.Namespace(methods=["sfarm", "ardm", "one-pass"], most_steps=128, whole=True)
    turns = list(fig6_7_8._turns(784, options))
    assert len(turns) == len(set(turns))
    assert [method for method, way in turns[-2:]] == ["sfarm", "ardm"]
    assert {way for _, way in turns[-2:]} == {fig6_7_8.Way(fig6_7_8.EQUAL, 784)}
    for method in options.methods:
        wanted = {(fig6_7_8.EQUAL, steps) for steps in (2, 8, 32, 128)}
        wanted |= {(fig6_7_8.CONFIDENT, steps) for steps in (2, 8, 32, 128)}
        wanted |= {(fig6_7_8.ONE_BY_ONE, 784)} if method in ONE_PASS else {(fig6_7_8.CUT, 128), (fig6_7_8.BOUNDED, 0)}
        assert wanted <= {(way.grouping, way.steps) for name, way in turns if name == method}


def test_what_was_drawn_is_taken_without_a_model_and_the_rest_left_out(tmp_path) -> None:
    options = argparse.Namespace(out=tmp_path, samples=3, kept=True, until=math.inf)
    data = argparse.Namespace(shape=(2, 2, 1))
    drawer = fig6_7_8.Drawer("ardm", data, options)  # type: ignore[arg-type]
    way = fig6_7_8.Way(fig6_7_8.EQUAL, 2)
    codes = np.eye(3, 4, dtype=np.uint8)
    drawer.folder.mkdir()
    np.savez_compressed(way.file(drawer.folder, 3), codes=codes, seconds=1.5, passes=2, nats=np.nan)
    found = drawer.drawn(way)
    assert found is not None
    assert np.array_equal(found.codes, codes)
    assert (found.seconds, found.passes) == (1.5, 2)
    assert drawer.drawn(fig6_7_8.Way(fig6_7_8.EQUAL, 8)) is None


def test_the_next_one_trains_when_the_last_has_written_its_weights(tmp_path) -> None:
    options = arguments(tmp_path, "static.ardm")
    options.compile_only, options.train_only, options.static = False, True, 1.0
    plan = sitting.Sitting(options)
    job = plan.jobs[0]
    plan.children[job.name] = Child(10**9)  # type: ignore[assignment]
    plan._flag(job.name).touch()
    plan._flag(job.name).with_suffix(".done").touch()
    plan._turn(job)
    assert [line["what"] for line in plan.lines] == [job.name]
    assert plan.children[job.name].poll() is None  # it was not ended
