"""Propositions 2 and 3 and remark 8, on chains of four spins whose transitions are known exactly."""

import pytest
import torch
from torch import Generator

from anyfill.ising.model import Ising
from experiments.gmlm import parallel_chains as experiment


@pytest.fixture(scope="module")
def truth() -> Ising:
    return Ising.random(experiment.N, generator=Generator().manual_seed(1), coupling_scale=0.6, field_scale=0.3)


def test_products_have_no_floor_and_joint_blocks_and_random_positions_have_one(truth: Ising) -> None:
    floors = {
        name: experiment.floor_of(matrix)
        for name, matrix in experiment.chains_of(truth, generator=Generator().manual_seed(0)).items()
    }
    for name in ("deterministic", "independent", "1-Gibbs, scan 0", "denoise all"):
        assert abs(floors[name]) < 1e-12, name
    for name in ("1-Gibbs", "2-Gibbs", "N-Gibbs"):
        assert floors[name] > 0.01, name


def test_the_floor_of_redrawing_everything_is_the_total_correlation_of_the_law(truth: Ising) -> None:
    law = truth.log_joint().detach().exp().reshape((2,) * experiment.N)
    alone = [law.sum([j for j in range(experiment.N) if j != i]) for i in range(experiment.N)]
    entropy = -float((law * law.log()).sum())
    correlation = sum(-float((p * p.log()).sum()) for p in alone) - entropy
    chain = experiment.chains_of(truth, generator=Generator().manual_seed(0))["N-Gibbs"]
    assert experiment.floor_of(chain) == pytest.approx(correlation, rel=1e-9)


def test_denoising_looks_at_the_position_itself_and_independent_parallel_does_not(truth: Ising) -> None:
    """Remark 8: with x_i flipped, independent parallel's law of y_i stays, the denoiser's moves."""
    chains = experiment.chains_of(truth, generator=Generator().manual_seed(0))
    for name, looks in (("independent", False), ("denoise all", True)):
        own = experiment.marginals_of(chains[name])[:, 0]  # position 0 is the greatest bit of a state's number
        half = len(own) // 2
        assert torch.allclose(own[:half], own[half:], atol=1e-9) is not looks


def test_denoising_without_noise_stays_and_with_nothing_but_noise_forgets(truth: Ising) -> None:
    law = truth.log_joint().detach().exp()
    states = 2**experiment.N
    assert torch.allclose(experiment.denoise_all(law, 1e-12), torch.eye(states, dtype=torch.float64), atol=1e-9)
    forgets = experiment.denoise_all(law, 1.0)
    assert torch.allclose(forgets, forgets[:1].expand_as(forgets))


def test_a_transformer_learns_a_product_chain_and_argmax_decoding_follows_a_map() -> None:
    truth = Ising.random(experiment.N, generator=Generator().manual_seed(2), coupling_scale=0.6, field_scale=0.3)
    law = truth.log_joint().detach().exp()
    chains = experiment.chains_of(truth, generator=Generator().manual_seed(0))
    followed = experiment.judge("deterministic", chains["deterministic"], law, 300, 0)
    assert followed["states_right_after_1_to_64_steps"] == 1.0
    assert experiment.judge("independent", chains["independent"], law, 300, 0)["excess"] < 0.01
