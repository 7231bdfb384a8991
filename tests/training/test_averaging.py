"""The moving average follows its formula and never touches the weights unless told to."""

import pytest
import torch
from torch import nn

from anyfill.training.optimizers import Average


def test_the_average_follows_its_recursion() -> None:
    parameter = nn.Parameter(torch.tensor([1.0, 2.0]))
    average = Average({"p": parameter}, 0.5)
    expected = parameter.detach().double().clone()
    for step in range(1, 8):
        with torch.no_grad():
            parameter.mul_(1.5)
        average.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * parameter.detach().double()
    torch.testing.assert_close(average.tensors()["p"].double(), expected, rtol=1e-5, atol=1e-6)


def test_inside_the_parameters_are_the_average_and_after_bit_for_bit_themselves() -> None:
    parameter = nn.Parameter(torch.randn(5))
    average = Average({"p": parameter}, 0.9)
    with torch.no_grad():
        parameter.add_(1.0)
    before = parameter.detach().clone()

    def inside() -> None:
        with average.in_place():
            assert torch.equal(parameter, average.tensors()["p"])
            assert not torch.equal(parameter, before)
            raise RuntimeError("oops")

    with pytest.raises(RuntimeError, match="oops"):
        inside()
    assert torch.equal(parameter, before)


def test_sixteen_bit_weights_are_averaged_in_thirty_two() -> None:
    parameter = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    average = Average({"p": parameter}, 0.9999)
    for step in range(1_000_000, 1_000_050):
        with torch.no_grad():
            parameter.fill_(2.0)
        average.update(step)
    assert average.tensors()["p"].dtype == torch.float32
    assert 1.003 < float(average.tensors()["p"][0]) < 1.006  # in bfloat16 each step of 1e-4 would round to nothing
