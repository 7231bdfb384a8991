"""Chains on an Ising model against their transition matrices, written out here from the joint alone.

Chi-square tests have fixed seeds and pass at p > 0.001: the chance of a false alarm, were the seed drawn anew.
"""

from dataclasses import dataclass, field
from itertools import combinations

import pytest
import torch
from scipy.stats import chi2, chisquare
from torch import Generator

from anyfill.ising.blocks import AdaptiveBlocks, FixedBlocks, k_blocks, subsets_of
from anyfill.ising.chains import BlockDynamics, IndependentParallel, Kernel, KGibbs, first_hits, run_chain, still
from anyfill.ising.model import Ising
from anyfill.networks.exact import all_codes, state_numbers, to_spins

N = 4
CODES = all_codes(N)
SUBSETS = subsets_of(N, [(0, 1), (2,), (1, 2, 3), (0, 3)])


def rule(x):
    """Weights of the four blocks that lean strongly on the values."""
    s = x.double()
    return torch.stack([0.2 + 3 * s[:, 0] * s[:, 1], 0.3 + s[:, 2], 1.5 - s[:, 3], s[:, 0] + 0.1], 1)


ADAPTIVE = AdaptiveBlocks(SUBSETS, rule)
WEIGHTED = FixedBlocks(SUBSETS, torch.tensor([1.0, 2.0, 3.0, 0.5]))


@dataclass(frozen=True)
class Blind:
    """The adaptive blocks, drawn by the values, by someone who forgets it: the wrong rule."""

    subsets: torch.Tensor = field(default_factory=lambda: SUBSETS)
    adaptive: bool = False

    def probabilities(self, x):
        return ADAPTIVE.probabilities(x)

    def sample(self, x, *, generator):
        return ADAPTIVE.sample(x, generator=generator)


@pytest.fixture
def ising():
    return Ising.random(N, generator=Generator().manual_seed(3), coupling_scale=0.6)


def block_matrix(p, subsets, chances, knows):
    """(2^N, 2^N) from the joint: choose a block, redraw it by p(x) (times p_K(K | x) if the rule knows K)."""
    total = torch.zeros(len(p), len(p), dtype=torch.float64)
    for each, block in enumerate(subsets):
        rest = state_numbers(torch.where(block, 0, all_codes(len(block))))
        mass = p * chances[:, each] if knows else p
        target = torch.where(rest.unsqueeze(1) == rest, mass, 0.0)
        total += chances[:, each : each + 1] * target / target.sum(1, keepdim=True)
    return total


def matrices(ising):
    p = ising.log_joint().detach().exp()
    chance = torch.sigmoid(2 * (ising.fields + to_spins(CODES) @ ising.interaction)).detach().unsqueeze(1)
    k_sets = {k: subsets_of(N, combinations(range(N), k)) for k in (1, 2, 3, 4)}
    uniform = {k: torch.full((len(p), len(sets)), 1 / len(sets), dtype=torch.float64) for k, sets in k_sets.items()}
    return {
        **{f"k={k}": (KGibbs(k), block_matrix(p, k_sets[k], uniform[k], False)) for k in k_sets},
        "blocks of size 2": (BlockDynamics(k_blocks(N, 2)), block_matrix(p, k_sets[2], uniform[2], False)),
        "weighted": (BlockDynamics(WEIGHTED), block_matrix(p, SUBSETS, WEIGHTED.probabilities(CODES), False)),
        "adaptive": (BlockDynamics(ADAPTIVE), block_matrix(p, SUBSETS, ADAPTIVE.probabilities(CODES), True)),
        "blind": (BlockDynamics(Blind()), block_matrix(p, SUBSETS, ADAPTIVE.probabilities(CODES), False)),
        "parallel": (IndependentParallel(), torch.where(CODES == 1, chance, 1 - chance).prod(2)),
    }


def rows_p_value(drawn, matrix, chains):
    """Chi-square over all rows of a transition matrix; ``drawn`` are numbers, ``chains`` for each starting state."""
    start = torch.arange(len(matrix)).repeat_interleave(chains)
    seen = torch.bincount(start * len(matrix) + drawn, minlength=matrix.numel()).reshape(matrix.shape).double()
    possible = matrix > 1e-12
    if bool((seen[~possible] > 0).any()):
        return 0.0
    expected = (chains * matrix)[possible]
    statistic = ((seen[possible] - expected) ** 2 / expected).sum()
    return chi2.sf(statistic.item(), int(possible.sum()) - len(matrix))


@pytest.mark.parametrize("name", ["k=1", "k=2", "k=3", "k=4", "blocks of size 2", "weighted", "adaptive", "parallel"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_one_step_follows_the_transition_matrix(ising, name, dtype):
    kernel, matrix = matrices(ising)[name]
    chains = 4000
    x = CODES.repeat_interleave(chains, 0).to(dtype)
    moved = kernel.step(ising, x, generator=Generator().manual_seed(11))
    assert moved.dtype == dtype
    assert isinstance(kernel, Kernel)
    assert rows_p_value(state_numbers(moved), matrix, chains) > 0.001


def test_the_chi_square_above_can_fail(ising):
    laws = matrices(ising)
    moved = KGibbs(2).step(ising, CODES.repeat_interleave(4000, 0), generator=Generator().manual_seed(11))
    assert rows_p_value(state_numbers(moved), laws["k=1"][1], 4000) < 1e-9
    assert rows_p_value(state_numbers(moved), laws["k=3"][1], 4000) < 1e-9


def test_adaptive_dynamics_keep_p_and_forgetting_that_k_was_chosen_does_not(ising):
    p = ising.log_joint().detach().exp()
    laws = matrices(ising)
    for name in ("k=1", "k=2", "k=3", "k=4", "weighted", "adaptive"):
        torch.testing.assert_close(p @ laws[name][1], p, rtol=1e-12, atol=1e-15)
    assert (p @ laws["blind"][1] - p).abs().sum() > 0.1
    assert (p @ laws["parallel"][1] - p).abs().sum() > 0.01
    generator = Generator().manual_seed(5)
    x = ising.sample(20_000, generator=generator)
    values = {}
    for name in ("adaptive", "blind"):
        *_, last = run_chain(ising, laws[name][0], x, 5, generator=generator)
        seen = torch.bincount(state_numbers(last), minlength=2**N).numpy()
        values[name] = chisquare(seen, len(x) * p.numpy()).pvalue
    assert values["adaptive"] > 0.001
    assert values["blind"] < 1e-9


def test_the_parallel_chain_keeps_the_law_with_cosh(ising):
    spins = to_spins(CODES)
    field = ising.fields.detach() + spins @ ising.interaction.detach()
    law = (spins @ ising.fields.detach() + torch.log(torch.cosh(field)).sum(1)).softmax(0)
    torch.testing.assert_close(law @ matrices(ising)["parallel"][1], law, rtol=1e-12, atol=1e-15)


def test_long_chains_from_one_corner_reach_the_joint(ising):
    generator = Generator().manual_seed(2)
    x = torch.zeros(20_000, N, dtype=torch.uint8)
    *_, last = run_chain(ising, KGibbs(2), x, 40, generator=generator)
    seen = torch.bincount(state_numbers(last), minlength=2**N).numpy()
    assert chisquare(seen, len(x) * ising.log_joint().detach().exp().numpy()).pvalue > 0.001


def test_blocks_taken_in_portions_are_the_same_draw(ising, monkeypatch):
    x = CODES.repeat(50, 1)
    for kernel in (KGibbs(3), BlockDynamics(ADAPTIVE)):
        whole = kernel.step(ising, x, generator=Generator().manual_seed(9))
        monkeypatch.setattr("anyfill.ising.chains.MAX_AT_ONCE", 64)
        assert torch.equal(kernel.step(ising, x, generator=Generator().manual_seed(9)), whole)
        monkeypatch.undo()


def test_same_generator_same_chain_and_the_start_is_left_alone(ising):
    x = CODES.clone()
    for kernel in (KGibbs(2), BlockDynamics(WEIGHTED), BlockDynamics(ADAPTIVE), IndependentParallel()):
        runs = [torch.stack(list(run_chain(ising, kernel, x, 6, generator=Generator().manual_seed(4)))) for _ in "ab"]
        assert runs[0].shape == (6, 16, N)
        assert torch.equal(*runs)
        assert torch.equal(x, CODES)


def test_the_model_is_read_once(ising):
    run = run_chain(ising, KGibbs(4), CODES.repeat(500, 1), 2, generator=Generator().manual_seed(1))
    p = ising.log_joint().detach().exp()
    ising.with_parameters(torch.zeros_like(ising.couplings), torch.full((N,), 20.0))
    for x in run:
        assert chisquare(torch.bincount(state_numbers(x), minlength=16).numpy(), len(x) * p.numpy()).pvalue > 0.001


def all_up(x):
    return (x == 1).all(1)


@pytest.mark.parametrize("name", ["k=1", "k=2", "parallel", "adaptive"])
def test_hitting_times_have_the_exact_truncated_law(ising, name):
    """P(T <= t) is the mass in the target after t steps of the chain that stops there."""
    kernel, matrix = matrices(ising)[name]
    stopped = matrix.clone()
    stopped[-1] = torch.eye(16, dtype=torch.float64)[-1]
    chains, budget = 20_000, 6
    hits = first_hits(
        ising, kernel, torch.zeros(chains, N).long(), all_up, budget, generator=Generator().manual_seed(8)
    )
    upto = [torch.linalg.matrix_power(stopped, t)[0, -1].item() for t in range(budget + 1)]
    law = torch.tensor([*upto, 1.0]).diff(prepend=torch.zeros(1)).double()
    seen = torch.bincount(hits, minlength=budget + 2)
    assert seen[law < 1e-12].sum() == 0
    kept = law >= 1e-12
    assert chisquare(seen[kept].numpy(), (chains * law[kept] / law[kept].sum()).numpy()).pvalue > 0.001


def test_a_chain_that_has_arrived_is_not_advanced():
    lengths = []

    class Climb:
        def step(self, ising, x, *, generator):
            lengths.append(len(x))
            return torch.cat([torch.ones_like(x[:, :1]), x[:, :-1]], 1)

    x = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]])
    ising = Ising.complete(3, 0.1)
    assert first_hits(ising, Climb(), x, all_up, 9, generator=Generator()).tolist() == [0, 1, 2, 3]
    assert lengths == [3, 2, 1]
    assert first_hits(ising, Climb(), x, all_up, 1, generator=Generator()).tolist() == [0, 1, 2, 2]
    assert first_hits(ising, Climb(), x, all_up, 0, generator=Generator()).tolist() == [0, 1, 1, 1]
    assert first_hits(ising, Climb(), x[:0], all_up, 5, generator=Generator()).tolist() == []


def test_bad_input_is_refused_in_one_sentence(ising):
    x, generator = CODES, Generator()
    with pytest.raises(ValueError, match=r"k of k-Gibbs on 4 variables: expected a whole number from 1 to 4, got 5"):
        next(run_chain(ising, KGibbs(5), x, 1, generator=generator))
    with pytest.raises(ValueError, match="at most 20"):
        KGibbs(21)
    with pytest.raises(ValueError, match=r"x: expected codes 0 and 1"):
        run_chain(ising, KGibbs(1), 2 * x - 1, 1, generator=generator)
    with pytest.raises(ValueError, match=r"x: expected codes 0 and 1"):
        first_hits(ising, KGibbs(1), x.double(), all_up, 1, generator=generator)
    with pytest.raises(ValueError, match="shape of x"):
        run_chain(ising, KGibbs(1), x[:, :3], 1, generator=generator)
    with pytest.raises(ValueError, match="shape of subsets"):
        BlockDynamics(k_blocks(5, 2)).step(ising, x, generator=generator)
    with torch.no_grad():
        ising.couplings[0] = float("nan")
    with pytest.raises(ValueError, match="couplings: expected finite numbers, got nan"):
        still(ising)
