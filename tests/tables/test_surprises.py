"""Surprise: 0 on average for usual rows, whatever the units and the holes; wrong rows and cells come first."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anyfill.tables import surprises
from anyfill.tables.estimator import TableModel
from anyfill.tables.file_model import FileModel
from anyfill.tables.frames import Frame
from anyfill.tables.hidden_cells import blanked, present_cells
from anyfill.tables.surprises import learn_usual, score_file


def make_table(rows: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    a = generator.normal(size=rows)
    b = a + 0.1 * generator.normal(size=rows)
    return pd.DataFrame({"metres": a, "microns": 1e6 * b, "noise": generator.normal(size=rows)})


@pytest.fixture(scope="module")
def model() -> TableModel:
    return TableModel(recipe="gaussian", random_state=0).fit(make_table(500, 0))


def test_surprise_is_zero_on_average_for_every_pattern_of_holes(model: TableModel) -> None:
    """Means over 4000 new rows; a row has a standard deviation of about 1.2 nats, the 512 draws behind it add 0.05."""
    rows = make_table(4000, 1)
    generator = np.random.default_rng(2)
    hidden = generator.random(rows.shape) < 0.3
    frame = blanked(Frame.of(rows), hidden, model.table_.names)
    present = present_cells(frame, model.table_.names)
    usual = learn_usual(model, present, seed=0)
    surprise = -model.score_samples(frame) - usual.of_rows(present)
    assert abs(surprise.mean()) < 0.1
    for column in range(3):
        for there in (True, False):
            assert abs(surprise[present[:, column] == there].mean()) < 0.5
    cells = -model.cell_log_prob(frame) - usual.cell
    assert np.all(np.abs(np.nanmean(cells, 0)) < 0.3)


def test_wrong_rows_and_cells_come_first(model: TableModel, tmp_path: Path) -> None:
    rows = make_table(200, 3)
    rows.loc[17, ["metres", "microns"]] = [2.0, -2e6]  # each usual, together not
    rows.loc[101, "noise"] = 30.0
    rows.to_csv(tmp_path / "data.csv", index=False)
    target = tmp_path / "scores.csv"
    found = score_file(FileModel(model), tmp_path / "data.csv", top=3, seed=0, target=target)
    assert {one.row for one in found[:2]} == {18, 102}
    assert [one.surprise for one in found] == sorted((one.surprise for one in found), reverse=True)
    noisy = next(one for one in found if one.row == 102)
    assert noisy.cells[0].column == "noise"
    assert float(noisy.cells[0].value) == 30.0
    assert abs(float(noisy.cells[0].expected)) < 1.0
    torn = next(one for one in found if one.row == 18)
    assert torn.cells[-1].column == "noise"
    scores = pd.read_csv(target)
    assert scores["row"].tolist() == list(range(1, 201))
    assert scores["surprise"].nlargest(2).index.tolist() == [one.row - 1 for one in found[:2]]
    np.testing.assert_allclose(scores["nats"], -model.score_samples(rows), rtol=1e-6)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_that_lacks_a_column_is_scored(model: TableModel, tmp_path: Path, kind: str) -> None:
    rows, source = make_table(30, 3), tmp_path / f"data.{kind}"
    for data in (rows.drop(columns="noise"), rows.assign(noise=None)):
        data.to_csv(source, index=False) if kind == "csv" else data.to_parquet(source)
        found = score_file(FileModel(model), source, top=2, seed=0)
        assert all({cell.column for cell in one.cells} == {"metres", "microns"} for one in found)


def test_of_an_ignored_column_nothing_is_expected(tmp_path: Path) -> None:
    rows = make_table(100, 4)
    rows.insert(0, "note", "as ever")
    told = TableModel(recipe="gaussian", columns={"note": "ignore"}, random_state=0).fit(rows)
    rows.to_csv(tmp_path / "data.csv", index=False)
    for one in score_file(FileModel(told), tmp_path / "data.csv", top=3, seed=0):
        assert {cell.column for cell in one.cells} == {"metres", "microns", "noise"}
        assert [cell.surprise for cell in one.cells] == sorted((cell.surprise for cell in one.cells), reverse=True)


def test_a_refusal_counts_rows_from_1_over_the_whole_file(
    model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surprises, "CHUNK", 10)
    rows = make_table(25, 3).astype(object)
    rows.loc[21, "noise"] = "loud"
    rows.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(ValueError, match=r"^column 'noise', row 22 of data.csv: expected a number, got 'loud'$"):
        score_file(FileModel(model), tmp_path / "data.csv", top=2, seed=0)


def test_blanking_hides_exactly_what_it_is_told() -> None:
    frame = Frame.of(pd.DataFrame({"a": [1, 2, 3], "t": ["x", "y", "z"]}))
    hidden = np.array([[True, False], [False, True], [False, False]])
    after = blanked(frame, hidden, ("a", "t"))
    np.testing.assert_array_equal(present_cells(after, ("a", "t")), ~hidden)
    assert after["a"].values[1:].tolist() == [2, 3]
