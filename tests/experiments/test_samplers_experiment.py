"""The harness of samplers: what is blanked, whose law is computed, what is recorded, and what is read off the lines."""

import json
from collections import Counter

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator, nn

from anyfill.evaluation import log_prob
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, EnumeratedJoint, OnePassTransformer, Transformer
from anyfill.questions import Factorization, Question, Shuffled
from anyfill.samplers import Confidence, EntropyBounded, Follow, Sampler, sample
from anyfill.samplers.drafts import NgramDraft
from anyfill.text.recipes import TEXT_SIZES, text_model, text_objective
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.text.vocabulary import TEXT8
from anyfill.training import save_model
from experiments.mac.text8_common import Parts
from experiments.one_pass import samplers, samplers_bench
from experiments.one_pass import samplers_plot as plot
from experiments.one_pass.samplers_bench import Bench, blank_words, everything
from experiments.one_pass.samplers_ways import DRAWS, JUDGE, MODELS, SortedBlock, Way, own_log_prob, supported, ways

TEXT = "the cat sat on the mat and the dog lay by the door of the old house "
LENGTH = 20
DRAFT = NgramDraft.of(TEXT8.encode(TEXT), TEXT8.size, order=2)


def rows_of(text, length):
    codes = TEXT8.encode(text).long()
    return codes[: len(codes) // length * length].view(-1, length)


@pytest.mark.parametrize("share", [0.0, 0.15, 0.5, 1.0])
def test_blanks_are_whole_words_as_many_as_their_share(share):
    x = rows_of(TEXT * 20, 34)
    asked = blank_words(x, share, generator=Generator().manual_seed(3))
    for codes, wanted in zip(x, asked):
        text = TEXT8.decode(codes)
        shown = "".join("_" if blank else letter for letter, blank in zip(text, wanted.tolist()))
        whole = [word for word in text[text.index(" ") : text.rindex(" ") + 1].split(" ") if word]
        blanked = [(word, was) for word, was in zip(shown.split(" "), text.split(" ")) if "_" in word]
        assert all(set(word) == {"_"} for word, _ in blanked)  # never a part of a word
        assert len(blanked) == max(1, round(share * len(whole)))
        assert not Counter(was for _, was in blanked) - Counter(whole)
        assert not wanted[[0, -1]].any()


def test_a_row_without_a_whole_word_has_no_blank():
    x = torch.stack([TEXT8.encode(text).long() for text in ("abcdefgh", "abcd efg", "        ")])
    assert not blank_words(x, 1.0, generator=Generator().manual_seed(0)).any()


def test_every_way_is_there_once_and_the_waves_rise():
    found = ways(draft=DRAFT)
    keys = [tuple(way.key.values()) for way in found]
    assert len(set(keys)) == len(keys)
    assert [way.wave for way in found] == sorted(way.wave for way in found)
    assert {way.model for way in found} == set(MODELS)
    for way in found:
        assert isinstance(way.policy, Sampler)
        assert way.sampler in plot.STYLES
        assert way.model in plot.COLOURS
        assert way.draw in DRAWS
        assert way.law or way.task != "text"
        assert way.model != JUDGE or way.task == "free"  # it has read nothing but beginnings


def all_rows(variables, values):
    return torch.cartesian_prod(*[torch.arange(values)] * variables)


@pytest.mark.parametrize(
    "policy",
    [Follow(), Follow(groups=2), Confidence(2), Confidence(3, "linear"), EntropyBounded(0.6), EntropyBounded(0.0)],
    ids=repr,
)
def test_the_law_of_a_way_is_that_of_its_samples(policy):
    """False alarms: p > 0.001 with fixed seeds."""
    torch.manual_seed(4)
    network = Transformer(Discrete(3), (4,), 3, width=16, depth=1, heads=2)
    for weights in network.parameters():
        nn.init.normal_(weights, std=0.6)
    model = Model(network, Categorical(3), factorizations=[Factorization.ANY_ORDER])
    way = Way("", "", None, policy)
    assert way.law == "exact"
    x = all_rows(4, 3)
    law = own_log_prob(way, model, x, everything(x), generator=Generator().manual_seed(0)).exp()
    assert float(law.sum()) == pytest.approx(1.0, abs=1e-5)
    many = torch.zeros(8000, 4).long()
    drawn = sample(model, many, everything(many), policy=policy, generator=Generator().manual_seed(1)).x
    counts = torch.bincount(drawn @ torch.tensor([27, 9, 3, 1]), minlength=81).double()
    expected = law * 8000
    small = expected < 5
    if small.any():
        counts = torch.cat([counts[~small], counts[small].sum().reshape(1)])
        expected = torch.cat([expected[~small], expected[small].sum().reshape(1)])
    assert chisquare(counts, expected * (8000 / expected.sum())).pvalue > 0.001


def test_one_by_one_the_law_is_the_log_probability_and_random_orders_give_a_bound():
    joint = EnumeratedJoint.random(4, 3, generator=Generator().manual_seed(2))
    model = Model(joint, Categorical(3), factorizations=[Factorization.ANY_ORDER, Factorization.DIRECT])
    x = all_rows(4, 3)
    question = Question.of(4, given=[2], asked=[0, 3], batch=len(x))
    exact = log_prob(model, x, question).value
    for policy in (Follow(), Follow(Shuffled())):  # of a consistent model every order is the same
        way = Way("", "", None, policy)
        own = own_log_prob(way, model, x, question, generator=Generator().manual_seed(0))
        assert torch.allclose(own, exact, atol=1e-6)
        assert way.law == ("exact" if policy == Follow() else "bound")
    assert Way("", "", None, Follow(), draw="nucleus 0.95").law is None


def test_a_sorted_block_is_what_the_model_says_of_a_known_set():
    torch.manual_seed(0)
    network = OnePassTransformer(Discrete(3), (6,), 3, width=16, depth=2, heads=2)
    nn.init.normal_(network.head.weight, std=0.6)
    model = Model(network, Categorical(3), factorizations=[Factorization.DIRECT])
    view = SortedBlock.of(model)
    x, known = torch.randint(3, (20, 6)), torch.rand(20, 6) < 0.5
    assert not view.is_one_pass
    one, other = view.marginals(x, known).log_probs, model.marginals(x, known).log_probs
    assert torch.allclose(one[~known], other[~known], atol=1e-6)
    way = Way("one_pass", "", 2, Confidence(2), sorted_block=True)
    question = everything(x)
    assert supported(way, view, question)
    assert not supported(way, model, question)
    assert supported(Way("one_pass", "", 2, Follow(groups=2)), model, question)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """All but one of them, tiny and untrained."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TEXT_SIZES, "1M", (16, 1, 2))
        for name in MODELS:
            if name != "sundae":
                model = text_model(name, LENGTH, TEXT8.size, size="1M")
                nn.init.normal_(model.network.head.weight, std=0.2)
                model.factorizations = text_objective(name, LENGTH).factorizations
                save_model(model, folder / name, notes=vocabulary_notes(TEXT8))
    return folder


@pytest.fixture
def parts(monkeypatch):
    long = TEXT8.encode(TEXT * 30)
    made = Parts(long, rows_of(TEXT * 10, 34), rows_of(TEXT * 30, 34))
    monkeypatch.setattr(samplers, "read_parts", lambda data: made)
    monkeypatch.setattr(samplers_bench, "QUICK", 0.0)  # one run each
    return made


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.slow)])
def test_everything_is_measured_once_and_reported_from_the_lines_alone(models, parts, tmp_path, capsys, precision):
    out = tmp_path / "out"
    command = ["measure", "--models", str(models), "--out", str(out), "--precision", precision, "--device", "cpu"]
    command += ["--rows", "3", "--blank-rows", "5", "--budgets", "2", "--bounds", "2", "--grams", "3"]
    samplers.main(command)
    assert "missing: sundae" in capsys.readouterr().out
    lines = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    rows = [line for line in lines if "key" in line]
    assert len(rows) == len({json.dumps(row["key"]) for row in rows})
    wanted = [way for way in ways([2], [2.0], DRAFT) if way.model != "sundae"]
    assert [row["key"]["task"] for row in rows] == [way.task for way in wanted]
    for row, way in zip(rows, wanted):
        if way.setting == 2 and way.sampler != "entropy-bounded" and way.task != "text":
            assert row["passes"] == 2
        if way.task == "blanks":
            assert ("law" in row) == (way.law is not None)
    samplers.main(command)
    again = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert [line for line in again if "key" in line] == rows
    samplers.main(["report", "--out", str(out), "--results", str(tmp_path / "results")])
    document = json.loads((tmp_path / "results" / "samplers.json").read_text())
    assert document["rows"] == rows
    assert (tmp_path / "results" / "samplers.png").stat().st_size > 10_000
    assert "commonest word" in capsys.readouterr().out


def test_no_measurement_is_begun_when_the_minutes_are_over(models, parts, tmp_path, capsys):
    command = ["measure", "--models", str(models), "--out", str(tmp_path), "--minutes", "-1", "--device", "cpu"]
    samplers.main([*command, "--rows", "2", "--blank-rows", "2", "--grams", "3"])
    assert "not begun" in capsys.readouterr().out
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 1  # the references


def test_without_a_judge_nothing_can_be_measured(tmp_path):
    with pytest.raises(SystemExit, match="judge"):
        samplers.main(["measure", "--models", str(tmp_path), "--out", str(tmp_path)])


def test_exact_words_are_counted_by_hand():
    judge = text_model(JUDGE, 15, TEXT8.size, size="1M")
    judge.factorizations = text_objective(JUDGE, 15).factorizations
    truth = torch.stack([TEXT8.encode(text).long() for text in (" the cat sat on", " of old mats in")])
    bench = Bench(
        {JUDGE: judge}, truth, truth, "the the cow dogs dogs at", device=torch.device("cpu"), seed=0, bfloat16=False
    )
    bench.asked = torch.zeros_like(truth, dtype=torch.bool)
    for row, word in ((0, slice(1, 4)), (0, slice(9, 12)), (1, slice(8, 12))):
        bench.asked[row, word] = True
    filled = torch.stack([TEXT8.encode(text).long() for text in (" the cat sit on", " of old mats in")])
    found = bench.filled(filled)
    assert (found["words"], found["blanks"], found["letters"]) == (2 / 3, 3, 9 / 10)
    commonest = bench.references()[2]  # the, the, dogs
    assert (commonest["words"], commonest["letters"]) == (1 / 3, pytest.approx((3 + 0 + 1) / 10))
    assert bench.graded(truth)["spelt"] == 0.0


def test_at_a_budget_stands_the_costliest_measurement_within_it():
    def row(sampler, passes, bits):
        key = {"model": "ardm", "sampler": sampler, "setting": passes, "draw": "as it is", "task": "free"}
        return {"key": key, "passes": passes, "seconds": passes / 100, "judge": {"bits": bits}, "yardstick": 1.0}

    rows = [row("chain", 8, 3.0), row("chain", 16, 2.0), row("chain", 64, 1.0), row("remasking", 50, 1.5)]
    found = plot.document_of([{"references": []}, row("chain", 16, 9.0), *rows])
    assert len(found["rows"]) == 4  # what was measured again counts once
    equal = found["equal_passes"]
    assert [each["value"] for each in equal["free, 32 passes"].values()] == [2.0]
    assert [each["value"] for each in equal["free, 64 passes"].values()] == [1.0, 1.5]
    assert found["equal_seconds"]["free, 0.05 seconds"] == {}
