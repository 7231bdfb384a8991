"""The distilled grid model: a law seen in another key is moved back, rows are drawn as asked, and the command runs."""

import json
import sys

import numpy as np
import pytest
import torch
from torch import nn

from anyfill.music.chorale import CODES, REST, Chorale
from anyfill.music.crops import Crops
from anyfill.music.model import one_pass_chorale_model
from anyfill.networks.embed import Discrete
from anyfill.networks.network import Capabilities
from experiments.sunmask import bach_distil, bach_model, ensembles

STEPS = 16


class Holds(nn.Module, Capabilities):
    """Whatever the key: each cell is what the one before it was (0.9), a semitone above (0.07) or a rest (0.03)."""

    kind, variables, outputs = Discrete(CODES), 4 * STEPS, CODES

    def chain(self, x, rank, context=None, *, strict=False):
        law = torch.full((*x.shape, CODES), 1e-9)
        law[..., 0] = 0.03
        before = torch.nn.functional.pad(x[:, :-1], (1, 0))
        law.scatter_(-1, torch.where(before > 0, before + 1, 0).unsqueeze(-1), 0.07)
        law.scatter_(-1, before.unsqueeze(-1), 0.9)
        return law.log()


def test_a_law_that_knows_no_key_is_the_same_from_every_key(generator) -> None:
    x = torch.randint(20, 40, (200, 4 * STEPS), generator=generator)
    x[:, 1::7] = 0
    rank = torch.arange(4 * STEPS).expand_as(x)
    network = ensembles.InAnyKey(Holds(), center=30.0)
    torch.manual_seed(0)
    shifts = network.shifts(x)
    assert len(shifts.unique()) > 8
    torch.manual_seed(0)
    found = network.chain(x, rank).softmax(-1)
    assert torch.allclose(found, Holds().chain(x, rank).softmax(-1), atol=1e-6)


def test_a_few_teachers_at_a_time_have_the_mean_law_of_all_in_expectation(generator) -> None:
    members = [one_pass_chorale_model(2, width=16, depth=1, heads=2, seed=seed).network for seed in range(3)]
    x = torch.randint(0, CODES, (2, 8), generator=generator)
    rank = torch.arange(8).expand_as(x)
    torch.manual_seed(0)
    some = ensembles.SomeOf(members, 1).eval()
    with torch.no_grad():
        every = ensembles.SomeOf(members, 3).eval().chain(x, rank).exp()
        drawn = torch.stack([some.chain(x, rank).exp() for _ in range(300)])
        own = torch.stack([member.chain(x, rank).softmax(-1) for member in members])
    torch.testing.assert_close(every, own.mean(0))
    which = (drawn.unsqueeze(1) - own).abs().amax((2, 3, 4)).argmin(1)
    assert (torch.bincount(which, minlength=3) > 70).all()  # each 100 times in expectation, deviation 8
    torch.testing.assert_close(drawn[0], own[which[0]])


def test_a_fixed_key_moves_rows_and_laws_alike() -> None:
    x = torch.tensor([[10, 0, 12, 20, 15, 9, 0, 30] * 8])
    seen = list[torch.Tensor]()

    class Sees(Holds):
        def chain(self, x, rank, context=None, *, strict=False):
            seen.append(x)
            return super().chain(x, rank, context, strict=strict)

    found = ensembles.InKey(Sees(), 3).chain(x, torch.arange(64).expand_as(x)).softmax(-1)
    assert (seen[0] == torch.where(x > 0, x + 3, 0)).all()
    torch.testing.assert_close(found, Holds().chain(x, x).softmax(-1), atol=1e-6, rtol=0)


def test_rows_stay_within_the_range_of_the_codes(generator) -> None:
    x = torch.randint(1, CODES, (50, 4 * STEPS), generator=generator)
    x[:, 0], x[:, 1] = 1, CODES - 1
    network = ensembles.InAnyKey(Holds(), center=0.0)
    assert not network.shifts(x).any()  # nowhere to go
    assert not network.shifts(torch.zeros_like(x)).any()  # silence has no key
    low = torch.randint(1, 20, (50, 4 * STEPS), generator=generator)
    moved = low + network.shifts(low)
    assert moved.min() >= 1


def test_chorales_are_moved_to_the_middle_and_stay_in_range(generator) -> None:
    pitch = torch.randint(60, 80, (4, STEPS), generator=generator).numpy().astype(np.int16)
    pitch[0, 0] = REST
    moved = ensembles.centered(pitch, 30.0)
    codes = moved.codes()
    assert abs(float(codes[codes > 0].float().mean()) - 30.0) <= 0.5
    assert moved.pitch[0, 0] == REST
    pitch[1, 0] = 86
    assert ensembles.centered(pitch, 57.0).pitch.max() == 86
    assert (ensembles.centered(np.full((4, STEPS), REST, np.int16), 30.0).pitch == REST).all()


def test_what_is_given_of_a_window_stays_in_what_is_drawn() -> None:
    steps = np.arange(2 * STEPS)
    piece = Chorale.of(np.stack([70 + steps % 5, 64 + steps % 3, 57 + steps % 2, 48 + steps % 7]).astype(np.int16))
    source = Crops([piece], STEPS, transpositions=(0,))
    model = one_pass_chorale_model(STEPS, width=16, depth=1, heads=2)
    model.factorizations = bach_distil.one_pass_chorale(STEPS).factorizations
    made = bach_distil.drawn_from(model.eval(), source, 30, seconds=60.0, rows=9, seed=0, device="cpu")
    assert made.shape == (30, 4, STEPS)
    windows = [piece.pitch[:, at : at + STEPS] for at in (0, STEPS)]
    same = np.array([max((one == window).mean() for window in windows) for one in made])
    assert (same < 0.2).sum() >= 10  # a third from nothing: an untrained network hits hardly anything
    assert same.max() > 0.25
    assert ((made == REST) | ((made >= 30) & (made <= 86))).all()


def test_the_command_runs_from_end_to_end(tmp_path, monkeypatch) -> None:
    generator = np.random.default_rng(0)
    pieces = {part: (generator.integers(50, 70, (6, 40, 4))).tolist() for part in ("train", "valid")}
    (tmp_path / "jsb_chorales").mkdir()
    (tmp_path / "jsb_chorales" / "jsb16_train_valid.json").write_text(json.dumps(pieces))
    out = tmp_path / "out"
    command = ["bach_distil", "--smoke", "--data", str(tmp_path), "--out", str(out)]
    for number in range(2):
        monkeypatch.setattr(sys, "argv", [*command, "--teacher", str(number)])
        bach_distil.main()
    monkeypatch.setattr(sys, "argv", command)
    bach_distil.main()
    record = json.loads((out / "run.json").read_text())
    valid = record["valid"]
    assert len(valid["teachers"]) == 2
    assert valid["mean_law"] <= sum(valid["teachers"]) / 2
    rows = bach_model.held_out_rows(tmp_path / "jsb_chorales" / "jsb16_train_valid.json", 128)[128]
    assert int(rows.present.sum()) == 6 * 40 * 4  # every cell, once
    student = bach_distil.load_model(out / "student").eval()
    again = bach_model.nats_per_cell(bach_distil.resized(student, 128), rows, device="cpu", given_share=0.0)
    assert valid["joint"] == pytest.approx(again, abs=1e-6)
