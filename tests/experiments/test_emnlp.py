"""EMNLP2017 News: padding is never asked, lengths have their law, kept words stay, files are graded as they should."""

import argparse
import fcntl
import gzip
import json
import math
import sys
import threading

import pytest
import torch
from scipy.stats import chi2
from torch import Generator

from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.rows import Rows
from anyfill.samplers import Draw
from anyfill.text.metrics import bleu, self_bleu
from anyfill.text.recipes import TEXT_SIZES, text_model, text_objective
from anyfill.training import FitOptions, fit
from experiments.sunmask import emnlp
from experiments.sunmask import emnlp_common as news
from experiments.sunmask import emnlp_draw as drawing
from experiments.sunmask import emnlp_emphasis as emphasis
from experiments.sunmask import emnlp_grade as grading

TRAIN = [text.split() for text in ("the war was long", "the play was a long play", "a war", "they play the game here")]
CORPUS = news.News(TRAIN, [["a", "war", "here"]], [["the", "war", "was", "here"], ["no", "such", "word"]])


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(TEXT_SIZES, "1M", (32, 2, 2))


def seeded(seed=0):
    return Generator().manual_seed(seed)


def model_for(recipe):
    vocabulary = news.vocabulary_for(recipe, CORPUS.words)
    model = news.made(recipe, vocabulary.size, size="1M", seed=1)
    model.factorizations = text_objective(recipe, news.LENGTH).factorizations
    # A fresh head answers every question alike, so it would hide what it was told.
    torch.nn.init.normal_(model.network.head.weight, std=0.2, generator=seeded())
    for block in model.network.blocks:
        torch.nn.init.normal_(block.mix.weight, std=0.1, generator=seeded())
    return model, vocabulary


def write_data(folder):
    (folder / "emnlp2017_news").mkdir(parents=True)
    for name, sentences in (("valid", [*CORPUS.train, *CORPUS.valid]), ("test", CORPUS.test)):
        text = "".join(" ".join(sentence) + "\n" for sentence in sentences)
        (folder / "emnlp2017_news" / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode()))


def test_every_training_word_has_a_code_and_no_other():
    assert set(CORPUS.words.words) == {word for sentence in TRAIN for word in sentence}
    rows = news.rows_of(TRAIN, CORPUS.words)
    assert bool((rows.x[rows.present] > 0).all())
    assert news.without_unknown(CORPUS.test, CORPUS.words) == [["the", "war", "was", "here"]]
    assert news.rows_of([["no", "war"]], CORPUS.words).x[0, 0] == 0


@pytest.mark.parametrize("recipe", news.RECIPES)
def test_rows_hold_a_sentence_and_its_end_and_nothing_behind(recipe):
    vocabulary = news.vocabulary_for(recipe, CORPUS.words)
    rows = news.rows_of(TRAIN, vocabulary)
    ends = recipe in news.CHAINS
    assert rows.x.shape == (4, 52)
    assert rows.present.sum(1).tolist() == [len(sentence) + ends for sentence in TRAIN]
    assert [vocabulary.decode(row[there]).split() for row, there in zip(rows.x, rows.present)] == TRAIN


@pytest.mark.parametrize("recipe", news.RECIPES)
def test_what_stands_behind_a_sentence_changes_no_loss(recipe):
    model, _ = model_for(recipe)
    rows = news.rows_for(recipe, TRAIN, CORPUS.words)
    objective = text_objective(recipe, news.LENGTH)
    losses = [
        objective(
            model, Rows(torch.where(rows.present, rows.x, sentinel), rows.present, rows.context), generator=seeded(3)
        )
        for sentinel in (0, 7, -(10**6), 10**6)
    ]
    assert bool(losses[0].isfinite().all())
    assert all(torch.equal(losses[0], other) for other in losses[1:])
    told = objective(model, Rows(rows.x, torch.ones_like(rows.present), rows.context), generator=seeded(3))
    assert not torch.allclose(losses[0], told)  # but it would, were it taken for a part of the sentence


@pytest.mark.parametrize("recipe", news.DENOISERS)
def test_denoisers_write_as_many_words_as_they_were_asked_for_and_read_none_behind(recipe, monkeypatch):
    model, _ = model_for(recipe)
    behind = []
    forward = model.network.forward

    def watched(x, known, context=None):
        behind.append((x.clone(), known.clone()))
        return forward(x, known, context)

    monkeypatch.setattr(model.network, "forward", watched)
    lengths = torch.tensor([3, 1, 52, 20])
    codes, passes = news.draw_codes(model, recipe, news.Setting(Draw(temperature=0.8), 5), lengths, generator=seeded())
    assert [len(row) for row in codes] == lengths.tolist()
    assert passes == len(behind) == 5
    outside = ~news.first_places(lengths).asked
    for x, known in behind:
        assert torch.equal(x[outside], behind[0][0][outside])  # the noise they began with
        if recipe == "sunmask":
            assert not bool(known[outside].any())


@pytest.mark.parametrize("recipe", news.CHAINS)
def test_chains_are_read_up_to_their_end(recipe):
    model, vocabulary = model_for(recipe)
    lengths = torch.full((40,), 3)
    codes, passes = news.draw_codes(model, recipe, news.Setting(Draw()), lengths, generator=seeded())
    assert passes == 52
    for row in codes:
        ends = (row == vocabulary.end).nonzero()
        assert len(vocabulary.decode(row).split()) == (int(ends[0]) if len(ends) else 52)
    assert len({len(vocabulary.decode(row).split()) for row in codes}) > 3


@pytest.mark.parametrize("recipe", news.DENOISERS)
def test_denoisers_are_told_the_length_and_nothing_else_about_a_sentence(recipe):
    rows = news.rows_for(recipe, TRAIN, CORPUS.words)
    assert rows.context.argmax(1).add(1).tolist() == list(map(len, TRAIN))
    assert rows.context.sum(1).tolist() == [1.0] * 4
    model, _ = model_for(recipe)
    nothing = torch.zeros(2, 52, dtype=torch.int64)
    law = model.marginals(nothing, nothing.bool(), news.length_context(torch.tensor([3, 9]))).log_probs
    assert not torch.allclose(law[0], law[1], atol=1e-3)


@pytest.mark.parametrize("recipe", news.DENOISERS)
def test_written_ends_fill_the_row_and_sentences_are_read_up_to_the_first(recipe):
    """The paper's way: nothing is missing, no length is told, and another number of places will do."""
    vocabulary = news.vocabulary_for(recipe, CORPUS.words, written=True)
    rows = news.rows_for(recipe, TRAIN, CORPUS.words, 9, written=True)
    assert bool(rows.present.all())
    assert rows.context is None
    assert (rows.x == vocabulary.end).sum(1).tolist() == [9 - len(sentence) for sentence in TRAIN]
    model = news.made(recipe, vocabulary.size, 9, size="1M", written=True)
    model.factorizations = text_objective(recipe, 9).factorizations
    codes, _ = news.draw_codes(model, recipe, news.Setting(Draw(), 4), torch.full((5,), 3), generator=seeded())
    assert [len(row) for row in codes] == [9] * 5
    assert [vocabulary.decode(row).split() for row in rows.x] == TRAIN


@pytest.mark.parametrize("recipe", news.RECIPES)
def test_a_model_is_as_deep_as_asked_and_otherwise_as_its_size_says(recipe):
    usual, deeper = (news.made(recipe, 20, 9, size="1M", depth=depth).network for depth in (None, 5))
    assert (len(usual.blocks), len(deeper.blocks)) == (2, 5)
    assert usual.width == deeper.width
    assert usual.context_width == deeper.context_width


@pytest.mark.slow
@pytest.mark.parametrize("recipe", news.RECIPES)
def test_sentences_learned_by_heart_come_out_again(recipe, monkeypatch):
    monkeypatch.setitem(TEXT_SIZES, "1M", (64, 2, 2))
    vocabulary = news.vocabulary_for(recipe, CORPUS.words)
    model = news.made(recipe, vocabulary.size, size="1M")
    options = FitOptions(steps=300, batch_size=16, learning_rate=3e-3, warmup_steps=10, device="cpu")
    fit(model, news.rows_for(recipe, TRAIN, CORPUS.words), text_objective(recipe, news.LENGTH), options)
    lengths = news.drawn_lengths(torch.tensor([*map(len, TRAIN)]), 40, generator=seeded())
    setting = news.Setting(Draw(temperature=0.8), 30)
    codes, _ = news.draw_codes(model, recipe, setting, lengths, generator=seeded())
    texts = [vocabulary.decode(row).split() for row in codes]
    assert sum(text in TRAIN for text in texts) >= 36  # the four sentences have four lengths: told, all are right
    assert {len(text) for text in texts} == {2, 4, 5, 6}


def test_lengths_are_drawn_as_often_as_they_occur():
    lengths = torch.tensor([3, 3, 5, 9])
    drawn = news.drawn_lengths(lengths, 8000, generator=seeded())
    seen = torch.tensor([(drawn == kind).sum() for kind in (3, 5, 9)]).double()
    expected = torch.tensor([4000.0, 2000.0, 2000.0]).double()
    assert int(seen.sum()) == 8000
    statistic = float(((seen - expected) ** 2 / expected).sum())
    assert statistic < chi2.isf(1e-6, 2)  # false alarm: one in a million seeds, and the seed is fixed


@pytest.mark.parametrize("draw", [Draw(temperature=0.7), Draw(temperature=0.5, typical=0.8), Draw(top_k=2)])
def test_drawing_asked_places_only_draws_from_the_same_law(draw):
    law = FiniteMarginals(torch.randn(30, 6, 9, generator=seeded()).log_softmax(-1))
    everywhere = torch.ones(30, 6, dtype=torch.bool)
    plain = draw(law, generator=seeded(5))
    assert torch.equal(news.Cells(draw, everywhere)(law, generator=seeded(5)), plain)
    asked = torch.rand(30, 6, generator=seeded(2)) < 0.5
    some = news.Cells(draw, asked)(law, generator=seeded(5))
    assert not bool(some[~asked].any())
    part = FiniteMarginals(law.log_probs[asked].unsqueeze(0))
    assert torch.equal(some[asked], draw(part, generator=seeded(5))[0])


def test_typical_sampling_leaves_words_out():
    """The entropy is 1.31 nats: 0.3 (1.20) is the most typical, then 0.5 (0.69), then the others (3.00)."""
    law = torch.tensor([0.5, 0.3, 0.05, 0.05, 0.05, 0.05]).log().expand(50, 40, 6)
    everywhere = torch.ones(50, 40, dtype=torch.bool)
    seen = {
        mass: set(
            news.Cells(Draw(typical=mass), everywhere)(FiniteMarginals(law.clone()), generator=seeded())
            .unique()
            .tolist()
        )
        for mass in (None, 0.2, 0.7, 0.81)
    }
    assert seen == {None: {0, 1, 2, 3, 4, 5}, 0.2: {1}, 0.7: {0, 1}, 0.81: {0, 1, 2}}


def test_a_temperature_that_would_underflow_is_refused():
    with pytest.raises(ValueError, match="temperature"):
        news.Cells(Draw(temperature=0.01), torch.ones(1, 1, dtype=torch.bool))


@pytest.mark.parametrize("recipe", news.CHAINS)
def test_a_model_that_knows_nothing_needs_the_logarithm_of_its_codes(recipe):
    vocabulary = news.vocabulary_for(recipe, CORPUS.words)
    model = text_model(recipe, news.LENGTH, vocabulary.size, size="1M")
    torch.nn.init.zeros_(model.network.head.bias)  # its weights begin at zero
    model.factorizations = text_objective(recipe, news.LENGTH).factorizations
    found = news.bits_per_word(model, news.rows_of(TRAIN, vocabulary), rows_per_pass=3)
    words = sum(map(len, TRAIN))
    assert found["kind"] == "exact"
    assert found["bits_per_token"] == pytest.approx(math.log2(vocabulary.size), rel=1e-5)
    assert found["bits_per_word"] == pytest.approx(math.log2(vocabulary.size) * (words + 4) / words, rel=1e-5)


def test_kept_words_never_change_and_only_trusted_ones_are_told(monkeypatch):
    model, vocabulary = model_for("sunmask")
    manners = [
        emphasis.Manner("one each", 9, {2: "war"}, {5: "play"}),
        emphasis.Manner("both held", 9, {}, {2: "war", 5: "play"}),
        emphasis.Manner("free", 9, {}, {}),
    ]
    passes = []
    forward = model.network.forward

    def watched(x, known, context=None):
        assert context.argmax(1).tolist() == [8] * 18  # nine words
        passes.append((x.clone(), known.clone()))
        return forward(x, known, context)

    monkeypatch.setattr(model.network, "forward", watched)
    texts = emphasis.draw(model, manners, vocabulary, samples=6, rounds=12, temperature=1.0, seed=0)
    assert [len(text) for some in texts for text in some] == [9] * 18
    assert all((text[2], text[5]) == ("war", "play") for some in texts[:2] for text in some)
    assert any((text[2], text[5]) != ("war", "play") for text in texts[2])
    war, play = (int(vocabulary.encode(word)[0]) for word in ("war", "play"))
    for x, known in passes:
        assert bool((x[:12, 2] == war).all() & (x[:12, 5] == play).all())
        assert bool(known[:6, 2].all())
        assert not bool(known[:6, 5].any() | known[6:12, [2, 5]].any())
    assert any(bool(known[12:, :9].any()) for _, known in passes)  # free words become trusted as the chain goes on


def test_a_word_that_cannot_be_kept_is_refused():
    with pytest.raises(ValueError, match="word to keep"):
        emphasis.sample_rank([emphasis.Manner("", 9, {1: "nowhere"}, {})], 1, CORPUS.words)


def test_sentences_lean_towards_the_word_whose_company_they_keep():
    training = [["war", "army", "the"], ["play", "ball", "the"]] * 20
    lean = emphasis.leaning(training, "war", "play")
    assert lean(["war", "army"]) == pytest.approx(-lean(["play", "ball"]))
    assert lean(["play", "army"]) == lean(["army"]) > 0.3  # the words of the pair do not count themselves
    assert lean(["the"]) == pytest.approx(0.0, abs=1e-12)


def test_the_rarest_words_of_a_sentence_are_kept_in_three_manners():
    times = {"a": 9, "b": 1, "c": 5, "d": 2}
    trusted, held, free = emphasis.sentence_manners(["a", "b", "c", "d"], emphasis.Counter(times), kept=2)
    assert trusted.trusted == held.held == {1: "b", 3: "d"}
    assert trusted.held == held.trusted == free.trusted == free.held == {}


def test_temperatures_come_coarse_first_and_each_once():
    order = drawing.coarse_first([0.4, 1.0, 0.7, 0.8, 0.9, 0.55, 0.7])
    assert sorted(order) == [0.4, 0.55, 0.7, 0.8, 0.9, 1.0]
    assert order[:3] == [1.0, 0.4, 0.7]
    assert drawing.coarse_first([0.5]) == [0.5]


def test_a_line_cut_short_is_no_record_and_the_last_one_counts(tmp_path):
    path = tmp_path / "a.draws.jsonl"
    path.write_text('{"temperature": 1.0, "n": 1}\n{"temperature": 1.0, "n": 2}\n{"temperature": 0.5, "n')
    assert news.recorded(path) == [{"temperature": 1.0, "n": 2}]
    assert news.recorded(tmp_path / "none.jsonl") == []


def test_a_held_lock_is_waited_for(tmp_path):
    lock = tmp_path / "lock"
    waiting = threading.Thread(target=news.wait_for, args=(lock,))
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(5)
    assert not waiting.is_alive()
    news.wait_for(lock)  # several may go at once
    news.wait_for(None)


def put(folder, label, temperature, sentences):
    name = f"{label}.{temperature:g}.txt.gz"
    text = "".join(line + "\n" for line in sentences)
    (folder / name).write_bytes(gzip.compress(text.encode()))
    line = {"label": label, "recipe": "one_pass", "temperature": temperature, "sentences": len(sentences)}
    line |= {"file": name, "passes": 52, "seconds": 1.0, "rounds": None}
    with (folder / f"{label}.draws.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def graded(folder, out, first=None):
    grading.grade(argparse.Namespace(data=folder, out=out, first=first, set="news"))
    return json.loads((out / "grades.json").read_text())


def test_files_of_known_sentences_get_their_known_grades(tmp_path, monkeypatch):
    monkeypatch.setattr(news, "TRAINING", 4)
    write_data(tmp_path / "data")
    out = tmp_path / "out"
    out.mkdir()
    put(out, "mine", 0.5, ["the war was", "a war", ""])
    grades = graded(tmp_path / "data", out)
    mine = grades["mine.0.5.txt.gz@3"]
    # NLTK by hand, references of 4 and 3 words. The first: three words of three, no penalty beyond exp(1 - 3/3) = 1;
    # of no 4-gram and no 5-gram, 0.1 each. The second: one word of two, no pair (0.1 / 1), penalty exp(1 - 3/2).
    second = [math.exp(-0.5) * (0.5 * 0.1 ** (n - 1)) ** (1 / n) for n in range(1, 6)]
    first = [1.0, 1.0, 1.0, 0.1**0.25, 0.01**0.2]
    assert mine["bleu"] == pytest.approx([(one + other + 0.0) / 3 for one, other in zip(first, second)], rel=1e-12)
    sentences = [["the", "war", "was"], ["a", "war"], []]
    assert mine["self_bleu"] == pytest.approx(self_bleu(sentences).mean(0).tolist())
    assert mine["copied"] == pytest.approx(1 / 3)
    assert mine["words"] == pytest.approx(5 / 3)
    real = grades["real@3"]
    assert real["bleu"] == pytest.approx(bleu(TRAIN[:3], CORPUS.test).mean(0).tolist())
    put(out, "mine", 0.5, ["the war was here", "the war was here", "the war was here"])
    again = graded(tmp_path / "data", out)["mine.0.5.txt.gz@3"]  # the file changed, so its grade did
    assert again["bleu"][:4] == pytest.approx([1.0] * 4)
    assert again["self_bleu"][:4] == pytest.approx([1.0] * 4)
    assert "mine.0.5.txt.gz@2" in graded(tmp_path / "data", out, first=2)


def test_a_report_shows_files_of_one_number_only(tmp_path, monkeypatch):
    monkeypatch.setattr(news, "TRAINING", 4)
    monkeypatch.setattr(sys.modules["benchmarks.common"], "RESULTS", tmp_path / "results")
    write_data(tmp_path / "data")
    out = tmp_path / "out"
    out.mkdir()
    put(out, "mine", 0.5, ["the war was", "a war"])
    put(out, "mine", 1.0, ["the war", "a play was here"])
    put(out, "other", 1.0, ["the war", "a play", "they play"])
    graded(tmp_path / "data", out)
    grading.report(argparse.Namespace(out=out, sentences=None, name="emnlp", set="news", before=None, mark=""))
    found = json.loads((tmp_path / "results" / "emnlp.json").read_text())
    assert list(found["curves"]) == ["mine"]
    assert list(found["marks"]) == ["real text"]
    assert {point["sentences"] for points in found["curves"].values() for point in points} == {2}
    assert (tmp_path / "results" / "emnlp.png").stat().st_size > 10_000


@pytest.mark.parametrize("recipe", ["one_pass", "sunmask", "chain2"])
def test_the_commands_leave_what_they_say_and_do_nothing_twice(recipe, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(news, "TRAINING", 4)
    write_data(tmp_path / "data")
    out = tmp_path / "out"

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["emnlp.py", *words, "--out", str(out), "--data", str(tmp_path / "data")])
        emnlp.main()
        return capsys.readouterr().out

    if recipe != "chain2":
        short = ("--seconds", "60", "--steps", "2", "4", "--size", "1M", "--batch", "4", "--device", "cpu")
        run("train", "--recipe", recipe, *short)
        record = json.loads((out / f"{recipe}.train.json").read_text())
        assert [one["steps"] for one in record["runs"]] == [2, 4]
        assert "already" in run("train", "--recipe", recipe, *short)
    few = ("--temperatures", "0.5", "1", "--sentences", "7", "--batch", "4", "--rounds", "3", "--device", "cpu")
    run("draw", "--recipe", recipe, *few)
    for temperature in ("0.5", "1"):
        assert len(news.read_sentences(out / f"{recipe}.{temperature}.txt.gz")) == 7
    assert (out / f"{recipe}.bits.json").exists() == (recipe == "one_pass")
    before = (out / f"{recipe}.draws.jsonl").read_text()
    assert len(before.splitlines()) == 2
    assert str(tmp_path) not in before
    run("draw", "--recipe", recipe, *few)
    assert (out / f"{recipe}.draws.jsonl").read_text() == before
    run("draw", "--recipe", recipe, *few, "--sentences", "8")
    assert len(news.read_sentences(out / f"{recipe}.1.txt.gz")) == 8
    if recipe == "sunmask":  # several numbers of rounds, each with its name; the script that draws all words is refused
        run("draw", "--recipe", recipe, *few, "--rounds", "2", "4", "--temperatures", "1")
        passes = [json.loads((out / f"sunmask_{n}.draws.jsonl").read_text())["passes"] for n in (2, 4)]
        assert passes == [2 * 2, 2 * 4]  # of two batches
        with pytest.raises(ValueError, match="typical"):
            run("draw", "--recipe", recipe, *few, "--typical", "1", "--label", "all")
        assert record["epochs"] == pytest.approx((2 + 4) * 4 / 4)
        assert record["operations_a_row"] > 0
