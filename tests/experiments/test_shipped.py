"""The script that makes the shipped models of pictures, on a few pictures, from training to a folder that loads."""

import argparse
import gzip
import json
import struct

import numpy as np
import pytest
import torch

from anyfill.images.model import load
from anyfill.training import load_model
from benchmarks import common
from experiments.sfarm import own_pictures, shipped


@pytest.mark.parametrize("name", ["middle", "frame", "top", "bottom", "left", "right", "everything"])
def test_questions_ask_half_a_quarter_or_all(name) -> None:
    share = {"middle": 0.25, "frame": 0.75, "everything": 1.0}.get(name, 0.5)
    assert shipped.asked_in(name).double().mean() == share


def test_landscapes_differ_and_are_the_same_again(tmp_path) -> None:
    for folder in ("a", "b"):
        own_pictures.make(tmp_path / folder, 3)
    content = [[path.read_bytes() for path in sorted((tmp_path / folder).iterdir())] for folder in ("a", "b")]
    assert content[0] == content[1]
    assert len(set(content[0])) == 3


@pytest.mark.slow
@pytest.mark.parametrize("model", ["digits", "fashion"])
def test_from_training_to_a_model_that_loads(model, tmp_path, monkeypatch) -> None:
    data = tmp_path / "data" / shipped.FOLDERS[model]
    data.mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (24, 28, 28)).astype(np.uint8)
    for part in ("train", "t10k"):
        content = b"\0\0\x08\x03" + struct.pack(">3I", *pixels.shape) + pixels.tobytes()
        (data / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
    monkeypatch.setenv("ANYFILL_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(shipped, "HELD_OUT", 8)
    monkeypatch.setattr(shipped, "MODELS", tmp_path / "models")
    settings = {"seconds": 1.0, "steps": 1000, "batch": 4, "rate": 0.01, "seed": 0, "every": 1}
    settings |= {"width": 32, "depth": 1, "dropout": 0.0, "start": None, "alone": None, "share": 0.25, "note": "two"}
    settings |= {"models": tmp_path / "models"}
    arguments = argparse.Namespace(model=model, out=tmp_path / "run", **settings)
    threads = torch.get_num_threads()
    shipped.train(arguments)
    shipped.score(arguments)
    shipped.ship(arguments)
    second = argparse.Namespace(**{**vars(arguments), "out": tmp_path / "second", "start": "", "alone": 0.5})
    shipped.train(second)
    shipped.mix(second)
    shipped.score(second)
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    (tmp_path / "results" / "sfarm" / "logs").mkdir(parents=True)
    shipped.record(second)
    torch.set_num_threads(threads)
    ends = [load_model(one / "model").state_dict() for one in (arguments.out, second.out)]
    for name, one in load_model(second.out / "mixed").state_dict().items():
        begun, ended = (end[name].float() for end in ends)
        torch.testing.assert_close(one.float(), begun.half() + 0.25 * (ended - begun.half()), rtol=1e-5, atol=1e-6)
    told = json.loads((tmp_path / "results" / "sfarm" / f"shipped_{model}.json").read_text())
    assert (told["note"], told["train"]["alone_share"], told["score"]["mixed"]) == ("two", 0.5, 0.25)
    assert (tmp_path / "results" / "sfarm" / "logs" / f"shipped_{model}.jsonl").read_text()
    scored = json.loads((tmp_path / "run" / "score.json").read_text())
    assert scored["rows"] == 24
    assert scored["counting"]["nats"] > 0
    assert load(tmp_path / "models" / model).about.levels == (2 if model == "digits" else 256)
