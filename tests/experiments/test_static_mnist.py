"""The long run on static MNIST: trained until a time of the day, scored bit by bit, small on made-up pictures."""

import json
import sys
import time

import numpy as np
import pytest

from anyfill.training import load_model
from experiments.sfarm import static_mnist

SMALL = ("--width", "64", "--depth", "1", "--batch", "4", "--rows", "8")


@pytest.fixture
def out(tmp_path, monkeypatch):
    """A run's folder, beside a file of random pictures."""
    folder = tmp_path / "data" / "mnist_static_binarized"
    folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    parts = {part: np.packbits(draw.random((16, 784)) < 0.2, axis=1) for part in ("train", "valid", "test")}
    np.savez(folder / "binarized_mnist_packed.npz", **parts)
    monkeypatch.setenv("ANYFILL_DATA", str(tmp_path / "data"))
    return tmp_path / "run"


def run(monkeypatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["static_mnist", *words])
    static_mnist.main()


def test_it_trains_until_a_time_and_leaves_weights_of_16_bits(out, monkeypatch) -> None:
    begun = time.time()
    run(monkeypatch, "train", "--out", str(out), *SMALL, "--until", str(begun + 4), "--validate-every", "5")
    about = json.loads((out / "train.json").read_text())
    assert about["steps"] >= 1
    assert about["options"]["seconds"] <= 4
    assert time.time() - begun < 60
    whole, half = load_model(out / "model"), load_model(out / "model_16")
    for one, other in zip(whole.parameters(), half.parameters()):
        assert np.allclose(one.detach().numpy(), other.detach().float().numpy(), rtol=2**-7, atol=1e-6)


def test_scores_say_what_time_allowed_for(out, monkeypatch) -> None:
    run(monkeypatch, "train", "--out", str(out), *SMALL, "--steps", "2", "--validate-every", "2")
    run(monkeypatch, "score", "--out", str(out), "--rows", "4", "--question-rows", "2")
    whole = json.loads((out / "score.json").read_text())
    assert len(whole["scans"]) == 8
    assert len(whole["questions"]) == 12
    assert whole["rows_of_questions"] == 2
    worst, best = (pick(scan["nats"] for scan in whole["scans"].values()) for pick in (max, min))
    assert best - np.log(8) <= whole["mixture_of_8_scans"]["nats"] <= worst + 1e-9
    (out / "score.json").unlink()
    seconds = iter([0.0, 0.0, *[1e12] * 100])  # time is up after two scans
    monkeypatch.setattr(static_mnist.time, "time", lambda: next(seconds))
    run(monkeypatch, "score", "--out", str(out), "--rows", "4", "--until", "1e9")
    part = json.loads((out / "score.json").read_text())
    assert part["scans"] == {key: whole["scans"][key] for key in ("0", "1")}
    assert "mixture_of_8_scans" not in part
    assert not part["questions"]


def test_compiling_trains_nothing_that_is_kept(out, monkeypatch) -> None:
    run(monkeypatch, "compile", "--out", str(out), *SMALL)
    assert not (out / "model").exists()
    assert not (out / "train.json").exists()
