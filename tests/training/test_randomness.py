"""Draws are functions of (seed, step): no state, no trace."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.training import data
from anyfill.training.data import RowStream, derive, global_seed

CPU = torch.device("cpu")


def test_seeds_of_different_purposes_steps_and_processes_differ() -> None:
    seeds = {
        derive(seed, purpose, step, process)
        for seed in range(5)
        for purpose in ("questions", "noise")
        for step in range(20)
        for process in range(3)
    }
    assert len(seeds) == 5 * 2 * 20 * 3
    assert derive(1, "a", 11) != derive(1, "a", 1, 1)
    assert all(0 <= seed < 2**63 for seed in seeds)


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 1000))
def test_every_epoch_reads_every_row_once(length: int, batch: int, seed: int) -> None:
    stream = RowStream(length, batch, seed, CPU)
    steps = -(-3 * length // batch)
    read = torch.cat([stream.index(step) for step in range(steps)])[: 3 * length].view(3, length)
    assert torch.equal(read.sort(1).values, torch.arange(length).expand(3, length))


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 20))
def test_a_step_reads_the_same_rows_whatever_was_read_before(length: int, batch: int, step: int) -> None:
    fresh = RowStream(length, batch, 7, CPU)
    used = RowStream(length, batch, 7, CPU)
    for earlier in range(step):
        used.index(earlier)
    assert torch.equal(fresh.index(step), used.index(step))


def test_epochs_and_seeds_have_their_own_permutations() -> None:
    stream, other = RowStream(50, 50, 0, CPU), RowStream(50, 50, 1, CPU)
    assert not torch.equal(stream.index(0), stream.index(1))
    assert not torch.equal(stream.index(0), other.index(0))


def test_position_says_how_far_into_which_epoch_a_run_is() -> None:
    assert RowStream(10, 4, 0, CPU).position(7) == (2, 8)


def test_very_many_rows_are_drawn_without_building_a_permutation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_LARGEST_EPOCH", 20)
    monkeypatch.setattr(torch, "randperm", None)
    index = RowStream(1000, 64, 0, CPU).index(3)
    assert index.shape == (64,)
    assert int(index.min()) >= 0
    assert int(index.max()) < 1000


def test_global_seed_fixes_the_draws_inside_and_leaves_those_outside_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with global_seed(CPU, 1):
        first = torch.rand(3)
    with global_seed(CPU, 1):
        second = torch.rand(3)
    assert torch.equal(first, second)
    assert torch.equal(torch.rand(3), expected)
