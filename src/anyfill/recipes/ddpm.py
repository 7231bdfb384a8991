"""DDPM (Ho et al. 2020) with RePaint (Lugmayr et al. 2022): completing pictures with a model that only denoises.

    objective   the simple loss: the noise in x_t, linear schedule 1e-4 … 0.02, 1,000 times
    model       the U-Net fed noise and told the time
    sampler     RePaint: 250 times, jumps of 10, 10 resamplings (2,410 calls)

Pictures are numbers from -1 to 1 here: ``scaled`` makes them of levels, ``levels_of`` levels of them. There are no
log-probabilities: the model says nothing of single values.
"""

from typing import Unpack

from torch import Generator, Tensor

from anyfill.corruption import NoiseSchedule
from anyfill.likelihoods.continuous import UnitGaussian
from anyfill.model import Model, seeded
from anyfill.networks.embed import Real
from anyfill.networks.unet import UNet
from anyfill.objectives.denoising import DenoisingLoss
from anyfill.questions.question import Question
from anyfill.recipes.sfarm import UNetSizes
from anyfill.samplers.loop import sample
from anyfill.samplers.repaint import RePaint


def objective(variables: int, *, times: int = 1000) -> DenoisingLoss:
    """The simple loss."""
    return DenoisingLoss(variables, NoiseSchedule(times))


def model(shape: tuple[int, ...], *, seed: int = 0, **sizes: Unpack[UNetSizes]) -> Model:
    """An untrained model of images (H, W) or (H, W, C); sizes as for ``UNet``."""
    with seeded(seed):
        network = UNet(Real(), shape, 1, step="context", **sizes)
    return Model(network, UnitGaussian())


def sampler(*, times: int = 250, jump: int = 10, resamplings: int = 10, schedule: int = 1000) -> RePaint:
    """RePaint for pictures, ``schedule`` being the times of training."""
    return RePaint(NoiseSchedule(schedule), times, jump, resamplings, clip=True)


def complete(model: Model, x: Tensor, given: Tensor, *, generator: Generator, policy: RePaint | None = None) -> Tensor:
    """x (B, N) with all that is not given (bool (B, N)) drawn; x is scaled."""
    question = Question(given, ~given)
    policy = sampler() if policy is None else policy
    return sample(model, x, question, policy=policy, generator=generator, allow_untrained=True).x


def scaled(x: Tensor, levels: int) -> Tensor:
    """float32: levels 0 … levels - 1 as numbers from -1 to 1."""
    return 2.0 * x.float() / max(levels - 1, 1) - 1.0


def levels_of(x: Tensor, levels: int) -> Tensor:
    """int64: the levels nearest to numbers from -1 to 1."""
    return ((x.clamp(-1, 1) + 1) * ((levels - 1) / 2)).round().long().clamp(0, levels - 1)
