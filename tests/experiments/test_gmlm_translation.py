"""The translation experiments' own arithmetic: correlations, attention of pairs, what is tested is not trained on."""

import gzip
import json
import tarfile

import numpy as np
import pytest
import torch

pytest.importorskip("sentencepiece")

from anyfill import recipes
from experiments.gmlm import ablation, attention, speed, strata, table1, translation

SMALL = {"width": 16, "depth": 2, "heads": 2, "places": 16, "dropout": 0.0}


def test_spearman_is_scipys_and_takes_a_third_out():
    from scipy import stats

    random = np.random.default_rng(0)
    a, c = random.normal(size=200), random.normal(size=200)
    b = np.round(a + c, 1)
    assert strata.spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-9)
    assert abs(strata.spearman(c, c + 0.0 * a, c)) < 1e-6  # nothing is left of c without c
    found = strata.with_interval(a, b, resamples=50)
    assert found["low"] <= found["spearman"] <= found["high"]


def test_looks_of_the_last_layer_are_distributions_and_answer_as_the_network_does():
    model = recipes.padir.model(9, 5, **SMALL).eval()
    x, source = torch.tensor([[4, 3, 5, 6, 7, 0]]), torch.tensor([[3, 4, 8]])
    with model.evaluating():
        memory = model.read(source)
        own, cross = attention.last_looks(model.network, x, memory)
    assert own.shape == (1, 2, 5, 5)
    assert cross.shape == (1, 2, 5, 3)
    torch.testing.assert_close(own.sum(-1), torch.ones(1, 2, 5))
    torch.testing.assert_close(cross.sum(-1), torch.ones(1, 2, 5))
    assert (own[..., 4] == 0).all()  # nobody looks behind the length
    seen = {}
    layer = model.network.decoder[-1]
    layer.cross.out.register_forward_hook(lambda m, given, out: seen.setdefault("cross", given[0]))
    model.network(x, torch.ones_like(x, dtype=torch.bool), memory)
    values = cross @ memory.values[-1]
    torch.testing.assert_close(seen["cross"], values.transpose(1, 2).flatten(2), atol=1e-5, rtol=1e-4)


def test_measures_of_a_pair_by_hand():
    own = torch.tensor([[[0.1, 0.9], [0.4, 0.6]]])
    cross = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    found = attention.measures(own, cross, 0)
    assert found["self_min"] == pytest.approx(0.4)
    assert found["self_max"] == pytest.approx(0.9)
    assert found["tv_mean"] == pytest.approx(1.0)
    assert found["cosine_mean"] == pytest.approx(1.0)
    assert found["self_top1"] == 1.0
    assert found["cross_top1"] == 0.0
    rows = [{"sentence": i, "stutter": i % 2 == 0, "boundary": i < 3, **found} for i in range(6)]
    table = attention.summary(rows, resamples=10)
    assert table["all, stutter"]["pairs"] == 3
    assert table["word boundary, other"]["self_max"]["mean"] == pytest.approx(0.9)


def test_information_between_neighbours_is_that_of_the_model_by_enumeration():
    """Of two words the sum over all values is exact when ``top`` is the whole vocabulary."""
    model = recipes.cmlm.model(6, 3, **SMALL, seed=2).eval()
    for one in model.parameters():
        one.data *= 1.5
    source, target = [3, 4], [5, 3]
    context = torch.tensor([source])
    hidden = torch.tensor([[True, False, False]])
    x = torch.tensor([[2, 5, 3]])
    with model.evaluating():
        p = model.marginals(x, hidden, context).log_probs[0, 2].double().exp()
        rows = torch.stack([torch.tensor([2, 0, v]) for v in range(6)])
        known = torch.tensor([[True, False, True]]).expand(6, -1)
        q = model.marginals(rows, known, context.expand(6, -1)).log_probs[:, 1].double().exp()
    mixed = (p[:, None] * q).sum(0)
    expected = (p[:, None] * q * (q / mixed).log()).sum().item()
    found = strata.adjacent_dependence(model, source, target, top=6)
    assert found["information"] == pytest.approx(expected, abs=1e-5)
    apart = (p[:, None] * q - p[:, None] * mixed).abs().sum().item() / 2
    assert found["variation"] == pytest.approx(apart, abs=1e-5)


def test_padir_is_asked_with_noise_where_words_are_hidden():
    """What stands in the two hidden places of a target of two words does not count, as nothing else is told of it."""
    model = recipes.padir.model(6, 3, **SMALL, seed=2).eval()
    once, again = (strata.adjacent_dependence(model, [3, 4], target, top=6) for target in ([5, 3], [4, 4]))
    assert once == again
    assert 0.0 < once["variation"] < 1.0


def test_strata_of_dependence_are_quartiles_and_passes_follow_it():
    texts = {t: [f"ein mann läuft {i} mal ." for i in range(40)] for t in strata.PASSES}
    names = ("information", "variation", "own_variation", "doubt", "repeats", "gain", "pieces")
    rows = [{name: float(i % 7) for name in names} | {"variation": i / 40, "passes": 1.0 + i // 10} for i in range(40)]
    found = strata.summary(rows, texts, texts[1], "variation")
    assert [one["passes"]["mean"] for one in found["strata"]] == [1.0, 2.0, 3.0, 4.0]
    assert found["passes"]["spearman"] > 0.9
    assert all(one["at_passes"]["1"]["bleu"] == pytest.approx(100.0) for one in found["strata"])


def test_what_is_tested_is_never_trained_on(tmp_path):
    folder = tmp_path / "tatoeba_de_en"
    folder.mkdir()
    lines = [f"Sentence number {i}.\tSatz Nummer {i}.\n" for i in range(3000)]
    lines += [f"sentence NUMBER {i}!\tSo etwa {i}.\n" for i in range(3000)]
    with gzip.open(folder / "deu-eng.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(lines)
    for source, target in (("en", "de"), ("de", "en")):
        plan = translation.Plan(tmp_path, tmp_path, sets=("tatoeba",), source=source, target=target)
        english = 0 if source == "en" else 1
        tested = {pair[english].casefold().strip(".!") for pair in translation.test_pairs(plan)["tatoeba"]}
        learnt = {pair[english].casefold().strip(".!") for pair in translation.training_pairs(plan)}
        assert 30 < len(tested) < 90
        assert not tested & learnt


def test_every_script_knows_its_options():
    for script in (table1, ablation, speed, attention, strata):
        with pytest.raises(SystemExit) as end:
            script.main(["--help"])
        assert end.value.code == 0


def test_an_ablation_is_scored_by_its_tokens_and_against_the_whole_on_the_same_sentences(tmp_path):
    references = [f"ein mann läuft {i} mal ." for i in range(8)]
    wrong = [one.replace("mann", "hund") for one in references]

    def note(step, recipe, texts):
        way = {"passes": 4, "lengths": 5, "beam": 5, "mean_passes": 2.0, "seconds": 1.0, "texts": texts}
        return {"step": step, "recipe": recipe, "training": {"steps": 3}, "translations": [way]}

    folder = tmp_path / "results"
    folder.mkdir()
    for one in (note("whole", "padir", references), note("raw", "padir", wrong)):
        (folder / f"{one['step']}.en-de.json").write_text(json.dumps(one))
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz") as tar:
        tar.add(folder, "results")
    notes = ablation.notes_in([tmp_path / "run.tar.gz"])
    assert notes == ablation.notes_in([folder])
    notes["published"] = note("published", "autoregressive", references)
    found = ablation.scored(notes, references)
    bleu = {row["system"]: row["bleu"] for row in found["systems"]}
    assert bleu["whole T4 L5"] == pytest.approx(100.0)
    gap = next(one for one in found["gaps"] if (one["system"], one["against"]) == ("raw T4 L5", "whole T4 L5"))
    assert gap["difference"] == pytest.approx(bleu["raw T4 L5"] - 100.0)
    assert gap["high"] < 0
    assert {one["against"] for one in found["gaps"]} == {"whole T4 L5", "published beam 5"}
    assert all("tok:none" in row["bleu_signature"] for row in found["systems"])
