"""Questions (given, asked), the orders in which asked variables are answered, and distributions over questions.

Families      UniformCardinality, UniformSplits, Bernoulli, KSubset, HeadGiven, Regions, Spans, ScatteredSpans, Staged,
              Mixture
Pictures      Modes (SFARM), Rectangles, Strokes; PerPixel asks all channels of a pixel
MAC's edges   MacEdges and InpaintingEdges (closed form), Edges (any test distribution), TheRest (all unknown asked)
Orders        Increasing, Decreasing, Shuffled, Spaced, ByRegion, InStages, HeadFirst, Scan, PixelOrder
"""

from anyfill.questions.families import edges_by_definition, enumerate_questions
from anyfill.questions.mac import Edges, InpaintingEdges, MacEdges, TheRest
from anyfill.questions.mixture import InStages, Mixture, Staged, directions, patches
from anyfill.questions.modes import MODES, Modes, PerPixel, PixelOrder, Strokes
from anyfill.questions.order import ByRegion, Decreasing, HeadFirst, Increasing, Shuffled, Spaced
from anyfill.questions.question import (
    Factorization,
    Family,
    Order,
    Question,
    Questions,
    Weighted,
    chain_rank,
    question_of,
    rank_of,
)
from anyfill.questions.regions import Rectangles, Regions, Scan, ScatteredSpans, Spans, scans
from anyfill.questions.subsets import Bernoulli, HeadGiven, KSubset, UniformCardinality, UniformSplits

__all__ = [
    "MODES",
    "Bernoulli",
    "ByRegion",
    "Decreasing",
    "Edges",
    "Factorization",
    "Family",
    "HeadFirst",
    "HeadGiven",
    "InStages",
    "Increasing",
    "InpaintingEdges",
    "KSubset",
    "MacEdges",
    "Mixture",
    "Modes",
    "Order",
    "PerPixel",
    "PixelOrder",
    "Question",
    "Questions",
    "Rectangles",
    "Regions",
    "Scan",
    "ScatteredSpans",
    "Shuffled",
    "Spaced",
    "Spans",
    "Staged",
    "Strokes",
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
    "scans",
]
