"""A normal joint as a network, by partitioned covariances: the yardstick for real targets."""

import pytest
import torch
from torch import nn

from anyfill.likelihoods import Gaussian
from anyfill.model import Model
from anyfill.questions import Reading


class NormalJoint(nn.Module):
    """N(0, covariance) over N variables; answers every conditional exactly. With ``loading`` also q(z | known)."""

    def __init__(self, covariance, loading=None):
        super().__init__()
        self.register_buffer("covariance", covariance.double())
        self.variables, self.outputs = len(covariance), 2
        self.loading = None if loading is None else loading.double()

    def solved(self, x, known, cross):
        """Mean and variance (B, D) of variables whose covariance with the row is ``cross`` (D, N), given the known."""
        both = known[:, :, None] & known[:, None, :]
        inside = torch.where(both, self.covariance, torch.eye(self.variables).double())
        told = torch.where(known[:, None, :], cross, 0.0)
        weights = torch.linalg.solve(inside, told.mT)  # (B, N, D)
        values = torch.where(known, x.double(), 0.0)
        return (values[:, :, None] * weights).sum(1), (told.mT * weights).sum(1)

    def forward(self, x, known, context=None):
        mean, explained = self.solved(x, known, self.covariance)
        return Gaussian().params(mean, (self.covariance.diagonal() - explained).clamp(min=1e-6).sqrt())

    def posterior(self, x, known):
        mean, explained = self.solved(x, known, self.loading[None])
        return mean, (1.0 - explained).sqrt()

    def information(self, given, target, j):
        """I(x_target; x_j | x_given) in nats: half the log of a ratio of determinants."""

        def left(known):
            block = self.covariance[target][:, target]
            if known:
                cross = self.covariance[target][:, known]
                block = block - cross @ torch.linalg.solve(self.covariance[known][:, known], cross.T)
            return float(torch.logdet(block))

        return 0.5 * (left(given) - left([*given, j]))


@pytest.fixture
def normal_model():
    """Makes a model of N(0, covariance), by default of random correlations."""

    def make(covariance=None, *, seed=0, variables=5, loading=None):
        if covariance is None:
            factor = torch.randn(variables, variables, generator=torch.Generator().manual_seed(seed)).double()
            covariance = factor @ factor.T + 0.5 * torch.eye(variables).double()
            scale = covariance.diagonal().sqrt()
            covariance = covariance / scale / scale[:, None]
        return Model(NormalJoint(covariance, loading), Gaussian(), readings=[Reading.ANY_ORDER])

    return make
