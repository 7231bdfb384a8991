"""Every method of the comparison by name: what its rows look like, its model, what trains it, how it decodes.

    name             rows      decodes by
    "padir"          length    rewriting everything, T passes, stutter remasked
    "cmlm"           length    mask-predict, T passes
    "disco"          length    easy-first, at most T passes
    "sundae"         length    rewriting a share, T passes
    "autoregressive" end       one word after another, or a beam
    "deep_shallow"   end       the same, with a deep encoder and one layer of a decoder
    "one_pass"       joined    one word after another from a cache, exact or speculative; any part given any part

Sizes are those of one side: ``tiny`` is the one that is best on Multi30k (2.7 M), ``compact`` the one that ships (12.6
M with 8,000 pieces), ``base`` the paper's.
"""

from dataclasses import dataclass
from typing import Any, Literal

from anyfill import recipes
from anyfill.checks import require_member
from anyfill.likelihoods import Categorical
from anyfill.model import Model, seeded
from anyfill.networks.embed import Discrete
from anyfill.networks.encoder_decoder import END
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.objectives.objective import Objective
from anyfill.samplers import CachedChain, Draw, Sampler, Speculative
from anyfill.translation.corpus import Layout

Recipe = Literal["padir", "cmlm", "disco", "sundae", "autoregressive", "deep_shallow", "one_pass"]
RECIPES: tuple[Recipe, ...] = ("padir", "cmlm", "disco", "sundae", "autoregressive", "deep_shallow", "one_pass")
Size = Literal["toy", "tiny", "small", "compact", "medium", "base"]
SIZES: dict[Size, dict[str, int]] = {
    "toy": {"width": 64, "depth": 2, "heads": 4, "expansion": 2},
    "tiny": {"width": 128, "depth": 4, "heads": 4, "expansion": 2},
    "small": {"width": 256, "depth": 3, "heads": 4, "expansion": 4},
    "compact": {"width": 256, "depth": 5, "heads": 4, "expansion": 4},
    "medium": {"width": 384, "depth": 4, "heads": 6, "expansion": 4},
    "base": {"width": 512, "depth": 6, "heads": 8, "expansion": 4},
}


@dataclass(frozen=True, slots=True)
class Options:
    """What may differ from a recipe's own way, for ablations.

    Attributes:
        stages: of PaDIR and SUNDAE.
        kept: share of right words in PaDIR's first input; -1 = drawn for each row.
        start: what PaDIR starts from.
        positional: positional attention.
        smoothing: of labels.
        headed: START in front of what an autoregressive model reads, as the parallel ones have it: they read a source
            alike when they begin from its weights.
    """

    stages: int = 2
    kept: float = recipes.padir.KEPT
    start: Literal["noise", "mask"] = "noise"
    positional: bool | None = None
    smoothing: float | None = None
    headed: bool = False


def layout_of(recipe: str) -> Layout:
    """What the rows of a recipe look like."""
    require_member("recipe", recipe, RECIPES)
    if recipe == "one_pass":
        return "joined"
    return "end" if recipe in ("autoregressive", "deep_shallow") else "length"


def make_model(
    recipe: str,
    codes: int,
    length: int,
    size: str,
    *,
    dropout: float = 0.1,
    seed: int = 0,
    options: Options | None = None,
) -> Model:
    """An untrained model.

    Args:
        recipe: one of ``RECIPES``.
        codes: V.
        length: N, the most pieces of a side.
        size: one of ``SIZES``.
        dropout: its rate.
        seed: of the first weights.
        options: for ablations.
    """
    require_member("recipe", recipe, RECIPES)
    require_member("size", size, SIZES)
    options = Options() if options is None else options
    shape: dict[str, Any] = dict(next(sizes for name, sizes in SIZES.items() if name == size))
    common: dict[str, Any] = {**shape, "places": max(256, length + 2), "dropout": dropout, "seed": seed}
    extra: dict[str, Any] = {} if options.positional is None else {"positional": options.positional}
    match recipe:
        case "padir":
            return recipes.padir.model(codes, length, start=options.start, **extra, **common)
        case "cmlm":
            return recipes.cmlm.model(codes, length, **extra, **common)
        case "disco":
            return recipes.disco.model(codes, length, **common)
        case "sundae":
            return recipes.sundae.model_words(codes, length, **common)
        case "autoregressive":
            return recipes.autoregressive.model(codes, length, headed=options.headed, **common)
        case "deep_shallow":
            return recipes.autoregressive.deep_shallow(codes, length, **(common | {"depth": 2 * shape["depth"]}))
        case _:
            width, depth, heads = shape["width"], 2 * shape["depth"], shape["heads"]
            with seeded(seed):
                network = OnePassTransformer(
                    Discrete(codes), (2 * (length + 1),), codes, width, depth, heads, dropout=dropout
                )
            return Model(network, Categorical(codes))


def make_objective(recipe: str, length: int, options: Options | None = None) -> Objective:
    """What trains a recipe on pairs of at most ``length`` pieces a side."""
    require_member("recipe", recipe, RECIPES)
    options = Options() if options is None else options
    smooth: dict[str, Any] = {} if options.smoothing is None else {"smoothing": options.smoothing}
    match recipe:
        case "padir":
            kept = None if options.kept < 0 else options.kept
            return recipes.padir.objective(length, stages=options.stages, kept=kept, **smooth)
        case "cmlm":
            return recipes.cmlm.objective(length, **smooth)
        case "disco":
            return recipes.disco.objective(length, **smooth)
        case "sundae":
            return recipes.sundae.objective_words(length, unroll=options.stages)
        case "one_pass":
            # Half of the rows are read from first to last, source before target: that is translating.
            return recipes.one_pass.objective(2 * (length + 1), joint_share=0.5)
        case _:
            return recipes.autoregressive.objective(length, **smooth)


def sampler_of(recipe: str, passes: int, *, stutter: bool = True, speculative: bool = False) -> tuple[Sampler, Draw]:
    """How a recipe decodes; ``passes`` is for those that have a say in it."""
    match recipe:
        case "padir":
            return recipes.padir.sampler(passes, stutter=stutter)
        case "cmlm":
            return recipes.cmlm.sampler(passes)
        case "disco":
            return recipes.disco.sampler(passes)
        case "sundae":
            return recipes.sundae.sampler_words(passes)
        case "one_pass":
            greedy = Draw(temperature=0.0)
            return (Speculative(end=END), greedy) if speculative else (CachedChain(end=END), greedy)
        case _:
            return recipes.autoregressive.sampler()
