"""Seen as blocks or by a mask: the same answers; a length that was looked up before changes nothing."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

from anyfill.networks import Discrete, OnePassGroups, group_chain
from anyfill.networks.sight import attend, prefix_blocks, prefix_mask
from anyfill.questions import Increasing, Question, chain_rank

LENGTHS = [100, 128, 256, 300, 392]


def told_of(length: int) -> torch.Tensor:
    """Nothing, a few, around the edges of blocks, all."""
    return torch.tensor([[0], [5], [127], [128], [129], [length // 2], [length - 1], [length]]).clamp(max=length)


@pytest.mark.parametrize("length", LENGTHS)
def test_blocks_and_mask_answer_alike(length, generator) -> None:
    told = told_of(length)
    query, key, value = (torch.randn(len(told), 2, length, 8, generator=generator) for _ in range(3))
    by_mask = attend(query, key, value, prefix_mask(told, length).unsqueeze(1))
    torch.testing.assert_close(attend(query, key, value, prefix_blocks(told, length)), by_mask, atol=1e-5, rtol=0)


@pytest.mark.parametrize("length", LENGTHS)
def test_no_block_is_listed_that_nobody_sees_nor_called_whole_that_is_not(length) -> None:
    """Against torch's own listing, which looks at every entry of the mask."""
    told = told_of(length)
    ours = prefix_blocks(told, length)
    theirs = create_block_mask(
        lambda b, h, query, key: (key <= query) | (key < told[b, 0]), len(told), None, length, length, device="cpu"
    )
    for name in ("kv_num_blocks", "full_kv_num_blocks", "q_num_blocks", "full_q_num_blocks"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name)), name
    assert torch.equal(ours.to_dense(), theirs.to_dense())


@pytest.mark.parametrize(("shape", "patch"), [((6, 6), (1, 1)), ((4, 4), (2, 2))])
@torch.no_grad()
def test_a_strict_chain_in_blocks_or_with_room_reserved_is_the_chain(shape, patch, generator, monkeypatch) -> None:
    torch.manual_seed(2)
    net = OnePassGroups(Discrete(3), shape, 3, 24, 2, 3, patch=patch).eval()
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    x = torch.randint(3, (5, net.variables), generator=generator)
    part = torch.randint(3, x.shape, generator=generator)
    rank = chain_rank(Increasing(), Question(part == 0, part == 1), then_ignored=True)
    plain = net.chain(x, rank)
    monkeypatch.setattr(group_chain, "_MANY", 1)
    net.in_blocks = True
    torch.testing.assert_close(net.chain(x, rank, strict=True), plain, atol=1e-5, rtol=0)
    net.reserved = net.room(rank)
    monkeypatch.setattr(OnePassGroups, "room", None)  # nothing is looked up any more
    torch.testing.assert_close(net.chain(x, rank, strict=True), plain, atol=1e-5, rtol=0)
    assert (net.reserved is None) == (patch == (1, 1))
