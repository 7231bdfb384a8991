"""Samplers: draw p(asked | given), and watch it being drawn.

Loop       trace (a policy), sample and watch (a policy or a decoder)
Policies   Follow, Confidence, EntropyBounded, Remask, Gibbs, AnnealedGibbs (Coconet), Rewrite (SUNMASK, SUNDAE)
Decoders   CachedChain (key-value cache), Speculative (fewer passes, same law), NgramDraft (what it may guess from)
Values     Draw (temperature, top-k, nucleus, typical), Veto (rules to keep)
Chains     KGibbs, BlockDynamics, IndependentParallel on Ising models; gibbs_updates for speed
"""

from anyfill.samplers.annealed import Anneal, AnnealedGibbs
from anyfill.samplers.best_of import best_of
from anyfill.samplers.cached import CachedChain
from anyfill.samplers.drafts import Draft, NgramDraft
from anyfill.samplers.draw import Draw, reshape_log_probs
from anyfill.samplers.gibbs import Gibbs
from anyfill.samplers.loop import trace
from anyfill.samplers.policy import Answer, Confidence, EntropyBounded, Follow, Forgetful, Policy, State
from anyfill.samplers.remask import Remask
from anyfill.samplers.rewrite import Rewrite
from anyfill.samplers.sample import Decoder, Sample, sample, watch
from anyfill.samplers.speculative import Speculative
from anyfill.samplers.veto import Veto

__all__ = [
    "Anneal",
    "AnnealedGibbs",
    "Answer",
    "CachedChain",
    "Confidence",
    "Decoder",
    "Draft",
    "Draw",
    "EntropyBounded",
    "Follow",
    "Forgetful",
    "Gibbs",
    "NgramDraft",
    "Policy",
    "Remask",
    "Rewrite",
    "Sample",
    "Speculative",
    "State",
    "Veto",
    "best_of",
    "reshape_log_probs",
    "sample",
    "trace",
    "watch",
]
