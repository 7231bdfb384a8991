"""The latency harness: the peer has the same weights and says the same words; int8 answers nearly alike."""

import pytest
import torch

from anyfill.translation.latency import Timing, int8, one_by_one, parallel, peer, timed
from anyfill.translation.recipes import layout_of, make_model

SOURCES = [[5, 9, 30, 7], [44, 12, 8, 9, 10, 31, 6, 5, 20]]
LENGTHS = [6, 9]


def lively(recipe):
    """An untrained model whose answers depend on what it reads."""
    model = make_model(recipe, 60, 16, "toy").eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, one in model.named_parameters():
            if one.dim() == 2 and "table" not in name and "position" not in name:
                one.copy_(torch.randn(one.shape, generator=generator) * 2.5 / one.shape[1] ** 0.5)
    return model


def test_ctranslate2_with_our_weights_says_what_torch_says():
    pytest.importorskip("ctranslate2")
    for recipe in ("autoregressive", "deep_shallow"):
        model = lively(recipe)
        ours, theirs = one_by_one(model)(SOURCES, LENGTHS), peer(model, kind="float32", beam=1)(SOURCES, LENGTHS)
        assert ours == theirs
        assert len({code for row in ours for code in row}) > 2  # not the same word again and again
    assert [len(row) for row in peer(model, kind="int8", beam=2)(SOURCES, LENGTHS)] == LENGTHS


def test_int8_answers_nearly_as_fp32_does():
    model = lively("padir")
    x = torch.tensor([[6, 5, 6, 7, 8, 9, 10]])
    known = torch.ones_like(x, dtype=torch.bool)
    source = torch.tensor(SOURCES[:1])
    exact = model.marginals(x, known, source).log_probs[:, 1:].exp()
    rough = int8(model).marginals(x, known, source).log_probs[:, 1:].exp()
    assert 0 < (exact - rough).abs().max() < 0.2
    assert "projection" not in dict(model.named_modules())  # the model itself is left alone


@pytest.mark.parametrize("recipe", ["padir", "cmlm", "autoregressive", "deep_shallow"])
def test_layers_as_one_graph_say_what_they_say_one_by_one(recipe, monkeypatch):
    model = lively(recipe)
    plain, traced = int8(model, traced=False), int8(model)
    calls = []
    own = type(traced.network.recorded.decoder).__call__
    graph = traced.network.recorded.decoder
    monkeypatch.setattr(traced.network.recorded, "decoder", lambda *some: calls.append(1) or own(graph, *some))
    decode = one_by_one if layout_of(recipe) == "end" else lambda model: parallel(model, recipe, 3)
    for sources, lengths in ((SOURCES[:1], [6]), (SOURCES[1:], [14]), (SOURCES[:1] * 3, [9] * 3), (SOURCES, LENGTHS)):
        assert decode(traced)(sources, lengths) == decode(plain)(sources, lengths)
    assert calls  # the graph was used where nothing is padded
    x = torch.tensor([[6, 5, 6, 7, 8, 9, 10]])
    known, source = torch.ones_like(x, dtype=torch.bool), torch.tensor(SOURCES[:1])
    if layout_of(recipe) == "length":
        both = [one.marginals(x, known, source).log_probs for one in (plain, traced)]
        assert torch.equal(*both)


@pytest.mark.parametrize("model", [lively("padir"), make_model("padir", 60, 16, "toy", dropout=0.0).eval()])
def test_every_sentence_takes_all_its_passes_also_where_they_change_nothing(model):
    """The second one says the same whatever it reads: it has nothing to do after the first pass, and does it."""
    rows = []
    model.network.decoder[0].register_forward_hook(lambda _, given, out: rows.append(len(out)))
    parallel(model, "padir", 4)(SOURCES, LENGTHS)
    assert rows == [2] * 4


def test_every_sentence_takes_all_its_passes_and_has_the_length_it_should():
    calls = []
    model = lively("padir")
    model.network.decoder[0].register_forward_hook(lambda *_: calls.append(1))
    found = parallel(model, "padir", 4)(SOURCES[:1], [5])
    assert len(calls) == 4
    assert len(found[0]) == 5
    found = parallel(model, "padir", 2, lengths=3)(SOURCES, LENGTHS)
    assert [len(one) for one in found] == LENGTHS


def test_timing_is_summed_up_by_quantiles():
    timing = timed(lambda sources, lengths: [[0]] * len(sources), SOURCES * 3, LENGTHS * 3, batch=2, warmup=1)
    assert len(timing.wall) == 3
    assert Timing((1.0, 2.0, 3.0), (1.0, 1.0, 1.0)).summary()["wall_p50_ms"] == 2.0
