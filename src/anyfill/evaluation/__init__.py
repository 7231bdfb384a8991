"""Evaluation: log-probabilities with their kind and error, self-consistency, and what to measure next."""

from anyfill.evaluation.acquire import Information, information
from anyfill.evaluation.acquisition import Acquired, acquire_rows, acquire_steps, global_order, global_order_steps
from anyfill.evaluation.chain import LogProb, log_prob
from anyfill.evaluation.choosers import (
    AtRandom,
    Choice,
    Chooser,
    Encoder,
    Informed,
    InOrder,
    Latent,
    Oracle,
    Rewarding,
    Standing,
)
from anyfill.evaluation.consistency import ConsistencyReport, consistency
from anyfill.evaluation.curves import Curves, Difference, compare

__all__ = [
    "Acquired",
    "AtRandom",
    "Choice",
    "Chooser",
    "ConsistencyReport",
    "Curves",
    "Difference",
    "Encoder",
    "InOrder",
    "Information",
    "Informed",
    "Latent",
    "LogProb",
    "Oracle",
    "Rewarding",
    "Standing",
    "acquire_rows",
    "acquire_steps",
    "compare",
    "consistency",
    "global_order",
    "global_order_steps",
    "information",
    "log_prob",
]
