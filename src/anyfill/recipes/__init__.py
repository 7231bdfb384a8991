"""Papers as compositions of parts: each recipe is an objective; with a network and a likelihood it is a model."""

from anyfill.recipes.ace import ace, ace_mac, ace_model
from anyfill.recipes.baselines import ardm
from anyfill.recipes.gaussian_em import fit_gaussian, gaussian_em_model
from anyfill.recipes.guided import GuidedOptions, guided_steps
from anyfill.recipes.ising import IsingFit, IsingStep, fit_ising, ising_steps
from anyfill.recipes.latent import miwae, miwae_model, vae, vae_model
from anyfill.recipes.mac import mac_inpainting, mac_next, mac_rest
from anyfill.recipes.music import one_pass_chorale, one_pass_chorale_model
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
from anyfill.recipes.text import left_to_right, one_pass_spans, text_model, text_objective
from anyfill.recipes.voice_leading import NoParallels

__all__ = [
    "GuidedOptions",
    "IsingFit",
    "IsingStep",
    "NoParallels",
    "ace",
    "ace_mac",
    "ace_model",
    "ardm",
    "coconet",
    "coconet_model",
    "coconet_sampler",
    "fit_gaussian",
    "fit_ising",
    "gaussian_em_model",
    "guided_steps",
    "ising_steps",
    "left_to_right",
    "mac_inpainting",
    "mac_next",
    "mac_rest",
    "miwae",
    "miwae_model",
    "one_pass",
    "one_pass_chorale",
    "one_pass_chorale_model",
    "one_pass_filler",
    "one_pass_spans",
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
    "text_model",
    "text_objective",
    "vae",
    "vae_model",
]
