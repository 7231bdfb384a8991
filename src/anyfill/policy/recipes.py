"""The methods: each is a network, a likelihood and a family of questions over the same rows.

    joint        MAC over everything in a row: edges of the paths of the test questions M, half of them of uniform size
                 and half of them named; the released code's loss (all that is not known, given what is)
    one-pass     the same questions by the causal decoder: all terms of a chain in one pass
    mac          the paper's: over the actions alone, given the observation; M = subsets of them, of uniform size
    bc           behaviour cloning by regression: a Gaussian of scale 1 for each action, which is half a squared error
    bc-dropout   the same, sensors left out at random in training
    bc-mixture   behaviour cloning by one mixture of K Gaussians over the whole action (``mixture.py``)
    neighbour    the action of the nearest row, by the distance over what is given (``neighbour.py``)

Where rows have a goal, the last five are told it in half of the rows. The paper's network is ``plain``, 8 layers of
2048 units, with 20 Gaussians for each action; MAC's cardinality reweighting is left out of ``joint``, where it would
undo the halves. The paper names neither activation nor first weights; SiLU and He's are used, for torch's own shrink
what passes through eight layers by so much that the first hundreds of steps learn nothing. Scales of Gaussians stay
above ``min_scale`` deviations of their column: sensors that stand still for most of a demonstration would otherwise
earn unbounded likelihood.
"""

from dataclasses import dataclass
from typing import Literal, cast, get_args

from torch import nn

from anyfill.likelihoods import Categorical, GaussianMixture, Likelihood, Mixed, UnitGaussian
from anyfill.model import Model, seeded
from anyfill.networks import Mixed as MixedKind
from anyfill.networks import OnePassTransformer, PlainMLP, ResidualMLP
from anyfill.objectives import MaskedLoss, Mean, Objective, OnePassLoss, Sum
from anyfill.policy.layout import Layout
from anyfill.policy.mixture import JointMixtureLoss
from anyfill.policy.neighbour import NearestRow
from anyfill.policy.questions import NamedQuestions, askable
from anyfill.policy.subsets import ActionQuestions, AlongPath
from anyfill.questions import Edges, Mixture, TheRest, UniformSplits

Method = Literal["joint", "one-pass", "mac", "bc", "bc-dropout", "bc-mixture", "neighbour"]
METHODS: tuple[Method, ...] = get_args(Method)
AT_ONCE = ("bc", "bc-dropout", "neighbour")
"""Methods that answer with one value and no distribution."""
ACTIONS_ONLY = ("mac", "bc", "bc-dropout", "bc-mixture")
"""Methods that answer for actions only."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a network and its answers.

    Attributes:
        network: "plain" (the paper's) or "residual"; ``one-pass`` has its own.
        width, depth: units and layers (blocks).
        components: K, Gaussians for each number.
        min_scale: the narrowest of them, in deviations of the column.
        dropout: of the network.
    """

    network: Literal["plain", "residual"] = "residual"
    width: int = 256
    depth: int = 3
    components: int = 20
    min_scale: float = 0.02
    dropout: float = 0.0


PAPER = Sizes("plain", 2048, 8, 20)
"""The paper's size."""


def likelihood_of(method: str, layout: Layout, sizes: Sizes) -> Likelihood:
    """How each variable's parameters are read."""
    number: Likelihood = UnitGaussian() if method in AT_ONCE else GaussianMixture(sizes.components, sizes.min_scale)
    if not any(layout.sizes):
        return number
    return Mixed(tuple(Categorical(codes) if codes else number for codes in layout.sizes))


def policy_model(method: str, layout: Layout, sizes: Sizes, *, seed: int = 0) -> Model:
    """An untrained model of rows of this layout."""
    likelihood, kind = likelihood_of(method, layout, sizes), MixedKind(layout.sizes)
    count = layout.variables
    with seeded(seed):
        if method == "neighbour":
            return Model(NearestRow(kind, count, likelihood.width), likelihood)
        if method == "one-pass":
            heads = max(1, sizes.width // 32)
            network = OnePassTransformer(
                *(kind, (count,), likelihood.width, sizes.width, sizes.depth, heads),
                positions="learned",
                dropout=sizes.dropout,
            )
            return Model(network, likelihood)
        mlp = PlainMLP if sizes.network == "plain" else ResidualMLP
        network = mlp(kind, count, likelihood.width, sizes.width, sizes.depth, sizes.dropout)
        if isinstance(network, PlainMLP):
            for layer in network.layers:
                nn.init.kaiming_normal_(cast(nn.Linear, layer).weight, nonlinearity="relu")
        return Model(network, likelihood)


def optimizer_of(method: str) -> Literal["adam", "muon"]:
    """Adam, as the paper's; Muon for the causal decoder.

    What a value tells must come through attention there, in whatever order values are read. By Adam that is learnt
    late for orders that are seldom drawn (tests/policy/test_linear_gaussian.py).
    """
    return "muon" if method == "one-pass" else "adam"


def training_questions(layout: Layout) -> Mixture:
    """M: half of uniform size, half named."""
    width = len(layout.columns.observation)
    named = NamedQuestions(layout.blocks, askable(layout), width)
    return Mixture((UniformSplits(layout.variables), named))


def policy_objective(method: str, layout: Layout) -> Objective:
    """What is minimised."""
    blocks = layout.blocks
    match method:
        case "joint":
            return MaskedLoss(TheRest(Edges(training_questions(layout), reweight="none")), weights=Mean())
        case "one-pass":
            return OnePassLoss(training_questions(layout), joint_share=0.1, conditioned_share=0.5)
        case "mac":
            edges = Edges(ActionQuestions(blocks, subsets=True), reweight="exact")
            return MaskedLoss(ActionQuestions(blocks, edges=edges), weights=Mean())
        case "bc-mixture":
            return JointMixtureLoss(ActionQuestions(blocks))
        case _:
            return MaskedLoss(ActionQuestions(blocks, dropout=method == "bc-dropout"), weights=Sum())


def specialist_objective(layout: Layout, name: str) -> Objective:
    """One named question alone, along its own path: what a specialist of it is trained on."""
    one = NamedQuestions(layout.blocks, (name,), len(layout.columns.observation))
    return MaskedLoss(AlongPath(one), weights=Mean())
