"""MD4: masked diffusion (Shi et al. 2024, Simplified and Generalized Masked Diffusion for Discrete Data).

Time t runs from 0, where all is known, to 1, where nothing is. By the linear schedule each variable is masked by then
with probability t, and the bound in continuous time is

    -log p(x) <= E_{t ~ U(0, 1)} (1 / t) sum_{j masked} -log p(x_j | what is not masked).

The network is not told t, so given the mask t may be integrated out: a set of a variables is masked with density
t^a (1-t)^(N-a), and

    integral of t^(a-1) (1-t)^(N-a) dt  =  1 / (a C(N, a))  =  [1 / (N C(N, a))] (N / a):

a uniform size, a uniform set, weight N / a. That is ARDM's loss (``recipes.ardm``): any-order models and masked
diffusion are one family. What is left of MD4 is that the times of a batch are stratified, t_i = (u + i / B) mod 1,
which takes out of the loss the noise that comes of the sizes, and its network: one level, one attention in the middle,
a code of its own for "masked", a softmax for each sub-pixel.

Its own sampler lets every masked variable go at one of T steps drawn by itself; ``sampler`` takes T equal groups of a
random order, which have the same sizes in the mean and no empty step.
"""

from typing import Unpack

from anyfill.likelihoods.discrete import Categorical
from anyfill.likelihoods.marginals import Likelihood
from anyfill.model import Model, seeded
from anyfill.networks.embed import Discrete
from anyfill.networks.unet import UNet
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Rescaled
from anyfill.questions.order import Shuffled
from anyfill.questions.subsets import UniformCardinality
from anyfill.recipes.sfarm import UNetSizes
from anyfill.samplers.planned import Follow

SIZES: UNetSizes = {"width": 128, "blocks": 32, "attention": "middle", "dropout": 0.1}
"""The paper's network of CIFAR-10."""


def objective(variables: int) -> MaskedLoss:
    """The bound in nats per row, without bias; sizes stratified over the batch."""
    return MaskedLoss(UniformCardinality(variables, stratified=True), weights=Rescaled())


def image_model(
    shape: tuple[int, ...],
    codes: int = 256,
    likelihood: Likelihood | None = None,
    *,
    seed: int = 0,
    **sizes: Unpack[UNetSizes],
) -> Model:
    """An untrained model of images; sizes as for ``UNet``, by default the paper's."""
    likelihood = Categorical(codes) if likelihood is None else likelihood
    sizes = UNetSizes({**SIZES, **sizes})
    with seeded(seed):
        network = UNet(Discrete(codes), shape, likelihood.width, step="none", **sizes)
    return Model(network, likelihood)


def sampler(steps: int) -> Follow:
    """``steps`` equal groups of a random order."""
    return Follow(Shuffled(), groups=steps)
