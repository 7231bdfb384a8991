"""Four-part music: our one-pass model of chorales.

Variables are read step by step, soprano first (``anyfill.music.chorale``). Cells know their voice and their place in
the bar (``periods``), and how far they lie from each other in time (rotary positions), but not where in the piece they
are: the same weights serve any length. Questions are random subsets, and the rectangles that people ask for.
"""

from typing import Any

import torch

from anyfill.checks import refuse
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.music.chorale import BAR, CODES
from anyfill.music.score import VOICES
from anyfill.networks.embed import Discrete
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.mixture import Mixture
from anyfill.questions.order import Increasing
from anyfill.questions.regions import Regions
from anyfill.questions.subsets import UniformSplits


def one_pass_chorale_model(
    steps: int = 128, *, width: int = 256, depth: int = 8, heads: int = 8, dropout: float = 0.2, seed: int = 0
) -> Model:
    """An untrained model of (4, steps); about 6.4 M parameters by default."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = OnePassTransformer(
            Discrete(CODES),
            (steps, len(VOICES)),
            CODES,
            width=width,
            depth=depth,
            heads=heads,
            dropout=dropout,
            periods=(BAR, len(VOICES)),
        )
    return Model(network, Categorical(CODES), order=Increasing())


def one_pass_chorale(steps: int = 128, *, joint_share: float = 0.4) -> OnePassLoss:
    """Random subsets and rectangles in equal parts; ``joint_share`` of the rows are read from first to last."""
    voices = len(VOICES)
    questions = Mixture((UniformSplits(steps * voices), Regions(steps, voices)))
    return OnePassLoss(questions, Increasing(), joint_share)


def resized(model: Model, steps: int) -> Model:
    """The same weights for pieces of another length; the network must be one that can be resized."""
    network: Any = model.network
    if not hasattr(network, "resized"):
        raise refuse("network", expected="one that can be resized", got=type(network).__name__)
    other = network.resized((steps, len(VOICES)))
    same = Model(
        other, model.likelihood, corruption=model.corruption, order=model.order, factorizations=model.factorizations
    )
    return same.train(model.training)
