"""Translation through the studio, by a toy model: answers are those of Python, locked words stay, blanks are filled."""

import pytest

pytest.importorskip("sentencepiece")

from anyfill import translation
from anyfill.studio.models import entries_of

PAIRS = [
    ("Ich wohne in Berlin.", "I live in Berlin."),
    ("Ich wohne in Wien.", "I live in Vienna."),
    ("Guten Morgen", "Good morning"),
    ("Guten Abend", "Good evening"),
    ("Das Haus ist rot.", "The house is red."),
    ("Das Haus ist gross und der Hund ist klein.", "The house is big and the dog is small."),
    ("Der Hund schläft.", "The dog is asleep."),
    ("Wo ist der Bahnhof?", "Where is the station?"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that has seen eight pairs a few times."""
    place = tmp_path_factory.mktemp("translation")
    lines = "".join(f"{german}\t{english}\n" for german, english in PAIRS)
    (place / "pairs.tsv").write_text(lines, encoding="utf-8")
    translation.train(
        place / "pairs.tsv",
        place / "de-en",
        source="de",
        target="en",
        recipe="cmlm",
        size="toy",
        vocabulary_size=340,
        length=24,
        batch=8,
        steps=30,
        valid_share=0.0,
        device="cpu",
    )
    return place / "de-en"


@pytest.fixture(scope="module")
def model(folder):
    return translation.load(folder)


@pytest.fixture(scope="module", autouse=True)
def known(app, visitor, folder):
    """The studio knows the model for as long as these tests last."""
    models = app.state.studio.models
    before, models.entries = models.entries, (*models.entries, *entries_of(folder))
    yield
    models.entries = before


KEY = {"model": "own-de-en"}


def test_a_page_learns_the_languages_and_a_sentence_to_begin_with(visitor):
    found = visitor.get("/api/translation/about", params=KEY).json()
    assert found["languages"] == ["de", "en"]
    assert "Kinder" in found["example"]


def test_a_translation_is_that_of_python_with_its_passes(visitor, model):
    found = visitor.done("/api/translation/translate", {"text": "Der Hund ist klein.", "passes": 3, **KEY})
    own = model.translate("Der Hund ist klein.", passes=3, history=True)
    assert found["found"][0]["text"] == own.text
    assert found["history"] == [list(one) for one in own.history]
    assert set(found["history"][0]) == {"_"}  # before the first pass all is blank
    assert 2 <= len(found["history"]) <= 4
    assert found["how"]["passes"] >= 1
    assert "translate('Der Hund ist klein.', passes=3" in found["how"]["python"]
    others = [one["text"] for one in found["found"][1:]]
    assert len(set(others)) == len(others)
    assert own.text not in others


def test_locked_words_are_in_every_translation(visitor):
    body = {"text": "Der Hund ist klein.", "keep": ["station"], **KEY}
    found = visitor.done("/api/translation/translate", body)
    assert all("station" in one["text"] for one in found["found"])
    assert "--keep station" in found["how"]["cli"]


def test_a_word_that_is_locked_at_its_place_stays_there(visitor):
    body = {"text": "Der Hund ist klein.", "keep": ["station@2"], **KEY}
    found = visitor.done("/api/translation/translate", body)
    assert found["found"][0]["text"].split()[1] == "station"


def test_only_blanks_are_written_and_the_words_around_them_stay(visitor, model):
    body = {"text": "Das Haus ist rot.", "template": "The ___ is red.", "n": 5, **KEY}
    found = visitor.done("/api/translation/translate", body)["found"]
    own = model.fill("Das Haus ist rot.", "The ___ is red.", 5)
    assert [one["text"] for one in found] == [one.text for one in own]
    assert found
    for one in found:
        assert one["text"].startswith("The ")
        assert one["text"].endswith("is red.")


def test_a_long_text_is_translated_without_others_beside_it(visitor, model):
    text = "Das Haus ist gross und der Hund ist klein. " * 4
    found = visitor.done("/api/translation/translate", {"text": text, **KEY})
    assert len(model.segments(text)) > 1
    assert [one["text"] for one in found["found"]] == [model.translate(text).text]


@pytest.mark.parametrize(
    "body",
    [
        {"text": ""},
        {"text": "Guten Morgen", "template": "Good morning"},
        {"text": "Guten Morgen", "keep": ["word " * 40]},
        {"text": "Guten Morgen", "model": "own-none"},
    ],
    ids=["nothing", "no blank", "too many words", "no model"],
)
def test_what_cannot_be_translated_is_said_in_a_sentence(visitor, body):
    answer = visitor.post("/api/translation/translate", {**KEY, **body})
    if answer.status_code == 202:
        name, said = visitor.events(answer.json()["job"])[-1]
        assert name == "failed"
        assert "expected" in said["detail"]
        assert "mistake" not in said["detail"]
    else:
        assert answer.status_code == 422
