"""Placeholders in whole translations: none is lost, however many; nothing is added to what has no words."""

from collections import Counter
from dataclasses import replace

import pytest

from anyfill.translation.placeholders import has_words, passages, placeholders, restored
from anyfill.translation.recipes import RECIPES


@pytest.mark.parametrize("text", ["%s", "<br/>", "...", "!", "<b>%d</b>", "  12:30 ", "%1 / %2", "— {name} —"])
def test_a_text_without_a_letter_is_nothing_to_translate(translators, text):
    model = replace(translators("padir"), closes=True)
    assert model.translate(text).text == text
    assert model.translate(text).passes == 0
    assert has_words(f"{text} a")
    assert model.translate(text, keep="Berlin").text != text


def test_where_they_are_not_protected_they_are_words(translators):
    assert translators("padir").translate("%s", protect=False).passes > 0


@pytest.mark.parametrize("recipe", RECIPES)
def test_more_placeholders_than_symbols_all_come_out_each_as_often_as_it_came(translators, recipe):
    options = {"passes": 1} if recipe in ("padir", "cmlm", "disco", "sundae") else {}
    text = " ".join(f"Datei {{n{i}}} von %{i + 1}$s." for i in range(13))
    found = translators(recipe).translate(text, **options)
    assert Counter(placeholders(found.text)) == Counter(placeholders(text))


@pytest.mark.parametrize(
    "text",
    [
        "a " + "%s" * 25 + " b",
        "One %s. " * 14,
        "<a href='x y z'> Haus " * 14,
        "%s %d " * 30 + "Ende",
        "kein Platzhalter",
        "",
    ],
)
def test_passages_are_the_text_with_at_most_ten_each_and_no_placeholder_is_cut(text):
    found = passages(text)
    assert "".join(found) == text
    assert all(len(placeholders(one)) <= 10 for one in found)
    assert [one for some in found for one in placeholders(some)] == placeholders(text)
    if "One" in text:
        assert all(one.endswith(". ") for one in found)


@pytest.mark.parametrize(
    ("source", "written", "wanted"),
    [
        ("⟦0⟧Open⟦1⟧ the file", "⟦0⟧ Öffne ⟦1⟧ die Datei", "<b>Öffne</b> die Datei"),
        ("Open ⟦0⟧it⟦1⟧.", "Öffne ⟦0⟧ es ⟦1⟧ .", "Öffne <b>es</b>."),
        ("Open ⟦0⟧⟦2⟧⟦1⟧ now", "Jetzt ⟦0⟧ ⟦2⟧ ⟦1⟧ öffnen", "Jetzt <b>%d</b> öffnen"),
        ("Open ⟦0⟧it⟦1⟧ now", "Jetzt⟦0⟧ es⟦1⟧öffnen", "Jetzt <b>es</b> öffnen"),
        ("⟦2⟧ files", "Dateien ⟦2⟧", "Dateien %d"),
        ("One⟦3⟧Two", "Eins ⟦3⟧ Zwei", "Eins<br/>Zwei"),
    ],
)
def test_spaces_around_markup_are_those_of_the_source(source, written, wanted):
    assert restored(written, ["<b>", "</b>", "%d", "<br/>"], source) == wanted


@pytest.mark.parametrize("recipe", ["padir", "cmlm"])
def test_a_placeholder_that_is_forced_has_its_passes_too(translators, recipe):
    model = translators(recipe)
    texts = [f"Datei %s {word} gefunden" for word in ("nicht", "rot", "Haus", "Hund", "gut")]
    for text in texts:
        found = model.translate(text, history=True, passes=3)
        assert len(found.history) >= 2
        assert "%s" in found.history[-1]


def test_bytes_that_make_no_character_are_not_written(vocabulary):
    dog = vocabulary.encode("Hund")
    snow, broken = vocabulary.encode("☃", begins=False), vocabulary.encode("é☃", begins=False)
    byte = [code for code in range(vocabulary.size) if vocabulary.is_byte[code]]
    assert vocabulary.decode([*dog, *snow]) == "Hund☃"
    assert vocabulary.decode([*dog, snow[0], *dog, *snow[1:], *snow]) == "HundHund☃".replace("dH", "d H")
    for one in range(len(broken)):
        assert "\ufffd" not in vocabulary.decode([*dog, *broken[:one], *broken[one + 1 :]])
    assert "".join(vocabulary.decode([*dog, *byte]).split()).isprintable()
    assert "\ufffd" not in vocabulary.decode(byte[::-1])
