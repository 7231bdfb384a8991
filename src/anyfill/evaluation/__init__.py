"""Evaluation: log-probabilities with their kind and error, self-consistency, how chains mix, what to measure next."""

from anyfill.evaluation.acquire import Information, information
from anyfill.evaluation.acquisition import Acquired, acquire_rows, acquire_steps, global_order, global_order_steps
from anyfill.evaluation.calibrated import Calibrated, Observed
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
from anyfill.evaluation.mixing import (
    LearnedGibbs,
    autocorrelation_time,
    effective_sample_size,
    learned_gibbs,
    learned_transition,
    pairwise_dependency,
    stationary_law,
)
from anyfill.evaluation.quantiles import Quantiles

__all__ = [
    "Acquired",
    "AtRandom",
    "Calibrated",
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
    "LearnedGibbs",
    "LogProb",
    "Observed",
    "Oracle",
    "Quantiles",
    "Rewarding",
    "Standing",
    "acquire_rows",
    "acquire_steps",
    "autocorrelation_time",
    "compare",
    "consistency",
    "effective_sample_size",
    "global_order",
    "global_order_steps",
    "information",
    "learned_gibbs",
    "learned_transition",
    "log_prob",
    "pairwise_dependency",
    "stationary_law",
]
