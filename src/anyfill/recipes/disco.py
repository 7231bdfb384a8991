"""DisCo: disentangled context (Kasai et al. 2020), for translation.

Every word is predicted from a random set of the others, each from its own, all in one pass (``DisentangledDecoder``).
Here the sets of a row come from one random order: word i sees those before it,

    loss   - log p(n | source) - sum_i log p(x_i | {x_j : j before i}, n, source)

so each set is uniform in its size and uniform given its size, as in the paper; those of a row are nested, where the
paper draws them apart. The expected loss is the same, and it is the exact chain of an order: log p(target | source) is
one pass, whatever the order. Decoding is easy-first, or mask-predict.
"""

from typing import Any

from anyfill.likelihoods import Categorical
from anyfill.model import Model, seeded
from anyfill.networks.decoders import DisentangledDecoder
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.order import HeadFirst, Shuffled
from anyfill.questions.subsets import UniformSplits
from anyfill.samplers.draw import Draw
from anyfill.samplers.parallel import EasyFirst

ORDER = HeadFirst(Shuffled())
"""The length, then the words in any order."""


def objective(length: int, *, smoothing: float = 0.0) -> OnePassLoss:
    """Nats of the length and of every word given those before it in a random order."""
    return OnePassLoss(UniformSplits(length + 1), ORDER, joint_share=1.0, smoothing=smoothing)


def model(codes: int, length: int, *, seed: int = 0, **size: Any) -> Model:
    """An untrained model of targets of at most ``length`` words; sizes as in ``recipes.padir.model``."""
    with seeded(seed):
        network = DisentangledDecoder(codes, length, **size)
    return Model(network, Categorical(codes), order=ORDER)


def sampler(passes: int = 10) -> tuple[EasyFirst, Draw]:
    """Easy-first in at most T passes, by argmax."""
    return EasyFirst(passes), Draw(temperature=0.0)
