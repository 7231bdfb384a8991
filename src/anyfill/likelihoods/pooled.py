"""The mixture of several answers: an ensemble of networks, or draws of a latent variable with importance weights.

    p(x) = sum_m w_m p_m(x),      w_m = 1/M, or softmax of M log-weights

The parameters of a variable are those of member 0, then member 1, …, and last the log-weights where there are any. What
a pool answers with is again a mixture of the same family, so every answer is as exact as its family's:

    Gaussian                  M components
    mixtures, on a grid too   M times the components; a spike that all members have stays one, its weights added
    Bernoulli, Categorical    the averaged probabilities
    Mixed                     each family of columns as above

Temperature acts on the pool, not inside its members: p^(1/T) of the averaged probabilities for codes; for numbers a
component from (w_m w_mk)^(1/T), with scale s sqrt(T). T = 0 is the mode of the pool.
"""

import math
from dataclasses import dataclass

from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.likelihoods.marginals import Likelihood, Marginals, PerVariable, Poolable
from anyfill.likelihoods.numerics import read_params


@dataclass(frozen=True, slots=True)
class Pooled(Likelihood):
    """M answers of one likelihood as one; M P parameters, and M more if ``weighted``.

    Args:
        base: the likelihood of each member; ``Mixed`` and another ``Pooled`` are as good as any.
        members: M, at least 1.
        weighted: the last M parameters of each variable are the members' log-weights, of any sum.
    """

    base: Likelihood
    members: int
    weighted: bool = False

    def __post_init__(self) -> None:
        require_count("Pooled members", self.members)
        # A class satisfies the protocol as its instances do.
        if isinstance(self.base, type) or not isinstance(self.base, Likelihood):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise refuse("Pooled base", expected="a likelihood", got=repr(self.base))

    @property
    def width(self) -> int:
        return self.members * (self.base.width + self.weighted)

    def __call__(self, params: Tensor) -> Marginals:
        """(B, N, M P [+ M]) -> distributions."""
        members, log_weights = self._split(params)
        return self._pool(self.base(members), log_weights)

    def at(self, params: Tensor, variable: Tensor) -> Marginals:
        """Distributions of the variables ``variable`` (B, K, int), one parameter row (B, K, M P [+ M]) for each."""
        members, log_weights = self._split(params)
        of_base = self.base.at(members, variable) if isinstance(self.base, PerVariable) else self.base(members)
        return self._pool(of_base, log_weights)

    def _split(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """The parameters of the members, (M, B, N, P), and their log-weights (M, B, N)."""
        params = read_params(params, self.width, f"Pooled of {self.members}")
        ends = [self.members * self.base.width, self.members * self.weighted]
        members, logits = params.split(ends, -1)
        if self.weighted:
            log_weights = logits.log_softmax(-1).movedim(-1, 0)
        else:
            log_weights = params.new_full((), -math.log(self.members)).expand(self.members, *params.shape[:-1])
        return members.unflatten(-1, (self.members, self.base.width)).movedim(-2, 0), log_weights

    def _pool(self, marginals: Marginals, log_weights: Tensor) -> Marginals:
        if not isinstance(marginals, Poolable):
            raise refuse("Pooled base", expected="a likelihood whose marginals can be pooled", got=repr(self.base))
        return marginals.pooled(log_weights)
