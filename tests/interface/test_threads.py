"""Threads are measured, and put back."""

import os

import pytest
import torch

from anyfill.interface import threads as module
from anyfill.interface.threads import best_threads, threads


def test_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("seconds", "best"),
    [({1: 1.0, 2: 0.5, 4: 0.3}, 4), ({1: 1.0, 2: 0.9, 4: 0.1}, 1), ({1: 1.0, 2: 0.6, 4: 0.6}, 2)],
)
def test_more_threads_only_where_they_are_worth_it(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], best: int
) -> None:
    monkeypatch.setattr(module, "_seconds", lambda work, count, repeats: seconds[count])
    with threads(4):
        assert best_threads(lambda: None) == best


def test_measuring_leaves_the_setting_alone() -> None:
    before = torch.get_num_threads()
    assert 1 <= best_threads(lambda: torch.ones(10).sum()) <= before
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("load", "threads"), [(0.2, 4), (5.9, 2), (7.9, 1), (40.0, 1)])
def test_threads_are_those_that_nobody_uses(monkeypatch: pytest.MonkeyPatch, load: float, threads: int) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    assert module.free_threads() == threads
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert module.free_threads() == 1
