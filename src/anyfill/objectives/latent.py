"""The evidence bound that trains a latent variable model, over the present values alone.

    K = 1   E_q log p(x_O | z) - KL(q(z | x_O) || p(z))                     the ELBO: VAE (Kingma & Welling, eq. 10)
    K > 1   E log 1/K sum_l p(x_O | z_l) p(z_l) / q(z_l | x_O)              MIWAE (Mattei & Frellsen, eq. 4)

Both are below log p(x_O), the second the closer the larger K. Given z the variables are independent, so a missing value
is integrated out exactly by leaving its factor out of p(x_O | z): nothing is filled in (missing at random).

What this trains is one joint p(x), and with it every conditional of every subset: the network reads p(x_j | x_O) off it
by importance sampling, so it may be read in ANY_ORDER. With finitely many draws the conditionals fit together only
approximately: a log-probability in one order is exact for the law sampled in that order, and orders differ a little.

``hidden`` trains the encoder on incomplete rows: each row hides each value with a probability drawn uniformly
between 0 and ``hidden``, as in EDDI and HH-VAEM. Without it an encoder trained on complete rows has never seen a hole.
"""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_counts, require_probability, require_shape
from anyfill.model import Model
from anyfill.networks.latent import Latent
from anyfill.objectives.objective import Objective
from anyfill.questions.question import Factorization
from anyfill.rank import NEVER
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class EvidenceBound(Objective):
    """Minus a bound on log p(present values), nats per row.

    Attributes:
        variables: N.
        draws: K, draws of z per row.
        hidden: the largest share of values that a row may hide in training.
    """

    variables: int
    draws: int = 1
    hidden: float = 0.0

    def __post_init__(self) -> None:
        require_counts(self, "variables", "draws")
        require_probability("hidden", self.hidden)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return frozenset({Factorization.ANY_ORDER})

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        """Everything is asked at once, but for what is hidden."""
        shape, device = (batch, self.variables), generator.device
        if not self.hidden:
            return torch.zeros(shape, dtype=torch.int64, device=device)
        rate = self.hidden * torch.rand(batch, 1, generator=generator, device=device)
        return torch.where(torch.rand(shape, generator=generator, device=device) < rate, NEVER, 0)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        network = model.network
        if not isinstance(network, Latent):
            raise refuse("network", expected="a LatentVariable or LatentUNet", got=type(network).__name__)
        if generator is None:
            raise refuse("generator", expected="one, for the draws of z", got="none")
        require_shape("rank", rank, tuple(rows.x.shape))
        known = rows.present & (rank < NEVER)
        shape = (len(rows), self.draws, network.latent)
        noise = torch.randn(shape, generator=generator, device=generator.device).to(rows.x.device)
        drawn = network.draw(rows.x, known, noise)
        if self.draws > 1:
            return math.log(self.draws) - (drawn.log_likelihood + drawn.log_ratio).logsumexp(1)
        mean, scale = network.posterior(rows.x, known)
        divergence = 0.5 * (mean.square() + scale.square() - 1.0) - scale.log()
        return divergence.sum(1) - drawn.log_likelihood[:, 0]
