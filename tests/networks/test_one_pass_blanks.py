"""Ignored variables read as blanks: the answers are still those of one distribution, however they are asked for."""

import itertools

import pytest
import torch
from torch import Generator, Tensor

from anyfill.evaluation import log_prob
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer, Real
from anyfill.networks.embed import Kind
from anyfill.networks.one_pass_tokens import Plan
from anyfill.objectives import OnePassLoss
from anyfill.questions import Decreasing, Factorization, Increasing, Question, Shuffled, UniformCardinality, chain_rank
from anyfill.rank import NEVER, asked_in
from anyfill.rows import Rows
from anyfill.samplers import CachedChain, Follow, Speculative, watch
from anyfill.samplers.rowwise import parameters

N = 10
BOTH = pytest.mark.parametrize("reads", ["causal", "full"])


def network(kind: Kind | None = None, reads: str = "full", ignored: str = "blank") -> OnePassTransformer:
    """A network with random weights everywhere, so that every input matters."""
    torch.manual_seed(1)
    kind = Discrete(5) if kind is None else kind
    net = OnePassTransformer(kind, (N,), 5, 48, 2, 3, given=reads, ignored=ignored)  # type: ignore[arg-type]
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return net.eval()


def parts(rows: int, generator: Generator, *, given: bool) -> Tensor:
    """Ranks of random questions, in increasing order; something is given in every other row, or in none."""
    part = torch.randint(3, (rows, N), generator=generator)
    told = (part == 0) & (torch.arange(rows) % 2 == 0).unsqueeze(1) & given
    return chain_rank(Increasing(), Question(told, part == 1))


def test_every_place_before_the_last_asked_one_is_read_in_turn(generator: Generator) -> None:
    rank = parts(20, generator, given=False)
    plan = Plan.of(rank, blanks=True)
    for row in range(20):
        asked = asked_in(rank[row]).nonzero()[:, 0].tolist()
        length = int((plan.when[row] < NEVER).sum())
        assert plan.order[row, :length].tolist() == list(range(asked[-1] + 1 if asked else 0))


@BOTH
@torch.no_grad()
def test_a_term_is_the_same_asked_alone_after_the_same_values(reads: str, generator: Generator) -> None:
    net, rank = network(reads=reads), parts(8, generator, given=True)
    x = torch.randint(5, (8, N), generator=generator)
    params = net.chain(x, rank)
    for row, variable in asked_in(rank).nonzero().tolist():
        own = rank[row]
        alone = torch.where(own < own[variable], own, NEVER).index_fill(0, torch.tensor([variable]), N)
        single = net.chain(x[row : row + 1], alone.unsqueeze(0))[0, variable]
        torch.testing.assert_close(params[row, variable], single, atol=1e-5, rtol=0)


@BOTH
@torch.no_grad()
def test_answered_at_once_each_is_given_what_is_known_and_no_more(reads: str, generator: Generator) -> None:
    net, rank = network(reads=reads), parts(8, generator, given=True)
    x = torch.randint(5, (8, N), generator=generator)
    tied = torch.where(asked_in(rank) & (rank > 2), 2, rank)
    params = net.chain(x, tied)
    for row, variable in asked_in(tied).nonzero().tolist():
        own = tied[row]
        alone = torch.where(own < own[variable], own, NEVER).index_fill(0, torch.tensor([variable]), 2)
        single = net.chain(x[row : row + 1], alone.unsqueeze(0))[0, variable]
        torch.testing.assert_close(params[row, variable], single, atol=1e-5, rtol=0)


@BOTH
@torch.no_grad()
def test_cached_steps_equal_the_chain(reads: str, generator: Generator) -> None:
    net, rank = network(reads=reads), parts(9, generator, given=True)
    x = torch.randint(5, (9, N), generator=generator)
    params = net.chain(x, rank)
    step, cache = net.open(x, rank)
    compared = 0
    for asked in range(int(asked_in(rank).sum(1).max())):
        value = torch.zeros(9, dtype=torch.int64)
        for row in range(9):
            for variable in (rank[row] == asked).nonzero()[:, 0].tolist():
                torch.testing.assert_close(step[row], params[row, variable], atol=1e-5, rtol=0)
                value[row], compared = x[row, variable], compared + 1
        step, cache = net.extend(value, cache)
    assert compared == int(asked_in(rank).sum())


@torch.no_grad()
def test_strict_is_the_same_chain_and_answers_blanks_from_what_is_read_before_them(generator: Generator) -> None:
    net, rank = network(), parts(8, generator, given=True)
    x = torch.randint(5, (8, N), generator=generator)
    plain, strict = net.chain(x, rank), net.chain(x, rank, strict=True)
    asked = asked_in(rank)
    torch.testing.assert_close(plain[asked], strict[asked], atol=1e-5, rtol=0)
    nothing_given = ~(rank < 0).any(1)
    for row, variable in ((rank == NEVER) & nothing_given.unsqueeze(1)).nonzero().tolist():
        own = torch.where(torch.arange(N) < variable, rank[row], NEVER).index_fill(0, torch.tensor([variable]), N)
        single = net.chain(x[row : row + 1], own.unsqueeze(0))[0, variable]
        torch.testing.assert_close(strict[row, variable], single, atol=1e-5, rtol=0)


@pytest.mark.parametrize("strict", [False, True])
def test_no_answer_depends_on_an_ignored_value_its_own_or_a_later_one(strict: bool, generator: Generator) -> None:
    net, rank = network(Real()), parts(5, generator, given=False)
    x = torch.randn(5, N, generator=generator).requires_grad_()
    params = net.chain(x, rank, strict=strict)
    for variable in range(N):
        (slope,) = torch.autograd.grad(params[:, variable].sum(), x, retain_graph=True)
        own = rank[:, variable : variable + 1]
        expected = asked_in(rank) & ((rank < own) if not strict else (torch.arange(N) < variable))
        posed = asked_in(own)[:, 0] | strict
        assert torch.equal((slope != 0)[posed], expected[posed])


@torch.no_grad()
def test_nan_in_places_that_are_not_read_changes_nothing(generator: Generator) -> None:
    net, rank = network(Real()), parts(6, generator, given=True)
    x = torch.randn(6, N, generator=generator)
    asked = asked_in(rank)
    last = torch.where(asked, rank, -1).amax(1, keepdim=True)
    holes = torch.where(rank < last, x, torch.nan)
    assert torch.equal(net.chain(x, rank)[asked], net.chain(holes, rank)[asked])


@torch.no_grad()
def test_blanks_tell_which_places_are_ignored_and_matter(generator: Generator) -> None:
    net = network()
    rank = torch.full((1, N), NEVER).index_fill(1, torch.tensor([7]), 1).index_fill(1, torch.tensor([2]), 0)
    x = torch.randint(5, (1, N), generator=generator)
    left_out = network(ignored="left out")
    left_out.load_state_dict({name: weight for name, weight in net.state_dict().items() if name != "blank"})
    assert (net.chain(x, rank)[0, 7] - left_out.chain(x, rank)[0, 7]).abs().max() > 1e-3


@torch.no_grad()
def test_with_nothing_ignored_or_something_given_nothing_is_changed(generator: Generator) -> None:
    net, left_out = network(), network(ignored="left out")
    left_out.load_state_dict({name: weight for name, weight in net.state_dict().items() if name != "blank"})
    x, part = torch.randint(5, (8, N), generator=generator), torch.randint(3, (8, N), generator=generator)
    part[:, 0] = 0
    for rank in (
        chain_rank(Increasing(), Question(part == 0, part == 1)),
        chain_rank(Increasing(), Question(part < 0, part >= 0)),
    ):
        asked = asked_in(rank)
        assert torch.equal(net.chain(x, rank)[asked], left_out.chain(x, rank)[asked])


def answering(variables: int = 6, codes: int = 3) -> Model:
    torch.manual_seed(4)
    net = OnePassTransformer(Discrete(codes), (variables,), codes, 16, 2, 2, given="full", ignored="blank")
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return Model(net, Categorical(codes), order=Increasing(), factorizations=[Factorization.DIRECT])


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_samplers_draw_with_the_probability_that_evaluation_says(share: float, generator: Generator) -> None:
    model, part = answering(), torch.rand(40, 6, generator=generator)
    question, x = Question(part < share, part > 0.5), torch.randint(3, (40, 6), generator=generator)
    for policy in (CachedChain(), Follow(), Follow(groups=99)):
        *_, last = watch(model, x, question, policy=policy, generator=generator)
        expected = log_prob(model, last.x, question).value
        torch.testing.assert_close(last.score.sum(1), expected, atol=1e-5, rtol=0)


def test_subsets_have_probabilities_that_add_up_to_one() -> None:
    model, every = answering(), torch.tensor(list(itertools.product(range(3), repeat=6)))
    question = Question.of(6, given=[], asked=[1, 4], batch=len(every))
    mass = log_prob(model, every, question).value.exp().reshape((3,) * 6)
    torch.testing.assert_close(mass.sum((1, 4)), torch.ones(3, 3, 3, 3).double(), atol=1e-5, rtol=0)


def test_whole_rows_are_speculated_and_parts_of_them_refused_in_one_sentence(generator: Generator) -> None:
    model, x = answering(), torch.zeros(4, 6, dtype=torch.int64)
    whole = Question.of(6, given=[], asked=range(6), batch=4)
    *_, last = watch(model, x, whole, policy=Speculative(), generator=generator)
    torch.testing.assert_close(last.score.sum(1), log_prob(model, last.x, whole).value, atol=1e-5, rtol=0)
    some = Question.of(6, given=[], asked=[1, 4], batch=4)
    with pytest.raises(ValueError, match=r"leaves out what is ignored.*got blanks between them"):
        list(watch(model, x, some, policy=Speculative(), generator=generator))


@torch.no_grad()
def test_the_objective_scores_every_present_value_from_those_of_the_block_that_lie_before_it(
    generator: Generator,
) -> None:
    model, objective = answering(), OnePassLoss(UniformCardinality(6), joint_share=0.0, conditioned_share=0.5)
    x = torch.randint(3, (30, 6), generator=generator)
    rows = Rows(x, torch.rand(30, 6, generator=generator) < 0.9)
    rank = objective.sample_rank(30, generator=generator)
    nats = objective.loss(model, rows, rank)
    compared = 0
    for row in range(30):
        block = (rank[row] >= 0) & (rank[row] < 6) & rows.present[row]
        if bool((rank[row] < 0).any()) or not bool(block.any()):
            continue
        total = 0.0
        for variable in rows.present[row].nonzero()[:, 0].tolist():
            before = block & (torch.arange(6) < variable)
            one = torch.where(before, rank[row], NEVER).index_fill(0, torch.tensor([variable]), 6)
            total -= float(model.chain(x[row : row + 1], one.unsqueeze(0)).log_prob(x[row : row + 1])[0, variable])
        assert float(nats[row]) == pytest.approx(total, abs=1e-4)
        compared += 1
    assert compared > 5


def test_other_ties_than_the_last_are_refused_in_one_sentence() -> None:
    rank = torch.tensor([[0, 0, 1, 2, 3, 4, 5, 6, 7, 8]])
    with pytest.raises(ValueError, match="variables answered at once, with nothing given: expected the last ones only"):
        network().chain(torch.zeros(1, N), rank)


def test_orders_of_any_kind_are_distributions_too(generator: Generator) -> None:
    net, x = network(), torch.randint(5, (6, N), generator=generator)
    question = Question(torch.zeros(6, N, dtype=torch.bool), torch.rand(6, N, generator=generator) < 0.5)
    rank = chain_rank(Shuffled(), question, generator=generator)
    params = net.chain(x, rank)
    for row, variable in asked_in(rank).nonzero().tolist():  # nothing that comes later, or is ignored, is seen
        other = torch.where(rank[row] < rank[row, variable], x[row], (x[row] + 1) % 5)
        again = net.chain(other.unsqueeze(0), rank[row : row + 1])[0, variable]
        torch.testing.assert_close(again, params[row, variable])


def test_groups_of_neighbours_are_answered_given_the_groups_before_them(generator: Generator) -> None:
    model, x = answering(), torch.randint(3, (20, 6), generator=generator)
    question = Question.of(6, given=[], asked=[0, 1, 3, 4, 5], batch=20)
    *_, last = watch(model, x, question, policy=Follow(groups=3), generator=generator)
    total = torch.zeros(20, dtype=torch.float64)
    for variable in (0, 1, 3, 4, 5):
        before = asked_in(last.rank) & (last.rank < last.rank[:, variable : variable + 1])
        rank = chain_rank(Increasing(), Question(torch.zeros_like(before), before))
        with torch.no_grad():
            answer = model.chain(last.x, rank.index_fill(1, torch.tensor([variable]), 6)).log_prob(last.x)
        total += answer[:, variable].double()
    torch.testing.assert_close(last.score.sum(1), total, atol=1e-5, rtol=0)


def test_marginals_license_a_difference_of_two_and_no_chain_from_given_values(generator: Generator) -> None:
    model, x = answering(), torch.randint(3, (12, 6), generator=generator)
    model.factorizations = OnePassLoss(UniformCardinality(6), conditioned_share=0.5).factorizations
    assert model.factorizations == {Factorization.MARGINAL, Factorization.INPAINTING}
    later = Question.of(6, given=[0], asked=[5], batch=12)
    found = log_prob(model, x, later)
    both, part = (log_prob(model, x, Question.of(6, given=[], asked=asked, batch=12)).value for asked in ([0, 5], [0]))
    assert found.factorization is Factorization.DIFFERENCE
    torch.testing.assert_close(found.value, both - part)
    torch.testing.assert_close(log_prob(model, x, later, factorization="difference").value, both - part)
    every = torch.zeros(4000, 6, dtype=torch.int64)  # samplers complete the row instead, which is practised
    *_, last = watch(model, every, Question.of(6, given=[0], asked=[5], batch=4000), generator=generator)
    whole = torch.tensor([[0, *rest] for rest in itertools.product(range(3), repeat=5)])
    law = log_prob(model, whole, Question.of(6, given=[0], asked=range(1, 6), batch=243)).value.exp()
    law = law.reshape(81, 3).sum(0)
    drawn = last.x[:, 5].bincount(minlength=3) / 4000
    assert (drawn - law).abs().max() < 5 * (0.25 / 4000) ** 0.5


@pytest.mark.parametrize("shares", [(0.0, 0.2), (1.0, 0.2), (0.5, 1.0)])
def test_objectives_that_do_not_practise_blanks_are_refused(shares: tuple[float, float], generator: Generator) -> None:
    conditioned_share, joint_share = shares
    model = answering()
    model.network.given = "causal"  # what it says of blanks alone
    rows = Rows.from_values(torch.zeros(4, 6, dtype=torch.int64))
    objective = OnePassLoss(UniformCardinality(6), joint_share=joint_share, conditioned_share=conditioned_share)
    with pytest.raises(ValueError, match="objective: expected rows that are told and rows that are not"):
        objective(model, rows, generator=generator)


def test_blanks_go_by_index_and_other_orders_are_refused(generator: Generator) -> None:
    with pytest.raises(ValueError, match=r"order: expected Increasing\(\), as blanks are read by index"):
        Model(answering().network, Categorical(3), order=Decreasing())
    objective, rows = (
        OnePassLoss(UniformCardinality(6), Decreasing(), 0.2, 0.5),
        Rows.from_values(torch.zeros(4, 6).long()),
    )
    with pytest.raises(ValueError, match=r"order: expected Increasing\(\), as blanks are read by index"):
        objective(answering(), rows, generator=generator)


def test_answers_with_blanks_between_them_are_not_taken_back() -> None:
    net, x = network(), torch.zeros(2, N, dtype=torch.int64)
    _, cache = net.open(x, chain_rank(Increasing(), Question.of(N, given=[], asked=[2, 5], batch=2)))
    with pytest.raises(ValueError, match="answers read several at a time, or taken back"):
        net.rewind(cache, torch.ones(2, dtype=torch.int64))


@torch.no_grad()
def test_a_row_has_the_same_bits_in_any_company(generator: Generator) -> None:
    torch.manual_seed(3)
    net = OnePassTransformer(Discrete(5), (24,), 5, 96, 2, 4, given="full", ignored="blank")
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model = Model(net.eval(), Categorical(5), factorizations=[Factorization.DIRECT])
    x, known = torch.randint(5, (6, 24), generator=generator), torch.rand(6, 24, generator=generator) < 0.4
    known[::2] = False
    together = parameters(model, x, known, None, 16)
    for row in range(6):
        assert torch.equal(parameters(model, x[row : row + 1], known[row : row + 1], None, 16)[0], together[row])
