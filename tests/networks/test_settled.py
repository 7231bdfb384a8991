"""A one-pass network whose context is settled: the same laws, from a network that takes none."""

import pytest
import torch
from torch import nn

from anyfill.networks import Discrete, OnePassGroups, OnePassTransformer
from anyfill.questions import Increasing, Question, chain_rank


def random(network: nn.Module) -> nn.Module:
    torch.manual_seed(5)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.3)
    return network.eval()


NETWORKS = {
    "pixels": lambda: OnePassGroups(Discrete(2), (4, 4), 1, 16, 2, 2, context_width=3),
    "patches": lambda: OnePassGroups(Discrete(2), (4, 4), 1, 16, 2, 2, context_width=3, patch=(2, 2)),
    "variables": lambda: OnePassTransformer(Discrete(2), (4, 4), 1, 16, 2, 2, context_width=3, periods=(2, 4)),
}


@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_it_gives_the_law_it_gave_when_told(name, generator) -> None:
    network = random(NETWORKS[name]())
    told = torch.tensor([0.0, 1.0, 0.5])
    settled = network.settled(told)
    assert settled.context_width == 0
    x = torch.randint(2, (5, 16), generator=generator)
    part = torch.randint(3, x.shape, generator=generator)
    rank = chain_rank(Increasing(), Question(part == 0, part == 1), generator=generator)
    asked = (part == 1).unsqueeze(-1)
    context = told.expand(5, -1)
    expected = network.chain(x, rank, context)
    assert torch.allclose(torch.where(asked, settled.chain(x, rank), 0), torch.where(asked, expected, 0), atol=1e-4)
    assert not torch.allclose(network.chain(x, rank, 2 * context)[asked], expected[asked], atol=1e-2)
    first, cache = settled.open(x, rank)
    opened, other = network.open(x, rank, context)
    assert torch.allclose(first, opened, atol=1e-4)
    value = x[:, 0]
    assert torch.allclose(settled.extend(value, cache)[0], network.extend(value, other)[0], atol=1e-4)
    before = network.target.tables[0].weight.clone()
    nn.init.zeros_(settled.target.tables[0].weight)
    assert torch.equal(network.target.tables[0].weight, before)  # nothing is shared


def test_a_context_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="context to settle"):
        NETWORKS["pixels"]().settled(torch.zeros(2))
    with pytest.raises(ValueError, match="context to settle"):
        OnePassGroups(Discrete(2), (4, 4), 1, 16, 1, 2).settled(torch.zeros(0))
