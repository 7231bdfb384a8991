"""SUNMASK, SUNDAE and Coconet: three rows of one table, and that table is the paper's Table 1.

                                 SUNMASK                Coconet              SUNDAE          where it stands here
    mask input to model          yes                    yes                  no              corruption, network
    masked loss                  yes: Damped            no                   no: Everyone    weights
    re-weighted loss             1 / (1 + a)            n / a                no              weights
    unrolled loss                2                      1                    2               objective
    inference mask schedule      Anneal                 Anneal               no              policy
    sampling rejection step      Rewrite, a triangle    no: AnnealedGibbs    Rewrite .3      policy
    mask control preserves data  Uniform               no: Absorbing           no: not told    corruption

Questions: SUNMASK and SUNDAE ask each cell by a coin whose rate is uniform for each row, Coconet a uniform number.

Networks of chorales serve any length. Their sizes are ours, a few million parameters (the paper's U-Net has 417.5 M).
The transformer's relative attention is rotary: a query and a key meet through their offset in time and voice alone, as
in the paper, at any length and without a bias for every pair of cells in memory.
"""

from collections.abc import Callable
from typing import Literal

import torch

from anyfill.checks import refuse
from anyfill.corruption import Absorbing, Corruption, Uniform
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.coconet import Coconet
from anyfill.networks.embed import Discrete
from anyfill.networks.network import Network
from anyfill.networks.transformer import Transformer
from anyfill.networks.unet import AttentionalUNet
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Damped, Everyone, RescaledEveryone
from anyfill.questions.subsets import Bernoulli, UniformCardinality
from anyfill.samplers.annealed import Anneal, AnnealedGibbs, Rewrite
from anyfill.samplers.draw import Draw

CODES, VOICES, BAR = 58, 4, 16
SUNMASK_VARIANTS = ("", "A", "T", "N", "AT", "AN", "TN", "ATN")
"""Active balance, typical sampling, noise."""
SUNDAE_VARIANTS = ("", "A", "T", "AT")


def sunmask(variables: int, *, redraw_given: bool = False) -> MaskedLoss:
    """Section 2: loss on the unknown cells only, damped by their number, over two steps with the same mask.

    ``redraw_given`` lets the second step see answers in given places too, as the released code does; but the loss never
    trains those answers.
    """
    return MaskedLoss(Bernoulli(variables), Damped(), unroll=2, redraw_given=redraw_given)


def sundae(variables: int, *, unroll: int = 2) -> MaskedLoss:
    """Loss on every cell, alike, over two steps or three; the second sees nothing but the first one's answers."""
    return MaskedLoss(Bernoulli(variables), Everyone(), unroll=unroll, redraw_given=True)


def coconet(variables: int) -> MaskedLoss:
    """Loss on every cell, times n / (number of unknown ones)."""
    return MaskedLoss(UniformCardinality(variables), RescaledEveryone())


def sunmask_unet_model(
    steps: int = 128, *, width: int = 64, repeats: int = 3, dropout: float = 0.0, period: int = BAR, seed: int = 0
) -> Model:
    """SMc, untrained; 9.4 M parameters by default. ``period=0``: not told the place in the bar, as in the paper."""
    return _model(_unet(steps, width, repeats, dropout, period), Uniform(CODES), seed)


def sunmask_transformer_model(
    steps: int = 128, *, width: int = 256, depth: int = 8, heads: int = 8, dropout: float = 0.1, seed: int = 0
) -> Model:
    """SMt, untrained; 6.3 M parameters by default."""
    return _model(_transformer(steps, width, depth, heads, dropout), Uniform(CODES), seed)


def sundae_model(
    steps: int = 128,
    *,
    network: Literal["unet", "transformer"] = "unet",
    width: int | None = None,
    dropout: float = 0.0,
    seed: int = 0,
) -> Model:
    """SD, untrained: the networks of SMc or SMt, not told which cells to trust."""
    if network not in ("unet", "transformer"):
        raise refuse("network", expected="'unet' or 'transformer'", got=repr(network))
    if network == "unet":
        return _model(_unet(steps, width or 64, 3, dropout, BAR), Uniform(CODES, mask_visible=False), seed)
    return _model(_transformer(steps, width or 256, 8, 8, dropout), Uniform(CODES, mask_visible=False), seed)


def coconet_model(steps: int = 128, *, width: int = 128, depth: int = 64, seed: int = 0) -> Model:
    """Coconet, untrained; 9.1 M parameters by default, the paper's size."""
    shape = (steps, VOICES)
    return _model(lambda: Coconet(Discrete(CODES), shape, CODES, width=width, depth=depth), Absorbing(), seed)


def sunmask_variant(
    letters: str = "T", *, rounds: int = 1024, temperature: float = 0.6, values: int = 3, voices: int = VOICES
) -> tuple[Rewrite, Draw]:
    """A row of Table 2 by its letters: "" = SM, "A", "T", "AT", "ATN" and so on.

    Without T the ``values`` most probable values are drawn from, with it the most typical ones.
    """
    _check_letters(letters, SUNMASK_VARIANTS)
    policy = Rewrite(rounds, trust=Anneal(), balanced="A" in letters, noisy="N" in letters, voices=voices)
    return policy, _draw(letters, temperature, values)


def sundae_variant(
    letters: str = "", *, rounds: int = 1024, temperature: float = 0.8, values: int = 3, share: float = 0.3
) -> tuple[Rewrite, Draw]:
    """SD, SD-A, SD-T or SD-AT; there is no N, because nothing is distrusted."""
    _check_letters(letters, SUNDAE_VARIANTS)
    return Rewrite(rounds, share=share, balanced="A" in letters), _draw(letters, temperature, values)


def coconet_sampler(rounds: int = 512, *, temperature: float = 0.99) -> tuple[AnnealedGibbs, Draw]:
    """Coconet's own: as many rounds as there are cells, values drawn as they are, nearly."""
    return AnnealedGibbs(rounds), Draw(temperature=temperature)


def _draw(letters: str, temperature: float, values: int) -> Draw:
    if "T" in letters:
        return Draw(temperature=temperature, typical_k=values)
    return Draw(temperature=temperature, top_k=values)


def _check_letters(letters: str, known: tuple[str, ...]) -> None:
    if letters not in known:
        raise refuse("variant", expected=" or ".join(repr(name) for name in known), got=repr(letters))


def _unet(steps: int, width: int, repeats: int, dropout: float, period: int) -> Callable[[], Network]:
    shape = (steps, VOICES)
    return lambda: AttentionalUNet(
        Discrete(CODES), shape, CODES, width=width, repeats=repeats, dropout=dropout, period=period
    )


def _transformer(steps: int, width: int, depth: int, heads: int, dropout: float) -> Callable[[], Network]:
    shape, periods = (steps, VOICES), (BAR, VOICES)
    return lambda: Transformer(
        Discrete(CODES), shape, CODES, width, depth, heads, dropout=dropout, periods=periods, flag="stretched"
    )


def _model(network: Callable[[], Network], corruption: Corruption, seed: int) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = network()
    return Model(made, Categorical(CODES), corruption=corruption)
