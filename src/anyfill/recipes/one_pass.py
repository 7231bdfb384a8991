"""The one-pass model: MAC's sorted orders read by a causal decoder.

Under MAC's protocol a subset is always answered in increasing position, so a decoder that is fed w(given), w(asked)
yields every term of log p(given) and of log p(asked | given) in one forward pass (see ``networks.one_pass``), trains
N terms per pass instead of one, and samples with a cache.

    objective         cuts each row in given, asked and ignored: trained for every question, p(some | others) included
    objective_filler  cuts each row in two: marginals and completions only, for data whose rows are always whole

``conditioned_share`` of the rows that are cut are conditioned on the given block, which is then not scored; above 0 for
a network that reads given values both ways (``OnePassTransformer(given="full")``).

    image_objective   the questions people ask of pictures: all of it, any part given any other, halves, rectangles from
                      inside and outside, strokes; and the picture as a whole in each of the eight scans
    image_model       a token per pixel or per patch (``networks.OnePassGroups``)
"""

from anyfill.checks import require_probability
from anyfill.likelihoods.marginals import Likelihood
from anyfill.model import Model, seeded
from anyfill.networks.embed import Discrete
from anyfill.networks.one_pass_groups import OnePassGroups
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.mixture import Mixture
from anyfill.questions.modes import PerPixel, Strokes
from anyfill.questions.order import Increasing
from anyfill.questions.question import Order
from anyfill.questions.regions import Rectangles, Scan, scans
from anyfill.questions.subsets import UniformCardinality, UniformSplits


def objective(
    variables: int, order: Order | None = None, *, joint_share: float = 0.25, conditioned_share: float = 0.0
) -> OnePassLoss:
    """For any question; ``joint_share`` of the rows are read from first to last."""
    return OnePassLoss(
        UniformSplits(variables), Increasing() if order is None else order, joint_share, conditioned_share
    )


def objective_filler(
    variables: int, order: Order | None = None, *, joint_share: float = 0.25, conditioned_share: float = 0.0
) -> OnePassLoss:
    """For marginals and completions; ``joint_share`` of the rows are read from first to last."""
    return OnePassLoss(
        UniformCardinality(variables), Increasing() if order is None else order, joint_share, conditioned_share
    )


def image_objective(
    shape: tuple[int, ...],
    *,
    patch: tuple[int, int] = (1, 1),
    joint_share: float = 0.25,
    conditioned_share: float = 0.8,
    joint_batches: bool = False,
    raster_share: float = 0.5,
) -> OnePassLoss:
    """The questions people ask of pictures, each kind as often as the others.

    Args:
        shape: (H, W) or (H, W, C).
        patch: that of the network.
        joint_share: share of rows that are read as a whole.
        conditioned_share: share of the others that are conditioned on what is given.
        joint_batches: see ``OnePassLoss``; worth it where patches have several pixels.
        raster_share: of the rows that are read as a whole, about what share follows the raster order: 1/8, 2/9, 3/10 …
            7/14 …, as it has a whole number of turns to one of each of the other seven scans; 1 = all.
    """
    require_probability("raster_share", raster_share)
    height, width, channels = (*shape, 1)[:3]
    tip = max(1.5, min(height, width) / 14)  # 2 to 6 pixels of 28
    questions = Mixture(
        (
            UniformSplits(height * width * channels),
            PerPixel(Rectangles(height, width), channels),
            PerPixel(Strokes(height, width, thinnest=tip, thickest=3 * tip), channels),
        )
    )
    every = scans(height, width, patch=patch, channels=channels)
    turns = 0 if raster_share == 1.0 else max(1, round(7 * raster_share / (1.0 - raster_share)))
    joint = (every[0],) * turns + every[1:] if turns else ()
    return OnePassLoss(
        *(questions, every[0], joint_share, conditioned_share), joint_orders=joint, joint_batches=joint_batches
    )


def image_model(
    shape: tuple[int, ...],
    codes: int,
    likelihood: Likelihood,
    *,
    patch: tuple[int, int] = (1, 1),
    width: int = 256,
    depth: int = 8,
    heads: int | None = None,
    dropout: float = 0.0,
    context_width: int = 0,
    neighbours: int = 0,
    seed: int = 0,
) -> Model:
    """An untrained model of images of so many codes, in the raster order of its patches; heads of 64 by default.

    ``neighbours`` is how far its heads look around a pixel for known ones (``networks.neighbours``). With
    ``context_width`` it is told something of each row (``images.shifts``, say), until that is settled.
    """
    with seeded(seed):
        network = OnePassGroups(
            *(Discrete(codes), shape, likelihood.width, width, depth),
            heads=max(1, width // 64) if heads is None else heads,
            dropout=dropout,
            context_width=context_width,
            patch=patch,
            neighbours=neighbours,
        )
    return Model(network, likelihood, order=Scan(shape[0], shape[1], patch=patch, channels=(*shape, 1)[2]))
