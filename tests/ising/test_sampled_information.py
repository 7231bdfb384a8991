"""The sampled information agrees with the exact one within its own standard error, and works where no list can."""

import pytest
import torch

from anyfill.ising.asymptotics import ising_information, sampled_information
from anyfill.ising.blocks import AdaptiveBlocks, FixedBlocks, k_blocks, subsets_of
from anyfill.ising.model import Ising
from anyfill.networks.exact import all_codes, state_numbers


def fixed():
    return FixedBlocks(subsets_of(4, [[0], [1, 2], [0, 2, 3]]), torch.tensor([1.0, 2.0, 1.0]))


def adaptive():
    table = torch.rand(16, 3, generator=torch.Generator().manual_seed(5)).square()
    return AdaptiveBlocks(fixed().subsets, lambda x: table[state_numbers(x)])


@pytest.mark.parametrize("blocks", [fixed(), adaptive()], ids=["fixed", "adaptive"])
def test_the_estimate_is_within_its_standard_error(blocks, generator):
    """The mean of z^2 over 15 estimates is about 1.15, 0.3 either way (entries are correlated): four of those."""
    ising = Ising.random(4, generator=generator)
    exact, squares = ising_information(ising, blocks), []
    for _ in range(15):
        x = ising.sample(320, generator=generator)
        estimate = sampled_information(ising, blocks, x, generator=generator, batches=16)
        varies = estimate.error > 1e-12  # s_0 and s_1 are never in one block: an exact zero
        assert (estimate.information - exact)[~varies].abs().sum() < 1e-12
        squares.append(((estimate.information - exact) / estimate.error)[varies].square().mean())
        assert torch.linalg.eigvalsh(estimate.information)[0] > 0
    assert 0.2 < torch.stack(squares).mean() < 2.5
    assert estimate.rows == 320


def test_every_state_once_with_its_exact_weight_is_the_exact_information():
    """A law uniform over states (no parameters) makes all rows equally likely: one block, no error at all."""
    ising = Ising.complete(4, 0.0)
    blocks = FixedBlocks(torch.ones(1, 4, dtype=torch.bool), torch.ones(1))
    one = sampled_information(ising, blocks, all_codes(4), generator=torch.Generator())
    torch.testing.assert_close(one.information, ising_information(ising, blocks))


def test_the_same_generator_gives_the_same_estimate_and_batches_do_not_change_it():
    ising = Ising.random(5, generator=torch.Generator().manual_seed(1))
    x = ising.sample(50, generator=torch.Generator().manual_seed(2))
    first, again, other = (
        sampled_information(ising, k_blocks(5, 2), x, generator=torch.Generator().manual_seed(3), batches=count)
        for count in (32, 32, 7)
    )
    assert torch.equal(first.information, again.information)
    torch.testing.assert_close(first.information, other.information)


def test_forty_spins_are_no_matter(generator):
    """Independent spins of known information, far beyond what can be listed: k / N over cosh(h)^2 on each field."""
    ising = Ising.clique(40, 1, 0.0, 0.6)
    probability = torch.sigmoid(torch.tensor(1.2, dtype=torch.float64))
    x = (torch.rand(3000, 40, generator=generator, dtype=torch.float64) < probability).long()
    estimate = sampled_information(ising, k_blocks(40, 2), x, generator=generator)
    exact = 2 / 40 / torch.cosh(torch.tensor(0.6, dtype=torch.float64)) ** 2
    z = (estimate.information.diagonal() - exact) / estimate.error.diagonal()
    assert 0.3 < z.square().mean() < 2.5  # 40 fields: about 1 within 0.25


def test_bad_input_is_refused_in_a_sentence(generator):
    ising = Ising.complete(4, 0.1)
    with pytest.raises(ValueError, match="at least 2"):
        sampled_information(ising, fixed(), all_codes(4)[:1], generator=generator)
    with pytest.raises(ValueError, match="shape of x"):
        sampled_information(ising, fixed(), all_codes(3), generator=generator)
