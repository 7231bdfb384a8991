"""One boosted model of one target: LightGBM on one thread, kept as the few lines of text that predictions need.

    f(x) = sum_t tree_t(x),      each tree fitted to the gradients of a loss at f so far (and at where it began)

Growing stops when cells that were kept aside are no longer answered better. What is kept is LightGBM's own text of the
trees, less all that only describes their growth, and numbers to nine digits: a model read back from its text is the one
that was scored, on every machine. Several models of one target (one for each fold) are averaged by putting all their
trees into one text with leaves of 1/G the height.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import lightgbm
import numpy as np
from numpy.typing import NDArray

from anyfill.interface.progress import check_cancelled
from anyfill.tables.columns import Floats

_KEPT = (
    *("num_leaves", "num_cat", "split_feature", "threshold", "decision_type", "left_child", "right_child"),
    *("leaf_value", "cat_boundaries", "cat_threshold", "is_linear", "leaf_const", "num_features", "leaf_features"),
    *("leaf_coeff", "shrinkage"),
)
FEW_INPUTS = 12
"""Up to so many inputs every tree sees all."""
_SCALED = ("leaf_value", "leaf_const", "leaf_coeff")
_HEADER = ("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "feature_names")


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How a model is grown.

    Attributes:
        rounds: the most trees (for each class).
        patience: rounds without a better answer to cells kept aside, after which growing stops.
        rate: what each tree counts.
        leaves, min_rows: of each tree.
        columns, rows: shares of the inputs and of the rows that each tree sees.
        bins: the most different values of an input.
        linear: leaves are straight lines in the inputs above them, not constants.
        seed: of what each tree sees.
    """

    rounds: int = 150
    patience: int = 12
    rate: float = 0.07
    leaves: int = 15
    min_rows: int = 10
    columns: float = 0.6
    rows: float = 0.8
    bins: int = 63
    linear: bool = False
    seed: int = 0

    def settings(self, objective: str, classes: int) -> dict[str, Any]:
        """As LightGBM calls them."""
        return {
            "objective": objective,
            **({"num_class": classes} if classes > 1 else {}),
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.min_rows,
            "feature_fraction": self.columns,
            "bagging_fraction": self.rows,
            "bagging_freq": 1 if self.rows < 1.0 else 0,
            "lambda_l2": 1.0,
            "max_bin": self.bins,
            "min_data_in_bin": 2,
            "linear_tree": self.linear,
            "linear_lambda": 0.01 if self.linear else 0.0,
            "cat_smooth": 5.0,
            "max_cat_to_onehot": 8,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }


class Sample(NamedTuple):
    """Inputs (n, F) with NaN for what is missing, targets (n,), and where the model begins, (n,) or (n, classes)."""

    inputs: Floats
    target: Floats
    begin: Floats | None = None


class Grown(NamedTuple):
    """A grown model's text, and its scores (n,) or (n, classes), beginning not included, for the cells kept aside."""

    text: str
    scores: Floats


def grow(train: Sample, kept: Sample, growth: Growth, *, classes: int = 1, categorical: Sequence[int] = ()) -> Grown:
    """Grow a model on some cells until others are no longer answered better.

    Args:
        train, kept: those cells and these.
        growth: how.
        classes: 1 = the target is a number and the loss its squared error; 2 = a code 0 or 1 and the score its
            log-odds; more = a code and the scores its logits.
        categorical: inputs that are codes.
    """
    objective = "regression" if classes == 1 else "binary" if classes == 2 else "multiclass"
    settings = growth.settings(objective, classes if classes > 2 else 1)
    if train.inputs.shape[1] <= FEW_INPUTS:  # a tree that lacks one of two inputs cannot know what both say together
        settings["feature_fraction"] = 1.0
    codes: Any = list(categorical)

    def data(sample: Sample, reference: Any = None) -> Any:
        begin = None if sample.begin is None else sample.begin.reshape(-1, order="F")
        return lightgbm.Dataset(
            sample.inputs,
            sample.target,
            init_score=begin,
            categorical_feature=codes,
            reference=reference,
            params=settings,
            free_raw_data=False,
        )

    learnt = data(train)
    stop = lightgbm.early_stopping(growth.patience, verbose=False)
    has_checks = len(kept.target) > 0
    booster = lightgbm.train(
        settings,
        learnt,
        growth.rounds,
        valid_sets=[data(kept, learnt)] if has_checks else None,
        callbacks=[_between_rounds, stop] if has_checks else [_between_rounds],
    )
    text = slim(booster.model_to_string(num_iteration=booster.best_iteration))
    return Grown(text, scores_of(text, kept.inputs))


def _between_rounds(_: Any) -> None:
    """For LightGBM, which calls it after each round."""
    check_cancelled()


def trees_of(text: str) -> int:
    """How many rounds a model has, of one tree for each class."""
    return text.count("\nTree=") // int(text.split("num_tree_per_iteration=")[1].split("\n")[0])


def slim(text: str, share: float = 1.0) -> str:
    """LightGBM's text of a model without what predictions do not need; leaves at ``share`` of their height."""
    head, *trees = text.split("end of trees")[0].split("\nTree=")
    wanted = [line for line in head.splitlines() if line.split("=")[0] in _HEADER]
    infos = next(line for line in head.splitlines() if line.startswith("feature_infos="))
    wanted.append("feature_infos=" + " ".join("none" for _ in infos.split("=", 1)[1].split(" ")))
    blocks = [_slim_tree(number, tree, share) for number, tree in enumerate(trees)]
    return "\n".join(["tree", *wanted, "", *blocks, "end of trees", ""])


def _slim_tree(number: int, tree: str, share: float) -> str:
    lines = [f"Tree={number}"]
    for line in tree.splitlines()[1:]:
        name, _, values = line.partition("=")
        if name in _KEPT:
            factor = share if name in _SCALED else 1.0
            is_real = name == "threshold" or name in _SCALED
            lines.append(f"{name}={_short(values, factor) if is_real else values}")
    return "\n".join([*lines, "", ""])


def _short(values: str, factor: float) -> str:
    """The numbers of a line to nine digits; spaces stay, as they tell the leaves of linear trees apart."""
    return " ".join(f"{float(one) * factor:.9g}" if one else "" for one in values.split(" "))


def averaged(texts: Sequence[str]) -> str:
    """One model that answers the mean of these."""
    if len(texts) == 1:
        return texts[0]
    slimmed = [slim(text, 1.0 / len(texts)) for text in texts]
    heads = [text.split("\nTree=")[0].rstrip("\n").removesuffix("end of trees").rstrip("\n") for text in slimmed]
    trees = [tree for text in slimmed for tree in text.split("end of trees")[0].split("\nTree=")[1:]]
    blocks = [f"Tree={number}\n{tree.split(chr(10), 1)[1]}" for number, tree in enumerate(trees)]
    return "\n".join([heads[0], "", *blocks, "end of trees", ""])


def scores_of(text: str, inputs: Floats | NDArray[np.float32]) -> Floats:
    """(n,) or (n, classes): what a model says of inputs (n, F), its beginning not included."""
    if not len(inputs):
        classes = int(text.split("num_class=")[1].split("\n")[0])
        return np.zeros((0, classes) if classes > 1 else (0,))
    scores = _booster(text).predict(inputs, raw_score=True, num_threads=1, validate_features=False)
    return np.asarray(scores, dtype=np.float64)


@lru_cache(maxsize=1024)
def _booster(text: str) -> lightgbm.Booster:
    """Read once: a text is asked many times."""
    return lightgbm.Booster(model_str=text)


def log_softmax(scores: Floats) -> Floats:
    """(n, classes): logits, or the log-odds (n,) of code 1, as log-probabilities."""
    logits = np.stack([np.zeros_like(scores), scores], 1) if scores.ndim == 1 else scores
    top = logits.max(1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(1, keepdims=True))


def growth_for(rows: int, rounds: int, *, seed: int) -> Growth:
    """The growth that suits so many rows: the more there are, the larger trees and the longer steps may be."""
    if rows < 4000:
        min_rows = int(min(max(5, rows // 80), 20))
        return Growth(rounds=rounds, patience=12, leaves=15, min_rows=min_rows, rate=0.08, seed=seed)
    return Growth(rounds=rounds, leaves=31, min_rows=20, rate=0.1, columns=0.7, seed=seed)


def rounds_for(classes: int, rounds: int) -> int:
    """Rounds of a model of so many classes: each grows a tree for every class."""
    return min(rounds, max(8, math.ceil(rounds / (1 if classes <= 2 else min(classes, 8) ** 0.5))))
