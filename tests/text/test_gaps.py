"""Missing letters and doubted words: what is proposed fits, what is ranked first is likeliest by the whole text."""

import itertools
import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.cli import main as cli
from anyfill.text import doubts as doubts_module
from anyfill.text.bpe import train_bpe
from anyfill.text.counting import (
    count,
    counted_log_prob,
    counted_log_probs,
    in_sentence,
    likely_words,
    parts_of,
    weighed,
)
from anyfill.text.doubts import _is_two_edits, check, doubted, edits
from anyfill.text.gaps import matching, restore, spelt
from anyfill.text.model import TextModel
from anyfill.text.vocabulary import TEXT8
from anyfill.text.word_proposals import WIDE
from anyfill.text.word_search import word_candidates

LINES = [
    "The cat sat on the mat.",
    "A dog sat on the log.",
    "The dog ate a bone.",
    "I don't know the man.",
    "I see him.",
]
PIECES = train_bpe(["the cat sat on the mat. " * 9], 270)
COUNTS_OF = LINES * 30 + ["The hat is on the mat.", "The cot is old.", "Tom can't go home."]


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    path = tmp_path_factory.mktemp("counts") / "a.txt"
    path.write_text("\n".join(COUNTS_OF))
    return count(path, order=3)


def words(counts) -> list[str]:
    return [word for word in counts.vocabulary.words if word[0].isalpha()]


@pytest.mark.parametrize("text", ["The c_t s_t on the m_t.", "A d_g ___ a bone.", "I s__ h_m."])
def test_a_restored_text_is_the_likeliest_of_all_that_fit(counts, text: str) -> None:
    found = restore(text, counts)
    assert len(found.text) == len(text)
    assert all(a == b for a, b in zip(found.text, text) if b != "_"), "what is given is never changed"
    fits = [
        [
            one
            for one in words(counts)
            if len(one) == len(change.written) and all(b in ("_", a) for a, b in zip(one, change.written))
        ]
        for change in found.changes
    ]

    def filled(choice) -> str:
        made = text
        for change, word in zip(found.changes, choice):
            made = made[: change.offset] + word + made[change.offset + len(word) :]
        return made

    best = max(map(filled, itertools.product(*fits)), key=lambda one: counted_log_prob(counts, one))
    assert found.text == best


def test_other_gap_characters_and_words_that_nothing_fits(counts) -> None:
    assert restore("The c▯t s□t on the mat.", counts).text == "The cat sat on the mat."
    assert restore("The c#t sat_on.", counts, gaps="#").text.startswith("The c")
    odd = restore("zz_zz c_t", counts)
    assert odd.text.startswith("zz_zz ")
    assert odd.changes[0].bits == math.inf


def test_a_text_without_gaps_is_returned_as_it_is(counts) -> None:
    found = restore("The cat", counts)
    assert (found.text, found.changes) == ("The cat", ())


def test_a_pattern_of_a_crossword_is_met_by_all_words_that_fit(counts) -> None:
    assert set(matching(counts, "_at")) == {word for word in words(counts) if len(word) == 3 and word[1:] == "at"}
    assert matching(counts, "_at", before="The cat sat on the", behind=".")[0] == "mat"
    assert matching(counts, "qqqq_") == []


@given(st.text(alphabet="abc", min_size=1, max_size=5), st.text(alphabet="abc", min_size=1, max_size=5))
def test_edits_are_those_of_a_plain_distance(one: str, other: str) -> None:
    def distance(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        steps = [distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0])]
        return min(steps)

    exact = distance(one, other)
    swapped = {one[:i] + one[i + 1] + one[i] + one[i + 2 :] for i in range(len(one) - 1)}
    if one != other:
        assert (other in set(edits(one))) == (exact == 1 or other in swapped)
    if max(len(one), len(other)) >= 4:
        assert _is_two_edits(one, other) == (exact <= 2)


def test_a_wrong_word_is_doubted_and_a_right_one_is_not(counts) -> None:
    found = check("The caat sat on the mat.", counts)
    assert [(one.written, one.word) for one in found.changes] == [("caat", "cat")]
    doubts = {one.written: one.word for one in check("The cot sat on the mat.", counts, threshold=-math.inf).changes}
    assert doubts["cot"] == "cat", "the likeliest of what looks alike"
    assert found.text == "The cat sat on the mat."
    assert check("The cat sat on the mat.", counts).changes == ()
    assert check("I don't knwo the man.", counts).changes[0].word == "know"
    assert "Zzyx" not in [one.written for one in check("Zzyx sat on the log.", counts).changes], "it may be a name"
    several = check("The cat sat on the mat.\n\nA dgo sat on the log.", counts)
    assert several.changes[0].offset == 27
    assert several.text.endswith("A dog sat on the log.")


def test_gains_are_those_of_the_channel(counts) -> None:
    (one,) = check("A dgo sat on the log.", counts, threshold=-math.inf, most=1).changes
    meant = counted_log_prob(counts, "A dog sat on the log.")
    ways = 3 + 4 * 27 + 3 * 26 + 2
    written = counted_log_prob(counts, "A dgo sat on the log.") - math.log(1e5)
    gain = meant + math.log(0.02 / ways) - written - math.log(0.98)
    assert one.bits == pytest.approx(gain / math.log(2), abs=1e-3)


def test_a_model_spells_letters_by_itself(tiny) -> None:
    loaded = tiny(TEXT8, 24)
    found = spelt(loaded, "the c□t s_t")
    assert found.text == loaded.fill("the c_t s_t", n=1, letters=True)[0].text
    assert [one.written for one in found.changes] == ["c□t", "s_t"]


@pytest.mark.parametrize("vocabulary", [TEXT8, PIECES])
def test_a_model_alone_doubts_by_the_same_channel(tiny, vocabulary) -> None:
    loaded = tiny(vocabulary, 24)
    seen = doubted(loaded, "the cat sat", threshold=-math.inf, most=2)
    assert len(seen.changes) == 2
    bits = loaded.score("the cat sat").bits
    for one in seen.changes:
        better = "the cat sat"[: one.offset] + one.word + "the cat sat"[one.offset + len(one.written) :]
        size = len(one.word)
        ways = size + (size + 1) * 27 + size * 26 + max(size - 1, 0)
        expected = bits - loaded.score(better).bits + math.log2(0.02 / ways) - math.log2(0.98)
        assert one.bits == pytest.approx(expected, abs=1e-4)
        assert one.word in set(edits(one.written))


def test_counts_propose_words_that_the_beams_miss(tiny, counts, monkeypatch) -> None:
    loaded = tiny(TEXT8, 32)
    narrow = partial(word_candidates, breadth=WIDE._replace(width=2))
    monkeypatch.setattr("anyfill.text.fill.word_candidates", narrow)
    monkeypatch.setattr("anyfill.text.word_search.from_both_sides", lambda *_: iter(()))
    alone = {one.answers[0] for one in loaded.fill("the ____ sat on", n=999)}
    both = {one.answers[0] for one in loaded.fill("the ____ sat on", n=999, counts=counts)}
    likely = {one for one in likely_words(counts, "the ", " sat on") if one.islower() and one.isalpha()}
    assert likely <= both
    assert not likely <= alone
    ranked = loaded.fill("the ____ sat on", n=9, counts=counts, weights=(0.0, 1.0))
    values = [counted_log_prob(counts, one.text) for one in ranked]
    assert values == sorted(values, reverse=True)
    assert "words are ranked by p(counts)^1;" in ranked.remarks[-1]
    for one in ranked:
        assert one.log2_probability == pytest.approx(-loaded.score(one.text).bits, abs=1e-6)


def test_the_commands_count_restore_and_check(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("\n".join(COUNTS_OF))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(["text", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    code, out, _ = run("count", "a.txt", "-o", "a.counts", "--order", "3")
    assert code == 0
    assert "saved in a.counts" in out
    assert run("count", "a.txt", "-o", "a.counts")[0] == 2
    assert run("restore", "The c_t s_t on the m_t.", "--counts", "a.counts")[1] == "The cat sat on the mat.\n"
    Path("crlf.txt").write_bytes(b"The c_t\r\nThe m_t\r\n")
    assert run("restore", "--file", "crlf.txt", "--counts", "a.counts")[1] == "The cat\r\nThe mat\r\n"
    code, out, _ = run("check", "The caat sat on the mat.", "--counts", "a.counts", "--json")
    assert json.loads(out)["changes"][0]["word"] == "cat"
    for bad, words in (
        (("check", "a b", "--counts", "a.txt"), "expected a file of n-grams"),
        (("check", "a b", "--weights", "1,1", "--model", "text8"), "--weights: expected --counts"),
        (("check", "a b", "--counts", "a.counts", "--threshold", "nan"), "--threshold: expected a number"),
        (("restore", "a_b", "--counts", "a.counts", "--weights", "x"), "--weights: expected two numbers"),
        (("count", "missing.txt", "-o", "b"), "missing.txt: expected a text file"),
        (("fill", "a ____", "--weights", "1,1", "--model", "text8"), "--weights: expected --counts"),
        (("count", "a.txt", "-o", "b", "--least", "1,x"), "--least: expected whole numbers"),
        (("count", "a.txt", "-o", "b", "--least", "1,3,2"), "least: expected at most 5 numbers that never fall"),
        (("count", "a.txt", "-o", "b", "--bits", "4"), "bits: expected"),
    ):
        code, out, err = run(*bad)
        assert (code, out) == (2, "")
        assert words in err
        assert len(err.strip().splitlines()) == 1
    assert run("count", "a.txt", "-o", "s.counts", "--order", "3", "--least", "1,1,2", "--bits", "8")[0] == 0
    assert Path("s.counts").stat().st_size < Path("a.counts").stat().st_size
    assert run("restore", "The c_t s_t on the m_t.", "--counts", "s.counts")[1] == "The cat sat on the mat.\n"
    assert run("count", "a.txt", "-o", "p.counts", "--units", "pieces", "--vocabulary-size", "270")[0] == 0
    assert "n-grams of words, got n-grams of pieces" in run("check", "a b", "--counts", "p.counts")[2]


def test_a_line_of_one_word_and_a_mark_keeps_nobody_from_the_others(tiny) -> None:
    loaded = tiny(TEXT8, 24)
    alone = doubted(loaded, "the cat sat", threshold=-math.inf)
    seen = doubted(loaded, "Hello!\nthe cat sat", threshold=-math.inf)
    assert [replace(one, offset=one.offset - 7) for one in seen.changes] == list(alone.changes)
    assert doubted(loaded, "Hello!", threshold=-math.inf).changes == ()


@given(st.lists(st.sampled_from(["Tom", "sat.", "I", "x" * 90, "cat", " ", "\t", "ok!", "on,"]), max_size=120))
def test_the_parts_that_a_model_reads_are_together_the_line(words: list[str]) -> None:
    line = " ".join(words)
    parts = parts_of(line)
    assert "".join(part for _, part in parts) == line
    assert all(line[start:].startswith(part) and len(part.strip()) <= 250 for start, part in parts)
    assert len(line) > 250 or parts == [(0, line)], "what is short is read as it is"
    assert all(not one[-1:].strip() or not other[:1].strip() for (_, one), (_, other) in itertools.pairwise(parts))


@pytest.mark.parametrize("has_counts", [True, False])
def test_what_a_model_reads_grows_with_a_line_and_not_with_its_square(tiny, counts, monkeypatch, has_counts) -> None:
    loaded = replace(tiny(PIECES, 600), counts=counts if has_counts else None)
    read: list[int] = []

    def counted(model, texts: list[str]) -> list[float]:
        read.extend(map(len, texts))
        return [float(-len(text)) for text in texts]

    monkeypatch.setattr(doubts_module, "log_probs_of", counted)
    sentence = "The caat sat on the mta and a dgo ate a bnoe. "
    assert check("The cat.", model=loaded, threshold=-math.inf)  # what is made once
    found = dict[int, int]()
    for often in (20, 40):
        read.clear()
        doubted_words = check(sentence * often, model=loaded, threshold=-math.inf, most=1000).changes
        assert {one.offset // len(sentence) for one in doubted_words} >= set(range(0, often, 5))
        found[often] = sum(read)
    assert found[40] < 2.2 * found[20]


def test_a_model_alone_may_find_nothing_that_looks_alike(tiny) -> None:
    loaded = tiny(train_bpe(["the cat sat on the mat. " * 9], 270), 24)
    assert doubted(loaded, "I the", threshold=-math.inf).text


def test_what_comes_with_the_model_restores_and_checks_where_nothing_is_said(tiny, counts) -> None:
    loaded = replace(tiny(TEXT8, 40), counts=counts)
    assert restore("the c_t sat", model=loaded) == restore("the c_t sat", counts, model=loaded)
    assert check("the caat sat on", model=loaded) == check("the caat sat on", counts, model=loaded)
    alone = replace(loaded, counts=None)
    assert restore("the c_t sat", model=alone) == spelt(alone, "the c_t sat")
    assert check("the caat sat", model=alone) == doubted(alone, "the caat sat")


def test_a_model_spells_what_no_counted_word_fits_and_keeps_the_rest(tiny, counts) -> None:
    loaded = replace(tiny(TEXT8, 40), counts=counts)
    text = "the c_t sat on the zq_j"
    found = restore(text, model=loaded)
    assert [one.written for one in found.changes] == ["c_t", "zq_j"]
    assert found.changes[0].word == restore("the c_t sat on the zq_j", counts).changes[0].word
    assert found.changes[1].word.isalpha()
    assert all(a == b for a, b in zip(found.text, text) if b != "_")
    assert len(found.text) == len(text)
    assert math.isinf(restore(text, counts).changes[1].bits), "without a model the gap stays"


def test_of_a_long_text_only_the_sentences_with_what_no_word_fits_are_spelt(tiny, counts, monkeypatch) -> None:
    loaded, asked = replace(tiny(TEXT8, 300), counts=counts), list[str]()
    fill = TextModel.fill
    monkeypatch.setattr(TextModel, "fill", lambda self, text, **how: asked.append(text) or fill(self, text, **how))
    before, behind = "The cat sat on the mat. " * 11, " The c_t sat on the mat." * 11
    found = restore(f"{before}A zq_j sat.{behind}", model=loaded)
    assert len(asked) == 1
    assert len(asked[0]) <= 250
    assert "A zq_j sat." in asked[0]
    odd, *others = found.changes
    assert found.text[odd.offset : odd.offset + 4] == odd.word != odd.written == "zq_j"
    assert len(others) == 11
    assert len(found.text) == len(before) + 11 + len(behind)


@given(
    st.lists(st.sampled_from(["The", "cat", "sat", "zz", "on"]), max_size=5),
    st.lists(st.sampled_from(["the", "mat", ".", "!"]), max_size=5),
    st.booleans(),
)
def test_counts_say_of_words_in_a_place_what_they_say_of_texts(counts, before, behind, is_whole: bool) -> None:
    words = ["cat", "dog", "zzz", "well known", "don't"]
    sides = " ".join(before), " ".join(behind)
    found = counted_log_probs(counts, sides[0], words, sides[1], is_whole=is_whole)
    texts = [" ".join([*before, word, *behind]) for word in words]
    coded = [[counts.begin, *counts.vocabulary.encode(one).tolist()] for one in texts]
    expected = [float(counts.terms([*one, counts.end] if is_whole else one)[1:].sum()) for one in coded]
    assert (found - found[0]).tolist() == pytest.approx([one - expected[0] for one in expected], abs=1e-4)
    listed = weighed(counts, *sides, is_whole=is_whole)
    cat, dog = (int(counts.vocabulary.encode(word)[0]) for word in ("cat", "dog"))
    assert found[1] - found[0] == pytest.approx(listed[dog] - listed[cat], abs=1e-6)


@pytest.mark.parametrize(
    ("before", "behind", "expected"),
    [
        ("He saw a ", " there.", ("He saw a ", " there.")),
        ("It rained. He saw a ", " there. Then he left.", ("He saw a ", " there.")),
        ("It rained. ", " was wet.", ("", " was wet.")),
        ('"Stop!" ', " said Mr. Smith.", ("", " said Mr. Smith.")),
        ("I met Mr. ", " and St. Nick", ("I met Mr. ", " and St. Nick")),
        ("one line\nI ", " it\nanother", ("I ", " it")),
        ("It costs 3.5 ", " or so.", ("It costs 3.5 ", " or so.")),
    ],
)
def test_counts_look_at_the_sentence_of_a_blank(before: str, behind: str, expected: tuple[str, str]) -> None:
    assert in_sentence(before, behind) == expected


@pytest.mark.parametrize("ask", [lambda text, **how: check(text.replace("_", "a"), **how), restore])
def test_a_script_that_the_model_cannot_read_is_refused(tiny, counts, ask) -> None:
    """With its counts and without: nothing is called right, or left open, that nobody has read."""
    for loaded in (tiny(PIECES, 32), replace(tiny(PIECES, 32), counts=counts), tiny(TEXT8, 32)):
        with pytest.raises(ValueError, match="letters that the model knows"):
            ask("\u05d0_\u05d1 the cat", model=loaded)
    assert ask("the \u05d0 c_t", counts=counts).text, "counts alone read words, whatever they are written in"


def test_nothing_to_read_is_refused(counts) -> None:
    with pytest.raises(ValueError, match="text: expected some words"):
        check(" \n", counts)
    with pytest.raises(ValueError, match="--gaps: expected at least one character"):
        restore("the c_t", counts, gaps="")
