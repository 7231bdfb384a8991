"""Evaluation: log-probabilities with their kind and error, self-consistency, and what to measure next."""

from anyfill.evaluation.acquire import Information, information
from anyfill.evaluation.chain import LogProb, log_prob
from anyfill.evaluation.consistency import ConsistencyReport, consistency

__all__ = ["ConsistencyReport", "Information", "LogProb", "consistency", "information", "log_prob"]
