"""Blanks that are words: which they are, ranked by the whole text; and one log p for fill and score."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill import text as face
from anyfill.evaluation import log_prob
from anyfill.questions import Factorization, Question
from anyfill.text.blanks import blank_window, is_one_word, sheet_of
from anyfill.text.bpe import train_bpe
from anyfill.text.counting import CountedPlace
from anyfill.text.generate import Writer
from anyfill.text.ngram_counts import count_ngrams
from anyfill.text.template import Lengths, parse
from anyfill.text.vocabulary import TEXT8, Characters, Utf8, WithEnd
from anyfill.text.word_proposals import Breadth, Spelt, from_the_left, word_codes
from anyfill.text.word_search import direct_log_probs, word_candidates
from anyfill.text.word_window import ReadWindow
from anyfill.text.words import Words

PIECES = train_bpe(["the cat sat on the mat and the dog sat on the log. " * 9], 290)
ABC = Characters(" abc.")


def read(text: str, **options) -> list[tuple[bool, int, int]]:
    template = parse(text, unstated=Lengths(1, 3), word=Lengths(1, 9), **options)
    return [(one.is_word, one.minimum, one.maximum) for one in template.blanks]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the ____ sat", [(True, 1, 9)]),
        ("____, he said (___)", [(True, 1, 9), (True, 1, 9)]),
        ("l_st in 19__", [(False, 1, 1), (False, 2, 2)]),
        ("the _", [(True, 1, 9)]),
        ("the __[2]", [(False, 4, 4)]),
        ("the []", [(False, 1, 3)]),
    ],
)
def test_a_run_by_itself_is_a_word_and_beside_letters_so_many_letters(text: str, expected: list) -> None:
    assert read(text) == expected


def test_whoever_asks_for_any_length_gets_no_word() -> None:
    assert read("the ____ sat", free=True) == [(False, 1, 3)]
    assert parse("a ____", unstated=Lengths(1, 3)).blanks == (Lengths(4, 4),)


VOCABULARIES = {
    "text8": (TEXT8, 24, {}),
    "characters": (ABC, 14, {}),
    "bytes": (Utf8(), 16, {}),
    "words": (Words(("the", "cat", "sat", "."), punctuation=True), 8, {}),
    "pieces": (PIECES, 16, {}),
    "lines": (ABC, 14, {"lines": True, "lengths": (0, 0, 4, 9, 3, 1)}),
    "ended": (WithEnd(ABC), 14, {"lines": True, "factorizations": (Factorization.PREFIX,)}),
}


@pytest.mark.parametrize("kind", VOCABULARIES)
@settings(max_examples=6)
@given(data=st.data())
def test_fill_and_score_have_one_log_p_of_every_text(tiny, kind: str, data: st.DataObject) -> None:
    vocabulary, length, about = VOCABULARIES[kind]
    loaded = tiny(vocabulary, length, **about)
    words = st.lists(
        st.sampled_from(["a", "b", "ca"] if vocabulary.plain is ABC else ["the", "cat", "sat"]), max_size=9
    )
    before, behind = data.draw(words), [] if kind == "ended" else data.draw(words)
    if about.get("lines"):
        before, behind = before[:2], behind[:2]
    blank = data.draw(st.sampled_from(["____", "[2]"] if kind not in ("words", "ended") else ["____"]))
    found = loaded.fill(" ".join([*before, blank, *behind]), n=3, seed=1, lengths=None if kind == "words" else "1-3")
    for one in found:
        assert one.log2_probability == pytest.approx(-loaded.score(one.text).bits, abs=1e-6)


def test_what_fill_draws_of_a_script_that_score_refuses_is_no_answer(tiny) -> None:
    loaded = tiny(PIECES, 16)
    sheet = sheet_of(parse("the [2]", unstated=Lengths(2, 2), tokens=True), PIECES)
    lead = sheet.leads[0]
    for letter, is_read in (("\u00e9", True), ("\u0511", False), ("\u05d0", False)):  # Latin, Cyrillic, Hebrew
        codes = PIECES.encode(lead + letter)
        assert (sheet.answer(0, codes) == letter) == is_read
        if is_read:
            assert loaded.score(letter).bits > 0
        else:
            with pytest.raises(ValueError, match="Latin"):
                loaded.score(letter)


def test_words_of_one_piece_are_looked_for_at_the_length_that_is_stated(tiny, monkeypatch) -> None:
    loaded = tiny(PIECES, 16)
    texts = [PIECES.decode(torch.tensor([code])) for code in range(PIECES.size)]
    for size in (1, 3):
        wanted = {text[1:] for text in texts if len(text) == size + 1 and text[0] == " " and text[1:].isalpha()}
        sheet = sheet_of(loaded.template(f"the {'_' * size} sat", letters=True), PIECES)
        window = blank_window(sheet, range(1), (), loaded.length)
        monkeypatch.setattr("anyfill.text.word_proposals.ALL_BOTH", len(wanted))  # room for none of another length
        *_, (found, _) = word_candidates(loaded, sheet, 0, window, breadth=Breadth(1, 1, 0))
        assert found is not None
        assert wanted
        assert wanted <= {one.answers[0] for one in found[0]}, "from both sides alone"


def test_fill_and_score_agree_about_texts_longer_than_a_row_and_their_order_is_that_of_their_shares(tiny) -> None:
    loaded = tiny(TEXT8, 24)
    for text in ("the cat sat on the mat and the ____ sat on the log", "a ____ is", "____"):
        found = loaded.fill(text, n=9, seed=1)
        bits = [loaded.score(one.text).bits for one in found]
        assert [one.log2_probability for one in found] == pytest.approx([-one for one in bits], abs=1e-6)
        if found.whole:
            assert bits == sorted(bits), "what fill ranks first, score finds likelier"


@pytest.mark.parametrize("kind", ["text8", "pieces", "characters", "words"])
def test_every_word_of_one_code_is_found_and_ranked_by_the_whole_text(tiny, kind: str) -> None:
    vocabulary, length, _ = VOCABULARIES[kind]
    loaded = tiny(vocabulary, length)
    before, behind = ("ab", "ca") if kind == "characters" else ("the", "sat")
    sheet = sheet_of(parse(f"{before} _ {behind}", unstated=Lengths(1, 1), word=Lengths(1, 1)), vocabulary)
    ways = {sheet.answer(0, torch.tensor([code])): code for code in range(vocabulary.size)}
    ways.pop(None, None)
    found = loaded.fill(f"{before} ____ {behind}", n=999, lengths="1")
    assert {one.answers[0] for one in found} == {one for one in ways if one is not None and is_one_word(one)}
    shares = torch.tensor([-loaded.score(one.text).bits * math.log(2) for one in found], dtype=torch.float64).softmax(0)
    assert [one.share for one in found] == pytest.approx(shares.tolist(), abs=1e-4)


@given(st.sampled_from(["characters", "pieces", "bytes"]), st.sampled_from(["", " "]))
def test_codes_of_words_are_those_that_words_are_made_of(kind: str, lead: str) -> None:
    vocabulary = VOCABULARIES[kind][0]
    codes = word_codes(vocabulary, lead if kind == "pieces" else "")
    for word in ("ca", "b", "a"):
        first, *more = vocabulary.encode((lead if kind == "pieces" else "") + word).tolist()
        assert codes.first[first]
        assert all(codes.inside[code] and not codes.behind[code] for code in more)
    assert codes.behind[int(vocabulary.encode(".")[0])]
    assert codes.behind[int(vocabulary.encode(" ")[0])]


def test_at_the_end_of_a_text_a_blank_is_whole_words() -> None:
    found = face.load("text8").fill("the capital of france is _____", n=5)
    assert all(one.answers[0].isalpha() for one in found), "one word, not the beginning of two as 'the f'"
    assert {"the", "a"} <= {one.answers[0] for one in found}


@pytest.mark.parametrize(
    ("text", "name"),
    [("שלום ____ world", "HEBREW LETTER SHIN"), ("これは ____ です", "HIRAGANA LETTER KO"), ("мир ____", "CYRILLIC")],
)
def test_scripts_that_the_model_does_not_know_are_refused(text: str, name: str) -> None:
    model = face.load()
    for ask in (lambda: model.fill(text), lambda: model.score(text)):
        with pytest.raises(
            ValueError, match=rf"expected letters that the model knows .* \({name}.* at character 1"
        ) as it:
            ask()
        assert "\n" not in str(it.value)


def test_what_folding_changes_is_said(tiny) -> None:
    loaded = tiny(TEXT8, 40)
    found = loaded.fill("In 1905, Café Straße ____!", n=1)
    assert found.remarks[0] == "the model reads 'in one nine zero five cafe strasse ____'"
    assert loaded.fill("in the ____", n=1).remarks == []
    with pytest.raises(ValueError, match="blank: expected no digit at it, for this model reads digits as words"):
        loaded.fill("in 19__ he went")


def test_unknown_words_are_said_and_never_written_unless_asked(tiny) -> None:
    loaded = tiny(Words(("the", "cat", "sat"), punctuation=True), 8)
    assert loaded.fill("the frob ____ sat", n=9).remarks == ["unknown to the model, read as one symbol: 'frob'"]
    texts = loaded.generate(n=200, length=7, seed=0)
    assert not any("<unk>" in one for one in texts)
    assert any("<unk>" in one for one in loaded.generate(n=200, length=7, seed=0, unknown=True))
    writer = Writer(loaded, 5)
    assert writer._model().likelihood.impossible == (0,)


def test_marks_are_written_at_their_words() -> None:
    words = Words(("the", "United", "States", ",", "of", "(", ")", "!", "don't"), punctuation=True)
    text = "the United States, of (the States) don't!"
    assert words.written(words.encode(text)) == text
    assert torch.equal(words.encode(words.written(words.encode(text))), words.encode(text))


def test_words_may_be_ranked_by_both_readings_and_each_is_exact(tiny) -> None:
    """p(text)^a p(word | both sides)^d, the second factor against the plain log p of that question."""
    loaded = replace(tiny(PIECES, 24), readings=(0.25, 0.75))
    found = loaded.fill("the ____ sat on the mat", n=8, seed=0)
    before, behind = PIECES.encode("the").long(), PIECES.encode(" sat on the mat").long()
    value = []
    for one in found:
        word = PIECES.encode(" " + one.answers[0]).long()
        codes = torch.cat([before, word, behind])
        x = torch.zeros(1, 24, dtype=torch.int64)
        x[0, : len(codes)] = codes
        place = torch.arange(24).unsqueeze(0)
        asked = (place >= len(before)) & (place < len(before) + len(word))
        direct = log_prob(loaded.model, x, Question((place < len(codes)) & ~asked, asked)).value
        value.append(0.25 * one.log2_probability * math.log(2) + 0.75 * float(direct))
    assert value == sorted(value, reverse=True)
    shares = [one.share for one in found]
    assert [math.log(one / shares[0]) for one in shares] == pytest.approx([one - value[0] for one in value], abs=1e-3)
    assert "p(word | both sides)^0.75" in found.remarks[-1]


@pytest.mark.parametrize("kind", ["text8", "pieces", "characters"])
def test_beginnings_that_stop_early_are_those_that_could_not_be_kept(tiny, kind: str) -> None:
    """From the left, of the k best words that a beam finds none is lost where it gives up what is less likely."""
    vocabulary, length, _ = VOCABULARIES[kind]
    loaded = tiny(vocabulary, length)
    before, behind = ("ab", "ca") if kind == "characters" else ("the", "sat")
    template = parse(f"{before} ____ {behind}", unstated=Lengths(1, 3), word=Lengths(1, 4))
    sheet = sheet_of(template, vocabulary)
    window = blank_window(sheet, range(1), (), loaded.length)
    codes = word_codes(vocabulary, sheet.leads[0])
    read = ReadWindow(loaded.model, window)
    every = from_the_left(read, codes, Spelt(""), Breadth(12, 10**6, 0))
    assert len(every) > 12
    for kept in (1, 3, 8):
        some = from_the_left(read, codes, Spelt(""), Breadth(12, kept, 0))
        assert [one.tolist() for one in some] == [one.tolist() for one in every[:kept]]


def test_where_all_three_have_a_say_the_best_by_the_two_quick_ones_are_compared(tiny, monkeypatch) -> None:
    loaded = replace(tiny(PIECES, 24), readings=(0.5, 0.25))
    words = Words(("the", "cat", "sat", "on", "mat", "dog", "log"), punctuation=True)
    counts = count_ngrams([words.encode(one).tolist() for one in ("the cat sat on the mat", "the dog sat")], words)
    ask = {"seed": 0, "counts": counts, "weights": (1.0, 0.5)}
    every = [one.answers[0] for one in loaded.fill("the ____ sat on the mat", n=999, **ask)]
    window = blank_window(sheet_of(loaded.template("the ____ sat on the mat"), PIECES), range(1), (), 24)
    direct = direct_log_probs(ReadWindow(loaded.model, window), [PIECES.encode(f" {one}").long() for one in every])
    counted = CountedPlace.of(counts, "the ", " sat on the mat").log_probs(every)
    value = dict(zip(every, (direct + torch.from_numpy(counted)).tolist()))
    assert len(every) > 11
    monkeypatch.setattr("anyfill.text.word_search.SHORTLIST", 9)
    for n in (3, 11):  # all that are wanted are compared
        found = loaded.fill("the ____ sat on the mat", n=n, **ask)
        kept = sorted(value, key=lambda one: -value[one])[: max(n, 9)]
        assert found.candidates == len(kept)
        assert [one.answers[0] for one in found] == sorted(kept, key=every.index)[:n]
    assert loaded.fill("the c_t sat", n=1, **ask).candidates > 9, "where all spellings are compared, all are"


@settings(max_examples=25)
@given(most=st.integers(1, 12), seed=st.integers(0, 99), scale=st.sampled_from([0.0, 1.0, 9.0]))
def test_words_that_are_not_read_to_their_end_could_not_have_been_kept(tiny, most, seed, scale) -> None:
    loaded = tiny(PIECES, 24)
    window = blank_window(sheet_of(loaded.template("the ____ sat on"), PIECES), range(1), (), 24)
    every = ["the", "cat", "sat", "on", "mat", "dog", "log", "and", "a", "cats", "doggo", "th", "thesat", "ox", "loga"]
    words = [PIECES.encode(f" {one}").long() for one in every]
    assert {len(one) for one in words} >= {1, 2, 3}
    beside = scale * torch.randn(len(words), generator=torch.Generator().manual_seed(seed)).double()
    whole = direct_log_probs(ReadWindow(loaded.model, window), words)
    read = ReadWindow(loaded.model, window)
    read.both([1, 2])  # others are read when they are asked for, if at all
    found = direct_log_probs(read, words, beside=beside, most=most)
    assert whole.isfinite().all()
    best = (whole + beside).topk(most).indices
    assert found[best].tolist() == pytest.approx(whole[best].tolist(), abs=1e-5)
    assert (found.isneginf() | (found - whole).abs().lt(1e-5)).all()
    assert sorted((found + beside).topk(most).indices.tolist()) == sorted(best.tolist())


def test_what_stands_around_a_blank_is_read_once(tiny) -> None:
    """Tokens of the first block: what stands before once for the search and the ranking, both sides once a length."""
    loaded = replace(tiny(PIECES, 64), readings=(0.5, 0.5))
    fed = list[int]()
    block = loaded.model.network.blocks[0].up
    hook = block.register_forward_hook(lambda block, given, out: fed.append(out.numel() // out.shape[-1]))
    try:
        read = ReadWindow(
            loaded.model, blank_window(sheet_of(loaded.template("the ____ sat on the mat"), PIECES), range(1), (), 64)
        )
        read.before()
        assert sum(fed) == 1 + len(read.window.given[0])
        read.both([1, 2, 3])
        fed.clear()
        read.before()
        read.both([2])
        read.both([1, 3])
        assert not fed
        with pytest.raises(ValueError, match="together"):
            read.both([3, 4])
    finally:
        hook.remove()


@pytest.mark.parametrize("text", ["the ____ sat on the mat", "the [1] sat on", "the ____ sat on the ____ ."])
def test_the_posterior_of_fills_is_that_of_score_however_they_are_ranked(tiny, text: str) -> None:
    """posterior / posterior = p(text) / p(text); shares go by the ranking, and are in its order."""
    words = Words(("the", "cat", "sat", "on", "mat", "dog", "log"), punctuation=True)
    counts = count_ngrams([words.encode(one).tolist() for one in ("the cat sat on the mat", "the dog sat")], words)
    loaded = replace(tiny(PIECES, 24), readings=(0.25, 0.5), counts=counts, weights=(1.0, 0.5))
    found = loaded.fill(text, n=9, seed=0)
    bits = [-loaded.score(one.text).bits for one in found]
    said = [math.log2(one.posterior / found[0].posterior) for one in found]
    assert said == pytest.approx([one - bits[0] for one in bits], abs=1e-3)
    shares = [one.share for one in found]
    assert shares == sorted(shares, reverse=True)
    by_text = replace(loaded, readings=(1.0, 0.0), counts=None, weights=(1.0, 0.0)).fill(text, n=9, seed=0)
    assert [one.share for one in by_text] == pytest.approx([one.posterior for one in by_text])


def test_the_model_that_ships_brings_its_counts_and_they_have_a_say() -> None:
    loaded = face.load()
    assert loaded.counts is not None
    assert loaded.weights[1] > 0
    found = loaded.fill("The dog ____ at the mailman.", n=3, seed=0)
    assert {one.answers[0] for one in found} & {"barks", "barked"}
    assert "p(counts)^" in found.remarks[-1]
    assert face.restore("I l_st my k_ys.").text == "I lost my keys."
    assert face.check("He goes to scohol every day.").text == "He goes to school every day."
