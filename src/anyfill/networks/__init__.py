"""Networks: parameters of every variable given the known ones; one-pass networks answer whole chains."""

from anyfill.networks.averaged import Averaged
from anyfill.networks.context import FixedContext
from anyfill.networks.convolutions import AttentionalUNet, Coconet
from anyfill.networks.coupled import CoupledChannels
from anyfill.networks.decoders import CausalDecoder, DisentangledDecoder
from anyfill.networks.embed import Cycle, Discrete, Mixed, Real
from anyfill.networks.encoder_decoder import EncoderDecoder
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.networks.latent import LatentVariable
from anyfill.networks.latent_unet import LatentUNet
from anyfill.networks.mlp import PlainMLP, ResidualMLP, WithCounts, count_features
from anyfill.networks.network import (
    Branching,
    Cached,
    ChainsCells,
    Foresees,
    Network,
    OnePass,
    ReadsContext,
    Windowed,
)
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.networks.one_pass_groups import OnePassGroups
from anyfill.networks.pitch_unet import PitchUNet
from anyfill.networks.transformer import Transformer
from anyfill.networks.unet import UNet

__all__ = [
    "AttentionalUNet",
    "Averaged",
    "Branching",
    "Cached",
    "CausalDecoder",
    "ChainsCells",
    "Coconet",
    "CoupledChannels",
    "Cycle",
    "Discrete",
    "DisentangledDecoder",
    "EncoderDecoder",
    "EnumeratedJoint",
    "FixedContext",
    "Foresees",
    "LatentUNet",
    "LatentVariable",
    "Mixed",
    "Network",
    "OnePass",
    "OnePassGroups",
    "OnePassTransformer",
    "PitchUNet",
    "PlainMLP",
    "RandomConditionals",
    "ReadsContext",
    "Real",
    "ResidualMLP",
    "Transformer",
    "UNet",
    "Windowed",
    "WithCounts",
    "count_features",
]
