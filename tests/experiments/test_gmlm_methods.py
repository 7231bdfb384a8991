"""Table 1 in the small: what is compared, sentences longer than a model's rows, a run from training to the table."""

import json

import pytest

pytest.importorskip("sentencepiece")

from anyfill.questions import Factorization
from anyfill.translation.corpus import encode_pairs
from anyfill.translation.decode import Decoder
from anyfill.translation.hypotheses import Decoding
from anyfill.translation.model import Translator
from anyfill.translation.recipes import RECIPES, make_model
from anyfill.translation.vocabulary import learn
from experiments.gmlm import methods, methods_cpu
from experiments.gmlm.ablation import LENGTH
from experiments.gmlm.methods_scores import ordered
from experiments.gmlm.schedule import methods as schedule
from experiments.gmlm.sitting import Sitting

WORDS = ["a", "dog", "runs", "in", "the", "snow", "and", "two", "men", "look", "at", "it"]
PAIRS = [(" ".join(WORDS[: 2 + n % 9]), " ".join(WORDS[n % 7 :])) for n in range(40)]
LAWS = {"autoregressive": Factorization.PREFIX, "deep_shallow": Factorization.PREFIX, "one_pass": Factorization.DIRECT}


@pytest.fixture(scope="module")
def vocabulary():
    return learn((side for pair in PAIRS for side in pair), 300)


@pytest.fixture
def work(tmp_path, vocabulary):
    """A folder as ``ablation.prepare`` makes it, with one validation and one test sentence a piece too long."""
    (tmp_path / "vocabulary.model").write_bytes(vocabulary.model)
    for _ in encode_pairs(
        PAIRS,
        tmp_path / "corpus-multi30k-raw-en-de",
        vocabulary,
        length=LENGTH,
        languages=("en", "de"),
        valid_share=0.0,
    ):
        pass
    one = next(word for word in WORDS if len(vocabulary.encode(word)) == 1)
    longer = " ".join([one] * (LENGTH + 1))
    assert len(vocabulary.encode(longer)) == LENGTH + 1
    tests = [[longer, "a dog"], *([a, b] for a, b in PAIRS[:7])]
    (tmp_path / "tests-en-de.json").write_text(json.dumps({"multi30k": tests, "valid": tests}))
    return tmp_path


def translator(recipe, vocabulary):
    model = make_model(recipe, vocabulary.size, LENGTH, "toy", dropout=0.0).eval()
    model.factorizations = {LAWS.get(recipe, Factorization.ANY_ORDER)}
    return Translator(Decoder(model, recipe, vocabulary), ("en", "de"), recipe)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_sentence_one_piece_longer_than_the_rows_is_validated_and_translated(recipe, work, vocabulary):
    study = methods.Methods(work, work / "out", 1e12, True, "cpu")
    model = translator(recipe, vocabulary)
    assert model.decoder.length == LENGTH
    assert study.validated(model, "en-de")["best"] >= 0.0
    step = next(one for one in schedule("en-de", 1.0, 1.0) if one.recipe in (recipe, "autoregressive"))
    found = study.ask(methods.replace(step, recipe=recipe, beams=(1,), passes=(1,), lengths=(1,)), model, 1.0)
    assert all(len(one["texts"]) == 8 for one in found)
    if recipe != "one_pass":
        return
    # Uncut, it would run into the other half of the row: it is refused, not mistranslated.
    with pytest.raises(ValueError, match=f"at most {LENGTH} pieces"):
        model.decoder.decode([[20] * (LENGTH + 1)], Decoding())


def test_all_methods_have_the_same_seconds_the_same_start_and_the_same_size():
    first, *steps, one_pass = schedule("en-de", 60.0, 12.0)
    assert first.distil
    assert first.keep
    assert one_pass.seconds == 0.0
    assert one_pass.keep
    for name in ("seconds", "rate", "batch", "dropout", "begin", "size", "warmup", "precision", "seed"):
        assert len({getattr(step, name) for step in steps}) == 1, name
    assert {(step.recipe, step.data) for step in steps} == {
        *((recipe, data) for recipe in ("padir", "cmlm", "disco", "sundae") for data in ("raw", "distilled")),
        ("autoregressive", "distilled"),
    }
    assert schedule("en-de", 60.0, 12.0, later=5.0)[-1].begin == one_pass.name


def test_what_shall_learn_from_distilled_pairs_learns_from_no_others(work):
    study = methods.Methods(work, work / "out", 1e12, True, "cpu")
    step = next(one for one in schedule("en-de", 1.0, 1.0) if one.data == "distilled")
    with pytest.raises(ValueError, match="distilled pairs"):
        study.train(step, 1.0)


def test_methods_are_ordered_by_bleu_each_with_its_distance_to_the_next():
    references = [f"ein mann läuft {i} mal ." for i in range(8)]
    half = [one.replace("mann", "hund") if i % 2 else one for i, one in enumerate(references)]
    texts = {"cmlm-raw T4 L5": references, "padir-raw T4 L5": half, "published beam 5": references[:1] * 8}
    rows = {name: {"bleu": bleu} for name, bleu in zip(texts, (100.0, 60.0, 30.0))}
    found = ordered(rows, texts, references)["raw T4"]
    assert [one["system"] for one in found] == list(texts)
    assert found[0]["above_the_next"]["low"] > 0
    assert "above_the_next" not in found[-1]


def test_a_run_from_training_to_the_table(work, monkeypatch, capsys):
    """Three of its steps in the small: trained first, asked later, from what the first process left."""
    chosen = ("published", "cmlm-distilled", "one-pass", "one-pass-on")
    steps = [one for one in schedule("en-de", 1.0, 1.0, 1.0) if one.name in chosen]
    monkeypatch.setattr(methods, "methods", lambda *_: [methods.replace(one, updates=2) for one in steps])
    asked = []
    own = Sitting.ask
    monkeypatch.setattr(Sitting, "ask", lambda self, step, *some: asked.append(step.name) or own(self, step, *some))
    out = work / "out"
    methods.main(["train", "--work", str(work), "--out", str(out), "--trial", "--until", "1e12"])
    assert asked == []
    methods.main(["ask", "--work", str(work), "--out", str(out), "--trial", "--until", "1e12"])
    assert asked == list(chosen)
    methods.main(["ask", "--work", str(work), "--out", str(out), "--trial", "--until", "1e12"])
    assert asked == list(chosen)  # nobody is asked twice
    assert sorted(path.name for path in out.iterdir()) == ["results.tar.gz", "weights.tar.gz"]
    results = str(out / "results.tar.gz")
    methods.main(["score", results, "--work", str(work), "--trial", "--json", str(work / "t.json")])
    found = json.loads((work / "t.json").read_text())
    assert {row["step"] for row in found["systems"]} == set(chosen)
    for row in found["systems"]:
        assert {"bleu_low", "chrf", "stutter", "length_error", "distinct"} <= set(row)
    assert found["told"]["one-pass"]["speculative"]["same"] == 1.0
    assert found["told"]["one-pass"]["likelihood"]["too_long"] == 1
    assert found["told"]["cmlm-distilled"]["holes"]["sentences"] > 0
    assert found["training"]["cmlm-distilled"]["begins_from"] == "published-en-de"
    assert "| cmlm-distilled | 2 |" in capsys.readouterr().out
    curve = (work / "results" / "published.en-de.jsonl").read_text().splitlines()
    assert json.loads(curve[-1])["step"] == 2


def test_the_one_pass_model_without_a_gpu_learns_from_short_pairs_and_has_no_place_in_the_order(work):
    """Scored beside others; what a later file says of the teacher is added to what an earlier one said."""
    out = work / "out"
    methods_cpu.main(["--work", str(work), "--out", str(out), "--seconds", "1", "--trial"])
    short = json.loads((work / "corpus-short-raw-en-de" / "about.json").read_text())
    assert 0 < short["pairs"]["train"] <= len(PAIRS)
    earlier = work / "earlier"
    earlier.mkdir()
    teacher = {"step": "published", "recipe": "autoregressive", "training": {"steps": 7}}
    (earlier / "published.en-de.json").write_text(json.dumps(teacher))
    later = work / "later"
    later.mkdir()
    told = {"nats": [-1.0], "nats_per_piece": 0.5, "sentences": 1}
    (later / "published.en-de.json").write_text(
        json.dumps({"step": "published", "recipe": "autoregressive", "likelihood": told})
    )
    paths = [str(earlier), str(later), str(out / "results.tar.gz")]
    methods.main(["score", *paths, "--work", str(work), "--trial", "--json", str(work / "t.json")])
    found = json.loads((work / "t.json").read_text())
    assert found["training"]["published"]["steps"] == 7
    assert found["told"]["published"]["likelihood"]["nats_per_piece"] == 0.5
    assert [row["system"] for row in found["systems"]] == ["one-pass-cpu"]
    assert found["trained_on"] == {"published": "one NVIDIA H200", "one-pass-cpu": "one thread of a CPU"}
    assert found["told"]["one-pass-cpu"]["speculative"]["same"] == 1.0
    assert not any(found["order"].values())
