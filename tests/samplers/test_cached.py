"""Sampling from the cache follows the chain. False alarms: p > 0.001 with fixed seeds.

A beam wide enough is a list of everything, by probability; a narrow one holds true rows of that list.
"""

import itertools

import pytest
import torch
from torch import nn

from anyfill.evaluation import log_prob
from anyfill.likelihoods import Categorical, Gaussian, Mixed
from anyfill.model import Model
from anyfill.networks.embed import Discrete
from anyfill.networks.embed import Mixed as MixedKind
from anyfill.networks.exact import EnumeratedJoint
from anyfill.networks.network import Cached
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.questions import Decreasing, Factorization, Increasing, Question, Shuffled
from anyfill.questions.question import chain_rank
from anyfill.samplers import CachedChain, Draw, Follow, Speculative, beam_search, can_search, sample, watch
from anyfill.samplers.cached import Opened


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("order", [Increasing(), Decreasing()])
@pytest.mark.parametrize("draw", [Draw(), Draw(top_k=2)])
def test_the_cache_draws_the_law_of_the_chain(kit, generator, own, order, draw):
    model = kit.model(kit.transformer(4, 3), 3, order=order if own else None)
    masks = kit.question(1, [2], [0, 1, 3], 4)
    x = torch.tensor([0, 0, 2, 0])
    rows = 8000
    question = kit.question(rows, [2], [0, 1, 3], 4)
    policy = CachedChain() if own else CachedChain(order)
    out = sample(model, x.expand(rows, 4), question, policy=policy, draw=draw, generator=generator)
    assert out.passes == 3
    other = Decreasing() if order == Increasing() else Increasing()
    with torch.no_grad():
        law = kit.chain_law(model, (masks.given, masks.asked), x, order, draw)
        swapped = kit.chain_law(model, (masks.given, masks.asked), x, other, draw)
    assert kit.p_value(out.x, law) > 0.001
    assert kit.p_value(out.x, swapped) < 1e-6


def test_it_is_the_default_for_a_network_with_a_cache(kit):
    model = kit.model(kit.transformer(4, 3), 3)
    assert isinstance(model.network, Cached)
    question = kit.question(20, [0], [1, 3], 4)
    x = torch.ones(20, 4).long()
    default = sample(model, x, question, generator=torch.Generator().manual_seed(1))
    named = sample(model, x, question, policy=CachedChain(), generator=torch.Generator().manual_seed(1))
    assert torch.equal(default.x, named.x)


def test_rows_may_give_and_ask_different_numbers(kit, generator):
    """Greedy answers are the same whether a row stands alone or beside longer and shorter ones."""
    model = kit.model(kit.transformer(6, 3), 3)
    part = torch.rand(40, 6, generator=generator)
    question = Question(part < 0.35, part > 0.5)
    x = torch.randint(3, (40, 6), generator=generator)
    greedy = Draw(temperature=0.0)
    together = sample(model, x, question, draw=greedy, generator=generator)
    assert torch.equal(together.row_passes, question.asked.sum(1))
    for row in range(40):
        one = Question(question.given[row : row + 1], question.asked[row : row + 1])
        alone = sample(model, x[row : row + 1], one, draw=greedy, generator=generator)
        assert torch.equal(alone.x[0], together.x[row])
        slow = sample(model, x[row : row + 1], one, draw=greedy, policy=Speculative(), generator=generator)
        assert torch.equal(slow.x[0], together.x[row])


def test_what_is_drawn_is_scored_the_same_by_evaluation(kit, generator):
    """The sampler's own log-probabilities, one step at a time from the cache, are the chain's in one pass."""
    model = kit.model(kit.transformer(6, 3), 3)
    part = torch.rand(40, 6, generator=generator)
    question = Question(part < 0.35, part > 0.5)
    x = torch.randint(3, (40, 6), generator=generator)
    for policy in (CachedChain(), Follow(), Speculative()):
        *_, last = watch(model, x, question, policy=policy, generator=generator)
        expected = log_prob(model, last.x, question).value
        torch.testing.assert_close(last.score.sum(1), expected, atol=1e-5, rtol=0)


def test_mixed_columns_are_drawn_each_by_its_own_kind(generator):
    torch.manual_seed(0)
    columns = (Categorical(3), Gaussian(), Categorical(2), Gaussian())
    likelihood = Mixed(columns)
    network = OnePassTransformer(MixedKind((3, 0, 2, 0)), (4,), likelihood.width, width=16, depth=1, heads=2)
    nn.init.normal_(network.head.weight, std=0.5)
    model = Model(network, likelihood, factorizations=[Factorization.ANY_ORDER])
    asked = torch.ones(200, 4).bool()
    question = Question(~asked, asked)
    out = sample(model, torch.zeros(200, 4), question, policy=CachedChain(Shuffled()), generator=generator).x
    assert set(out[:, 0].tolist()) <= {0.0, 1.0, 2.0}
    assert set(out[:, 2].tolist()) <= {0.0, 1.0}
    assert out[:, 1].unique().numel() == 200
    assert out[:, 3].unique().numel() == 200


def test_a_network_without_a_cache_is_refused(kit, generator):
    question = kit.question(3, [], [0, 1], 2)
    with pytest.raises(ValueError, match="cached"):
        sample(
            kit.model(EnumeratedJoint(2, 2), 2),
            torch.zeros(3, 2),
            question,
            policy=CachedChain(),
            generator=generator,
        )


def question_and_rows(rows: int) -> tuple[Question, torch.Tensor]:
    kinds = torch.tensor([[1, 2, 2, 1, 0, 0], [1, 1, 2, 2, 1, 1], [0, 0, 0, 0, 0, 2]])  # 1 given, 2 asked
    kind = kinds[torch.arange(rows) % 3]
    x = torch.tensor([[0, 9, 9, 1, 9, 9], [2, 1, 9, 9, 0, 1], [9, 9, 9, 9, 9, 9]])[torch.arange(rows) % 3]
    return Question(kind == 1, kind == 2), x


def test_rows_that_are_given_the_same_are_read_once_with_the_same_outcome(tiny_model, monkeypatch) -> None:
    model = tiny_model()
    question, x = question_and_rows(12)
    rank = chain_rank(Increasing(), question)
    opened: list[int] = []
    plain_open = type(model.network).open

    def counting(self, x, rank, context=None):
        opened.append(len(x))
        return plain_open(self, x, rank, context)

    with model.evaluating():
        expected, cache = model.network.open(x, rank)
        monkeypatch.setattr(type(model.network), "open", counting)
        read = Opened.once(model.network, x, rank)
        assert read.is_of(torch.where(rank < 0, x, 1 - x), rank)
        assert not read.is_of(torch.where(rank < 0, 1 + x, x), rank)  # the same questions of other rows
        assert not read.is_of(x, rank + (rank >= 0).long())
        got, mine = read.apart()
        assert opened == [3]
        torch.testing.assert_close(got, expected)
        value = torch.arange(12) % 3
        torch.testing.assert_close(model.network.extend(value, mine)[0], model.network.extend(value, cache)[0])


@pytest.mark.parametrize(("alike", "read"), [(True, 3), (False, 12)])
def test_rows_that_are_told_the_same_beside_their_values_are_read_once_too(
    alike: bool, read: int, monkeypatch, generator
) -> None:
    network = OnePassTransformer(Discrete(3), (6,), 3, 16, 1, 2, context_width=2)
    for weights in network.parameters():
        torch.nn.init.normal_(weights, std=0.3, generator=generator)
    question, x = question_and_rows(12)
    rank, context = chain_rank(Increasing(), question), torch.randn(12, 6, 2, generator=generator)
    context = context[:1].expand(12, -1, -1) if alike else context
    opened: list[int] = []
    plain_open = OnePassTransformer.open

    def counting(self, x, rank, context=None):
        opened.append(len(x))
        return plain_open(self, x, rank, context)

    with torch.no_grad():
        expected, cache = network.open(x, rank, context)
        monkeypatch.setattr(OnePassTransformer, "open", counting)
        got, mine = Opened.once(network, x, rank, context).apart()
        assert opened == [read]
        torch.testing.assert_close(got, expected)
        value = torch.arange(12) % 3
        torch.testing.assert_close(network.extend(value, mine)[0], network.extend(value, cache)[0])


def test_draws_are_the_same_however_rows_are_read(tiny_model) -> None:
    model = tiny_model()
    question, x = question_and_rows(60)
    drawn = [
        sample(model, x, question, policy=CachedChain(read_once=once), generator=torch.Generator().manual_seed(1)).x
        for once in (False, True)
    ]
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0][:3], drawn[0][3:6])  # rows of one question are drawn each by itself


def questions(sizes: list[list[int]], length: int) -> tuple[torch.Tensor, Question]:
    """Rows of ones and zeros, of which these places are asked; the last one of each row is ignored."""
    x = (torch.arange(length) % 2).repeat(len(sizes), 1)
    asked = torch.zeros(len(sizes), length, dtype=torch.bool)
    for row, places in enumerate(sizes):
        asked[row, places] = True
    given = ~asked
    given[:, -1] = False
    return x, Question(given, asked)


def conditional(model, x, given, places) -> float:
    """log p(codes at the places | given), all terms at once, without a cache."""
    asked = torch.zeros_like(given)
    asked[places] = True
    rank = chain_rank(model.order, Question(given[None], asked[None]))
    with model.evaluating():
        return float(model.chain(x[None], rank).log_prob(x[None])[0, places].sum())


@pytest.mark.parametrize("factorizations", [(Factorization.DIRECT,), (Factorization.INPAINTING,)])
def test_a_wide_beam_lists_all_answers_by_their_probability(tiny_model, factorizations) -> None:
    model = tiny_model(length=7, factorizations=factorizations)
    asked = [[2], [1, 4], [0, 1, 3]]
    x, question = questions(asked, 7)
    found = beam_search(model, x, question, width=32)
    assert [len(rows) for rows in found] == [3, 9, 27]
    for row, places, rows in zip(x, asked, found):
        given = torch.ones(7, dtype=torch.bool)
        given[[*places, 6]] = False
        assert {tuple(one[places].tolist()) for one in rows} == set(itertools.product(range(3), repeat=len(places)))
        kept = [place for place in range(7) if place not in places]
        assert all(torch.equal(one[kept], row[kept]) for one in rows)
        values = [conditional(model, one, given, places) for one in rows]
        assert values == pytest.approx(sorted(values, reverse=True), abs=1e-5)
        assert torch.tensor(values).logsumexp(0).item() == pytest.approx(0.0, abs=1e-4)


def test_many_questions_are_answered_as_alone(tiny_model) -> None:
    model = tiny_model(27, 12)
    asked = [[place, place + 1, place + 2][: 1 + place % 3] for place in range(9)] * 3
    x, question = questions(asked, 12)
    found = beam_search(model, x, question, width=4)
    assert len(found) == 27
    assert all(len(rows) == min(27, 4) for rows in found)
    assert all(torch.equal(one, two) for one, two in zip(found[:9], found[9:18]))


def test_networks_that_cannot_go_on_in_several_ways_have_none(tiny_model) -> None:
    model = tiny_model(length=7, factorizations=(Factorization.ANY_ORDER,), one_pass=False)
    assert not can_search(model)
    with pytest.raises(ValueError, match="beam search: expected a network whose cache can be copied"):
        beam_search(model, *questions([[2]], 7), width=4)
