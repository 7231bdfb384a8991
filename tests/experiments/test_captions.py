"""Captions: typical words without a sort, the plan and its time, curves compared with errors, a law that is exact."""

import argparse
import itertools
import json
import math

import pytest
import torch
from torch import Generator

from anyfill.samplers import Draw
from experiments.sunmask import captions_claims as claims
from experiments.sunmask import captions_late as late
from experiments.sunmask import emnlp_common as news
from experiments.sunmask import emnlp_grade as grading
from experiments.sunmask import trusted
from experiments.sunmask.emnlp_cells import typical_only
from experiments.sunmask.emnlp_plot import Point

PLAN, EMPHASES = late.plan, ("emphasis", "emphasis-untrusted")


def seeded(seed=0):
    return Generator().manual_seed(seed)


@pytest.mark.parametrize("temperature", [0.4, 1.0])
@pytest.mark.parametrize("mass", [0.2, 0.9])
def test_bisection_keeps_the_words_that_sorting_keeps(temperature, mass):
    law = (3 * torch.randn(200, 300, generator=seeded())).log_softmax(-1)
    found = typical_only(law, temperature, mass).log_softmax(-1)
    sorted_out = Draw(temperature=temperature, typical=mass).filtered(law)
    assert torch.equal(found.isneginf(), sorted_out.isneginf())
    kept = ~found.isneginf()
    assert 200 < int(kept.sum()) < 200 * 300
    assert torch.allclose(found[kept].double(), sorted_out[kept], atol=1e-4)


def test_among_equally_typical_words_the_first_codes_are_kept():
    law = torch.tensor([0.5, 0.3, 0.05, 0.05, 0.05, 0.05]).log()[None]
    kept = {mass: (~typical_only(law, 1.0, mass).isneginf())[0].nonzero()[:, 0].tolist() for mass in (0.2, 0.7, 0.81)}
    assert kept == {0.2: [1], 0.7: [0, 1], 0.81: [0, 1, 2]}
    with_none = torch.tensor([[0.25, 0.25, 0.0, 0.5]]).log()
    assert typical_only(with_none, 1.0, 0.99)[0].isneginf().tolist() == [False, False, True, False]
    alike = torch.full((1, 8), 1 / 8).log()
    assert int((~typical_only(alike, 1.0, 0.5).isneginf()).sum()) == 4


def test_sunmask_that_keeps_what_it_trusts_accepts_elsewhere_only():
    assert not news.Setting(Draw(), 4).policy("sunmask").keep_trusted
    assert news.Setting(Draw(), 4, keep_trusted=True).policy("sunmask").keep_trusted
    assert news.Setting(Draw(), 4, keep_trusted=True).policy("sundae").trust is None


def test_the_plan_names_every_file_once_and_the_curves_come_first():
    lines = [line for line in late.plan() if isinstance(line, late.Line)]
    names = [(line.label, line.temperature) for line in lines]
    assert len(set(names)) == len(names)
    for label in ("sunmask", "sundae", "sunmask-untrusted", "sunmask-typical"):
        assert sorted(line.temperature for line in lines if line.label == label) == list(late.TEMPERATURES)
    assert {line.rounds for line in lines if line.label.startswith("sundae")} == {13, 26, 52, 104, 208, 520}
    assert all(line.label.endswith(f"_{line.rounds}") == (line.rounds not in (52, None)) for line in lines)
    assert {line.temperature for line in lines[:8]} == {1.0, 0.4}


def test_what_would_not_end_in_time_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(late.news, "load_news", lambda *_: None)
    drawn = []
    monkeypatch.setattr(late, "Sampler", lambda *_: None)
    monkeypatch.setattr(late, "draw_one", lambda *told: drawn.append(told[3]))
    monkeypatch.setattr(late.time, "time", lambda: 1000.0)
    (tmp_path / "sunmask").mkdir()
    (tmp_path / "sunmask" / "config.json").write_text("{}")
    options = {
        "models": tmp_path,
        "out": tmp_path,
        "data": tmp_path,
        "sentences": 5000,
        "emphasis": {},
        "device": "cpu",
        "until": 1000.0 + 60 * late.GUESS,
    }
    one = late.Late(argparse.Namespace(**options))
    assert one.draws(late.Line("short", "sunmask", 1.0, 52))
    assert not one.draws(late.Line("long", "sunmask", 1.0, 104))
    assert not one.draws(late.Line("typical", "sunmask", 1.0, 52, 0.9))
    assert not one.draws(late.Line("nobody", "sundae", 1.0, 1))
    assert not one.emphasises("emphasis")
    assert drawn == ["short"]


def test_what_had_no_time_in_one_turn_is_tried_in_the_next(tmp_path, monkeypatch):
    asked = []

    class Stub:
        def __init__(self, arguments):
            self.arguments = arguments

        def prepare(self):
            asked.append("prepared")

        def does(self, line):
            asked.append((self.arguments.until, line))
            return line != "long" or self.arguments.until == 9.0

    monkeypatch.setattr(late, "Late", Stub)
    monkeypatch.setattr(late, "plan", lambda rounds: iter(["short", "long", "other"]))
    files = [tmp_path / "one", tmp_path / "two"]
    for file, until in zip(files, ("5\n", "9\n")):
        file.write_text(until)
    monkeypatch.setattr("sys.argv", ["late", "--out", str(tmp_path / "out"), "--go", *map(str, files)])
    late.main()
    assert asked == ["prepared", (5.0, "short"), (5.0, "long"), (5.0, "other"), (9.0, "long")]
    assert all(file.with_name(f"{file.name}.ended").exists() for file in files)


def test_what_fails_is_not_tried_again_and_the_rest_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(late.news, "load_news", lambda *_: None)
    one = late.Late(argparse.Namespace(until=math.inf, models=tmp_path, data=tmp_path))
    monkeypatch.setattr(one, "is_there", lambda folder: True)
    monkeypatch.setattr(late, "Sampler", lambda *_: 1 / 0)
    assert one.does(late.Line("sunmask", "sunmask", 1.0))
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_weights_that_take_the_place_of_untrained_ones_draw_the_same_sentences(tmp_path, monkeypatch):
    few = news.News([["a", "cat"], ["a", "dog", "sits"]] * 20, [["a"]], [["a", "cat"], ["a"]], 6)
    monkeypatch.setattr(late.news, "load_news", lambda *_: few)
    vocabulary = news.vocabulary_for("sunmask", few.words, written=True)
    for seed, recipe in enumerate(("sunmask", "sundae", "left_to_right"), 3):
        model = news.made(recipe, vocabulary.size, 6, size="1M", depth=1, written=True, seed=seed)
        for weights in model.parameters():
            torch.nn.init.normal_(weights, std=0.3)
        model.factorizations = late.text_objective(recipe, 6).factorizations
        late.save_model(model.half(), tmp_path / "models" / recipe, notes=late.vocabulary_notes(vocabulary))
    sizes = ["--size", "1M", "--depth", "1", "--sentences", "8", "--rounds", "4", "--device", "cpu"]
    sizes += ["--emphasis", '{"samples": 2, "rounds": 2}']
    monkeypatch.setattr(late, "plan", lambda rounds: (one for one in PLAN(rounds) if one not in EMPHASES))
    (tmp_path / "go").write_text("inf\n")
    found = []
    for name, more in (("plain", []), ("turns", ["--go", str(tmp_path / "go")])):
        out = tmp_path / name
        monkeypatch.setattr(
            "sys.argv", ["late", "--models", str(tmp_path / "models"), "--out", str(out), *sizes, *more]
        )
        late.main()
        found.append({path.name: news.read_sentences(path) for path in out.glob("*.txt.gz")})
        assert (out / "left_to_right.bits.json").exists()
    assert found[0] == found[1]
    assert {"sunmask.1.txt.gz", "sundae_40.0.8.txt.gz", "left_to_right.0.4.txt.gz"} <= found[0].keys()
    assert len({str(lines) for lines in found[0].values()}) > 20  # not one sentence again and again


def test_an_earlier_run_stands_beside_and_only_labels_of_both_are_marked(tmp_path):
    old = {
        "sunmask.1@2": {"label": "sunmask", "sentences": 2},
        "ar.1@2": {"label": "ar", "sentences": 2},
        "real@2": {"label": "real text", "sentences": 2, "old": True},
    }
    (tmp_path / "grades.json").write_text(json.dumps(old))
    (tmp_path / "sunmask.train.json").write_text(json.dumps({"seconds": 42}))
    (tmp_path / "ar.draws.jsonl").write_text(json.dumps({"label": "ar", "temperature": 1.0}) + "\n")
    before = grading.Before(tmp_path, "42 s")
    new = {"sunmask.1@2": {"label": "sunmask", "sentences": 2, "new": True}, "real@2": {"label": "real text"}}
    found = before.grades(new)
    assert found["42 s: sunmask.1@2"]["label"] == "sunmask, 42 s"
    assert found["sunmask.1@2"] == new["sunmask.1@2"]
    assert found["ar.1@2"]["label"] == "ar"
    assert found["real@2"] == new["real@2"]
    assert before.records({"sunmask": 1}, "train") == {"sunmask, 42 s": {"seconds": 42}, "sunmask": 1}
    assert [one["label"] for one in before.draws([{"label": "sunmask"}])] == ["ar"]
    assert grading.Before(None).grades(new) is new


def curve(shift, spread=0.001, temperatures=(0.4, 0.7, 1.0)):
    """Self-BLEU = BLEU + shift, at BLEU 0.7, 0.5, 0.3; of groups it moves up and down by ``spread``."""
    moved = [spread, -spread] * 10
    return [
        Point(b, b + shift, 100, t, None, {"bleu": [b] * 20, "self_bleu": [b + shift + one for one in moved]})
        for b, t in zip((0.7, 0.5, 0.3), temperatures)
    ]


def test_curves_are_compared_at_equal_bleu_with_both_errors():
    one, other = curve(-0.1), curve(0.0, spread=0.002)
    gap = claims.between(one, other, 0.4)
    assert gap["difference"] == pytest.approx(-0.1)
    errors = [math.sqrt(19 / 20 * 20 * size**2) for size in (0.001, 0.002)]
    assert gap["stderr"] == pytest.approx(math.hypot(*errors))
    assert claims.judged([gap]) == "confirmed"
    assert claims.judged([claims.between(other, one, 0.4)]) == "refuted"
    assert claims.judged([gap, claims.between(other, one, 0.4)]) == "not decided"
    assert claims.judged([claims.between(curve(0.0), curve(0.0), 0.4)]) == "not decided"
    assert claims.judged([claims.between(one, other, 0.9)]) == "not decided"


def test_a_point_of_more_rounds_is_judged_by_the_curve_at_its_own_bleu():
    point = Point(0.6, 0.55, 100, 0.8, 104, {"bleu": [0.6] * 20, "self_bleu": [0.551, 0.549] * 10})
    gap = claims.above(point, curve(0.0))
    assert gap["difference"] == pytest.approx(-0.05)
    assert gap["stderr"] == pytest.approx(math.hypot(*[math.sqrt(19) * 0.001] * 2))


def test_claims_are_made_of_what_was_drawn():
    def plain(points, rounds=None):
        return [{**{name: getattr(point, name) for name in Point.__slots__}, "rounds": rounds} for point in points]

    found = {
        "curves": {
            "sunmask": plain(curve(0.0)),
            "sundae": plain(curve(-0.05)),
            "sunmask, t = 0.8": plain(curve(-0.1)[1:2], 104) + plain(curve(0.1)[1:2], 13),
        },
        "draws": [{"label": "sunmask", "rounds": 52}],
    }
    pairs = [
        {"words": ["cat", "dog"], "emphasis": {"mean": 0.4, "stderr": 0.05}},
        {"words": ["bus", "cake"], "emphasis": {"mean": 0.3, "stderr": 0.05}},
        {"words": ["man", "sky"], "emphasis": {"mean": -0.01, "stderr": 0.05}},
    ]
    said = claims.captions_claims(found, {"the paper's chain": {"pairs": pairs}})
    verdicts = {claim: one["verdict"] for claim, one in said.items()}
    assert verdicts == {
        "SUNMASK beats SUNDAE, trained as long": "refuted",
        "sunmask: 104 rounds are better than 52": "confirmed",
        "sunmask: 13 rounds are worse than 52": "confirmed",
        "emphasis (Table 3), the paper's chain": "not decided",
    }
    one = said["emphasis (Table 3), the paper's chain"]
    assert (one["pairs"], one["towards the trusted word"], one["towards the other"]) == (3, 2, 0)
    assert one["mean"] == pytest.approx(0.23)
    assert all(claim in claims.line_of(claim, one) for claim, one in said.items())


def test_the_law_of_made_up_sentences_sums_to_one_and_has_these_conditionals(monkeypatch):
    monkeypatch.setattr(trusted, "PLACES", 3)
    monkeypatch.setattr(trusted, "WORDS", 5)
    law = trusted.Law.made(generator=seeded())
    every = torch.tensor([*itertools.product(range(5), repeat=3)])
    joint = law.log_prob(every).exp()
    assert float(joint.sum()) == pytest.approx(1.0)
    grid = joint.view(5, 5, 5)
    exact = law.conditionals(every[[7, 68]])
    for row, x in enumerate(every[[7, 68]].tolist()):
        assert torch.allclose(exact[row, 1].exp(), grid[x[0], :, x[2]] / grid[x[0], :, x[2]].sum())
    drawn = law.sample(20_000, generator=seeded(1))
    counts = torch.bincount(drawn @ torch.tensor([25, 5, 1]), minlength=125).double()
    statistic = float(((counts - 20_000 * joint) ** 2 / (20_000 * joint)).sum())
    assert statistic < 200  # 124 degrees of freedom: one seed in 50,000, and the seed is fixed
