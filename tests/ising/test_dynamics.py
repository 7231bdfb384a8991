"""Block dynamics: reversible, with the Dirichlet form of proposition 1; lemmas 3 and 4; which chain theorem 3 needs."""

from math import comb

import pytest
import torch

from anyfill.ising.asymptotics import block_information, fisher_information
from anyfill.ising.blocks import AdaptiveBlocks, FixedBlocks, k_blocks, subsets_of
from anyfill.ising.dynamics import (
    Averages,
    apply_dynamics,
    block_means,
    block_tree,
    dirichlet_form,
    dirichlet_matrix,
    dirichlet_sum,
    fixed_weights,
    k_block_nodes,
    spread,
    transition_matrix,
)
from anyfill.ising.model import Ising
from anyfill.networks.exact import all_codes, state_numbers


def random_law(variables, generator):
    return (2.0 * torch.randn(2**variables, generator=generator, dtype=torch.float64)).log_softmax(0)


def random_subsets(variables, generator, count=5):
    subsets = torch.rand(count, variables, generator=generator) < 0.5
    subsets[torch.arange(count), torch.randint(variables, (count,), generator=generator)] = True
    subsets[0] |= ~subsets.any(0)
    return subsets.unique(dim=0)


def weighted(variables, generator):
    subsets = random_subsets(variables, generator)
    return FixedBlocks(subsets, torch.rand(len(subsets), generator=generator, dtype=torch.float64) + 0.1)


def adaptive(variables, generator):
    subsets = random_subsets(variables, generator)
    table = torch.rand(2**variables, len(subsets), generator=generator, dtype=torch.float64).square()
    return AdaptiveBlocks(subsets, lambda x: table[state_numbers(x)])


KINDS = pytest.mark.parametrize("make", [weighted, adaptive])
SIZES = pytest.mark.parametrize("variables", [1, 3, 6])


def plain_matrix(log_joint, blocks):
    """Definition 8 state by state, in plain Python."""
    variables = blocks.subsets.shape[1]
    codes = all_codes(variables)
    mass, chosen = log_joint.exp().tolist(), blocks.probabilities(codes).tolist()
    rows, subsets = codes.tolist(), blocks.subsets.tolist()
    answer = torch.zeros(len(rows), len(rows), dtype=torch.float64)
    for x, row in enumerate(rows):
        for number, block in enumerate(subsets):
            agree = [y for y, other in enumerate(rows) if all(b or i == j for b, i, j in zip(block, row, other))]
            total = sum(mass[y] * chosen[y][number] for y in agree)
            for y in agree:
                answer[x, y] += chosen[x][number] * mass[y] * chosen[y][number] / total
    return answer


@KINDS
@SIZES
def test_the_operator_the_matrix_and_definition_8_are_one(make, variables, generator):
    log_joint, blocks = random_law(variables, generator), make(variables, generator)
    values = torch.randn(2**variables, 3, generator=generator, dtype=torch.float64)
    matrix = transition_matrix(log_joint, blocks)
    if variables <= 3:
        torch.testing.assert_close(matrix, plain_matrix(log_joint, blocks), rtol=0, atol=1e-14)
    torch.testing.assert_close(apply_dynamics(values, log_joint, blocks), matrix @ values, rtol=0, atol=1e-13)
    torch.testing.assert_close(apply_dynamics(values[:, 0], log_joint, blocks), matrix @ values[:, 0])
    torch.testing.assert_close(matrix.sum(1), torch.ones(2**variables, dtype=torch.float64), rtol=0, atol=1e-14)


@KINDS
@SIZES
def test_the_dynamics_are_reversible_and_positive_semi_definite_whatever_k_depends_on(make, variables, generator):
    for _ in range(5):
        log_joint, blocks = random_law(variables, generator), make(variables, generator)
        flow = log_joint.exp().unsqueeze(1) * transition_matrix(log_joint, blocks)
        torch.testing.assert_close(flow, flow.T, rtol=0, atol=1e-15)
        assert torch.linalg.eigvalsh(flow)[0] > -1e-15


def test_adaptive_dynamics_that_forget_k_leave_the_law(generator):
    """Redrawing from p(x_K | x_-K), without eq. (1)'s condition on K, does not keep p."""
    log_joint, blocks = random_law(4, generator), adaptive(4, generator)
    mass, chosen = log_joint.exp(), blocks.probabilities(all_codes(4))
    wrong = torch.zeros(16, 16, dtype=torch.float64)
    for number, block in enumerate(blocks.subsets):
        wrong += chosen[:, number : number + 1] * block_means(torch.eye(16, dtype=torch.float64), mass, block)
    torch.testing.assert_close(wrong.sum(1), torch.ones(16, dtype=torch.float64))
    assert (mass @ wrong - mass).abs().max() > 1e-3
    torch.testing.assert_close(mass @ transition_matrix(log_joint, blocks), mass, rtol=0, atol=1e-15)


@KINDS
@SIZES
def test_the_dirichlet_form_is_the_same_in_all_three_shapes(make, variables, generator):
    """<f, (I - P) g>, the double sum of definition 4, and proposition 1's expected conditional covariance."""
    for _ in range(5):
        log_joint, blocks = random_law(variables, generator), make(variables, generator)
        f, g = torch.randn(2, 2**variables, generator=generator, dtype=torch.float64)
        covariance = dirichlet_form(f, g, log_joint, blocks)
        double_sum = dirichlet_sum(f, g, log_joint.exp(), transition_matrix(log_joint, blocks))
        inner = (log_joint.exp() * f * (g - apply_dynamics(g, log_joint, blocks))).sum()
        assert covariance == pytest.approx(float(double_sum), rel=1e-11, abs=1e-14)
        assert covariance == pytest.approx(float(inner), rel=1e-11, abs=1e-14)


@KINDS
def test_states_without_mass_and_blocks_never_chosen_count_for_nothing(make, generator):
    log_joint = random_law(4, generator)
    log_joint[[1, 5, 6, 12]] = -torch.inf
    log_joint = log_joint.log_softmax(0)
    blocks = make(4, generator)
    f = torch.randn(16, generator=generator, dtype=torch.float64)
    elsewhere = torch.where(log_joint.isfinite(), f, 1e6)
    matrix = transition_matrix(log_joint, blocks)
    torch.testing.assert_close(matrix.sum(1), torch.ones(16, dtype=torch.float64))
    form = dirichlet_form(elsewhere, elsewhere, log_joint, blocks)
    assert form == pytest.approx(float(dirichlet_sum(f, f, log_joint.exp(), matrix)), rel=1e-11)
    stands = log_joint.isfinite()
    torch.testing.assert_close(apply_dynamics(f, log_joint, blocks)[stands], (matrix @ f)[stands])


# ---- what theorem 3 needs


def pair_chain(log_joint, blocks):
    """Eq. (C.24) as printed, on pairs (x, K): law (2^N M,) and transition, K never changing."""
    variables, count = blocks.subsets.shape[1], len(blocks.subsets)
    chosen = blocks.probabilities(all_codes(variables))
    law = log_joint.exp().unsqueeze(1) * chosen
    matrix = torch.zeros(2**variables, count, 2**variables, count, dtype=torch.float64)
    identity = torch.eye(2**variables, dtype=torch.float64)
    for number, block in enumerate(blocks.subsets):
        matrix[:, number, :, number] = block_means(identity, law[:, number], block)
    return law.reshape(-1), matrix.reshape(law.numel(), law.numel())


def variance_of(f, law):
    return (law * f.square()).sum() - (law * f).sum().square()


@pytest.fixture
def adaptive_case(generator):
    ising = Ising.random(4, generator=generator)
    return ising.log_joint().detach(), ising.statistics(all_codes(4)), adaptive(4, generator)


def test_the_printed_chain_on_pairs_has_no_poincare_constant(adaptive_case):
    """A function of K alone has Dirichlet form 0 under (C.24), and eigenvalue 1 comes at least M times."""
    log_joint, _, blocks = adaptive_case
    law, matrix = pair_chain(log_joint, blocks)
    which = torch.arange(len(blocks.subsets), dtype=torch.float64).repeat(16)
    assert dirichlet_sum(which, which, law, matrix) == pytest.approx(0.0, abs=1e-14)
    assert variance_of(which, law) > 0.1
    root = law.sqrt()
    values = torch.linalg.eigvalsh((root.unsqueeze(1) * matrix / root + (root.unsqueeze(1) * matrix / root).T) / 2)
    assert (values > 1 - 1e-10).sum() >= len(blocks.subsets)


def test_the_proof_of_theorem_3_needs_the_statistics_where_it_takes_the_score(adaptive_case, generator):
    """f(x, K) = v · score has variance v^T H v, so Poincaré says H >= H / C. f(x) = v · T(x) gives H >= I / C."""
    log_joint, statistics, blocks = adaptive_case
    law, matrix = pair_chain(log_joint, blocks)
    chosen = blocks.probabilities(all_codes(4))
    information = block_information(log_joint, statistics, blocks)
    fisher = fisher_information(log_joint, statistics)
    v = torch.randn(statistics.shape[1], generator=generator, dtype=torch.float64)
    scores = [
        statistics - block_means(statistics, log_joint.exp() * chosen[:, number], block)
        for number, block in enumerate(blocks.subsets)
    ]
    score = (torch.stack(scores, 1) @ v).reshape(-1)
    plain = (statistics @ v).repeat_interleave(len(blocks.subsets))
    energy, own, whole = v @ information @ v, variance_of(score, law), variance_of(plain, law)
    # As printed: the form is v^T H v, but so is the variance, and that is not v^T I v.
    assert dirichlet_sum(score, score, law, matrix) == pytest.approx(float(energy), rel=1e-10)
    assert own == pytest.approx(float(energy), rel=1e-10)
    assert own < 0.99 * (v @ fisher @ v)
    # With v · T: the same form, on pairs as on states, and the right variance.
    assert dirichlet_sum(plain, plain, law, matrix) == pytest.approx(float(energy), rel=1e-10)
    assert dirichlet_form(statistics @ v, statistics @ v, log_joint, blocks) == pytest.approx(float(energy), rel=1e-10)
    assert whole == pytest.approx(float(v @ fisher @ v), rel=1e-10)


# ---- lemmas 3 and 4: what conditioning on K means


def lemma_3():
    """Their example. The fourth row of p(x), printed (0, 0) again, is (1, 1): it has probability 0."""
    log_joint = torch.tensor([1 / 2, 1 / 3, 1 / 6, 0.0], dtype=torch.float64).log()
    table = torch.tensor([[1 / 2, 1 / 2], [1 / 3, 2 / 3], [1 / 4, 3 / 4], [1 / 2, 1 / 2]], dtype=torch.float64)
    return log_joint, AdaptiveBlocks(subsets_of(2, [[0], [1]]), lambda x: table[state_numbers(x)])


def conditional(joint, of, given):
    """p(of | given), both conditions on rows of codes (4, 2)."""
    codes = all_codes(2)
    inside = (codes[:, list(given)] == torch.tensor(list(given.values()))).all(1)
    both = inside & (codes[:, list(of)] == torch.tensor(list(of.values()))).all(1)
    return float(joint[both].sum() / joint[inside].sum())


def test_lemma_3_holds_but_its_printed_numbers_are_of_the_block_that_is_kept():
    """p(x_1 = 0 | x_0 = 0, {0}) = 9/13 is printed for K = {0}: there x_0 is redrawn, so it is p(x_K | x_-K, K) only if
    K names the variables that are kept. In the paper's own notation the lemma is true with other numbers."""
    log_joint, blocks = lemma_3()
    mass, chosen = log_joint.exp(), blocks.probabilities(all_codes(2))
    joint = mass.unsqueeze(1) * chosen  # p(x, K)
    torch.testing.assert_close(
        joint[:3], torch.tensor([[1 / 4, 1 / 4], [1 / 9, 2 / 9], [1 / 24, 1 / 8]], dtype=torch.float64)
    )
    assert conditional(joint[:, 0], {1: 0}, {0: 0}) == pytest.approx(9 / 13)  # as printed
    assert conditional(mass, {1: 0}, {0: 0}) == pytest.approx(3 / 5)  # as printed
    assert conditional(joint[:, 1], {1: 0}, {0: 0}) == pytest.approx(9 / 17)  # K = {1}: x_1 is redrawn
    assert conditional(joint[:, 0], {0: 0}, {1: 0}) == pytest.approx(6 / 7)  # K = {0}: x_0 is redrawn
    assert conditional(mass, {0: 0}, {1: 0}) == pytest.approx(3 / 4)
    # The library's dynamics use these.
    down = (all_codes(2) == 0).double()
    assert float(block_means(down, joint[:, 1], blocks.subsets[1])[0, 1]) == pytest.approx(9 / 17)
    assert float(block_means(down, joint[:, 0], blocks.subsets[0])[0, 0]) == pytest.approx(6 / 7)


def test_lemma_4_holds_when_the_split_is_fixed_and_the_mask_is_another_variable(generator):
    """K fixes which coordinates stand left and right; K' is the mask drawn, given x_-K alone. Then it is the law of
    total probability. It fails if K' is drawn given all of x, if K' = K only, or if K' moves the split as well."""
    for _ in range(20):
        variables = 3
        log_joint, blocks = random_law(variables, generator), adaptive(variables, generator)
        mass, chosen = log_joint.exp(), blocks.probabilities(all_codes(variables))
        joint = mass.unsqueeze(1) * chosen

        def sums(values, block):  # over x_K, back at every state
            ones = torch.ones(len(values), dtype=torch.float64)
            return block_means(values, ones, block) * 2 ** int(block.sum())

        worst = {"given all of x": 0.0, "K only": 0.0, "moving split": 0.0}
        for number, block in enumerate(blocks.subsets):
            left = mass / sums(mass.unsqueeze(1), block)[:, 0]  # p(x_K | x_-K)
            below = sums(joint, block)  # p(x_-K, K') for every K'
            each = joint / below  # p(x_K | x_-K, K')
            given_rest = below / below.sum(1, keepdim=True)  # p(K' | x_-K)
            torch.testing.assert_close((given_rest * each).sum(1), left, rtol=1e-12, atol=0)
            moving = torch.stack(
                [(joint[:, j] / sums(joint[:, j : j + 1], other)[:, 0]) for j, other in enumerate(blocks.subsets)], 1
            )
            for name, right in {
                "given all of x": (chosen * each).sum(1),
                "K only": each[:, number],
                "moving split": (given_rest * moving).sum(1),
            }.items():
                if not bool(block.all()):
                    worst[name] = max(worst[name], float((right - left).abs().max()))
        assert min(worst.values()) > 1e-3


def test_bad_input_is_refused_in_a_sentence(generator):
    blocks = k_blocks(3, 1)
    with pytest.raises(ValueError, match="shape of log_joint"):
        apply_dynamics(torch.zeros(8), random_law(4, generator), blocks)
    with pytest.raises(ValueError, match="shape of the values"):
        dirichlet_matrix(torch.zeros(4, 2), random_law(3, generator), blocks)
    with pytest.raises(ValueError, match=r"at most 14, got 15, which would need 8 GiB; apply_dynamics"):
        transition_matrix(random_law(15, generator), k_blocks(15, 1))


BLOCKS = subsets_of(4, [[0], [0, 2], [0, 2, 3], [1, 3], [1, 2], [0, 1, 2, 3]])  # prefixes of each other, and not


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 1), (6, 3), (6, 6), (8, 4)])
def test_the_tree_of_k_blocks_has_the_known_size(n, k):
    nodes = k_block_nodes(n, k)
    level = [block_tree(k_blocks(n, k).subsets, [1.0] * comb(n, k))]
    pairs = level[0].pairs(n)
    for count in nodes:
        level = [child for node in level for child in node.then.values()]
        assert len(level) == count
    assert pairs == sum(count * 2 ** (n - depth) for depth, count in enumerate(nodes, 1))


@pytest.fixture
def case(generator):
    mass = torch.randn(16, generator=generator, dtype=torch.float64).softmax(0)
    values = torch.randn(16, 3, generator=generator, dtype=torch.float64)
    weights = torch.rand(6, generator=generator, dtype=torch.float64) + 0.1
    return mass, values, FixedBlocks(BLOCKS, weights)


def test_the_spread_is_the_weighted_sum_of_conditional_covariances(case):
    mass, values, blocks = case
    expected = 0.0
    for weight, block in zip(fixed_weights(blocks), blocks.subsets):
        apart = values - block_means(values, mass, block)
        expected = expected + weight * apart.T @ (mass.unsqueeze(1) * apart)
    tree = block_tree(blocks.subsets, fixed_weights(blocks))
    torch.testing.assert_close(spread(tree, mass, values), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("adaptive", [False, True])
def test_averages_of_p_f_are_the_mean_over_blocks_of_conditional_means(case, adaptive, generator):
    mass, values, blocks = case
    if adaptive:
        table = torch.rand(16, 6, generator=generator, dtype=torch.float64)
        blocks = AdaptiveBlocks(BLOCKS, lambda x: table[state_numbers(x)])
        chosen = table / table.sum(1, keepdim=True)
    else:
        chosen = blocks.weights.expand(16, -1)
    expected = 0.0
    for number, block in enumerate(BLOCKS):
        mean = block_means(values, mass * chosen[:, number], block)
        expected = expected + chosen[:, number : number + 1] * mean
    seen = mass.unsqueeze(1) * values
    torch.testing.assert_close(Averages(mass, blocks)(seen), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_all_blocks_of_one_size_share_their_work(k):
    """Pairs joined: fewer than 3^N, where one pass for each block would be C(N, k) 2^N."""
    blocks = k_blocks(6, k)
    pairs = block_tree(blocks.subsets, fixed_weights(blocks)).pairs(6)
    assert 32 <= pairs < min(3**6, len(blocks.subsets) * 64)
