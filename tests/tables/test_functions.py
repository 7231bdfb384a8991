"""Columns that are functions of others: found where they are, not where they are not, and answered by."""

import numpy as np
import pandas as pd
import pytest
import torch

from anyfill import TableModel
from anyfill.cli import main as cli
from anyfill.questions.order import ByRegion, Increasing
from anyfill.tables.determined import determined, order_for
from anyfill.tables.discovery import with_functions
from anyfill.tables.formula_search import evidence
from anyfill.tables.frames import Frame
from anyfill.tables.functions import (
    Reckoned,
    Recoding,
    Steps,
    answered,
    function_from_json,
    function_to_json,
)
from anyfill.tables.table import Table


def found_in(frame):
    """The functions of a data frame, as (target, words)."""
    frame = Frame.of(frame)
    table = Table.of(frame)
    return with_functions(table, frame, table.encode(frame)).functions


def words_in(frame):
    return {(one.target, one.words) for one in found_in(frame)}


def with_holes(frame, share, seed):
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share)


def people(rows, seed=0):
    """Age, its decade, height, weight, BMI, and a class of BMI."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    height, weight = np.round(rng.normal(1.7, 0.1, rows), 2), np.round(rng.normal(75, 12, rows), 1)
    bmi = np.round(weight / height**2, 1)
    return pd.DataFrame(
        {
            "age": age.astype(float),
            "decade": np.array([f"{one // 10}0s" for one in age], dtype=object),
            "height": height,
            "weight": weight,
            "bmi": bmi,
        }
    )


def books(rows, seed=0):
    """Prices, taxes, amounts and what they come to."""
    rng = np.random.default_rng(seed)
    price, tax, count = np.round(rng.gamma(2, 2000, rows), 2), np.round(rng.gamma(2, 30, rows), 2), rng.poisson(4, rows)
    items = rng.integers(0, 4, (rows, 5))
    frame = pd.DataFrame(items.astype(float), columns=[f"item {k}" for k in range(5)])
    cm = np.round(rng.normal(170, 10, rows), 1)
    return frame.assign(
        score=items.sum(1).astype(float),
        price=price,
        tax=tax,
        total=np.round(price + tax, 2),
        count=count.astype(float),
        left=(20 - count).astype(float),
        cm=cm,
        inch=np.round(cm / 2.54, 2),
        each=price / (1 + count),
    )


def test_thresholds_of_a_number_are_found_as_steps():
    (decade,) = [one for one in found_in(people(400)) if one.target == "decade"]
    assert isinstance(decade, Steps)
    assert decade.sources == ("age",)
    assert len(decade.answers) == 7
    assert decade.confirmed > 380


def test_recodings_are_found_both_ways_and_lumpings_one_way():
    rng = np.random.default_rng(0)
    city = rng.integers(0, 6, 300)
    names, short = np.array(list("ABCDEF"), dtype=object), np.array(["a1", "b1", "c1", "d1", "e1", "f1"], dtype=object)
    region = np.array(["north", "south"], dtype=object)[city // 3]
    frame = pd.DataFrame({"city": names[city], "short": short[city], "region": region, "other": rng.normal(size=300)})
    assert words_in(frame) == {
        ("city", "a function of short"),
        ("short", "a function of city"),
        ("region", "a function of city"),
        ("region", "a function of short"),
    }


def test_sums_differences_products_and_units_are_found_as_formulas():
    words = words_in(people(400)) | words_in(books(400))
    assert {
        ("bmi", "= weight / height**2"),
        ("total", "= price + tax"),
        ("price", "= -tax + total"),
        ("tax", "= -price + total"),
        ("left", "= -count + 20"),
        ("inch", "= cm / 2.54"),
    } <= words
    (score,) = [one for one in found_in(books(400)) if one.target == "score"]
    assert set(score.sources) == {f"item {k}" for k in range(5)}


@pytest.mark.parametrize("start", [0, 1_700_000_000])
@pytest.mark.parametrize("span", [1000, 10**6, 10**9])
def test_what_is_off_by_a_billionth_of_its_size_is_no_formula(start, span):
    rng = np.random.default_rng(0)
    seconds = start + rng.integers(0, span, 250)
    near = pd.DataFrame({"s": seconds, "ns": seconds * 10**9 + rng.integers(0, 10**9, 250)})
    assert "ns" not in {target for target, _ in words_in(near)}
    assert ("ns", "= 1000000000 * s") in words_in(near.assign(ns=seconds * 10**9))


@pytest.mark.parametrize(
    ("formula", "decimals", "words"),
    [
        (lambda x: x / 1.609344, 4, "= x / 1.609344"),
        (lambda x: x / 7, 6, "= x / 7"),
        (lambda x: x / 86400, 6, "= x / 86400"),
        (lambda x: x * 1.19, 2, "= 1.19 * x"),
        (lambda x: x / 2, 1, "= 0.5 * x"),
    ],
)
def test_units_are_converted_to_the_last_decimal(formula, decimals, words):
    x = np.floor(np.random.default_rng(0).uniform(0, 1e6, 2000))
    assert ("y", words) in words_in(pd.DataFrame({"x": x, "y": np.round(formula(x), decimals)}))


def test_large_values_that_are_alike_are_still_a_formula():
    seconds = 1_700_000_000 + np.random.default_rng(0).integers(0, 10**6, 250)
    frame = pd.DataFrame({"s": seconds, "since": seconds - 1_700_000_000.0 + 5})
    assert words_in(frame) == {("since", "= s - 1699999995"), ("s", "= since + 1699999995")}


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_huge_values_are_looked_at_without_a_warning():
    rng = np.random.default_rng(0)
    assert words_in(pd.DataFrame({"a": rng.normal(size=200) * 1e300, "b": rng.random(200) * 1.7e308})) == set()
    assert words_in(pd.DataFrame({"a": rng.random(200) * 1e59, "b": rng.random(200) * 1e59, "c": 1.0})) == set()


def test_functions_are_found_through_holes():
    full, holed = people(900), with_holes(people(900), 0.3, 1)
    assert {("bmi", "= weight / height**2"), ("decade", "a function of age: 7 steps")} <= words_in(holed)
    assert {one.target for one in found_in(full)} == {one.target for one in found_in(holed)}


@pytest.mark.parametrize("kind", ["independent", "dependent", "rare", "nearly"])
def test_nothing_is_found_where_there_is_nothing(kind):
    """80 tables of 12 columns, 132 ordered pairs and 660 triples each: by the bound of ``discovery`` a false alarm in
    them has a probability below 80 x 800 x 1.4e-11 = 1e-6."""
    for seed in range(20):
        rng = np.random.default_rng([seed, len(kind)])
        rows = int(rng.choice([90, 250, 800]))
        number = rng.normal(size=(rows, 4))
        if kind == "dependent":  # strongly, but with noise
            number[:, 1:] = number[:, :1] + 0.05 * number[:, 1:]
        frame = pd.DataFrame(np.round(number, 1), columns=list("abcd"))
        whole = rng.integers(0, 4, (rows, 4)).astype(float)
        if kind == "dependent":
            whole[:, 1:] = np.where(rng.random((rows, 3)) < 0.9, whole[:, :1], whole[:, 1:])
        codes = rng.integers(0, 3, (rows, 4))
        if kind == "rare":  # one level nearly everywhere, two rows aside: any source is right there
            codes[:] = 0
            codes[rng.integers(0, rows, 2)] = 1
            codes[0], codes[1] = 2, 1
        if kind == "nearly":  # a threshold that one row in thirty breaks
            codes[:, 0] = (number[:, 0] > 0) ^ (rng.random(rows) < 1 / 30)
        for k in range(4):
            frame[f"w{k}"] = whole[:, k]
            frame[f"c{k}"] = np.array(["x", "y", "z"], dtype=object)[codes[:, k]]
        if kind == "rare":
            frame = frame.drop(columns=["c1", "c2", "c3"])  # copies of c0, which they would be functions of
        assert found_in(frame) == ()


def test_the_evidence_is_the_logarithm_of_the_number_of_orders():
    assert evidence(np.array([0.0, 1.0, 1.0, 2.0])) == pytest.approx(np.log(12))
    assert evidence(np.ones(50)) == pytest.approx(0.0)


def test_steps_say_nothing_between_and_beyond_what_was_seen():
    steps = Steps("y", ("x",), 10, (0.0, 2.0), (1.0, 3.0), (5.0, 6.0))
    said = steps.encoded({}, {"x": np.array([-1.0, 0.0, 1.0, 1.5, 2.0, 3.0, 3.1, np.nan])})
    np.testing.assert_array_equal(said, [np.nan, 5, 5, np.nan, 6, 6, np.nan, np.nan])
    recoding = Recoding("y", ("x",), 10, (1.0, None))
    np.testing.assert_array_equal(recoding.encoded({}, {"x": np.array([0.0, 1.0, 2.0, np.nan])}), [1, *[np.nan] * 3])


@pytest.mark.parametrize(
    "function",
    [
        Recoding("y", ("x",), 10, (1.0, float("nan"))),
        Steps("y", ("x",), 10, (0.0, 2.0), (1.0, 3.0), (5.0, 6.0)),
        Reckoned("y", ("a", "b c"), 10, "a + `b c`", 2),
    ],
)
def test_functions_survive_json(function):
    fields = function_to_json(function)
    assert repr(function_from_json("y", fields)) == repr(function)
    with pytest.raises(ValueError, match="kind of a function"):
        function_from_json("y", {**fields, "kind": "other"})
    with pytest.raises(ValueError, match="its fields"):
        function_from_json("y", {**fields, "colour": 1})
    with pytest.raises(ValueError, match="other columns"):
        function_from_json(function.sources[0], fields)


def test_one_way_functions_come_after_their_sources():
    frame = people(300)[["decade", "bmi", "age", "height", "weight"]]
    table = with_functions(Table.of(frame), Frame.of(frame), Table.of(frame).encode(frame))
    order = order_for(table)
    assert isinstance(order, ByRegion)
    key = order.priority(1, 5)[0].tolist()
    assert key[0] > key[2]
    assert order_for(Table.of(frame)) == Increasing()


@pytest.fixture(scope="module")
def holed():
    full = people(300, seed=3)
    return full, with_holes(full, 0.2, 4)


EFFORT = {"fast": "medium", "trees": "low"}
"""The first is not asked for it."""


@pytest.fixture(scope="module", params=["fast", "trees"])
def fitted(request, holed):
    return TableModel(recipe=request.param, effort=EFFORT[request.param], steps=20, random_state=0).fit(holed[1])


def test_what_functions_say_is_filled_exactly(fitted, holed):
    full, table = holed
    filled = fitted.transform(table)
    for name, parts in (("decade", ["age"]), ("bmi", ["height", "weight"])):
        asked = table[name].isna() & table[parts].notna().all(axis=1)
        assert asked.sum() > 20
        right = filled[name][asked].to_numpy() == full[name][asked].to_numpy()
        assert right.mean() >= (0.95 if name == "decade" else 1.0)  # 0.95: ages that were never seen beside a decade
    assert not filled.isna().any(axis=None)


def test_the_schema_says_what_is_a_function_of_what(fitted):
    assert "a function of age: 7 steps" in repr(fitted)
    assert "= weight / height**2" in repr(fitted)


def test_draws_keep_the_functions(fitted, holed):
    _, table = holed
    for drawn in fitted.sample(table, 2, seed=1):
        asked = table["bmi"].isna()
        assert (np.abs(np.round(drawn["weight"] / drawn["height"] ** 2, 1) - drawn["bmi"])[asked] < 1e-6).mean() > 0.95
        asked = table["decade"].isna() & table["age"].notna()
        assert ((drawn["age"] // 10 * 10).astype(int).astype(str) + "s" == drawn["decade"])[asked].mean() > 0.95


def test_densities_with_functions_are_densities(fitted, holed):
    """Codes sum to one; the density of a number, spike and all, integrates to one."""
    full, _ = holed
    filler = fitted._filler
    rows = fitted.table_.encode(full.head(6))
    for j in (1, 4):
        known = torch.ones(6, 5, dtype=torch.bool)
        known[:, j] = False
        params = filler.model.params(rows.x, known, cells=(torch.arange(6), torch.full((6,), j)))
        marginals = filler.model.likelihood.at(params[:, None], torch.full((6, 1), j))
        if j == 1:
            mass = sum(marginals.log_prob(torch.full((6, 1), float(k))).exp() for k in range(fitted.table_.sizes[1]))
        else:
            said = marginals.quantile(0.5)[:, 0].double()
            (function,) = [one for one in fitted.table_.functions if one.target == "bmi"]
            narrow = function.width(fitted.table_.columns[4])
            near = torch.linspace(-60, 60, 2001, dtype=torch.float64) * narrow
            far = torch.linspace(-12, 12, 12001, dtype=torch.float64)
            each = [torch.cat([far, near + middle]).sort().values for middle in said]
            grid = torch.stack(each)  # (6, G)
            wide = params[:, None].expand(-1, grid.shape[1], -1)
            density = filler.model.likelihood.at(wide, torch.full(grid.shape, j)).log_prob(grid.float()).double().exp()
            mass = torch.trapezoid(density, grid, dim=1)
        torch.testing.assert_close(mass.flatten().double(), torch.ones(6).double(), atol=2e-3, rtol=0)


def test_known_parts_make_the_function_nearly_certain(fitted, holed):
    full, _ = holed
    log_p = fitted.log_prob(full, asked="decade", given=["age"]).value
    assert float(log_p.median()) > -0.01
    plain = TableModel(recipe=fitted.recipe, effort=fitted.effort, steps=20, random_state=0, find_functions=False).fit(
        holed[1]
    )
    assert plain.table_.functions == ()
    known = fitted.log_prob(full, asked="bmi", given=["height", "weight"]).value
    assert float((known - plain.log_prob(full, asked="bmi", given=["height", "weight"]).value).median()) > 1.0
    same = fitted.log_prob(full, asked="bmi", given=["height"]).value  # a part is missing: the model's own answer
    torch.testing.assert_close(same, plain.log_prob(full, asked="bmi", given=["height"]).value, atol=1e-3, rtol=1e-3)


def test_a_saved_model_keeps_its_functions(fitted, holed, tmp_path):
    fitted.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    assert again.table_.functions == fitted.table_.functions != ()
    pd.testing.assert_frame_equal(again.transform(holed[1]), fitted.transform(holed[1]))


def test_sums_of_large_amounts_add_up_to_the_cent():
    rng = np.random.default_rng(0)
    rows = 200
    net, tax = np.round(rng.gamma(2, 1e6, rows), 2), np.round(rng.gamma(2, 1e4, rows), 2)
    full = pd.DataFrame({"net": net, "tax": tax, "gross": np.round(net + tax, 2)})
    hole = np.zeros(full.shape, dtype=bool)
    hole[np.arange(60), np.arange(60) % 3] = True
    filled = TableModel(recipe="gaussian", random_state=0).fit(full.mask(hole)).transform(full.mask(hole))
    np.testing.assert_allclose(filled.to_numpy(), full.to_numpy(), atol=0.004, rtol=0)


def test_models_that_cannot_be_asked_cell_by_cell_stay_as_they_are(holed):
    model = TableModel(recipe="one-pass", steps=5, random_state=0).fit(holed[1])
    assert model.table_.functions
    assert determined(model.model_, model.table_) is model.model_
    assert not model.transform(holed[1].head(20)).isna().any(axis=None)


def test_twins_that_are_both_missing_are_told_from_other_columns_as_if_there_were_one():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (2, 500)).round(2)
    code = np.where(rng.random(500) < 0.03, rng.integers(0, 3, 500), (x * y > 0).astype(int) + (x > 0.5))
    whole = pd.DataFrame(
        {"x": x, "y": y, "town": np.array(["a", "b", "c"])[code], "code": np.array(["A", "B", "C"])[code]}
    )
    model = TableModel(effort="low", random_state=0).fit(with_holes(whole, 0.15, 1))
    assert {one.target for one in model.table_.functions} == {"town", "code"}
    filled = model.transform(whole.assign(town=pd.Series(None, dtype=object), code=pd.Series(None, dtype=object)))
    # 0.98 at most; 0.78 to 0.86 where what trees learn begins at a joint that a twin made sure of itself
    assert min((filled[name] == whole[name]).mean() for name in ("town", "code")) > 0.9


def test_copies_of_rows_confirm_nothing():
    rng = np.random.default_rng(0)
    few = pd.DataFrame({"a": rng.normal(size=12), "b": np.array(["x", "y"], dtype=object)[rng.integers(0, 2, 12)]})
    few = few.sort_values("a").assign(b=["x"] * 6 + ["y"] * 6)
    model = TableModel(recipe="gaussian", random_state=0).fit_weighted(few, np.full(12, 4))
    assert model.table_.functions == ()


def test_answers_take_the_first_function_that_has_one():
    frame = people(200)
    table = Table.of(frame)
    functions = (
        Steps("bmi", ("age",), 10, (0.0,), (1.0,), (0.5,)),
        Recoding("bmi", ("decade",), 10, (0.7,) * 7),
    )
    x = np.zeros((3, 5))
    x[:, 0] = [0.5, 9.0, 9.0]
    known = np.ones((3, 5), dtype=bool)
    known[:, 4] = False
    known[2, 1] = False
    value, doubt, _ = answered(functions, table.columns, x, known)
    np.testing.assert_array_equal(value[:, 4], [0.5, 0.7, np.nan])
    assert doubt[0, 4] == 1 / 12
    assert np.isnan(value[:, :4]).all()


def test_the_command_says_what_is_a_function_of_what(tmp_path, capsys):
    people(200).to_csv(tmp_path / "people.csv", index=False)
    model = tmp_path / "model"
    assert cli.run(["fit", str(tmp_path / "people.csv"), "-o", str(model), "--recipe", "gaussian"]) == 0
    said = capsys.readouterr().out
    assert "a function of age: 7 steps" in said
    assert "= weight / height**2" in said
    assert TableModel.load(model).table_.functions
