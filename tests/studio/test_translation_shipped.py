"""The translation page's API with models of the package, where they are: both ways, passes, kept words, bad input."""

from importlib import resources

import pytest

pytestmark = pytest.mark.skipif(
    not resources.files("anyfill").joinpath("models", "translation-de-en", "config.json").is_file(),
    reason="no model of translation is installed",
)


def test_the_models_that_ship_are_offered_both_ways(visitor):
    keys = [one["key"] for one in visitor.get("/api/models").json() if one["room"] == "translation"]
    assert keys[:2] == ["de-en", "en-de"]


def test_a_sentence_is_translated_with_its_passes_shown(visitor):
    found = visitor.done("/api/translation/translate", {"text": "Zwei Hunde spielen im Schnee.", "passes": 3, "n": 2})
    assert found["languages"] == ["de", "en"]
    assert "dogs" in found["found"][0]["text"]
    assert 2 <= len(found["history"]) <= 4  # what stood before the first pass, and after each
    assert len({one["text"] for one in found["found"]}) == len(found["found"])
    assert found["how"]["cli"].startswith("anyfill translate text")


def test_the_other_way_is_chosen_by_its_key(visitor):
    body = {"text": "Two dogs are playing in the snow.", "n": 1, "model": "en-de"}
    found = visitor.done("/api/translation/translate", body)
    assert found["languages"] == ["en", "de"]
    assert "Hunde" in found["found"][0]["text"]
    assert "--model en-de" in found["how"]["cli"]


def test_kept_words_and_templates_stay(visitor):
    sentence = "Ich wohne in Berlin."
    found = visitor.done("/api/translation/translate", {"text": sentence, "keep": ["Vienna@4"], "n": 1})
    assert found["found"][0]["text"].split()[3].startswith("Vienna")
    found = visitor.done("/api/translation/translate", {"text": sentence, "template": "I [1] in Berlin.", "n": 2})
    for one in found["found"]:
        assert one["text"].startswith("I ")
        assert one["text"].endswith(" in Berlin.")


@pytest.mark.parametrize("model", ["fr-en", "../../etc"])
def test_a_model_that_is_not_there_is_refused_in_a_sentence(visitor, model):
    answer = visitor.post("/api/translation/translate", {"text": "Hallo", "model": model})
    name, data = visitor.events(answer.json()["job"])[-1]
    assert name == "failed"
    assert "de-en, en-de" in str(data)
