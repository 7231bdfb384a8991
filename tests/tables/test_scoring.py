import math

import numpy as np
import pandas as pd
import torch

from anyfill import TableModel
from anyfill.evaluation import log_prob
from anyfill.questions import Factorization, Question
from anyfill.tables.scoring import log_units, score


def test_scores_are_those_of_evaluation_in_own_units(fitted):
    model, frame, _ = fitted
    rows = model.table_.encode(frame)
    nothing = torch.zeros_like(rows.present)
    wanted = log_prob(model.model_, rows.x, Question(nothing, rows.present))
    assert torch.allclose(score(model.model_, rows.x, Question(nothing, rows.present)).value, wanted.value, atol=1e-4)
    own = model.table_.in_own_units(wanted.value, rows.x, rows.present)
    assert np.allclose(model.score_samples(frame), own.numpy(), atol=1e-4)
    answer = model.log_prob(frame, asked=["income"], given=["age", "smoker"], own_units=False)
    told, asked = model.table_.members(["age", "smoker"]), model.table_.members(["income"])
    question = Question(told.expand(rows.x.shape), asked.expand(rows.x.shape)).within(rows.present)
    assert torch.allclose(answer.value, log_prob(model.model_, rows.x, question).value, atol=1e-4)
    assert answer.kind == "exact"
    assert answer.factorization in (Factorization.DIRECT, Factorization.ANY_ORDER)
    assert bool((answer.value.numpy()[frame["income"].isna()] == 0).all()), "a missing cell is not asked"


def test_the_chain_rule_holds_between_scores_of_a_gaussian():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)), columns=list("abc"))
    model = TableModel(recipe="gaussian").fit(frame)
    whole = model.log_prob(frame).value
    parts = model.log_prob(frame, asked=["a"]).value + model.log_prob(frame, asked=["c", "b"], given="a").value
    assert torch.allclose(whole, parts, atol=1e-6)
    cells = model.cell_log_prob(frame)
    assert np.allclose(cells[:, 1], model.log_prob(frame, asked="b", given=["a", "c"]).value, atol=1e-9)


def test_own_units_make_densities_integrate_to_one(fitted):
    model, frame, _ = fitted
    row = frame.iloc[[3]].drop(columns="income").assign(income=np.nan)[list(frame.columns)]
    grid = np.concatenate([np.linspace(1, 60_000, 4000)])
    rows = pd.concat([row] * len(grid), ignore_index=True)
    rows["income"] = grid
    given_names = [name for name in frame.columns if name != "income"]
    density = np.exp(model.log_prob(rows, asked=["income"], given=given_names).value.numpy())
    assert math.isclose(np.trapezoid(density, grid), 1.0, abs_tol=0.03)


def test_probabilities_of_all_levels_sum_to_one_though_rare_ones_share_a_code():
    rng = np.random.default_rng(0)
    levels = [f"c{k:02}" for k in range(99) for _ in range(3)] + [f"r{k % 40:02}" for k in range(50)]
    frame = pd.DataFrame({"a": rng.permutation(levels), "b": rng.normal(size=len(levels))})
    model = TableModel(recipe="fast", steps=20, random_state=0).fit(frame)
    asked = pd.DataFrame({"a": [*sorted(set(levels)), "never seen"], "b": 0.3})
    rows = model.table_.encode(asked)
    of_codes = model.log_prob(asked, asked="a", given="b", own_units=False).value
    units = log_units(model.model_, model.table_, rows.x, asked)
    assert math.isclose(float((of_codes + units[:, 0]).exp().sum()), 1.0, abs_tol=1e-5)
    assert float(of_codes.exp().sum()) > 1.5, "a code that is counted for each of its levels"
    assert torch.equal(units[:, 1], log_units(model.model_, model.table_, rows.x)[:, 1])
