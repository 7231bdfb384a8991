"""Samplers: draw p(asked | given), and watch it being drawn.

Loop       trace (a policy), sample and watch (a policy or a decoder)
Policies   Follow, Confidence, EntropyBounded, Gibbs
Decoders   CachedChain (key-value cache), Speculative (fewer passes, same law)
Values     Draw (temperature, top-k, nucleus, typical)
"""

from anyfill.samplers.cached import CachedChain
from anyfill.samplers.draw import Draw, reshape_log_probs
from anyfill.samplers.gibbs import Gibbs
from anyfill.samplers.loop import trace
from anyfill.samplers.policy import Answer, Confidence, EntropyBounded, Follow, Policy, State
from anyfill.samplers.sample import Decoder, Sample, sample, watch
from anyfill.samplers.speculative import Speculative

__all__ = [
    "Answer",
    "CachedChain",
    "Confidence",
    "Decoder",
    "Draw",
    "EntropyBounded",
    "Follow",
    "Gibbs",
    "Policy",
    "Sample",
    "Speculative",
    "State",
    "reshape_log_probs",
    "sample",
    "trace",
    "watch",
]
