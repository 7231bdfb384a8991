"""How to draw, and with how many threads."""

import os

import pytest
import torch

from anyfill.text import manner
from anyfill.text.options import Sampler


def test_the_command_line_names_all_samplers() -> None:
    assert tuple(one.value for one in Sampler) == manner.SAMPLERS


@pytest.mark.parametrize(("load", "threads"), [(0.2, 4), (5.9, 2), (7.9, 1), (40.0, 1)])
def test_threads_are_those_that_nobody_uses(monkeypatch: pytest.MonkeyPatch, load: float, threads: int) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    assert manner.free_threads() == threads
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert manner.free_threads() == 1
