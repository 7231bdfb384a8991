"""Approximate tensorisation: ratios by hand, product laws, Poincare below, proved bounds above, monotone in k."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from anyfill.ising.blocks import AdaptiveBlocks, Blocks, FixedBlocks, k_blocks, subsets_of
from anyfill.ising.model import Ising
from anyfill.ising.spectra import poincare_constant
from anyfill.ising.tensorization import (
    Tensorization,
    conditional_divergence,
    tensorization_bound,
    tensorization_constant,
    tensorization_ratio,
)
from anyfill.networks.exact import all_codes


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def law_of(ising: Ising) -> Tensor:
    return ising.log_joint().detach()


def random_law(states: int, seed: int, scale: float = 1.0) -> Tensor:
    return (scale * torch.randn(states, generator=seeded(seed), dtype=torch.float64)).log_softmax(0)


def looking(variables: int) -> AdaptiveBlocks:
    """Pairs are redrawn more often where the first variable is 1."""
    members = [(i,) for i in range(variables)] + [(i, (i + 1) % variables) for i in range(variables)]

    def rule(x: Tensor) -> Tensor:
        first = x[:, :1].double()
        return torch.cat([(2.0 - first).expand(-1, variables), (1.0 + 2.0 * first).expand(-1, variables)], 1)

    return AdaptiveBlocks(subsets_of(variables, members), rule)


def by_hand(log_r: Tensor, log_q: Tensor, blocks: Blocks) -> float:
    """Definition 9 as printed, by loops over states, blocks and completions."""
    codes = all_codes(blocks.subsets.shape[1])
    weights = blocks.probabilities(codes)
    total = 0.0
    for row in range(len(codes)):
        for block, subset in enumerate(blocks.subsets):
            weight = float(log_r[row].exp() * weights[row, block])
            if weight == 0.0:
                continue
            same = (codes[:, ~subset] == codes[row, ~subset]).all(1)
            r = log_r[same].exp() * weights[same, block]
            q = log_q[same].exp() * weights[same, block]
            r, q = r / r.sum(), q / q.sum()
            total += weight * sum(float(a * (a / b).log()) for a, b in zip(r, q) if a > 0)
    return total


def search(log_q: Tensor, blocks: Blocks, starts: int = 2) -> Tensorization:
    return tensorization_constant(log_q, blocks, starts=starts, generator=seeded())


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("adaptive", [False, True])
def test_the_conditional_divergence_is_definition_9_by_loops(zeros: bool, adaptive: bool) -> None:
    log_q = law_of(Ising.random(3, generator=seeded(1)))
    log_r = random_law(8, 2)
    if zeros:
        log_r[[0, 3, 4, 5]] = -math.inf
        log_r = log_r.log_softmax(0)
    blocks = looking(3) if adaptive else FixedBlocks(subsets_of(3, [(0, 1), (1, 2), (2,)]), torch.tensor([1.0, 2, 3]))
    assert conditional_divergence(log_r, log_q, blocks).item() == pytest.approx(
        by_hand(log_r, log_q, blocks), rel=1e-12
    )


def test_a_point_mass_has_the_ratio_of_its_surprises() -> None:
    ising = Ising.random(4, generator=seeded(3))
    log_q, blocks = law_of(ising), k_blocks(4, 2)
    mass = torch.full((16,), -math.inf, dtype=torch.float64)
    mass[5] = 0.0
    asked = blocks.subsets
    inside = -ising.block_log_prob(all_codes(4)[5].expand(len(asked), -1), asked).mean().item()
    assert tensorization_ratio(mass, log_q, blocks) == pytest.approx(-log_q[5].item() / inside, rel=1e-12)


def test_a_law_has_no_ratio_to_itself() -> None:
    log_q = random_law(8, 4)
    with pytest.raises(ValueError, match="another law than q"):
        tensorization_ratio(log_q, log_q, k_blocks(3, 1))


def test_refuses_what_is_no_law_and_laws_with_zeros_below() -> None:
    log_q = random_law(8, 4)
    with pytest.raises(ValueError, match="sum to 1"):
        conditional_divergence(log_q + 0.1, log_q, k_blocks(3, 1))
    corner = torch.full((8,), -math.inf, dtype=torch.float64)
    corner[0] = 0.0
    with pytest.raises(ValueError, match="without zeros"):
        conditional_divergence(log_q, corner, k_blocks(3, 1))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_product_law_has_the_constant_n_over_k_attained_by_product_laws(k: int) -> None:
    log_q = law_of(Ising.clique(4, 1, 0.0, (0.3, -0.8, 0.0, 1.1)))
    log_r = law_of(Ising.clique(4, 1, 0.0, (-0.2, 0.5, 0.9, -2.0)))
    assert tensorization_ratio(log_r, log_q, k_blocks(4, k)) == pytest.approx(4 / k, rel=1e-12)
    assert tensorization_bound(log_q, k_blocks(4, k)) == pytest.approx(4 / k, rel=1e-9)
    for seed in range(20):
        assert tensorization_ratio(random_law(16, seed, 2.0), log_q, k_blocks(4, k)) <= 4 / k * (1 + 1e-12)


def test_a_product_law_under_uneven_blocks_has_the_rarest_variable_as_its_constant() -> None:
    blocks = FixedBlocks(subsets_of(3, [(0, 1), (1, 2), (0,)]), torch.tensor([0.5, 0.2, 0.3]))
    log_q = law_of(Ising.clique(3, 1, 0.0, (0.3, -0.8, 0.4)))
    found = search(log_q, blocks)
    assert found.constant == pytest.approx(1 / 0.2, rel=1e-7)
    assert found.bound == pytest.approx(1 / 0.2, rel=1e-9)


def test_the_search_on_a_product_law_finds_n_and_no_more() -> None:
    found = search(law_of(Ising.clique(3, 1, 0.0, 0.4)), k_blocks(3, 1))
    assert found.constant == pytest.approx(3.0, rel=1e-8)
    assert all(ascent.found <= 3.0 * (1 + 1e-6) for ascent in found.ascents)


def test_the_block_of_everything_has_constant_one() -> None:
    found = search(law_of(Ising.random(3, generator=seeded(5))), k_blocks(3, 3))
    assert found.constant == pytest.approx(1.0, abs=1e-9)
    assert found.bound == 1.0
    assert all(ascent.start == pytest.approx(1.0, abs=1e-7) for ascent in found.ascents)


@pytest.mark.parametrize(("coupling", "fields"), [(0.4, (0.5, -0.2)), (0.9, (0.8, 0.6)), (-0.5, (0.0, 1.0))])
def test_the_search_on_two_spins_is_a_grid_over_all_laws(coupling: float, fields: tuple[float, float]) -> None:
    log_q = law_of(Ising.clique(2, 2, coupling, fields))
    found = search(log_q, k_blocks(2, 1), 4)
    # All laws of four states with probabilities that are multiples of 1/60, zeros included, at once.
    parts = torch.cartesian_prod(*[torch.arange(61.0, dtype=torch.float64)] * 3)
    parts = parts[parts.sum(1) <= 60]
    r = torch.cat([parts, 60 - parts.sum(1, keepdim=True)], 1) / 60
    kl = torch.special.xlogy(r, r).sum(1) - r @ log_q
    inside = torch.zeros_like(kl)
    for pair in ((0, 2), (1, 3), (0, 1), (2, 3)):  # states that differ in the first, then in the second variable
        own, other = r[:, pair], log_q[list(pair)].log_softmax(0)
        total = own.sum(1)
        inside += 0.5 * (torch.special.xlogy(own, own).sum(1) - torch.special.xlogy(total, total) - own @ other)
    far = kl > 1e-3
    best = float((kl[far] / inside[far]).max())
    assert found.constant >= best * (1 - 1e-9)
    assert found.constant <= max(best * 1.01, found.poincare * (1 + 1e-8))


def test_small_tilts_along_the_slowest_mode_have_the_poincare_ratio() -> None:
    log_q, blocks = law_of(Ising.random(4, generator=seeded(6))), k_blocks(4, 2)
    found = search(log_q, blocks, 0)
    small = next(ascent for ascent in found.ascents if "+0.01" in ascent.name)
    assert found.poincare == pytest.approx(poincare_constant(log_q, blocks), rel=1e-9)
    assert small.start == pytest.approx(found.poincare, rel=0.02)


@pytest.mark.parametrize("adaptive", [False, True])
def test_the_constant_lies_between_poincare_and_the_proved_bound(adaptive: bool) -> None:
    above = 0
    for seed in range(3):
        log_q = law_of(Ising.random(3, generator=seeded(seed), coupling_scale=0.6, field_scale=0.6))
        found = search(log_q, looking(3) if adaptive else k_blocks(3, 1), 1)
        assert found.poincare <= found.constant <= found.bound
        above += found.constant > 1.001 * found.poincare
        if found.log_r is not None:
            blocks = looking(3) if adaptive else k_blocks(3, 1)
            assert tensorization_ratio(found.log_r, log_q, blocks) == pytest.approx(found.constant, rel=1e-9)
    assert above  # it is a number of its own, not the Poincare constant by another name


def test_the_law_that_is_found_is_a_peak() -> None:
    log_q, blocks = law_of(Ising.clique(3, 3, 0.8, (0.3, 0.3, 0.2))), k_blocks(3, 1)
    found = search(log_q, blocks, 0)
    assert found.log_r is not None
    assert found.constant > 1.05 * found.poincare
    free = found.log_r.clone().requires_grad_()
    log_r = free.log_softmax(0)
    ((log_r.exp() * (log_r - log_q)).sum().log() - conditional_divergence(log_r, log_q, blocks).log()).backward()
    assert free.grad is not None
    assert free.grad.abs().max() < 1e-5


def test_no_law_at_all_exceeds_the_proved_bound() -> None:
    for seed in range(10):
        log_q = law_of(Ising.random(4, generator=seeded(seed), coupling_scale=0.3))
        for k in (1, 2, 3):
            bound = tensorization_bound(log_q, k_blocks(4, k))
            for other in range(5):
                log_r = random_law(16, 100 + other, 3.0)
                assert tensorization_ratio(log_r, log_q, k_blocks(4, k)) <= bound


def test_every_ratio_falls_as_blocks_grow() -> None:
    for seed in range(10):
        log_q, log_r = random_law(32, seed), random_law(32, 50 + seed, 2.0)
        ratios = [tensorization_ratio(log_r, log_q, k_blocks(5, k)) for k in range(1, 6)]
        assert all(after <= before * (1 + 1e-12) for before, after in pairwise(ratios))


def test_one_step_of_the_dynamics_shrinks_divergence_by_one_over_the_ratio_at_least() -> None:
    from anyfill.ising.dynamics import transition_matrix

    for seed in range(5):
        log_q, log_r, blocks = random_law(16, seed), random_law(16, 50 + seed, 2.0), k_blocks(4, 2)
        after = log_r.exp() @ transition_matrix(log_q, blocks)
        kept = (after * (after.log() - log_q)).sum() / (log_r.exp() * (log_r - log_q)).sum()
        assert kept.item() <= 1 - 1 / tensorization_ratio(log_r, log_q, blocks) + 1e-12


def test_the_printed_rate_of_decay_is_false_and_half_of_it_is_true() -> None:
    q, r = torch.tensor([0.01, 0.99], dtype=torch.float64), torch.tensor([0.5, 0.5], dtype=torch.float64)

    def divergence(t: float) -> float:  # one variable redrawn at rate 1, so that C_AT = 1
        now = math.exp(-t) * r + (1 - math.exp(-t)) * q
        return float((now * (now / q).log()).sum())

    for t in (0.05, 0.2, 1.0):
        assert math.exp(-2 * t) * divergence(0.0) < divergence(t) <= math.exp(-t) * divergence(0.0)


def test_near_the_law_itself_the_ratio_keeps_its_digits() -> None:
    log_q, blocks = law_of(Ising.random(4, generator=seeded(8))), k_blocks(4, 1)
    tilt = torch.randn(16, generator=seeded(9), dtype=torch.float64)
    ratios = [tensorization_ratio((log_q + size * tilt).log_softmax(0), log_q, blocks) for size in (1e-4, 1e-6)]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-3)


def test_the_same_generator_gives_the_same_search() -> None:
    log_q = law_of(Ising.random(3, generator=seeded(7)))
    first, second = (search(log_q, k_blocks(3, 1)) for _ in range(2))
    assert first.constant == second.constant
    assert first.ascents == second.ascents
