"""The commands as a newcomer types them: they work on a file, and say one sentence about what is wrong."""

import json

import numpy as np
import pytest

from anyfill import policy
from anyfill.cli.main import run
from anyfill.policy import recipes, settings, simulator
from tests.policy.conftest import noise

SMALL = ["--steps", "4", "--width", "16", "--depth", "1", "--components", "2", "--batch", "8", "--device", "cpu"]
TRAINED = SMALL[:6] + SMALL[8:]
"""The same without Gaussians, which behaviour cloning by regression has none of."""
SAID = {"bc": TRAINED, "bc-dropout": TRAINED, "neighbour": SMALL[-2:]}
METHODS = ["joint", "one-pass", "mac", "bc", "bc-dropout", "bc-mixture", "neighbour"]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_is_saved_and_answers(method, kitchen_file, tmp_path, capsys):
    folder = tmp_path / "model"
    words = ["--method", method, *SAID.get(method, SMALL)]
    assert run(["policy", "train", str(kitchen_file), "-o", str(folder), *words]) == 0
    assert policy.load(folder).method == method
    capsys.readouterr()
    assert run(["policy", "ask", str(folder), str(kitchen_file), "--step", "2", "--seed", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["answers"][0])[:2] == ["motor 1", "motor 2"]
    assert np.isfinite(list(found["answers"][0].values())).all()


def test_the_options_of_the_command_name_every_method_there_is():
    assert list(settings.METHODS) == list(recipes.METHODS) == METHODS


def test_a_table_with_groups_is_learnt_from_and_a_motor_that_is_held_stays_out(table, tmp_path, capsys):
    path, groups = map(str, table)
    folder = str(tmp_path / "model")
    assert run(["policy", "train", path, "--groups", groups, "-o", folder, *SMALL]) == 0
    capsys.readouterr()
    told = ["--groups", groups, "--json", "--question"]
    assert run(["policy", "ask", folder, path, *told, "forward", "--hold", "push=0.25"]) == 0
    assert list(json.loads(capsys.readouterr().out)["answers"][0]) == ["next y"]
    assert run(["policy", "ask", folder, path, *told, "task"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"][0]["room"] in ("hall", "kitchen")
    assert run(["policy", "ask", folder, path, *told, "inverse", "--score"]) == 0
    assert np.isfinite(json.loads(capsys.readouterr().out)["nats_per_variable"])


def test_whole_trajectories_are_completed_from_a_part(tmp_path, capsys):
    np.savez(tmp_path / "pos.npz", pos=np.random.default_rng(0).normal(size=(6, 20, 2)).cumsum(1))
    (tmp_path / "groups.json").write_text('{"observation": ["pos"]}')
    told = ["--groups", str(tmp_path / "groups.json")]
    source, folder = str(tmp_path / "pos.npz"), str(tmp_path / "model")
    assert run(["policy", "train", source, "-o", folder, *told, "--points", "10", *SMALL]) == 0
    capsys.readouterr()
    more = ["--question", "complete", "--show", "0%-30%", "--seed", "0", "--json"]
    assert run(["policy", "ask", folder, source, *told, *more]) == 0
    assert len(json.loads(capsys.readouterr().out)["answers"][0]) == 7 * 2


def test_a_resumed_run_goes_on_with_its_settings(kitchen_file, tmp_path, capsys):
    folder = str(tmp_path / "model")
    assert run(["policy", "train", str(kitchen_file), "-o", folder, "--history", "2", *SMALL]) == 0
    assert run(["policy", "train", str(kitchen_file), "-o", folder, *SMALL]) == 2
    assert run(["policy", "train", str(kitchen_file), "-o", folder, "--resume", "--history", "3"]) == 2
    assert run(["policy", "train", str(kitchen_file), "-o", folder, "--resume", "--device", "cpu"]) == 0
    assert policy.load(folder).layout.history == 2


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place = tmp_path_factory.mktemp("trained")
    np.savez(place / "demos.npz", **noise())
    small = {"steps": 2, "width": 16, "depth": 1, "batch": 8, "device": "cpu", "method": "bc"}
    policy.train(place / "demos.npz", place / "model", **small)
    return place / "model"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ask", "MODEL", "DEMOS", "--question", "forward"], "bc answers for actions only, got 'forward'"),
        (["ask", "MODEL", "DEMOS", "--step", "99"], "--step: expected a whole number from 0 to 5, got 99"),
        (["ask", "MODEL", "DEMOS", "--trajectory", "9"], "--trajectory: expected a whole number from 0 to 2"),
        (["ask", "MODEL", "DEMOS", "--missing", "nose"], "observation: expected one of joint 1"),
        (["ask", "MODEL", "DEMOS", "--hold", "motor 1"], "--hold: expected NAME=VALUE"),
        (["ask", "MODEL", "DEMOS", "--show", "0%-30%"], "--show: expected FROM%-TO% of a whole trajectory"),
        (["ask", "MODEL", "DEMOS", "--goal", "sofa"], "--goal: expected bottom burner, top burner"),
        (["ask", "MODEL", "DEMOS", "-n", "3"], "--temperature and -n: expected none, as bc has one answer"),
        (["ask", "MODEL", "DEMOS", "--score"], "nats: expected a method with distributions, got bc"),
        (["ask", "DEMOS", "DEMOS"], "MODEL: expected the folder of a model"),
        (["train", "DEMOS", "-o", "OUT", "--method", "magic"], "--method: expected 'joint', 'one-pass'"),
        (["train", "DEMOS", "-o", "OUT", "--method", "bc", "--points", "4"], "--method: expected joint, one-pass or"),
        (["rollout", "MODEL", "--env", "Ant-v5"], "--env: expected FrankaKitchen-v1, got 'Ant-v5'"),
        (["ask", "MODEL", "DEMOS", "--score", "--step", "0"], "--step: expected none with --score"),
        (["ask", "MODEL", "DEMOS", "--score", "--goal", "kettle"], "--goal: expected none with --score"),
        (["ask", "MODEL", "DEMOS", "--score", "-n", "1"], "--n: expected none with --score"),
        (["ask", "MODEL", "DEMOS", "--score", "--seed", "0"], "--seed: expected none with --score"),
        (["train", "DEMOS", "-o", "OUT", "--method", "bc", "--components", "4"], "--components: expected none with"),
        (["train", "DEMOS", "-o", "OUT", "--method", "neighbour", "--steps", "4"], "--steps: expected none with"),
        (
            ["train", "DEMOS", "-o", "OUT", "--method", "one-pass", "--network", "plain"],
            "--network: expected none with",
        ),
        (["train", "DEMOS", "-o", "OUT", "--points", "4", "--history", "2"], "--history: expected none with --points"),
        (["train", "DEMOS", "-o", "OUT", "--epochs", "1", "--steps", "2"], "--steps: expected none with --epochs"),
        (["ask", "MODEL", "DEMOS", "--mode", "--temperature", "1"], "--temperature: expected none with --mode"),
        (["rollout", "MODEL", "--untold"], "--untold: expected --lose or --motor-off"),
        (["report", "MODEL"], "expected a folder of anyfill policy rollout"),
    ],
)
def test_what_cannot_be_done_gets_one_sentence(words, sentence, trained, kitchen_file, tmp_path, capsys):
    named = {"MODEL": str(trained), "DEMOS": str(kitchen_file), "OUT": str(tmp_path / "out")}
    assert run(["policy", *(named.get(word, word) for word in words)]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("anyfill: ")
    assert sentence in said


def test_without_the_simulator_the_command_names_what_to_install(trained, monkeypatch, capsys):
    def absent(name: str):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(simulator.importlib, "import_module", absent)
    assert run(["policy", "rollout", str(trained)]) == 2
    assert 'pip install "anyfill[policy]"' in capsys.readouterr().err
