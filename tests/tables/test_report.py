"""The report: statistics against independent formulas, and a page that is one well-formed file without references."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from anyfill.tables import report as figures
from anyfill.tables.estimator import TableModel
from anyfill.tables.file_model import FileModel
from anyfill.tables.frames import Frame
from anyfill.tables.hidden_cells import check_hidden, coverage, crps
from anyfill.tables.report import curve_rows, write_report


def make_table(rows: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    a = generator.normal(size=rows)
    return pd.DataFrame(
        {
            "a": a,
            "b": a + 0.5 * generator.normal(size=rows),
            "<kind> & more": np.where(a + 0.3 * generator.normal(size=rows) > 0, "up & away", "<down>"),
        }
    )


@pytest.fixture(scope="module")
def model() -> TableModel:
    return TableModel(recipe="gaussian", random_state=0).fit(make_table(800, 0))


def test_crps_is_the_integral_of_the_squared_distance_of_distributions() -> None:
    """With M draws as the distribution itself, CRPS = integral (F - 1)^2; the fair estimator differs by M/(M - 1)."""
    generator = np.random.default_rng(0)
    draws, y = generator.normal(size=(7, 3)), generator.normal(size=3)
    pairs = np.abs(draws[:, None] - draws[None]).sum((0, 1)) / (7 * 6)
    assert crps(draws, y) == pytest.approx(float((np.abs(draws - y).mean(0) - pairs / 2).mean()))
    many = generator.normal(size=(20_000, 1))
    exact = y[0] * (2 * stats.norm.cdf(y[0]) - 1) + 2 * stats.norm.pdf(y[0]) - 1 / np.sqrt(np.pi)
    assert crps(many, y[:1]) == pytest.approx(exact, abs=0.02)


def test_coverage_counts_central_ranks() -> None:
    ranks = np.array([0.02, 0.3, 0.5, 0.97])
    assert coverage(ranks, np.array([0.0, 0.5, 0.95, 1.0])).tolist() == [0.25, 0.5, 0.75, 1.0]


def test_a_model_that_is_right_has_uniform_ranks_and_known_errors(model: TableModel) -> None:
    """Kolmogorov-Smirnov on about 200 ranks, false alarms 1 in 1000. b given a: sd 0.5, in units of sqrt(1.25)."""
    checks = {check.name: check for check in check_hidden(model, Frame.of(make_table(1000, 1)), seed=0)}
    ranks = np.concatenate([checks["a"].rank, checks["b"].rank])
    assert 130 < len(ranks) < 280
    assert stats.kstest(ranks, "uniform").pvalue > 1e-3
    assert checks["b"].error == pytest.approx(0.45, abs=0.12)
    assert checks["b"].error_baseline == pytest.approx(1.0, abs=0.2)
    assert checks["b"].crps < 0.7 * checks["b"].crps_baseline
    category = checks["<kind> & more"]
    assert not category.is_number
    assert category.error < 0.3 < category.error_baseline


def test_a_short_table_is_hidden_several_times(model: TableModel) -> None:
    once = sum(check.cells for check in check_hidden(model, Frame.of(make_table(50, 1)), seed=0))
    assert once > 80  # a tenth of 150 cells, ten times


class Checker(HTMLParser):
    """Follows the open elements; fails where they are not closed in order."""

    void = frozenset(("meta", "img", "br", "i"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None: ...

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.void:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("target", [None, "b", "<kind> & more"])
def test_the_page_is_one_file_that_says_what_it_should(model: TableModel, tmp_path: Path, target: str | None) -> None:
    data = make_table(60, 2)
    data = data.mask(np.random.default_rng(3).random(data.shape) < 0.3)
    data.to_csv(tmp_path / "data.csv", index=False)
    output = tmp_path / "report.html"
    write_report(FileModel(model), tmp_path / "data.csv", output, rows=50, target_column=target, seed=0)
    checker = Checker()
    checker.feed(output.read_text(encoding="utf-8"))
    assert checker.open == []
    assert checker.references == []
    assert "http" not in output.read_text(encoding="utf-8")
    for words in ("50 of 60 rows", "<kind> & more", "What is missing", "Observed and filled", "Calibration", "CRPS"):
        assert words in checker.text
    assert ("most telling first" in checker.text) == (target is not None)
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", checker.text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "report.html"]


def test_the_curve_takes_some_rows_evenly() -> None:
    present = torch.arange(1000) % 2 == 0
    chosen = curve_rows(present, 3)
    assert len(chosen) == len(set(chosen.tolist())) == 40
    assert present[chosen].all()
    assert (chosen > 500).sum() > 8
    assert torch.equal(chosen, curve_rows(present, 3))
    assert not torch.equal(chosen, curve_rows(present, 4))
    assert curve_rows(present[:9], 0).tolist() == [0, 2, 4, 6, 8]


def test_a_warped_scale_is_told_and_zero_has_no_sign(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    data = pd.DataFrame({"income": np.exp(generator.normal(8, 1.5, 300)), "even": generator.random(300)})
    data["near"] = np.where(generator.random(300) < 0.1, -0.0, generator.random(300))
    own = TableModel(recipe="gaussian").fit(data)
    assert [own.table_.columns[j].warp for j in (0, 1)] == ["log", "none"]
    data.to_parquet(tmp_path / "data.parquet")
    options = {"rows": 100, "target_column": None, "seed": 0}
    write_report(FileModel(own), tmp_path / "data.parquet", tmp_path / "r.html", **options)
    words = (tmp_path / "r.html").read_text(encoding="utf-8")
    captions = re.findall("<figcaption>(.*?)</figcaption>", words)
    assert ["log scale" in caption for caption in captions[:2]] == [True, False]
    assert ">-0<" not in words


@pytest.mark.parametrize("ends", [(0.2, 0.2), (0.2, 0.21), (0.0, 0.0), (1.0, 1.0), (0.9, 0.1)])
def test_labels_of_curves_stand_apart_in_the_order_of_the_curves(ends: tuple[float, float]) -> None:
    drawing = figures.line_curves({"one": [1.0, ends[0]], "two": [1.0, ends[1]]}, "steps")
    one, two = (float(re.search(rf'y="([\d.]+)"[^>]*>{name}<', drawing)[1]) for name in ("one", "two"))
    assert abs(one - two) >= 13
    assert ends[0] == ends[1] or (one < two) == (ends[0] > ends[1])
    assert 8 < min(one, two) < max(one, two) <= 250


def test_a_table_without_holes_is_said_to_have_none(model: TableModel, tmp_path: Path) -> None:
    make_table(30, 4).to_csv(tmp_path / "data.csv", index=False)
    write_report(
        FileModel(model),
        tmp_path / "data.csv",
        tmp_path / "r.html",
        rows=50,
        target_column=None,
        seed=0,
    )
    assert "Nothing: every cell has a value." in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("target", ["wrong", "b"])
def test_a_target_without_values_is_refused(model: TableModel, tmp_path: Path, target: str) -> None:
    make_table(30, 4).assign(b=np.nan).to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(ValueError, match=target):
        write_report(
            FileModel(model),
            tmp_path / "data.csv",
            tmp_path / "r.html",
            rows=50,
            target_column=target,
            seed=0,
        )
    assert not (tmp_path / "r.html").exists()


def test_the_map_of_holes_shows_their_number() -> None:
    """Coloured area / whole area = share of missing cells (every row is drawn)."""
    present = np.random.default_rng(0).random((120, 5)) > 0.3
    drawing = figures.missing_map(present, ["a", "b", "c", "d", "e"])
    areas = {
        kind: sum(float(h) for h in re.findall(rf'class="{kind}"[^>]* height="([\d.]+)"', drawing))
        for kind in ("hole", "there")
    }
    assert areas["hole"] / areas["there"] == pytest.approx(1 - present.mean(), abs=0.01)


@pytest.mark.parametrize("values", [np.array([]), np.array([3.0]), np.full(10, 2.0), np.array([1.0, 1e300])])
def test_odd_values_still_make_a_figure(values: np.ndarray) -> None:
    for drawing in (figures.histograms(values, np.array([]), ("0", "1")), figures.histograms(values, values, ("", ""))):
        assert "nan" not in drawing
        assert "inf" not in drawing
