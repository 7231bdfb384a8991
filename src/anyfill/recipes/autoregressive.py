"""Plain autoregression for translation: the teacher of sequence-level distillation, and the honest rival.

    log p(target | source) = sum_t log p(w_t | w_1 … w_{t-1}, source),   END the last word

The row has no length: END says where it ends. A student with a deep encoder and one layer of a decoder (12 + 1, Kasai
et al. 2021) costs little a word and is what parallel decoding has to beat on a CPU. Beam search is
``samplers.beam_search(..., end=END)``.
"""

from typing import Any

from anyfill.likelihoods import Categorical
from anyfill.model import Model, seeded
from anyfill.networks.decoders import CausalDecoder
from anyfill.networks.encoder_decoder import END
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.order import Increasing
from anyfill.questions.subsets import UniformSplits
from anyfill.samplers.cached import CachedChain
from anyfill.samplers.draw import Draw


def objective(length: int, *, smoothing: float = 0.1) -> OnePassLoss:
    """Nats of every word given those before it, END included; labels smoothed by 0.1."""
    return OnePassLoss(UniformSplits(length + 1), Increasing(), joint_share=1.0, smoothing=smoothing)


def model(codes: int, length: int, *, seed: int = 0, **size: Any) -> Model:
    """An untrained model of targets of at most ``length`` words and END; sizes as in ``recipes.padir.model``."""
    with seeded(seed):
        network = CausalDecoder(codes, length, **size)
    return Model(network, Categorical(codes))


def deep_shallow(codes: int, length: int, *, depth: int = 12, seed: int = 0, **size: Any) -> Model:
    """``model`` with a deep encoder and a decoder of one layer."""
    return model(codes, length, depth=depth, decoder_depth=1, seed=seed, **size)


def sampler() -> tuple[CachedChain, Draw]:
    """One by one from the cache, by argmax, until END."""
    return CachedChain(end=END), Draw(temperature=0.0)
