"""The pages are doctests (``--doctest-glob='*.md'``): one torch thread, so that they run alike on every machine."""

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _a_folder_of_its_own(tmp_path, monkeypatch):
    """What a page writes goes to a temporary folder."""
    monkeypatch.chdir(tmp_path)
