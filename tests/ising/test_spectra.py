"""Poincaré constants against closed forms and against each other; mixing times against powers of the matrix."""

import math

import pytest
import torch

from anyfill.ising.blocks import AdaptiveBlocks, FixedBlocks, k_blocks, subsets_of
from anyfill.ising.dynamics import apply_dynamics, transition_matrix
from anyfill.ising.model import Ising
from anyfill.ising.spectra import (
    independent_parallel_law,
    independent_parallel_matrix,
    mixing_time,
    poincare_constant,
    slowest_mode,
    spectrum,
)
from anyfill.networks.exact import all_codes, state_numbers

METHODS = pytest.mark.parametrize("method", ["dense", "lanczos"])


@METHODS
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_independent_spins_relax_in_n_over_k(method, k):
    """A block of k among N redraws a given spin with probability k / N, and no function is slower than one spin."""
    law = Ising.clique(5, 1, 0.0, 0.7).log_joint()
    assert poincare_constant(law, k_blocks(5, k), method=method) == pytest.approx(5 / k, rel=1e-12)


@METHODS
@pytest.mark.parametrize("coupling", [0.1, 2.0, 15.0])
def test_two_spins_have_the_gap_one_over_one_plus_e_to_2j(method, coupling):
    """Down to a gap of 1e-13, of which 1 - lambda_2 would keep three digits."""
    mode = slowest_mode(Ising.complete(2, coupling).log_joint(), k_blocks(2, 1), method=method)
    assert mode.gap == pytest.approx(1 / (1 + math.exp(2 * coupling)), rel=1e-11)
    assert mode.converged


@METHODS
def test_two_nearly_stuck_pairs_are_told_apart(method):
    """Gaps 1.7e-14 and 1.9e-14: their lambda agree to almost all digits."""
    couplings = torch.zeros(4, 4, dtype=torch.float64)
    couplings[0, 1] = couplings[1, 0] = 15.5
    couplings[2, 3] = couplings[3, 2] = 15.45
    law = Ising.from_matrix(couplings, torch.zeros(4)).log_joint()
    constant = poincare_constant(law, k_blocks(4, 1), method=method)
    assert constant == pytest.approx(2 * (1 + math.exp(31.0)), rel=1e-10)


@pytest.mark.parametrize("variables", [3, 6, 8])
def test_lanczos_agrees_with_all_eigenvalues_of_the_matrix(variables, generator):
    for number in range(4):
        law = Ising.random(variables, generator=generator).log_joint().detach()
        blocks = k_blocks(variables, 1 + number % 3)
        if number == 3:
            table = torch.rand(2**variables, len(blocks.subsets), generator=generator)
            blocks = AdaptiveBlocks(blocks.subsets, lambda x, table=table: table[state_numbers(x)])
        values = spectrum(transition_matrix(law, blocks), law.exp())
        assert values[0] == pytest.approx(1.0)
        assert values[-1] > -1e-12
        for method in ("dense", "lanczos"):
            mode = slowest_mode(law, blocks, method=method)
            assert 1.0 - mode.gap == pytest.approx(float(values[1]), abs=1e-12)
            # and the function is the eigenfunction, of mean 0 and variance 1
            image = apply_dynamics(mode.function, law, blocks)
            torch.testing.assert_close(image, (1 - mode.gap) * mode.function, rtol=0, atol=1e-4)
            assert float(law.exp() @ mode.function) == pytest.approx(0.0, abs=1e-12)
            assert float(law.exp() @ mode.function.square()) == pytest.approx(1.0)


def test_a_restarted_search_finds_the_same_and_its_error_estimate_holds(generator, monkeypatch):
    """On a torus in its slow range, stopped early, run until it converges, and with room for ten vectors only."""
    law = Ising.lattice(3, 3, 0.5, periodic=True).log_joint().detach()
    exact = slowest_mode(law, k_blocks(9, 1), method="dense")
    for steps in (5, 15, 20, 40):
        short = slowest_mode(law, k_blocks(9, 1), method="lanczos", max_steps=steps)
        assert short.steps <= steps
        assert short.constant <= exact.constant * (1 + 1e-10)  # a value attained: never too large
        if steps > 5:  # the slowest function is seen: the estimate is of its eigenvalue
            assert abs(short.gap - exact.gap) <= short.error + 1e-13
        assert short.converged == (steps == 40)
    with pytest.raises(ValueError, match=r"expected an error below 1e-10 of the gap, got .* after 5 steps"):
        poincare_constant(law, k_blocks(9, 1), method="lanczos", max_steps=5)
    monkeypatch.setattr("anyfill.ising.spectra.ROOM", 10)
    other = slowest_mode(law, k_blocks(9, 1), method="lanczos", generator=generator)
    assert other.converged
    assert other.steps > 15
    assert other.gap == pytest.approx(exact.gap, rel=1e-9)


def test_larger_blocks_relax_sooner_by_at_least_their_size(generator):
    """C_k <= C_1 / k, as the paper quotes Lee (2023)."""
    for _ in range(10):
        law = Ising.random(5, generator=generator, coupling_scale=0.8).log_joint().detach()
        constants = [poincare_constant(law, k_blocks(5, k)) for k in range(1, 6)]
        assert constants[-1] == pytest.approx(1.0)
        for k, constant in enumerate(constants, 1):
            assert constant <= constants[0] / k * (1 + 1e-10)


@METHODS
def test_a_chain_that_falls_apart_has_an_infinite_constant(method):
    """Two spins that always agree: single flips never leave a state, both together forget at once."""
    law = torch.tensor([0.5, 0.0, 0.0, 0.5], dtype=torch.float64).log()
    assert slowest_mode(law, k_blocks(2, 1), method=method).constant == math.inf
    assert poincare_constant(law, k_blocks(2, 2), method=method) == pytest.approx(1.0)


def test_the_mixing_time_is_the_first_power_that_is_close(generator):
    law = Ising.random(4, generator=generator).log_joint().detach()
    blocks = FixedBlocks(subsets_of(4, [[0], [1, 2], [3], [2, 3]]), torch.tensor([1.0, 2.0, 3.0, 4.0]))
    matrix, mass = transition_matrix(law, blocks), law.exp()
    relaxation = poincare_constant(law, blocks)
    for epsilon in (0.9, 0.25, 0.01):
        power, steps = torch.eye(16, dtype=torch.float64), 0
        while 0.5 * (power - mass).abs().sum(1).max() > epsilon:
            power, steps = power @ matrix, steps + 1
        assert mixing_time(matrix, mass, epsilon=epsilon) == steps
        if epsilon < 0.5:  # the textbook bounds for reversible chains
            assert steps >= (relaxation - 1) * math.log(1 / (2 * epsilon))
            assert steps <= math.ceil(relaxation * math.log(1 / (epsilon * float(mass.min()))))


def test_bad_input_is_refused_in_a_sentence(generator):
    stuck = torch.eye(4, dtype=torch.float64)
    even = torch.full((4,), 0.25, dtype=torch.float64)
    with pytest.raises(ValueError, match="nearly stuck"):
        mixing_time(stuck, even)
    with pytest.raises(ValueError, match="epsilon"):
        mixing_time(stuck, even, epsilon=0.0)
    with pytest.raises(ValueError, match="reversible"):
        spectrum(stuck.roll(1, 0), even)
    with pytest.raises(ValueError, match='"auto", "dense" or "lanczos"'):
        poincare_constant(even.log(), k_blocks(2, 1), method="power")
    with pytest.raises(ValueError, match="at least two states"):
        poincare_constant(torch.tensor([0.0, -math.inf]), k_blocks(1, 1))


@pytest.mark.parametrize("pairs", ["once", "twice"])
@pytest.mark.parametrize("variables", [1, 3, 6])
def test_the_stationary_law_is_the_product_of_cosh_and_the_chain_is_reversible(pairs, variables, generator):
    for scale in (0.3, 2.0):
        ising = Ising.random(variables, generator=generator, coupling_scale=scale, pairs=pairs)
        matrix, law = independent_parallel_matrix(ising), independent_parallel_law(ising).exp()
        torch.testing.assert_close(matrix.sum(1), torch.ones(2**variables, dtype=torch.float64))
        torch.testing.assert_close(law @ matrix, law, rtol=0, atol=1e-14)
        flow = law.unsqueeze(1) * matrix
        torch.testing.assert_close(flow, flow.T, rtol=1e-10, atol=1e-16)
        assert bool((matrix > 0).all())


def test_each_spin_is_redrawn_from_its_exact_conditional_of_the_old_state(generator):
    ising = Ising.random(4, generator=generator, pairs="twice")
    codes = all_codes(4)
    expected = torch.ones(16, 16, dtype=torch.float64)
    for i in range(4):
        known = torch.ones(16, 4, dtype=torch.bool)
        known[:, i] = False
        answer = ising(codes, known)[:, i].detach().exp()  # (16, 2): p(x_i | the rest of the old state)
        expected *= answer[:, codes[:, i]]
    torch.testing.assert_close(independent_parallel_matrix(ising), expected)


def test_its_law_is_the_models_only_without_couplings(generator):
    ising = Ising.random(4, generator=generator)
    assert (independent_parallel_law(ising).exp() - ising.log_joint().exp()).abs().max() > 1e-2
    alone = Ising.clique(4, 1, 0.0, [0.3, -0.2, 1.0, 0.0])
    torch.testing.assert_close(
        independent_parallel_law(alone), ising.log_joint().detach() * 0 + alone.log_joint().detach()
    )


def test_strong_couplings_give_eigenvalues_near_minus_one_and_keep_their_digits():
    """Two spins at J: the odd pair (0, 1), (1, 0) swap for ever; block dynamics have no negative eigenvalue."""
    ising = Ising.complete(2, 3.0)
    values = spectrum(independent_parallel_matrix(ising), independent_parallel_law(ising).exp())
    assert values[-1] < -0.9
    strong = Ising.complete(4, 50.0, 5.0)
    assert bool(independent_parallel_law(strong).isfinite().all())
    assert bool(independent_parallel_matrix(strong).isfinite().all())


def test_too_many_variables_are_refused_with_what_it_would_need():
    with pytest.raises(ValueError, match="at most 14, got 16"):
        independent_parallel_matrix(Ising.complete(16, 0.1))
    with pytest.raises(ValueError, match="at most 20"):
        independent_parallel_law(Ising.complete(21, 0.1))
