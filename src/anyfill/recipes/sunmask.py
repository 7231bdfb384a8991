"""SUNMASK; with ``recipes.sundae`` and ``recipes.coconet`` three rows of one table, the paper's Table 1.

                                 SUNMASK                Coconet              SUNDAE          where it stands here
    mask input to model          yes                    yes                  no              corruption, network
    masked loss                  yes: Damped            no                   no: Everyone    weights
    re-weighted loss             1 / (1 + a)            n / a                no              weights
    unrolled loss                2                      1                    2               objective
    inference mask schedule      Anneal                 Anneal               no              policy
    sampling rejection step      Rewrite, a triangle    no: AnnealedGibbs    Rewrite .3      policy
    mask control preserves data  Uniform                no: Absorbing        no: not shown   corruption

Questions: SUNMASK and SUNDAE ask each cell by a coin whose rate is uniform for each row, Coconet a uniform number.

Networks of a grid (steps, voices) serve any number of steps. Their default sizes are ours. The transformer's relative
attention is rotary: a query and a key meet through their offset in time and voice alone, as in the paper, at any length
and without a bias for every pair of cells in memory.
"""

from functools import partial
from typing import Literal

from anyfill.checks import refuse, require_member
from anyfill.corruption import Corruption, Uniform
from anyfill.likelihoods import Categorical
from anyfill.model import Model, seeded
from anyfill.networks.convolutions import AttentionalUNet
from anyfill.networks.embed import Discrete
from anyfill.networks.pitch_unet import PitchUNet
from anyfill.networks.transformer import Transformer
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Damped
from anyfill.questions.subsets import Bernoulli
from anyfill.samplers.annealed import Anneal, Rewrite
from anyfill.samplers.draw import Draw

VARIANTS = ("", "A", "T", "N", "AT", "AN", "TN", "ATN")
"""Active balance, typical sampling, noise."""


def objective(variables: int, *, redraw_given: bool = True) -> MaskedLoss:
    """Equation 2: loss on the unknown cells only, weighed by their number, over two steps with the same mask.

    x_1 ~ f(. | x_0; m) draws *every* cell (equation 2, Figure 1 and the released code): in the second step a trusted
    cell may hold a wrong value under a flag that still says "trusted", which is how the network learns that trust is
    not truth. ``redraw_given=False`` is a variant of ours that keeps the given values through both steps.
    The weight is the released code's 1 / (1 + a) where the paper writes 1 / a, undefined when nothing is unknown.
    """
    return MaskedLoss(Bernoulli(variables), Damped(), unroll=2, redraw_given=redraw_given)


def model(
    codes: int,
    shape: tuple[int, int],
    *,
    network: Literal["pitch", "time"] = "pitch",
    width: int | None = None,
    repeats: int = 3,
    dropout: float = 0.0,
    period: int = 16,
    even: bool = False,
    corruption: Corruption | None = None,
    seed: int = 0,
) -> Model:
    """SMc, a U-Net, untrained.

    Args:
        codes: values of a cell.
        shape: (steps, voices) of the grid; ``resized`` fits it to others.
        network: "pitch", kernels that slide over (time, pitch), as released (``PitchUNet``; width 16, 26 M parameters
            by default; released: 64, 417 M); or "time", a small baseline with pitch in its channels
            (``AttentionalUNet``; width 64, 9.4 M).
        width, repeats, dropout: of the network.
        period: steps of a bar, whose place the network sees; 0 = not shown, as in the paper.
        even: another start of ``PitchUNet``, see there.
        corruption: by default ``Uniform(codes)``.
        seed: of the first weights.
    """
    require_member("network", network, ("pitch", "time"))
    if even and network != "pitch":
        raise refuse("even", expected="a network over (time, pitch)", got=f"network {network!r}")
    kind, sizes = (partial(PitchUNet, even=even), 16) if network == "pitch" else (AttentionalUNet, 64)
    with seeded(seed):
        net = kind(Discrete(codes), shape, codes, width=width or sizes, repeats=repeats, dropout=dropout, period=period)
    return Model(net, Categorical(codes), corruption=Uniform(codes) if corruption is None else corruption)


def transformer_model(
    codes: int,
    shape: tuple[int, int],
    *,
    width: int = 256,
    depth: int = 8,
    heads: int = 8,
    dropout: float = 0.1,
    period: int = 16,
    corruption: Corruption | None = None,
    seed: int = 0,
) -> Model:
    """SMt, untrained; 6.3 M parameters by default for 58 codes on (128, 4). Arguments as for ``model``."""
    periods = (period, shape[1])
    with seeded(seed):
        network = Transformer(
            Discrete(codes), shape, codes, width, depth, heads, dropout=dropout, periods=periods, flag="stretched"
        )
    return Model(network, Categorical(codes), corruption=Uniform(codes) if corruption is None else corruption)


def sampler(
    letters: str = "T",
    *,
    voices: int = 1,
    rounds: int = 1024,
    temperature: float = 0.6,
    values: int | None = 3,
    mass: float | None = None,
    trust_for: int = 1,
) -> tuple[Rewrite, Draw]:
    """A row of Table 2 by its letters, one of ``VARIANTS``: "" = SM, "A", "T", "AT", "ATN" and so on.

    Without T the ``values`` most probable values are drawn from, with it the most typical ones; every voice accepts the
    same share. ``mass`` cuts by probability instead or as well: typical values (with T; a nucleus without) up to that
    mass. The released script for news asks for typical values of mass 1, which are all values: that is no typical
    sampling at all, so mass 1 is refused here. ``trust_for``: rounds through which a drawn mask is held.
    """
    require_member("variant", letters, VARIANTS)
    policy = Rewrite(
        rounds, trust=Anneal(), balanced="A" in letters, noisy="N" in letters, voices=voices, trust_for=trust_for
    )
    return policy, draw_of(letters, temperature, values, mass)


def draw_of(letters: str, temperature: float, values: int | None = 3, mass: float | None = None) -> Draw:
    """How a variant draws a value: ValueError for a cut that cuts nothing."""
    if mass is not None and not 0.0 < mass < 1.0:
        raise refuse("mass", expected="above 0 and below 1 (1 keeps every value)", got=mass)
    if "T" in letters:
        if values is None and mass is None:
            raise refuse("typical sampling", expected="a number of values or a mass", got="neither")
        return Draw(temperature=temperature, typical_k=values, typical=mass)
    return Draw(temperature=temperature, top_k=values, nucleus=mass)
