"""The pages are doctests (``--doctest-glob='*.md'``): one torch thread, so that they run alike on every machine."""

import torch

torch.set_num_threads(1)
