"""CMLM: the conditional masked language model and mask-predict (Ghazvininejad et al. 2019), for translation.

A uniform number of the words is masked, any of them alike, and predicted from the others and the source:

    loss   - sum_{i masked} log p(x_i | the others, n, source)  -  log p(n | source)

The number masked is uniform on 0 … n, all of them included, which is the first thing asked in decoding; the released
code draws from 1 … L - 1 with END counted, so that everything is never masked. Rows with nothing masked train the
length alone. Decoding masks the least probable words again (``samplers.MaskPredict``).
"""

from typing import Any

from anyfill.corruption import Absorbing, Headed
from anyfill.likelihoods import Categorical
from anyfill.model import Model, seeded
from anyfill.networks.encoder_decoder import EncoderDecoder
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import HeadCounts, Sum
from anyfill.questions.subsets import Bernoulli, HeadGiven
from anyfill.samplers.draw import Draw
from anyfill.samplers.parallel import MaskPredict


def objective(length: int, *, length_weight: float = 1.0, smoothing: float = 0.1) -> MaskedLoss:
    """Nats of the masked words, labels smoothed by 0.1 as in the paper, and of the length."""
    return MaskedLoss(HeadGiven(Bernoulli(length)), HeadCounts(Sum(), length_weight), smoothing=smoothing)


def model(codes: int, length: int, *, positional: bool = False, seed: int = 0, **size: Any) -> Model:
    """An untrained model of targets of at most ``length`` words; arguments as in ``recipes.padir.model``."""
    with seeded(seed):
        network = EncoderDecoder(codes, length, positional=positional, **size)
    return Model(network, Categorical(codes), corruption=Headed(Absorbing()))


def sampler(passes: int = 10) -> tuple[MaskPredict, Draw]:
    """Mask-predict in T passes, by argmax."""
    return MaskPredict(passes), Draw(temperature=0.0)
