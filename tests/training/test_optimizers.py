"""Each parameter is moved by one optimizer, with weight decay only where it belongs."""

import pytest
import torch
from training_standin import tiny_model

from anyfill import recipes
from anyfill.likelihoods import Bernoulli
from anyfill.model import Model
from anyfill.training import FitOptions
from anyfill.training.optimizers import Muon, Optimization, make_optimizers, sort_parameters


def names_of(model: torch.nn.Module, parameters: list[torch.Tensor]) -> set[str]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {names[id(parameter)] for parameter in parameters}


def test_matrices_of_repeated_blocks_are_hidden_and_tables_norms_and_biases_plain() -> None:
    model = tiny_model()
    hidden, decayed, plain = (names_of(model, group) for group in sort_parameters(model))
    assert hidden == {"network.blocks.0.weight", "network.blocks.1.weight"}
    assert decayed == {"network.head.weight", "network.mix.weight"}
    assert {"network.embedding.weight", "network.place", "network.norm.weight", "network.head.bias"} <= plain


@pytest.mark.parametrize("kind", ["adamw", "adam", "muon"])
def test_every_trainable_parameter_is_moved_by_exactly_one_optimizer(kind: str) -> None:
    model = tiny_model()
    model.network.head.weight.requires_grad_(False)
    optimizers = make_optimizers(model, FitOptions(optimizer=kind))
    moved = [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
    assert len(moved) == len({id(p) for p in moved})
    assert {id(p) for p in moved} == {id(p) for p in model.parameters() if p.requires_grad}
    assert any(isinstance(optimizer, Muon) for optimizer in optimizers) == (kind == "muon")


def test_weight_decay_spares_the_plain_parameters() -> None:
    model = tiny_model()
    (optimizer,) = make_optimizers(model, FitOptions(weight_decay=0.3))
    for group in optimizer.param_groups:
        expected = 0.0 if names_of(model, group["params"]) & {"network.place"} else 0.3
        assert group["weight_decay"] == expected


def test_a_model_with_nothing_to_train_is_refused() -> None:
    model = tiny_model().requires_grad_(False)
    with pytest.raises(ValueError, match="parameter to train"):
        make_optimizers(model, FitOptions())


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_optimizer_state_comes_back_bit_for_bit(kind: str) -> None:
    def step(model: torch.nn.Module, optimization: Optimization, number: int) -> None:
        for parameter in model.parameters():
            parameter.grad = number * torch.cos(parameter.detach())
        optimization.step(number, 1e-3)

    one, two = tiny_model(), tiny_model()
    options = FitOptions(optimizer=kind, ema=0.9)
    first, second = Optimization(one, options), Optimization(two, options)
    step(one, first, 1)
    two.load_state_dict(one.state_dict())
    second.restore({name: value.clone() for name, value in first.tensors().items()})
    step(one, first, 2)
    step(two, second, 2)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters()))
    assert all(torch.equal(a, second.tensors()[name]) for name, a in first.tensors().items())


@pytest.mark.parametrize(("clip_value", "clip_norm"), [(0.25, None), (0.25, 0.3), (None, 0.3)])
def test_gradients_are_clipped_entry_by_entry_before_their_length(
    clip_value: float | None, clip_norm: float | None
) -> None:
    model = tiny_model()
    options = FitOptions(optimizer="adam", clip_value=clip_value, clip_norm=clip_norm)
    optimization = Optimization(model, options)
    seen: list[torch.Tensor] = []
    (optimizer,) = optimization.optimizers
    optimizer.register_step_pre_hook(
        lambda *_: seen.append(torch.cat([p.grad.flatten().clone() for p in model.parameters()]))
    )
    for parameter in model.parameters():
        parameter.grad = torch.cos(parameter.detach())
    raw = torch.cat([p.grad.flatten() for p in model.parameters()])
    wanted = raw if clip_value is None else raw.clamp(-clip_value, clip_value)
    if clip_norm is not None:
        wanted = wanted * min(1.0, clip_norm / float(wanted.norm()))
    length = optimization.step(1, 1e-3)
    torch.testing.assert_close(seen[0], wanted, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(length, raw.norm())  # as it was before any clipping


def test_a_bound_for_entries_must_be_positive() -> None:
    with pytest.raises(ValueError, match="clip_value"):
        FitOptions(clip_value=0.0)


@pytest.mark.parametrize("kind", ["adam", "adamw", "muon"])
def test_state_of_kernels_that_lie_channels_last_comes_back_bit_for_bit(kind: str) -> None:
    """As a run on an accelerator lays them; what a checkpoint holds does not."""

    def network() -> Model:
        model = recipes.sfarm.image_model((4, 4), 2, Bernoulli(), told="nothing", width=8, levels=1, blocks=1)
        return model.to(memory_format=torch.channels_last)

    def step(model: Model, optimization: Optimization, number: int) -> None:
        for parameter in model.parameters():
            parameter.grad = number * torch.cos(parameter.detach())
        optimization.step(number, 1e-3)

    one, two = network(), network()
    assert any(not parameter.is_contiguous() for parameter in one.parameters())
    options = FitOptions(optimizer=kind, ema=0.9)
    first, second = Optimization(one, options), Optimization(two, options)
    step(one, first, 1)
    two.load_state_dict(one.state_dict())
    second.restore({name: value.contiguous() for name, value in first.tensors().items()})
    for parameter, state in ((p, s) for optimizer in second.optimizers for p, s in optimizer.state.items()):
        assert all(value.stride() == parameter.stride() for value in state.values() if value.shape == parameter.shape)
    for number in (2, 3):
        step(one, first, number)
        step(two, second, number)
    for mine, other in zip(one.parameters(), two.parameters()):
        assert torch.equal(mine, other)
