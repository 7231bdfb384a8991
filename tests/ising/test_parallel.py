"""The independent parallel chain: its matrix from exact conditionals, its law, and what it is not."""

import pytest
import torch

from anyfill.ising.model import Ising
from anyfill.ising.spectra import independent_parallel_law, independent_parallel_matrix, spectrum
from anyfill.networks.states import all_codes


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
