"""Placeholders alone and in whole translations: none is lost, however many; nothing is added to what has no words."""

import time
from collections import Counter
from dataclasses import replace

import pytest

from anyfill.translation import keeping as keeping_module
from anyfill.translation.placeholders import (
    has_words,
    is_emptied,
    passages,
    passages_like,
    placeholders,
    protected,
    restored,
)
from anyfill.translation.recipes import RECIPES
from anyfill.translation.vocabulary import plain


def test_placeholders_go_and_come_back():
    text = "<b>%1$s</b> of {count} %(name)s &amp; 100%"
    found = placeholders(text)
    assert found == ["<b>", "%1$s", "</b>", "{count}", "%(name)s", "&amp;"]
    hidden = protected(text, found)
    assert hidden == "⟦0⟧⟦1⟧⟦2⟧ of ⟦3⟧ ⟦4⟧ ⟦5⟧ 100%"
    assert restored(hidden, found) == text
    assert restored("⟦0⟧ ⟦7⟧", ["%s"]) == "%s"
    twice = placeholders("%s of %s: %d")
    assert protected("%d: %s of %s, %s", twice) == "⟦2⟧: ⟦0⟧ of ⟦1⟧, %s"
    assert plain("a\x00b \u200b ⟦0⟧ ▁x\n") == "a b [0] x"


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mDas\x1b[0m Haus ist \x1b[1;38;5;9mr\x1b[mot.\x1b[K",
        "\x1b]8;;https://example.org\x1b\\Das Haus\x1b]8;;\x1b\\ ist rot.",
        "\x1b]0;title\x07Das Haus ist\x1b(B rot.",
        "\x1b7Das Haus ist rot.\x1b",
    ],
)
def test_escape_sequences_of_terminals_are_left_out_whole(text):
    assert plain(text) == "Das Haus ist rot."
    assert plain("\x1b[31m") == ""
    assert plain("[31m") == "[31m"
    assert plain("\x1bHaus") == "Haus"


PLACEHOLDERS = (
    *("%s", "%1$d", "%-5.2f", "%*d", "%ld", "%zu", "%@", "%o", "%%", "%1", "%L2"),
    *("%(name)s", "%(n).2f", "%(user.name)s", "{}", "{name}", "{0:.2f}", "{0!r}", "{user.name}", "{items[0]}"),
    *("{{name}}", "${name}", "$1", "<b>", "</a>", "<br/>", "&amp;", "&#39;", "&#x27;", "&frac12;"),
    *(f'<a href="{"x" * 2000}">', '<a  href="x"\tid="y">', "<a %s>", "<input type=radio checked disabled />"),
    *("<p title='a. b, c!' class = \"d e\" hidden>", "<me@example.org>", "<https://example.org/a?b=c>"),
)


@pytest.mark.parametrize("one", PLACEHOLDERS)
def test_every_form_of_placeholder_goes_and_comes_back_whatever_stands_around_it(one):
    for text in (one, f"Open {one} now", f"({one})", f"<i>{one}</i>", f"{one}{one}"):
        found = placeholders(text)
        assert found.count(one) == (2 if text == one + one else 1), text
        hidden = protected(plain(text), found)
        assert not placeholders(hidden)
        assert restored(hidden, found) == text


@pytest.mark.parametrize(
    "text",
    [
        *("100%ig sicher", "50%off today", "5 % of it", "It costs $10.50", "R&D; AT&T", "a < b > c", "{a b}", "%name"),
        "For x <y the rule holds. Dogs sleep on the bed. For a> b it fails.",
        *("x <y the rule holds> z", "For x <y, a = b> c", "If x <y then a=1 and b=2 or c=3 too> d"),
    ],
)
def test_what_only_looks_like_a_placeholder_is_text(text):
    assert placeholders(text) == []


@pytest.mark.parametrize("some", ["a ", "a=b ", "a = ", ' a="', "a=b c ", " ", "=", "a='b' ", "<a b=c "])
def test_a_tag_that_never_ends_is_looked_through_once(some):
    text = "<a " + some * 20_000
    start = time.process_time()
    assert placeholders(text) == []
    assert time.process_time() - start < 1.0  # takes some ms; twenty thousand times as long if it went back


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


def test_a_passage_is_cut_at_a_space_where_all_sentences_end_in_placeholders():
    assert passages("%s <a title='Yes. No'> go" + "%s" * 9) == ["%s <a title='Yes. No'> ", "go" + "%s" * 9]


def test_passages_of_a_text_ten_times_as_long_take_about_ten_times_as_long():
    def seconds(count):
        start = time.process_time()
        assert len(passages("One %s is two. " * count)) == count / 10
        return time.process_time() - start

    assert seconds(10_000) < 40 * min(seconds(1_000) for _ in range(3))  # a hundred times if the rest is read again


@pytest.mark.parametrize("stretch", ["%s, " * 10, "%s" * 10, "— %s. " * 10])
def test_a_passage_without_a_letter_is_written_as_it_is(translators, stretch):
    model = replace(translators("padir"), closes=True)
    whole, behind = model.translate(stretch + "%d Dateien."), model.translate("%d Dateien.")
    assert whole.text == stretch + behind.text
    assert (whole.score, whole.passes) == (behind.score, behind.passes)


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


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{{  count  }} von %s Dateien", ["%s", "{{  count  }}"]),
        ("<a\n href='x'>Haus</a> %s", ["%s", "</a>", "<a\n href='x'>"]),
        ("{a\u200bb} von %s Dateien {n}", ["%s", "{n}"]),  # the first is none in plain text
        ("<a title='x\u200by'>Haus %s", ["%s", "<a title='x y'>"]),
    ],
)
def test_placeholders_come_out_as_they_were_spelt_and_none_in_the_place_of_another(translators, text, wanted):
    assert Counter(placeholders(translators("padir").translate(text).text)) == Counter(wanted)


@pytest.mark.parametrize("recipe", ["padir", "cmlm"])
def test_a_placeholder_that_is_forced_has_its_passes_too(translators, recipe):
    model = translators(recipe)
    texts = [f"Datei %s {word} gefunden" for word in ("nicht", "rot", "Haus", "Hund", "gut")]
    for text in texts:
        found = model.translate(text, history=True, passes=3)
        assert len(found.history) >= 2
        assert "%s" in found.history[-1]


TAKES_WORDS = ("padir", "cmlm", "disco", "sundae", "one_pass")
"""Recipes that take words at any place."""


@pytest.mark.parametrize("recipe", TAKES_WORDS)
def test_templates_and_drafts_keep_their_placeholders_and_nothing_is_written_twice(translators, recipe):
    model, text = translators(recipe), "<b>Haus</b> %s"
    for one in model.fill(text, "<b>dog</b> [2] %s [2]", 4):
        assert one.text.startswith("<b>dog</b> ")
        assert Counter(placeholders(one.text)) == Counter(placeholders(text))
    assert Counter(placeholders(model.fill(text, "[6] dog")[0].text)) <= Counter(placeholders(text))
    edited = model.adapt(text, "<b>dog</b> %s is", {"is": "Good"}).text
    assert edited.endswith("Good")
    assert " %s " in edited  # no word goes on behind one
    assert model.adapt(text, "<b>dog</b> %s is", {"%s": "Good", "is": "I"}).text.endswith(" Good I")
    with pytest.raises(ValueError, match="words of the draft '<b>dog</b> %s is', got '%d'"):
        model.adapt(text, "<b>dog</b> %s is", {"%d": "Good"})
    assert Counter(placeholders(edited)) == Counter(placeholders(text))


def test_an_alternative_with_a_placeholder_of_its_own_is_left_out_unless_all_have_one(translators, monkeypatch) -> None:
    model, text = translators("deep_shallow"), "Haus %s"
    written = type(model).written
    plain_ones = {one.text for one in model.alternatives(text, 4, seed=0)}
    assert len(plain_ones) > 1
    worse = sorted(plain_ones)[0]

    def some(self, passage, hypotheses) -> str:
        text = written(self, passage, hypotheses)
        return f"{text} %c" if text == worse else text

    monkeypatch.setattr(type(model), "written", some)
    found = {one.text for one in model.alternatives(text, 4, seed=0)}
    assert found
    assert all(placeholders(one) == ["%s"] for one in found)
    assert worse not in found
    monkeypatch.setattr(type(model), "written", lambda *asked: f"{written(*asked)} %c")
    assert all(one.text.endswith(" %c") for one in model.alternatives(text, 4, seed=0))


MANY = "".join(f"{{n{i}}}" for i in range(12))


@pytest.mark.parametrize("recipe", RECIPES)
def test_more_placeholders_than_symbols_are_in_every_alternative(translators, recipe):
    text = f"Haus {MANY} Hund"
    found = translators(recipe).alternatives(text, 5, seed=0)
    assert 2 <= len({one.text for one in found}) == len(found) <= 5
    for one in found:
        assert Counter(placeholders(one.text)) == Counter(placeholders(text))


@pytest.mark.parametrize("recipe", RECIPES)
def test_placeholders_that_a_row_has_no_room_for_come_out_all_the_same(translators, recipe):
    found = translators(recipe).translate(f"Haus {MANY[:40]}").text
    assert Counter(placeholders(found)) == Counter(placeholders(MANY[:40]))


def test_the_best_alternative_is_the_best_of_each_passage(translators):
    model = translators("autoregressive")
    both, first, second = (
        model.alternatives(text, 3) for text in (f"Haus {MANY} Hund", "Haus " + MANY[:40], MANY[40:] + " Hund")
    )
    assert both[0].text == first[0].text + second[0].text
    assert {both[1].text, both[2].text} == {first[0].text + second[1].text, first[1].text + second[0].text}
    assert min(first[0].score, second[0].score) <= both[0].score <= max(first[0].score, second[0].score)


@pytest.mark.parametrize("recipe", TAKES_WORDS)
def test_more_placeholders_than_symbols_stay_in_templates_and_drafts(translators, recipe):
    model, text = translators(recipe), f"Haus {MANY} Hund"
    for template in (f"dog {MANY} [2]", f"[2] {MANY} Good", f"[1] {MANY} [1]"):
        before, behind = template.split(MANY)
        for one in model.fill(text, template, 3):
            assert MANY in one.text
            assert Counter(placeholders(one.text)) == Counter(placeholders(text))
            assert "[" in before or one.text.startswith(before)
            assert "[" in behind or one.text.endswith(behind)
    assert model.adapt(text, f"dog {MANY} is", {"is": "Good"}).text == f"dog {MANY} Good"
    assert "Good" in model.adapt(text, f"dog {MANY} is", {"dog": "Good"}).text


def test_what_goes_in_passages_has_its_placeholders_in_their_order(translators):
    model, text = translators("cmlm"), f"Haus {MANY} Hund"
    with pytest.raises(ValueError, match=r"template: expected placeholders in the order of the text.*got {n0} behind"):
        model.fill(text, "{n11} [2] {n0}")
    with pytest.raises(ValueError, match="draft: expected placeholders in the order"):
        model.adapt(text, "{n11} dog {n0}", {"dog": "Good"})
    with pytest.raises(ValueError, match=r"a blank in it, ___ or \[2\], got 'dog {n0}"):
        model.fill(text, f"dog {MANY}")
    with pytest.raises(ValueError, match=r"words of the draft 'dog {n0}.*within one of its 2 parts, got 'Paris'"):
        model.adapt(text, f"dog {MANY}", {"Paris": "Good"})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A %s b. C %d d", ["A %s b. ", "C %d d"]),
        ("A %s ___ %d d", ["A %s ___ ", "%d d"]),
        ("%s%d", ["%s", "%d"]),
        ("___ %d", ["___ ", "%d"]),
        ("A %s ___", ["A %s ___", ""]),
        ("A {x} %s {y} b %d {z}", ["A {x} %s {y} b ", "%d {z}"]),
        ("", ["", ""]),
    ],
)
def test_a_translation_is_cut_as_its_source_is(text, wanted):
    assert passages_like(text, [["%s", "%i"], ["%d", "%u"]], "draft") == wanted


def test_a_passage_none_of_whose_placeholders_are_there_is_empty():
    assert passages_like("%s a %u", [["%s"], ["%d"], ["%u"]], "draft") == ["%s a ", "", "%u"]
    assert passages_like("%s a %s", [["%s"], ["%s"]], "draft") == ["%s a ", "%s"]


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


def test_alternatives_force_forgotten_placeholders_once_for_each_way_of_decoding(translators, monkeypatch):
    model, forced = translators("padir"), list[int]()
    usual = keeping_module.keeping
    monkeypatch.setattr(keeping_module, "keeping", lambda *told: forced.append(1) or usual(*told))
    found = model.alternatives("Haus %s {a} <b>", 3)
    assert found
    assert all(one.text.count(each) == 1 for one in found for each in ("%s", "{a}", "<b>"))
    assert 1 <= len(forced) <= 4  # ways of decoding


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("Das ist <b>wichtig</b>.", "That is <b></b>.", True),
        ("Das ist <b>wichtig</b>.", "That is <b> </b> important.", True),
        ("Das ist <b>wichtig</b>.", "That is <b>important</b>.", False),
        ("Ein <br> und <b></b> Ende", "A <br> and <b></b> end", False),
        ('<a href="x">Hier</a> und <i>dort</i>', '<a href="x">Here</a> and <i></i>there', True),
        ("<p>Hallo <b>du</b></p>", "<p>Hello <b></b></p>", True),
        ("<p><b>Hallo</b></p>", "<p></p><b>Hello</b>", True),
        ("<p>Hallo <b>du</b></p>", "<p><b>You</b>, hello</p>", False),
        ("<b>a <b>b</b></b>", "<b>a <b> </b></b>", True),
        ("<b>zu <i>oder</b> so</i> <br>", "<b>closed <i>or</b> so</i> <br>", False),
    ],
)
def test_words_that_left_their_tags_are_seen(source, translation, expected):
    assert is_emptied(source, translation) is expected


@pytest.mark.parametrize("text", ["<br>", "<b>", "<b>x</b>", "</b>", "<i><b>"])
def test_ten_times_as_many_tags_take_some_ten_times_as_long(text):
    def seconds(count):
        whole = text * count
        begun = time.process_time()  # on a clock beside which other work may run
        is_emptied(whole, whole)
        return time.process_time() - begun

    assert min(seconds(20_000) for _ in range(5)) < 40 * min(seconds(2_000) for _ in range(5))  # the square: 100
