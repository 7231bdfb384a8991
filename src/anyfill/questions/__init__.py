"""Questions (given, asked), the orders in which asked variables are answered, and distributions over questions.

Families      UniformCardinality, UniformSplits, Bernoulli, KSubset, Mixture
MAC's edges   MacEdges and InpaintingEdges (closed form), Edges (any test distribution), TheRest (all unknown asked)
Orders        Increasing, Decreasing, Shuffled, Spaced, ByRegion
"""

from anyfill.questions.bernoulli import Bernoulli
from anyfill.questions.cardinality import UniformCardinality, UniformSplits
from anyfill.questions.edges import Edges
from anyfill.questions.enumerate import edges_by_definition, enumerate_questions
from anyfill.questions.k_subset import KSubset
from anyfill.questions.mac import InpaintingEdges, MacEdges, TheRest
from anyfill.questions.mixture import Mixture
from anyfill.questions.order import ByRegion, Decreasing, Increasing, Shuffled, Spaced
from anyfill.questions.question import (
    Decomposable,
    Enumerable,
    Order,
    Question,
    Questions,
    Reading,
    Weighted,
    chain_rank,
    question_of,
    rank_of,
)

__all__ = [
    "Bernoulli",
    "ByRegion",
    "Decomposable",
    "Decreasing",
    "Edges",
    "Enumerable",
    "Increasing",
    "InpaintingEdges",
    "KSubset",
    "MacEdges",
    "Mixture",
    "Order",
    "Question",
    "Questions",
    "Reading",
    "Shuffled",
    "Spaced",
    "TheRest",
    "UniformCardinality",
    "UniformSplits",
    "Weighted",
    "chain_rank",
    "edges_by_definition",
    "enumerate_questions",
    "question_of",
    "rank_of",
]
