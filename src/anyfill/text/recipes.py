"""Text: every method of the comparison as a model and an objective by name, at four sizes, all of the same trunk.

    name                  network                              corruption          objective of the same name in
    "ardm"                bidirectional                        blank               recipes.ardm.objective
    "mac_next", "mac_rest", "mac_inpainting"   likewise        blank               recipes.mac
    "sunmask"             bidirectional, stretched flag        noise, mask visible recipes.sunmask
    "sundae"              the same                             noise, mask hidden  recipes.sundae
    "one_pass", "one_pass_filler"   causal, sorted blocks      none                recipes.one_pass
    "one_pass_spans"      the same                             none                this file
    "one_pass_agreeing"   the same                             none                this file
    "left_to_right"       the same                             none                this file

Plain autoregression is the bound for all others: the same network, trained on one order only. It can be asked
for p(row) and p(what comes next | the beginning of a row) alone (``Factorization.PREFIX``). For people who fill blanks,
"one_pass_spans" is trained on holes and unfinished rows half of the time, any question the other half.

Sizes count the weights of the blocks (12 · depth · width²); embeddings and the output come on top.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import torch

from anyfill.checks import refuse, require_count, require_member
from anyfill.corruption import Absorbing, Uniform
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.embed import Discrete
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.networks.transformer import Transformer
from anyfill.objectives.agreement import AgreeingLoss
from anyfill.objectives.objective import Objective
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.mixture import Mixture
from anyfill.questions.order import Increasing
from anyfill.questions.regions import Spans
from anyfill.questions.subsets import UniformSplits
from anyfill.recipes import ardm, mac, one_pass, sundae, sunmask

TextSize = Literal["1M", "6M", "10M", "25M", "85M"]
TEXT_SIZES: dict[TextSize, tuple[int, int, int]] = {
    "1M": (128, 5, 4),
    "6M": (256, 8, 8),
    "10M": (320, 8, 8),
    "25M": (512, 8, 8),
    "85M": (768, 12, 12),
}
"""Width, depth, heads; the last is the paper's, of MAC on text8."""


def left_to_right(variables: int) -> OnePassLoss:
    """Every row read from first to last."""
    return OnePassLoss(UniformSplits(variables), Increasing(), joint_share=1.0)


def one_pass_spans(variables: int, *, joint_share: float = 0.25, conditioned_share: float = 0.0) -> OnePassLoss:
    """For any question, and as often for blanks in a line; shares as in ``one_pass``."""
    questions = Mixture((UniformSplits(variables), Spans(variables)))
    return OnePassLoss(questions, Increasing(), joint_share, conditioned_share)


def one_pass_agreeing(variables: int) -> OnePassLoss:
    """For blanks in a line, three in four, short ones above all, that agree with the joint (``AgreeingLoss``)."""
    short = Spans(variables, most=2, longest=4), Spans(variables, most=1, longest=2)
    questions = Mixture((UniformSplits(variables), Spans(variables), *short))
    return AgreeingLoss(questions, Increasing(), 0.4)


TEXT_RECIPES: dict[str, Callable[[int], Objective]] = {
    "ardm": ardm.objective,
    "mac_next": mac.objective,
    "mac_rest": mac.objective_rest,
    "mac_inpainting": mac.objective_inpainting,
    "sunmask": sunmask.objective,
    "sundae": sundae.objective,
    "one_pass": one_pass.objective,
    "one_pass_filler": one_pass.objective_filler,
    "one_pass_spans": one_pass_spans,
    "one_pass_agreeing": one_pass_agreeing,
    "left_to_right": left_to_right,
}
"""Names of the command, and what trains each."""
_ONE_PASS = ("one_pass", "one_pass_filler", "one_pass_spans", "one_pass_agreeing", "left_to_right")


def text_objective(
    recipe: str,
    length: int,
    *,
    joint_share: float | None = None,
    conditioned_share: float | None = None,
    weigh: Literal["terms", "questions"] | None = None,
) -> Objective:
    """What trains this recipe on rows of ``length`` codes.

    Args:
        recipe: which method; see the top of this file.
        length: N.
        joint_share: share of the rows that a one-pass recipe reads from first to last; None = the recipe's own.
        conditioned_share: share of its other rows whose given block is not scored; None = the recipe's own.
        weigh: what counts once in it, a term or a block, see ``OnePassLoss``; None = the recipe's own.
    """
    require_member("recipe", recipe, TEXT_RECIPES)
    objective = TEXT_RECIPES[recipe](length)
    settings: dict[str, Any] = {"joint_share": joint_share, "conditioned_share": conditioned_share, "weigh": weigh}
    named = {name: setting for name, setting in settings.items() if setting is not None}
    if not named:
        return objective
    if not isinstance(objective, OnePassLoss) or recipe == "left_to_right":
        raise refuse(next(iter(named)), expected="None, or a one-pass recipe of several orders", got=f"with {recipe!r}")
    return replace(objective, **named)


def text_model(
    recipe: str,
    length: int,
    codes: int,
    *,
    size: TextSize = "25M",
    dropout: float = 0.0,
    periods: int | None = None,
    given: Literal["causal", "full"] = "causal",
    ignored: Literal["left out", "blank"] = "left out",
    seed: int = 0,
) -> Model:
    """An untrained model of rows of ``length`` codes, each from 0 to codes - 1.

    Args:
        recipe: which method; see the top of this file.
        length: N.
        codes: the vocabulary's size.
        size: of the trunk, see ``TEXT_SIZES``.
        dropout: rate after attention and MLP.
        periods: None = every place has learned vectors of its own; p = places share p of them in turn, and the weights
            serve rows of any length (``model.network.resized``).
        given: how a one-pass recipe of several orders reads given values, see ``OnePassTransformer``; "full" needs an
            objective with a ``conditioned_share``.
        ignored: what it makes of places that are neither given nor asked, likewise; "blank" needs an objective with a
            ``conditioned_share`` between 0 and 1.
        seed: of the first weights.
    """
    require_member("recipe", recipe, TEXT_RECIPES)
    require_count("length", length)
    require_count("codes", codes, minimum=2)
    require_member("size", size, TEXT_SIZES)
    if recipe not in _ONE_PASS or recipe == "left_to_right":
        for name, setting, usual in (("given", given, "causal"), ("ignored", ignored, "left out")):
            if setting != usual:
                expected = f"{usual!r}, or a one-pass recipe of several orders"
                raise refuse(name, expected=expected, got=f"{setting!r} with {recipe!r}")
    width, depth, heads = TEXT_SIZES[size]
    kind, shape = Discrete(codes), (length,)
    turns, is_noisy = None if periods is None else (periods,), recipe in ("sunmask", "sundae")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if recipe in _ONE_PASS:
            network = OnePassTransformer(
                kind, shape, codes, width, depth, heads, dropout=dropout, periods=turns, given=given, ignored=ignored
            )
        else:
            flag = "stretched" if is_noisy else "added"
            network = Transformer(kind, shape, codes, width, depth, heads, dropout=dropout, periods=turns, flag=flag)
    corruption = Uniform(codes, mask_visible=recipe == "sunmask") if is_noisy else Absorbing()
    return Model(network, Categorical(codes), corruption=corruption, order=Increasing())
