"""What can be asked of a translator: kept words stay, templates stay, placeholders survive, scores are exact."""

import copy
import math
import re
import time
from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from anyfill.interface.progress import reported_to
from anyfill.likelihoods import Categorical
from anyfill.networks.encoder_decoder import END
from anyfill.translation import load
from anyfill.translation.adapt import adapted
from anyfill.translation.constraints import Fixed, Keep, parse_keep, parse_template, placements
from anyfill.translation.decode import likeliest_lengths
from anyfill.translation.hypotheses import NOISY, Decoding, decoding_options
from anyfill.translation.recipes import RECIPES
from anyfill.translation.sentences import is_open, opened, sentences
from anyfill.translation.vocabulary import FIRST

PARALLEL = ("padir", "cmlm", "disco", "sundae")
KEEPING = (*PARALLEL, "one_pass")
"""Every decoder that takes words at any place."""
SOURCE = "Ich wohne in Berlin."
WORDS = ("Berlin", "Vienna", "house", "the dog", "Good")
slow_but_few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def quick(recipe: str, passes: int = 2) -> dict[str, int]:
    """Little work, whatever the recipe decodes by."""
    return {name: passes for name in ("passes", "beam") if name in decoding_options(recipe)}


def as_whole_words(phrase: str) -> str:
    """A pattern of a phrase that is no part of a longer word: its words, marks, and then a space or nothing."""
    return r"(?<!\S)" + re.escape(phrase) + r"(?![^\W_])"


class Pulled(Categorical):
    """The law of a model whose parameters are pulled this way, the same at every place."""

    def __init__(self, pull):
        super().__init__(len(pull))
        object.__setattr__(self, "pull", pull)

    def __call__(self, params):
        return super().__call__(params + self.pull)


@pytest.fixture(scope="module")
def word_enders(translators):
    """A function: a translator of a recipe that goes on with every word for as long as it may."""
    made = {}

    def of(recipe):
        if recipe not in made:
            model = made[recipe] = copy.deepcopy(translators(recipe))
            pull = torch.tensor([0.0 if new else 30.0 for new in model.vocabulary.begins_word])
            pull[: FIRST + 10] = 0.0
            model.decoder.model.likelihood = Pulled(pull)
        return made[recipe]

    return of


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_translates_and_says_how(translators, recipe):
    model = translators(recipe)
    one = model.translate(SOURCE, **quick(recipe))
    assert isinstance(one.text, str)
    assert one.passes >= 1
    assert one.score <= 0.0
    assert model.translate(SOURCE, **quick(recipe)) == one  # the same seed, the same translation
    several = model.translate([SOURCE, "", "Guten Morgen"], **quick(recipe))
    assert several[1].text == ""
    if recipe != "sundae":  # which draws as it goes on
        assert several[0].text == one.text
    assert recipe in repr(model)


@slow_but_few
@example(recipe="disco", word="Berlin", place=5, passes=1)  # a byte made a line end, and words were miscounted
@example(recipe="one_pass", word="the dog", place=3, passes=1)
@given(recipe=st.sampled_from(KEEPING), word=st.sampled_from(WORDS), place=st.integers(1, 6), passes=st.integers(1, 4))
def test_a_kept_word_is_always_kept_where_it_was_put(translators, recipe, word, place, passes):
    model = translators(recipe)
    found = model.translate(SOURCE, keep=[f"{word}@{place}"], history=True, **quick(recipe, passes))
    codes = [model.vocabulary.piece(code) for code in model.vocabulary.encode(word)]
    for row in found.history:  # in every pass, not only the last
        assert any(list(row[i : i + len(codes)]) == codes for i in range(len(row)))
    own = word.split()
    written = found.text.split()[place - 1 : place - 1 + len(own)]
    assert written[:-1] == own[:-1]
    assert written[-1].startswith(own[-1])
    assert not written[-1][len(own[-1]) :][:1].isalnum()  # nothing but marks is right behind it


@slow_but_few
@given(recipe=st.sampled_from(KEEPING), first=st.integers(1, 3), more=st.integers(1, 3))
def test_two_words_that_are_counted_stand_where_they_are_said_to(translators, recipe, first, more):
    second = first + more
    text = translators(recipe).translate(SOURCE, keep=[f"Vienna@{second}", f"Berlin@{first}"], **quick(recipe)).text
    assert text.split()[first - 1].startswith("Berlin")
    assert text.split()[second - 1].startswith("Vienna")


@slow_but_few
@given(recipe=st.sampled_from(KEEPING), words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True))
def test_words_without_a_place_stand_somewhere_in_their_order_as_whole_words(word_enders, recipe, words):
    text = word_enders(recipe).translate(SOURCE, keep=words, **quick(recipe)).text
    found = [re.search(as_whole_words(word), text) for word in words]
    assert all(found), text
    assert [one.start() for one in found] == sorted(one.start() for one in found)


TEMPLATES = ["I [2] in Berlin.", "___ Berlin", "the dog ___.", "[1] in [2] Vienna", "Good [3]", "___ the ___ dog ___"]


@slow_but_few
@example(recipe="one_pass", template="Good [3]")
@given(recipe=st.sampled_from(KEEPING), template=st.sampled_from(TEMPLATES))
def test_given_words_of_a_template_never_change_nor_grow(word_enders, recipe, template):
    parts = [part.strip() for part in re.split(r"_{2,}|\[\d+\]", template)]
    pattern = ".*".join(as_whole_words(part) if part[:1].isalnum() else re.escape(part) for part in parts)
    for one in word_enders(recipe).fill(SOURCE, template, 3, **quick(recipe)):
        assert re.fullmatch(f".*{pattern}.*", one.text), (template, one.text)


@pytest.mark.parametrize("recipe", KEEPING)
def test_a_word_that_was_changed_does_not_go_on_and_no_code_is_written_that_is_no_text(word_enders, recipe):
    found = word_enders(recipe).adapt(
        "Ich wohne in Wien.", "I live in Berlin now.", {"live": "dog", "Berlin": "Vienna"}
    )
    for word in ("dog", "Vienna"):
        assert re.search(as_whole_words(word), found.text), found.text
    assert "⟦" not in found.text


@pytest.mark.parametrize("template", ["I [2] in Berlin.", "[1] in [2] Vienna", "Good [3]"])
def test_a_one_pass_model_that_would_end_in_a_blank_keeps_what_stands_behind_it(translators, template):
    """What trained ones did in a tenth of the blanks of three pieces: a full stop, END, and the rest was cut off."""
    model = copy.deepcopy(translators("one_pass"))
    with torch.no_grad():
        model.decoder.model.network.head.bias[:FIRST] = 50.0
    only = parse_template(template, model.vocabulary).fixed(model.decoder.length)[:1]
    codes = model.decoder.decode([model.vocabulary.encode(SOURCE)], Decoding(), ways=lambda _: only)[0][0].codes
    assert len(codes) == only[0].length
    assert {place: codes[place - 1] for place in only[0].codes} == only[0].codes


def test_left_to_right_models_take_no_template_and_say_so(translators):
    model = translators("autoregressive")
    with pytest.raises(ValueError, match="any place"):
        model.fill(SOURCE, "I ___ Berlin")
    with pytest.raises(ValueError, match="any place"):
        model.translate(SOURCE, keep=["Berlin"])
    with pytest.raises(ValueError, match="any place"):
        model.adapt(SOURCE, "I live in Berlin.", {"Berlin": "Vienna"})


@pytest.mark.parametrize("recipe", KEEPING)
def test_a_placeholder_that_is_kept_comes_once_and_a_kept_full_stop_stays(translators, recipe):
    model = replace(translators(recipe), closes=True)
    assert model.translate("Datei %s nicht gefunden", keep=["%s@2"], **quick(recipe)).text.split()[1].startswith("%s")
    assert model.translate("Datei %s nicht gefunden", keep=["%s"], **quick(recipe)).text.count("%s") == 1
    assert "Berlin." in model.translate("Ich wohne in Berlin", keep=["Berlin."], **quick(recipe)).text


def test_one_phrase_to_keep_needs_no_list(translators):
    model = translators("cmlm")
    assert model.translate(SOURCE, keep="Berlin") == model.translate(SOURCE, keep=["Berlin"])


def test_where_a_phrase_may_stand_is_looked_for_everywhere(vocabulary):
    size = len(vocabulary.encode("Berlin"))
    found = placements([Keep("Berlin"), Keep("Vienna")], 40, vocabulary, most=20)
    starts = [min(one.codes) for one in found]
    assert 3 <= len(found) <= 20
    assert min(starts) == 1
    assert max(max(one.codes) for one in found) == 40
    assert max(starts) > 20
    assert len(placements([Keep("Berlin")], 40, vocabulary)) == 41 - size


def test_a_one_pass_model_tries_lengths_near_that_of_its_own_translation_first(translators):
    model = translators("one_pass")
    source = model.vocabulary.encode(SOURCE)
    free = len(model.decoder.decode([source], Decoding())[0][0].codes)
    asked = []
    only = parse_template("Good [3]", model.vocabulary).fixed(model.decoder.length)
    model.decoder.decode([source], Decoding(), ways=lambda lengths: asked.append(lengths) or only)
    assert int(asked[0].argmax()) + 1 == max(free, 1)
    with pytest.raises(ValueError, match="words that fit"):
        model.translate(SOURCE, keep=["Berlin@99"])


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize(
    "text", ["Datei %s nicht gefunden", "<b>%d</b> von {total} Dateien", "%(name)s: 100 %", "%s von %s, %d"]
)
def test_placeholders_survive_each_as_often_as_it_came(translators, recipe, text):
    from anyfill.translation.placeholders import placeholders

    found = translators(recipe).translate(text, **quick(recipe)).text
    assert Counter(placeholders(found)) == Counter(placeholders(text)), found


@pytest.mark.parametrize("recipe", KEEPING)
def test_a_changed_word_stays_and_the_length_is_that_of_the_changed_draft(translators, recipe):
    model = translators(recipe)
    found = model.adapt("Ich wohne in Wien.", "I live in Berlin.", {"Berlin": "Vienna"}, **quick(recipe, 3))
    assert "Vienna" in found.text
    assert "Berlin" not in found.text or model.vocabulary.encode("Berlin") != model.vocabulary.encode("Vienna")
    with pytest.raises(ValueError, match="words of the draft"):
        model.adapt("Ich wohne in Wien.", "I live in Berlin.", {"Paris": "Vienna"})


@pytest.mark.parametrize("change", [["Berlin=Vienna"], [("Berlin", "Vienna")], "Berlin=Vienna", None])
def test_changes_that_are_no_mapping_are_refused_in_a_sentence(translators, change):
    with pytest.raises(ValueError, match="change: expected a mapping of words to others"):
        translators("padir").adapt("Ich wohne in Wien.", "I live in Berlin.", change)


def test_several_words_may_be_changed_into_one_and_one_into_several(translators):
    model = translators("padir")
    found = model.adapt(SOURCE, "I in Good Berlin.", {"Good Berlin": "Vienna", "I": "The dog"}, passes=2).text
    assert re.search(as_whole_words("The dog"), found), found
    assert re.search(as_whole_words("Vienna."), found), found


def test_a_one_pass_model_writes_the_less_probable_half_anew_and_leaves_the_other_as_it_was(translators):
    model = translators("one_pass")
    draft = model.vocabulary.encode("I live in Berlin.")
    half = model.decoder.length + 1
    held = len(model.vocabulary.encode("I"))
    source = [*model.vocabulary.encode(SOURCE), END]
    x = torch.zeros(1, 2 * half, dtype=torch.long)
    x[0, : len(source)], x[0, half : half + len(draft) + 1] = torch.tensor(source), torch.tensor([*draft, END])
    values = {}
    for place in range(held, len(draft)):
        known = torch.zeros_like(x, dtype=torch.bool)
        known[0, : len(source)] = known[0, half : half + len(draft) + 1] = True
        known[0, half + place] = False
        law = model.decoder.model.marginals(x, known).log_prob(x)
        values[place] = law[0, half + place].item()
    kept = sorted(values, key=lambda place: -values[place])[: len(values) // 2]
    found = adapted(model.decoder, source[:-1], "I live in Berlin.", {"I": "I"}, Decoding())
    assert len(found.codes) == len(draft)
    assert all(found.codes[place] == draft[place] for place in (*range(held), *kept))


def test_scores_are_exact_where_there_is_a_likelihood(translators):
    """log p(n) + sum log p(words), by the definition, of a model with a length; and refused where there is none."""
    model = translators("cmlm")
    found = model.score("Guten Morgen", "Good morning")
    core, source = model.decoder.model, torch.tensor([model.vocabulary.encode("Guten Morgen")])
    target = model.vocabulary.encode("Good morning")
    x = torch.tensor([[len(target), *target]])
    total = 0.0
    for place in range(x.shape[1]):
        known = torch.arange(x.shape[1]).unsqueeze(0) < place
        total += core.marginals(torch.where(known, x, 0), known, source).log_prob(x)[0, place].item()
    assert found.nats == pytest.approx(total, abs=1e-3)
    assert found.pieces == len(target)
    assert found.per_piece == pytest.approx(found.nats / (len(target) + 1))
    for recipe in ("disco", "autoregressive", "one_pass"):
        one = translators(recipe).score("Guten Morgen", "Good morning")
        assert math.isfinite(one.nats)
        assert one.passes == 1
    with pytest.raises(ValueError, match="a model with a likelihood"):
        translators("padir").score("Guten Morgen", "Good morning")


@pytest.mark.parametrize("recipe", ["disco", "autoregressive", "deep_shallow", "one_pass"])
def test_a_score_is_the_sum_of_its_terms_asked_one_by_one(translators, recipe):
    model = translators(recipe)
    core, half = model.decoder.model, model.decoder.length + 1
    source, target = (model.vocabulary.encode(text) for text in ("Guten Morgen", "Good morning"))
    context = torch.tensor([source])
    if recipe == "disco":
        x, first, last = torch.tensor([[len(target), *target]]), 0, len(target)
    elif recipe == "one_pass":
        x, first, last, context = torch.zeros(1, 2 * half, dtype=torch.long), half, half + len(target), None
        x[0, : len(source) + 1] = torch.tensor([*source, END])
        x[0, half : last + 1] = torch.tensor([*target, END])
    else:
        x, first, last = torch.tensor([[*target, END]]), 0, len(target)
    place, total = torch.arange(x.shape[1]).unsqueeze(0), 0.0
    for number in range(first, last + 1):
        known = (place < number) & ((place >= first) | (place <= len(source)))
        law = core.marginals(torch.where(known, x, 0), known, context)
        total += law.log_prob(x)[0, number].item()
        assert law.log_probs[0, number].exp().sum().item() == pytest.approx(1.0, abs=1e-5)
    assert model.score("Guten Morgen", "Good morning").nats == pytest.approx(total, abs=1e-3)


@pytest.mark.parametrize(
    ("recipe", "option"),
    [
        ("padir", {"beam": 9}),
        ("padir", {"length_penalty": 0.5}),
        ("cmlm", {"speculative": True}),
        ("autoregressive", {"passes": 4}),
        ("autoregressive", {"lengths": 3}),
        ("one_pass", {"beam": 4}),
    ],
)
def test_what_means_nothing_to_a_recipe_is_refused(translators, recipe, option):
    name = next(iter(option)).replace("_", "-")
    with pytest.raises(ValueError, match=f"--{name}: expected none with the recipe {recipe}"):
        translators(recipe).translate(SOURCE, **option)


def test_templates_and_alternatives_refuse_passes_of_models_that_have_no_say_in_them(translators):
    with pytest.raises(ValueError, match="--passes: expected none with the recipe one_pass"):
        translators("one_pass").fill(SOURCE, "I ___ Berlin", passes=4)
    with pytest.raises(ValueError, match="--passes: expected none with the recipe autoregressive"):
        translators("autoregressive").alternatives(SOURCE, 2, passes=4)


def test_speculation_changes_nothing_but_the_passes(translators):
    model = translators("one_pass")
    plain = model.translate(SOURCE)
    quick = model.translate(SOURCE, speculative=True)
    assert quick.text == plain.text
    assert quick.score == pytest.approx(plain.score, abs=1e-4)


@pytest.mark.parametrize("recipe", ["one_pass", "autoregressive"])
def test_from_left_to_right_sources_together_are_translated_as_each_alone(translators, recipe):
    decoder, vocabulary = translators(recipe).decoder, translators(recipe).vocabulary
    sources = [vocabulary.encode(text) for text in (SOURCE, "Guten Morgen", "Der Hund schläft.")]
    together = decoder.decode(sources, Decoding(beam=2))
    for source, found in zip(sources, together):
        (alone,) = decoder.decode([source], Decoding(beam=2))
        assert [one.codes for one in found] == [one.codes for one in alone]
        assert found[0].log_prob == pytest.approx(alone[0].log_prob, abs=1e-3)
    assert decoder.best_codes(sources, Decoding(beam=2)) == [found[0].codes for found in together]


def test_alternatives_differ_and_come_best_first(translators):
    for recipe in ("cmlm", "padir", "autoregressive", "one_pass"):
        found = translators(recipe).alternatives(SOURCE, 3, seed=1)
        assert 2 <= len(found) <= 3
        assert len({one.text for one in found}) == len(found)
        if recipe != "autoregressive":
            assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_long_texts_are_cut_and_every_word_is_seen(translators):
    model = translators("padir")
    text = "Ich wohne in Berlin. " * 30 + "Haus" * 100
    parts = model.segments(text)
    assert max(map(len, parts)) <= model.decoder.length
    assert "".join(model.vocabulary.decode(part) for part in parts).replace(" ", "") == text.replace(" ", "")
    assert any("parts" in remark for remark in model.translate(text, passes=1, lengths=1).remarks)
    many = model.translate("Wort " * 10_000, passes=1, lengths=1)
    assert int(many.remarks[0].split()[2]) > 100


def test_one_long_text_says_how_far_it_is(translators):
    model, told = translators("padir"), []
    with reported_to(lambda what, share, words: told.append(share)):
        model.translate("Das Haus ist rot. " * 300, passes=1, lengths=1, progress=True)
    inside = [share for share in told if 0.0 < share < 1.0]
    assert len(set(inside)) >= 2
    assert told == sorted(told)


def test_nothing_is_lost_where_a_long_text_is_cut(translators):
    model = translators("padir")
    text = 'Er sagte: "Ich wohne in Berlin." Dann ging er. ' * 8
    written = "".join(model.vocabulary.decode(part) for part in model.segments(text))
    assert written.replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Guten Morgen. Wie geht es dir? Ich bin müde.", 3),
        ('Er sagte: "Ich komme." Dann ging er.', 2),
        ("Dr. Müller kommt am 3. Oktober.", 1),
        ("Das ist z. B. Holz oder z.B. Stein.", 1),
        ("The U.S. Army left at 8 a.m. Monday.", 1),
        ("Version 2.0 ist da.", 1),
        ("これは本です。今日は。", 2),
        ("Wirklich? ja!", 1),
        ("Das Haus ist rot. *** Der Hund schläft.", 3),
        ("Das Haus ist rot. — 42 — Der Hund schläft. ...", 4),
        ("* * * Der Hund schläft. “ 😀", 3),
        ("- Der Hund schläft!", 2),
        ("Nein! 42 Hunde schlafen. 3. Mai.", 1),
        ("Er ging ... Dann kam sie. ... und ging.", 1),
        ("Fertig! ⟦0⟧ Dateien. — ⟦1⟧ — Ende", 1),
        ("Fertig! 1 — Dateien. — 1 Datei", 1),
        ("", 0),
    ],
)
def test_sentences_are_cut_where_that_is_sure(text, count):
    found = sentences(text)
    assert len(found) == count
    assert "".join(found).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("recipe", ["padir", "autoregressive"])
def test_a_model_of_sentences_translates_them_one_by_one(translators, recipe):
    model = replace(translators(recipe), closes=True)
    both = model.translate("Haus. Hund.", history=recipe == "padir")
    each = model.translate(["Haus.", "Hund."])
    assert both.text.split() == [word for one in each for word in one.text.split()]
    assert both.remarks == ()  # which is nothing to remark upon
    if recipe == "padir":
        rows = [model.translate(text, history=True).history for text in ("Haus.", "Hund.")]
        assert len(both.history) == max(map(len, rows))
        assert both.history[-1] == rows[0][-1] + rows[1][-1]


@pytest.mark.parametrize("marks", ["***", "— 42 —", "...", "* * *"])
@pytest.mark.parametrize("recipe", ["padir", "cmlm"])
def test_a_sentence_without_words_is_written_as_it_is(translators, recipe, marks):
    model = replace(translators(recipe), closes=True)
    first, second = model.translate(["Haus.", "Hund"])
    both = model.translate(["Haus. Hund", f"Haus. {marks} Hund", f"{marks} Haus. Hund"])
    assert [one.text for one in both] == [
        f"{first.text} {second.text}",
        f"{first.text} {marks} {second.text}",
        f"{marks} {first.text} {second.text}",
    ]
    assert len({(one.score, one.passes) for one in both}) == 1
    seen = model.translate(f"Haus. {marks} Hund", history=True).history
    pieces = [f"▁{one}" for one in marks.split()]
    assert all(any(list(row[i : i + len(pieces)]) == pieces for i in range(len(row))) for row in seen)
    assert len(seen) == len(model.translate("Haus. Hund", history=True).history) > 1
    long = translators(recipe).translate("Das Haus ist rot. ... " * 9).text
    assert long.split(" ... ")[0] == translators(recipe).translate("Das Haus ist rot.").text
    assert long.count(" ...") == 9


def test_marks_that_never_end_are_looked_through_a_few_times():
    start = time.process_time()
    assert len(sentences("Haus! " + "! " * 20_000 + "ja")) == 1
    assert time.process_time() - start < 5.0  # takes half a second; minutes if each looked through all behind it


def test_a_heading_is_filled_and_edited_as_a_sentence(translators):
    model = replace(translators("cmlm"), closes=True)
    filled = model.fill("Ich wohne in Wien", "I [2] Vienna")[0].text
    assert filled == opened(model.fill("Ich wohne in Wien.", "I [2] Vienna.")[0].text)
    assert filled.endswith("Vienna")
    assert not model.fill("Ich wohne in Wien", "I live [1]")[0].text.endswith("..")
    edited = model.adapt("Ich wohne in Wien", "I live in Berlin", {"Berlin": "Vienna"}).text
    assert edited == opened(model.adapt("Ich wohne in Wien.", "I live in Berlin.", {"Berlin": "Vienna"}).text)


def test_a_sentence_that_fits_is_not_refused_for_the_full_stop_that_it_is_lent(translators):
    model = replace(translators("cmlm"), closes=True)
    count, length = (lambda text: len(model.vocabulary.encode(text))), model.decoder.length
    words = next(text for n in range(40) if count(text := "Haus" + "5" * n) == length)
    assert count(words + ".") == length + 1
    assert model.alternatives(words, 1)[0].text
    assert model.fill(words, "I [2]")[0].text.startswith("I ")


def test_foreign_scripts_and_control_characters_are_noticed(translators):
    model = translators("padir")
    assert any("hardly de" in remark for remark in model.translate("これは日本語の文です", passes=1).remarks)
    assert any("hardly de" in remark for remark in model.translate("नमस्ते दुनिया", passes=1).remarks)
    for text in ("Haus…", "„Haus“ – Wien", "Wie geht’s?", "Haus 😀😀"):  # marks that it has not seen tell no language
        assert model.translate(text, passes=1).remarks == ()
    assert model.translate("\x00\x07 \t ", passes=1).text == ""
    assert model.translate("Guten\x00Morgen", passes=1).text == model.translate("Guten Morgen", passes=1).text


def test_the_language_it_should_translate_to_is_noticed(translators):
    """By log-odds of pieces, as training counts them: pieces of English words speak for English."""
    from dataclasses import replace

    model = translators("padir")
    odds = [0.0] * model.vocabulary.size
    for sign, text in (
        (2.0, "Der Hund schläft und das Haus ist gross"),
        (-2.0, "The dog is asleep and the house is big"),
    ):
        for code in model.vocabulary.encode(text):
            odds[code] += sign
    noticing = replace(model, odds=tuple(odds))
    assert any("looks like en" in one for one in noticing.translate("The dog is asleep", passes=1).remarks)
    assert noticing.translate("Der Hund schläft", passes=1).remarks == ()


def test_the_likeliest_lengths_are_those_of_the_posterior():
    log_lengths = torch.tensor([0.1, 0.4, 0.2, 0.3]).log()
    assert [one.length for one in likeliest_lengths(log_lengths, 3)] == [2, 4, 3]
    assert [one.length for one in likeliest_lengths(log_lengths, 9, least=3)] == [4, 3]


def test_several_lengths_are_decoded_side_by_side_and_ranked(translators):
    model = translators("padir")
    source = model.vocabulary.encode(SOURCE)
    for reward, prior in ((0.0, 0.0), (0.1, 0.0), (3.0, 0.0), (0.0, 0.2), (0.1, 50.0)):
        how = Decoding(passes=2, lengths=4, reward=reward, prior=prior)
        found = model.decoder.decode([source, source[:3]], how)
        assert [len(one) for one in found] == [4, 4]
        for some in found:
            likely = [one.log_prob - one.score * len(one.codes) for one in some]  # log p(n | source)
            by = [one.score + reward * len(one.codes) + prior * nats for one, nats in zip(some, likely)]
            assert by == pytest.approx(sorted(by, reverse=True), abs=1e-4)
            if prior == 50.0:  # then nothing else counts
                assert likely == pytest.approx(sorted(likely, reverse=True), abs=1e-4)
    joint = model.decoder.decode([source], Decoding(passes=2, lengths=4, rank="joint"))[0]
    assert joint[0].log_prob == max(one.log_prob for one in joint)


@pytest.mark.parametrize("recipe", PARALLEL)
def test_where_words_are_fixed_it_is_the_whole_that_counts_theirs_included(translators, recipe):
    """log p(n) + log p(fixed) + log p(others): of the fixed ones given the row, or before any word is known."""
    model, core = translators(recipe), translators(recipe).decoder.model
    source, own = model.vocabulary.encode(SOURCE), model.vocabulary.encode("Berlin")
    fixed = [
        Fixed(len(own) + more, {at + i: c for i, c in enumerate(own)}, frozenset()) for more, at in ((0, 1), (3, 3))
    ]
    found = model.decoder.decode([source], Decoding(passes=2), ways=lambda _: fixed)[0]
    assert [one.log_prob for one in found] == sorted((one.log_prob for one in found), reverse=True)
    alone = next(one for one in found if len(one.codes) == len(own))
    assert alone.score == 0.0  # which is the best of means
    memory = core.read(torch.tensor([source]))
    x = torch.tensor([[len(own), *own]])
    known = torch.ones_like(x, dtype=torch.bool)
    known[:, 1:] = recipe in NOISY
    with torch.no_grad():
        fit = core.marginals(x, known, memory).log_prob(x)[0, 1:].sum().item()
        length = memory.lengths.log_softmax(-1)[0, len(own) - 1].item()
    assert alone.log_prob == pytest.approx(length + fit, abs=1e-4)


def test_phrases_take_places_that_do_not_overlap(vocabulary):
    size = len(vocabulary.encode("Berlin"))
    fixed = placements([Keep("Berlin"), Keep("Berlin")], 2 * size + 1, vocabulary)
    assert len(fixed) == 3
    assert all(len(one.codes) == 2 * size for one in fixed)
    assert placements([Keep("Berlin", 2)], size, vocabulary) == []
    assert parse_keep("New York@3") == Keep("New York", 3)
    assert parse_keep("me@home") == Keep("me@home")
    lengths = sorted(one.length for one in parse_template("I [2] ___", vocabulary).fixed(40))
    begin = len(vocabulary.encode("I")) + 2
    assert lengths == [begin + i for i in range(1, 9)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.translate(SOURCE, passes=0), "passes"),
        (lambda m: m.translate(SOURCE, keep=["Berlin@0"]), "a place from 1"),
        (lambda m: m.translate(SOURCE, keep=["Berlin@99"]), "words that fit"),
        (lambda m: m.translate([SOURCE, SOURCE], keep=["Berlin"]), "one sentence"),
        (lambda m: m.fill(SOURCE, "no blank"), "a blank in it"),
        (lambda m: m.translate(None), "a text, or several, got None"),
        (lambda m: m.translate(["a", 5]), "a text, or several, got 5"),
        (lambda m: m.fill(SOURCE, "___ a ___ b ___ c ___"), "at most 3 blanks"),
        (lambda m: m.fill("", "___"), "a sentence of 1 to"),
        (lambda m: m.score(SOURCE, ""), "pieces"),
        (lambda m: m.translate(SOURCE, keep=5), "keep: expected a text, or several, got 5"),
        (lambda m: m.translate(SOURCE, keep=[None]), "keep: expected a text, or several, got None"),
        (lambda m: m.alternatives(None), "text: expected a text, got None"),
        (lambda m: m.fill(SOURCE, None), "expected a text, got None"),
        (lambda m: m.adapt(SOURCE, None, {"a": "b"}), "expected a text, got None"),
        (lambda m: m.adapt(SOURCE, "a", {"a": 5}), "expected a text, got 5"),
        (lambda m: m.score(5, "a"), "expected a text, got 5"),
        (lambda m: m.translate("Guten \udcff Morgen"), "text in UTF-8, got byte 0xff"),
        (lambda m: m.fill(SOURCE, "I \udcff ___"), "text in UTF-8"),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(translators, call, message):
    with pytest.raises(ValueError, match=message) as error:
        call(translators("padir"))
    assert "\n" not in str(error.value)


def test_without_a_model_it_says_how_to_make_one(tmp_path):
    with pytest.raises(ValueError, match="anyfill translate train"):
        load(to="fr")
    with pytest.raises(ValueError, match="not a model folder"):
        load(tmp_path)


@pytest.mark.parametrize("recipe", ["padir", "autoregressive"])
def test_a_text_that_no_mark_closes_is_read_with_a_full_stop_and_its_translation_loses_it(translators, recipe):
    model = translators(recipe)
    texts = ["Ich wohne in Wien", "Datei", "Das Haus ist rot.", "Wo ist der Bahnhof?", ""]
    closing = [one.text for one in replace(model, closes=True).translate(texts)]
    said = [one.text for one in model.translate(["Ich wohne in Wien.", "Datei.", *texts[2:]])]
    assert closing == [*map(opened, said[:2]), *said[2:]]
    assert [is_open(text) for text in texts] == [True, True, False, False, False]
    assert all(is_open(text) for text in ("Datei ⟦0⟧", "⟦0⟧Halt⟦1⟧", "Halt. ⟦0⟧"))
    assert not is_open("⟦0⟧Halt.⟦1⟧")
    assert opened("I live in Vienna .") == "I live in Vienna"
    assert opened("Open. ⟦0⟧⟦1⟧") == "Open ⟦0⟧⟦1⟧"
