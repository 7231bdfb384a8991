"""Encoder-decoders: sizes, what may be seen, one reading of the source for all passes, caches that are chains."""

import copy

import pytest
import torch

from anyfill import Question, recipes
from anyfill.evaluation import log_prob
from anyfill.networks import CausalDecoder, DisentangledDecoder, EncoderDecoder
from anyfill.networks.encoder_decoder import END
from anyfill.networks.frozen import freeze
from anyfill.questions import Factorization, Increasing
from anyfill.questions.order import HeadFirst
from anyfill.rank import NEVER
from anyfill.samplers import beam_search, sample

V, N, S = 9, 4, 6
SMALL = {"width": 16, "depth": 2, "heads": 2, "places": 12, "dropout": 0.0}
KINDS = (EncoderDecoder, DisentangledDecoder, CausalDecoder)


def made(kind, seed=0, **options):
    torch.manual_seed(seed)
    return kind(V, N, **(SMALL | options)).eval()


def sources(rows=3, seed=0):
    codes = torch.randint(3, V, (rows, S), generator=torch.Generator().manual_seed(seed))
    length = torch.tensor([S, 4, 2])[:rows, None]
    return torch.where(torch.arange(S) < length, codes, 0)


def readings(model):
    """A list that grows by one whenever the encoder runs."""
    found = []
    model.network.encoder[0].register_forward_hook(lambda *_: found.append(1))
    return found


def weights(network):
    return sum(one.numel() for one in network.parameters())


def test_the_papers_sizes_give_the_papers_67_million_and_small_ones_5_million():
    assert weights(EncoderDecoder(32_128, 128, 512, 6, 8)) == 66_997_248
    untied = 32_128 * 512
    assert weights(EncoderDecoder(32_128, 128, 512, 6, 8, positional=False)) == 66_997_248 - 6 * (4 * 512**2 + 512)
    assert 66_997_248 + untied > 83e6  # an output of its own would not be the paper's number
    assert 4.5e6 < weights(EncoderDecoder(8000, 64, 192, 3, 4, places=128)) < 5.5e6


@pytest.mark.parametrize("kind", KINDS)
def test_padding_of_the_source_and_company_in_the_batch_change_no_answer(kind):
    network, source = made(kind), sources()
    x, known = torch.tensor([[3, 4, 5, 6, 0]] * 3), torch.tensor([[True, False, True, False, False]] * 3)
    together = network(x, known, source)
    alone = network(x[1:2], known[1:2], source[1:2, :4])
    torch.testing.assert_close(together[1:2], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [EncoderDecoder, DisentangledDecoder])
def test_places_behind_the_length_are_not_there(kind):
    network, source = made(kind), sources()
    known = torch.ones(3, N + 1, dtype=torch.bool)
    known[:, 2] = False
    x = torch.tensor([[2, 4, 0, 6, 7]] * 3)
    other = torch.tensor([[2, 4, 0, 8, 3]] * 3)
    torch.testing.assert_close(network(x, known, source)[:, :3], network(other, known, source)[:, :3])
    longer = x.clone()
    longer[:, 0] = 4
    assert not torch.allclose(network(x, known, source)[:, 2], network(longer, known, source)[:, 2])
    shorter = network(x[:, :3], known[:, :3], source)
    torch.testing.assert_close(shorter, network(x, known, source)[:, :3])  # rows may be cut


@pytest.mark.parametrize("kind", [EncoderDecoder, DisentangledDecoder])
def test_the_length_is_a_distribution_over_1_to_n_that_words_do_not_move(kind):
    network, source = made(kind), sources()
    x = torch.tensor([[3, 4, 5, 6, 0]] * 3)
    first = network(x, torch.zeros_like(x, dtype=torch.bool), source)[:, 0].softmax(-1)
    second = network(x, torch.ones_like(x, dtype=torch.bool), source)[:, 0].softmax(-1)
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(first[:, 1 : N + 1].sum(1), torch.ones(3))
    assert (first[:, 0] == 0).all()
    assert (first[:, N + 1 :] == 0).all()


def test_positional_attention_changes_answers_and_looks_at_places_alone():
    with_it, without = made(EncoderDecoder), made(EncoderDecoder, positional=False)
    assert weights(with_it) - weights(without) == 2 * (4 * 16**2 + 16)
    layer = with_it.decoder[0]
    h, places = torch.randn(2, N, 16), with_it.position.weight[:N].unsqueeze(0)
    moved = layer.placed(h, places, None) - h
    twice = layer.placed(3.0 * h, places, None) - 3.0 * h  # values are normed, queries and keys are not words'
    torch.testing.assert_close(moved, twice, atol=1e-4, rtol=1e-4)


def test_all_passes_read_the_source_once():
    model = recipes.padir.model(V, N, **SMALL)
    x = torch.tensor([[3, 0, 0, 0, 0]] * 3)
    given = torch.tensor([[True, False, False, False, False]] * 3)
    asked = torch.tensor([[False, True, True, True, False]] * 3)
    policy, draw = recipes.padir.sampler(4, stutter=False)
    read = readings(model)
    options = {"context": sources(), "generator": torch.Generator().manual_seed(0), "allow_untrained": True}
    drawn = sample(model, x, Question(given, asked), policy=policy, draw=draw, **options)
    assert drawn.passes > 1
    assert len(read) == 1


def test_two_stages_of_training_read_the_source_once():
    model, objective = recipes.padir.model(V, N, **SMALL), recipes.padir.objective(N)
    from anyfill import Rows

    rows = Rows(torch.tensor([[3, 4, 5, 6, 0]] * 3), torch.tensor([[True] * 4 + [False]] * 3), sources())
    read = readings(model)
    objective(model, rows, generator=torch.Generator().manual_seed(0))
    assert len(read) == 1


@pytest.mark.parametrize("kind", [CausalDecoder, DisentangledDecoder])
def test_a_chain_in_one_pass_is_the_same_terms_asked_one_by_one(kind):
    network, source = made(kind), sources(2)
    x = torch.tensor([[3, 4, 5, 6, 0], [4, 8, 7, 3, 5]])
    order = [0, 1, 2, 3, 4] if kind is CausalDecoder else [0, 3, 1, 4, 2]
    rank = torch.tensor([order]).argsort(1).expand(2, -1).contiguous()
    if kind is DisentangledDecoder:
        rank = torch.where(torch.arange(5) == 4, torch.tensor([[NEVER], [3]]), rank)
    together = network.chain(x, rank, source, strict=True)
    for step, variable in enumerate(order):
        known = rank < step
        alone = network(x, known, source)
        rows = (rank[:, variable] == step).nonzero().flatten()
        torch.testing.assert_close(together[rows, variable], alone[rows, variable], atol=1e-5, rtol=1e-5)


def test_what_a_disentangled_word_does_not_see_cannot_leak_through_a_third_one():
    network, source = made(DisentangledDecoder), sources(1)
    x, rank = torch.tensor([[4, 4, 5, 6, 7]]), torch.tensor([[-1, 2, 0, 1, 3]])
    before = network.chain(x, rank, source)
    for hidden in range(1, 5):
        other = x.clone()
        other[0, hidden] = 8
        after = network.chain(other, rank, source)
        for word in range(1, 5):
            same = torch.equal(before[0, word], after[0, word])
            assert same == bool(rank[0, word] <= rank[0, hidden])


def test_the_cache_of_a_causal_decoder_agrees_with_its_chain_behind_any_beginning():
    network, source = made(CausalDecoder), sources()
    x = torch.tensor([[3, 4, 5, 6, END], [4, 8, END, 0, 0], [7, 7, 7, END, 0]])
    rank = torch.tensor([[0, 1, 2, 3, 4], [-1, 0, 1, NEVER, NEVER], [-2, -1, 0, 1, NEVER]])
    chain = network.chain(x, rank, source)
    params, cache = network.open(x, rank, source)
    given = (rank < 0).sum(1)
    for step in range(3):
        place = given + step
        rows = (place < (rank < NEVER).sum(1)).nonzero().flatten()
        torch.testing.assert_close(params[rows], chain[rows, place[rows]], atol=1e-5, rtol=1e-5)
        params, cache = network.extend(x[torch.arange(3), place.clamp(max=4)], cache)
    _, cache = network.open(x, rank, source)
    wide, _ = network.advance(x[:1].expand(3, -1)[:, :3], cache)
    torch.testing.assert_close(wide[0], chain[0, 1:4], atol=1e-5, rtol=1e-5)
    row, variable = (rank < NEVER).nonzero(as_tuple=True)
    some = network.chain_at(x, rank, row, variable, source)
    torch.testing.assert_close(some, chain[row, variable], atol=1e-5, rtol=1e-5)


def test_a_beam_as_wide_as_all_targets_finds_the_likeliest_one():
    """Every target of up to two words and END of a vocabulary of five codes, by enumeration."""
    torch.manual_seed(1)
    network = CausalDecoder(5, 2, **SMALL)
    for one in network.parameters():
        one.data *= 1.5
    model = recipes.autoregressive.model(5, 2, **SMALL)
    model.network.load_state_dict(network.state_dict())
    model.factorizations = {Factorization.PREFIX}
    source, empty = torch.tensor([[3, 4]]), torch.zeros(1, 3, dtype=torch.long)
    everything = torch.ones_like(empty, dtype=torch.bool)
    found = beam_search(model, empty, Question(~everything, everything), width=200, context=source, end=END)[0]
    targets = [(END,)] + [(a, END) for a in range(5) if a != END]
    targets += [(a, b, c) for a in range(5) for b in range(5) for c in range(5) if END not in (a, b)]
    scores = {}
    for target in targets:
        row = torch.zeros(1, 3, dtype=torch.long)
        row[0, : len(target)] = torch.tensor(target)
        asked = torch.arange(3).unsqueeze(0) < len(target)
        scores[target] = log_prob(model, row, Question(torch.zeros_like(asked), asked), context=source).value.item()
    assert sum(torch.tensor(list(scores.values())).exp()) == pytest.approx(1.0, abs=1e-5)
    best = max(scores, key=lambda one: scores[one])
    assert tuple(found[0].tolist())[: len(best)] == best


def test_all_targets_of_a_disentangled_model_have_probability_one_together():
    model = recipes.disco.model(5, 2, **SMALL)
    model.factorizations = {Factorization.ANY_ORDER}
    total = 0.0
    for length in (1, 2):
        for word in range(5):
            for other in range(5) if length == 2 else (0,):
                asked = torch.arange(3).unsqueeze(0) <= length
                question = Question(torch.zeros_like(asked), asked)
                x = torch.tensor([[length, word, other]])
                order = HeadFirst(Increasing())
                total += log_prob(model, x, question, order=order, context=torch.tensor([[3, 4]])).value.exp().item()
    assert total == pytest.approx(1.0, abs=1e-5)


def test_bad_sizes_and_sources_are_refused():
    with pytest.raises(ValueError, match="codes"):
        EncoderDecoder(4, 4)
    with pytest.raises(ValueError, match="multiple of heads"):
        EncoderDecoder(9, 4, width=10, heads=4)
    network = made(EncoderDecoder)
    x, known = torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, 5, dtype=torch.bool)
    with pytest.raises(ValueError, match="at most 11 codes"):
        network(x, known, torch.full((1, 12), 3))
    with pytest.raises(ValueError, match="a source"):
        network(x, known)


@pytest.mark.parametrize("kind", [EncoderDecoder, CausalDecoder, DisentangledDecoder])
def test_a_frozen_network_answers_as_before(kind, generator) -> None:
    network = kind(20, 6, width=16, depth=2, heads=2, places=12, dropout=0.0).eval()
    for module in network.modules():
        if isinstance(module, torch.nn.RMSNorm):
            torch.nn.init.uniform_(module.weight, 0.5, 2.0, generator=generator)
    x = torch.randint(3, 20, (3, 7), generator=generator)
    x[:, 0] = torch.tensor([6, 3, 5])
    known = torch.rand(3, 7, generator=generator) < 0.5
    known[:, 0] = True
    source = torch.randint(3, 20, (3, 5), generator=generator)
    with torch.no_grad():
        before = network(x, known, source)
        untouched = copy.deepcopy(network)
        freeze(network)
        torch.testing.assert_close(network(x, known, source), before)
        for length in (3, 6, 3):  # without padding what positional attention says is kept: it must be this length's
            row = torch.cat([torch.tensor([[length]]), x[:1, 1 : length + 1]], 1)
            told = torch.ones_like(row, dtype=torch.bool)
            torch.testing.assert_close(network(row, told, source[:1]), untouched(row, told, source[:1]))
