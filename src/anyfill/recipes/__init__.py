"""Papers as compositions of parts: each recipe is an objective; with a network and a likelihood it is a model."""

from anyfill.recipes.baselines import ardm
from anyfill.recipes.mac import mac_inpainting, mac_next, mac_rest
from anyfill.recipes.one_pass import one_pass, one_pass_filler

__all__ = ["ardm", "mac_inpainting", "mac_next", "mac_rest", "one_pass", "one_pass_filler"]
