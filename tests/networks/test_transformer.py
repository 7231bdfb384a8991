"""The flag of a transformer: SUNMASK's stretched mask."""

import math

import pytest
import torch

from anyfill.networks.embed import Discrete
from anyfill.networks.transformer import Transformer


def test_a_stretched_flag_stands_behind_the_value_divided_by_the_root_of_its_length(generator) -> None:
    net = Transformer(Discrete(4), (6,), 4, width=16, depth=1, heads=2, flag="stretched")
    seen: list[torch.Tensor] = []
    net.blocks[0].register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    x = torch.randint(4, (2, 6), generator=generator)
    known = torch.rand(2, 6, generator=generator) < 0.5
    net(x, known)
    token = seen[0] - net.place(torch.arange(6).unsqueeze(0))
    torch.testing.assert_close(token[..., :8], net.value.codes.weight[x])
    torch.testing.assert_close(token[..., 8:], (known / math.sqrt(8)).unsqueeze(-1).expand(-1, -1, 8).float())


@torch.no_grad()
def test_a_stretched_flag_serves_any_length(generator) -> None:
    net = Transformer(Discrete(4), (6, 2), 4, 16, 1, 2, periods=(4, 2), flag="stretched").resized((9, 2))
    assert net(torch.zeros(1, 18).long(), torch.zeros(1, 18).bool()).shape == (1, 18, 4)


def test_odd_widths_and_unknown_flags_are_refused() -> None:
    with pytest.raises(ValueError, match="flag"):
        Transformer(Discrete(4), (6,), 4, flag="painted")
    with pytest.raises(ValueError, match="even"):
        Transformer(Discrete(4), (6,), 4, width=15, heads=1, positions="learned", flag="stretched")
