"""Papers as compositions of parts: each recipe is an objective; with a network and a likelihood it is a model."""

from anyfill.recipes.ace import ace, ace_mac, ace_model
from anyfill.recipes.baselines import ardm
from anyfill.recipes.gaussian_em import fit_gaussian, gaussian_em_model
from anyfill.recipes.guided import GuidedOptions, guided_steps
from anyfill.recipes.latent import miwae, miwae_model, vae, vae_model
from anyfill.recipes.mac import mac_inpainting, mac_next, mac_rest
from anyfill.recipes.one_pass import one_pass, one_pass_filler
from anyfill.recipes.sfarm import sfarm, sfarm_mlp, sfarm_options

__all__ = [
    "GuidedOptions",
    "ace",
    "ace_mac",
    "ace_model",
    "ardm",
    "fit_gaussian",
    "gaussian_em_model",
    "guided_steps",
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
    "vae",
    "vae_model",
]
