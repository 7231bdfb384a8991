"""The claims of SUNMASK's Table 2: a bootstrap that finds a difference only where there is one."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anyfill.music.chorale import Chorale
from anyfill.music.grades import Grade, Protocol, grade_all
from experiments.sunmask import claims, curves, plans, table2

PROTOCOLS: tuple[Protocol, ...] = ("key-aware", "paper")


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_clear_difference_is_confirmed_or_refuted_and_equal_rows_are_not_decided(random) -> None:
    low, high = random.normal(13.0, 3.0, 200), random.normal(22.0, 3.0, 200)
    same = random.permutation(low)
    half = {"SMc plain-half": low, "SMt plain-half": high, "SMc T-half": same, "SMc A-half": high}
    found = claims.claims(half)
    assert found["SMc beats SMt, both plain"]["verdict"] == "confirmed"
    assert found["A makes SMc worse"]["verdict"] == "confirmed"
    assert found["T helps SMc"]["verdict"] == "not decided"
    other = claims.claims({"SMc T": high, "SMt T": low})
    assert other["SMc-T beats SMt-T"]["verdict"] == "refuted"
    assert "N makes SMc-AT worse" not in found


def test_the_interval_holds_the_true_difference_as_often_as_it_says(random) -> None:
    """100 data sets, 95 % intervals: fewer than 86 or so would happen in one run of 10,000."""
    held = 0
    for seed in range(100):
        one, other = random.normal(0.0, 1.0, 80), random.normal(0.5, 1.0, 80)
        found = claims.interval(one, other, lambda values: float(np.median(values)), resamples=300, seed=seed)
        held += found["low"] <= -0.5 <= found["high"]
    assert held >= 86


def test_grades_that_are_infinite_count_as_the_worst() -> None:
    graded = {"a": {"paper": {"grades": [1.0, None, 3.0]}}}
    assert table2.grades_of(graded, "paper")["a"].tolist() == [1.0, np.inf, 3.0]
    assert claims.best_tenth(np.array([np.inf, 2.0, 5.0])) == 2.0


def test_losses_are_compared_window_by_window(random) -> None:
    """A gap that is the same in every window is certain, however much windows differ."""
    windows = random.normal(0.5, 0.3, 64)
    runs = {"smc": {"nats": windows.tolist()}, "smt": {"nats": (windows + 0.01).tolist()}, "sd": {"nats": None}}
    (told,) = claims.losses(runs, table2.ROWS).values()
    assert told["low"] == pytest.approx(-0.01)
    assert told["high"] == pytest.approx(-0.01)


def test_a_curve_is_read_where_it_was_measured_and_nowhere_behind_its_end() -> None:
    curve = [[100, 5.0, 2.0], [200, 10.0, 1.0], [300, 29.0, 0.5]]
    assert [curves.at(curve, seconds) for seconds in (1, 8, 10, 20, 30, 50)] == [None, 1.0, 1.0, 1.0, 0.5, None]


def test_rows_of_both_sittings_are_kept_apart_and_what_is_graded_is_not_graded_again(
    tmp_path, monkeypatch, random
) -> None:
    first, equal, third = tmp_path / "first", tmp_path / "equal", tmp_path / "third"
    windows = random.normal(0.5, 0.3, 16)
    pieces = np.repeat(random.integers(50, 70, (3, 4, 32)), 4, axis=-1).astype(np.int16)
    for folder, gap in ((first, 0.3), (equal, 0.1), (third, 0.2)):
        folder.mkdir()
        for stem in ("smc", "smt") if folder == third else ("smc", "smc_keep"):
            arrays: dict[str, Any] = {"T": pieces, "T-128": pieces}
            np.savez(folder / f"{stem}.npz", **arrays)
            nats = (windows + gap * (stem != "smc")).tolist()
            options = {"seconds": 70.0, "batch_size": 16}
            record = {
                "arguments": {"options": options}, "nats": nats, "nats_kept": nats,
                "valid": {"training_seconds": 70.2, "parameters": 5},
                "log": [{"step": 9, "seconds": 70.0, "validation": 0.4}],
            }  # fmt: skip
            (folder / f"{stem}.json").write_text(json.dumps(record))
    before = tmp_path / "before.json"
    names = grade_all([Chorale.of(pieces[0]).score()], protocol="paper")[0].features
    row = {protocol: table2.figures([Grade(dict.fromkeys(names, 1.0), protocol, None)]) for protocol in PROTOCOLS}
    before.write_text(json.dumps({"rows": {"real Bach": row, "SMc T": row}}))
    written: dict[str, Any] = {}

    def write(name: str, payload: dict[str, Any]) -> Path:
        written.update(payload)
        return tmp_path / "result.json"

    monkeypatch.setattr(table2, "write_result", write)
    monkeypatch.setattr(table2, "copied_bars", lambda samples, data: {name: {} for name in samples})
    options = ["--samples", first, "--equal", equal, "--third", third, "--graded", before, "--most", "2"]
    monkeypatch.setattr("sys.argv", ["table2", *map(str, options)])
    table2.main()
    assert written["rows"]["SMc T"]["paper"]["samples"] == 1  # as it was
    assert written["rows"]["equal seconds: SMc T-128"]["paper"]["samples"] == 2
    assert set(written["rows"]) == {
        *("real Bach", *table2.samples_of(first), *table2.samples_of(equal, table2.MARK)),
        *table2.samples_of(third, table2.MARK_THIRD),
    }
    told = written["equal"]
    assert "redrawing trusted cells helps, 128 rounds" in told["claims"]["paper"]
    assert told["claims"]["paper"]["redrawing trusted cells helps, 128 rounds"]["difference"] == 0.0
    (loss,) = told["losses"].values()
    assert loss["difference"] == pytest.approx(-0.1)
    (loss,) = written["third"]["losses"].values()
    assert loss["difference"] == pytest.approx(-0.2)
    assert written["third"]["claims"]["paper"]["SMc-T beats SMt-T, 128 rounds"]["verdict"] == "not decided"
    (loss,) = written["losses"].values()
    assert loss["difference"] == pytest.approx(-0.3)
    assert told["trained"]["SMc, given kept"]["steps"] == 9
    assert (tmp_path / "result.png").exists()


def test_every_claim_of_the_second_sitting_is_of_rows_that_its_plans_draw() -> None:
    sizes = Namespace(seconds=105.0, least=45.0, seed=1, rounds=512, short=128, long=1024)
    listed = [*plans.equal(sizes, 412.0), *plans.late(sizes, 400.0)]
    drawn = {f"{table2.ROWS[task['model']]} {task['key']}" for _, task in listed if task["do"] == "sample"}
    for one, other, sign in claims.EQUAL.values():
        assert {one, other} <= drawn
        assert sign in (-1, 1)
    assert set(claims.BEST_EQUAL) <= drawn


def test_every_claim_of_the_third_sitting_is_of_rows_that_its_plan_draws() -> None:
    sizes = Namespace(rounds=512, short=128, long=1024, own=512)
    listed = plans.long(sizes, 400.0)
    drawn = {f"{table2.ROWS[task['model']]} {task['key']}" for _, task in listed if task["do"] == "sample"}
    for one, other, sign in claims.THIRD.values():
        assert {one, other} <= drawn
        assert sign in (-1, 1)
    assert set(claims.BEST_THIRD) <= drawn
