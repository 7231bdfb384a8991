"""The Ising model against sums over all states written out from its definition."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Generator, Tensor

from anyfill.ising.dynamics import block_means
from anyfill.ising.model import Ising
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import all_codes, state_numbers, to_spins
from anyfill.networks.network import Network


def some(seed: int, variables: int = 4, **options: object) -> Ising:
    return Ising.random(variables, generator=torch.Generator().manual_seed(seed), **options)  # type: ignore[arg-type]


def energies(ising: Ising) -> list[float]:
    """The exponent of every state, term by term."""
    c = {"once": 1, "twice": 2}[ising.pairs]
    found: list[float] = []
    for spins in itertools.product((-1, 1), repeat=ising.variables):
        total = sum(h * s for h, s in zip(ising.fields.tolist(), spins))
        for (i, j), coupling in zip(ising.edges, ising.couplings.tolist()):
            total += c * coupling * spins[i] * spins[j]
        found.append(total)
    return found


def law(ising: Ising) -> Tensor:
    return torch.tensor(energies(ising), dtype=torch.float64).softmax(0)


def conditional(p: Tensor, x: list[int], wanted: list[int], told: list[int]) -> float:
    """p(x_wanted | x_told) by two sums."""
    count = int(math.log2(len(p)))
    above = below = 0.0
    for number, row in enumerate(itertools.product((0, 1), repeat=count)):
        if all(row[i] == x[i] for i in told):
            below += float(p[number])
            above += float(p[number]) if all(row[i] == x[i] for i in wanted) else 0.0
    return above / below


flags = st.lists(st.booleans(), min_size=4, max_size=4)
pairs_of = st.sampled_from(["once", "twice"])


def test_it_is_a_network():
    assert isinstance(Ising.complete(3, 0.1), Network)


@given(seed=st.integers(0, 999), pairs=pairs_of, density=st.sampled_from([0.0, 0.5, 1.0]))
def test_the_joint_is_its_definition_and_the_statistics_give_the_exponent(seed, pairs, density):
    ising, x = some(seed, pairs=pairs, density=density), all_codes(4)
    torch.testing.assert_close(ising.exponent(x), torch.tensor(energies(ising), dtype=torch.float64))
    torch.testing.assert_close(ising.statistics(x) @ ising.theta, ising.exponent(x))
    torch.testing.assert_close(ising.log_joint().exp(), law(ising))
    torch.testing.assert_close(ising.log_partition(), ising.exponent(x).logsumexp(0))
    torch.testing.assert_close(ising.joint().probabilities.flatten(), law(ising))


def test_fixed_fields_are_in_the_law_but_not_among_the_parameters():
    free, fixed = some(3), some(3, free_fields=False)
    torch.testing.assert_close(free.log_joint(), fixed.log_joint())
    assert fixed.statistics(all_codes(4)).shape == (16, 6)
    assert len(fixed.theta) == 6
    assert len(free.theta) == 10
    assert [name for name, _ in fixed.named_parameters()] == ["couplings"]
    rest = fixed.exponent(all_codes(4)) - fixed.statistics(all_codes(4)) @ fixed.theta
    torch.testing.assert_close(rest, to_spins(all_codes(4)) @ fixed.fields)


def test_counting_pairs_twice_doubles_the_couplings_and_their_statistics():
    once, twice, x = some(5), some(5, pairs="twice"), all_codes(4)
    torch.testing.assert_close(twice.statistics(x)[:, :6], 2 * once.statistics(x)[:, :6])
    torch.testing.assert_close(twice.statistics(x)[:, 6:], once.statistics(x)[:, 6:])
    doubled = Ising(4, once.edges).with_parameters(2 * once.couplings, once.fields)
    torch.testing.assert_close(twice.log_joint(), doubled.log_joint())


@given(seed=st.integers(0, 999), pairs=pairs_of, asked=flags)
def test_a_block_given_the_rest_has_the_conditional_of_the_joint(seed, pairs, asked):
    ising = some(seed, pairs=pairs)
    x = ising.sample(1, generator=torch.Generator().manual_seed(seed))
    inside = [i for i in range(4) if asked[i]]
    found = ising.block_log_prob(x, torch.tensor([asked])).exp().item()
    outside = [i for i in range(4) if not asked[i]]
    assert found == pytest.approx(conditional(law(ising), x[0].tolist(), inside, outside), rel=1e-12)


@given(seed=st.integers(0, 999), known=flags)
def test_every_answer_of_the_network_is_the_conditional_of_the_joint(seed, known):
    ising = some(seed)
    x = ising.sample(1, generator=torch.Generator().manual_seed(seed))
    told = [i for i in range(4) if known[i]]
    answers = ising(x, torch.tensor([known])).exp()[0]
    assert answers.shape == (4, 2)
    assert answers.dtype == torch.float64
    for j, value in itertools.product(range(4), range(2)):
        row = [value if i == j else int(x[0, i]) for i in range(4)]
        expected = conditional(law(ising), row, [j], told) if j not in told else float(value == x[0, j])
        assert answers[j, value].item() == pytest.approx(expected, rel=1e-12)


def test_rows_with_blocks_of_different_sizes_are_answered_each_as_if_alone(generator: Generator):
    ising = some(8, 5)
    x = ising.sample(60, generator=generator)
    asked = torch.rand(60, 5, generator=generator) < 0.5
    together = ising.block_log_prob(x, asked)
    alone = torch.cat([ising.block_log_prob(x[i : i + 1], asked[i : i + 1]) for i in range(60)])
    torch.testing.assert_close(together, alone)
    assert set(asked.sum(1).tolist()) >= {1, 2, 3}


@pytest.mark.parametrize("junk", [float("nan"), float("inf"), 77.0])
def test_what_stands_in_unknown_places_changes_nothing(junk: float, generator: Generator):
    ising = some(9, 5)
    x = ising.sample(50, generator=generator).double()
    known = torch.rand(50, 5, generator=generator) < 0.5
    assert torch.equal(ising(x, known), ising(torch.where(known, x, junk), known))
    members = torch.tensor([[1, 3]]).expand(50, 2)
    dirty = x.clone().index_fill(1, torch.tensor([1, 3]), junk)
    assert torch.equal(ising.block_exponents(x, members), ising.block_exponents(dirty, members))


@given(seed=st.integers(0, 999), pairs=pairs_of, free=st.booleans(), asked=flags)
def test_the_gradient_of_a_block_is_its_statistics_less_their_conditional_mean(seed, pairs, free, asked):
    ising, x = some(seed, pairs=pairs, free_fields=free), all_codes(4)
    block = torch.tensor(asked)
    log_prob = ising.block_log_prob(x, block.expand(16, 4))
    expected = ising.statistics(x) - block_means(ising.statistics(x), law(ising), block)
    parameters = [ising.couplings, ising.fields] if free else [ising.couplings]
    for row in range(16):
        found = torch.autograd.grad(log_prob[row], parameters, retain_graph=True)
        torch.testing.assert_close(torch.cat(found), expected[row])


def test_the_conditional_mean_operator_is_the_mean_over_rows_that_agree_outside_the_block():
    x, values = all_codes(4), torch.randn(16, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p, block = law(some(4)), torch.tensor([True, False, True, False])
    found = block_means(values, p, block)
    for row in range(16):
        agree = (x[:, ~block] == x[row, ~block]).all(1)
        torch.testing.assert_close(found[row], (p[agree] / p[agree].sum()) @ values[agree])


# ---- precision


def test_strong_couplings_lose_no_digits():
    """J = 20 on 6 spins: conditionals as small as exp(-200), compared as logarithms with exact arithmetic."""
    ising = Ising.complete(6, 20.0, 0.25)
    x = torch.tensor([[1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]])
    one = torch.zeros(3, 6, dtype=torch.bool)
    one[:, 5] = True
    field = torch.tensor([100.25, -99.75, 20.25], dtype=torch.float64)  # on the last spin, which is -1 in each row
    torch.testing.assert_close(
        ising.block_log_prob(x, one), -2 * field.clamp(min=0) - torch.log1p((-2 * field.abs()).exp())
    )
    by_two = ising(x, ~one)[:, 5, 0]
    torch.testing.assert_close(by_two, ising.block_log_prob(x, one))
    log_joint = ising.log_joint().detach()
    assert bool(log_joint.isfinite().all())
    assert float(log_joint.exp().sum()) == pytest.approx(1.0, abs=1e-14)
    assert (log_joint[63] - log_joint[0]).item() == pytest.approx(2 * 6 * 0.25)
    assert (log_joint[63] - log_joint[62]).item() == pytest.approx(2 * 5 * 20 + 2 * 0.25)


def test_very_strong_couplings_give_finite_losses_and_gradients():
    ising = Ising.complete(5, 500.0, pairs="twice")
    loss = -ising.block_log_prob(all_codes(5), torch.ones(32, 5, dtype=torch.bool)).sum()
    loss.backward()
    assert bool(loss.isfinite())
    assert bool(ising.couplings.grad.isfinite().all())


# ---- which model


def test_the_complete_graph_and_the_clique_have_their_edges():
    assert Ising.complete(4, 0.3).edges == tuple(itertools.combinations(range(4), 2))
    clique = Ising.clique(6, 3, 0.5, 0.1)
    assert clique.edges == ((0, 1), (0, 2), (1, 2))
    assert clique.couplings.tolist() == [0.5] * 3
    assert clique.fields.tolist() == [0.1] * 6


@pytest.mark.parametrize("periodic", [False, True])
def test_lattice_neighbours_are_the_sites_one_step_apart(periodic: bool):
    height, width = 3, 4
    expected = set[tuple[int, int]]()
    for one, other in itertools.combinations(range(height * width), 2):
        (a, b), (c, d) = divmod(one, width), divmod(other, width)
        up, across = abs(a - c), abs(b - d)
        if periodic:
            up, across = min(up, height - up), min(across, width - across)
        if up + across == 1:
            expected.add((one, other))
    lattice = Ising.lattice(height, width, 0.4, periodic=periodic)
    assert set(lattice.edges) == expected
    assert len(lattice.edges) == len(expected)
    assert len(expected) == (2 * height * width if periodic else 2 * height * width - height - width)


def test_a_torus_of_fewer_than_three_is_refused_and_a_line_is_a_lattice():
    with pytest.raises(ValueError, match="side of a periodic lattice: expected at least 3, got 2"):
        Ising.lattice(2, 5, 0.1, periodic=True)
    assert Ising.lattice(1, 4, 0.1).edges == ((0, 1), (1, 2), (2, 3))


def test_a_matrix_gives_the_quadratic_form(generator: Generator):
    half = torch.randn(5, 5, generator=generator, dtype=torch.float64).triu(1)
    half[0, 3] = 0.0
    matrix, fields = half + half.T, torch.randn(5, generator=generator, dtype=torch.float64)
    ising, spins = Ising.from_matrix(matrix, fields), to_spins(all_codes(5))
    assert len(ising.edges) == 9
    expected = spins @ fields + ((spins @ half) * spins).sum(1)
    torch.testing.assert_close(ising.exponent(all_codes(5)), expected)
    torch.testing.assert_close(ising.interaction, matrix)


def test_the_same_generator_gives_the_same_random_model_and_density_is_the_share_of_edges():
    first, again = some(4, 20, density=0.3), some(4, 20, density=0.3)
    assert first.edges == again.edges
    assert torch.equal(first.theta, again.theta)
    assert abs(len(first.edges) - 57) < 5 * math.sqrt(190 * 0.3 * 0.7)


def test_draws_have_the_law_of_the_joint(generator: Generator):
    ising = some(2)
    drawn = ising.sample(20_000, generator=generator)
    counts = torch.bincount(state_numbers(drawn), minlength=16)
    assert chisquare(counts, law(ising) * 20_000).pvalue > 0.001  # a fixed seed, false alarm 1 in 1000


def test_the_parameters_travel_in_the_state_dict():
    ising, other = some(6), Ising.complete(4, 0.0)
    other.load_state_dict(ising.state_dict())
    torch.testing.assert_close(other.log_joint(), ising.log_joint())


def test_in_a_model_it_answers_questions():
    ising = some(7)
    answers = Model(ising, Categorical(2)).marginals(
        torch.tensor([[1, 0, 0, 0]]), torch.tensor([[True, False, False, True]])
    )
    expected = [conditional(law(ising), [1, 0, v, 0], [2], [0, 3]) for v in (0, 1)]
    assert answers.log_prob(torch.tensor([[1, 0, 1, 0]])).exp()[0, 2].item() == pytest.approx(expected[1])


# ---- refused in one sentence


@pytest.mark.parametrize(
    ("couplings", "fields", "why"),
    [
        ([[0.0, 1.0], [2.0, 0.0]], [0.0, 0.0], r"symmetric matrix, got 1 at \(0, 1\) and 2 at \(1, 0\)"),
        ([[1.0, 1.0], [1.0, 0.0]], [0.0, 0.0], "diagonal of couplings: expected zeros"),
        ([[0.0, math.nan], [math.nan, 0.0]], [0.0, 0.0], "couplings: expected finite numbers, got nan"),
        ([[0.0, 1.0], [1.0, 0.0]], [0.0, math.inf], "fields: expected finite numbers, got inf"),
        ([[0.0, 1.0]], [0.0, 0.0], "shape of couplings"),
    ],
)
def test_a_matrix_that_is_no_ising_model_is_refused(couplings, fields, why):
    with pytest.raises(ValueError, match=why):
        Ising.from_matrix(torch.tensor(couplings), torch.tensor(fields))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Ising.complete(3, math.nan), "couplings: expected finite numbers, got nan"),
        (lambda: Ising.complete(3, 0.1, math.inf), "fields: expected finite numbers, got inf"),
        (lambda: Ising.clique(3, 4, 0.1), "size of the clique: expected a whole number from 1 to 3, got 4"),
        (lambda: Ising(3, ((1, 0),)), r"edge: expected \(i, j\) with 0 <= i < j < 3"),
        (lambda: Ising(3, ((0, 3),)), "edge: expected"),
        (lambda: Ising(3, ((0, 1), (0, 1))), "each pair once"),
        (lambda: Ising(3, (), "thrice"), 'pairs: expected "once" or "twice"'),  # type: ignore[arg-type]
        (lambda: Ising(0, ()), "variables: expected a whole number from 1"),
        (lambda: Ising.complete(30, 0.1).log_joint(), "the joint of an Ising model: expected at most 20 .* 8 GiB"),
        (lambda: Ising.complete(30, 0.1).log_partition(), "partition function: expected at most 20"),
        (lambda: Ising.complete(30, 0.1).sample(1, generator=torch.Generator()), "exact draws.*ising.chains"),
        (lambda: Ising.complete(3, 0.1)(torch.zeros(1, 4), torch.ones(1, 4, dtype=torch.bool)), "shape of x"),
        (lambda: Ising.complete(3, 0.1).block_log_prob(torch.zeros(1, 3), torch.ones(2, 3, dtype=torch.bool)), "shape"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, why):
    with pytest.raises(ValueError, match=why) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_many_variables_are_answered_as_long_as_the_block_is_small(generator: Generator):
    lattice = Ising.lattice(8, 8, 0.3, periodic=True)
    x = torch.randint(2, (20, 64), generator=generator)
    asked = torch.zeros(20, 64, dtype=torch.bool)
    asked[:, :3] = True
    assert bool(lattice.block_log_prob(x, asked).isfinite().all())
    with pytest.raises(ValueError, match="the states of a block: expected at most 20"):
        lattice.block_log_prob(x, torch.ones(20, 64, dtype=torch.bool))
