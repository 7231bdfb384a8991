"""Weights in 8 bits: within half a step of what they were, and a model of them is the model of the rounded weights."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.evaluation import log_prob
from anyfill.questions import Question
from anyfill.training import load_model, save_model
from anyfill.training.quantize import SCALE, dequantized, quantized


@given(st.integers(1, 5), st.integers(1, 9), st.floats(1e-6, 1e6), st.integers(0, 99))
def test_every_weight_is_within_half_a_step_of_its_row(rows: int, columns: int, size: float, seed: int) -> None:
    weight = size * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    kept = quantized({"w": weight, "b": weight[0], "n": torch.arange(3)})
    again = dequantized(kept)
    step = weight.abs().amax(1, keepdim=True) / 127
    assert kept["w"].dtype == torch.int8
    assert ((again["w"] - weight).abs() <= 0.5001 * step).all()
    assert torch.equal(again["b"], weight[0])
    assert torch.equal(again["n"], torch.arange(3))
    assert set(again) == {"w", "b", "n"}
    assert torch.equal(dequantized(quantized(again))["w"], again["w"]), "rounding again changes nothing"


def test_rows_of_zeros_stay_and_what_is_not_finite_is_refused() -> None:
    assert torch.equal(dequantized(quantized({"w": torch.zeros(2, 3)}))["w"], torch.zeros(2, 3))
    assert quantized({"w": torch.ones(2, 3, 4)})["w" + SCALE].shape == (2,)
    with pytest.raises(ValueError, match="weights w: expected finite numbers"):
        quantized({"w": torch.full((2, 2), torch.inf)})


def test_a_model_of_eight_bits_answers_as_its_dequantized_self(tiny_model, tmp_path) -> None:
    model = tiny_model(27, 12)
    save_model(model, tmp_path / "whole")
    save_model(model, tmp_path / "eight", eight_bit=True)
    small = load_model(tmp_path / "eight").float()
    rounded = load_model(tmp_path / "whole").float()
    rounded.load_state_dict(dequantized(quantized(model.state_dict())))
    for name, weight in small.state_dict().items():
        assert torch.equal(weight, rounded.state_dict()[name]), name
    x = torch.randint(27, (4, 12), generator=torch.Generator().manual_seed(0))
    asked = torch.ones_like(x, dtype=torch.bool)
    question = Question(~asked, asked)
    assert torch.equal(log_prob(small, x, question).value, log_prob(rounded, x, question).value)
    assert not torch.equal(log_prob(small, x, question).value, log_prob(model, x, question).value)
    sizes = [
        sum(path.stat().st_size for path in (tmp_path / name).glob("*.safetensors")) for name in ("whole", "eight")
    ]
    assert sizes[1] < 0.5 * sizes[0]
