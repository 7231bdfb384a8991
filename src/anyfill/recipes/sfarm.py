"""SFARM (Flexible Conditional Generation with Stochastically Factorized Autoregressive Models).

The order in which variables are activated is itself random, a mixture of modes, and the loss is one uniform step of it
with the choice of the next variable averaged out (eq. 8 to 10):

    objective  random mode and two-stage modes, all equally likely; without regions this is ARDM (eq. 11)
    model      the paper's network for tables: an MLP of 3 layers of 32 units that sees the step, with Gaussians
    options    the paper's training for tables: Adam at 1e-3, batches of 100, 2000 epochs

On images (``image_objective``, ``image_model``) all seven modes are used, with fixed borders or random ones. The
paper's network is told the mode: ``told="mode"``. Instead it may see how much of each mode's region is known:
``told="shares"``, which needs no mode when it is asked. ``in_mode`` gives the model that answers in one mode, the
random one if none is named, as the paper evaluates.

For evaluation the mode is fixed to the random one and K orders are averaged (eq. 14): ``log_prob(..., orders=K)``. To
sample a mode's way, follow ``anyfill.questions.InStages``.
"""

from collections.abc import Sequence
from typing import Literal, TypedDict, Unpack, cast

from anyfill.checks import refuse
from anyfill.likelihoods import Categorical, Gaussian, Likelihood
from anyfill.likelihoods import Mixed as MixedColumns
from anyfill.likelihoods.logistic import LogisticMixture
from anyfill.model import Model, seeded
from anyfill.networks.context import FixedContext
from anyfill.networks.coupled import CoupledChannels, coupled_width
from anyfill.networks.embed import Cycle, Discrete, Mixed, Real
from anyfill.networks.mlp import MLPSizes, PlainMLP, WithCounts, count_features
from anyfill.networks.unet import UNet
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.modal import ModalLoss
from anyfill.objectives.objective import Stepwise
from anyfill.questions.mixture import Mixture, Region, Staged, directions, patches
from anyfill.questions.modes import MODES, Mode, Modes, PerPixel
from anyfill.questions.subsets import UniformCardinality
from anyfill.recipes import ardm
from anyfill.training.options import FitOptions


def objective(variables: int, regions: Sequence[Region] = ()) -> MaskedLoss:
    """The random mode, and for each region the mode that activates it first.

    Args:
        variables: N.
        regions: for each further mode, whether each variable belongs to its first stage (groups of columns, or
            ``questions.directions`` and ``questions.patches`` of an image).
    """
    if not regions:
        return ardm.objective(variables)
    modes = (UniformCardinality(variables), *(Staged(region) for region in regions))
    return MaskedLoss(Mixture(modes), weights=Stepwise())


def model(
    sizes: Sequence[int],
    *,
    cycles: Sequence[Cycle] = (),
    regions: Sequence[Region] = (),
    likelihood: Likelihood | None = None,
    frequencies: int = 8,
    seed: int = 0,
    **layers: Unpack[MLPSizes],
) -> Model:
    """An untrained model of a table.

    Args:
        sizes: how many codes each variable has, 0 = a number.
        cycles: of numbers that go round.
        regions: those of the objective, so that the network sees how much of each is known.
        likelihood: by default a Gaussian for each number and a categorical for each code.
        frequencies: of the embedding of the step.
        seed: of the first weights.
        layers: units of a hidden layer (``width``, 32), how many there are (``depth``, 3), and ``dropout`` after each.
    """
    codes = tuple(sizes)
    if likelihood is None:
        number = Gaussian()
        columns = tuple(Categorical(size) if size else number for size in codes)
        likelihood = MixedColumns(columns) if any(codes) else number
    masks = tuple(Staged(region).region for region in regions)
    with seeded(seed):
        network = PlainMLP(
            Mixed(codes, tuple(cycles)) if any(codes) or cycles else Real(),
            len(codes),
            likelihood.width,
            context_width=count_features(len(masks), frequencies),
            **layers,
        )
    return Model(WithCounts(network, masks, frequencies), likelihood)


class UNetSizes(TypedDict, total=False):
    """Sizes of a ``UNet``, by the names it has for them."""

    width: int
    levels: int
    blocks: int
    attention: Literal["middle", "every"]
    base: int
    dropout: float


SIZES: dict[str, UNetSizes] = {
    "28x28": {"width": 32, "base": 32, "levels": 1, "blocks": 4},
    "32x32": {"width": 128, "base": 256, "levels": 1, "blocks": 32},
    "64x64": {"width": 128, "base": 256, "levels": 2, "blocks": 16},
}
"""The paper's networks (Table 4), by the pictures they are for."""


def image_objective(
    shape: tuple[int, ...],
    *,
    borders: Literal["fixed", "random"] = "fixed",
    told: Literal["mode", "shares"] = "mode",
    modes: tuple[Mode, ...] = MODES,
    coupled: bool = False,
) -> MaskedLoss:
    """A uniform step of a mode, weighted S / candidates; elements are pixels, whatever their channels.

    Args:
        shape: (H, W) or (H, W, C).
        borders: see ``questions.Modes``.
        told: what the network is told, as for the model.
        modes: which of the seven.
        coupled: the model's channels are coupled: a pixel's nats are joint.
    """
    pixels = Modes(shape[0], shape[1], borders, modes)
    channels = (*shape, 1)[2]
    questions = pixels if channels == 1 else PerPixel(pixels, channels)
    loss = ModalLoss if told == "mode" else MaskedLoss
    return loss(questions, Stepwise(), within=coupled)


def image_model(
    shape: tuple[int, ...],
    codes: int,
    likelihood: Likelihood,
    *,
    told: Literal["mode", "shares", "nothing"] = "mode",
    modes: int = len(MODES),
    coupled: bool = False,
    seed: int = 0,
    **sizes: Unpack[UNetSizes],
) -> Model:
    """An untrained model of images: the U-Net, told the step and the mode, or shares; ``SIZES`` has the paper's.

    Args:
        shape: (H, W) or (H, W, C).
        codes: values 0 … codes - 1.
        likelihood: of a single value; the paper's are Bernoulli, and mixtures of logistics.
        told: "nothing" beside the step makes it ARDM's network.
        modes: how many there are to be told.
        coupled: couple the channels of a pixel; needs a ``LogisticMixture``.
        seed: of the first weights.
        sizes: of the network.
    """
    channels = (*shape, 1)[2]
    outputs = likelihood.width
    if coupled:
        if not isinstance(likelihood, LogisticMixture) or channels < 2:
            raise refuse("coupled", expected="a LogisticMixture and several channels", got=f"{likelihood}, {channels}")
        outputs = coupled_width(likelihood.components, channels)
    height, width = shape[:2]
    pixels = (*directions((height, width)), *patches((height, width)))
    regions = tuple(tuple(one for one in region for _ in range(channels)) for region in pixels)
    side = count_features(len(regions)) if told == "shares" else 0
    with seeded(seed):
        step = "none" if told == "shares" else "known"
        network = UNet(
            Discrete(codes), shape, outputs, step=step, modes=modes if told == "mode" else 0, side=side, **sizes
        )
    whole = WithCounts(network, regions) if told == "shares" else network
    if coupled:
        whole = CoupledChannels(whole, cast(LogisticMixture, likelihood), channels)
    return Model(whole, likelihood)


def in_mode(model: Model, mode: Mode = "random", modes: tuple[Mode, ...] = MODES) -> Model:
    """The model that answers in one mode: the same weights, the mode told beforehand."""
    if mode not in modes:
        raise refuse("mode", expected=" or ".join(modes), got=repr(mode))
    context = tuple(float(one == mode) for one in modes)
    network = model.network
    if isinstance(network, CoupledChannels):  # coupling stays outermost: it asks for whole pixels
        inner: object = CoupledChannels(FixedContext(network.network, context), network.likelihood, network.channels)
    else:
        inner = FixedContext(network, context)
    told = Model(
        cast(UNet, inner),
        model.likelihood,
        corruption=model.corruption,
        order=model.order,
        factorizations=model.factorizations,
    )
    return told.to(next(network.parameters()).device)  # the mode goes to where the weights are


def options(rows: int, *, epochs: int = 2000, batch_size: int = 100, seed: int = 0) -> FitOptions:
    """The paper's training on so many rows; a constant rate, since it names no schedule."""
    return FitOptions(
        steps=max(1, epochs * rows // batch_size),
        batch_size=batch_size,
        learning_rate=1e-3,
        warmup_steps=0,
        schedule="constant",
        optimizer="adam",
        betas=(0.9, 0.999),
        weight_decay=0.0,
        clip_norm=None,
        seed=seed,
    )
