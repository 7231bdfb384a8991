"""Mixing as the lab shows it, exact and from chains."""

import math

import pytest
import torch

from anyfill.ising.blocks import k_blocks
from anyfill.ising.dynamics import transition_matrix
from anyfill.ising.mixing_times import mixing
from anyfill.ising.model import Ising
from anyfill.ising.spectra import independent_parallel_matrix
from anyfill.networks.exact import all_codes, to_spins

MODEL = Ising.complete(4, 0.3, 0.2)


def test_times_and_laws_are_those_of_the_matrices() -> None:
    told = mixing(MODEL, k=[1, 4]).document["results"]
    p = MODEL.log_joint().detach().exp()
    chains = [transition_matrix(p.log(), k_blocks(4, k)) for k in (1, 4)]
    chains.append(independent_parallel_matrix(MODEL))
    for row, matrix in zip(told, chains):
        law = torch.linalg.matrix_power(matrix, 10_000)[0]
        values = torch.linalg.eigvals(matrix).abs().sort(descending=True).values
        assert row["relaxation"] == pytest.approx(float(1 / (1 - values[1])), rel=1e-8)
        assert row["distance"] == pytest.approx(0.5 * float((law - p).abs().sum()), abs=1e-9)
        after = [0.5 * float((torch.linalg.matrix_power(matrix, t) - law).abs().sum(1).max()) for t in range(60)]
        assert row["mixing_time"] == next(t for t, far in enumerate(after) if far <= 0.25)
    assert told[-1]["distance"] > 0.05


def test_a_gap_that_is_rounding_is_not_printed_with_digits() -> None:
    """Between all up and all down lie states of exp(-8 J) times their weight: the gap of 1-Gibbs is near exp(-160)."""
    found = mixing(Ising.complete(4, 20.0), k=[1, 4])
    first, last, _ = found.document["results"]
    assert found.listings[0].rows[0][1:3] == ("< 1e-28", "> 1e28")
    assert (first["gap"], first["gap_below"]) == (None, 1e-28)
    assert (last["gap"], last["gap_below"]) == (pytest.approx(1.0), None)


def test_dashes_beyond_nine_spins_are_explained() -> None:
    small, large = (mixing(Ising.complete(n, 0.1), k=[n]) for n in (9, 10))
    assert large.listings[0].rows[0][3] == "-"
    assert not any("up to 9 spins" in note for note in small.notes)
    assert any("computed up to 9 spins; --sampled measures beyond" in note for note in large.notes)


def test_tensorisation_constants_lie_above_the_poincare_constants_and_below_their_bounds() -> None:
    small = Ising.complete(3, 0.4, 0.1)
    for row in mixing(small, k=[1, 3], tensorization=True).document["results"][:-1]:
        assert row["relaxation"] <= row["tensorization"] * (1 + 1e-9)
        assert row["tensorization"] <= row["tensorization_bound"] * (1 + 1e-9)


def test_autocorrelation_times_of_chains_agree_with_the_exact_ones() -> None:
    """tau of the mean spin is 1 + 2 sum_t <f, P^t f> / <f, f>; 15 percent is beyond five deviations here."""
    found = mixing(MODEL, k=[1, 2], sampled=True, chains=200, steps=1200, sweeps=1)
    p = MODEL.log_joint().detach().exp()
    f = to_spins(all_codes(4)).mean(1)
    f = f - p @ f
    for row, k in zip(found.document["results"], (1, 2)):
        matrix = transition_matrix(p.log(), k_blocks(4, k))
        decay = torch.linalg.solve(torch.eye(16, dtype=torch.float64) - matrix + p, f)
        exact = float((2 * (p * f) @ decay) / (p @ f**2)) - 1
        assert row["magnetisation"] == pytest.approx(exact, rel=0.15)
        assert row["believed"]


def test_a_chain_that_never_moves_is_said_to_be_stuck() -> None:
    frozen = Ising.complete(25, 10.0)
    told = mixing(frozen, k=[1], sampled=True, chains=4, steps=40, sweeps=2)
    assert not told.document["results"][0]["believed"]
    assert any("two modes" in note for note in told.notes)
    assert math.isfinite(told.document["results"][0]["mean"])
