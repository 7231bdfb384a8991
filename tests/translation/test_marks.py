"""Typographic marks that a vocabulary has not: read as plain ones, written as they were given."""

import pytest

from anyfill.translation.adapt import words_at
from anyfill.translation.marks import counterpart, quoted
from anyfill.translation.vocabulary import learn

PLAIN = {
    "“Haus” „Hund‟ «rot» ‚Wien‘ ‹gut›": '"Haus" "Hund" "rot" \'Wien\' \'gut\'',
    "Wie geht’s…": "Wie geht's...",
    "rot – gross, E‑Mail, 3 − 2": "rot - gross, E-Mail, 3 - 2",
    "das Haus—rot": "das Haus - rot",
    "Gut！（Ｗｉｅｎ，７）": "Gut!(Wien,7)",
    "ﬁnden, Koﬀer, ﬂink": "finden, Koffer, flink",
    "Donau\u00addampf\u2060schiff": "Donaudampfschiff",
    "Hu\u0308gel": "Hügel",
    "Ich\u00a0wohne\u202fin\u2009Wien": "Ich wohne in Wien",
}
NO_MARKS = ("Café", "naïve", "10²", "½", "™", "30 °C", "5 €", "😀", "👩\u200d💻", "❤\ufe0f", "日本", "Ωμέγα", "¿qué?")


@pytest.mark.parametrize("text", PLAIN)
def test_a_mark_that_would_be_bytes_is_read_as_its_counterpart(vocabulary, text):
    assert vocabulary.decode(vocabulary.encode(text)) == PLAIN[text]
    assert vocabulary.encode(text) == vocabulary.encode(PLAIN[text])
    assert vocabulary.decode(vocabulary.encode(text, spelt=True)) == " ".join(text.split())


@pytest.mark.parametrize("text", NO_MARKS)
def test_what_is_no_mark_stays_as_it_is(vocabulary, text):
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert all(counterpart(one) == one for one in text)


def test_marks_that_a_vocabulary_has_are_left_to_it():
    texts = [f"„Haus Nummer {number}“ – rot…" for number in range(60)]
    own = learn(texts, 330)
    assert {"„", "“", "–", "…"} <= {own.piece(code) for code in range(own.size)}
    assert own.decode(own.encode("„Haus“ – rot… und ’s")) == "„Haus“ – rot… und 's"


def test_quotation_marks_around_a_text_are_told_from_those_inside():
    assert quoted("“Good morning.”") == ("“", "Good morning.", "”")
    assert quoted("« Bonjour »") == ("« ", "Bonjour", " »")
    assert quoted("‘Don’t go.’") == ("‘", "Don’t go.", "’")
    assert quoted("„Guten Morgen.") == ("„", "Guten Morgen.", "")
    assert quoted("Guten Abend.“") == ("", "Guten Abend.", "“")
    for text in ("“Come in,” she said.", "“Yes.” “No.”", '"Good morning."', "’s war kalt", "the dogs’", "“", "“”", ""):
        assert quoted(text) == ("", text, "")


@pytest.mark.parametrize("recipe", ["padir", "autoregressive"])
def test_quotation_marks_around_a_text_are_around_its_translation(translators, recipe):
    model = translators(recipe)
    bare = model.translate("Das Haus ist rot.")
    assert model.translate("“Das Haus ist rot.”").text == f"“{bare.text}”"
    assert model.translate("»Das Haus ist rot.«").text == f"»{bare.text}«"
    assert model.translate("“ %s ”").text == "“ %s ”"
    first = model.alternatives("Das Haus ist rot.", 1, seed=1)[0].text
    assert model.alternatives("„Das Haus ist rot.“", 1, seed=1)[0].text == f"„{first}“"


def test_what_must_stand_in_a_translation_keeps_its_marks(translators):
    model = translators("padir")
    assert "“Wien”" in model.translate("Ich wohne in Wien.", keep="“Wien”").text
    assert model.fill("Ich wohne in Wien…", "I [2] – Vienna…")[0].text.endswith("– Vienna…")
    edited = model.adapt("in Wien", "in Berlin…", {"Berlin": "“dog”"})
    assert "“dog”…" in edited.text


def test_words_of_a_draft_are_found_with_their_marks_and_without():
    draft = "Two “dogs” saw the cats’ toys, twice…"
    assert words_at(draft, "dogs") == words_at(draft, "“dogs”") == [1]
    assert words_at(draft, "cats’") == words_at(draft, "cats") == [4]
    assert words_at(draft, "twice") == [6]
    assert words_at(draft, "dog") == words_at(draft, "“”") == []


def test_quotation_marks_around_a_draft_or_a_template_do_not_change_what_is_made_of_it(translators):
    model = translators("padir")
    bare = model.adapt("Das Haus ist rot.", "The house is red.", {"house": "dog"}).text
    assert model.adapt("„Das Haus ist rot.“", "“The house is red.”", {"house": "dog"}).text == f"“{bare}”"
    bare = model.fill("Das Haus ist rot.", "The ___ is red.")[0].text
    assert model.fill("„Das Haus ist rot.“", "“The ___ is red.”")[0].text == f"“{bare}”"


def test_scores_do_not_depend_on_how_a_source_is_set_and_are_of_the_translation_as_it_is_set(translators):
    model = translators("cmlm")
    assert model.score("Wie geht’s?", "How's it?") == model.score("Wie geht's?", "How's it?")
    assert model.score("Wie geht's?", "How’s it?") != model.score("Wie geht's?", "How's it?")
