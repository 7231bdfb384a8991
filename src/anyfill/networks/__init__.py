"""Networks: parameters of every variable given the known ones; one-pass networks answer whole chains."""

from anyfill.networks.coconet import Coconet
from anyfill.networks.counts import WithCounts, count_features
from anyfill.networks.embed import Discrete, Mixed, Real
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.networks.latent import LatentVariable
from anyfill.networks.mlp import ResidualMLP
from anyfill.networks.network import Cached, Network, OnePass, Windowed
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.networks.plain_mlp import PlainMLP
from anyfill.networks.transformer import Transformer
from anyfill.networks.unet import AttentionalUNet

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
