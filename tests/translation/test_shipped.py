"""Two models as part of the package, where they are: small, and able to say good morning."""

from importlib import resources

import pytest

from anyfill import translation
from anyfill.translation.placeholders import placeholders

WAYS = ("de-en", "en-de")
pytestmark = pytest.mark.skipif(
    not resources.files("anyfill").joinpath("models", "translation-de-en", "config.json").is_file(),
    reason="no model of translation is installed",
)


@pytest.fixture(scope="module")
def shipped():
    return {way: translation.load(way) for way in WAYS}


@pytest.mark.parametrize("way", [*WAYS, *(f"one-pass-{way}" for way in WAYS)])
def test_a_shipped_model_has_a_card_and_is_below_15_mb(way):
    folder = resources.files("anyfill").joinpath("models", f"translation-{way}")
    sizes = {one.name: len(one.read_bytes()) for one in folder.iterdir()}
    assert sum(sizes.values()) <= 15_000_000
    assert folder.joinpath("README.md").read_text(encoding="utf-8").startswith("# Model card")


def test_the_language_chooses_the_model():
    assert translation.load(to="en").languages == ("de", "en")
    assert translation.load(to="de").languages == ("en", "de")
    with pytest.raises(ValueError, match="de-en, en-de"):
        translation.load(to="fr")


def test_they_translate_what_they_were_trained_for(shipped):
    assert shipped["de-en"].translate("Guten Morgen", passes=4).text.startswith("Good morning")
    assert "dogs" in shipped["de-en"].translate("Zwei Hunde spielen im Schnee.").text
    assert "Hunde" in shipped["en-de"].translate("Two dogs are playing in the snow.").text


def test_a_text_that_no_mark_closes_is_not_said_twice(shipped):
    assert shipped["de-en"].translate("Guten Morgen").text == "Good morning"
    assert shipped["de-en"].alternatives("Guten Morgen", 3)[0].text == "Good morning"
    assert shipped["en-de"].translate("A dog in the snow").text == "Ein Hund im Schnee"


def test_typographic_marks_read_as_plain_ones(shipped):
    german, english = shipped["de-en"].translate, shipped["en-de"].translate
    assert english("“Two dogs are playing.”").text == "“Zwei Hunde spielen.”"
    assert english("Open the door…").text == english("Open the door...").text
    assert english("A ﬁre in the oﬃce.").text == english("A fire in the office.").text
    assert german("„Zwei Hunde spielen.“").text == "„Two dogs are playing.“"
    assert german("Mach die Tür auf…").text == german("Mach die Tür auf...").text


def test_they_know_which_language_they_read(shipped):
    assert shipped["de-en"].translate("This is an English sentence about dogs.", passes=1).remarks
    assert not shipped["de-en"].translate("Das ist ein deutscher Satz über Hunde.", passes=1).remarks


STRANGE = (
    "Le chat noir dort sur le canapé de la maison.",
    "Deux jeunes garçons jouent au football dans le jardin.",
    "Une femme vêtue de rouge traverse la rue avec son chien.",
    "El principio de la sabiduría es el temor de Dios.",
    "Los niños juegan en la playa con una pelota roja.",
    "Il ragazzo legge un libro seduto sulla panchina del parco.",
    "Vi har bott i samma hus sedan vi flyttade hit.",
)
KNOWN = {
    "de-en": (
        "Zwei Hunde spielen im Schnee vor dem Haus.",
        "Ich habe gestern meine Mutter im Krankenhaus besucht.",
        "Die Regierung hat am Dienstag ein neues Gesetz beschlossen.",
        "Karl-Heinz Rummenigge wohnt jetzt in der Nähe von Lippstadt.",
        "Wir müssen das Fenster schließen, weil es regnet.",
    ),
    "en-de": (
        "Two dogs are playing in the snow in front of the house.",
        "I visited my mother in the hospital yesterday.",
        "The government passed a new law on Tuesday.",
        "Christopher Hitchens used to live close to Portsmouth.",
        "We have to close the window because it is raining.",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_third_language_is_remarked_upon_if_there_are_five_words_of_it(shipped, way):
    options = {"passes": 1, "lengths": 1}
    strange = [any("hardly" in said for said in one.remarks) for one in shipped[way].translate(STRANGE, **options)]
    assert sum(strange) >= len(STRANGE) - 1
    assert not any(one.remarks for one in shipped[way].translate(KNOWN[way], **options))
    assert not shipped[way].translate("Le chat noir dort.", **options).remarks


def test_placeholders_survive(shipped):
    assert "%s" in shipped["de-en"].translate("Guten Morgen, %s!").text
    odd = shipped["en-de"].translate('A man (%s) reads a "{title}" book.').text
    assert "\ufffd" not in odd
    assert {"%s", "{title}"} <= set(placeholders(odd))
    assert shipped["en-de"].translate("Open {file}").text.endswith("{file}")  # and no full stop


@pytest.mark.parametrize(
    ("text", "keep", "wanted"),
    [
        ("Zwei Hunde spielen im Schnee.", "puppies@2", "Two puppies are playing in the snow."),
        ("Ich wohne in Berlin.", "Berlin", "I live in Berlin."),
        ("Ein Mann fährt Rad.", "velocipede", "A man is riding a velocipede."),
    ],
)
def test_a_kept_word_of_many_pieces_takes_no_room_from_the_others(shipped, text, keep, wanted):
    assert shipped["de-en"].translate(text, keep=keep).text == wanted


def test_the_one_pass_model_beside_it_scores_for_padir(shipped):
    found = shipped["de-en"].score("Zwei Hunde spielen im Schnee.", "Two dogs are playing in the snow.")
    other = shipped["de-en"].score("Zwei Hunde spielen im Schnee.", "Two cats are playing in the snow.")
    own = translation.load("one-pass-de-en")
    assert found.by == "one-pass-de-en"
    assert (found.passes, own.recipe) == (1, "one_pass")
    assert found.nats == own.score("Zwei Hunde spielen im Schnee.", "Two dogs are playing in the snow.").nats
    assert found.nats > other.nats + 5


def test_a_folder_of_the_same_name_does_not_score_in_its_place(shipped, tmp_path, monkeypatch):
    from anyfill.translation.model import _scorer

    _scorer.cache_clear()
    (tmp_path / "one-pass-en-de").mkdir()
    monkeypatch.chdir(tmp_path)
    assert shipped["en-de"].score("A dog.", "Ein Hund.").nats < 0


def test_seeds_that_are_none_are_refused(shipped):
    for seed in (-1, 2**33, 0.5, "a"):
        with pytest.raises(ValueError, match="seed: expected a whole number from 0"):
            shipped["en-de"].translate("A dog.", seed=seed)


def test_who_translates_by_default_is_padir(shipped):
    assert translation.load(to="de").recipe == translation.load().recipe == "padir"


def test_int8_translates_too_and_keeps_what_it_should():
    small = translation.load("de-en", int8=True)
    assert "int8" in repr(small)
    dogs, morning = small.translate(["Zwei Hunde spielen im Schnee.", "Guten Morgen."])
    assert "dogs" in dogs.text
    assert morning.text == "Good morning."
    kept = small.translate("Ich wohne in Berlin.", keep=["Berlin"]).text
    assert "Berlin" in kept.replace(".", " ").split()


def test_two_sentences_are_not_mixed_up(shipped):
    found = shipped["de-en"].translate("Guten Morgen. Ich bin müde.").text
    assert found.startswith("Good morning. ")
    assert "tired" in found
