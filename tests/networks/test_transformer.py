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


@torch.no_grad()
@pytest.mark.parametrize("positions", ["learned", "relative", "rotary"])
def test_the_attention_read_out_is_what_the_blocks_attend_to(generator, positions) -> None:
    """Weights that mix the values as the block itself does; nobody reads a variable that attention says is not read."""
    net = Transformer(Discrete(4), (2, 3), 4, width=16, depth=2, heads=2, positions=positions).eval()
    for weights in net.parameters():
        torch.nn.init.normal_(weights, std=0.4, generator=generator)
    x = torch.randint(4, (3, 6), generator=generator)
    known = torch.rand(3, 6, generator=generator) < 0.5
    read = net.attention(x, known)
    assert read.shape == (2, 3, 2, 6, 6)
    torch.testing.assert_close(read.sum(-1), torch.ones(2, 3, 2, 6))
    h, turn, bias = net._enter(x, known, None)
    for block, weights in zip(net.blocks, read, strict=True):
        value = block.project(h, turn, turn)[2]
        torch.testing.assert_close(block.finish(h, weights @ value), block(h, turn, turn, bias))
        h = block(h, turn, turn, bias)
    torch.testing.assert_close(net.head(net.norm(h)), net(x, known))
