"""``anyfill text score``: its probabilities are probabilities, its sums are exact, what it cannot score it refuses."""

import itertools
import json
import math
import re
import unicodedata
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.cli import main as cli
from anyfill.evaluation import log_prob, terms
from anyfill.questions import Factorization, Increasing, Question
from anyfill.questions.question import chain_rank
from anyfill.rank import NEVER
from anyfill.text import scoring
from anyfill.text.folding import as_text8
from anyfill.text.model import TextModel
from anyfill.text.reading import Source, stretches
from anyfill.text.recipes import TEXT_SIZES, text_model, text_objective
from anyfill.text.report import coloured, score_text, visible
from anyfill.text.scoring import Scorer, Totals, log_prob_of, log_probs_of, text_windows
from anyfill.text.surprises import Gathered, Token
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.text.vocabulary import TEXT8, Characters, Utf8, Vocabulary, WithEnd
from anyfill.text.words import Words, common_words
from anyfill.training import save_model

ABC = Characters("abc")


@pytest.fixture(scope="module", autouse=True)
def _tiny_size():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TEXT_SIZES, "1M", (16, 1, 2))
        yield


def make(recipe: str, length: int, vocabulary, **about) -> TextModel:
    """A model with random weights that are large enough for its conditionals to differ."""
    model = text_model(recipe, length, vocabulary.size, size="1M", seed=3).eval()
    for number, parameter in enumerate(model.parameters()):
        drawn = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
        parameter.data += 0.4 * drawn
    model.factorizations = text_objective(recipe, length).factorizations
    return TextModel(model, vocabulary, recipe, **about)


def source(text: str, folder: Path, name: str = "text.txt") -> Source:
    path = folder / name
    path.write_bytes(text.encode())
    return Source(name, path)


def scored(scorer: Scorer, text: str, folder: Path) -> tuple[list[Token], Totals]:
    totals = Totals()
    tokens = [token for some, _ in scorer.tokens(source(text, folder), totals) for token in some]
    return tokens, totals


def one_by_one(text: TextModel, codes: torch.Tensor, given: int) -> list[float]:
    """log p of each code of a window from ``given`` on, each by a pass of its own."""
    model, row = text.model, torch.zeros(1, text.length, dtype=torch.int64)
    row[0, : len(codes)] = codes
    found = []
    for place in range(given, len(codes)):
        known = torch.arange(text.length)[None] < place
        with torch.no_grad():
            found.append(float(model.marginals(row, known).log_prob(row)[0, place]))
    return found


@pytest.mark.parametrize("context", ["half", "none"])
@pytest.mark.parametrize(("recipe", "order"), [("one_pass_spans", "increasing"), ("ardm", "decreasing")])
def test_the_probabilities_of_all_texts_of_a_length_sum_to_one(tmp_path, context, recipe, order) -> None:
    scorer = Scorer(make(recipe, 3, ABC), context, order)
    total, all_bits = 0.0, set()
    for text in itertools.product("abc", repeat=4):
        tokens, totals = scored(scorer, "".join(text), tmp_path)
        assert sum(token.bits for token in tokens) == pytest.approx(-totals.nats / math.log(2), abs=1e-9)
        total += math.exp(totals.nats)
        all_bits.add(round(totals.nats, 6))
    assert total == pytest.approx(1.0, abs=1e-5)
    assert len(all_bits) > 60, "the model tells texts apart"


@pytest.mark.parametrize("recipe", ["one_pass_spans", "left_to_right", "ardm", "mac_rest"])
@pytest.mark.parametrize("length", [6, 7])
@pytest.mark.parametrize("size", [1, 5, 6, 7, 9, 10, 23])
def test_every_token_has_the_term_of_its_window_asked_on_its_own(tmp_path, recipe, length, size) -> None:
    text = make(recipe, length, ABC)
    letters = "".join("abc"[i] for i in torch.randint(3, (size,), generator=torch.Generator().manual_seed(size)))
    codes = ABC.encode(letters).long()
    back, expected = length // 2, one_by_one(text, codes[:length], 0)
    for start in range(length - back, size - back, length - back):
        expected += one_by_one(text, codes[start : start + length], back)
    tokens, totals = scored(Scorer(text), letters, tmp_path)
    assert [token.text for token in tokens] == list(letters)
    assert [token.offset for token in tokens] == list(range(size))
    assert [-token.bits * math.log(2) for token in tokens] == pytest.approx(expected, abs=1e-5)
    assert (totals.tokens, totals.characters, totals.words) == (size, size, 1)
    apart = [one for start in range(0, size, length) for one in one_by_one(text, codes[start : start + length], 0)]
    tokens, totals = scored(Scorer(text, "none"), letters, tmp_path)
    assert [-token.bits * math.log(2) for token in tokens] == pytest.approx(apart, abs=1e-5)
    assert totals.windows == -(-size // length)


def test_terms_sum_to_the_log_probability_of_evaluation(generator) -> None:
    text = make("one_pass_spans", 8, ABC)
    x = torch.randint(3, (20, 8), generator=generator)
    kind = torch.randint(3, (20, 8), generator=generator)
    question = Question(kind == 0, kind == 1)
    rank = chain_rank(Increasing(), question)
    found = terms(text.model, x, rank, rows_per_pass=7)
    assert (found[~question.asked] == 0).all()
    expected = log_prob(text.model, x, question, factorization=Factorization.DIRECT)
    torch.testing.assert_close(found.sum(1), expected.value, atol=1e-6, rtol=0)
    assert (rank[kind == 2] == NEVER).all()


@pytest.mark.parametrize("vocabulary", [TEXT8, Utf8(), WithEnd(ABC)])
@pytest.mark.parametrize("recipe", ["one_pass", "ardm"])
def test_texts_side_by_side_score_as_each_does_alone(vocabulary, recipe, monkeypatch) -> None:
    loaded = make(recipe, 14, vocabulary, lines=vocabulary.end is not None)
    texts = ["abc", "abca", "bb", "cab"] + ([] if vocabulary.size < 10 else ["a cab, a bac", "Abc!"])
    alone = [log_prob_of(loaded, text) for text in texts]
    if not loaded.lines:
        monkeypatch.setattr("anyfill.text.scoring.log_prob_of", None)  # nobody is asked alone
    assert log_probs_of(loaded, texts) == pytest.approx(alone, abs=1e-4)


def test_of_the_fills_of_a_long_text_only_what_differs_is_read_again(monkeypatch) -> None:
    loaded = make("one_pass", 16, TEXT8)
    monkeypatch.setattr("anyfill.text.scoring._CELLS", 16)  # a window at a time
    read = list[int]()
    own = scoring.terms
    monkeypatch.setattr(scoring, "terms", lambda *parts, **how: read.append(1) or own(*parts, **how))
    text = "the cat sat on the mat and the dog sat on the log " * 6
    found = loaded.fill(text + "_ " + text, letters=True, n=9, seed=0)
    windows = len(read)
    assert [one.log2_probability for one in found] == [log_prob_of(loaded, one.text) / math.log(2) for one in found]
    alone = (len(read) - windows) / len(found)
    assert len(found) == 9
    assert windows <= alone + 9 * 3, "the two windows with the blank, and one beside it"


def test_shuffled_orders_give_a_bound_and_an_estimate_of_the_mean_over_all_orders(tmp_path) -> None:
    text = make("ardm", 3, ABC)
    row = ABC.encode("abc").long()[None]
    each = []
    for order in itertools.permutations(range(3)):
        known, value = torch.zeros(1, 3, dtype=torch.bool), 0.0
        for place in order:
            with torch.no_grad():
                value += float(text.model.marginals(row, known).log_prob(row)[0, place])
            known[0, place] = True
        each.append(value)
    values = torch.tensor(each, dtype=torch.float64)
    assert values.std() > 0.05
    scorer = Scorer(text, order="shuffled", orders=200, seed=1)
    assert scorer.kind == "bound"
    tokens, totals = scored(scorer, "abc", tmp_path)
    # Normal in good approximation: each fails by chance once in 3 million seeds.
    assert abs(totals.nats - float(values.mean())) < 5 * math.sqrt(totals.variance)
    assert abs(totals.estimate - float(values.logsumexp(0) - math.log(6))) < 5 * math.sqrt(totals.estimate_variance)
    assert 0 < totals.variance < 0.01
    assert sum(token.bits for token in tokens) == pytest.approx(-totals.nats / math.log(2), abs=1e-9)
    assert totals.passes == 600
    again = scored(scorer, "abc", tmp_path)
    assert again == (tokens, totals), "the same seed, the same orders"


def test_a_text_scores_alike_whatever_the_batches_and_blocks(tmp_path, monkeypatch) -> None:
    text, letters = make("one_pass_spans", 6, ABC), "abcab" * 30
    tokens, totals = scored(Scorer(text), letters, tmp_path)
    monkeypatch.setattr("anyfill.text.scoring._CELLS", 13)
    monkeypatch.setattr("anyfill.text.scoring.stretches", lambda *args, **more: stretches(*args, **more, block=7))
    again, other = scored(Scorer(text), letters, tmp_path)
    assert [token[:2] for token in again] == [token[:2] for token in tokens]
    assert [token.bits for token in again] == pytest.approx([token.bits for token in tokens], abs=1e-5)
    assert (other.tokens, other.windows, other.words) == (totals.tokens, totals.windows, totals.words)


def test_windows_come_before_the_text_has_ended() -> None:
    def endless():
        for number in itertools.count():
            yield torch.full((5,), number % 3), number == 0

    found = list(itertools.islice(text_windows(endless(), 8, half=True), 4))
    assert [window.given for window in found] == [0, 4, 4, 4]
    assert [len(window.codes) for window in found] == [8] * 4
    whole = torch.arange(30).div(5, rounding_mode="floor") % 3
    for number, window in enumerate(found):
        assert torch.equal(window.codes, whole[4 * number : 4 * number + 8])


ANY_TEXT = st.text(st.one_of(st.sampled_from("aZé 9\n\r\t.漢ß ,'-"), st.characters(codec="utf-8")), max_size=60)


@given(ANY_TEXT, st.integers(1, 9))
def test_folding_a_stream_is_folding_the_whole(tmp_path_factory, text: str, block: int) -> None:
    folder = tmp_path_factory.mktemp("s")
    text = text.removeprefix("\ufeff")
    foreign = [one for one in text if one.isalpha() and unicodedata.category(one) != "Lm" and not as_text8(one).strip()]
    if foreign:
        with pytest.raises(ValueError, match=r"expected letters that the model knows .* at character"):
            list(stretches(source(text, folder), TEXT8, block=block))
        return
    text = "".join(one for one in text if unicodedata.category(one)[0] != "N" or one.isascii())
    folded = as_text8(text).strip()
    if not folded.strip():
        with pytest.raises(ValueError, match=r"expected text with letters from a to z, got none"):
            list(stretches(source(text, folder), TEXT8, block=block))
        return
    found = list(stretches(source(text, folder), TEXT8, block=block))
    assert "".join("".join(one.texts) for one in found) == folded
    assert [offset for one in found for offset in one.offsets] == list(range(len(folded)))
    assert sum(one.words for one in found) == len(folded.split())
    assert [one.is_new for one in found] == [True] + [False] * (len(found) - 1)
    assert torch.equal(torch.cat([one.codes for one in found]), TEXT8.encode(folded).long())


@given(ANY_TEXT, st.integers(1, 9))
def test_a_stream_in_any_vocabulary_is_the_encoded_text_and_each_token_stands_at_its_offset(
    tmp_path_factory, text: str, block: int
) -> None:
    folder = tmp_path_factory.mktemp("s")
    text = text.removeprefix("\ufeff")
    if not text.split():
        return
    some = Words(("a", "Z", "9"), punctuation=True)
    for vocabulary in (Utf8(), Characters("".join(sorted({*text}))), common_words([text], 50), some):
        found = list(stretches(source(text, folder), vocabulary, block=block))
        codes = vocabulary.encode(text).long()
        assert torch.equal(torch.cat([one.codes for one in found]), codes)
        assert sum(one.characters for one in found) == len(text)
        assert sum(one.words for one in found) == len(text.split())
        texts = [one for part in found for one in part.texts]
        offsets = [one for part in found for one in part.offsets]
        assert all(text.startswith(one, at) for one, at in zip(texts, offsets))
        assert offsets == sorted(offsets)
        if not isinstance(vocabulary, Words):
            assert "".join(texts) == text
        else:
            assert texts == vocabulary.split(text)


def test_pieces_stand_for_their_characters_also_where_those_are_bytes() -> None:
    class Bytewise(Vocabulary):
        """Pieces "th" and "e", and bytes for all else."""

        def decode(self, codes):
            parts = [b"th" if code == 256 else b"e" if code == 257 else bytes([code]) for code in codes.tolist()]
            return b"".join(parts).decode(errors="replace")

    codes = torch.tensor([256, 257, *" 漢é".encode(), 257])
    texts, offsets = Bytewise().spell("the 漢ée", codes)
    assert texts == ["th", "e", " ", "漢", "", "", "é", "", "e"]
    assert offsets == [0, 2, 3, 4, 4, 4, 5, 5, 6]


def test_bytes_of_a_character_are_summed(tmp_path) -> None:
    text = make("one_pass_spans", 8, Utf8())
    tokens, totals = scored(Scorer(text), "né漢x", tmp_path)
    each = one_by_one(text, Utf8().encode("né漢x").long(), 0)
    assert [token.text for token in tokens] == list("né漢x")
    expected = [-sum(part) / math.log(2) for part in (each[:1], each[1:3], each[3:6], each[6:])]
    assert [token.bits for token in tokens] == pytest.approx(expected, abs=1e-5)
    assert (totals.tokens, totals.characters) == (7, 4)


def test_a_model_of_lines_scores_each_line_on_its_own(tmp_path) -> None:
    text = make("one_pass_spans", 6, ABC, lines=True)
    tokens, totals = scored(Scorer(text), "abc\n\nca\r\n   \nb", tmp_path)
    expected = [one for line in ("abc", "ca", "b") for one in one_by_one(text, ABC.encode(line).long(), 0)]
    assert [-token.bits * math.log(2) for token in tokens] == pytest.approx(expected, abs=1e-5)
    assert [token.offset for token in tokens] == [0, 1, 2, 5, 6, 13]
    assert (totals.texts, totals.windows, totals.characters, totals.words) == (3, 3, 6, 3)
    ending = make("left_to_right", 6, WithEnd(ABC), lines=True)
    tokens, totals = scored(Scorer(ending), "abc\nb\n", tmp_path)
    expected = [one for codes in ((0, 1, 2, 3), (1, 3)) for one in one_by_one(ending, torch.tensor(codes), 0)]
    assert [token.text for token in tokens] == [*"abc", "\n", "b", "\n"]
    assert [-token.bits * math.log(2) for token in tokens] == pytest.approx(expected, abs=1e-5)


def test_lines_are_shown_below_each_other_whether_or_not_a_token_ends_them(tmp_path) -> None:
    for text in (make("one_pass_spans", 6, ABC, lines=True), make("left_to_right", 6, WithEnd(ABC), lines=True)):
        found = score_text(Scorer(text), source("abc\n\nca\r\nb", tmp_path), html=tmp_path / "a.html", most=9)
        page = (tmp_path / "a.html").read_text().split("<pre>")[1].replace("⏎", "")
        assert re.sub("<.*?>", "", page).strip() == "abc\nca\nb"
        assert coloured(found.tokens or ()).plain.replace("⏎", "").strip() == "abc\nca\nb"
        for one in found.surprises:
            assert (one.before + one.token.text + one.behind).strip() == "abc\nca\nb"


@given(st.lists(st.floats(0, 20), max_size=120), st.integers(0, 9))
def test_the_most_surprising_tokens_are_those_of_a_sorted_list(bits: list[float], most: int) -> None:
    letters = [chr(ord("a") + number % 26) for number in range(len(bits))]
    gathered = Gathered(most)
    for number, (letter, one) in enumerate(zip(letters, bits)):
        gathered.take(Token(number, letter, one))
    expected = sorted(range(len(bits)), key=lambda number: (-bits[number], number))[:most]
    found = gathered.surprises()
    assert [one.token.offset for one in found] == expected
    whole = "".join(letters)
    for one in found:
        place = one.token.offset
        assert one.before == whole[max(0, place - 28) : place]
        assert one.behind == whole[place + 1 : place + 17]


def test_nothing_that_a_terminal_obeys_is_shown() -> None:
    assert visible("a\x1b[31mb\n\t\r\x07é漢") == "a\ufffd[31mb⏎⇥␍\ufffdé漢"


# The command


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("score")
    for name, recipe, vocabulary in (
        ("text8", "one_pass_spans", TEXT8),
        ("abc", "one_pass_spans", ABC),
        ("words", "left_to_right", Words(("the", "cat"))),
        ("ardm", "ardm", ABC),
        ("noise", "sunmask", ABC),
    ):
        made = make(recipe, 16, vocabulary)
        save_model(made.model, folder / name, notes=vocabulary_notes(vocabulary))
    save_model(made.model, folder / "nothing")
    save_model(make("one_pass", 16, TEXT8).model, folder / "other", notes=vocabulary_notes(ABC))
    return folder


@pytest.fixture
def run(place, tmp_path, monkeypatch, capsys):
    """Run ``anyfill text score`` in an empty folder; exit code, stdout, stderr. ":name" stands for that model."""
    monkeypatch.delenv(cli.DEBUG, raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        told = [part for one in arguments for part in (["--model", str(place / one[1:])] if one[0] == ":" else [one])]
        code = cli.run(["text", "score", *told])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


def refused(answer: tuple[int, str, str], words: str) -> None:
    code, out, error = answer
    assert (code, out) == (2, ""), answer
    assert error.count("\n") == 1
    assert words in error


def test_the_command_says_bits_per_character_what_they_are_and_where_the_text_surprises(run) -> None:
    Path("a.txt").write_text("The cat's 2 hats!\n")
    code, out, error = run("a.txt", ":text8", "--json", "--most", "3", "--tsv", "a.tsv", "--html", "a.html")
    assert code == 0
    found = json.loads(out)[0]
    folded = "the cat s two hats"
    assert (found["kind"], found["folded"], found["characters"], found["words"]) == ("exact", True, len(folded), 5)
    assert found["bits_per_character"] == found["bits"] / len(folded)
    assert found["perplexity_per_word"] == pytest.approx(2 ** (found["bits"] / 5))
    assert "folded to a-z and space" in found["remarks"][0]
    assert found["remarks"][0].endswith(f"it reads {folded!r}")
    rows = [line.split("\t") for line in Path("a.tsv").read_text().splitlines()]
    assert rows[0] == ["offset", "token", "bits"]
    assert "".join(row[1] for row in rows[1:]) == folded
    assert sum(float(row[2]) for row in rows[1:]) == pytest.approx(found["bits"], abs=1e-4)
    best = sorted((float(row[2]) for row in rows[1:]), reverse=True)[:3]
    assert [one["bits"] for one in found["most_surprising"]] == pytest.approx(best, abs=1e-5)
    page = Path("a.html").read_text()
    assert page.count("<i class=") == len(folded) + 4
    assert error == "wrote a.tsv\nwrote a.html\n"
    code, out, _ = run("a.txt", ":text8", "--most", "2")
    assert code == 0
    assert f"  {found['bits_per_character']:.3f} bits per character, exact\n" in out
    assert "  from left to right, 2 windows of 16 tokens, one pass each\n" in out
    assert "  beyond the first 16 tokens each is given at least the 8 before it\n" in out
    assert "note: the text is scored as this model sees it" in out
    refused(run("a.txt", ":text8", "--tsv", "a.tsv"), "a.tsv is there already: --force replaces it")
    assert run("a.txt", ":text8", "--tsv", "a.tsv", "--force")[0] == 0
    assert run("a.txt", ":text8", "--tsv", "new/a.tsv")[0] == 0
    assert Path("new/a.tsv").read_bytes() == Path("a.tsv").read_bytes()
    refused(run("a.txt", ":text8", "--tsv", "a.txt/a.tsv"), "a.txt/a.tsv: expected a name in a folder, got one in")
    refused(run("a.txt", "a.txt", ":text8", "--html", "b.html"), "--html: expected one FILE, got 2")
    code, out, _ = run("a.txt", "a.txt", ":text8", "--most", "0")
    assert f"all 2 files: {found['bits_per_character']:.3f} bits per character" in out


def test_the_end_of_the_last_line_is_no_character_of_a_folded_text(run) -> None:
    found = []
    for content in (b"the cat\nsat", b"the cat\nsat\n", b"the cat\r\nsat\r\n", b"the cat\r\nsat\r\n\r\n"):
        Path("a.txt").write_bytes(content)
        found.append(json.loads(run("a.txt", ":text8", "--json")[1]))
    assert found[0][0]["characters"] == len("the cat sat")
    assert found[1:] == found[:1] * 3
    Path("a.txt").write_bytes(b"the cat\nsat \n")
    assert json.loads(run("a.txt", ":text8", "--json")[1])[0]["characters"] == len("the cat sat"), "nor is any space"


def test_a_file_that_cannot_be_scored_does_not_keep_the_others_from_it(run) -> None:
    Path("a.txt").write_text("the cat")
    Path("empty.txt").write_text("")
    alone = json.loads(run("a.txt", ":text8", "--json")[1])
    code, out, error = run("a.txt", "empty.txt", "nowhere.txt", "a.txt", ":text8", "--json")
    assert (code, json.loads(out)) == (2, alone * 2)
    assert [line.split(":")[1] for line in error.splitlines()] == [" empty.txt", " nowhere.txt"]
    code, out, _ = run("a.txt", "empty.txt", "a.txt", ":text8", "--most", "0")
    assert (code, out.splitlines()[-1].split(":")[0]) == (2, "all 2 files")


def test_stdin_is_scored_as_a_file_is(run, monkeypatch) -> None:
    import io
    import sys

    Path("a.txt").write_text("abcabc" * 9)
    first = json.loads(run("a.txt", ":abc", "--json")[1])[0]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("a.txt").read_bytes())))
    second = json.loads(run("-", ":abc", "--json")[1])[0]
    assert second == first | {"file": "stdin"}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ab\xff")))
    refused(run("-", ":abc"), "stdin: expected text in UTF-8, got byte 0xff at byte offset 2")


def test_unknown_words_are_counted_and_said(run) -> None:
    Path("a.txt").write_text("the dog sat on the cat\n")
    code, out, _ = run("a.txt", ":words")
    assert code == 0
    assert "note: 3 of 6 words unknown to the model, scored as one symbol" in out
    assert out.count("bits per word") == 1


def test_other_orders_are_for_models_of_any_order(run) -> None:
    Path("a.txt").write_text("abc" * 3)
    only = "--order: expected increasing, the only order of this model (one of --recipe ardm has any order), got "
    for order in ("decreasing", "shuffled"):
        refused(run("a.txt", ":abc", "--order", order), only + order)
    refused(run("a.txt", ":ardm", "--orders", "3"), "--orders: expected --order shuffled")
    refused(run("a.txt", ":ardm", "--order", "decreasing", "--seed", "3"), "--seed: expected --order shuffled")
    code, out, _ = run("a.txt", ":ardm", "--order", "decreasing")
    assert code == 0
    assert "exact" in out
    assert "from right to left, 1 window of 16 tokens, 9 passes" in out
    code, out, _ = run("a.txt", ":ardm", "--order", "shuffled", "--orders", "3")
    assert code == 0
    assert "a bound (mean over 3 orders" in out
    assert "an estimate (log of the mean probability) ±" in out
    found = json.loads(run("a.txt", ":ardm", "--order", "shuffled", "--orders", "3", "--json")[1])[0]
    assert found["kind"] == "bound"
    assert found["estimate"]["bits"] <= found["bits"], "log of the mean is above the mean of the log"
    assert json.loads(run("a.txt", ":ardm", "--order", "shuffled", "--orders", "1", "--json")[1])[0]["stderr"] is None


def test_what_cannot_be_scored_is_refused_in_one_sentence(run) -> None:
    Path("empty.txt").write_text("")
    Path("broken.txt").write_bytes(b"abc\xe9bc")
    Path("marks.txt").write_text("?! ...")
    Path("strange.txt").write_text("abcaxb")
    refused(run("nowhere.txt", ":abc"), "nowhere.txt: expected a text file, got none")
    refused(run("empty.txt", ":abc"), "empty.txt: expected text, got none")
    refused(run("broken.txt", ":abc"), "broken.txt: expected text in UTF-8, got byte 0xe9 at byte offset 3")
    refused(run("marks.txt", ":text8"), "marks.txt: expected text with letters from a to z, got none")
    refused(run("strange.txt", ":abc"), "strange.txt, offset 4: expected characters from 'abc' only, got 'x'")
    refused(run("strange.txt", ":noise"), "expected a model that has likelihoods")
    refused(run("strange.txt", ":nothing"), "got one without a vocabulary")
    refused(run("strange.txt", ":other"), "expected one of 3 codes, as the vocabulary has, got a model of 27 codes")
    refused(run("strange.txt", ":abc", "--context", "all"), "--context")
    refused(run("strange.txt", ":abc", "--tsv", "no/such/folder/a.tsv"), "strange.txt, offset 4")
    assert not Path("no").exists()
    assert [path.name for path in Path().iterdir() if path.suffix == ".part"] == []
    refused(run("strange.txt", ":abc", "--tsv", "a", "--html", "a"), "another name than that of --tsv")
