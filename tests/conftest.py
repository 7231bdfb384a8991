"""Shared test set-up: one torch thread per worker, and a fresh generator from a seed."""

import signal

import pytest
import torch
from hypothesis import settings
from torch import Generator

torch.set_num_threads(1)
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # begun in the background: tests that interrupt would wait in vain
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("anyfill", deadline=None, max_examples=50, print_blob=True)
settings.load_profile("anyfill")


@pytest.fixture
def generator() -> Generator:
    """A CPU generator with a fixed seed: the same test, the same draws."""
    return torch.Generator().manual_seed(20261115)
