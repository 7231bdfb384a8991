"""Draw against slow reference filters written from their definitions."""

import itertools
import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from torch import Generator

from anyfill.likelihoods import Bernoulli, Categorical, Gaussian, GaussianMixture, Mixed
from anyfill.samplers.draw import Draw, reshape_log_probs

FALSE_ALARM = 1e-6  # per statistical test, at a fixed seed

counts = st.lists(st.integers(0, 12), min_size=1, max_size=7).filter(any)
share = st.floats(0.01, 1.0)


def smallest_prefix(order: list[int], probs: list[float], mass: float) -> set[int]:
    """Walk along ``order`` until the mass is reached; a mass short by rounding is reached."""
    kept: set[int] = set()
    for code in order:
        kept.add(code)
        if mass < 1 and sum(probs[k] for k in kept) >= mass - 1e-6:
            break
    return kept


def renormalised(probs: list[float], kept: set[int]) -> list[float]:
    total = sum(probs[k] for k in kept)
    return [p / total if k in kept else 0.0 for k, p in enumerate(probs)]


def slow_top_k(probs: list[float], k: int) -> list[float]:
    return renormalised(probs, set(sorted(range(len(probs)), key=lambda code: (-probs[code], code))[:k]))


def slow_nucleus(probs: list[float], mass: float) -> list[float]:
    order = sorted(range(len(probs)), key=lambda code: (-probs[code], code))
    return renormalised(probs, smallest_prefix(order, probs, mass))


def slow_typical(probs: list[float], mass: float) -> list[float]:
    entropy = -sum(p * math.log(p) for p in probs if p > 0)
    distance = [abs(-math.log(p) - entropy) if p > 0 else math.inf for p in probs]
    of_value = {p: d for p, d in zip(probs, distance) if p > 0}
    gaps = sorted(of_value.values())
    assume(all(b - a > 1e-9 for a, b in itertools.pairwise(gaps)))  # two values equally typical: rounding decides
    order = sorted(range(len(probs)), key=lambda code: (distance[code], code))
    return renormalised(probs, smallest_prefix(order, probs, mass))


def slow(values: list[int], draw: Draw) -> list[float]:
    """The whole pipeline, one row at a time."""
    heat = [(v / max(values)) ** (1 / draw.temperature) for v in values]
    probs = [h / sum(heat) for h in heat]
    if draw.top_k is not None:
        probs = slow_top_k(probs, draw.top_k)
    if draw.nucleus is not None:
        probs = slow_nucleus(probs, draw.nucleus)
    return probs if draw.typical is None else slow_typical(probs, draw.typical)


def fast(values: list[int], draw: Draw) -> list[float]:
    log_probs = torch.tensor(values, dtype=torch.float64).log().log_softmax(-1)
    return reshape_log_probs(log_probs, draw).exp().tolist()


@given(counts, st.integers(1, 8))
def test_top_k_keeps_the_k_most_probable_values(values: list[int], k: int) -> None:
    assert fast(values, Draw(top_k=k)) == pytest.approx(slow(values, Draw(top_k=k)), abs=1e-12)


@given(counts, st.integers(1, 84), share)
def test_nucleus_keeps_the_smallest_most_probable_set_of_that_mass(values: list[int], part: int, mass: float) -> None:
    # A threshold that sums hit exactly is the hard case: the value that reaches it is the last one kept.
    for threshold in (mass, min(part, sum(values)) / sum(values)):
        draw = Draw(nucleus=threshold)
        assert fast(values, draw) == pytest.approx(slow(values, draw), abs=1e-12)


@given(counts, st.integers(1, 84), share)
def test_typical_keeps_the_values_closest_to_the_entropy(values: list[int], part: int, mass: float) -> None:
    for threshold in (mass, min(part, sum(values)) / sum(values)):
        draw = Draw(typical=threshold)
        assert fast(values, draw) == pytest.approx(slow(values, draw), abs=1e-12)


@given(counts, st.floats(0.2, 5), st.integers(1, 8), share, share)
def test_filters_act_one_after_another_each_on_the_renormalised_rest(
    values: list[int], temperature: float, k: int, nucleus: float, typical: float
) -> None:
    draw = Draw(temperature=temperature, top_k=k, nucleus=nucleus, typical=typical)
    assert fast(values, draw) == pytest.approx(slow(values, draw), abs=1e-9)


def test_rows_are_filtered_independently(generator: Generator) -> None:
    log_probs = (3 * torch.randn(4, 5, 9, generator=generator)).log_softmax(-1)
    draw = Draw(temperature=0.8, top_k=6, nucleus=0.9, typical=0.7)
    whole = draw.filtered(log_probs)
    assert whole.dtype == torch.float64
    for row in range(4):
        for variable in range(5):
            torch.testing.assert_close(whole[row, variable], draw.filtered(log_probs[row, variable]))
    torch.testing.assert_close(whole.exp().sum(-1), torch.ones(4, 5).double())


def test_known_cases() -> None:
    half = [8, 4, 2, 1, 1]  # p = 1/2, 1/4, 1/8, 1/16, 1/16; H = 1.875 bits
    assert fast(half, Draw(nucleus=0.75)) == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])
    assert fast(half, Draw(nucleus=0.76)) == pytest.approx([4 / 7, 2 / 7, 1 / 7, 0, 0])
    assert fast(half, Draw(typical=0.01)) == pytest.approx([0, 1, 0, 0, 0])  # 2 bits is nearest to 1.875
    assert fast(half, Draw(typical=0.3)) == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])  # then 1 bit (distance .875)
    assert fast(half, Draw(typical=0.8)) == pytest.approx([4 / 7, 2 / 7, 1 / 7, 0, 0])  # then 3 bits (1.125)
    assert fast([1, 1, 1, 1], Draw(top_k=2)) == pytest.approx([0.5, 0.5, 0, 0])  # ties: the smaller code
    assert fast([1, 1, 1, 1], Draw(typical=0.5)) == pytest.approx([0.5, 0.5, 0, 0])
    assert [k for k, p in enumerate(fast([1] * 5000, Draw(top_k=3))) if p] == [0, 1, 2]
    assert fast([3, 5, 2], Draw(temperature=0.0, typical=0.1)) == [0, 1, 0]


@given(counts)
def test_a_whole_mass_keeps_every_possible_value(values: list[int]) -> None:
    kept = fast(values, Draw(nucleus=1.0, typical=1.0, top_k=len(values)))
    assert kept == pytest.approx([v / sum(values) for v in values])
    for draw in (Draw(nucleus=1.0), Draw(typical=1.0)):
        assert all(p > 0 for p in fast([10**9, 1, 10**9, 1], draw))


def test_a_draw_without_settings_is_exactly_sample(generator: Generator) -> None:
    for likelihood in (
        Categorical(7),
        Bernoulli(),
        Gaussian(),
        GaussianMixture(2),
        Mixed((Gaussian(), Categorical(3))),
    ):
        marginals = likelihood(torch.randn(50, 2, likelihood.width, generator=generator))
        for temperature in (1.0, 0.6, 0.0):
            one, two = (torch.Generator().manual_seed(9) for _ in range(2))
            mine = Draw(temperature=temperature)(marginals, generator=one)
            assert mine.equal(marginals.sample(generator=two, temperature=temperature))
            assert one.get_state().equal(two.get_state())
    log_probs = torch.randn(3, 4, generator=generator).log_softmax(-1)
    assert Draw().filtered(log_probs).equal(log_probs.double())


@pytest.mark.parametrize(
    "draw",
    [Draw(top_k=4), Draw(nucleus=0.8), Draw(typical=0.6), Draw(temperature=1.5, top_k=6, nucleus=0.9, typical=0.8)],
)
def test_draws_follow_the_filtered_distribution(generator: Generator, draw: Draw) -> None:
    marginals = Categorical(8)(torch.randn(8, generator=generator).expand(50_000, 1, 8))
    codes = draw(marginals, generator=generator).flatten()
    assert codes.dtype == torch.int64
    probs = draw.filtered(marginals.log_probs[0, 0]).exp()
    kept = probs > 0
    assert 1 < kept.sum() < 8
    assert kept[codes].all()
    seen = torch.bincount(codes, minlength=8)[kept].double()
    assert stats.chisquare(seen.numpy(), (probs[kept] * len(codes)).numpy()).pvalue > FALSE_ALARM


def test_temperature_zero_is_the_mode_whatever_the_filters(generator: Generator) -> None:
    marginals = Categorical(6)(torch.randn(20, 3, 6, generator=generator))
    draw = Draw(temperature=0.0, top_k=3, nucleus=0.5, typical=0.2)
    assert draw(marginals, generator=generator).equal(marginals.mode())
    assert draw.filtered(marginals.log_probs).argmax(-1).equal(marginals.mode())
    assert draw.filtered(marginals.log_probs).exp().sum(-1).eq(1).all()


def test_drawing_stays_on_the_parameters_device_and_never_waits_for_values(generator: Generator) -> None:
    """The meta device has shapes but no values: reading one, or mixing in a CPU tensor, raises."""
    draw = Draw(temperature=0.8, top_k=3, nucleus=0.9, typical=0.7)
    for likelihood in (Categorical(6), Mixed((Gaussian(), Categorical(3)))):
        drawn = draw(likelihood(torch.randn(5, 2, likelihood.width, device="meta")), generator=generator)
        assert drawn.device.type == "meta"
        assert drawn.shape == (5, 2)


def test_equal_generators_give_equal_draws() -> None:
    marginals = Categorical(6)(torch.zeros(20, 3, 6))
    first, second = (Draw(top_k=4)(marginals, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert first.equal(second)


def test_extreme_and_impossible_values_are_filtered_without_nan() -> None:
    logits = torch.tensor([[1e4, -1e4, -math.inf, 0.0], [-math.inf, 0.0, -math.inf, -math.inf]])
    for draw in (Draw(top_k=3), Draw(nucleus=0.9), Draw(typical=0.9), Draw(temperature=1e-9, nucleus=0.5, typical=0.5)):
        assert draw.filtered(logits.log_softmax(-1)).exp().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]


def test_mixed_marginals_filter_discrete_columns_and_only_heat_continuous_ones(generator: Generator) -> None:
    columns = (Gaussian(), Categorical(4), GaussianMixture(2), Categorical(4), Bernoulli())
    params = torch.zeros(20_000, 5, 6)
    params[:, 1, :4] = torch.tensor([0.0, 3.0, 2.0, 1.0])
    params[:, 3, :4] = torch.tensor([3.0, 0.0, 1.0, 2.0])
    marginals = Mixed(columns)(params)
    drawn = Draw(temperature=2.0, top_k=2)(marginals, generator=generator)
    assert drawn.dtype == torch.float32
    assert drawn[:, 1].unique().tolist() == [1, 2]
    assert drawn[:, 3].unique().tolist() == [0, 3]
    assert stats.kstest(drawn[:, 0].numpy(), stats.norm(0, math.sqrt(2) * (1 + 1e-4)).cdf).pvalue > FALSE_ALARM
    assert Draw(temperature=0.0, top_k=2)(marginals, generator=generator).equal(marginals.mode())


@pytest.mark.parametrize("draw", [Draw(top_k=2), Draw(nucleus=0.9), Draw(typical=0.9), Draw(temperature=0.0, top_k=2)])
def test_a_filter_on_continuous_marginals_is_refused(generator: Generator, draw: Draw) -> None:
    for likelihood in (Gaussian(), GaussianMixture(2), Mixed((Gaussian(), GaussianMixture(2)))):
        marginals = likelihood(torch.zeros(2, 2, likelihood.width))
        with pytest.raises(ValueError, match="Draw: expected discrete marginals for top_k, nucleus or typical"):
            draw(marginals, generator=generator)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"temperature": -1.0}, "temperature: expected a finite number of at least 0"),
        ({"temperature": math.nan}, "temperature: expected a finite number of at least 0"),
        ({"top_k": 0}, "top_k: expected a whole number from 1 up"),
        ({"top_k": 2.0}, "top_k: expected a whole number from 1 up"),
        ({"nucleus": 0.0}, "nucleus: expected a mass above 0 and up to 1"),
        ({"nucleus": 1.1}, "nucleus: expected a mass above 0 and up to 1"),
        ({"typical": 0}, "typical: expected a mass above 0 and up to 1"),
        ({"typical": math.nan}, "typical: expected a mass above 0 and up to 1"),
    ],
)
def test_wrong_settings_are_refused_with_a_sentence(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Draw(**settings)  # type: ignore[arg-type]


def test_typical_k_keeps_the_values_whose_surprise_is_nearest_the_entropy():
    p = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05, 0.0], dtype=torch.float64)
    positive = p[p > 0]
    entropy = -(positive * positive.log()).sum()
    distance = (-positive.log() - entropy).abs()
    kept = distance.argsort()[:2].sort().values
    reshaped = reshape_log_probs(p.log(), Draw(typical_k=2)).exp()
    expected = torch.zeros(6, dtype=torch.float64)
    expected[kept] = p[kept] / p[kept].sum()
    torch.testing.assert_close(reshaped, expected)
    assert 0 not in kept  # the likeliest value is not among them: this is not top-k
    everything = reshape_log_probs(p.log(), Draw(typical_k=6)).exp()
    torch.testing.assert_close(everything, p)
