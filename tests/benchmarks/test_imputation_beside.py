"""The imputation benchmark's comparisons: ours beside another method cell by cell, ranks over seeds, CPU seconds."""

import math
from typing import Any

import numpy as np
import pytest

from benchmarks import imputation_rare
from benchmarks.tables import beside, report


def _line(method: str, right: list[int] | None, table: str = "vote", seed: int = 0, **more: Any) -> dict[str, Any]:
    bits = np.array(right or [], dtype=bool)
    share = float(bits.sum()) / max(len(bits), 1)
    kept = {"accuracy": share, "coded": len(bits), "right": np.packbits(bits).tobytes().hex()}
    place = {"table": table, "holes": "mnar", "mode": "in", "seed": seed, "method": method}
    return {**place, **(kept if right else {}), "cpu_seconds": 1.0, **more}


def test_accuracy_less_lightgbms_is_of_the_same_cells_and_has_their_standard_error() -> None:
    lines = [
        _line("ours", [1, 1, 0, 1, 1]),
        _line("lightgbm", [1, 0, 1, 0, 1]),
        _line("ours", [0, 1, 1], seed=1),
        _line("lightgbm", [0, 0, 1], seed=1),
        _line("ours", [1, 1], seed=2),  # nobody beside it
    ]
    found = beside.accuracy_less(lines)["vote"]
    apart = np.array([0, 1, -1, 1, 0, 0, 1, 0])
    assert found["all"] == found["in mnar"]
    assert found["all"]["difference"] == pytest.approx(apart.mean())
    assert found["all"]["error"] == pytest.approx(apart.std(ddof=1) / math.sqrt(8))
    assert (found["all"]["cells"], found["all"]["jobs"]) == (8, 2)


def test_cpu_of_0_1s_engine_is_compared_table_by_table_and_slow_methods_are_ranked_where_they_have_lines() -> None:
    names = ("wine", "yacht", "diabetes", "energy")
    lines = [
        _line("ours", None, name, cpu_seconds=seconds, rmse=0.5)
        for name, seconds in zip(names, (1.0, 4.0, 3.0, 9.0), strict=True)
    ]
    lines += [_line(beside.ENGINE, None, name, cpu_seconds=10.0, rmse=0.1) for name in names[:3]]
    lines += [_line("em", None, name, rmse=0.7 if name == "energy" else 0.4) for name in names]
    lines += [_line("utrees", None, name, rmse=0.3) for name in names[:3]]
    found = beside.summary(lines)
    assert {name: row["ratio"] for name, row in found["cpu_of_engine"]["tables"].items()} == {
        "wine": 0.1,
        "yacht": 0.4,
        "diabetes": 0.3,
    }
    assert found["cpu_of_engine"]["median"] == 0.3
    ranked = found["pooled_ranks"]["0"]
    assert ranked["all"]["rmse"] == {"em": 1.25, "ours": 1.75}
    assert ranked["where utrees is"]["rmse"] == {"utrees": 1.0, "em": 2.0, "ours": 3.0}
    assert found["wins"]["em"]["rmse"] == {"jobs": 4, "better": 1.0}
    assert "median" in beside.show(found)
    assert "all" not in found["pooled_ranks"]  # one seed


def test_ranks_of_all_seeds_are_of_the_methods_that_have_them_all() -> None:
    lines = [_line("ours", None, "wine", seed=seed, rmse=rmse) for seed, rmse in ((0, 0.5), (1, 0.5))]
    lines += [_line("em", None, "wine", seed=seed, rmse=rmse) for seed, rmse in ((0, 0.6), (1, 0.4))]
    lines += [_line("mean", None, "wine", seed=0, rmse=0.1)]
    ranked = beside.summary(lines)["pooled_ranks"]
    assert ranked["0"]["all"]["rmse"] == {"mean": 1.0, "ours": 2.0, "em": 3.0}
    assert ranked["all"]["all"]["rmse"] == ranked["all"]["in mnar"]["rmse"] == {"ours": 1.5, "em": 1.5}


def test_another_recipe_of_ours_is_no_peer() -> None:
    lines = [_line("ours", None, "wine", rmse=0.5), _line("em", None, "wine", rmse=0.6)]
    lines += [_line(beside.ENGINE, None, "wine", rmse=0.1)]
    found = report.summary(report.means(lines))["in mnar"]
    assert found["ranks"]["all"]["rmse"] == {"ours": 1.0, "em": 2.0}
    assert found["ours_beside_best_peer"]["rmse"][0]["by"] == "em"


def test_where_two_fill_differently_it_is_counted_who_names_the_rarer_level_and_what_a_tilt_would_change() -> None:
    words = [np.array(cells.split(), dtype=object) for cells in ("a b b a c", "a a b a b", "a b a b b")]
    chances = np.array([[0.9, 0.1, 0], [0.52, 0.48, 0], [0.2, 0.8, 0], [0.9, 0.1, 0], [0.0, 0.6, 0.4]])
    found = imputation_rare.compared(words[0], ["a", "b", "c"], np.array([80.0, 19.0, 1.0]), chances, *words[1:])
    assert (found["cells"], found["right"], found["peer_right"]) == (5, 3, 2)
    assert (found["peer_rarer"], found["peer_rarer_ours_right"], found["peer_rarer_peer_right"]) == (2, 1, 1)
    assert (found["ours_rarer"], found["ours_rarer_ours_right"], found["ours_rarer_peer_right"]) == (1, 1, 0)
    # at 0.1 the second becomes b (0.52 / 0.8^0.1 < 0.48 / 0.19^0.1), at 0.2 the fifth c as well
    assert [found[f"tilt {tilt}"] for tilt in ("0.05", "0.1", "0.2")] == [0, 1, 2]
    line = {"holes": "mnar", "table": "vote", "counts": found}
    said = imputation_rare.summary([line, line])["mnar"]
    assert said["accuracy_less_lightgbm"] == pytest.approx(0.2)
    assert said["tilts"]["0.1"]["gain"] == pytest.approx(0.2)
    assert said["tilts"]["0.1"]["error"] == pytest.approx(math.sqrt(0.16 / 10))
