"""Coins: rates, their edges, and refusals."""

import pytest
from torch import Generator

from anyfill.questions import Bernoulli, Factorization


def test_a_rate_of_0_asks_nothing_and_a_rate_of_1_asks_everything(generator: Generator) -> None:
    assert not Bernoulli(5, 0.0).sample(1000, generator=generator).asked.any()
    assert Bernoulli(5, 1.0).sample(1000, generator=generator).asked.all()


def test_the_share_asked_is_the_rate(generator: Generator) -> None:
    """Four standard deviations of a mean of 10^6 coins: false-alarm rate 6e-5, fixed seed."""
    share = float(Bernoulli(1000, 0.15).sample(1000, generator=generator).asked.double().mean())
    assert abs(share - 0.15) < 4 * (0.15 * 0.85 / 1e6) ** 0.5


def test_a_rate_for_each_row_correlates_the_variables_of_a_row(generator: Generator) -> None:
    """Var of the row share is 1/12 when the rate is uniform, about 1/(4N) when all coins are independent."""
    share = Bernoulli(400).sample(5000, generator=generator).asked.double().mean(1)
    assert abs(float(share.var()) - 1 / 12) < 0.01


def test_a_coin_with_one_side_trains_no_chain() -> None:
    assert Bernoulli(3, 0.5).factorizations == Bernoulli(3).factorizations == {Factorization.ANY_ORDER}
    assert Bernoulli(3, 0.0).factorizations == Bernoulli(3, 1.0).factorizations == frozenset()


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), True])
def test_a_rate_outside_0_to_1_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="Bernoulli rate"):
        Bernoulli(3, rate)
