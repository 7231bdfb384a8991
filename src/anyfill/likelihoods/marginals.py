"""What a likelihood is: network parameters (B, N, P) in, one distribution per variable out."""

from typing import Protocol, runtime_checkable

from torch import Tensor

from anyfill.likelihoods.numerics import Source


@runtime_checkable
class Marginals(Protocol):
    """One distribution for each of (B, N) variables, never summed over them."""

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x) per variable, (B, N)."""
        ...

    def sample(self, *, generator: Source, temperature: float = 1.0) -> Tensor:
        """One draw per variable, (B, N). Temperature 0 is the mode."""
        ...

    def mode(self) -> Tensor:
        """The most probable value, (B, N)."""
        ...

    def mean(self) -> Tensor:
        """The expected value, (B, N), float (of the code, for discrete variables)."""
        ...

    def quantile(self, q: float) -> Tensor:
        """The smallest value v with P(X <= v) >= q, (B, N)."""
        ...

    def entropy(self) -> Tensor:
        """Entropy in nats (differential for continuous variables), (B, N)."""
        ...


@runtime_checkable
class DiscreteMarginals(Marginals, Protocol):
    """Marginals over finitely many values, whose probabilities a sampler may reshape (top-k, nucleus, typical)."""

    @property
    def log_probs(self) -> Tensor:
        """(B, N, K) normalised log-probabilities of the values 0 … K-1."""
        ...


@runtime_checkable
class Poolable(Marginals, Protocol):
    """Marginals of several members, (M, B, N), that can be mixed into one distribution per variable."""

    def pooled(self, log_weights: Tensor) -> Marginals:
        """sum_m w_m p_m over the first dimension, exactly: log-weights (M, B, N), normalised -> marginals (B, N)."""
        ...


@runtime_checkable
class Likelihood(Protocol):
    """Reads network outputs as distributions; subclassed, so that what is not said has its default."""

    sizes: tuple[int, ...] = ()
    """How many codes each variable has, 0 = real, of a likelihood that is itself one of several variables."""

    @property
    def width(self) -> int:
        """P, the number of parameters a network must give for each variable."""
        ...

    @property
    def exact(self) -> bool:
        """False if its log-probabilities are estimates (of a normaliser)."""
        return True

    def __call__(self, params: Tensor) -> Marginals: ...


@runtime_checkable
class PerVariable(Likelihood, Protocol):
    """A likelihood that may differ from variable to variable, so it must be told whose parameters it reads."""

    def at(self, params: Tensor, variable: Tensor) -> Marginals:
        """Distributions of the variables ``variable`` (B, M, int), one parameter row (B, M, P) for each."""
        ...
