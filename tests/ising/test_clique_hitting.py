"""Hitting times as the lab shows them, and what the propositions promise."""

import math

import pytest
import torch

from anyfill.ising.blocks import k_blocks
from anyfill.ising.clique_hitting import hitting
from anyfill.ising.cliques import Clique, LumpedChain, clique_kgibbs_matrix
from anyfill.ising.dynamics import transition_matrix
from anyfill.networks.exact import all_codes

SMALL = Clique.alike(5, 3, 0.4, 0.3)


def test_expected_times_are_those_of_the_chain_on_all_states() -> None:
    told = hitting(SMALL, k=[1, 2, 5], budget=50, chains=0).document["results"]
    outside = ~all_codes(5)[:, :3].bool().all(1)
    for row, k in zip(told, (1, 2, 5)):
        matrix = transition_matrix(SMALL.ising().log_joint(), k_blocks(5, k))[outside][:, outside]
        one = torch.ones(int(outside.sum()), dtype=torch.float64)
        times = torch.linalg.solve(torch.eye(len(one), dtype=torch.float64) - matrix, one)
        assert row["log10_mean"] == pytest.approx(math.log10(float(times[0])), rel=1e-10)
        alive = [float((torch.linalg.matrix_power(matrix, t) @ one)[0]) for t in range(51)]
        assert row["truncated_mean"] == pytest.approx(sum(alive[:50]), rel=1e-10)
        assert row["reached"] == pytest.approx(1 - alive[50], rel=1e-10)
        assert row["simulated"] is None


def test_simulation_agrees() -> None:
    """Four z-scores: beyond 5 happens less than once in 400,000 runs."""
    told = hitting(SMALL, k=[1, 2, 5], budget=100, chains=500).document["results"]
    assert all(abs(row["z"]) < 5 for row in told)


def test_propositions_speak_where_their_assumption_holds() -> None:
    """J_0 = 20 - 0.4: k-Gibbs with k >= |C| arrives as soon as promised, independent parallel leaves as rarely."""
    clique = Clique.alike(41, 40, 20.0, 0.01)
    told = hitting(clique, k=[40, 41], budget=1000, chains=0).document
    assert told["assumption_5"]["holds"]
    assert len(told["proposition_4"]) == 2
    for bound in told["proposition_4"]:
        assert bound["exact_steps"] <= bound["steps"] <= bound["printed_steps"]
    stuck = told["proposition_5"]
    assert not stuck["vacuous"]
    assert 2 * 1000 * math.exp(-stuck["exponent"]) < 0.01
    assert stuck["exact_leaves"] is None  # below 1e-300
    assert not told["corollary_1"]["follows"]


def test_the_papers_figure_is_beyond_its_propositions() -> None:
    found = hitting(Clique.alike(10, 4, 3.0, 5.0), k=[1, 4], budget=1000, chains=0)
    assert not found.document["assumption_5"]["holds"]
    assert "proposition_4" not in found.document
    assert any("Assumption 5 fails" in note for note in found.notes)
    assert found.document["results"][-1]["reached"] == pytest.approx(0.7379, abs=1e-4)  # "never", says the paper


def test_corollary_1_follows_for_a_clique_that_is_large_enough() -> None:
    clique = Clique.alike(100, 100, 60.0, 0.03)
    told = hitting(clique, k=[100], budget=1000, chains=0).document
    assert told["corollary_1"]["follows"]
    assert told["results"][0]["truncated_mean"] < 1.1
    assert told["results"][1]["reached"] is None
    assert told["null_probabilities_are_below"] == 1e-300


def test_probabilities_too_small_for_a_double_are_not_called_zero() -> None:
    """From R_-1 no step of 1-Gibbs or independent parallel leaves with more than exp(-900)."""
    found = hitting(Clique.alike(4, 4, 200.0, 30.0), k=[1, 4], budget=100, chains=0)
    assert [row[3] for row in found.listings[0].rows] == ["< 1e-300", "1", "< 1e-300"]
    assert [row["reached"] for row in found.document["results"]] == [None, 1.0, None]
    assert "P(R_1) = 1, P(R_-1) = 5.879e-105." in found.notes
    steep = hitting(Clique.alike(4, 4, 1000.0, 200.0), k=[4], budget=100, chains=0)
    assert "P(R_1) = 1, P(R_-1) < 1e-300." in steep.notes
    assert steep.document["modes"]["low_mass"] is None
    assert "with probability < 1e-300." in next(note for note in steep.notes if note.startswith("Proposition 5"))
    assert steep.document["proposition_5"]["exact_leaves"] is None


def test_every_chain_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counting(clique: Clique, k: int) -> LumpedChain:
        made.append(k)
        return clique_kgibbs_matrix(clique, k)

    monkeypatch.setattr("anyfill.ising.cliques.clique_kgibbs_matrix", counting)
    hitting(Clique.alike(6, 5, 20.0, 0.01), k=[5, 6], budget=10, chains=0)
    assert made == [5, 6]


def test_a_budget_beyond_what_is_computed_is_refused_before_any_work() -> None:
    uneven = Clique(tuple(range(1, 11)), (), 1.0)
    with pytest.raises(ValueError, match=r"--budget: expected at most 131,072 for the 1,024 states .*got 1,000,000"):
        hitting(uneven, k=[1], budget=1_000_000, chains=0)
