"""Nats per note of an exact joint are those of the joint, in any order."""

import pytest
import torch
from torch import Generator

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint
from anyfill.rows import Rows
from experiments.sunmask import models as sunmask_models


@pytest.mark.parametrize("chronological", [False, True])
def test_a_consistent_model_has_the_same_nats_in_every_order(chronological):
    generator = Generator().manual_seed(0)
    joint = EnumeratedJoint.random(8, 2, generator=generator)
    model = Model(joint, Categorical(2))
    x = torch.randint(2, (5, 8), generator=generator)
    everything = torch.ones_like(x, dtype=torch.bool)
    nats = sunmask_models.nats_per_note(
        model, Rows(x, everything), orders=3, chronological=chronological, device="cpu", together=4
    )
    exact = -joint.log_prob(x, everything)
    assert nats["single"] == pytest.approx(float(exact.mean()) / 8, rel=1e-5)
    assert nats["ensemble"] <= nats["single"]  # a mean of probabilities is above that of their logarithms


def test_missing_notes_are_neither_told_nor_counted():
    joint = EnumeratedJoint.random(8, 2, generator=Generator().manual_seed(0))
    model = Model(joint, Categorical(2))
    x = torch.zeros(1, 8, dtype=torch.int64)
    present = torch.tensor([[True, False, True, True, False, False, True, True]])
    one, other = (
        sunmask_models.nats_per_note(model, Rows(rows, present), orders=2, chronological=False, device="cpu")
        for rows in (x, torch.where(present, x, 1))
    )
    assert one == other
    assert one["single"] == pytest.approx(-float(joint.log_prob(x, present)) / 5, rel=1e-5)


@pytest.mark.parametrize(("name", "variants"), [("smc", 16), ("smc_time", 16), ("smt", 16), ("sd", 4), ("coconet", 2)])
def test_every_model_has_its_objective_and_its_samplers(name, variants):
    sizes = {
        "width": 4 if name in ("smc", "sd") else 32,
        "depth": {"coconet": 5}.get(name, 1),
        "dropout": 0.1,
        "seed": 0,
    }
    model = sunmask_models.made(name, 4, **sizes)
    assert model.variables == 16
    assert sunmask_models.objective_of(name, 16).unroll == (1 if name == "coconet" else 2)
    samplers = sunmask_models.samplers_of(name, 3)
    assert len(samplers) == variants
    assert {draw.temperature for _, draw in samplers.values()} == {{"sd": 0.8, "coconet": 0.99}.get(name, 0.6)}


def test_only_the_ablation_keeps_given_values_in_the_second_step():
    assert sunmask_models.objective_of("smc", 16).redraw_given
    assert not sunmask_models.objective_of("smc_keep", 16).redraw_given
