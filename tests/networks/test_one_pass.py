"""The one-pass transformer agrees with itself: chain == one by one == cached == ties, and nothing leaks."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor

from anyfill.evaluation import log_prob
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, Mixed, OnePassTransformer, Real
from anyfill.networks.embed import Kind
from anyfill.questions import Decreasing, Factorization, Increasing, Question, Shuffled, chain_rank
from anyfill.rank import NEVER, asked_in
from anyfill.samplers import CachedChain, Follow, Speculative, watch

VARIABLES = 12
SIZES = (3, 0, 4, 0, 2, 5, 0, 3, 3, 0, 2, 4)


def network(
    kind: Kind, shape: tuple[int, ...] = (VARIABLES,), positions: str = "rotary", reads: str = "causal", depth: int = 2
) -> OnePassTransformer:
    """A network with random weights everywhere, so that every input matters."""
    torch.manual_seed(1)
    net = OnePassTransformer(kind, shape, 5, 48, depth, 3, positions=positions, given=reads)  # type: ignore[arg-type]
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return net.eval()


def values(kind: Kind, rows: int, generator: Generator) -> Tensor:
    if isinstance(kind, Discrete):
        return torch.randint(kind.size, (rows, VARIABLES), generator=generator)
    real = torch.randn(rows, VARIABLES, generator=generator)
    if isinstance(kind, Real):
        return real
    codes = torch.stack([torch.randint(max(size, 1), (rows,), generator=generator) for size in kind.sizes], 1)
    return torch.where(torch.tensor(kind.sizes) == 0, real, codes.float())


def random_rank(rows: int, generator: Generator, order: Increasing | Shuffled | None = None) -> Tensor:
    """Random questions with given, asked and ignored variables."""
    part = torch.randint(3, (rows, VARIABLES), generator=generator)
    return chain_rank(order or Increasing(), Question(part == 0, part == 1), generator=generator)


def alone(rank: Tensor, row: int, variable: int) -> Tensor:
    """The rank (1, N) that asks for one variable given all that rank strictly before it, in the same order."""
    own = rank[row]
    before = own < own[variable]
    place = torch.where(before, own - VARIABLES - 1, NEVER)
    return place.index_fill(0, torch.tensor([variable]), 0).unsqueeze(0)


def in_its_role(rank: Tensor, row: int, variable: int) -> Tensor:
    """The rank (1, N) that asks for one variable alone after all that rank strictly before it, each in its role."""
    own = rank[row]
    return torch.where(own < own[variable], own, NEVER).index_fill(0, torch.tensor([variable]), VARIABLES).unsqueeze(0)


BOTH = pytest.mark.parametrize("reads", ["causal", "full"])
CASES = [
    pytest.param(Discrete(5), (VARIABLES,), "rotary", id="codes"),
    pytest.param(Discrete(5), (3, 4), "rotary", id="codes on a grid"),
    pytest.param(Real(), (VARIABLES,), "learned", id="numbers"),
    pytest.param(Mixed(SIZES), (VARIABLES,), "learned", id="mixed columns"),
]


@pytest.mark.parametrize(("kind", "shape", "positions"), CASES)
@torch.no_grad()
def test_chain_equals_the_same_terms_asked_one_by_one(kind, shape, positions, generator) -> None:
    net = network(kind, shape, positions)
    x, rank = values(kind, 6, generator), random_rank(6, generator, Shuffled())
    params = net.chain(x, rank)
    for row, variable in asked_in(rank).nonzero().tolist():
        single = net.chain(x[row : row + 1], alone(rank, row, variable))[0, variable]
        torch.testing.assert_close(params[row, variable], single, atol=1e-5, rtol=0)


@BOTH
@pytest.mark.parametrize(("kind", "shape", "positions"), CASES)
@torch.no_grad()
def test_cached_steps_equal_the_chain(kind, shape, positions, reads, generator) -> None:
    net = network(kind, shape, positions, reads)
    x, rank = values(kind, 6, generator), random_rank(6, generator)
    params = net.chain(x, rank)
    step, cache = net.open(x, rank)
    compared = 0
    for asked in range(int(asked_in(rank).sum(1).max())):
        for row in range(6):
            if bool((rank[row] == asked).any()):
                variable = int((rank[row] == asked).nonzero()[0])
                torch.testing.assert_close(step[row], params[row, variable], atol=1e-5, rtol=0)
                assert int(cache.order[row, cache.place[row]]) == variable
                compared += 1
        current = cache.order.gather(1, cache.place.clamp(max=VARIABLES - 1).unsqueeze(1))
        step, cache = net.extend(x.gather(1, current).squeeze(1), cache)
    assert compared == int(asked_in(rank).sum())


@pytest.mark.parametrize(("kind", "shape", "positions"), CASES)
@torch.no_grad()
def test_ties_are_answered_in_parallel_without_seeing_each_other(kind, shape, positions, generator) -> None:
    net = network(kind, shape, positions)
    x, rank = values(kind, 6, generator), random_rank(6, generator)
    grouped = torch.where(asked_in(rank), rank // 2, rank)
    params = net.chain(x, grouped)
    for row, variable in asked_in(rank).nonzero().tolist():
        own = grouped[row]
        before = own < own[variable]
        single = torch.where(before, rank[row] - VARIABLES - 1, NEVER).index_fill(0, torch.tensor([variable]), 0)
        expected = net.chain(x[row : row + 1], single.unsqueeze(0))[0, variable]
        torch.testing.assert_close(params[row, variable], expected, atol=1e-5, rtol=0)


@BOTH
@torch.no_grad()
def test_calling_answers_every_unknown_variable_given_the_known_ones(reads, generator) -> None:
    net = network(Discrete(5), reads=reads)
    x, known = values(Discrete(5), 5, generator), torch.rand(5, VARIABLES, generator=generator) < 0.5
    params = net(x, known)
    for row, variable in (~known).nonzero().tolist():
        rank = torch.where(known[row], -1, NEVER).index_fill(0, torch.tensor([variable]), 0).unsqueeze(0)
        torch.testing.assert_close(
            params[row, variable], net.chain(x[row : row + 1], rank)[0, variable], atol=1e-5, rtol=0
        )


@given(st.integers(0, 2**31), st.booleans(), st.sampled_from(["causal", "full"]))
@torch.no_grad()
def test_nan_in_unknown_places_changes_nothing(seed: int, ties: bool, reads: str) -> None:
    generator = torch.Generator().manual_seed(seed)
    net = network(Real(), positions="learned", reads=reads)
    x, rank = values(Real(), 3, generator), random_rank(3, generator)
    rank = torch.where(asked_in(rank), 0, rank) if ties else rank
    last = torch.where(asked_in(rank), rank, -1).amax(1, keepdim=True)
    spoilt = torch.where(rank >= last.clamp(min=0), torch.nan, x)  # nothing is answered after these
    before, after = net.chain(x, rank), net.chain(spoilt, rank)
    told = rank < NEVER
    assert torch.equal(before[told], after[told])
    assert torch.equal(net(x, rank < 0), net(torch.where(rank < 0, x, torch.nan), rank < 0))
    assert torch.equal(net.open(x, rank)[0], net.open(torch.where(rank < 0, x, torch.nan), rank)[0])


@torch.no_grad()
def test_later_values_never_reach_earlier_terms(generator) -> None:
    net = network(Discrete(5))
    x, rank = (
        values(Discrete(5), 4, generator),
        chain_rank(
            Increasing(),
            Question(torch.zeros(4, VARIABLES, dtype=torch.bool), torch.ones(4, VARIABLES, dtype=torch.bool)),
        ),
    )
    for variable in range(VARIABLES):
        changed = x.clone()
        changed[:, variable] = (x[:, variable] + 1) % 5
        same = net.chain(x, rank)[:, : variable + 1] == net.chain(changed, rank)[:, : variable + 1]
        assert bool(same.all())
        if variable + 1 < VARIABLES:  # and the test has power: later terms do change
            assert not torch.equal(net.chain(x, rank)[:, variable + 1], net.chain(changed, rank)[:, variable + 1])


@BOTH
@torch.no_grad()
def test_strict_is_the_same_chain_without_the_checks(reads, generator) -> None:
    net = network(Discrete(5), reads=reads)
    x, rank = values(Discrete(5), 4, generator), random_rank(4, generator)
    told = rank < NEVER
    torch.testing.assert_close(net.chain(x, rank)[told], net.chain(x, rank, strict=True)[told], atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_given_block_is_scored_in_the_same_pass(generator) -> None:
    net = network(Discrete(5))
    x = values(Discrete(5), 4, generator)
    given_ = torch.rand(4, VARIABLES, generator=generator) < 0.5
    both = net.chain(x, chain_rank(Increasing(), Question(given_, ~given_)))
    marginal = net.chain(x, chain_rank(Increasing(), Question(torch.zeros_like(given_), given_)))
    torch.testing.assert_close(both[given_], marginal[given_], atol=1e-5, rtol=0)


@torch.no_grad()
def test_one_variable_nothing_asked_everything_given_and_empty_batches_work() -> None:
    net = OnePassTransformer(Discrete(3), (1,), 3, width=16, depth=1, heads=2)
    one = torch.zeros(2, 1, dtype=torch.int64)
    assert net(one, torch.zeros(2, 1, dtype=torch.bool)).shape == (2, 1, 3)
    assert net(one, torch.ones(2, 1, dtype=torch.bool)).shape == (2, 1, 3)
    assert net.chain(one, torch.full((2, 1), NEVER)).shape == (2, 1, 3)
    assert net.chain(one[:0], one[:0]).shape == (0, 1, 3)
    step, cache = net.open(one, torch.full((2, 1), -1))
    assert step.shape == (2, 3)
    assert net.extend(one[:, 0], cache)[0].shape == (2, 3)


@torch.no_grad()
def test_context_reaches_every_term(generator) -> None:
    net = OnePassTransformer(Discrete(5), (VARIABLES,), 5, width=16, depth=1, heads=2, context_width=3)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x, rank = values(Discrete(5), 4, generator), random_rank(4, generator)
    context = torch.randn(4, 3, generator=generator)
    params = net.chain(x, rank, context)
    assert not torch.equal(params, net.chain(x, rank, -context))
    step, _ = net.open(x, rank, context)
    row = int((rank == 0).any(1).nonzero()[0])
    torch.testing.assert_close(step[row], params[row, int((rank[row] == 0).nonzero()[0])], atol=1e-5, rtol=0)


@torch.no_grad()
def test_hidden_values_say_nothing_while_training_and_everything_is_read_otherwise(generator) -> None:
    plain = network(Discrete(5))
    net = OnePassTransformer(Discrete(5), (VARIABLES,), 5, 48, 2, 3, value_dropout=1.0)
    net.load_state_dict(plain.state_dict())
    x, rank = values(Discrete(5), 4, generator), random_rank(4, generator)
    other = (x + 1) % 5
    torch.testing.assert_close(net.eval().chain(x, rank), plain.chain(x, rank))
    assert not torch.equal(net.chain(x, rank), net.chain(other, rank))
    torch.testing.assert_close(net.train().chain(x, rank), net.chain(other, rank))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"positions": "relative"}, "positions: expected 'learned' or 'rotary', got 'relative'"),
        ({"shape": ()}, "shape: expected a tuple of side lengths above 0"),
        ({"width": 50}, "width: expected a multiple of heads"),
        ({"depth": 0}, "depth: expected a whole number from 1 up, got 0"),
        ({"kind": Mixed((2, 0))}, "Mixed sizes: expected 12 entries"),
        ({"dropout": 1.5}, "dropout: expected a number from 0 to 1"),
        ({"given": "both"}, "given: expected 'causal' or 'full', got 'both'"),
        ({"value_dropout": -0.1}, "value_dropout: expected a number from 0 to 1"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(changed: dict[str, object], sentence: str) -> None:
    settings: dict[str, object] = {"kind": Discrete(5), "shape": (VARIABLES,), "outputs": 5, "width": 48, "heads": 3}
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        OnePassTransformer(**{**settings, **changed})  # type: ignore[arg-type]


def answered_at(rank: Tensor, row: int, step: int) -> int | None:
    """The variable of a row that is answered at ``step``, if there is one."""
    found = (rank[row] == step).nonzero()
    return int(found[0]) if len(found) else None


@BOTH
@pytest.mark.parametrize(("kind", "shape", "positions"), CASES)
@torch.no_grad()
def test_a_window_of_answers_is_read_as_the_chain_reads_it(kind, shape, positions, reads, generator) -> None:
    """Rows advance on their own: each takes back as many answers as were wrong, and leaves when it is done."""
    net = network(kind, shape, positions, reads)
    x, rank = values(kind, 8, generator), random_rank(8, generator, Shuffled())
    params, asked = net.chain(x, rank), asked_in(rank).sum(1)
    _, cache = net.open(x, rank)
    rows, read, compared = torch.arange(8), torch.zeros(8, dtype=torch.int64), torch.zeros(8, VARIABLES)
    while len(rows):
        due = cache.place.unsqueeze(1) + torch.arange(3)
        told = x[rows].gather(1, cache.order.gather(1, due.clamp(max=VARIABLES - 1)))
        guess = torch.where(torch.rand(told.shape, generator=generator) < 0.3, x.roll(1)[rows][:, :3], told)
        answers, cache = net.advance(guess, cache)
        right = (guess == told).long().cumprod(1).sum(1)
        for at, row in enumerate(rows.tolist()):
            for i in range(int(right[at])):
                variable = answered_at(rank, row, int(read[at]) + i + 1)
                if variable is not None:
                    torch.testing.assert_close(answers[at, i], params[row, variable], atol=1e-5, rtol=0)
                    compared[row, variable] += 1
        cache, read = net.rewind(cache, 3 - right), read + right
        active = (read < asked[rows]).nonzero().squeeze(1)
        cache, rows, read = net.select(cache, active), rows[active], read[active]
    assert torch.equal(compared == 1, asked_in(rank) & (rank > 0))  # each once: what was taken back was not compared


@torch.no_grad()
def test_a_copied_cache_with_other_room_answers_alike(generator) -> None:
    kind, shape, positions = CASES[0].values
    net = network(kind, shape, positions, "causal")
    x = values(kind, 3, generator)
    rank = torch.arange(VARIABLES).expand(3, -1)
    _, cache = net.open(x, rank)
    _, cache = net.advance(x[:, :2], cache)
    rows = torch.tensor([2, 0, 0])
    expected, _ = net.advance(x[rows, 2:4], net.select(cache, rows))
    small = net.select(cache, rows, room=6)
    assert small.keys[0].shape[2] == 6
    large = net.select(small, torch.arange(3), room=VARIABLES + 1)
    for one in (small, large):
        found, _ = net.advance(x[rows, 2:4], one)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@BOTH
@pytest.mark.parametrize(("kind", "shape", "positions"), CASES)
@torch.no_grad()
def test_peeking_answers_the_next_variables_given_what_was_read(kind, shape, positions, reads, generator) -> None:
    net = network(kind, shape, positions, reads)
    x, rank = values(kind, 8, generator), random_rank(8, generator, Shuffled())
    _, cache = net.open(x, rank)
    compared = 0
    for step in range(4):
        current = cache.order.gather(1, cache.place.clamp(max=VARIABLES - 1).unsqueeze(1)).squeeze(1)
        value = x.gather(1, current.unsqueeze(1)).squeeze(1)
        seen, cache = net.peek(value, cache, 5)
        tied = torch.where(asked_in(rank) & (rank > step), step + 1, rank)
        expected = net.chain(x, tied)
        for row in range(8):
            for i in range(5):
                variable = answered_at(rank, row, step + 1 + i)
                if variable is not None:
                    torch.testing.assert_close(seen[row, i], expected[row, variable], atol=1e-5, rtol=0)
                    compared += 1
    assert compared > 30


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("kind", "shape", "positions"), CASES)
@torch.no_grad()
def test_read_both_ways_every_term_is_the_same_asked_alone_after_the_same_values_in_the_same_roles(
    kind, shape, positions, ties, generator
) -> None:
    """So what the given values tell does not depend on who is asked, and asked in parallel nobody sees another."""
    net = network(kind, shape, positions, "full")
    x, rank = values(kind, 6, generator), random_rank(6, generator, Increasing() if ties else Shuffled())
    posed = torch.where(asked_in(rank), rank // 2, rank) if ties else rank
    params = net.chain(x, posed)
    for row, variable in asked_in(rank).nonzero().tolist():
        single = in_its_role(posed, row, variable)
        single = torch.where((single >= 0) & (single < VARIABLES), rank[row], single)  # answered in a group: by index
        expected = net.chain(x[row : row + 1], single)[0, variable]
        torch.testing.assert_close(params[row, variable], expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_role_of_a_known_value_matters_only_when_given_values_are_read_both_ways(generator) -> None:
    x, rank = values(Discrete(5), 6, generator), random_rank(6, generator)
    for reads in ("causal", "full"):
        net, apart = network(Discrete(5), reads=reads), torch.zeros(())
        for row, variable in asked_in(rank).nonzero().tolist():
            told = net.chain(x[row : row + 1], alone(rank, row, variable))[0, variable]
            kept = net.chain(x[row : row + 1], in_its_role(rank, row, variable))[0, variable]
            apart = torch.maximum(apart, (told - kept).abs().max())
        assert (apart > 0.1) == (reads == "full")
        assert reads == "full" or apart < 1e-5


@torch.no_grad()
def test_given_values_that_see_one_another_are_a_set_whose_order_changes_nothing(generator) -> None:
    x, rank = values(Discrete(5), 8, generator), random_rank(8, generator)
    asked, several = asked_in(rank), asked_in(rank) & ((rank < 0).sum(1, keepdim=True) > 1)
    turned = torch.where(rank < 0, -1 - rank - (rank < 0).sum(1, keepdim=True), rank)  # -g … -1 the other way round
    assert bool((turned != rank).any())
    for reads in ("causal", "full"):
        net = network(Discrete(5), reads=reads)
        apart = (net.chain(x, rank) - net.chain(x, turned)).abs().amax(-1)
        assert apart[asked].max() < 1e-5 if reads == "full" else apart[several].max() > 1e-3


@torch.no_grad()
def test_with_nothing_given_both_ways_is_the_causal_pass_bit_for_bit(generator) -> None:
    x, rank = values(Discrete(5), 6, generator), random_rank(6, generator)
    rank = torch.where(rank < 0, NEVER, rank)
    causal, full = (network(Discrete(5), reads=reads) for reads in ("causal", "full"))
    assert torch.equal(causal.chain(x, rank), full.chain(x, rank))
    assert torch.equal(causal.open(x, rank)[0], full.open(x, rank)[0])


@pytest.mark.parametrize("strict", [False, True])
def test_read_both_ways_no_answer_depends_on_its_own_value_or_a_later_one_but_on_all_given(generator, strict) -> None:
    net = network(Real(), positions="learned", reads="full")
    x, rank = values(Real(), 5, generator).requires_grad_(), random_rank(5, generator)
    params = net.chain(x, rank, strict=strict)
    assert bool((params[rank < 0] == 0).all())  # they would have seen themselves
    for variable in range(VARIABLES):
        (slope,) = torch.autograd.grad(params[:, variable].sum(), x, retain_graph=True)
        own = rank[:, variable : variable + 1]
        posed, expected = own.squeeze(1) < NEVER, (rank < own) & (own >= 0)
        assert torch.equal((slope != 0)[posed], expected[posed])


def answering(reads: str, order: Increasing | Decreasing, variables: int = 6, codes: int = 3) -> Model:
    torch.manual_seed(4)
    net = OnePassTransformer(Discrete(codes), (variables,), codes, 16, 2, 2, given=reads)  # type: ignore[arg-type]
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return Model(net, Categorical(codes), order=order, factorizations=[Factorization.DIRECT])


@BOTH
@pytest.mark.parametrize("order", [Increasing(), Decreasing()])
def test_samplers_draw_with_the_probability_that_evaluation_says(reads, order, generator) -> None:
    model = answering(reads, order)
    part = torch.rand(40, 6, generator=generator)
    question = Question(part < 0.5, part > 0.6)
    x = torch.randint(3, (40, 6), generator=generator)
    for policy in (CachedChain(), Follow(), Speculative(), Speculative(window=3)):
        *_, last = watch(model, x, question, policy=policy, generator=generator)
        expected = log_prob(model, last.x, question).value
        torch.testing.assert_close(last.score.sum(1), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("order", [Increasing(), Decreasing()])
def test_read_both_ways_the_answers_to_a_question_are_a_distribution(order) -> None:
    model = answering("full", order)
    every = torch.tensor(list(itertools.product(range(3), repeat=6)))
    question = Question.of(6, given=[0, 2, 5], asked=[1, 4], batch=len(every))
    mass = log_prob(model, every, question).value.exp().reshape((3,) * 6)
    torch.testing.assert_close(mass.sum((1, 4)), torch.ones(3, 3, 3, 3).double(), atol=1e-5, rtol=0)
    told = mass[:, 0, :, 0, 0, :]
    for given_value in range(3):  # and each given value matters to it
        assert told.diff(dim=given_value).abs().max() > 1e-3


@given(
    st.integers(0, 2**31), st.booleans(), st.sampled_from(["causal", "full"]), st.sampled_from(["left out", "blank"])
)
@torch.no_grad()
def test_some_terms_of_a_chain_asked_for_alone_are_those_of_the_whole(seed, ties, reads, ignored) -> None:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(1)
    net = OnePassTransformer(Discrete(5), (VARIABLES,), 5, 48, 2, 3, given=reads, ignored=ignored)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x, rank = values(Discrete(5), 4, generator), random_rank(4, generator)
    rank = torch.where(asked_in(rank), 0, rank) if ties else rank
    some = (torch.rand(rank.shape, generator=generator) < 0.5) & (rank < NEVER)
    row, variable = some.nonzero(as_tuple=True)
    found = net.eval().chain_at(x, rank, row, variable)
    torch.testing.assert_close(found, net.chain(x, rank)[row, variable], atol=1e-6, rtol=1e-6)


@torch.no_grad()
def test_what_is_not_asked_costs_the_head_nothing(generator) -> None:
    net = network(Discrete(5))
    model = Model(net, Categorical(5), factorizations=[Factorization.DIRECT])
    rows: list[int] = []
    net.head.register_forward_hook(lambda head, fed, out: rows.append(out.numel() // out.shape[-1]))
    x = values(Discrete(5), 7, generator)
    question = Question.of(VARIABLES, given=(0, 4, 9), asked=(2, 5), batch=7)
    before = net.chain(x, chain_rank(Increasing(), question))
    assert rows == [7 * 5]  # what is ignored, seven places of twelve, is not read
    value = log_prob(model, x, question).value
    assert rows == [7 * 5, 7 * 2]
    terms = before.log_softmax(-1).gather(2, x.unsqueeze(2)).squeeze(2)[:, [2, 5]]
    torch.testing.assert_close(value, terms.double().sum(1))
