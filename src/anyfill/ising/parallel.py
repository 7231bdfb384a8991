"""The independent parallel chain of an Ising model and its exact stationary law (GMLM definition 11, footnote 12).

Every spin is redrawn at once from p(s_i | s_-i) of the old state. With the field on each spin
phi_i(s) = h_i + c sum_j J_ij s_j,

    P(s, t)  = prod_i exp(t_i phi_i(s)) / (2 cosh phi_i(s))
    law(s)   ∝ exp(sum_i h_i s_i) prod_i cosh phi_i(s)

because law(s) P(s, t) ∝ exp(sum_i h_i (s_i + t_i) + c sum_ij t_i J_ij s_j) is symmetric in s and t. So the footnote's
question has an answer: the chain is reversible, every P(s, t) > 0 makes it ergodic, and the law is not the model's
unless all couplings are 0. Unlike block dynamics it has negative eigenvalues: its relaxation time is
1 / (1 - max |lambda|), and with strong couplings it swaps between a state and its image for a long time.
"""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from anyfill.ising.dynamics import require_dense
from anyfill.ising.model import Ising
from anyfill.networks.states import all_codes, require_exact, to_spins


def independent_parallel_matrix(ising: Ising) -> Tensor:
    """float64 (2^N, 2^N): P(x, y), the states in their usual order. N <= 14."""
    require_dense(ising.variables)
    spins = to_spins(all_codes(ising.variables))
    field = _field(ising, spins)
    # log p(t_i | s) = logsigmoid(2 t_i phi_i): summed over i as the part for +1 and the part for -1.
    up, down = logsigmoid(2.0 * field), logsigmoid(-2.0 * field)
    return (up @ (spins > 0).double().T + down @ (spins < 0).double().T).exp()


def independent_parallel_law(ising: Ising) -> Tensor:
    """float64 (2^N,): log-probabilities of the stationary law. N <= 20."""
    require_exact(ising.variables, "the law of the independent parallel chain")
    spins = to_spins(all_codes(ising.variables))
    size = _field(ising, spins).abs()
    log_cosh = (size + torch.log1p((-2.0 * size).exp())).sum(1)
    return (spins @ ising.fields.detach() + log_cosh).log_softmax(0)


def _field(ising: Ising, spins: Tensor) -> Tensor:
    return ising.fields.detach() + spins @ ising.interaction.detach()
