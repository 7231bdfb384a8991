"""All of Table 1: equal seconds, one order, others rest, no test leaks, corpora are turned, methods ordered."""

import json
import tarfile
import threading
import time

import pytest

pytest.importorskip("sentencepiece")
pytest.importorskip("sacrebleu")

from anyfill.translation.corpus import Corpus, encode_pairs
from anyfill.translation.vocabulary import learn
from experiments.gmlm import table1_all as whole
from experiments.gmlm import table1_all_data as data
from experiments.gmlm.sitting import sentences
from experiments.gmlm.table1_all_scores import name_of, ordered, system_at

PAIRS = [(f"the dog number {n} runs", f"der Hund Nummer {n} rennt") for n in range(30)]


def test_methods_have_equal_seconds_and_the_one_pass_model_what_the_teacher_had():
    plans = [whole.steps_of(way, 30.0, 7.0) for way in data.WAYS]
    assert [step.seconds for step in plans[0]] == [step.seconds for step in plans[1]]
    steps = plans[0]
    assert {step.seconds for step in steps[1:-1]} == {7.0}
    assert steps[0].seconds == steps[-1].seconds == 30.0
    assert {step.name for step in steps} >= {f"{one}-{kind}" for one in whole.PARALLEL for kind in ("raw", "distilled")}
    assert {step.begin for step in steps[1:-1]} == {steps[0].name}
    assert len({step.dropout for step in steps}) == 1
    assert {step.recipe for step in steps} == set(whole.EVERYONE)


def test_processes_that_share_the_recipes_train_in_the_one_order_of_all_steps(tmp_path, monkeypatch):
    trained: list[str] = []

    def train(self, steps):
        time.sleep(0.01)
        trained.extend(step.name for step in steps)

    monkeypatch.setattr(whole.Methods, "run", train)
    steps = whole.steps_of("en-de", 1.0, 1.0)
    shares = [("autoregressive",), ("padir", "one_pass"), ("cmlm", "disco", "sundae")]
    studies = [whole.Whole(tmp_path, tmp_path, time.time() + 60, True, "cpu", recipes=one) for one in shares]
    threads = [threading.Thread(target=study.run, args=(steps,)) for study in studies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trained == [step.name for step in steps]


def test_others_are_told_to_rest_while_methods_are_compared_and_only_then(tmp_path, monkeypatch):
    seen: dict[str, bool] = {}
    monkeypatch.setattr(whole, "SETTLING", 0.0)
    monkeypatch.setattr(whole.Methods, "train", lambda self, step, _: (seen.update({step.name: quiet.exists()}), {}))
    quiet = tmp_path / "quiet"
    study = whole.Whole(tmp_path, tmp_path, 0.0, True, "cpu", quiet=quiet)
    steps = whole.steps_of("en-de", 1.0, 1.0)
    for step in [*steps, steps[0]]:
        study.train(step, 1.0)
    assert {name for name, there in seen.items() if not there} == {whole.TEACHER, whole.ONE_PASS}
    assert len(seen) == len(steps)


def test_no_pair_stays_of_which_a_side_is_tested_whatever_its_case_and_marks():
    tested = {data.key_of(side) for side in ("The dog runs.", "Der Hund rennt.")}
    kept = ("A dog sits", "Ein Hund sitzt")
    pairs = [kept, ("the DOG runs!", "Er rennt"), ("It runs", "der hund rennt")]
    assert data.without(pairs, tested) == [kept]
    tests, valid = data.split(PAIRS, lambda pair: "7" not in pair[0], 4, 3, 0.9)
    assert (len(tests), len(valid)) == (4, 3)
    assert not {pair[0] for pair in tests} & {pair[0] for pair in valid}
    assert not any("7" in pair[0] for pair in (*tests, *valid))


def test_the_other_direction_has_the_same_pairs_turned_and_short_ones_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "SHORT", 26)
    joint = learn((side for pair in PAIRS for side in pair), 300)
    (tmp_path / "vocabulary.model").write_bytes(joint.model)
    longer = [("dog runs " * 7, "Hund"), *PAIRS]
    for name in ("all", "study"):
        folder = tmp_path / f"corpus-{name}-raw-en-de"
        for _ in encode_pairs(longer, folder, joint, length=200, languages=("en", "de"), valid_share=0.0):
            pass
    with tarfile.open(tmp_path / data.ARCHIVE, "w:xz") as tar:
        for path in (tmp_path / "vocabulary.model", *tmp_path.glob("corpus-*")):
            tar.add(path, path.name)
    found = {}
    for way in data.WAYS:
        work = tmp_path / way
        data.ready(tmp_path / data.ARCHIVE, work, way)
        for name in ("all", "study", "short"):
            corpus = Corpus.open(work / f"corpus-{name}-raw-{way}", joint)
            found[way, name] = [sentences(corpus.side("train", side)) for side in ("source", "target")]
    for name in ("all", "study", "short"):
        assert found["en-de", name] == found["de-en", name][::-1]
    assert found["en-de", "all"][0][1:] == [tuple(joint.encode(pair[0])) for pair in PAIRS]
    assert len(found["en-de", "short"][0]) < len(found["en-de", "all"][0])
    assert max(len(one) for side in found["en-de", "short"] for one in side) <= 26
    about = json.loads((tmp_path / "de-en" / "corpus-all-raw-de-en" / "about.json").read_text())
    assert about["languages"] == ["de", "en"]


def test_methods_are_ordered_by_bleu_with_the_distance_to_the_next():
    references = [pair[1] for pair in PAIRS[:12]]
    good, bad = system_at("cmlm", "raw", 4), system_at("padir", "raw", 4)
    made = {good: references, bad: ["der Hund rennt schnell"] * len(references)}
    found = ordered("multi30k", made, {("multi30k", good): 100.0, ("multi30k", bad): 1.0}, references)
    assert list(found) == ["multi30k raw T4"]
    first, second = found["multi30k raw T4"]
    assert (first["system"], second["system"]) == (good, bad)
    assert first["above_the_next"]["low"] > 0
    assert name_of("cmlm-raw", {"passes": 4, "lengths": 5, "beam": 4}) == good
    assert name_of(whole.TEACHER, {"beam": 5}) == system_at("autoregressive", "raw", 10)
