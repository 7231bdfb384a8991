"""Evaluation: log-probabilities with their kind and error, self-consistency, how chains mix, what to measure next."""

from anyfill.evaluation.acquire import Information, information
from anyfill.evaluation.bounds import (
    Mean,
    StepNats,
    bits_per_dim,
    mean_of,
    mixture_log_prob,
    nats_by_step,
    step_nats,
    stratified_bound,
)
from anyfill.evaluation.chain import LogProb, log_prob, terms
from anyfill.evaluation.consistency import ConsistencyReport, consistency
from anyfill.evaluation.mixing import (
    LearnedGibbs,
    autocorrelation_time,
    effective_sample_size,
    learned_gibbs,
    learned_transition,
    pairwise_dependency,
    stationary_law,
)
from anyfill.evaluation.posterior import Posterior, can_enumerate, posterior
from anyfill.evaluation.shared_prefix import Beginning, read_beginning, shared_prefix_log_prob

__all__ = [
    "Beginning",
    "ConsistencyReport",
    "Information",
    "LearnedGibbs",
    "LogProb",
    "Mean",
    "Posterior",
    "StepNats",
    "autocorrelation_time",
    "bits_per_dim",
    "can_enumerate",
    "consistency",
    "effective_sample_size",
    "information",
    "learned_gibbs",
    "learned_transition",
    "log_prob",
    "mean_of",
    "mixture_log_prob",
    "nats_by_step",
    "pairwise_dependency",
    "posterior",
    "read_beginning",
    "shared_prefix_log_prob",
    "stationary_law",
    "step_nats",
    "stratified_bound",
    "terms",
]
