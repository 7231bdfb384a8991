"""Every part that a package exports satisfies its Protocol: same members, same parameters, same kinds of parameter.

The examples below must be complete: a part that is exported and not listed fails the test, so nothing escapes it.
"""

import importlib
import inspect
from dataclasses import is_dataclass
from enum import Enum
from typing import Any

import pytest
import torch
from torch import nn

import anyfill
from anyfill import corruption, networks, objectives, questions, samplers, training
from anyfill import likelihoods as likes
from anyfill.ising import blocks
from anyfill.ising.blocks import Pseudolikelihood
from anyfill.ising.chains import BlockDynamics, IndependentParallel, Kernel, KGibbs
from anyfill.ising.model import Ising
from anyfill.likelihoods.marginals import DiscreteMarginals, Likelihood, Marginals, PerVariable, Poolable
from anyfill.networks.network import (
    Branching,
    Cached,
    ChainsCells,
    Foresees,
    Network,
    OnePass,
    ReadsContext,
    Windowed,
)
from anyfill.rows import Rows
from anyfill.tables.calibrated import Calibrated, Observed
from anyfill.tables.choosers import AtRandom, Chooser, Informed, InOrder, Latent, Oracle, Rewarding
from anyfill.tables.cross_fit import CrossFitLoss, HeldOutLoss
from anyfill.tables.gaussian_joint import GaussianJoint
from anyfill.tables.quantiles import Quantiles
from anyfill.tables.residual_network import GaussianResidualEnsemble
from anyfill.training.describe import build, describe, exported_parts

N = 4
MISSING = object()
CODES = networks.Discrete(3)
ORDERS = [
    questions.Increasing(),
    questions.Decreasing(),
    questions.Shuffled(),
    questions.Spaced(2),
    questions.ByRegion((1, 0, 1, 0)),
    questions.InStages((True, False, True, False)),
    questions.Scan(2, 2, patch=(1, 2)),
    questions.HeadFirst(questions.Shuffled()),
    questions.PixelOrder(questions.Increasing(), 2),
]
FAMILIES = [
    questions.UniformCardinality(N),
    questions.UniformCardinality(N, stratified=True),
    questions.UniformSplits(N),
    questions.Bernoulli(N),
    questions.KSubset(N, 2),
    questions.HeadGiven(questions.Bernoulli(N - 1)),
    questions.MacEdges(N),
    questions.InpaintingEdges(N),
    questions.Edges(questions.UniformCardinality(N)),
    questions.TheRest(questions.MacEdges(N)),
    questions.Mixture((questions.MacEdges(N), questions.InpaintingEdges(N))),
    questions.Staged((True, False, True, False)),
    questions.Regions(2, 2),
    questions.Rectangles(2, 2),
    questions.Modes(2, 2),
    questions.PerPixel(questions.UniformCardinality(2), 2),
    questions.Strokes(2, 2),
    questions.Spans(4, most=2, longest=2),
    questions.ScatteredSpans(4, longest=2, most_often=0.5),
]
LIKELIHOODS = [
    likes.Bernoulli(),
    likes.Categorical(3),
    likes.Gaussian(),
    likes.GaussianMixture(2),
    likes.UnitGaussian(),
    likes.Mixed((likes.Categorical(3), likes.Gaussian(), likes.Bernoulli(), likes.GaussianMixture(2))),
    likes.EnergyMixture(N, components=2, latent=2, units=4, blocks=1),
    likes.EnergyMixture(N, (0, 3, 0, 2), components=2, latent=2, units=4, blocks=1),
    likes.LogisticMixture(3, 2),
    likes.Pooled(likes.LogisticMixture(3, 2), 2, weighted=True),
    likes.SpikedMixture(2, spikes=(0.0, 1.5)),
    likes.SpikedMixture(2, spikes=(0.0,), step=0.5, offset=0.25),
    likes.SpikedMixture(2, period=4.0),
    likes.Pooled(likes.SpikedMixture(1, spikes=(0.0,)), 3, weighted=True),
    likes.Pooled(likes.Mixed((likes.Categorical(3), likes.Gaussian(), likes.Bernoulli(), likes.SpikedMixture(1))), 2),
]
PARAMS = [torch.randn(2, N, part.width, generator=torch.Generator().manual_seed(0)) for part in LIKELIHOODS]
MARGINALS = [part(params) for part, params in zip(LIKELIHOODS, PARAMS)]
NETWORKS = [
    networks.ResidualMLP(CODES, N, 3, 8, 1),
    networks.Transformer(CODES, (N,), 3, 8, 1, 2),
    networks.OnePassTransformer(CODES, (N,), 3, 8, 1, 2),
    networks.Averaged([networks.OnePassTransformer(CODES, (N,), 3, 8, 1, 2) for _ in range(2)]),
    networks.OnePassGroups(CODES, (2, 2), 3, 8, 1, 2, patch=(1, 2)),
    networks.OnePassGroups(CODES, (2, 2), 3, 8, 1, 2, patch=(1, 2), neighbours=1),
    networks.EnumeratedJoint(N, 3),
    networks.RandomConditionals(N, 3, seed=1),
    GaussianJoint(CODES, N, 3),
    networks.LatentVariable(CODES, N, likes.Categorical(3), 2, 3, 8, 1),
    networks.PlainMLP(CODES, N, 3, 8, 1),
    GaussianResidualEnsemble((3,) * N, ((),) * N, ((0.5, 0.3, 0.2),) * N, (1.0,) * N, 1, 3, (1,), 2, 4, 8, 1),
    networks.AttentionalUNet(CODES, (2, 2), 3, width=8, multipliers=(1, 2), repeats=1),
    networks.Coconet(CODES, (2, 2), 3, width=4, depth=4),
    networks.PitchUNet(CODES, (2, 2), 3, width=4, multipliers=(1, 2), repeats=1),
    networks.CoupledChannels(networks.UNet(CODES, (1, 2, 2), 8, width=4, blocks=1), likes.LogisticMixture(3, 2), 2),
    networks.FixedContext(networks.UNet(CODES, (2, 2), 3, width=4, blocks=1, modes=3), (1.0, 0.0)),
    networks.UNet(CODES, (2, 2), 3, width=4, blocks=1),
    networks.LatentUNet(CODES, (2, 2), likes.Categorical(3), 2, 3, width=4, blocks=1),
    Ising(N, ((0, 1), (1, 3))),
    networks.EncoderDecoder(6, N - 1, 8, 1, 2, places=8),
    networks.DisentangledDecoder(6, N - 1, 8, 1, 2, places=8),
    networks.CausalDecoder(6, N - 1, 8, 1, 2, places=8),
    networks.WithCounts(networks.PlainMLP(CODES, N, 3, 8, 1, context_width=17), ((True, False, True, False),)),
]
ONE_PASS = [net for net in NETWORKS if hasattr(net, "chain")]
CACHED = [net for net in NETWORKS if hasattr(net, "extend")]
OBJECTIVES = [
    objectives.MaskedLoss(FAMILIES[0]),
    objectives.OnePassLoss(FAMILIES[0]),
    objectives.AgreeingLoss(FAMILIES[0]),
    objectives.PosteriorLoss(FAMILIES[0]),
    objectives.FollowingLoss(FAMILIES[0]),
    objectives.SoftTargetLoss(FAMILIES[0]),
    objectives.EvidenceBound(N),
    objectives.ModalLoss(questions.Modes(2, 2)),
    objectives.DenoisingLoss(N),
    objectives.SampledNormaliser(FAMILIES[0]),
    CrossFitLoss(FAMILIES[0], (0, 1)),
    HeldOutLoss(N, (0, 1)),
    Pseudolikelihood(blocks.k_blocks(N, 2)),
]
BLOCKS = [
    blocks.k_blocks(N, 2),
    blocks.AdaptiveBlocks(blocks.k_blocks(N, 2).subsets, lambda x: torch.ones(len(x), 6)),
]
KERNELS = [KGibbs(2), BlockDynamics(BLOCKS[0]), IndependentParallel()]
WEIGHTS = [
    *(objectives.Sum(), objectives.Mean(), objectives.Rescaled(), objectives.Stepwise(), objectives.Damped()),
    *(objectives.Everyone(), objectives.RescaledEveryone(), objectives.HeadCounts(objectives.Sum())),
]
POLICIES = [
    *(samplers.Follow(), samplers.Confidence(3), samplers.Remask(4), samplers.EntropyBounded(), samplers.Gibbs(2)),
    *(samplers.AnnealedGibbs(4), samplers.Rewrite(4), samplers.RewriteAll(4), samplers.MaskPredict(4)),
]
DRAFTS = [samplers.NgramDraft.of(torch.tensor([0, 1, 1, 0, 1]), 2, order=2)]
DECODERS = [samplers.CachedChain(), samplers.Speculative(), samplers.Speculative(draft=DRAFTS[0])]
DECODERS += [samplers.EasyFirst(3), samplers.RePaint()]
REWARDING = [Informed(10), Latent(10), Quantiles(10), Observed()]
REWARDING += [Calibrated(REWARDING[2], Rows.from_values(torch.zeros(2, N)))]
CHOOSERS = [*REWARDING, AtRandom(), InOrder((1, 0)), Oracle()]
CORRUPTIONS = [corruption.Absorbing(), corruption.Uniform(3), corruption.Constant(1)]
CORRUPTIONS += [corruption.Headed(corruption.Uniform(3, mask_visible=False))]
SINKS = [training.JsonLines, training.TensorBoard]  # classes: making one needs a folder

CONTRACTS: list[tuple[list[Any], type]] = [
    (ORDERS, questions.Order),
    (FAMILIES, questions.Questions),
    (LIKELIHOODS, Likelihood),
    (MARGINALS, Marginals),
    ([part for part in MARGINALS if hasattr(part, "log_probs")], DiscreteMarginals),
    ([part for part in MARGINALS if hasattr(part, "pooled")], Poolable),
    ([part for part in LIKELIHOODS if hasattr(part, "at")], PerVariable),
    (NETWORKS, Network),
    (ONE_PASS, OnePass),
    ([net for net in ONE_PASS if hasattr(net, "chain_at")], ChainsCells),
    (CACHED, Cached),
    ([net for net in CACHED if hasattr(net, "select")], Branching),
    ([net for net in CACHED if hasattr(net, "foresee")], Foresees),
    ([net for net in CACHED if hasattr(net, "peek")], Windowed),
    ([net for net in NETWORKS if hasattr(net, "read_context")], ReadsContext),
    (DRAFTS, samplers.Draft),
    (OBJECTIVES, objectives.Objective),
    (WEIGHTS, objectives.Weights),
    (POLICIES, samplers.Policy),
    ([*POLICIES, *DECODERS], samplers.Sampler),
    (CHOOSERS, Chooser),
    (REWARDING, Rewarding),
    (CORRUPTIONS, corruption.Corruption),
    (BLOCKS, blocks.Blocks),
    (KERNELS, Kernel),
    (SINKS, training.MetricSink),
]
# Exported names that are vocabulary, results or settings, not parts with a Protocol of their own.
PLAIN = {
    *(
        "Question",
        "Factorization",
        "Weighted",
        "QuestionLoss",
        "Discrete",
        "Real",
        "Mixed",
        "Cycle",
        "Answer",
        "Task",
        "Draw",
        "Restricted",
        "Sample",
        "State",
        "Anneal",
    ),
    *("ConsistencyReport", "Information", "LogProb", "CheckpointError", "DivergedError", "FitOptions", "FitResult"),
    *("StepReport", "MetricsError", "Mean", "StepNats", "Beginning", "Posterior"),
    *("Acquired", "Choice", "Curves", "Difference", "Standing", "LearnedGibbs"),
}


def members(protocol: type) -> dict[str, Any]:
    """What a Protocol asks for, inherited members included."""
    found: dict[str, Any] = {}
    for base in reversed(protocol.__mro__):
        if getattr(base, "_is_protocol", False):
            found |= {n: m for n, m in vars(base).items() if n == "__call__" or not n.startswith("_")}
    return found


def complaint(part: Any, protocol: type) -> str | None:
    """Why a part (or a class of parts) does not satisfy a Protocol; None if it does."""
    kind = part if isinstance(part, type) else type(part)
    for name, wanted in members(protocol).items():
        own = getattr(kind, name, getattr(part, name, MISSING))
        if name == "__call__" and issubclass(kind, nn.Module):
            own = kind.forward
        if own is MISSING:
            return f"{kind.__name__} has no {name}"
        if not inspect.isfunction(wanted):
            continue
        have = inspect.signature(own).parameters
        for parameter in inspect.signature(wanted).parameters.values():
            mine = have.get(parameter.name)
            if mine is None or mine.kind is not parameter.kind:
                return f"{kind.__name__}.{name} does not take {parameter.name} as the protocol does"
            if parameter.default is not parameter.empty and mine.default is mine.empty:
                return f"{kind.__name__}.{name} asks for {parameter.name}, which may be left out"
        extra = [p for n, p in have.items() if n not in inspect.signature(wanted).parameters]
        if any(p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in extra):
            return f"{kind.__name__}.{name} needs more than the protocol gives it"
    return None


@pytest.mark.parametrize(
    ("part", "protocol"), [pytest.param(p, c, id=f"{p!r:.40}-{c.__name__}") for parts, c in CONTRACTS for p in parts]
)
def test_every_exported_part_satisfies_its_protocol(part: Any, protocol: type) -> None:
    assert complaint(part, protocol) is None


def test_the_conformance_check_can_fail() -> None:
    class Backwards:
        random = False

        def priority(self, batch: int, variables: int, generator: object = None) -> None: ...

    class Nothing:
        pass

    assert "generator" in (complaint(Backwards(), questions.Order) or "")
    assert "has no" in (complaint(Nothing(), questions.Order) or "")


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: type(network).__name__)
def test_a_network_says_what_context_it_takes_so_that_none_is_passed_over(network: Any) -> None:
    assert isinstance(network, ReadsContext) or network.context_width is not None


@pytest.mark.parametrize(
    "package", ["questions", "likelihoods", "networks", "objectives", "samplers", "evaluation", "training"]
)
def test_no_exported_class_escapes_the_walk(package: str) -> None:
    module = importlib.import_module(f"anyfill.{package}")
    shown = {type(part) for parts, _ in CONTRACTS for part in parts} | set(SINKS)
    for name in module.__all__:
        thing = getattr(module, name)
        if isinstance(thing, type) and not getattr(thing, "_is_protocol", False):
            assert thing in shown or name in PLAIN, f"{package}.{name} is exported but never checked"


@pytest.mark.parametrize(
    "part", [*ORDERS, *FAMILIES, *LIKELIHOODS, *NETWORKS, *CORRUPTIONS], ids=lambda p: f"{p!r:.40}"
)
def test_every_part_is_a_dataclass_that_survives_json(part: Any) -> None:
    assert is_dataclass(part)
    tensors: dict[str, torch.Tensor] = {}
    table = {n: c for p in ("networks", "likelihoods", "corruption", "questions") for n, c in exported_parts(p).items()}
    again = build(describe(part, "part", tensors), table, tensors)
    assert type(again) is type(part)
    if not isinstance(part, nn.Module):
        assert again == part


def test_the_front_door_lists_what_it_opens() -> None:
    assert set(anyfill.__all__) - {"__version__"} == set(anyfill._HOME)
    for name in anyfill.__all__:
        assert getattr(anyfill, name) is not None
    assert set(anyfill.__all__) <= set(dir(anyfill))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = anyfill.nothing
    assert all(isinstance(factorization, Enum) for factorization in anyfill.Factorization)
