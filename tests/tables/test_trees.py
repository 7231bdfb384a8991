"""Any-order trees: laws of their chains, densities, draws; what unknown values cannot do; folders."""

import itertools
from dataclasses import replace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import torch

from anyfill import TableModel
from anyfill.evaluation import log_prob
from anyfill.questions.question import Question
from anyfill.tables.blend import Blend
from anyfill.tables.boosting import Growth, Sample, averaged, grow, scores_of, slim
from anyfill.tables.growing_cells import mean_cells
from anyfill.tables.trees import AnyOrderTrees, Cells, ColumnTrees, Inputs, UseOfJoint, pack, unpack


def coded(rows=400, seed=0):
    """a and b by a coin, c their exclusive or, three times in four."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, rows), rng.integers(0, 3, rows)
    c = np.where(rng.random(rows) < 0.9, (a + b) % 2, rng.integers(0, 2, rows))
    frame = pd.DataFrame({"a": a, "b": b, "c": c}).astype(str).apply(lambda column: column.map(lambda cell: f"l{cell}"))
    return frame.mask(rng.random(frame.shape) < 0.1)


def curved(rows=500, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    frame = pd.DataFrame({"x": x, "y": x**2 + 0.1 * rng.normal(size=rows)})
    return frame.mask(rng.random(frame.shape) < 0.1)


@pytest.fixture(scope="module")
def codes():
    return TableModel(recipe="trees", random_state=0, steps=120).fit(coded())


@pytest.fixture(scope="module")
def numbers():
    return TableModel(recipe="auto", effort="low", random_state=0, steps=60).fit(curved())


def every_code(sizes):
    return torch.tensor(list(itertools.product(*map(range, sizes))), dtype=torch.float32)


def test_the_chain_of_trees_equals_enumeration_of_its_own_conditionals(codes):
    model, sizes = codes.model_, codes.table_.sizes
    x = every_code(sizes)
    nothing = torch.zeros(x.shape, dtype=torch.bool)
    value = log_prob(model, x, Question(nothing, ~nothing)).value
    expected = torch.zeros(len(x), dtype=torch.float64)
    known = nothing.clone()
    for j in range(len(sizes)):  # by index, as the model's order is
        expected += model.marginals(x, known).log_prob(x)[:, j].double()
        known[:, j] = True
    torch.testing.assert_close(value, expected, atol=1e-5, rtol=0)
    assert value.exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_every_conditional_of_trees_sums_to_one(codes):
    model, sizes = codes.model_, codes.table_.sizes
    x = every_code(sizes)
    for pattern in itertools.product([False, True], repeat=len(sizes)):
        known = torch.tensor(pattern).expand(len(x), -1)
        logs = model.marginals(x, known).log_prob(x)
        for j in range(len(sizes)):
            if not pattern[j]:
                total = torch.zeros(len(x), dtype=torch.float64)
                for code in range(sizes[j]):
                    own = x.clone()
                    own[:, j] = code
                    total += model.marginals(own, known).log_prob(own)[:, j].double().exp()
                torch.testing.assert_close(total, torch.ones_like(total), atol=1e-5, rtol=0)
    assert logs.isfinite().all()


def test_trees_learn_an_exclusive_or(codes):
    said = codes.ask({"a": "l0", "b": "l1"}, "c")
    lines = str(said)
    assert "l1" in lines
    x = torch.tensor([[0.0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])
    known = torch.tensor([True, True, False]).expand(4, -1)
    chance = codes.model_.marginals(x, known).column(2).log_probs[:, 0, 1].exp()
    assert chance[0] < 0.25
    assert chance[3] < 0.25
    assert chance[1] > 0.75
    assert chance[2] > 0.75


def test_draws_follow_the_chain_of_trees(codes):
    model, sizes = codes.model_, codes.table_.sizes
    frame = pd.DataFrame({"a": [None] * 3000, "b": None, "c": None}, dtype=object)
    drawn = codes.table_.encode(codes.sample(frame, 1, seed=1)[0]).x
    x = every_code(sizes)
    nothing = torch.zeros(x.shape, dtype=torch.bool)
    expected = 3000 * log_prob(model, x, Question(nothing, ~nothing)).value.exp()
    count = torch.stack([(drawn == one).all(1).sum() for one in x]).double()
    # chi-square with 11 degrees of freedom: 31.3 is passed once in a thousand seeds
    assert float(((count - expected) ** 2 / expected).sum()) < 31.3


@pytest.mark.parametrize("given", [{}, {"x": 1.0}, {"y": 1.0}])
def test_densities_of_a_blend_integrate_to_one_in_own_units(numbers, given):
    name = "y" if "x" in given else "x"
    low, high = {"x": (-8.0, 8.0), "y": (-8.0, 20.0)}[name]
    grid = np.linspace(low, high, 8001)
    frame = pd.DataFrame({"x": np.nan, "y": np.nan}, index=range(len(grid)))
    frame[name] = grid
    for other, value in given.items():
        frame[other] = value
    density = np.exp(numbers.log_prob(frame, asked=name, given=list(given)).value.numpy())
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=5e-3)


def test_two_modes_stay_apart(numbers):
    frame = pd.DataFrame({"x": [np.nan] * 400, "y": [1.0] * 400})
    x = numbers.sample(frame, 1, seed=0)[0]["x"].to_numpy()
    assert 0.2 < (x > 0).mean() < 0.8
    assert np.mean(np.abs(x) < 0.5) < 0.15


def test_what_is_not_known_is_not_read(numbers):
    model = numbers.model_
    x = torch.tensor([[1.0, 0.5], [1.0, 0.5]])
    known = torch.tensor([[True, False], [False, True]])
    blanked = torch.where(known, x, torch.nan)
    torch.testing.assert_close(model.params(blanked, known), model.params(x, known), rtol=0, atol=0)


def test_answers_to_some_cells_are_those_to_all(numbers):
    network = numbers.model_.network
    x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    known = torch.rand(20, 2, generator=torch.Generator().manual_seed(1)) < 0.5
    row, variable = (~known).nonzero().unbind(1)
    whole = network(torch.where(known, x, 0.0), known)[row, variable]
    torch.testing.assert_close(network.at(x, known, row, variable), whole)


def test_a_folder_answers_bit_for_bit_and_so_does_a_pickle(numbers, tmp_path):
    import pickle

    numbers.save(tmp_path)
    frame = curved(30, seed=5)
    for again in (TableModel.load(tmp_path), pickle.loads(pickle.dumps(numbers))):
        pd.testing.assert_frame_equal(again.transform(frame), numbers.transform(frame), check_exact=True)
        assert (again.score_samples(frame) == numbers.score_samples(frame)).all()


def test_a_damaged_folder_is_refused(numbers):
    with pytest.raises(ValueError, match="kept trees"):
        unpack(torch.arange(20, dtype=torch.uint8))
    others = AnyOrderTrees((0,), (0,), (0.02,), 3, 9, pack({}))
    with pytest.raises(ValueError, match="trees"):
        Blend(numbers.model_.network.base, others)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_the_mean_of_models_is_one_model(linear, classes):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    x[rng.random(x.shape) < 0.2] = np.nan
    x[:, 2] = rng.integers(0, 4, 300)
    y = np.nan_to_num(x[:, 0]) ** 2 + (x[:, 2] == 1) if classes == 1 else rng.integers(0, classes, 300).astype(float)
    found = [
        grow(Sample(x[:200], y[:200]), Sample(x[200:], y[200:]), growth, classes=classes, categorical=[2])
        for growth in (Growth(rounds=9, linear=linear, seed=seed) for seed in (0, 1, 2))
    ]
    texts = [one.text for one in found]
    mean = np.mean([scores_of(text, x) for text in texts], 0)
    np.testing.assert_allclose(scores_of(averaged(texts), x), mean, atol=1e-7)
    assert slim(texts[0]) == texts[0]


def test_packed_models_come_back_as_they_were():
    columns = {3: ColumnTrees(0, "text", "", -1.0, 2.0, ((0.5, 1.0), (0.5, 2.0)))}
    assert unpack(pack(columns)) == columns


def test_progress_only_grows_and_ends_below_one_before_the_model_is_there():
    reports = []
    TableModel(effort="low", steps=5, random_state=0, on_report=reports.append).fit(coded(60))
    progress = [report.progress for report in reports]
    assert progress == sorted(progress)
    assert 0 < progress[-1] < 1
    assert all(np.isfinite(report.eta) and report.eta >= 0 for report in reports)


def test_an_effort_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match=r"effort: expected one of low, medium, high, got 'most'"):
        TableModel(effort="most").fit(coded(40))


def test_joints_without_networks_answer_as_they_do_beside_them():
    from anyfill.tables.residual_network import GaussianResidualEnsemble

    settings = ((0, 2), ((), ()), ((), (0.5, 0.5)), (0.1, 1.0), 1, 3)
    alone, beside = (GaussianResidualEnsemble(*settings, joints=(1,), members=members) for members in (0, 2))
    x, known = torch.tensor([[0.3, 1.0], [0.0, 0.0]]), torch.tensor([[True, False], [False, True]])
    assert alone.candidates == 1
    joint = beside(x, known).unflatten(-1, (3, 4))[:, :, :, :]  # (2, 2, M + J, P + 1) laid out flat
    assert joint.shape == (2, 2, 3, 4)
    torch.testing.assert_close(alone(x, known)[..., :3], beside(x, known)[..., 6:9])


@pytest.mark.parametrize("joint", get_args(UseOfJoint))
def test_trees_of_codes_use_the_joint_as_they_say(joint: UseOfJoint) -> None:
    rng = np.random.default_rng(0)
    values, log_chances = rng.normal(size=(50, 2)), np.log(rng.dirichlet(np.ones(3), 50))
    given = Inputs(values, np.zeros(50), np.ones(50), log_chances)
    table = given.table(True)
    own = values if joint == "nothing" else table
    target = rng.integers(0, 3, 50).astype(float)
    grown = grow(Sample(own, target), Sample(own, target), Growth(rounds=3, min_rows=5), classes=3)
    found = ColumnTrees(3, grown.text, joint=joint).log_chances(given, table)
    logits = grown.scores + (log_chances if joint == "begins" else 0.0)
    np.testing.assert_allclose(found, logits - np.logaddexp.reduce(logits, 1, keepdims=True), atol=1e-12)


def test_folds_that_could_not_place_values_inside_cells_are_left_out_of_the_mean():
    x = np.random.default_rng(0).normal(size=(80, 3))
    text = grow(Sample(x, x[:, 0]), Sample(x, x[:, 0]), Growth(rounds=3)).text
    one = Cells(text, text, (0.0,), (-1.0, 1.0), (0.5, 0.5), (-2.0, 0.0), (0.0, 2.0))
    for insides, wanted in ((("", text), text), (("", ""), "")):
        found = mean_cells([replace(one, inside=inside) for inside in insides])
        assert found is not None
        assert found.inside == wanted
