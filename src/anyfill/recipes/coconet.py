"""Coconet (Huang et al. 2017), as SUNMASK's Table 1 has it: see there how the two compare."""

from anyfill.likelihoods import Categorical
from anyfill.model import Model, seeded
from anyfill.networks.convolutions import Coconet
from anyfill.networks.embed import Discrete
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import RescaledEveryone
from anyfill.questions.subsets import UniformCardinality
from anyfill.samplers.annealed import AnnealedGibbs
from anyfill.samplers.draw import Draw


def objective(variables: int) -> MaskedLoss:
    """Loss on every cell, times n / (number of unknown ones)."""
    return MaskedLoss(UniformCardinality(variables), RescaledEveryone())


def model(codes: int, shape: tuple[int, int], *, width: int = 128, depth: int = 64, seed: int = 0) -> Model:
    """Coconet, untrained, on a grid (steps, voices); 9.1 M parameters by default, the paper's size, for 58 codes."""
    with seeded(seed):
        network = Coconet(Discrete(codes), shape, codes, width=width, depth=depth)
    return Model(network, Categorical(codes))


def sampler(rounds: int = 512, *, temperature: float = 0.99) -> tuple[AnnealedGibbs, Draw]:
    """Coconet's own: as many rounds as there are cells, values drawn as they are, nearly."""
    return AnnealedGibbs(rounds), Draw(temperature=temperature)
