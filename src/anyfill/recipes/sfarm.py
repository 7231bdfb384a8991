"""SFARM (Flexible Conditional Generation with Stochastically Factorized Autoregressive Models).

The order in which variables are activated is itself random, a mixture of modes, and the loss is one uniform step of it
with the choice of the next variable averaged out (eq. 8 to 10):

    objective  random mode and two-stage modes, all equally likely; without regions this is ARDM (eq. 11)
    model      the paper's network for tables: an MLP of 3 layers of 32 units that sees the step, with Gaussians
    options    the paper's training for tables: Adam at 1e-3, batches of 100, 2000 epochs

For evaluation the mode is fixed to the random one and K orders are averaged (eq. 14): ``log_prob(..., orders=K)``. To
sample a mode's way, follow ``anyfill.questions.InStages``.
"""

from collections.abc import Sequence
from typing import Unpack

from anyfill.likelihoods import Categorical, Gaussian, Likelihood
from anyfill.likelihoods import Mixed as MixedColumns
from anyfill.model import Model, seeded
from anyfill.networks.embed import Cycle, Mixed, Real
from anyfill.networks.mlp import MLPSizes, PlainMLP, WithCounts, count_features
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Stepwise
from anyfill.questions.mixture import Mixture, Region, Staged
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
