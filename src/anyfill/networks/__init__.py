"""Networks: parameters of every variable given the known ones; one-pass networks answer whole chains."""

from anyfill.networks.embed import Discrete, Mixed, Real
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.networks.mlp import ResidualMLP
from anyfill.networks.network import Cached, Network, OnePass
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.networks.transformer import Transformer

__all__ = [
    "Cached",
    "Discrete",
    "EnumeratedJoint",
    "Mixed",
    "Network",
    "OnePass",
    "OnePassTransformer",
    "RandomConditionals",
    "Real",
    "ResidualMLP",
    "Transformer",
]
