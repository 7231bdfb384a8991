"""Papers as compositions of parts: each recipe is an objective; with a network and a likelihood it is a model."""

from anyfill.recipes.ace import ace, ace_mac, ace_model
from anyfill.recipes.ardm import ardm
from anyfill.recipes.latent import miwae, miwae_model, vae, vae_model
from anyfill.recipes.mac import mac_inpainting, mac_next, mac_rest
from anyfill.recipes.one_pass import one_pass, one_pass_filler
from anyfill.recipes.sfarm import sfarm, sfarm_mlp, sfarm_options
from anyfill.recipes.sunmask import (
    coconet,
    coconet_model,
    coconet_sampler,
    sundae,
    sundae_model,
    sundae_variant,
    sunmask,
    sunmask_transformer_model,
    sunmask_unet_model,
    sunmask_variant,
)

__all__ = [
    "ace",
    "ace_mac",
    "ace_model",
    "ardm",
    "coconet",
    "coconet_model",
    "coconet_sampler",
    "mac_inpainting",
    "mac_next",
    "mac_rest",
    "miwae",
    "miwae_model",
    "one_pass",
    "one_pass_filler",
    "sfarm",
    "sfarm_mlp",
    "sfarm_options",
    "sundae",
    "sundae_model",
    "sundae_variant",
    "sunmask",
    "sunmask_transformer_model",
    "sunmask_unet_model",
    "sunmask_variant",
    "vae",
    "vae_model",
]
