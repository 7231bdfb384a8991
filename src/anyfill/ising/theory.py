"""The exact lab: what theory says about masks, blocks and chains, computed on laws of all 2^N states.

Estimation    fisher_information, block_information, score_covariance, asymptotic_variance (and their ``ising_`` forms)
Dynamics      apply_dynamics, transition_matrix, dirichlet_form, poincare_constant, slowest_mode, mixing_time
Parallel      independent_parallel_matrix, independent_parallel_law
Hitting       gth_hitting_times, truncated_mean, Clique and its lumped chains, reach_bound, stuck_bound, separation
Learning      tensorization_constant, generalisation_bound
"""

from anyfill.ising.asymptotics import (
    asymptotic_variance,
    block_information,
    fisher_information,
    inverse_information,
    ising_information,
    ising_variance,
    mean_score_covariance,
    score_covariance,
)
from anyfill.ising.clique import Clique, LumpedChain, clique_kgibbs_matrix, clique_parallel_matrix
from anyfill.ising.dynamics import apply_dynamics, dirichlet_form, dirichlet_sum, transition_matrix
from anyfill.ising.generalisation import GeneralisationBound, generalisation_bound
from anyfill.ising.hitting import (
    HittingLaw,
    gth_hitting_times,
    hitting_law,
    log_hitting_times,
    truncated_mean,
)
from anyfill.ising.parallel import independent_parallel_law, independent_parallel_matrix
from anyfill.ising.sampled_information import SampledInformation, sampled_information
from anyfill.ising.separation import ferromagnet, modes, reach_bound, separation, stuck_bound
from anyfill.ising.spectra import SlowestMode, mixing_time, poincare_constant, slowest_mode, spectrum
from anyfill.ising.tensorization import (
    Tensorization,
    conditional_divergence,
    tensorization_bound,
    tensorization_constant,
    tensorization_ratio,
)

__all__ = [
    "Clique",
    "GeneralisationBound",
    "HittingLaw",
    "LumpedChain",
    "SampledInformation",
    "SlowestMode",
    "Tensorization",
    "apply_dynamics",
    "asymptotic_variance",
    "block_information",
    "clique_kgibbs_matrix",
    "clique_parallel_matrix",
    "conditional_divergence",
    "dirichlet_form",
    "dirichlet_sum",
    "ferromagnet",
    "fisher_information",
    "generalisation_bound",
    "gth_hitting_times",
    "hitting_law",
    "independent_parallel_law",
    "independent_parallel_matrix",
    "inverse_information",
    "ising_information",
    "ising_variance",
    "log_hitting_times",
    "mean_score_covariance",
    "mixing_time",
    "modes",
    "poincare_constant",
    "reach_bound",
    "sampled_information",
    "score_covariance",
    "separation",
    "slowest_mode",
    "spectrum",
    "stuck_bound",
    "tensorization_bound",
    "tensorization_constant",
    "tensorization_ratio",
    "transition_matrix",
    "truncated_mean",
]
