"""Shared test set-up: one torch thread per worker, and a fresh generator from a seed."""

import signal

import pytest
import torch
from hypothesis import settings
from torch import Generator, nn

from anyfill.likelihoods import Categorical, Gaussian
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer, Transformer
from anyfill.networks.network import Unspecified
from anyfill.questions import Factorization

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


class NormalJoint(nn.Module, Unspecified):
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
        return Model(NormalJoint(covariance, loading), Gaussian(), factorizations=[Factorization.ANY_ORDER])

    return make


@pytest.fixture(scope="session")
def tiny_model():
    """Makes a tiny model of codes with random weights, so that everything it could answer can be listed."""

    def make(
        codes: int = 3, length: int = 6, factorizations=(Factorization.DIRECT,), *, one_pass=True, seed=0
    ) -> Model:
        """A model of random, far from uniform, conditionals."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            kind = OnePassTransformer if one_pass else Transformer
            network = kind(Discrete(codes), (length,), codes, width=16, depth=1, heads=2)
            for weights in network.parameters():  # some begin as zero, and the network would hardly look around
                weights.data += 0.2 * torch.randn_like(weights)
        return Model(network, Categorical(codes), factorizations=factorizations).eval()

    return make


@pytest.fixture(scope="session")
def step_by_step():
    """log p of codes, place by place."""

    def value(model: Model, codes, given: int = 0) -> float:
        """log p(codes behind the first ``given`` | those), place by place: what one pass must agree with."""
        x = torch.zeros(1, model.variables, dtype=torch.int64)
        x[0, : len(codes)] = torch.as_tensor(codes)
        total = 0.0
        for place in range(given, len(codes)):
            known = torch.arange(model.variables).unsqueeze(0) < place
            with model.evaluating():
                total += float(model.marginals(x, known).log_prob(x)[0, place])
        return total

    return value
