"""ACE (Strauss and Oliva: Arbitrary Conditional Distributions with Energy), and ACE with MAC's masks (MAC, appendix D).

    objective      a uniform number of variables is asked, the rest is given (as in ARDM); the sum over the asked ones
    objective_mac  the same loss on the known sets of MAC's edges; inference then follows w, and answers conditionals
                   as differences of marginals. Only the masks and the protocol differ, as in MAC's comparison.
    model          proposal and energy networks in the paper's sizes

The released code's settings (lupalab/ace, configs): Adam; POWER batch 512, rate 1e-4, dropout 0.2, regularisation 1,
noise of scale 0.005 on the data; BSDS batch 2048, rate 1e-3, dropout 0.2, a proposal network of width 1024.
"""

from collections.abc import Sequence
from typing import Unpack

from anyfill.likelihoods.energy import EnergyMixture, EnergySizes
from anyfill.model import Model, seeded
from anyfill.networks.embed import Cycle, Mixed, Real
from anyfill.networks.mlp import ResidualMLP
from anyfill.objectives.masked import SampledNormaliser
from anyfill.questions.mac import MacEdges, TheRest
from anyfill.questions.order import Increasing
from anyfill.questions.question import Order
from anyfill.questions.subsets import UniformCardinality


def objective(variables: int, *, samples: int = 20, regularisation: float = 0.0) -> SampledNormaliser:
    """For any order: uniform size, uniform subset."""
    questions = UniformCardinality(variables)
    return SampledNormaliser(questions, samples=samples, regularisation=regularisation)


def objective_mac(
    variables: int, order: Order | None = None, *, samples: int = 20, regularisation: float = 0.0
) -> SampledNormaliser:
    """For marginals in the order w (by position): all unknown variables of a random edge, summed as ACE does."""
    questions = TheRest(MacEdges(variables, Increasing() if order is None else order))
    return SampledNormaliser(questions, samples=samples, regularisation=regularisation)


def model(
    sizes: Sequence[int],
    *,
    cycles: Sequence[Cycle] = (),
    width: int = 512,
    depth: int = 4,
    dropout: float = 0.0,
    order: Order | None = None,
    seed: int = 0,
    **energy: Unpack[EnergySizes],
) -> Model:
    """An untrained ACE model.

    Args:
        sizes: how many codes each variable has, 0 = a number.
        cycles: of numbers that go round.
        width, depth: hidden units and residual blocks of the proposal network.
        dropout: rate in both networks.
        order: the protocol w.
        seed: of the first weights.
        energy: sizes of the energy network and of the proposal's mixtures, see ``EnergyMixture``.
    """
    codes = tuple(sizes)
    kind = Mixed(codes, tuple(cycles)) if any(codes) or cycles else Real()
    with seeded(seed):
        likelihood = EnergyMixture(len(codes), codes if any(codes) else (), dropout=dropout, **energy)
        network = ResidualMLP(kind, len(codes), likelihood.width, width=width, depth=depth, dropout=dropout)
    return Model(network, likelihood, order=order)
