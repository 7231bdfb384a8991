"""A token per group: chain == one by one == cached == ties == enumeration, whatever part of a group is asked."""

import itertools

import pytest
import torch
from torch import Generator, Tensor

from anyfill.evaluation import log_prob
from anyfill.likelihoods import Bernoulli, Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassGroups
from anyfill.questions import Factorization, Increasing, Question, Shuffled, chain_rank
from anyfill.questions.regions import Scan
from anyfill.rank import NEVER, asked_in
from anyfill.samplers import CachedChain, Follow, Speculative, sample
from anyfill.samplers.cached import Opened

LEVELS = 3
CASES = [
    pytest.param((3, 2, 3), (1, 1), 0, id="RGB pixels"),
    pytest.param((4, 4), (2, 2), 0, id="2 x 2 patches"),
    pytest.param((2, 6, 2), (1, 3), 0, id="flat patches of two channels"),
    pytest.param((3, 2, 3), (1, 1), 1, id="RGB pixels and their neighbours"),
    pytest.param((4, 4), (2, 2), 2, id="2 x 2 patches and their neighbours"),
]


def network(
    shape: tuple[int, ...], patch: tuple[int, int], levels: int = LEVELS, outputs: int = LEVELS, *, neighbours: int = 0
) -> OnePassGroups:
    """Random weights everywhere, so that every input matters."""
    torch.manual_seed(1)
    net = OnePassGroups(Discrete(levels), shape, outputs, 24, 2, 3, patch=patch, neighbours=neighbours)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    return net.eval()


def questions(net: OnePassGroups, rows: int, generator: Generator, order=None) -> tuple[Tensor, Tensor]:
    """Values and the ranks of random questions with given, asked and ignored variables, scattered over groups."""
    x = torch.randint(LEVELS, (rows, net.variables), generator=generator)
    part = torch.randint(3, x.shape, generator=generator)
    return x, chain_rank(order or Increasing(), Question(part == 0, part == 1), generator=generator)


def in_its_role(rank: Tensor, row: int, variable: int) -> Tensor:
    """The rank (1, N) that asks for one variable alone after all that rank strictly before it, each in its role."""
    own = rank[row]
    # What ties is read one by one, by index.
    turn = own.argsort(stable=True).argsort()
    before = torch.where(own < 0, own, turn)
    last = len(own)
    return torch.where(own < own[variable], before, NEVER).index_fill(0, torch.tensor([variable]), last).unsqueeze(0)


@pytest.mark.parametrize("order", [Increasing(), Shuffled()], ids=["in order", "in any order"])
@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_chain_equals_the_same_terms_asked_one_by_one(shape, patch, neighbours, order, generator) -> None:
    net = network(shape, patch, neighbours=neighbours)
    x, rank = questions(net, 4, generator, order)
    params, strict = net.chain(x, rank), net.chain(x, rank, strict=True)
    for row, variable in asked_in(rank).nonzero().tolist():
        single = net.chain(x[row : row + 1], in_its_role(rank, row, variable))[0, variable]
        torch.testing.assert_close(params[row, variable], single, atol=1e-5, rtol=0)
        torch.testing.assert_close(strict[row, variable], single, atol=1e-5, rtol=0)


@pytest.mark.parametrize("order", [Increasing(), Shuffled()], ids=["in order", "in any order"])
@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_cached_steps_equal_the_chain(shape, patch, neighbours, order, generator) -> None:
    net = network(shape, patch, neighbours=neighbours)
    x, rank = questions(net, 5, generator, order)
    params = net.chain(x, rank)
    step, cache = net.open(torch.where(rank < 0, x, 0), rank)
    compared = 0
    for asked in range(int(asked_in(rank).sum(1).max())):
        due = torch.zeros(5, dtype=torch.int64)
        for row in range(5):
            if bool((rank[row] == asked).any()):
                due[row] = int((rank[row] == asked).nonzero()[0])
                torch.testing.assert_close(step[row], params[row, due[row]], atol=1e-5, rtol=0)
                compared += 1
        step, cache = net.extend(x.gather(1, due.unsqueeze(1)).squeeze(1), cache)
    assert compared == int(asked_in(rank).sum())


@pytest.mark.parametrize("order", [Increasing(), Shuffled()], ids=["in order", "in any order"])
@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_a_window_of_answers_is_read_as_the_chain_reads_it(shape, patch, neighbours, order, generator) -> None:
    """Rows advance on their own: each takes back as many answers as were wrong, and leaves when it is done."""
    net = network(shape, patch, neighbours=neighbours)
    x, rank = questions(net, 8, generator, order)
    rank[0] = torch.arange(net.variables)  # up to the last variable there is
    params, asked = net.chain(x, rank), asked_in(rank).sum(1)
    _, cache = net.open(torch.where(rank < 0, x, 0), rank)
    rows, read, compared = torch.arange(8), torch.zeros(8, dtype=torch.int64), torch.zeros(8, net.variables)
    while len(rows):
        told = torch.stack([x[row, line_of(rank[row], int(at), 5)] for row, at in zip(rows, read)])
        guess = torch.where(torch.rand(told.shape, generator=generator) < 0.2, (told + 1) % LEVELS, told)
        answers, cache = net.advance(guess, cache)
        right = (guess == told).long().cumprod(1).sum(1)
        for at, row in enumerate(rows.tolist()):
            for i in range(int(right[at])):
                for variable in (rank[row] == int(read[at]) + i + 1).nonzero().flatten().tolist():
                    torch.testing.assert_close(answers[at, i], params[row, variable], atol=1e-5, rtol=0)
                    compared[row, variable] += 1
        cache, read = net.rewind(cache, 5 - right), read + right
        active = (read < asked[rows]).nonzero().squeeze(1)
        cache, rows, read = net.select(cache, active), rows[active], read[active]
    assert torch.equal(compared == 1, asked_in(rank) & (rank > 0))  # each once: what was taken back was not compared


@pytest.mark.parametrize("order", [Increasing(), Shuffled()], ids=["in order", "in any order"])
@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_peeking_answers_the_next_variables_given_what_was_read(shape, patch, neighbours, order, generator) -> None:
    net = network(shape, patch, neighbours=neighbours)
    x, rank = questions(net, 8, generator, order)
    rank[0] = torch.arange(net.variables)
    _, cache = net.open(torch.where(rank < 0, x, 0), rank)
    compared = 0
    for step in range(net.variables):
        value = torch.stack([x[row, line_of(rank[row], step, 1)[0]] for row in range(8)])
        seen, cache = net.peek(value, cache, 7)
        expected = net.chain(x, torch.where(asked_in(rank) & (rank > step), step + 1, rank))
        for row in range(8):
            for i in range(7):
                for variable in (rank[row] == step + 1 + i).nonzero().flatten().tolist():
                    torch.testing.assert_close(seen[row, i], expected[row, variable], atol=1e-5, rtol=0)
                    compared += 1
    assert compared > 100


def line_of(rank: Tensor, first: int, count: int) -> Tensor:
    """int64 (count,): the variables of these ranks, from ``first`` on; any behind the last."""
    line = rank.argsort(stable=True)[int((rank < 0).sum()) :]
    return torch.nn.functional.pad(line, (0, first + count))[first : first + count]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_some_cells_of_a_chain_are_those_of_the_whole(shape, patch, neighbours, ties, generator) -> None:
    net = network(shape, patch, neighbours=neighbours)
    x, rank = questions(net, 4, generator, Shuffled())
    rank = torch.where(asked_in(rank), rank // 3, rank) if ties else rank
    row, variable = (rank < NEVER).nonzero(as_tuple=True)
    some = torch.randperm(len(row), generator=generator)[: len(row) // 2]
    row, variable = row[some], variable[some]
    torch.testing.assert_close(
        net.chain_at(x, rank, row, variable), net.chain(x, rank)[row, variable], atol=1e-6, rtol=0
    )
    assert net.chain_at(x, rank, row[:0], variable[:0]).shape == (0, LEVELS)


@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_what_is_foreseen_is_each_variable_given_the_given_block_alone(shape, patch, neighbours, generator) -> None:
    net = network(shape, patch, neighbours=neighbours)
    x, rank = questions(net, 4, generator)
    rank[0] = torch.arange(net.variables)  # nothing given
    rank[1], rank[2] = NEVER, rank[3]
    rank[1, 2], x[2] = 0, x[3]  # one asked, all others ignored; and a row that is read with another
    opened = Opened.once(net, torch.where(rank < 0, x, 0), rank)
    assert len(opened.params) == 3
    row, variable = asked_in(rank).nonzero(as_tuple=True)
    alone = net.chain(x, torch.where(rank < 0, rank, 0))  # all of them tied
    found = opened.foreseen(row, variable)
    torch.testing.assert_close(found, alone[row, variable], atol=1e-5, rtol=0)
    torch.testing.assert_close(opened.apart()[0], net.open(x, rank)[0], atol=1e-6, rtol=0)  # and the cache is as it was
    assert opened.foreseen(row[:0], variable[:0]).shape == (0, LEVELS)


@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_selected_rows_of_a_cache_go_on_by_themselves(shape, patch, neighbours, generator) -> None:
    net = network(shape, patch, neighbours=neighbours)
    x, rank = questions(net, 3, generator, Shuffled())
    _, cache = net.open(torch.where(rank < 0, x, 0), rank)
    rows, first = torch.tensor([2, 0, 0, 1]), torch.tensor([1, 3, 0])  # first[r]: where row r was copied to
    copies = [net.select(cache, rows), net.select(cache, rows, room=net.variables + 5)]
    for _ in range(4):
        answers = torch.randint(LEVELS, (len(rows),), generator=generator)
        found, copies = zip(*(net.extend(answers, copy) for copy in copies))
        torch.testing.assert_close(found[0], found[1], atol=1e-6, rtol=0)
        expected, cache = net.extend(answers[first], cache)
        torch.testing.assert_close(found[0][first], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_ties_are_answered_in_parallel_without_seeing_each_other(shape, patch, neighbours, generator) -> None:
    net = network(shape, patch, neighbours=neighbours)
    x, rank = questions(net, 4, generator, Shuffled())
    grouped = torch.where(asked_in(rank), rank // 3, rank)
    params = net.chain(x, grouped)
    for row, variable in asked_in(rank).nonzero().tolist():
        single = net.chain(x[row : row + 1], in_its_role(grouped, row, variable))[0, variable]
        torch.testing.assert_close(params[row, variable], single, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_calling_answers_every_unknown_variable_given_the_known_ones(shape, patch, neighbours, generator) -> None:
    net = network(shape, patch, neighbours=neighbours)
    x = torch.randint(LEVELS, (4, net.variables), generator=generator)
    known = torch.rand(x.shape, generator=generator) < torch.tensor([[0.0], [0.3], [0.7], [1.0]])
    params = net(torch.where(known, x, 99), known)
    for row, variable in (~known).nonzero().tolist():
        rank = torch.where(known[row], -1, NEVER).index_fill(0, torch.tensor([variable]), 0).unsqueeze(0)
        alone = net.chain(x[row : row + 1], rank)[0, variable]
        torch.testing.assert_close(params[row, variable], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_a_term_depends_on_exactly_what_ranks_before_it(shape, patch, neighbours, generator) -> None:
    net = network(shape, patch, neighbours=neighbours)
    x, rank = questions(net, 3, generator, Shuffled())
    params, told = net.chain(x, rank), rank < NEVER
    for variable in range(net.variables):
        changed = x.clone()
        changed[:, variable] = (x[:, variable] + 1) % LEVELS
        moved = (net.chain(changed, rank) - params).abs().amax(-1) > 1e-6
        later = (rank > rank[:, variable : variable + 1]) & asked_in(rank)
        assert torch.equal(moved & told & (rank >= 0), later & told[:, variable : variable + 1])


@pytest.mark.parametrize(("shape", "patch", "neighbours"), CASES)
@torch.no_grad()
def test_values_that_are_not_read_may_be_anything(shape, patch, neighbours, generator) -> None:
    net = network(shape, patch, neighbours=neighbours)
    x, rank = questions(net, 3, generator)
    last = torch.where(asked_in(rank), rank, -1).amax(1, keepdim=True)
    spoilt = torch.where(rank >= last, torch.nan, x.float())
    told = rank < NEVER
    assert torch.equal(net.chain(x, rank)[told], net.chain(spoilt, rank)[told])
    assert torch.equal(net.open(x, rank)[0], net.open(torch.where(rank < 0, x.float(), torch.nan), rank)[0])


@pytest.mark.parametrize(
    ("shape", "patch", "levels", "neighbours"),
    [
        *[((2, 2), (2, 2), 2, 0), ((2, 2, 2), (1, 1), 2, 0), ((2, 3), (2, 1), 3, 0), ((2, 2), (1, 2), 3, 0)],
        *[((2, 2, 2), (1, 1), 2, 1), ((2, 3), (2, 1), 3, 2)],
    ],
)
def test_any_question_about_parts_of_groups_is_a_distribution_and_its_own_sum(
    shape, patch, levels, neighbours, generator
) -> None:
    """Enumerated: p(asked | given) of one pass sums to 1 over all values, for every split of small images."""
    net = network(shape, patch, levels, levels, neighbours=neighbours)
    order = Scan(shape[0], shape[1], patch=patch, channels=(*shape, 1)[2])
    model = Model(net, Categorical(levels), order=order, factorizations=[Factorization.DIRECT])
    n = net.variables
    parts = torch.randint(3, (12, n), generator=generator)
    parts[:, 0] = 1
    for part in parts:
        asked = (part == 1).nonzero().flatten().tolist()
        every = torch.tensor(list(itertools.product(range(levels), repeat=len(asked))))
        rows = torch.randint(levels, (1, n), generator=generator).repeat(len(every), 1)
        rows[:, asked] = every
        question = Question((part == 0).expand(len(rows), n), (part == 1).expand(len(rows), n))
        found = log_prob(model, rows, question)
        assert found.kind == "exact"
        torch.testing.assert_close(found.value.exp().sum(), torch.tensor(1.0).double(), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("shape", "patch", "neighbours"),
    [((2, 2), (2, 2), 0), ((2, 3), (2, 1), 0), ((2, 2), (1, 1), 0), ((2, 2), (1, 2), 1)],
)
def test_the_cached_sampler_and_the_plain_one_draw_from_the_enumerated_law(shape, patch, neighbours, generator) -> None:
    """Chi-square against the law that log_prob gives, one pixel given; fails once in 10,000 by chance."""
    net = network(shape, patch, 2, 1, neighbours=neighbours)
    order = Scan(*shape, patch=patch)
    model = Model(net, Bernoulli(), order=order, factorizations=[Factorization.DIRECT])
    n = net.variables
    every = torch.tensor([row for row in itertools.product(range(2), repeat=n) if row[1] == 1])
    question = Question.of(n, given=[1], batch=len(every))
    law = log_prob(model, every, question).value.exp()
    for policy in (CachedChain(), Follow(), Speculative(), Speculative(window=2, price=0.0)):
        draws = 4000
        start = torch.zeros(draws, n, dtype=torch.int64)
        start[:, 1] = 1
        got = sample(model, start, Question.of(n, given=[1], batch=draws), policy=policy, generator=generator).x
        code = (got * 2 ** torch.arange(n)).sum(1)
        counts = torch.stack([(code == (row * 2 ** torch.arange(n)).sum()).sum() for row in every])
        chi = float(((counts - draws * law) ** 2 / (draws * law).clamp(min=1e-9)).sum())
        df = len(every) - 1
        assert counts.sum() == draws
        assert chi < df + 3.72 * (2 * df) ** 0.5 + 8, (policy, chi, df)


@torch.no_grad()
def test_speculation_reads_each_answer_once(generator, monkeypatch) -> None:
    """It never goes back to whole rows: a picture of many groups then takes a pass over all of them for few answers."""
    net = network((8, 8), (2, 2), 2, 1)
    monkeypatch.setattr(OnePassGroups, "chain", None)
    model = Model(net, Bernoulli(), order=Scan(8, 8, patch=(2, 2)), factorizations=[Factorization.DIRECT])
    start, question = torch.zeros(3, 64, dtype=torch.int64), Question.of(64, given=range(32), batch=3)
    drawn = sample(model, start, question, policy=Speculative(), generator=generator)
    assert bool((drawn.x[:, 32:] <= 1).all())
    assert bool((drawn.row_passes <= 33).all())


@torch.no_grad()
def test_what_was_answered_at_once_is_read_in_the_models_own_order(generator, monkeypatch) -> None:
    """In order of index the network would come back to every group, which it was never trained to read."""
    net, order, seen = network((4, 4), (2, 2), 2, 1), Scan(4, 4, patch=(2, 2)), list[Tensor]()
    chain = net.chain
    monkeypatch.setattr(net, "chain", lambda x, rank, context=None, **how: seen.append(rank) or chain(x, rank, context))
    model = Model(net, Bernoulli(), order=order, factorizations=[Factorization.DIRECT])
    question = Question.of(16, given=[5], batch=2)
    start = torch.zeros(2, 16, dtype=torch.int64)
    sample(model, start, question, policy=Follow(groups=3), generator=generator, allow_untrained=True)
    expected = chain_rank(order, question)
    assert len(seen) == 3
    for rank in seen[1:]:
        answered = rank < 16
        assert bool((rank == expected)[answered].all())
    assert int((seen[2] < 16).sum()) == 2 * 11  # the one that is given, and two groups of five


@torch.no_grad()
def test_weights_that_repeat_serve_other_sizes_and_edges_of_use_work() -> None:
    net = OnePassGroups(Discrete(4), (4, 4), 4, 16, 1, 2, patch=(2, 2), periods=(2, 2))
    larger = net.resized((6, 8))
    assert larger.variables == 48
    x = torch.zeros(2, 48, dtype=torch.int64)
    assert larger(x, x == 1).shape == (2, 48, 4)
    assert larger(x, x == 0).abs().sum() == 0  # everything given, nothing answered
    small = torch.zeros(2, 16, dtype=torch.int64)
    assert net.chain(small, torch.full((2, 16), NEVER)).shape == (2, 16, 4)
    assert net.chain(small[:0], small[:0]).shape == (0, 16, 4)
    step, cache = net.open(small, torch.full((2, 16), -1))
    assert net.extend(small[:, 0], cache)[0].shape == step.shape == (2, 4)


@pytest.mark.parametrize(
    "options",
    [
        {"shape": (5, 4), "patch": (2, 2)},
        {"shape": (4,)},
        {"shape": (4, 4), "patch": (2,)},
        {"shape": (4, 4), "positions": "relative"},
        {"shape": (4, 4), "width": 18, "heads": 3},
    ],
    ids=str,
)
def test_bad_options_are_refused(options) -> None:
    with pytest.raises(ValueError, match="expected"):
        OnePassGroups(Discrete(2), outputs=1, **{"width": 16, "heads": 2, **options})
