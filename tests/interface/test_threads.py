"""Threads are measured, and put back."""

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
