"""Our one-pass model of pictures: the network, the likelihood and the questions it is trained on.

A token for each patch of 2 x 2 pixels of grey, or for each pixel of colour (``OnePassGroups``); of an odd side, tokens
are pixels along it. Black and white: Bernoulli. Few levels: a softmax over them. 33 levels and more: mixtures of
discretised logistics, which know that neighbouring levels are alike. Heads read what is known of the pixels around.
"""

from anyfill.images.about import About
from anyfill.images.questions import PictureQuestions
from anyfill.likelihoods import Bernoulli, Categorical, Likelihood, LogisticMixture
from anyfill.model import Model, seeded
from anyfill.networks import Discrete, OnePassGroups
from anyfill.objectives import OnePassLoss
from anyfill.questions import Scan

JOINT, CONDITIONED, ALONE = 0.25, 0.8, 0.15
NEIGHBOURS_GREY, NEIGHBOURS_COLOUR = 3, 2
"""How far heads look around a pixel; of colour it is three values each."""
_SOFTMAX = 32
_MIXTURES = 8


def patch_of(about: About) -> tuple[int, int]:
    """Height and width of a token's patch."""
    if about.channels > 1:
        return 1, 1
    return 2 - about.height % 2, 2 - about.width % 2


def order_of(about: About) -> Scan:
    """The order w: patch by patch, each row by row."""
    return Scan(about.height, about.width, patch=patch_of(about), channels=about.channels)


def likelihood_of(about: About) -> Likelihood:
    """What a channel's parameters are read as."""
    if about.levels == 2:
        return Bernoulli()
    if about.levels <= _SOFTMAX:
        return Categorical(about.levels)
    return LogisticMixture(about.levels, _MIXTURES)


def picture_model(
    about: About,
    *,
    width: int = 128,
    depth: int = 4,
    heads: int = 4,
    dropout: float = 0.0,
    neighbours: int | None = None,
    seed: int = 0,
) -> Model:
    """An untrained model of such pictures; ``neighbours`` is how far its heads look, None = 3 of grey, 2 of colour."""
    likelihood = likelihood_of(about)
    grey = about.channels == 1
    with seeded(seed):
        network = OnePassGroups(
            Discrete(about.levels),
            (about.height, about.width) if grey else about.shape,
            *(likelihood.width, width, depth, heads),
            dropout=dropout,
            patch=patch_of(about),
            neighbours=(NEIGHBOURS_GREY if grey else NEIGHBOURS_COLOUR) if neighbours is None else neighbours,
        )
    return Model(network, likelihood, order=order_of(about))


def picture_objective(about: About) -> OnePassLoss:
    """A quarter of the rows as a whole, the others cut as people cut pictures (``PictureQuestions``).

    In a seventh of the batches everything asked is asked alone, as maps of uncertainty ask it.
    """
    questions = PictureQuestions(about.height, about.width, about.channels)
    return OnePassLoss(questions, order_of(about), JOINT, CONDITIONED, alone_share=ALONE)
