"""Samplers: draw p(asked | given), and watch it being drawn.

Loop       trace (state by state; also called watch), sample (to the end)
Parallel   RewriteAll (PaDIR), MaskPredict (CMLM), EasyFirst (DisCo)
Policies   Follow, Confidence, EntropyBounded, Remask, Gibbs, AnnealedGibbs (Coconet), Rewrite (SUNMASK, SUNDAE)
Others     CachedChain (key-value cache), Speculative (fewer passes, same law), NgramDraft (what it may guess from)
Denoising  RePaint (DDPM's sampler, and completion)
Groups     best_cuts (S' groups that cost least, for Follow(cuts=...)), grouped_cost
No draws   beam_search (likely answers as a whole)
Values     Draw (temperature, top-k, nucleus, typical), Veto (rules to keep), best_of (many samples)
A new one  subclass Policy: visible and commit are all it must say
"""

from anyfill.samplers.annealed import Anneal, AnnealedGibbs, Rewrite
from anyfill.samplers.cached import CachedChain, Veto, beam_search, can_search
from anyfill.samplers.confidence import Confidence, EntropyBounded, Remask
from anyfill.samplers.drafts import Draft, NgramDraft
from anyfill.samplers.draw import Draw, Restricted, best_of, reshape_log_probs
from anyfill.samplers.grouping import best_cuts, grouped_cost
from anyfill.samplers.loop import Sample, sample, trace, watch
from anyfill.samplers.parallel import EasyFirst, MaskPredict, RewriteAll, repeated
from anyfill.samplers.planned import Follow, Gibbs
from anyfill.samplers.policy import Answer, Policy, Sampler, State, Task
from anyfill.samplers.repaint import RePaint
from anyfill.samplers.speculative import Speculative

__all__ = [
    "Anneal",
    "AnnealedGibbs",
    "Answer",
    "CachedChain",
    "Confidence",
    "Draft",
    "Draw",
    "EasyFirst",
    "EntropyBounded",
    "Follow",
    "Gibbs",
    "MaskPredict",
    "NgramDraft",
    "Policy",
    "RePaint",
    "Remask",
    "Restricted",
    "Rewrite",
    "RewriteAll",
    "Sample",
    "Sampler",
    "Speculative",
    "State",
    "Task",
    "Veto",
    "beam_search",
    "best_cuts",
    "best_of",
    "can_search",
    "grouped_cost",
    "repeated",
    "reshape_log_probs",
    "sample",
    "trace",
    "watch",
]
