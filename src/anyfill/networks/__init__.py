"""Networks: parameters of every variable given the known ones; one-pass networks answer whole chains."""

from anyfill.networks.convolutions import AttentionalUNet, Coconet
from anyfill.networks.embed import Discrete, Mixed, Real
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.networks.latent import LatentVariable
from anyfill.networks.mlp import PlainMLP, ResidualMLP, WithCounts, count_features
from anyfill.networks.network import Cached, Network, OnePass, Windowed
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.networks.one_pass_groups import OnePassGroups
from anyfill.networks.transformer import Transformer

__all__ = [
    "AttentionalUNet",
    "Cached",
    "Coconet",
    "Discrete",
    "EnumeratedJoint",
    "LatentVariable",
    "Mixed",
    "Network",
    "OnePass",
    "OnePassGroups",
    "OnePassTransformer",
    "PlainMLP",
    "RandomConditionals",
    "Real",
    "ResidualMLP",
    "Transformer",
    "Windowed",
    "WithCounts",
    "count_features",
]
