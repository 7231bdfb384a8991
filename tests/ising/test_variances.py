"""Variances as the lab shows them, exact and from draws."""

import math

import pytest
import torch

from anyfill.ising.asymptotics import ising_variance
from anyfill.ising.blocks import k_blocks
from anyfill.ising.model import Ising
from anyfill.ising.spectra import poincare_constant
from anyfill.ising.variances import Computed, compare, variance, work_of


def random_model(variables: int = 4, seed: int = 0) -> Ising:
    return Ising.random(variables, generator=torch.Generator().manual_seed(seed))


def test_it_shows_what_the_library_computes() -> None:
    model = random_model()
    told = variance(model, k=[1, 3, 4]).document
    least = float(ising_variance(model).trace())
    assert told["trace_of_inverse_information"] == pytest.approx(least, rel=1e-12)
    for row, k in zip(told["results"], (1, 3, 4)):
        constant = poincare_constant(model.log_joint(), k_blocks(4, k))
        assert row["trace"] == pytest.approx(float(ising_variance(model, k_blocks(4, k)).trace()), rel=1e-12)
        assert row["bound"] == pytest.approx(constant * least, rel=1e-10)
    assert told["theorem_1"]
    assert told["theorem_2"]


@pytest.mark.parametrize("seed", range(5))
def test_wrong_variances_fail(seed: int) -> None:
    """In the wrong order theorem 1 fails; with a constant that is 1 percent of C theorem 2 does."""
    ising = random_model(seed=seed)
    gamma = {k: ising_variance(ising, k_blocks(4, k)) for k in (1, 4)}
    right = compare([Computed(1, gamma[1], 1e3, True), Computed(4, gamma[4], 1.0, True)], gamma[4])
    wrong = compare([Computed(1, gamma[4], 1.0, True), Computed(4, gamma[1], 0.01, True)], gamma[4])
    assert [(row.order_holds, row.bound_holds) for row in right] == [(True, True), (None, True)]
    assert [(row.order_holds, row.bound_holds) for row in wrong] == [(False, True), (None, False)]
    assert wrong[0].order_margin < 0
    (open_,) = compare([Computed(1, gamma[1], 0.01, False)], gamma[4])  # a constant that may be larger decides nothing
    assert open_.bound_holds is None


def test_sizes_that_are_too_much_work_are_left_out_and_the_rest_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    model, began = random_model(), []
    monkeypatch.setattr("anyfill.ising.variances.MAX_WORK", 1.01 * work_of(model, 1))
    monkeypatch.setattr("anyfill.ising.variances.k_blocks", lambda n, k: began.append(k) or k_blocks(n, k))
    found = variance(model, k=[1, 2, 3, 4])
    assert began == [1, 4]
    assert found.listings[0].rows[1] == ("2", *"--------")
    assert found.document["left_out"] == [2, 3]
    assert [row["k"] for row in found.document["results"]] == [1, 4]
    assert any("Not computed: k = 2, 3" in note for note in found.notes)
    monkeypatch.setattr("anyfill.ising.variances.MAX_WORK", 1.0)
    with pytest.raises(ValueError, match=r"--k of 4 spins: expected a size with at most .* for k = 1 .*--sampled"):
        variance(model, k=[1, 2])


def test_every_block_of_every_row_is_the_sandwich() -> None:
    model = random_model()
    told = variance(model, k=2, masks="all").document
    expected = ising_variance(model, k_blocks(4, 2), masks=math.inf).trace()
    assert told["results"][0]["trace"] == pytest.approx(float(expected), rel=1e-12)
