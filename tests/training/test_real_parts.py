"""The package's own parts train, are saved, and are loaded without being named."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from anyfill import corruption, likelihoods, networks, objectives, questions
from anyfill.model import Model
from anyfill.objectives import Objective
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit, fit_steps, load_model, save_model

N, K = 5, 3
OPTIONS = FitOptions(steps=100, batch_size=32, report_every=25, learning_rate=1e-2, device="cpu")


def counters(count: int = 64) -> Rows:
    """Rows that count up modulo K from anywhere."""
    return Rows.from_values((torch.arange(count).unsqueeze(1) + torch.arange(N)) % K)


def table(count: int = 64) -> Rows:
    """A code, and real numbers that depend on it, some of them missing."""
    code = torch.arange(count) % K
    noise = torch.randn(count, 2, generator=torch.Generator().manual_seed(0))
    x = torch.cat([code.unsqueeze(1), code.unsqueeze(1) + 0.1 * noise], 1)
    x[::5, 1] = torch.nan
    return Rows.from_values(x)


def cases() -> dict[str, tuple[Model, Objective, Rows]]:
    kind, splits = networks.Discrete(K), questions.UniformSplits(N)
    small = {"width": 32, "depth": 2}
    categorical = likelihoods.Categorical(K)
    mixed = likelihoods.Mixed((categorical, likelihoods.Gaussian(), likelihoods.GaussianMixture(2)))
    return {
        "one pass": (
            Model(networks.OnePassTransformer(kind, (N,), K, **small), categorical),
            objectives.OnePassLoss(splits),
            counters(),
        ),
        "masked transformer": (
            Model(networks.Transformer(kind, (N,), K, **small), categorical, order=questions.Decreasing()),
            objectives.MaskedLoss(questions.UniformCardinality(N)),
            counters(),
        ),
        "unrolled": (
            Model(networks.ResidualMLP(kind, N, K, **small), categorical, corruption=corruption.Uniform(K)),
            objectives.MaskedLoss(questions.Bernoulli(N), unroll=2),
            counters(),
        ),
        "mixed table": (
            Model(networks.ResidualMLP(networks.Mixed((K, 0, 0)), 3, mixed.width, dropout=0.1, **small), mixed),
            objectives.MaskedLoss(questions.UniformCardinality(3)),
            table(),
        ),
    }


@pytest.mark.parametrize("name", cases())
def test_real_parts_train_save_load_and_resume_bit_for_bit(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, objective, rows = cases()[name]
    start = {key: value.clone() for key, value in model.state_dict().items()}
    options = replace(OPTIONS, optimizer="muon", ema=0.9, validate_every=25)
    whole = fit_steps(model, rows, objective, options, validation=rows, folder=tmp_path / "whole")
    losses = [report.validation_loss for report in whole]
    assert min(losses[1:]) < losses[0]
    assert model.factorizations == objective.factorizations

    again = cases()[name][0]
    again.load_state_dict(start)
    reports = fit_steps(again, rows, objective, options, validation=rows, folder=tmp_path / "parts")
    next(reports)
    reports.close()
    fit(cases()[name][0], rows, objective, options, validation=rows, folder=tmp_path / "parts", resume=True)
    for folder in ("whole", "parts"):
        back = load_model(tmp_path / folder)
        assert (back.likelihood, back.corruption, back.order) == (model.likelihood, model.corruption, model.order)
        assert back.factorizations == model.factorizations
        for key, value in model.state_dict().items():
            assert torch.equal(back.state_dict()[key], value), key


def test_an_enumerated_joint_is_saved_bit_for_bit(tmp_path: Path) -> None:
    network = networks.EnumeratedJoint.random(3, 2, generator=torch.Generator().manual_seed(1))
    save_model(Model(network, likelihoods.Categorical(2)), tmp_path)
    back = load_model(tmp_path).network
    assert isinstance(back, nn.Module)
    assert torch.equal(back.log_joint, network.log_joint)


@pytest.mark.slow
def test_compiled_training_follows_the_curve_of_plain_training() -> None:
    curves = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model, objective, rows = cases()["one pass"]
        options = replace(OPTIONS, compile=compiled)
        curves.append([report.loss for report in fit_steps(model, rows, objective, options)])
    assert curves[1] == pytest.approx(curves[0], rel=1e-3)
