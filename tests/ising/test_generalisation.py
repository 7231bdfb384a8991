"""Theorem 4 evaluated: slopes, margin and losses by enumeration, the terms as printed, and that the bounds hold."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from anyfill.ising.blocks import AdaptiveBlocks, Blocks, FixedBlocks, k_blocks, subsets_of
from anyfill.ising.estimation import fit_ising
from anyfill.ising.generalisation import (
    GeneralisationBound,
    empirical_losses,
    generalisation_bound,
    lipschitz_constants,
    log_covering,
    log_margin,
)
from anyfill.ising.model import Ising
from anyfill.ising.tensorization import conditional_divergence, tensorization_bound
from anyfill.networks.exact import all_codes, state_numbers


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def looking(variables: int) -> AdaptiveBlocks:
    """The block of one variable each, the first more often where the last is 1."""

    def rule(x: Tensor) -> Tensor:
        return torch.cat([1.0 + x[:, -1:].double(), torch.ones(len(x), variables - 1, dtype=torch.float64)], 1)

    return AdaptiveBlocks(subsets_of(variables, [(i,) for i in range(variables)]), rule)


def conditional(ising: Ising, blocks: Blocks) -> Tensor:
    """log p_theta(x_K | x_-K, K) of every state and block (2^N, M), by eq. (1); -inf where the block is never drawn."""
    codes = all_codes(ising.variables)
    joint = ising.log_joint().unsqueeze(1) + blocks.probabilities(codes).log()
    answer: list[Tensor] = []
    for block, subset in enumerate(blocks.subsets):
        same = (codes[:, None, ~subset] == codes[None, :, ~subset]).all(2)
        rest = torch.where(same, joint[:, block], -math.inf).logsumexp(1)
        answer.append(joint[:, block] - rest)
    return torch.stack(answer, 1)


def in_box(ising: Ising, radius: float, generator: torch.Generator) -> Ising:
    def draw(like: Tensor) -> Tensor:
        return radius * (2 * torch.rand(like.shape, generator=generator, dtype=torch.float64) - 1)

    other = Ising(ising.variables, ising.edges, ising.pairs, ising.free_fields)
    return other.with_parameters(draw(ising.couplings), draw(ising.fields) if ising.free_fields else ising.fields)


def some_bound(**changes: float) -> GeneralisationBound:
    base = GeneralisationBound(
        variables=3,
        samples=100,
        masks=2,
        delta=0.1,
        epsilon=0.2,
        loss=0.7,
        entropy=0.6,
        tensorization=3.5,
        log_covering=4.0,
        log_margin=math.log(0.05),
    )
    return replace(base, **changes)


@pytest.mark.parametrize("pairs", ["once", "twice"])
@pytest.mark.parametrize("free_fields", [True, False])
@pytest.mark.parametrize("adaptive", [True, False])
def test_no_conditional_is_steeper_than_its_lipschitz_constants(pairs: str, free_fields: bool, adaptive: bool) -> None:
    start = Ising.random(3, generator=seeded(), pairs=pairs, free_fields=free_fields)  # type: ignore[arg-type]
    blocks: Blocks = looking(3) if adaptive else k_blocks(3, 2)
    slopes = lipschitz_constants(start, blocks)
    steepest = torch.zeros_like(slopes)
    for seed in range(6):
        model = in_box(start, 3.0, seeded(seed))
        values = conditional(model, blocks)
        parameters = [model.couplings, model.fields] if free_fields else [model.couplings]
        for row, block in product(range(8), range(len(slopes))):
            gradient = torch.cat(torch.autograd.grad(values[row, block], parameters, retain_graph=True))
            steepest[block] = torch.maximum(steepest[block], gradient.abs())
    assert bool((steepest <= slopes + 1e-12).all())
    assert bool((steepest[slopes == 0].abs() < 1e-12).all())
    assert bool((steepest[slopes > 0] > 0.9 * slopes[slopes > 0]).all())  # and it is no larger than need be


@pytest.mark.parametrize("k", [1, 2, 3])
def test_models_in_one_cell_of_the_covering_are_half_epsilon_apart_at_most(k: int) -> None:
    start, blocks, radius, epsilon = Ising.complete(3, 0.0), k_blocks(3, k), 1.0, 0.3
    slopes = lipschitz_constants(start, blocks)
    moved = int((slopes > 0).sum(1).max())
    cells = (4 * radius * slopes.amax(0) * moved / epsilon).ceil()
    assert log_covering(start, blocks, radius=radius, epsilon=epsilon) == pytest.approx(float(cells.log().sum()))
    sides = 2 * radius / cells
    for seed in range(20):
        one = in_box(start, radius, seeded(seed))
        corner = (one.theta.detach() + radius) // sides * sides - radius
        far = corner + sides * torch.randint(0, 2, sides.shape, generator=seeded(seed))
        near = corner + sides - (far - corner)
        values = [
            conditional(Ising(3, start.edges).with_parameters(theta[:3], theta[3:]), blocks) for theta in (near, far)
        ]
        assert float((values[0] - values[1]).detach().abs().max()) <= epsilon / 2 + 1e-12


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("free_fields", [True, False])
def test_the_margin_is_the_least_conditional_at_any_corner_of_the_box(k: int, free_fields: bool) -> None:
    start, blocks, radius = Ising.random(3, generator=seeded(1), free_fields=free_fields), k_blocks(3, k), 0.8
    least = math.inf
    for corner in product((-radius, radius), repeat=len(start.theta)):
        theta = torch.tensor(corner, dtype=torch.float64)
        fields = theta[3:] if free_fields else start.fields
        model = Ising(3, start.edges, free_fields=free_fields).with_parameters(theta[:3], fields)
        least = min(least, float(conditional(model, blocks).detach().min()))
    assert log_margin(start, blocks, radius=radius) == pytest.approx(least, rel=1e-12)


def test_the_margin_is_below_every_conditional_of_adaptive_blocks() -> None:
    start, blocks = Ising.random(3, generator=seeded(2)), looking(3)
    margin = log_margin(start, blocks, radius=1.0)
    assert all(float(conditional(in_box(start, 1.0, seeded(i)), blocks).detach().min()) >= margin for i in range(20))


@pytest.mark.parametrize("adaptive", [True, False])
def test_loss_less_entropy_is_the_conditional_divergence_of_the_rows(adaptive: bool) -> None:
    ising = Ising.random(3, generator=seeded(3))
    blocks: Blocks = looking(3) if adaptive else FixedBlocks(subsets_of(3, [(0, 1), (2,)]), torch.tensor([1.0, 3.0]))
    x = ising.sample(40, generator=seeded(4))
    law = torch.bincount(state_numbers(x), minlength=8).double() / 40
    loss, entropy = empirical_losses(ising, blocks, x)
    weights = blocks.probabilities(all_codes(3))
    direct = -(law.unsqueeze(1) * weights * conditional(ising, blocks).nan_to_num(neginf=0.0)).sum()
    apart = conditional_divergence(law.log(), ising.log_joint().detach(), blocks)
    assert loss == pytest.approx(direct.item(), rel=1e-10)
    assert loss - entropy == pytest.approx(apart.item(), rel=1e-9)
    assert entropy > 0


def test_the_terms_are_those_printed() -> None:
    bound, log_beta, covering = some_bound(), math.log(1 / 0.05), math.exp(4.0)
    b = math.sqrt(2**9 * 2**3 * covering / (2 * 0.1)) + math.sqrt(math.log(8 * covering / 0.1) / 200)
    c = math.sqrt(2**9 / (8 * 0.1 * 100))
    assert bound.total() == pytest.approx(math.sqrt(3.5 / 2 * (0.7 + b * log_beta + 0.2)) + c, rel=1e-12)
    assert bound.total("excess") == pytest.approx(math.sqrt(3.5 / 2 * (0.1 + b * log_beta + 0.2)) + c, rel=1e-12)
    sharp = math.sqrt(math.log(2 * covering / 0.1) / (2 * 100 * 2)) * log_beta
    rows = math.sqrt(2**3 / 400) + math.sqrt(math.log(20) / 200)
    assert bound.total("hoeffding") == pytest.approx(math.sqrt(3.5 / 2 * (0.1 + sharp + 0.2)) + rows, rel=1e-12)
    assert bound.total("hoeffding") < bound.total("excess") < bound.total()
    assert next(iter(bound.terms())) == "masks"


def test_the_printed_bound_has_a_floor_and_the_excess_has_almost_none() -> None:
    bound = some_bound()
    assert bound.floor() == pytest.approx(math.sqrt(3.5 / 2 * (0.7 + 0.2)))
    assert bound.floor("excess") == bound.floor("hoeffding") == pytest.approx(math.sqrt(3.5 / 2 * (0.1 + 0.2)))
    assert bound.needed() == (math.inf, math.inf)  # its floor is above 1: no number of rows or masks will do


@pytest.mark.parametrize("kind", ["excess", "hoeffding"])
def test_what_is_needed_is_enough_and_no_more(kind: str) -> None:
    bound = some_bound()
    rows, masks = bound.needed(0.9, kind)  # type: ignore[arg-type]
    assert replace(bound, samples=rows, masks=masks).total(kind) == pytest.approx(0.9, rel=1e-4)  # type: ignore[arg-type]
    assert replace(bound, samples=rows, masks=masks / 2).total(kind) > 0.9  # type: ignore[arg-type]


def test_hoeffding_needs_far_fewer_masks() -> None:
    assert some_bound().needed(0.9, "excess")[1] > 1e4 * some_bound().needed(0.9, "hoeffding")[1]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_both_bounds_hold_for_fitted_models(k: int) -> None:
    truth, blocks = Ising.complete(3, 0.2, 0.1), k_blocks(3, k)
    far = 0
    for seed in range(5):
        x = truth.sample(500, generator=seeded(seed))
        fitted = fit_ising(Ising.complete(3, 0.0), x, k=k, generator=seeded(seed)).ising
        constant = tensorization_bound(fitted.log_joint().detach(), blocks)
        bound = generalisation_bound(fitted, blocks, x, tensorization=constant, radius=2.0, masks=1)
        apart = 0.5 * float((fitted.log_joint().exp() - truth.log_joint().exp()).abs().sum().detach())
        kinds = [bound.total(kind) for kind in ("printed", "excess", "hoeffding")]
        assert apart < kinds[2] < kinds[1] < kinds[0]
        # Step 1 alone, which needs no chance: KL(rows, model) <= C_AT (L~ - H) <= C_AT L~.
        law = torch.bincount(state_numbers(x), minlength=8).double() / len(x)
        whole = float((law * (law.log() - fitted.log_joint().detach())).nan_to_num().sum())
        assert whole <= constant * (bound.loss - bound.entropy) + 1e-12
        far += constant * bound.loss > 20 * whole
    assert far  # and the print, with the loss itself, is far from it


def test_with_enough_rows_and_masks_only_the_bound_on_the_excess_says_something() -> None:
    truth, blocks = Ising.complete(3, 0.1), k_blocks(3, 1)
    x = truth.sample(200_000, generator=seeded(1))
    constant = tensorization_bound(truth.log_joint().detach(), blocks)
    bound = generalisation_bound(
        truth, blocks, x, tensorization=constant, radius=0.5, masks=10**6, epsilon=0.005, delta=0.05
    )
    assert bound.total("hoeffding") < 0.2
    assert bound.floor("printed") > 1.0
    assert bound.floor("excess") < 0.15


def test_refuses_a_model_outside_the_box_and_impossible_settings() -> None:
    ising = Ising.complete(3, 0.9)
    with pytest.raises(ValueError, match="at least the largest parameter"):
        generalisation_bound(ising, k_blocks(3, 1), all_codes(3), tensorization=3.0, radius=0.5)
    for changes in ({"delta": 1.0}, {"epsilon": 0.0}, {"log_margin": 0.0}, {"tensorization": -1.0}):
        with pytest.raises(ValueError, match="expected"):
            some_bound(**changes)
