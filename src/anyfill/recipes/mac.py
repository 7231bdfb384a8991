"""MAC (Shih, Sadigh, Ermon: Training and Inference on Any-Order Autoregressive Models the Right Way).

Ask only what inference will ask. Inference answers a subset in the order of a protocol w, so it meets only the edges
(a, j) of the mask lattice on which j comes after all of a; training draws those edges, as often as a random test
question would meet them, reweighted by |a| + 1 because longer paths matter more (section 4.2, appendix B).

    objective             the paper's loss: the next variable j given a
    objective_rest        the released code's loss: the mean over every unknown variable given a
    objective_inpainting  half of the rows on the edges of completions, so that direct conditionals are trained as well

The first two were never trained on a given block with gaps before it: they answer a conditional as the difference of
two marginals. Only the third may be asked to complete a row directly.

On images a variable is a sub-pixel: masks differ from channel to channel (N = H W C). ``image_model`` is the network of
the released code, by default at its size for 32 x 32 (141 M parameters, attention behind every block, a softmax for
each sub-pixel), with an "unknown" code of its own where theirs shows grey. Its order in the released commands is
``questions.Spaced(48)``, of (C, H, W); here rows are (H, W, C).
"""

from typing import Unpack

from anyfill.likelihoods.discrete import Categorical
from anyfill.likelihoods.marginals import Likelihood
from anyfill.model import Model, seeded
from anyfill.networks.embed import Discrete
from anyfill.networks.unet import UNet
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Mean, Sum
from anyfill.questions.mac import InpaintingEdges, MacEdges, TheRest
from anyfill.questions.mixture import Mixture
from anyfill.questions.order import Increasing
from anyfill.questions.question import Order
from anyfill.recipes.sfarm import UNetSizes


def objective(variables: int, order: Order | None = None) -> MaskedLoss:
    """The next variable of a random edge: one term per row and pass."""
    w = Increasing() if order is None else order
    return MaskedLoss(MacEdges(variables, w), weights=Sum())


def objective_rest(variables: int, order: Order | None = None) -> MaskedLoss:
    """All unknown variables of a random edge, averaged: the same known sets, many terms per row and pass."""
    w = Increasing() if order is None else order
    return MaskedLoss(TheRest(MacEdges(variables, w)), weights=Mean())


def objective_inpainting(variables: int, order: Order | None = None) -> MaskedLoss:
    """As ``objective_rest``, on marginal and inpainting edges in equal parts."""
    w = Increasing() if order is None else order
    edges = Mixture((MacEdges(variables, w), InpaintingEdges(variables, w)))
    return MaskedLoss(TheRest(edges), weights=Mean())


SIZES: UNetSizes = {"width": 256, "blocks": 32, "attention": "every"}
"""The network of the released code."""


def image_model(
    shape: tuple[int, ...],
    codes: int = 256,
    likelihood: Likelihood | None = None,
    *,
    order: Order | None = None,
    seed: int = 0,
    **sizes: Unpack[UNetSizes],
) -> Model:
    """An untrained model of images; sizes as for ``UNet``, by default those of the released code."""
    likelihood = Categorical(codes) if likelihood is None else likelihood
    sizes = UNetSizes({**SIZES, **sizes})
    with seeded(seed):
        network = UNet(Discrete(codes), shape, likelihood.width, **sizes)
    return Model(network, likelihood, order=order)
