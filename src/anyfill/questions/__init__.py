"""Questions (given, asked), the orders in which asked variables are answered, and distributions over questions.

Families      UniformCardinality, UniformSplits, Bernoulli, KSubset, Regions, Spans, Staged, Mixture
MAC's edges   MacEdges and InpaintingEdges (closed form), Edges (any test distribution), TheRest (all unknown asked)
Orders        Increasing, Decreasing, Shuffled, Spaced, ByRegion, InStages
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
    Factorization,
    Order,
    Question,
    Questions,
    Weighted,
    chain_rank,
    question_of,
    rank_of,
)
from anyfill.questions.regions import Regions
from anyfill.questions.spans import Spans
from anyfill.questions.staged import InStages, Staged, directions, patches

__all__ = [
    "Bernoulli",
    "ByRegion",
    "Decomposable",
    "Decreasing",
    "Edges",
    "Enumerable",
    "Factorization",
    "InStages",
    "Increasing",
    "InpaintingEdges",
    "KSubset",
    "MacEdges",
    "Mixture",
    "Order",
    "Question",
    "Questions",
    "Regions",
    "Shuffled",
    "Spaced",
    "Spans",
    "Staged",
    "TheRest",
    "UniformCardinality",
    "UniformSplits",
    "Weighted",
    "chain_rank",
    "directions",
    "edges_by_definition",
    "enumerate_questions",
    "patches",
    "question_of",
    "rank_of",
]
