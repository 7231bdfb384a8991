"""Tables through the studio: the same cells as on the command line, pages of them, questions about a row."""

import io
import json
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from anyfill import TableModel
from anyfill.cli.main import app as commands


@pytest.fixture(scope="module")
def frame():
    """A hundred and twenty rows: three numbers that go together, a category, dates, holes."""
    draw = np.random.default_rng(0)
    z = draw.normal(size=120)
    data = pd.DataFrame(
        {
            "a": (z + 0.3 * draw.normal(size=120)).round(3),
            "b": (2 * z + 0.5 * draw.normal(size=120)).round(3),
            "count": draw.poisson(np.exp(0.5 * z) * 3),
            "colour": np.where(z > 0.4, "red", np.where(z > -0.4, "green", "blue")),
        }
    )
    return data.mask(draw.random(data.shape) < 0.15)


@pytest.fixture(scope="module")
def opened(visitor, frame):
    """The table, dropped and filled."""
    described = upload(visitor, "some table.csv", frame.to_csv(index=False).encode()).json()
    return visitor.done(f"/api/tables/{described['table']}/fill", {"recipe": "gaussian", "seed": 3})


def upload(visitor, name, content):
    return visitor.client.post("/api/tables/upload", files={"file": (name, content)})


def test_a_dropped_table_is_described(visitor, frame):
    found = upload(visitor, "x.csv", frame.to_csv(index=False).encode()).json()
    assert found["rows"] == 120
    assert found["holes"] == int(frame.isna().sum().sum())
    assert [column["name"] for column in found["columns"]] == list(frame)
    assert [column["kind"] for column in found["columns"]] == ["number", "number", "int", "category"]


@pytest.mark.parametrize("suffix", [".parquet", ".xlsx", ".tsv"])
def test_tables_of_other_kinds_have_the_same_cells(visitor, frame, suffix):
    data = io.BytesIO()
    if suffix == ".parquet":
        frame.to_parquet(data)
    elif suffix == ".xlsx":
        frame.to_excel(data, index=False)
    else:
        data.write(frame.to_csv(index=False, sep="\t").encode())
    found = upload(visitor, f"x{suffix}", data.getvalue()).json()
    assert (found["rows"], found["holes"]) == (120, int(frame.isna().sum().sum()))
    page = visitor.get(f"/api/tables/{found['table']}/rows?first=3&count=2").json()["rows"]
    assert [cell is None for cell in page[0]] == frame.iloc[3].isna().tolist()


def test_the_download_is_the_file_that_the_command_writes(visitor, opened, frame, tmp_path):
    key = opened["table"]
    made = visitor.done(f"/api/tables/{key}/download", {"what": "filled"})
    assert made["name"] == "some_table-filled.csv"
    answer = visitor.get(f"/api/tables/{key}/files/{made['file']}")
    assert 'filename="some_table-filled.csv"' in answer.headers["content-disposition"]
    source, target = tmp_path / "some table.csv", tmp_path / "filled.csv"
    frame.to_csv(source, index=False)
    line = shlex.split(opened["how"]["cli"])[1:]
    line = [{"some table.csv": str(source), "filled.csv": str(target)}.get(word, word) for word in line]
    assert CliRunner().invoke(commands, [*line, "--engine", "none"]).exit_code == 0
    assert answer.content == target.read_bytes()


def test_the_line_of_python_gives_the_same_cells_and_intervals(visitor, opened, frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("some table.csv", index=False)
    names = {"TableModel": TableModel}
    exec(opened["how"]["python"], names)
    rows = visitor.get(f"/api/tables/{opened['table']}/rows?count=120").json()["rows"]
    holes = frame.isna().to_numpy()
    for i, j in np.argwhere(holes).tolist():
        value, low, high = rows[i][j]
        if frame.columns[j] == "colour":
            assert value == names["filled"].iloc[i, j]
        else:  # a file of text gets as many digits as its column has
            assert float(value) == pytest.approx(float(names["filled"].iloc[i, j]), abs=6e-4)
            assert float(low) == pytest.approx(float(names["low"].iloc[i, j]), abs=6e-4)
            assert float(high) == pytest.approx(float(names["high"].iloc[i, j]), abs=6e-4)


def test_present_cells_are_shown_as_they_are_and_pages_join(visitor, opened, frame):
    key = opened["table"]
    parts = [visitor.get(f"/api/tables/{key}/rows?first={n}&count=50").json()["rows"] for n in (0, 50, 100, 150)]
    assert [len(part) for part in parts] == [50, 50, 20, 0]
    rows = [row for part in parts for row in part]
    text = pd.read_csv(io.StringIO(frame.to_csv(index=False)), dtype=str, keep_default_na=False)
    for i, j in np.argwhere(frame.notna().to_numpy()).tolist():
        assert rows[i][j] == text.iloc[i, j]


def test_one_pass_answers_what_ask_answers(visitor, opened, frame):
    row = 5
    changes = {"a": "0.7", "b": None, "count": None, "colour": None}
    answer = visitor.post(f"/api/tables/{opened['table']}/whatif", {"row": row, "changes": changes}).json()
    assert answer["how"]["passes"] == 1
    model = TableModel(recipe="gaussian", random_state=3, unknown="missing").fit(
        pd.read_csv(io.StringIO(frame.to_csv(index=False)), dtype=str, keep_default_na=False)
    )
    own = model.ask({"a": 0.7})
    for name, found in answer["answers"].items():
        expected = own[name]
        if name == "colour":
            assert found["value"] == expected.value
            assert dict(map(tuple, found["levels"])) == pytest.approx(dict(expected.probabilities), abs=1e-4)
        else:
            for key in ("value", "median", "low", "high"):
                assert float(found[key]) == pytest.approx(float(getattr(expected, key)), rel=1e-3, abs=1e-3)


def test_a_change_moves_what_goes_with_it(visitor, opened):
    path, free = f"/api/tables/{opened['table']}/whatif", {"b": None, "count": None, "colour": None}
    low, high = (visitor.post(path, {"row": 0, "changes": {"a": a, **free}}).json()["answers"] for a in ("-1.5", "1.5"))
    assert float(high["b"]["value"]) - float(low["b"]["value"]) > 3
    assert (low["colour"]["value"], high["colour"]["value"]) == ("blue", "red")


def test_a_cell_has_a_distribution_draws_and_what_it_depends_on(visitor, opened):
    path = f"/api/tables/{opened['table']}/cell"
    found = visitor.post(path, {"row": 1, "column": "b", "seed": 4}).json()
    own, heights = np.array(found["curve"]).T
    mass = np.trapezoid(heights, own)
    assert np.trapezoid(own * heights, own) / mass == pytest.approx(float(found["value"]), abs=0.1)
    assert len(found["draws"]) == 60
    assert np.mean([float(one) for one in found["draws"]]) == pytest.approx(float(found["value"]), abs=0.6)
    assert found["depends"][0]["column"] == "a"
    moves = [one["moves"] for one in found["depends"]]
    assert moves == sorted(moves, reverse=True)
    assert all(0 <= one <= 1 for one in moves)
    levels = visitor.post(path, {"row": 1, "column": "colour"}).json()["levels"]
    assert sum(share for _, share in levels) == pytest.approx(1, abs=1e-4)
    whole = visitor.post(path, {"row": 1, "column": "count"}).json()
    assert whole["bars"]


def test_what_to_measure_next_is_ranked_per_cost(visitor, opened):
    body = {"row": 0, "changes": {"a": None, "b": None, "count": None}, "target": "colour"}
    path = f"/api/tables/{opened['table']}/next"
    plain = visitor.post(path, body).json()["rows"][0]
    assert plain["best"] in ("a", "b")
    dear = visitor.post(path, {**body, "costs": {"a": 1000, "b": 1000}}).json()["rows"][0]
    assert dear["best"] == "count"


def test_a_wild_row_is_the_most_surprising(visitor, frame):
    wild = frame.copy()
    wild.loc[17, ["a", "b", "colour"]] = [4.0, -8.0, "green"]
    key = upload(visitor, "wild.csv", wild.to_csv(index=False).encode()).json()["table"]
    visitor.done(f"/api/tables/{key}/fill", {})
    found = visitor.done(f"/api/tables/{key}/surprises", {"top": 3})["rows"]
    assert found[0]["row"] == 17
    assert found[0]["cells"][0]["column"] in ("a", "b")


def test_kinds_can_be_said_otherwise_and_the_model_is_dropped(visitor, frame):
    key = upload(visitor, "x.csv", frame.to_csv(index=False).encode()).json()["table"]
    visitor.done(f"/api/tables/{key}/fill", {})
    found = visitor.post(f"/api/tables/{key}/kinds", {"columns": {"count": "category", "a": "ignore"}}).json()
    assert [column["kind"] for column in found["columns"]][:3] == ["ignore", "number", "category"]
    assert not found["modelled"]
    assert visitor.post(f"/api/tables/{key}/whatif", {"row": 0}).status_code == 409
    for bad in ({"none": "number"}, {"a": "nonsense"}, {"colour": "number"}):
        answer = visitor.post(f"/api/tables/{key}/kinds", {"columns": bad})
        assert answer.status_code == 422
        assert "expected" in answer.json()["detail"]


def test_draws_scores_and_reports_can_be_downloaded(visitor, opened):
    key = opened["table"]
    made = {what: visitor.done(f"/api/tables/{key}/download", {"what": what}) for what in ("draws", "scores")}
    text = {w: visitor.get(f"/api/tables/{key}/files/{one['file']}").text for w, one in made.items()}
    assert len(text["draws"].splitlines()) == 1 + 20 * 120
    assert len(text["scores"].splitlines()) == 1 + 120
    assert visitor.get(f"/api/tables/{key}/files/none").status_code == 404


def test_questions_beyond_the_table_are_refused(visitor, opened):
    key = opened["table"]
    assert visitor.post(f"/api/tables/{key}/cell", {"row": 120, "column": "a"}).status_code == 404
    assert visitor.post(f"/api/tables/{key}/cell", {"row": 0, "column": "none"}).status_code == 422
    assert visitor.post(f"/api/tables/{key}/whatif", {"row": 0, "changes": {"a": "word"}}).status_code == 422
    assert visitor.get("/api/tables/none").status_code == 404
    assert json.loads(visitor.get("/api/tables/none").text)["detail"]
