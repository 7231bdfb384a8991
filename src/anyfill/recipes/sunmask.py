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

Networks of a grid (steps, voices) serve any number of steps. Their sizes are ours, a few million parameters (the
paper's U-Net has 417.5 M). The transformer's relative attention is rotary: a query and a key meet through their offset
in time and voice alone, as in the paper, at any length and without a bias for every pair of cells in memory.
"""

from anyfill.checks import require_member
from anyfill.corruption import Corruption, Uniform
from anyfill.likelihoods import Categorical
from anyfill.model import Model, seeded
from anyfill.networks.convolutions import AttentionalUNet
from anyfill.networks.embed import Discrete
from anyfill.networks.transformer import Transformer
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Damped
from anyfill.questions.subsets import Bernoulli
from anyfill.samplers.annealed import Anneal, Rewrite
from anyfill.samplers.draw import Draw

VARIANTS = ("", "A", "T", "N", "AT", "AN", "TN", "ATN")
"""Active balance, typical sampling, noise."""


def objective(variables: int, *, redraw_given: bool = False) -> MaskedLoss:
    """Section 2: loss on the unknown cells only, damped by their number, over two steps with the same mask.

    ``redraw_given`` lets the second step see answers in given places too, as the released code does; but the loss never
    trains those answers.
    """
    return MaskedLoss(Bernoulli(variables), Damped(), unroll=2, redraw_given=redraw_given)


def model(
    codes: int,
    shape: tuple[int, int],
    *,
    width: int = 64,
    repeats: int = 3,
    dropout: float = 0.0,
    period: int = 16,
    corruption: Corruption | None = None,
    seed: int = 0,
) -> Model:
    """SMc, a U-Net, untrained; 9.4 M parameters by default for 58 codes on (128, 4).

    Args:
        codes: values of a cell.
        shape: (steps, voices) of the grid; ``resized`` fits it to others.
        width, repeats, dropout: of ``AttentionalUNet``.
        period: steps of a bar, whose place the network sees; 0 = not shown, as in the paper.
        corruption: by default ``Uniform(codes)``.
        seed: of the first weights.
    """
    with seeded(seed):
        network = AttentionalUNet(
            Discrete(codes), shape, codes, width=width, repeats=repeats, dropout=dropout, period=period
        )
    return Model(network, Categorical(codes), corruption=Uniform(codes) if corruption is None else corruption)


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
    letters: str = "T", *, voices: int = 1, rounds: int = 1024, temperature: float = 0.6, values: int = 3
) -> tuple[Rewrite, Draw]:
    """A row of Table 2 by its letters, one of ``VARIANTS``: "" = SM, "A", "T", "AT", "ATN" and so on.

    Without T the ``values`` most probable values are drawn from, with it the most typical ones; every voice accepts the
    same share.
    """
    require_member("variant", letters, VARIANTS)
    policy = Rewrite(rounds, trust=Anneal(), balanced="A" in letters, noisy="N" in letters, voices=voices)
    return policy, draw_of(letters, temperature, values)


def draw_of(letters: str, temperature: float, values: int) -> Draw:
    """How a variant draws a value."""
    if "T" in letters:
        return Draw(temperature=temperature, typical_k=values)
    return Draw(temperature=temperature, top_k=values)
