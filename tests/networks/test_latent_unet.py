"""The halves of a U-Net as VAE and MIWAE on tiny images: all of them listed, and z of one dimension integrated out."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from anyfill.likelihoods import Bernoulli, Categorical, Likelihood, Pooled
from anyfill.model import Model
from anyfill.networks import Discrete, LatentUNet

CASES = {
    "2x2, black and white": ((2, 2), 2, Bernoulli()),
    "2x2, three levels": ((2, 2), 3, Categorical(3)),
    "2x3, black and white": ((2, 3), 2, Bernoulli()),
}


def halves(shape: tuple[int, ...], levels: int, likelihood: Likelihood, draws: int) -> LatentUNet:
    """Random weights, such that z matters and the encoder is wider than the posterior, but not exact."""
    torch.manual_seed(3)
    net = LatentUNet(Discrete(levels), shape, likelihood, latent=1, draws=draws, width=8, blocks=1)
    for parameter in net.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.35 / np.sqrt(parameter[0].numel() / 8))
    return net.eval()


def listed(net: LatentUNet, levels: int) -> tuple[Tensor, Tensor]:
    """All images, and p(image) by Gauss and Hermite's rule in float64: the sum over z_k of w_k p(image | z_k)."""
    images = torch.tensor(list(itertools.product(range(levels), repeat=net.variables)))
    points, weights = np.polynomial.hermite_e.hermegauss(80)
    params = net.decode(torch.tensor(points, dtype=torch.float32)[:, None])  # (80, N, P)
    log_p = torch.stack(
        [net.likelihood(params[:, None]).log_prob(image.expand(len(points), 1, -1)).sum((1, 2)) for image in images], 1
    )
    share = torch.tensor(weights / weights.sum())
    return images, (share[:, None] * log_p.double().exp()).sum(0)


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_the_evidence_of_any_part_tends_to_that_of_the_listed_images(name: str) -> None:
    shape, levels, likelihood = CASES[name]
    net = halves(shape, levels, likelihood, 8)
    images, p = listed(net, levels)
    assert float(p.sum()) == pytest.approx(1.0, abs=1e-6)
    assert float(p.max() / p.min()) > 3  # the images differ
    known = torch.rand(len(images), net.variables, generator=torch.Generator().manual_seed(0)) < 0.5
    alike = ((images[:, None] == images) | ~known[:, None]).all(2)  # (row, image): the same where it is known
    wanted = (alike.double() @ p).log()
    errors = [float((net.log_evidence(images, known, draws).double() - wanted).abs().mean()) for draws in (8, 4096)]
    assert errors[1] < 0.03
    assert errors[1] < errors[0] / 8  # the root of 512 is 23


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_the_answer_tends_to_the_conditional_of_the_listed_images(name: str) -> None:
    shape, levels, likelihood = CASES[name]
    errors: list[float] = []
    for draws in (8, 4096):
        net = halves(shape, levels, likelihood, draws)
        images, p = listed(net, levels)
        known = torch.rand(len(images), net.variables, generator=torch.Generator().manual_seed(0)) < 0.5
        alike = ((images[:, None] == images) | ~known[:, None]).all(2).double() * p
        law = Model(net, Pooled(likelihood, draws, weighted=True)).marginals(images, known)
        own = law.log_prob(images).double()  # of the value that each variable has
        same = (images[:, None] == images).double()  # (row, image, variable)
        wanted = ((alike[:, :, None] * same).sum(1) / alike.sum(1, keepdim=True)).log()
        errors.append(float((own - wanted).abs()[~known].mean()))
    assert errors[1] < 0.01
    assert errors[1] < errors[0] / 4
